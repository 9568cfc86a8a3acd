//! Plans from files: binary, text or JSON, recognised by their first bytes, verified and proved before they are used.

use coll_base::Diagnostic;
use coll_plan::{Claims, Plan, Proof, Reference};

/// Why bytes are no plan that can be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Not a plan, a damaged one, or one of another version.
    #[error("{0}")]
    Unreadable(String),
    /// A plan as text that does not read, or whose tables do not fit together.
    #[error("{}", .0.message)]
    Malformed(Box<Diagnostic>),
    /// A plan that does not keep its contract.
    #[error("the plan does not keep its contract: {}", .0.first().map_or("", |d| &d.message))]
    Wrong(Vec<Diagnostic>),
}

impl PlanError {
    /// What is wrong, one by one.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            PlanError::Unreadable(_) => &[],
            PlanError::Malformed(diagnostic) => std::slice::from_ref(diagnostic),
            PlanError::Wrong(diagnostics) => diagnostics,
        }
    }
}

/// A plan that was read and, if it is whole, proved.
pub struct ReadPlan {
    /// The plan.
    pub plan: Plan,
    /// Least message slots for each connection; 0 for a slice, which cannot be proved by itself.
    pub min_slots: u32,
    /// What its proof found besides, claimed or not; of a slice, what it claims.
    pub found: Claims,
    /// Warnings of the proof.
    pub warnings: Vec<Diagnostic>,
}

/// True if the bytes claim to be a plan in one of its forms.
pub fn is_plan(bytes: &[u8]) -> bool {
    let text = without_comments(bytes);
    bytes.starts_with(coll_plan::MAGIC)
        || text.starts_with(b"plan ")
        || (text.starts_with(b"{") && !contains(&text[..text.len().min(4096)], b"collc bundle"))
}

/// Reads a plan in any of its forms, and proves it. What it claims of its reductions is refused if the proof does not bear
/// it out; and so is a plan that says it was compiled and proved, and has been changed since.
pub fn read_plan(bytes: &[u8]) -> Result<ReadPlan, PlanError> {
    if bytes.starts_with(coll_plan::MAGIC) {
        let plan = coll_plan::from_bytes(bytes).map_err(|error| PlanError::Unreadable(error.to_string()))?;
        return prove(plan);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| PlanError::Unreadable("it is no plan: neither the binary form nor text".into()))?;
    if text.trim_start().starts_with('{') {
        let plan = coll_plan::from_json(text).map_err(|error| PlanError::Unreadable(error.to_string()))?;
        return prove(plan);
    }
    read_plan_text(text)
}

/// Reads a plan as text, and proves it.
pub fn read_plan_text(text: &str) -> Result<ReadPlan, PlanError> {
    let plan =
        coll_plan::from_text(text).map_err(|error| PlanError::Malformed(Box::new(error.diagnostic())))?;
    prove(plan)
}

fn prove(plan: Plan) -> Result<ReadPlan, PlanError> {
    coll_plan::verify(&plan).map_err(|error| PlanError::Malformed(Box::new(error.diagnostic())))?;
    coll_plan::unchanged(&plan).map_err(|error| PlanError::Malformed(Box::new(error.diagnostic())))?;
    if !plan.is_whole() {
        let found = plan.claims;
        return Ok(ReadPlan { plan, min_slots: 0, found, warnings: Vec::new() });
    }
    let proof = coll_check::plan::prove(&plan);
    match proof.diagnostics.iter().any(Diagnostic::is_error) {
        true => Err(PlanError::Wrong(proof.diagnostics)),
        false => {
            let (min_slots, found) = (proof.min_slots, proof.claims);
            Ok(ReadPlan { plan, min_slots, found, warnings: proof.diagnostics })
        }
    }
}

/// What all slices of one plan have in common, for ranks to compare: the origin, if there is one, and else the hash of the
/// whole. Slices that were cut off and slices that were made alone have one origin.
pub(crate) fn identity(plan: &Plan) -> String {
    match &plan.origin {
        Some(origin) => format!("compiled from {origin}"),
        None => proof_hash(plan),
    }
}

/// What a plan is shown as: the hash of the whole if that is known, else of the proof by reference that a slice rests on.
pub fn proof_hash(plan: &Plan) -> String {
    match &plan.proof {
        Some(Proof::Whole(hash) | Proof::Reference(Reference { hash, .. })) => hash.clone(),
        None => coll_plan::hash(plan),
    }
}

/// What follows white space and whole-line comments.
fn without_comments(bytes: &[u8]) -> &[u8] {
    let mut text = bytes.trim_ascii_start();
    while text.starts_with(b"//") {
        let end = text.iter().position(|&byte| byte == b'\n').unwrap_or(text.len());
        text = text[end..].trim_ascii_start();
    }
    text
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}
