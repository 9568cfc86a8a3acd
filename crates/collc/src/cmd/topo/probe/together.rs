//! What several pairs of ranks get that send at once: whether those of a machine, or of two machines, share something.
//!
//! In each machine the first rank is paired with the second, the third with the fourth and so on; of two machines the first
//! rank of one with the first of the other. All pairs of such a set start together, one way and then the other, and each counts
//! what it got. If all get less than [`SHARED_SHARE`] of what each got alone, they share a link, a bus or cores.

use super::measure::{one_way, without_latency};
use coll::{CommError, Communicator};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rounds of a set; their median counts, for a pair that is early or late has more than its share.
const ROUNDS: usize = 5;

/// Pairs that get less than this share of what they get alone are not by themselves.
pub(super) const SHARED_SHARE: f64 = 0.75;

/// A set of pairs that send at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Together {
    /// The machines of the pairs' ranks, by number: twice the same within one.
    pub(super) machines: [usize; 2],
    pub(super) pairs: Vec<(u32, u32)>,
    /// What all got, in bytes a microsecond: from the first ranks to the second, and back.
    pub(super) bytes_per_us: [f64; 2],
}

/// The sets of a job: `machines` has the machine of each rank. A single pair has nobody to share with.
pub(super) fn sets(machines: &[usize]) -> Vec<Together> {
    let count = machines.iter().max().map_or(0, |last| last + 1);
    let members = |machine: usize| -> Vec<u32> {
        (0..).zip(machines).filter(|(_, of)| **of == machine).map(|(rank, _)| rank).collect()
    };
    let mut sets = Vec::new();
    for a in 0..count {
        for b in a..count {
            let pairs: Vec<(u32, u32)> = match a == b {
                true => members(a).chunks_exact(2).map(|pair| (pair[0], pair[1])).collect(),
                false => members(a).into_iter().zip(members(b)).collect(),
            };
            if pairs.len() > 1 {
                sets.push(Together { machines: [a, b], pairs, bytes_per_us: [0.0; 2] });
            }
        }
    }
    sets
}

/// Measures all sets; every rank takes part. `latency_us` has what this rank measured of pairs of which it is the first. Rank 0 has
/// the sums.
pub(super) fn measure(
    comm: &mut Communicator,
    machines: &[usize],
    bytes: usize,
    latency_us: &BTreeMap<(u32, u32), f64>,
) -> Result<Vec<Together>, CommError> {
    let (rank, world) = (comm.rank(), comm.world() as usize);
    let mut sets = sets(machines);
    let mut mine = Vec::new();
    let (mut long, mut short) = (vec![1u8; bytes], [0u8; 8]);
    for set in &sets {
        let pair = set.pairs.iter().copied().find(|&(a, b)| rank == a || rank == b);
        for back in [false, true] {
            let mut times = Vec::new();
            // The first round makes connections.
            for round in 0..=ROUNDS {
                comm.barrier()?;
                let Some((a, b)) = pair else { continue };
                let us = one_way(comm, rank == a, a + b - rank, (&mut long, &mut short), back)?;
                if round > 0 {
                    times.push(us);
                }
            }
            times.sort_by(f64::total_cmp);
            let first = pair.filter(|&(a, _)| rank == a);
            mine.push(first.map_or(0.0, |pair| {
                let alone_us = latency_us.get(&pair).copied().unwrap_or(0.0);
                bytes as f64 / without_latency(times[times.len() / 2], alone_us).max(1e-3)
            }));
        }
    }
    comm.barrier()?;
    if sets.is_empty() {
        return Ok(sets);
    }
    let mut all = vec![0.0; mine.len() * world];
    comm.all_gather(&mine, &mut all)?;
    let sum = |at: usize| all.iter().skip(at).step_by(mine.len()).sum();
    for (at, set) in sets.iter_mut().enumerate() {
        set.bytes_per_us = [sum(2 * at), sum(2 * at + 1)];
    }
    Ok(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_disjoint_pairs_of_one_machine_or_two() {
        let found = sets(&[0, 0, 0, 0, 0, 1, 1]);
        let shown: Vec<_> = found.into_iter().map(|set| (set.machines, set.pairs)).collect();
        assert_eq!(shown, [([0, 0], vec![(0, 1), (2, 3)]), ([0, 1], vec![(0, 5), (1, 6)])]);
        assert!(sets(&[0, 0]).is_empty() && sets(&[0, 1]).is_empty() && sets(&[]).is_empty());
    }
}
