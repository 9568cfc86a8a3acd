//! Barriers: a rank leaves only after those have entered whom the contract names.
//!
//! A rank's entry comes before the first moment of all its operations, its exit after the last moment of all. So the
//! entries that a rank's exit surely follows are those that have reached its operations along lanes, waits and
//! messages. They are carried along the order of running, 64 ranks at a time, a bit for each.

use super::codes::LEAVES_EARLY;
use super::pairing::Messages;
use super::whole::{NONE, OpKey, TOLD_MAX, Whole};
use coll_base::Diagnostic;

const RANKS_AT_A_TIME: u32 = u64::BITS;

/// Checks every `after` of the contract.
pub(super) fn check(whole: &Whole, messages: &Messages, order: &[OpKey]) -> Vec<Diagnostic> {
    let after = &whole.plan.contract.after;
    let mut told = Vec::new();
    let mut from = 0;
    while !after.is_empty() && from < whole.plan.world() && told.len() < TOLD_MAX {
        let entered = entered(whole, messages, order, from);
        let end = from.saturating_add(RANKS_AT_A_TIME);
        for &(r, q) in after.iter().filter(|&&(_, q)| (from..end).contains(&q)) {
            if entered[r as usize] >> (q - from) & 1 == 0 && told.len() < TOLD_MAX {
                told.push(leaves_early(r, q));
            }
        }
        from = end;
    }
    told
}

/// For each rank, which of 64 ranks have entered before it leaves.
fn entered(whole: &Whole, messages: &Messages, order: &[OpKey], from: u32) -> Vec<u64> {
    let ops = whole.op_count();
    let (mut first, mut last) = (vec![0u64; ops], vec![0u64; ops]);
    let mut exits = vec![0u64; whole.plan.ranks.len()];
    for &key in order {
        let (part, op, rank) = (whole.part(key), whole.op(key), whole.rank_of(key));
        let base = whole.base(rank);
        let mut start = 0;
        if let Some(bit) = rank.checked_sub(from).filter(|&bit| bit < RANKS_AT_A_TIME) {
            start |= 1 << bit;
        }
        if let Some(previous) = whole.previous(key) {
            start |= last[previous as usize];
        }
        for wait in part.waits(op).iter().filter(|wait| !wait.along) {
            start |= last[(base + wait.op) as usize];
        }
        let feeder = match op.action.receives_from() {
            Some(_) => messages.of(key).send,
            None => whole.along(key),
        };
        let (begun, ended) = match feeder {
            NONE => (0, 0),
            feeder => (first[feeder as usize], last[feeder as usize]),
        };
        first[key as usize] = start | begun;
        last[key as usize] = start | begun | ended;
        exits[rank as usize] |= last[key as usize];
    }
    exits
}

fn leaves_early(r: u32, q: u32) -> Diagnostic {
    Diagnostic::unplaced(LEAVES_EARLY, format!("rank {r} may leave before rank {q} has entered"))
        .expected(format!("a chain of waits and messages from rank {q} to rank {r}"))
        .found("none")
        .help(format!("let a signal of rank {q}, or of a rank that has waited for it, reach rank {r}"))
}
