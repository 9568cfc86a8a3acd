//! Which candidate is taken at which size.
//!
//! Sizes fall into intervals, two for each doubling: `2^k..1.5·2^k` and `1.5·2^k..2^(k+1)`. An interval is judged at its
//! least size, once, when it is first asked for; after that an answer is two shifts and a load.
//!
//! Where the answer is known beforehand, its candidate is the only one to be compiled. To judge an interval else, candidates are looked
//! at in the order of what each takes at least, and compiled until the best is no worse than what the next takes at least, by less than predictions are good for.
//! That gives what comparing all of them would, and compiles a few; the one of the next smaller sizes comes first, as it has
//! been compiled, and soon tells what is slower. The best is proved; if its proof fails it is dropped, which is a fault of
//! the library and not of the caller, and the next is taken.

use super::answers::{self, Answers};
use super::family::{Family, Runs};
use super::question::Question;
use coll_cost::Constants;
use std::sync::{Arc, OnceLock};

/// Answers for one kind of question, whatever the size.
pub struct Table {
    pub(crate) family: Arc<Family>,
    /// For each member, why it is not to be looked at.
    excluded: Vec<Option<String>>,
    /// For each member, why it is no candidate here.
    bars: Vec<OnceLock<Option<String>>>,
    constants: Constants,
    question: Question,
    looks: Looks,
    /// Answers that came with the constants.
    answers: Option<Arc<Answers>>,
    taken: Box<[OnceLock<u32>]>,
    /// The one for all sizes, where bits must not depend on them.
    fixed: OnceLock<u32>,
}

/// How many candidates are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looks {
    /// The one that is known to be best, where one is, and else those that may turn out best.
    AsNeeded,
    /// Those that may turn out best, whatever is known.
    Unanswered,
    /// All, each compiled and proved.
    AtAll,
}

/// Intervals of 64-bit sizes.
const INTERVALS: usize = 129;

/// What is predicted to take up to so much longer is as good: predictions are no better than that. Then the one with fewer messages
/// one after the other is taken, which depends less on when ranks have their turns.
pub(super) const AS_GOOD: f64 = 1.02;

/// Sums that are grouped otherwise may differ by so much.
const ROUNDING: f64 = 1e-9;

impl Table {
    /// A table of members that are not excluded. `None` if none of them can be taken.
    pub(crate) fn new(
        family: Arc<Family>,
        excluded: Vec<Option<String>>,
        constants: Constants,
        question: Question,
        looks: Looks,
        answers: Option<Arc<Answers>>,
    ) -> Option<Table> {
        let taken = (0..INTERVALS).map(|_| OnceLock::new()).collect();
        let bars = excluded.iter().map(|_| OnceLock::new()).collect();
        let fixed = OnceLock::new();
        let table = Table { family, excluded, bars, constants, question, looks, answers, taken, fixed };
        table.find(table.question.bytes).map(|_| table)
    }

    /// The candidate taken for a size in bytes.
    pub fn pick(&self, bytes: u64) -> &super::Candidate {
        &self.family.members[self.index(bytes)].candidate
    }

    pub(crate) fn index(&self, bytes: u64) -> usize {
        // What can be taken at one size can be at all; were all others' proofs to fail, the first that was found is left.
        let found = self.find(bytes).or_else(|| self.find(self.question.bytes));
        found.unwrap_or_default() as usize
    }

    fn find(&self, bytes: u64) -> Option<u32> {
        let (known, find): (&OnceLock<u32>, &dyn Fn() -> Option<u32>) = match self.question.deterministic {
            true => {
                (&self.fixed, &|| self.known(answers::steadiest(&self.question)).or_else(|| self.steadiest()))
            }
            false => (&self.taken[interval(bytes)], &|| {
                let bytes = least(interval(bytes));
                let known =
                    answers::cheapest(self.answers.as_deref(), &self.question, &self.constants, bytes);
                self.known(known).or_else(|| self.cheapest(bytes))
            }),
        };
        if let Some(taken) = known.get() {
            return Some(*taken);
        }
        let found = find()?;
        Some(*known.get_or_init(|| found))
    }

    /// What is predicted for a member that can run.
    pub(crate) fn predict_us(&self, member: usize, bytes: u64) -> Option<f64> {
        let Question { layout, .. } = self.question;
        self.family.predict_us(member, &self.constants, layout, self.question.work(bytes))
    }

    /// Why a member cannot serve, if so. A proof is asked for only where the call needs what only that can tell.
    pub(crate) fn bar(&self, member: usize) -> Option<&str> {
        let bar = self.bars[member].get_or_init(|| self.question.bar(&self.family, member));
        let bar = bar.as_deref().or_else(|| self.family.runs(member).ok().and_then(Runs::refuted));
        bar.or(self.excluded[member].as_deref())
    }

    /// Members that may serve, as far as is known without compiling any, with what each takes at least.
    fn bounds(&self, bytes: u64) -> Vec<(f64, u32)> {
        let Question { layout, .. } = self.question;
        let work = self.question.work(bytes);
        let open = (0..self.excluded.len()).filter(|&at| self.excluded[at].is_none());
        let bound = |at| Some((self.family.bound_us(at, &self.constants, layout, work)?, at as u32));
        open.filter_map(bound).collect()
    }

    /// An answer that is shipped, if it may be taken, and is proved.
    fn known(&self, answer: Option<u32>) -> Option<u32> {
        let insisted = self.excluded.iter().any(Option::is_some);
        let open = self.looks == Looks::AsNeeded && !insisted && self.family.ground.is_none();
        let at = answer.filter(|&at| open && (at as usize) < self.family.members.len())?;
        (self.family.proved(at as usize).is_ok() && self.bar(at as usize).is_none()).then_some(at)
    }

    /// The best that is proved.
    fn cheapest(&self, bytes: u64) -> Option<u32> {
        let mut open = self.bounds(bytes);
        if self.looks == Looks::AtAll {
            open.iter_mut().for_each(|(bound, _)| *bound = 0.0);
        }
        open.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let before = interval(bytes).checked_sub(1).and_then(|before| self.taken[before].get());
        if let Some(at) = before.and_then(|before| open.iter().position(|(_, at)| at == before)) {
            open[..=at].rotate_right(1);
        }
        loop {
            let best = self.cheapest_of(&open, bytes)?;
            let Err(reason) = self.family.proved(best as usize) else { return Some(best) };
            log::error!("{} is dropped: it {reason}", self.family.members[best as usize].candidate);
        }
    }

    /// The one with the fewest messages on its longest chain among those that are as good as the cheapest.
    fn cheapest_of(&self, open: &[(f64, u32)], bytes: u64) -> Option<u32> {
        let mut least = f64::INFINITY;
        let mut near: Vec<(f64, u32)> = Vec::new();
        for &(bound, at) in open {
            let limit_us = least * AS_GOOD;
            if bound * (1.0 - ROUNDING) > limit_us {
                break;
            }
            if self.looks == Looks::AtAll && self.family.proved(at as usize).is_err() {
                continue;
            }
            let (layout, work) = (self.question.layout, self.question.work(bytes));
            let us = self.family.predict_within_us(at as usize, &self.constants, layout, work, limit_us);
            let Some(us) = us else { continue };
            if self.bar(at as usize).is_none() {
                least = least.min(us);
                near.push((us, at));
            }
        }
        near.retain(|&(us, _)| us <= least * AS_GOOD);
        let order = |&(us, at): &(f64, u32)| (self.family.chain(at as usize), us.to_bits(), at);
        near.into_iter().min_by_key(order).map(|(_, at)| at)
    }

    /// The one that is never far from the cheapest: the least of the largest ratios, from 8 B to 64 MiB. It is weighed where
    /// every rank has a core of one machine, by constants that are the same everywhere, so that what is taken, and with it
    /// every bit, depends on the number of ranks alone: not on how they reach each other, nor on where they are.
    fn steadiest(&self) -> Option<u32> {
        let question = self.question.steady();
        let open = self.bounds(0).into_iter().map(|(_, at)| at);
        let able =
            open.filter(|&at| self.bar(at as usize).is_none() && self.family.proved(at as usize).is_ok());
        let able: Vec<u32> = able.collect();
        let constants = question.steady_constants();
        let mut worst = vec![1.0f64; able.len()];
        for power in (3..=26).step_by(2) {
            let work = question.work(1 << power);
            let predict = |&at: &u32| self.family.predict_us(at as usize, &constants, question.layout, work);
            let times: Vec<f64> = able.iter().map(|at| predict(at).unwrap_or(f64::INFINITY)).collect();
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            worst.iter_mut().zip(&times).for_each(|(worst, us)| *worst = worst.max(us / least));
        }
        let mut best: Option<(f64, u32)> = None;
        for (&at, &ratio) in able.iter().zip(&worst) {
            if best.is_none_or(|(known, _)| ratio < known) {
                best = Some((ratio, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// Sizes at which another candidate is taken, from `low` to `high` bytes: the least size of each range with its
    /// candidate.
    pub fn ranges(&self, low: u64, high: u64) -> Vec<(u64, &super::Candidate)> {
        let mut ranges: Vec<(u64, &super::Candidate)> = Vec::new();
        for at in interval(low)..=interval(high) {
            let from = least(at).max(low);
            let candidate = self.pick(from);
            if ranges.last().is_none_or(|&(_, last)| last != candidate) {
                ranges.push((from, candidate));
            }
        }
        ranges
    }
}

/// The interval of a size; 0 bytes have one of their own.
pub(super) fn interval(bytes: u64) -> usize {
    if bytes == 0 {
        return 0;
    }
    let power = bytes.ilog2() as usize;
    let upper = power > 0 && bytes >> (power - 1) == 3;
    1 + 2 * power + usize::from(upper)
}

/// The least size of an interval.
pub(super) fn least(interval: usize) -> u64 {
    match interval {
        0 => 0,
        _ => {
            let (power, upper) = ((interval - 1) / 2, (interval - 1) % 2);
            (1 << power) + (upper as u64) * ((1u64 << power) / 2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coll_cost::Tuning;

    #[test]
    fn what_fails_its_proof_is_dropped_and_the_next_taken() {
        let question = Question::new("allreduce", 4, 1 << 16);
        let constants = Tuning::shipped().of(question.transport).cloned().expect("they are shipped");
        let mut refuted: Vec<usize> = Vec::new();
        let mut times_us = Vec::new();
        for _ in 0..4 {
            let family = Arc::new(Family::new("allreduce", 4, 0, question.layout));
            refuted.iter().for_each(|&at| family.refute(at));
            let excluded = family.members.iter().map(|_| None).collect();
            let table =
                Table::new(family, excluded, constants.clone(), question.clone(), Looks::AsNeeded, None);
            let table = table.expect("others serve");
            let taken = table.index(question.bytes);
            assert!(!refuted.contains(&taken), "{taken} after {refuted:?}");
            assert!(refuted.iter().all(|&at| table.bar(at).is_some_and(|bar| bar.starts_with("is wrong"))));
            times_us.extend(table.predict_us(taken, question.bytes));
            refuted.push(taken);
        }
        let longer = times_us.is_sorted_by(|before, after| before <= &(after * AS_GOOD));
        assert!(longer, "{times_us:?}");
    }

    #[test]
    fn intervals_cover_all_sizes_in_order() {
        assert!(interval(u64::MAX) < INTERVALS);
        for bytes in (0..5000).chain([1 << 40, (1 << 40) + (1 << 39), u64::MAX]) {
            let at = interval(bytes);
            assert!(least(at) <= bytes, "{bytes}");
            let next = (at + 1..INTERVALS).map(least).find(|&next| next > least(at));
            assert!(next.is_none_or(|next| bytes < next), "{bytes}");
        }
        assert_eq!([interval(1 << 20), interval((3 << 19) - 1), interval(3 << 19)], [41, 41, 42]);
    }
}
