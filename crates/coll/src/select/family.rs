//! The candidates of one operation on so many ranks, compiled, proved and outlined.

use super::candidates::{Candidate, candidates};
use crate::one_rank::{RankOutcome, compile_rank};
use crate::{Options, Outcome, Source};
use coll_check::program::Properties;
use coll_cost::{Constants, Layout, Outline, Slices, Work, chain_ranks, is_direct};
use coll_plan::Plan;

/// Up to so many ranks, candidates are compiled whole.
pub const WHOLE_RANKS_MAX: u32 = 64;

/// The most ranks that a candidate is compiled whole on, to be judged on more.
const NODES_RANKS_MAX: u32 = 128;

/// A candidate and what is known of it.
pub(crate) struct Member {
    pub(crate) candidate: Candidate,
    pub(crate) known: Known,
}

pub(crate) enum Known {
    /// It can run; whether it may is up to the question.
    Runs(Box<Runs>),
    /// It cannot, and why.
    Not(String),
}

pub(crate) struct Runs {
    pub(crate) cost: Cost,
    pub(crate) properties: Properties,
    /// No block passes through a rank that is not to keep it.
    pub(crate) direct: bool,
}

impl Runs {
    /// Messages on the longest chain.
    pub(crate) fn steps(&self) -> u32 {
        match &self.cost {
            Cost::Whole(_) => self.properties.steps,
            Cost::Slices(slices) => slices.steps(),
        }
    }

    /// What the busiest rank sends, as a share of the sized buffer's bytes.
    pub(crate) fn sent_share(&self) -> f64 {
        match &self.cost {
            Cost::Whole(_) => self.properties.sent_max.to_f64(),
            Cost::Slices(slices) => slices.sent_share(),
        }
    }
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
    candidates(operation, ranks, layout)
        .into_iter()
        .map(|candidate| member(candidate, ranks, root, layout))
        .collect()
}

pub(crate) fn member(candidate: Candidate, ranks: u32, root: u32, layout: Layout) -> Member {
    let known = match ranks {
        0..=WHOLE_RANKS_MAX => whole(&candidate, ranks, root),
        _ => sliced(&candidate, ranks, root, layout),
    };
    Member { candidate, known: known.map_or_else(Known::Not, |runs| Known::Runs(Box::new(runs))) }
}

fn whole(candidate: &Candidate, ranks: u32, root: u32) -> Result<Runs, String> {
    match candidate.prove(ranks, root) {
        Outcome::Right(proved) => {
            let (cost, direct) = (Cost::Whole(Outline::new(&proved.plan)), is_direct(&proved.plan));
            Ok(Runs { cost, properties: proved.properties, direct })
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
fn sliced(candidate: &Candidate, ranks: u32, root: u32, layout: Layout) -> Result<Runs, String> {
    let source = candidate.source();
    let schedule = candidate.index(&source);
    let counts = small_counts(candidate, ranks)?;
    let mut chain = [0; 3];
    let mut properties = None;
    for (links, small) in chain.iter_mut().zip(counts) {
        let proved = proved_small(candidate, small, root)?;
        *links = proved.steps;
        properties = Some(proved);
    }
    let [.., largest] = counts;
    if !compiles_alone(&source, schedule, candidate, largest, root % largest)? {
        return Err(format!("cannot be compiled rank by rank, as {ranks} ranks need"));
    }
    // Two ranks that may be within a machine, and two that may be at its end.
    let last = layout.ranks_on_host(ranks) - 1;
    let at = [root, (root + 1) % ranks, last, ranks - 1];
    let mut plans: Vec<Plan> = Vec::new();
    for rank in at {
        match compile_rank(&source, schedule, &candidate.instance(ranks, root), rank, &Options::default()) {
            RankOutcome::Right(planned) => plans.push(planned.plan),
            RankOutcome::DoesNotApply { reason, .. } => return Err(does_not_apply(ranks, &reason)),
            RankOutcome::Wrong(diagnostics) => return Err(wrong(&diagnostics)),
        }
    }
    let properties = properties.ok_or("was proved on no rank count")?;
    let direct = plans.iter().all(is_direct);
    Ok(Runs { cost: Cost::Slices(Slices::new(&plans, largest, chain)), properties, direct })
}

/// Three counts, each twice the one before: the usual ones, or two, four and eight nodes.
fn small_counts(candidate: &Candidate, ranks: u32) -> Result<[u32; 3], String> {
    let usual = chain_ranks(ranks);
    match candidate.local() {
        Some(local) if usual.iter().any(|count| count % local != 0) => match 8 * local <= NODES_RANKS_MAX {
            true => Ok([2 * local, 4 * local, 8 * local]),
            false => Err(format!("is not judged on nodes of {local} ranks")),
        },
        _ => Ok(usual),
    }
}

fn proved_small(candidate: &Candidate, ranks: u32, root: u32) -> Result<Properties, String> {
    match candidate.prove(ranks, root % ranks) {
        Outcome::Right(proved) => Ok(proved.properties),
        Outcome::DoesNotApply { reason, .. } => Err(does_not_apply(ranks, &reason)),
        Outcome::Wrong(diagnostics) => Err(wrong(&diagnostics)),
    }
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
