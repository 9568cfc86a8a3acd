//! What all ranks found together.

use crate::trial::{OperatorCode, RankReport};
use std::collections::BTreeMap;

/// Figures and verdict over all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Median time of an iteration, which is the largest over the ranks, in microseconds.
    pub median_us: f64,
    /// The least.
    pub min_us: f64,
    /// 99 of 100 are not above it.
    pub p99_us: f64,
    /// What ran where the operator was applied: of several ranks, the first that interpreted it.
    pub operator_code: OperatorCode,
    /// Elements that are wrong, over all ranks.
    pub wrong: u64,
    /// The first of them, in words.
    pub first_wrong: Option<String>,
    /// Blocks that ought to be bit-equal on several ranks, and are not.
    pub differing_blocks: u64,
}

impl Summary {
    /// Puts the reports of all ranks together.
    pub fn of(reports: &[RankReport]) -> Summary {
        let iterations = reports.iter().map(|report| report.times_us.len()).min().unwrap_or(0);
        let slowest = |i: usize| reports.iter().map(|report| report.times_us[i]).fold(0.0, f64::max);
        let mut times: Vec<f64> = (0..iterations).map(slowest).collect();
        times.sort_by(f64::total_cmp);
        Summary {
            median_us: median(&times),
            min_us: quantile(&times, 0.0),
            p99_us: quantile(&times, 0.99),
            operator_code: operator_code(reports),
            wrong: reports.iter().map(|report| report.wrong).sum(),
            first_wrong: reports.iter().find_map(|report| report.first_wrong.clone()),
            differing_blocks: differing(reports),
        }
    }
}

fn operator_code(reports: &[RankReport]) -> OperatorCode {
    let mut codes = reports.iter().map(|report| &report.operator_code);
    let interpreted = codes.clone().find(|code| matches!(code, OperatorCode::Interpreted { .. }));
    interpreted.or(codes.next()).cloned().unwrap_or(OperatorCode::Builtin)
}

/// The value in the middle; of an even number, the mean of the middle two.
fn median(sorted: &[f64]) -> f64 {
    let (below, above) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(below), sorted.get(above)) {
        (Some(below), Some(above)) => (below + above) / 2.0,
        _ => 0.0,
    }
}

/// The value that a share of the sorted values does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or(0.0)
}

fn differing(reports: &[RankReport]) -> u64 {
    let mut first: BTreeMap<u64, u64> = BTreeMap::new();
    let mut differing = 0;
    for &(key, digest) in reports.iter().flat_map(|report| &report.digests) {
        if *first.entry(key).or_insert(digest) != digest {
            differing += 1;
        }
    }
    differing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(rank: u32, times_us: &[f64], digest: u64) -> RankReport {
        RankReport {
            rank,
            times_us: times_us.to_vec(),
            operator_code: OperatorCode::Native,
            wrong: 0,
            first_wrong: None,
            digests: vec![(7, digest)],
            timeline: None,
        }
    }

    #[test]
    fn an_iteration_takes_as_long_as_its_slowest_rank() {
        let summary = Summary::of(&[report(0, &[1.0, 5.0, 3.0], 1), report(1, &[2.0, 4.0, 9.0], 1)]);
        assert_eq!((summary.min_us, summary.median_us, summary.p99_us), (2.0, 5.0, 9.0));
        assert_eq!(summary.differing_blocks, 0);
    }

    #[test]
    fn one_rank_that_interprets_is_told() {
        let (one, mut two) = (report(0, &[], 1), report(1, &[], 1));
        assert_eq!(Summary::of(&[one.clone(), two.clone()]).operator_code, OperatorCode::Native);
        two.operator_code = OperatorCode::Interpreted { reason: "no memory".into() };
        assert_eq!(Summary::of(&[one, two.clone()]).operator_code, two.operator_code);
    }

    #[test]
    fn the_median_of_an_even_number_is_between_the_middle_two() {
        let of = |times: &[f64]| Summary::of(&[report(0, times, 1)]).median_us;
        assert_eq!(of(&[4.0, 2.0]), 3.0);
        assert_eq!(of(&[9.0, 1.0, 4.0, 2.0]), 3.0);
        assert_eq!((of(&[7.0]), of(&[])), (7.0, 0.0));
    }

    #[test]
    fn ranks_that_differ_in_bits_are_seen() {
        assert_eq!(Summary::of(&[report(0, &[], 1), report(1, &[], 2)]).differing_blocks, 1);
    }
}
