//! When a rank's operations began and ended, by a clock that all ranks of a machine have in common.

use coll_exec::Bound;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// The moments of one run on one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// By operation, as the rank's part of the plan numbers them: begin and end, in nanoseconds since 1970. Those of ranks on
    /// other machines are as far off as the machines' clocks are.
    pub ops_ns: Vec<(u64, u64)>,
}

impl Timeline {
    /// Of the last run of a binding that keeps them.
    pub(super) fn of(bound: &Bound) -> Option<Timeline> {
        bound.times_ns().map(|times| Timeline { ops_ns: times.to_vec() })
    }

    /// All ranks' moments in microseconds since the first of them, by rank and operation; nothing if a rank has none.
    pub fn together_us(timelines: &[Option<&Timeline>]) -> Option<Vec<Vec<(f64, f64)>>> {
        let all: Vec<&Timeline> = timelines.iter().copied().collect::<Option<_>>()?;
        let first = all.iter().flat_map(|one| &one.ops_ns).map(|&(begin, _)| begin).min().unwrap_or(0);
        let us = |ns: u64| ns.saturating_sub(first) as f64 / 1e3;
        let of = |one: &&Timeline| one.ops_ns.iter().map(|&(begin, end)| (us(begin), us(end))).collect();
        Some(all.iter().map(of).collect())
    }
}

/// Nanoseconds since 1970: where the system's clock was when this was first asked, and what has passed since by one that nobody
/// sets.
pub(super) fn now_ns() -> u64 {
    static START: OnceLock<(Instant, u64)> = OnceLock::new();
    let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let start = || {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), ns(since_1970))
    };
    let &(start, since_1970_ns) = START.get_or_init(start);
    since_1970_ns.saturating_add(ns(start.elapsed())).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_all_ranks_count_from_the_first() {
        let one = Timeline { ops_ns: vec![(5_000, 7_500), (7_500, 9_000)] };
        let other = Timeline { ops_ns: vec![(4_000, 9_250)] };
        let together = Timeline::together_us(&[Some(&one), Some(&other)]);
        assert_eq!(together, Some(vec![vec![(1.0, 3.5), (3.5, 5.0)], vec![(0.0, 5.25)]]));
        assert_eq!(Timeline::together_us(&[Some(&one), None]), None);
        assert_eq!(Timeline::together_us(&[]), Some(Vec::new()));
        let (before, after) = (now_ns(), now_ns());
        assert!(before > 0 && before <= after);
    }
}
