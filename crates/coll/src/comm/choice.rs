//! Which library schedule serves a call. Every rank must choose alike, so the choice depends on nothing but what all
//! ranks know of the call.

use crate::comm::error::Refusal;
use crate::comm::request::Counts;
use crate::comm::resolve::Resolved;
use crate::select::{Candidate, Chooser, Made, Question};
use coll_cost::Layout;
use std::sync::{Mutex, PoisonError};

static CHOOSING: Mutex<()> = Mutex::new(());

/// The schedule for a call of a collective, with its plan, if choosing made it.
pub(crate) fn choose(
    resolved: &Resolved<'_>,
    collective: &'static str,
    world: u32,
    chooser: &Chooser,
    (transport, layout): (&'static str, Layout),
) -> Result<(Candidate, Option<Made>), Refusal> {
    let key = &resolved.key;
    if matches!(resolved.counts, Counts::AtRoot(_) | Counts::Pairs { .. }) {
        // Only here does no block pass through a rank that does not know its length.
        let schedule = if collective == "alltoall" { "pairwise" } else { "linear" };
        return Ok((Candidate { operation: collective, schedule, params: Vec::new() }, None));
    }
    let blocks = if key.what.has_blocks() { u64::from(world) } else { 1 };
    let elements = match resolved.counts {
        Counts::Shared(counts) => counts.iter().fold(0u64, |sum, &count| sum.saturating_add(count as u64)),
        _ => key.count.saturating_mul(blocks),
    };
    let question = Question {
        root: if key.what.has_root() { key.root } else { 0 },
        dtype: key.dtype,
        accumulate: key.types.accumulate.is_some(),
        wire: key.types.wire,
        commutative: resolved.op.as_ref().is_none_or(|op| op.is_commutative()),
        user_operator: resolved.op.as_ref().is_some_and(|op| op.is_users()),
        unequal_blocks: key.unequal,
        deterministic: key.deterministic,
        transport,
        layout,
        ..Question::new(collective, world, elements.saturating_mul(key.dtype.size_bytes()))
    };
    // The first to ask makes what all others find: ranks that are threads would do it side by side.
    let choosing = CHOOSING.lock().unwrap_or_else(PoisonError::into_inner);
    let chosen = chooser.choose_proved(&question).map_err(|error| Refusal::Everywhere(error.to_string()))?;
    drop(choosing);
    Ok(chosen)
}
