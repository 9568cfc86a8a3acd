//! One schedule, proved for many rank counts and roots.

use crate::failure::Failure;
use coll::{Outcome, Proved, RankCounts, Source};
use coll_base::{DType, Diagnostic};
use coll_compile::Options;
use coll_sema::Instance;

/// Up to this many ranks every root is proved.
const ALL_ROOTS_RANKS_MAX: u32 = 64;

/// What was found of one schedule.
pub(crate) struct Sweep {
    /// Index into the source's schedules.
    pub(crate) schedule: usize,
    /// One entry for each rank count.
    pub(crate) counts: Vec<Count>,
}

/// What was found for one rank count.
pub(crate) struct Count {
    /// The rank count.
    pub(crate) ranks: u32,
    /// Roots that were proved; 0 alone if the collective has none.
    pub(crate) roots: Vec<u32>,
    /// What became of it.
    pub(crate) verdict: Verdict,
}

/// What became of a rank count, over all roots.
pub(crate) enum Verdict {
    /// A `require` excludes it.
    DoesNotApply { reason: String },
    /// The first root for which it is wrong.
    Wrong { root: u32, diagnostics: Vec<Diagnostic> },
    /// Right for every root: figures of the worst.
    Right(Figures),
}

/// What is known of a schedule that is right.
pub(crate) struct Figures {
    /// The proof of the first root, with the largest figures of all.
    pub(crate) properties: coll_check::program::Properties,
    /// Least message slots.
    pub(crate) min_slots: u32,
    /// What narrow floats are reduced in, if not as themselves.
    pub(crate) accumulate: Option<DType>,
    /// What wider floats travel as.
    pub(crate) wire: Option<DType>,
    /// Warnings of the first root.
    pub(crate) warnings: Vec<Diagnostic>,
}

impl Sweep {
    /// True if no count is wrong and at least one applies.
    pub(crate) fn ok(&self) -> bool {
        let wrong = self.counts.iter().any(|count| matches!(count.verdict, Verdict::Wrong { .. }));
        !wrong && !self.never_applies()
    }

    /// Rank counts that were proved.
    pub(crate) fn proved(&self) -> Vec<u32> {
        self.counts_where(|verdict| matches!(verdict, Verdict::Right(_)))
    }

    /// True if a `require` excludes every count.
    pub(crate) fn never_applies(&self) -> bool {
        self.counts.iter().all(|count| matches!(count.verdict, Verdict::DoesNotApply { .. }))
    }

    /// Rank counts with a verdict of some kind.
    pub(crate) fn counts_where(&self, wanted: impl Fn(&Verdict) -> bool) -> Vec<u32> {
        self.counts.iter().filter(|count| wanted(&count.verdict)).map(|count| count.ranks).collect()
    }
}

/// Proves a schedule for every rank count, and for every root that is asked for.
pub(crate) fn sweep(
    source: &Source,
    schedule: usize,
    ranks: &RankCounts,
    root: Option<u32>,
    params: &[(String, i64)],
    options: &Options,
) -> Result<Sweep, Failure> {
    let rooted = source.schedules()[schedule].rooted;
    if let (Some(root), Some(too_few)) = (root, root.and_then(|root| ranks.iter().find(|&n| root >= n))) {
        return Err(Failure::unusable(format!("root {root} is no rank among {too_few}"))
            .help(format!("roots are 0..={}", too_few - 1)));
    }
    let counts = ranks.iter().map(|n| {
        let roots: Vec<u32> = match root {
            Some(root) => vec![root],
            None if rooted && n <= ALL_ROOTS_RANKS_MAX => (0..n).collect(),
            None => vec![0],
        };
        let verdict = all_roots(source, schedule, n, &roots, params, options);
        Count { ranks: n, roots, verdict }
    });
    Ok(Sweep { schedule, counts: counts.collect() })
}

fn all_roots(
    source: &Source,
    schedule: usize,
    ranks: u32,
    roots: &[u32],
    params: &[(String, i64)],
    options: &Options,
) -> Verdict {
    let mut figures: Option<Figures> = None;
    for &root in roots {
        let instance = Instance { ranks, root, params: params.to_vec() };
        match coll::prove(source, schedule, &instance, options) {
            Outcome::DoesNotApply { reason, .. } => return Verdict::DoesNotApply { reason },
            Outcome::Wrong(diagnostics) => return Verdict::Wrong { root, diagnostics },
            Outcome::Right(proved) => match &mut figures {
                None => figures = Some(first(*proved)),
                Some(figures) => figures.widen(&proved),
            },
        }
    }
    Verdict::Right(figures.expect("there is at least one root"))
}

fn first(proved: Proved) -> Figures {
    let Proved { properties, min_slots, warnings, plan, .. } = proved;
    let accumulate = plan.accumulate.filter(|_| plan.reduces);
    Figures { properties, min_slots, accumulate, wire: plan.wire, warnings }
}

impl Figures {
    /// Takes the worse of both.
    fn widen(&mut self, other: &Proved) {
        let (mine, theirs) = (&mut self.properties, &other.properties);
        mine.steps = mine.steps.max(theirs.steps);
        mine.sent_max = mine.sent_max.max(theirs.sent_max);
        mine.received_max = mine.received_max.max(theirs.received_max);
        mine.scratch_max = mine.scratch_max.max(theirs.scratch_max);
        mine.ordered &= theirs.ordered;
        mine.same_reduction_tree &= theirs.same_reduction_tree;
        mine.equal_blocks_only = mine.equal_blocks_only.or(theirs.equal_blocks_only);
        self.min_slots = self.min_slots.max(other.min_slots);
    }
}
