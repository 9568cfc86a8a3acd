//! From a schedule and a rank count to a proved plan, or to what is wrong.

use crate::Source;
use crate::origin::origin;
use coll_base::{Diagnostic, Span};
use coll_check::program::Properties;
use coll_compile::{Compiled, Options, PassReport};
use coll_ir::Program;
use coll_plan::{Claims, Plan, Proof};
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
    /// What was proved of it besides. Of the order and the trees of reductions, what both proofs found.
    pub properties: Properties,
    /// What the proof of the program found of the order and the trees of reductions, and what that of the plan did.
    pub found: [Claims; 2],
    /// What runs. It claims what both proofs found.
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
        Err(refusal) => return refused(refusal),
    };
    let proof = coll_check::program::prove(&instantiated.program);
    let mut diagnostics = instantiated.warnings;
    diagnostics.extend(proof.diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Outcome::Wrong(diagnostics);
    }
    match compiled(source, schedule, instance, options, &instantiated.program) {
        Ok(compiled) => {
            drop(instantiated.program);
            judge(source, options, proof.properties, diagnostics, compiled)
        }
        Err(diagnostic) => Outcome::Wrong(vec![*diagnostic]),
    }
}

/// Compiles a schedule and proves nothing: to tell what it would take, and never to run it.
///
/// # Errors
/// What keeps it from being compiled, as [`prove`] has it.
pub fn compile(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    options: &Options,
) -> Result<Plan, Outcome> {
    Ok(Draft::new(source, schedule, instance, options)?.compiled.plan)
}

/// A schedule that is compiled and not proved: enough to tell what it would take, and nothing that may run.
pub(crate) struct Draft {
    program: Program,
    warnings: Vec<Diagnostic>,
    compiled: Compiled,
}

impl Draft {
    /// Instantiates and compiles a schedule.
    pub(crate) fn new(
        source: &Source,
        schedule: usize,
        instance: &Instance,
        options: &Options,
    ) -> Result<Draft, Outcome> {
        let instantiated = source.module.instantiate(schedule, instance).map_err(refused)?;
        let (program, warnings) = (instantiated.program, instantiated.warnings);
        match compiled(source, schedule, instance, options, &program) {
            Ok(compiled) => Ok(Draft { program, warnings, compiled }),
            Err(diagnostic) => Err(Outcome::Wrong(vec![*diagnostic])),
        }
    }

    /// What it was compiled to.
    pub(crate) fn plan(&self) -> &Plan {
        &self.compiled.plan
    }

    /// Proves the program and the plan: what [`prove`] would have found.
    pub(crate) fn prove(self, source: &Source, options: &Options) -> Outcome {
        let proof = coll_check::program::prove(&self.program);
        let mut diagnostics = self.warnings;
        diagnostics.extend(proof.diagnostics);
        if diagnostics.iter().any(Diagnostic::is_error) {
            return Outcome::Wrong(diagnostics);
        }
        drop(self.program);
        judge(source, options, proof.properties, diagnostics, self.compiled)
    }
}

fn refused(refusal: Refusal) -> Outcome {
    match refusal {
        Refusal::DoesNotApply { span, reason } => Outcome::DoesNotApply { span, reason },
        Refusal::Errors(diagnostics) => Outcome::Wrong(diagnostics),
    }
}

fn compiled(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    options: &Options,
    program: &Program,
) -> Result<Compiled, Box<Diagnostic>> {
    // Up to the reference the count itself decides, which is what compiling does by itself.
    let decided = match instance.ranks > REFERENCE_RANKS_MAX {
        true => decided(source, schedule, instance, options),
        false => None,
    };
    let decided = decided.unwrap_or_else(|| Decided { options: options.clone(), why: None });
    let mut compiled = coll_compile::compile(program, &source.map, &decided.options)?;
    let merge = compiled.reports.iter_mut().find(|report| report.name == "merge");
    if let (Some(report), Some(why)) = (merge, decided.why) {
        report.reason = why;
    }
    Ok(compiled)
}

/// Proves the plan of a program that is proved.
fn judge(
    source: &Source,
    options: &Options,
    properties: Properties,
    mut diagnostics: Vec<Diagnostic>,
    compiled: Compiled,
) -> Outcome {
    let plan_proof = coll_check::plan::prove(&compiled.plan);
    diagnostics.extend(plan_proof.diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Outcome::Wrong(diagnostics);
    }
    let Properties { ordered, same_reduction_tree, .. } = properties;
    let found = [Claims { ordered, same_reduction_tree }, plan_proof.claims];
    let claims = found[0].and(found[1]);
    let Claims { ordered, same_reduction_tree } = claims;
    let mut plan = Plan { claims, ..compiled.plan };
    plan.origin = Some(origin(source, &plan, options));
    plan.proof = Some(Proof::Whole(coll_plan::hash(&plan)));
    Outcome::Right(Box::new(Proved {
        properties: Properties { ordered, same_reduction_tree, ..properties },
        found,
        plan,
        min_slots: plan_proof.min_slots,
        warnings: diagnostics,
        passes: compiled.reports,
    }))
}

/// The most ranks on which it is weighed whether a schedule's messages are merged. Beyond, it is done as on these:
/// so one rank can know without the others' parts.
pub(crate) const REFERENCE_RANKS_MAX: u32 = 16;

/// Options in which nothing is left to be weighed.
pub(crate) struct Decided {
    pub(crate) options: Options,
    /// How it was decided whether messages are merged, if that was decided elsewhere.
    pub(crate) why: Option<String>,
}

/// Decides whether messages are merged, on the largest rank count up to [`REFERENCE_RANKS_MAX`] and the instance's
/// own that the schedule applies to; one whose last node is as large as the instance's, where it goes by nodes, and then one
/// that is a power of two just if the instance's is, as many schedules fold other counts onto a power of two first; where there is
/// such a one. None if there is no count that it applies to.
pub(crate) fn decided(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    options: &Options,
) -> Option<Decided> {
    if options.merge.is_some() {
        return Some(Decided { options: options.clone(), why: None });
    }
    let mut counts: Vec<u32> = (2..=instance.ranks.min(REFERENCE_RANKS_MAX)).rev().collect();
    let last_nodes = |ranks: u32| {
        let root = instance.root % ranks;
        source.module.last_nodes(schedule, &Instance { ranks, root, params: instance.params.clone() })
    };
    let due = last_nodes(instance.ranks);
    counts.sort_by_key(|&ranks| {
        (last_nodes(ranks) != due, ranks.is_power_of_two() != instance.ranks.is_power_of_two())
    });
    for ranks in counts {
        let root = instance.root % ranks;
        let small = Instance { ranks, root, params: instance.params.clone() };
        let instantiated = match source.module.instantiate(schedule, &small) {
            Ok(instantiated) => instantiated,
            Err(Refusal::DoesNotApply { .. }) => continue,
            Err(Refusal::Errors(_)) => return None,
        };
        let compiled = coll_compile::compile(&instantiated.program, &source.map, options).ok()?;
        let report = compiled.reports.iter().find(|report| report.name == "merge");
        let count = |what| {
            let counts = report.iter().flat_map(|report| &report.counts);
            counts.filter(|(name, _)| *name == what).map(|&(_, count)| count).sum::<u64>()
        };
        let merge = Some(count("after") < count("messages before"));
        let reason = report.map_or("", |report| &report.reason);
        let why = match (ranks == instance.ranks, reason) {
            (true, _) => reason.to_string(),
            (false, "") => format!("as on {ranks} ranks"),
            (false, reason) => format!("as on {ranks} ranks: {reason}"),
        };
        return Some(Decided { options: Options { merge, ..options.clone() }, why: Some(why) });
    }
    None
}
