//! What a writer says of a plan that its form cannot say.

use crate::codes::INEXPRESSIBLE;
use coll_base::Diagnostic;
use coll_plan::Plan;

/// A refusal: which plan, which form, and what of it.
pub(crate) fn refusal(
    plan: &Plan,
    form: &str,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> Box<Diagnostic> {
    let message = format!("{form} cannot say {}", plan.name);
    Box::new(
        Diagnostic::unplaced(INEXPRESSIBLE, message)
            .expected(expected)
            .found(found)
            .help("take another schedule or another form; `docs/formats.md` tells what each can say"),
    )
}

/// Only whole plans can be written.
pub(crate) fn whole(plan: &Plan, form: &str) -> Result<(), Box<Diagnostic>> {
    match plan.contract.only {
        None => Ok(()),
        Some(rank) => {
            Err(refusal(plan, form, "the parts of all ranks", format!("that of rank {rank} alone")))
        }
    }
}
