//! What several pairs of ranks get that send at once: whether those of a machine, or of two machines, share something.
//!
//! In each machine the first rank is paired with the second, the third with the fourth and so on; of two machines the first
//! rank of one with the first of the other. All pairs of such a set start together, and each counts what it got. If all get
//! less than [`SHARED_SHARE`] of what each got alone, they share a link, a bus or cores.

use super::measure::trips;
use coll::{CommError, Communicator};
use serde::{Deserialize, Serialize};

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
    /// What all got, in bytes a microsecond.
    pub(super) bytes_per_us: f64,
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
                sets.push(Together { machines: [a, b], pairs, bytes_per_us: 0.0 });
            }
        }
    }
    sets
}

/// Measures all sets; every rank takes part. Rank 0 has the sums.
pub(super) fn measure(
    comm: &mut Communicator,
    machines: &[usize],
    bytes: usize,
) -> Result<Vec<Together>, CommError> {
    let (rank, world) = (comm.rank(), comm.world() as usize);
    let mut sets = sets(machines);
    let mut mine = vec![0.0f64; sets.len()];
    let mut data = vec![1u8; bytes];
    for (set, got) in sets.iter().zip(&mut mine) {
        let pair = set.pairs.iter().find(|(a, b)| rank == *a || rank == *b);
        let mut times = Vec::new();
        // The first round makes connections.
        for round in 0..=ROUNDS {
            comm.barrier()?;
            let Some(&(a, b)) = pair else { continue };
            let us = trips(comm, rank == a, a + b - rank, &mut data, 1)?;
            if round > 0 {
                times.push(us);
            }
        }
        if pair.is_some_and(|&(a, _)| rank == a) {
            times.sort_by(f64::total_cmp);
            *got = 2.0 * bytes as f64 / times[times.len() / 2].max(1e-3);
        }
    }
    comm.barrier()?;
    if sets.is_empty() {
        return Ok(sets);
    }
    let mut all = vec![0.0; mine.len() * world];
    comm.all_gather(&mine, &mut all)?;
    for (at, set) in sets.iter_mut().enumerate() {
        set.bytes_per_us = all.iter().skip(at).step_by(mine.len()).sum();
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
