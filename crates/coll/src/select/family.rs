//! The candidates of one operation on so many ranks: each compiled, outlined and proved once, when that is first asked for.

use super::candidates::{Candidate, candidates};
use super::facts::{self, Fact};
use super::ground::Ground;
use crate::one_rank::{RankOutcome, compile_rank};
use crate::{Draft, Options, Outcome, Source};
use coll_check::program::Properties;
use coll_cost::{Constants, Layout, Outline, Slices, Work, chain_ranks, is_direct};
use coll_plan::Plan;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Up to so many ranks, candidates are compiled whole.
pub const WHOLE_RANKS_MAX: u32 = facts::RANKS_MAX;

/// The most ranks that a candidate is compiled whole on, to be judged on more.
const NODES_RANKS_MAX: u32 = 128;

/// The candidates of one operation, in the order of their names.
pub(crate) struct Family {
    operation: &'static str,
    pub(crate) members: Vec<Member>,
    pub(crate) ranks: u32,
    root: u32,
    layout: Layout,
    /// What members are simulated on, if they are.
    pub(crate) ground: Option<Arc<Ground>>,
}

/// A candidate and what is known of it.
pub(crate) struct Member {
    pub(crate) candidate: Candidate,
    /// What is known before it is compiled, if anything is.
    fact: Option<Fact>,
    /// What it would take; or why it cannot run.
    runs: OnceLock<Result<Runs, String>>,
}

pub(crate) struct Runs {
    /// What predictions are made from, once one is asked for; none if the proof failed before.
    cost: OnceLock<Option<Cost>>,
    /// No block passes through a rank that is not to keep it.
    pub(crate) direct: bool,
    /// What there is to be proved. None once it is done, and where that was done on smaller counts.
    draft: Mutex<Option<Draft>>,
    proof: OnceLock<Result<ProvedMember, String>>,
}

/// What a proof found.
pub(crate) struct ProvedMember {
    pub(crate) properties: Properties,
    /// The whole plan, where it was made.
    pub(crate) plan: Option<Arc<Plan>>,
}

impl Family {
    /// All members, of which nothing is compiled yet.
    pub(crate) fn new(operation: &'static str, ranks: u32, root: u32, layout: Layout) -> Family {
        let known = facts::of(operation).map_or_else(Vec::new, |facts| facts.on(ranks));
        let member = |candidate: Candidate| {
            let fact = known.iter().find(|(known, _)| *known == candidate).map(|&(_, fact)| fact);
            Member { candidate, fact, runs: OnceLock::new() }
        };
        let members = candidates(operation, ranks, layout).into_iter().map(member).collect();
        Family { operation, members, ranks, root, layout, ground: None }
    }

    /// Whose candidates they are.
    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    /// Has members weighed by runs on a network, and gives those that go node by node the nodes that it has.
    pub(crate) fn stand_on(&mut self, ground: Arc<Ground>) {
        for member in &mut self.members {
            let before = member.candidate.clone();
            ground.shape(&mut member.candidate);
            if member.candidate != before {
                member.fact = None;
            }
        }
        if self.ranks <= WHOLE_RANKS_MAX {
            self.ground = Some(ground);
        }
    }

    /// Takes one more candidate in.
    pub(crate) fn add(&mut self, candidate: Candidate) {
        self.members.push(Member { candidate, fact: None, runs: OnceLock::new() });
    }

    /// A member, compiled; or why it cannot run.
    pub(crate) fn runs(&self, member: usize) -> Result<&Runs, &str> {
        let Member { candidate, runs, .. } = &self.members[member];
        let runs = runs.get_or_init(|| match self.ranks {
            0..=WHOLE_RANKS_MAX => whole(candidate, self.ranks, self.root),
            _ => sliced(candidate, self.ranks, self.root, self.layout),
        });
        runs.as_ref().map_err(String::as_str)
    }

    /// What its proof found; or why it cannot run, or is wrong.
    pub(crate) fn proved(&self, member: usize) -> Result<&ProvedMember, &str> {
        let candidate = &self.members[member].candidate;
        let runs = self.runs(member)?;
        let proof = runs.proof.get_or_init(|| {
            let draft = runs.draft.lock().unwrap_or_else(PoisonError::into_inner).take();
            let draft = draft.ok_or("was to be proved before")?;
            match draft.prove(&candidate.source(), &Options::default()) {
                Outcome::Right(proved) => {
                    let (properties, plan) = (proved.properties, Some(Arc::new(proved.plan)));
                    Ok(ProvedMember { properties, plan })
                }
                other => Err(cannot(self.ranks, &other)),
            }
        });
        proof.as_ref().map_err(String::as_str)
    }

    /// Has a member's proof fail.
    #[cfg(test)]
    pub(crate) fn refute(&self, member: usize) {
        let runs = self.runs(member).ok();
        let refuted = runs.map(|runs| runs.proof.set(Err("is wrong: it was said to be".to_string())));
        assert!(matches!(refuted, Some(Ok(()))), "it runs, and is not proved yet");
    }

    /// What a member takes at least, in microseconds, as far as that is known without compiling it; none if it cannot run.
    pub(crate) fn bound_us(
        &self,
        member: usize,
        constants: &Constants,
        layout: Layout,
        work: Work,
    ) -> Option<f64> {
        match self.members[member].fact {
            Some(Fact::DoesNotApply) => None,
            Some(Fact::Runs(totals)) => Some(totals.bound_us(self.ranks, constants, layout, work)),
            None => Some(0.0),
        }
        .map(|us| if self.ground.is_some() { 0.0 } else { us })
    }

    /// What a member is predicted to take, in microseconds, if it can run.
    pub(crate) fn predict_us(
        &self,
        member: usize,
        constants: &Constants,
        layout: Layout,
        work: Work,
    ) -> Option<f64> {
        self.predict_within_us(member, constants, layout, work, f64::INFINITY)
    }

    /// The same, or none where that is above a limit.
    pub(crate) fn predict_within_us(
        &self,
        member: usize,
        constants: &Constants,
        layout: Layout,
        work: Work,
        limit_us: f64,
    ) -> Option<f64> {
        if let Some(ground) = &self.ground {
            return self.run_us(member, ground, work).filter(|&us| us <= limit_us);
        }
        match self.cost(member)? {
            Cost::Whole(outline) => outline.predict_within_us(constants, layout, work, limit_us),
            Cost::Slices(slices) => {
                Some(slices.predict_us(constants, layout, work)).filter(|&us| us <= limit_us)
            }
        }
    }

    /// What a simulated run takes.
    fn run_us(&self, member: usize, ground: &Ground, work: Work) -> Option<f64> {
        let runs = self.runs(member).ok()?;
        if let Some(draft) = &*runs.draft.lock().unwrap_or_else(PoisonError::into_inner) {
            return ground.run_us(draft.plan(), work);
        }
        ground.run_us(self.proved(member).ok()?.plan.as_ref()?, work)
    }

    fn cost(&self, member: usize) -> Option<&Cost> {
        let runs = self.runs(member).ok()?;
        let outline = || {
            if let Some(draft) = &*runs.draft.lock().unwrap_or_else(PoisonError::into_inner) {
                return Some(Cost::Whole(Outline::new(draft.plan())));
            }
            // The draft went into its proof, and came out as a plan.
            let proved = self.proved(member).ok()?;
            proved.plan.as_ref().map(|plan| Cost::Whole(Outline::new(plan)))
        };
        runs.cost.get_or_init(outline).as_ref()
    }

    /// Messages on the longest chain, as far as the model knows it: without a proof.
    pub(crate) fn chain(&self, member: usize) -> u32 {
        if let Some(Fact::Runs(totals)) = self.members[member].fact {
            return totals.chain;
        }
        match self.cost(member) {
            Some(Cost::Whole(outline)) => outline.totals().chain,
            Some(Cost::Slices(slices)) => slices.steps(),
            None => u32::MAX,
        }
    }

    /// Messages on the longest chain.
    pub(crate) fn steps(&self, member: usize) -> Option<u32> {
        match self.cost(member)? {
            Cost::Whole(_) => Some(self.proved(member).ok()?.properties.steps),
            Cost::Slices(slices) => Some(slices.steps()),
        }
    }

    /// What the busiest rank sends, as a share of the sized buffer's bytes.
    pub(crate) fn sent_share(&self, member: usize) -> Option<f64> {
        match self.cost(member)? {
            Cost::Whole(_) => Some(self.proved(member).ok()?.properties.sent_max.to_f64()),
            Cost::Slices(slices) => Some(slices.sent_share()),
        }
    }
}

impl Runs {
    /// Why its proof failed, if it did.
    pub(crate) fn refuted(&self) -> Option<&str> {
        self.proof.get()?.as_ref().err().map(String::as_str)
    }
}

/// What predictions are made from.
enum Cost {
    Whole(Outline),
    Slices(Slices),
}

fn whole(candidate: &Candidate, ranks: u32, root: u32) -> Result<Runs, String> {
    let source = candidate.source();
    let instance = candidate.instance(ranks, root);
    let draft = Draft::new(&source, candidate.index(&source), &instance, &Options::default());
    let draft = draft.map_err(|outcome| cannot(ranks, &outcome))?;
    Ok(Runs {
        cost: OnceLock::new(),
        direct: is_direct(draft.plan()),
        draft: Mutex::new(Some(draft)),
        proof: OnceLock::new(),
    })
}

fn cannot(ranks: u32, outcome: &Outcome) -> String {
    match outcome {
        Outcome::DoesNotApply { reason, .. } => does_not_apply(ranks, reason),
        Outcome::Wrong(diagnostics) => wrong(diagnostics),
        Outcome::Right(_) => String::new(),
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
    Ok(Runs {
        direct: plans.iter().all(is_direct),
        cost: OnceLock::from(Some(Cost::Slices(Slices::new(&plans, largest, chain)))),
        draft: Mutex::new(None),
        proof: OnceLock::from(Ok(ProvedMember { properties, plan: None })),
    })
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
        other => Err(cannot(ranks, &other)),
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
