//! From a schedule and a rank count to a proved plan, or to what is wrong.

use crate::Source;
use coll_base::{Diagnostic, Span};
use coll_check::program::Properties;
use coll_compile::{Options, PassReport};
use coll_plan::Plan;
use coll_sema::{Instance, Refusal};

/// What became of a schedule for one rank count and root.
pub enum Outcome {
    /// A `require` excludes it.
    DoesNotApply {
        /// The `require`.
        span: Span,
        /// Its reason.
        reason: String,
    },
    /// It is wrong.
    Wrong(Vec<Diagnostic>),
    /// It keeps its contract, and so does its plan.
    Right(Box<Proved>),
}

/// A schedule that keeps its contract, and its plan.
pub struct Proved {
    /// What was proved of it besides.
    pub properties: Properties,
    /// What runs.
    pub plan: Plan,
    /// Least message slots for each connection with which the plan ends.
    pub min_slots: u32,
    /// Warnings of all stages.
    pub warnings: Vec<Diagnostic>,
    /// What the passes did.
    pub passes: Vec<PassReport>,
}

/// Instantiates a schedule, proves the program, compiles it, and proves the plan by independent code.
pub fn prove(source: &Source, schedule: usize, instance: &Instance, options: &Options) -> Outcome {
    let instantiated = match source.module.instantiate(schedule, instance) {
        Ok(instantiated) => instantiated,
        Err(Refusal::DoesNotApply { span, reason }) => return Outcome::DoesNotApply { span, reason },
        Err(Refusal::Errors(diagnostics)) => return Outcome::Wrong(diagnostics),
    };
    let mut diagnostics = instantiated.warnings;
    let proof = coll_check::program::prove(&instantiated.program);
    diagnostics.extend(proof.diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Outcome::Wrong(diagnostics);
    }
    let compiled = match coll_compile::compile(&instantiated.program, &source.map, options) {
        Ok(compiled) => compiled,
        Err(diagnostic) => return Outcome::Wrong(vec![diagnostic]),
    };
    drop(instantiated.program);
    let plan_proof = coll_check::plan::prove(&compiled.plan);
    diagnostics.extend(plan_proof.diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Outcome::Wrong(diagnostics);
    }
    Outcome::Right(Box::new(Proved {
        properties: proof.properties,
        plan: compiled.plan,
        min_slots: plan_proof.min_slots,
        warnings: diagnostics,
        passes: compiled.reports,
    }))
}
