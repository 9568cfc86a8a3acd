//! Structural verification: all that an executor relies on to index freely. It asks whether the tables of a plan
//! fit each other, not whether the plan computes what its contract asks; that is the checker's business.
//!
//! Read it from the outside in: the contract, the header, then each rank's part. Nothing here assumes anything
//! that was not checked before, so that a hostile plan ends in a [`PlanError`] and never in a panic.

mod contract;
mod error;
mod header;
mod operation;
mod part;
mod places;
mod waits;

pub use error::PlanError;

use crate::Plan;

/// Checks that a plan's tables fit each other.
///
/// # Errors
/// The first thing that does not fit, with rank, operation, field, what was expected and what was found.
pub fn verify(plan: &Plan) -> Result<(), PlanError> {
    contract::verify(&plan.contract)?;
    header::verify(plan)?;
    let mut places = places::Places::new(&plan.contract);
    for part in &plan.ranks {
        places.fill(&plan.contract, part.rank);
        part::verify(plan, part, &places).map_err(|error| error.on_rank(part.rank))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
