//! The candidates of one operation on so many ranks, compiled, proved and outlined.

use super::candidates::{Candidate, candidates};
use crate::one_rank::{RankOutcome, compile_rank};
use crate::{Options, Outcome, Source};
use coll_check::program::Properties;
use coll_cost::{CHAIN_RANKS, Constants, Layout, Outline, Slices, Work};
use coll_plan::Plan;

/// Up to so many ranks, candidates are compiled whole.
pub const WHOLE_RANKS_MAX: u32 = 64;

/// A candidate and what is known of it.
pub(crate) struct Member {
    pub(crate) candidate: Candidate,
    pub(crate) known: Known,
}

pub(crate) enum Known {
    /// It can run; whether it may is up to the question.
    Runs(Runs),
    /// It cannot, and why.
    Not(String),
}

pub(crate) struct Runs {
    pub(crate) cost: Cost,
    pub(crate) properties: Properties,
}

/// What predictions are made from.
pub(crate) enum Cost {
    Whole(Outline),
    Slices(Slices),
}

impl Cost {
    pub(crate) fn predict_us(&self, constants: &Constants, layout: Layout, work: Work) -> f64 {
        match self {
            Cost::Whole(outline) => outline.predict_us(constants, layout, work),
            Cost::Slices(slices) => slices.predict_us(constants, layout, work),
        }
    }
}

/// All members, in the order of their names.
pub(crate) fn family(operation: &str, ranks: u32, root: u32, layout: Layout) -> Vec<Member> {
    candidates(operation, ranks, layout).into_iter().map(|candidate| member(candidate, ranks, root)).collect()
}

pub(crate) fn member(candidate: Candidate, ranks: u32, root: u32) -> Member {
    let known = match ranks {
        0..=WHOLE_RANKS_MAX => whole(&candidate, ranks, root),
        _ => sliced(&candidate, ranks, root),
    };
    Member { candidate, known: known.map_or_else(Known::Not, Known::Runs) }
}

fn whole(candidate: &Candidate, ranks: u32, root: u32) -> Result<Runs, String> {
    match candidate.prove(ranks, root) {
        Outcome::Right(proved) => {
            Ok(Runs { cost: Cost::Whole(Outline::new(&proved.plan)), properties: proved.properties })
        }
        Outcome::DoesNotApply { reason, .. } => Err(does_not_apply(ranks, &reason)),
        Outcome::Wrong(diagnostics) => Err(wrong(&diagnostics)),
    }
}

fn does_not_apply(ranks: u32, reason: &str) -> String {
    format!("does not serve {ranks} ranks: {reason}")
}

fn wrong(diagnostics: &[coll_base::Diagnostic]) -> String {
    diagnostics.first().map_or(String::new(), |diagnostic| format!("is wrong: {}", diagnostic.message))
}

/// Judged by four ranks' slices. What is promised, and how the chain of messages grows, is found on small counts.
fn sliced(candidate: &Candidate, ranks: u32, root: u32) -> Result<Runs, String> {
    let source = candidate.source();
    let schedule = candidate.index(&source);
    let mut chain = [0; 3];
    let mut properties = None;
    for (links, small) in chain.iter_mut().zip(CHAIN_RANKS) {
        match candidate.prove(small, root % small) {
            Outcome::Right(proved) => {
                *links = proved.properties.steps;
                properties = Some(proved.properties);
            }
            Outcome::DoesNotApply { reason, .. } => return Err(does_not_apply(small, &reason)),
            Outcome::Wrong(diagnostics) => return Err(wrong(&diagnostics)),
        }
    }
    let largest = CHAIN_RANKS[2];
    if !compiles_alone(&source, schedule, candidate, largest, root % largest)? {
        return Err(format!("cannot be compiled rank by rank, as {ranks} ranks need"));
    }
    let at = [root, (root + 1) % ranks, ranks / 2, ranks - 1];
    let mut plans: Vec<Plan> = Vec::new();
    for rank in at {
        match compile_rank(&source, schedule, &candidate.instance(ranks, root), rank, &Options::default()) {
            RankOutcome::Right(planned) => plans.push(planned.plan),
            RankOutcome::DoesNotApply { reason, .. } => return Err(does_not_apply(ranks, &reason)),
            RankOutcome::Wrong(diagnostics) => return Err(wrong(&diagnostics)),
        }
    }
    let properties = properties.ok_or("was proved on no rank count")?;
    Ok(Runs { cost: Cost::Slices(Slices::new(&plans, chain)), properties })
}

fn compiles_alone(
    source: &Source,
    schedule: usize,
    candidate: &Candidate,
    ranks: u32,
    root: u32,
) -> Result<bool, String> {
    match compile_rank(source, schedule, &candidate.instance(ranks, root), 1, &Options::default()) {
        RankOutcome::Right(planned) => Ok(planned.alone),
        RankOutcome::DoesNotApply { reason, .. } => Err(does_not_apply(ranks, &reason)),
        RankOutcome::Wrong(diagnostics) => Err(wrong(&diagnostics)),
    }
}
