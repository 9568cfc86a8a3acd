//! Tells of a barrier that does not hold: which rank may leave too early, and where word of the entry got lost.

use super::run::Outcome;
use super::sets::{SetId, Sets};
use super::{idle, names};
use crate::codes;
use coll_base::Diagnostic;
use coll_ir::{Kind, Program, Transfer};

/// Tells that `rank` may leave before `other` has entered; so may `count` pairs in all.
pub(super) fn leaves_early(
    program: &Program,
    outcome: &Outcome,
    (rank, other, count): (u32, u32, u64),
) -> Diagnostic {
    let mut knows = outcome.token_sets.elements(outcome.tokens[rank as usize].ranks);
    knows.retain(|&known| known != rank);
    let message = format!("rank {rank} may leave before rank {other} has entered");
    let code = codes::LEAVES_EARLY;
    let told = match last_carrier(program, other) {
        Some(transfer) => {
            let told = names::at(program, code, transfer.origin, message).label(format!(
                "word of rank {other} gets no further than {}",
                names::this(program, transfer)
            ));
            idle::after(program, told, transfer.step, "it").help(format!(
                "one more step of this kind, or another signal, has to carry it to rank {rank}"
            ))
        }
        None => idle::blame(program, code, &message, &format!("rank {other} never signals")).unwrap_or_else(
            || {
                names::at_the_end(program, code, message).note(format!("rank {other} never signals")).help(
                    format!("a signal of rank {other} has to reach rank {rank}, through others or by itself"),
                )
            },
        ),
    };
    let told = told
        .expected(format!("rank {rank} hears, by signals, of rank {other}"))
        .found(format!("rank {rank} hears of {}", names::ranks(&knows)));
    match names::others(count - 1, "pair of ranks", "pairs of ranks") {
        Some(others) => told.note(others),
        None => told,
    }
}

/// The first signal of the last step in which some rank told another of `wanted`.
fn last_carrier(program: &Program, wanted: u32) -> Option<&Transfer> {
    let mut sets = Sets::new();
    let mut tokens: Vec<SetId> = (0..program.ranks()).map(|rank| sets.single(rank)).collect();
    let mut found = None;
    for step in program.transfers.chunk_by(|a, b| a.step == b.step) {
        let before = tokens.clone();
        let signals = step.iter().filter(|transfer| transfer.kind == Kind::Signal);
        let mut first = None;
        for signal in signals {
            let (from, to) = (signal.source.rank as usize, signal.target.rank as usize);
            if !signal.is_local() && sets.contains(before[from], wanted) {
                first = first.or(Some(signal));
            }
            tokens[to] = sets.union(tokens[to], before[from]).0;
        }
        found = first.or(found);
    }
    found
}
