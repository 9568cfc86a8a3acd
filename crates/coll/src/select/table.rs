//! Which candidate is taken at which size.
//!
//! Sizes fall into intervals, two for each doubling: `2^k..1.5·2^k` and `1.5·2^k..2^(k+1)`. An interval is judged at its
//! least size, once, when it is first asked for; after that an answer is two shifts and a load.

use super::family::{Cost, Known, Member, Runs};
use super::question::Question;
use coll_cost::Constants;
use std::sync::{Arc, OnceLock};

/// Answers for one kind of question, whatever the size.
pub struct Table {
    pub(crate) members: Arc<Vec<Member>>,
    /// For each member, why it is no candidate here.
    pub(crate) barred: Vec<Option<String>>,
    constants: Constants,
    question: Question,
    taken: Box<[OnceLock<u32>]>,
    /// The one for all sizes, where bits must not depend on them.
    fixed: OnceLock<u32>,
}

/// Intervals of 64-bit sizes.
const INTERVALS: usize = 129;

impl Table {
    pub(crate) fn new(
        members: Arc<Vec<Member>>,
        barred: Vec<Option<String>>,
        constants: Constants,
        question: Question,
    ) -> Table {
        let taken = (0..INTERVALS).map(|_| OnceLock::new()).collect();
        Table { members, barred, constants, question, taken, fixed: OnceLock::new() }
    }

    /// The candidate taken for a size in bytes. At least one can be taken.
    pub fn pick(&self, bytes: u64) -> &super::Candidate {
        &self.members[self.index(bytes)].candidate
    }

    pub(crate) fn index(&self, bytes: u64) -> usize {
        let taken = match self.question.deterministic {
            true => *self.fixed.get_or_init(|| self.steadiest()),
            false => *self.taken[interval(bytes)].get_or_init(|| self.cheapest(least(interval(bytes)))),
        };
        taken as usize
    }

    /// What is predicted for a member that can run.
    pub(crate) fn predict_us(&self, member: usize, bytes: u64) -> Option<f64> {
        let Runs { cost, .. } = self.runs(member)?;
        Some(self.predict(cost, bytes))
    }

    fn predict(&self, cost: &Cost, bytes: u64) -> f64 {
        cost.predict_us(&self.constants, self.question.layout, self.question.work(bytes))
    }

    fn runs(&self, member: usize) -> Option<&Runs> {
        match &self.members[member].known {
            Known::Runs(runs) => Some(runs),
            Known::Not(_) => None,
        }
    }

    fn able(&self) -> impl Iterator<Item = (u32, &Cost)> {
        let able = (0..self.members.len()).filter(|&at| self.barred[at].is_none());
        able.filter_map(|at| Some((at as u32, &self.runs(at)?.cost)))
    }

    /// The first of the cheapest.
    fn cheapest(&self, bytes: u64) -> u32 {
        let mut best = (f64::INFINITY, 0);
        for (at, cost) in self.able() {
            let us = self.predict(cost, bytes);
            if us < best.0 {
                best = (us, at);
            }
        }
        best.1
    }

    /// The one that is never far from the cheapest: the least of the largest ratios, from 8 B to 64 MiB.
    fn steadiest(&self) -> u32 {
        let able: Vec<(u32, &Cost)> = self.able().collect();
        let mut worst = vec![1.0f64; able.len()];
        for power in (3..=26).step_by(2) {
            let times: Vec<f64> = able.iter().map(|(_, cost)| self.predict(cost, 1 << power)).collect();
            let least = times.iter().copied().fold(f64::INFINITY, f64::min);
            worst.iter_mut().zip(&times).for_each(|(worst, us)| *worst = worst.max(us / least));
        }
        let mut best = (f64::INFINITY, 0);
        for (&(at, _), &ratio) in able.iter().zip(&worst) {
            if ratio < best.0 {
                best = (ratio, at);
            }
        }
        best.1
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
fn interval(bytes: u64) -> usize {
    if bytes == 0 {
        return 0;
    }
    let power = bytes.ilog2() as usize;
    let upper = power > 0 && bytes >> (power - 1) == 3;
    1 + 2 * power + usize::from(upper)
}

/// The least size of an interval.
fn least(interval: usize) -> u64 {
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
