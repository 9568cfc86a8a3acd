//! Which library schedule serves a call. Every rank must choose alike, so the choice depends on nothing but what all
//! ranks know of the call.

use crate::comm::error::Refusal;
use crate::comm::request::Counts;
use crate::comm::resolve::Resolved;
use crate::comm::store::Stored;
use crate::select::{Candidate, Chooser, Imposed, Made, Question};
use coll_cost::Layout;
use std::sync::{Arc, Mutex, PoisonError};

static CHOOSING: Mutex<()> = Mutex::new(());

/// The schedule of the file that is to be taken for a call of a collective, if there is one; else why it cannot serve. What
/// excludes a call on every rank alike is told apart from what this rank alone can know: how its buffers lie.
pub(crate) fn imposed(
    resolved: &Resolved<'_>,
    collective: &'static str,
    world: u32,
    chooser: &Chooser,
) -> Option<Result<Stored, Refusal>> {
    let Imposed { file, plan, limits, equal_chunks_only, .. } = chooser.imposed(collective)?;
    let key = &resolved.key;
    let words =
        |reason: String| format!("`{file}` is to be taken for {collective}, and cannot serve: {reason}");
    let blocks = if key.what.has_blocks() { u64::from(world) } else { 1 };
    let (elements, size_bytes) = (key.count.saturating_mul(blocks), key.dtype.size_bytes());
    let root = plan.root.filter(|&root| key.what.has_root() && root != key.root);
    let barred = if plan.world() != world {
        Some(format!("it is for {} ranks, and there are {world}", plan.world()))
    } else if let Some(root) = root {
        Some(format!("its root is {root}, and the call's is {}", key.root))
    } else if key.unequal || !matches!(resolved.counts, Counts::Even) {
        Some("it is for blocks of one length".to_string())
    } else if key.deterministic {
        Some("whether its reductions depend on an element's place is not known".to_string())
    } else if key.types.accumulate.is_some() || key.types.wire.is_some() {
        Some("it says nothing of types that are reduced in or travel, and the call asks for some".to_string())
    } else if *equal_chunks_only {
        Some("its chunks change places, which blocks of a call cannot".to_string())
    } else {
        let calls = limits.only_in_place().unwrap_or(key.in_place);
        limits.exclude(elements, size_bytes, calls).into_iter().next()
    };
    if let Some(reason) = barred {
        return Some(Err(Refusal::Everywhere(words(reason))));
    }
    if let Some(reason) = limits.exclude(elements, size_bytes, key.in_place).into_iter().next() {
        return Some(Err(Refusal::Here(words(reason))));
    }
    let identity = crate::plans::identity(plan).into();
    let ordered = plan.claims.ordered;
    Some(Ok(Stored { plan: Arc::clone(plan), identity, ordered, equal_blocks_only: true }))
}

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
