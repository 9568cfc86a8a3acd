//! Lower bounds that follow from a contract alone, whatever the schedule.
//!
//! They hold for one position of the blocks at a time, and so for all: a message of one element is useful to a value
//! only if all that was reduced into it belongs to that value, since a reduction cannot be taken apart again. Hence:
//!
//! - A value of leaves on ranks S that is wanted on ranks W is complete somewhere first, on rank f. Until then every
//!   other rank of S has sent, and afterwards every other rank of W receives it: at least
//!   `|S| - [f in S] + |W| - [f in W]` messages, whatever f.
//! - Values that share no leaf share no message, so what they need adds up. Values that are tied together by common
//!   leaves, directly or through others, are a **group**. A group needs as much as the worst of its values, as much as
//!   some values of it that share no leaf need together, and one message for each rank that wants something from
//!   others.
//! - The busiest rank does at least the average, and each rank at least what it alone has or wants: a rank sends one
//!   element for each of some values without a common leaf that others want from it, and receives likewise.
//!
//! (The classic bounds of Chan, Heimlich, Purkayastha and van de Geijn, *Collective communication: theory, practice,
//! and experience*, 2007, are special cases.) All blocks are taken to be of one size.

use crate::{Contract, Leaf};
use coll_base::Fraction;

/// The least that any schedule of a contract must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes that the busiest rank must send, as a fraction of the sized buffer.
    pub sent_max: Fraction,
    /// Bytes that the busiest rank must receive, as a fraction of the sized buffer.
    pub received_max: Fraction,
    /// Rounds needed when a rank may talk to one peer at a time.
    pub rounds_one_port: u32,
}

/// Works the bounds out. The contract is whole, not a slice.
pub fn bounds(contract: &Contract) -> Bounds {
    let wants = Wants::new(contract);
    let groups = Groups::new(contract, &wants);
    let total: u64 = groups.messages.iter().sum();
    let sent = sends(contract, &wants, &groups).into_iter().max().unwrap_or(0);
    let received = groups.receives.iter().copied().max().unwrap_or(0);
    let blocks = contract.buffers.first().map_or(0, |buffer| buffer.blocks) as u64;
    let at_least = |most: u64| match (blocks, contract.ranks as u64) {
        (0, _) | (_, 0) => Fraction::ZERO,
        (blocks, ranks) => Fraction::new(most, blocks).max(Fraction::new(total, blocks * ranks)),
    };
    Bounds {
        sent_max: at_least(sent),
        received_max: at_least(received),
        rounds_one_port: rounds_one_port(contract),
    }
}

/// For each value the ranks that want it, ascending.
struct Wants {
    starts: Vec<usize>,
    ranks: Vec<u32>,
}

impl Wants {
    fn new(contract: &Contract) -> Wants {
        let mut pairs: Vec<(u32, u32)> = contract.ensures.iter().map(|e| (e.value, e.rank)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let mut starts = vec![0; contract.values.len() + 1];
        pairs.iter().for_each(|&(value, _)| starts[value as usize + 1] += 1);
        for value in 1..starts.len() {
            starts[value] += starts[value - 1];
        }
        Wants { starts, ranks: pairs.into_iter().map(|(_, rank)| rank).collect() }
    }

    fn of(&self, value: usize) -> &[u32] {
        &self.ranks[self.starts[value]..self.starts[value + 1]]
    }

    /// Whether some rank but `own` wants a value.
    fn elsewhere(&self, value: usize, own: u32) -> bool {
        self.of(value).iter().any(|&rank| rank != own)
    }
}

/// Values by group, and what each group needs.
struct Groups {
    /// The group of each value.
    of: Vec<u32>,
    /// True for values of which no two share a leaf, as many as come of taking small ones first.
    apart: Vec<bool>,
    /// Messages that each group needs.
    messages: Vec<u64>,
    /// Elements that each rank must receive, in all groups together.
    receives: Vec<u64>,
}

impl Groups {
    fn new(contract: &Contract, wants: &Wants) -> Groups {
        let of = group_of(contract);
        let count = of.iter().max().map_or(0, |&last| last as usize + 1);
        let apart = apart(contract);
        let mut worst = vec![0; count];
        let mut together = vec![0; count];
        let mut stamps = vec![u32::MAX; contract.ranks as usize];
        for (value, &group) in of.iter().enumerate() {
            let needs = messages(contract, wants, value, &mut stamps);
            let (worst, together) = (&mut worst[group as usize], &mut together[group as usize]);
            *worst = needs.max(*worst);
            *together += if apart[value] { needs } else { 0 };
        }
        let mut groups = Groups { of, apart, messages: Vec::new(), receives: Vec::new() };
        let (receives, receivers) = groups.receives(contract, count);
        groups.receives = receives;
        let each = worst.into_iter().zip(together).zip(receivers);
        groups.messages =
            each.map(|((worst, together), receivers)| worst.max(together).max(receivers)).collect();
        groups
    }

    /// What each rank must receive, and how many ranks of each group must receive anything.
    fn receives(&self, contract: &Contract, groups: usize) -> (Vec<u64>, Vec<u64>) {
        let mut receivers = vec![0u64; groups];
        let mut tallies = Tallies::new(groups);
        let mut seen = vec![u32::MAX; contract.values.len()];
        let each = (0..contract.ranks).map(|rank| {
            let mut received = 0;
            for ensure in contract.ensures_of(rank) {
                let value = ensure.value as usize;
                let is_new = std::mem::replace(&mut seen[value], rank) != rank;
                if !is_new || contract.values[value].leaves().iter().all(|leaf| leaf.rank == rank) {
                    continue;
                }
                let group = self.of[value] as usize;
                receivers[group] += u64::from(tallies.is_first(rank, group));
                received += tallies.add(rank, group, self.apart[value]);
            }
            received
        });
        let receives = each.collect();
        (receives, receivers)
    }
}

/// What each rank must send.
fn sends(contract: &Contract, wants: &Wants, groups: &Groups) -> Vec<u64> {
    let mut by_group: Vec<usize> = (0..contract.values.len()).collect();
    by_group.sort_by_key(|&value| groups.of[value]);
    let mut sent = vec![0; contract.ranks as usize];
    let mut tallies = Tallies::new(contract.ranks as usize);
    let mut seen = vec![usize::MAX; contract.ranks as usize];
    for value in by_group {
        for leaf in contract.values[value].leaves() {
            let rank = leaf.rank as usize;
            let is_new = std::mem::replace(&mut seen[rank], value) != value;
            if is_new && wants.elsewhere(value, leaf.rank) {
                sent[rank] += tallies.add(groups.of[value], rank, groups.apart[value]);
            }
        }
    }
    sent
}

/// Counts, within one key at a time, for each of several places: one if there is anything, or else as many values as
/// share no leaf.
struct Tallies(Vec<(u32, bool)>);

impl Tallies {
    fn new(places: usize) -> Tallies {
        Tallies(vec![(u32::MAX, false); places])
    }

    fn is_first(&self, key: u32, place: usize) -> bool {
        self.0[place].0 != key
    }

    /// By how much the count of `place` grows. `free` if the one counted so far, if any, is not among those that share
    /// no leaf, and may be the same message.
    fn add(&mut self, key: u32, place: usize, apart: bool) -> u64 {
        let first = self.is_first(key, place);
        let (_, free) = self.0[place];
        match (first, apart) {
            (true, _) => {
                self.0[place] = (key, !apart);
                1
            }
            (false, true) if free => {
                self.0[place].1 = false;
                0
            }
            (false, true) => 1,
            (false, false) => 0,
        }
    }
}

/// The least number of messages that one value needs.
fn messages(contract: &Contract, wants: &Wants, value: usize, stamps: &mut [u32]) -> u64 {
    let mut sources = 0u64;
    for leaf in contract.values[value].leaves() {
        let is_new = std::mem::replace(&mut stamps[leaf.rank as usize], value as u32) != value as u32;
        sources += u64::from(is_new);
    }
    let wanting = wants.of(value);
    let meets = wanting.iter().any(|&rank| stamps[rank as usize] == value as u32);
    match wanting.len() as u64 {
        0 => 0,
        wanting => sources + wanting - 1 - u64::from(meets),
    }
}

/// Numbers the groups of values: those that share leaves, directly or through others.
fn group_of(contract: &Contract) -> Vec<u32> {
    let mut parents: Vec<u32> = (0..contract.values.len() as u32).collect();
    let mut owners = vec![u32::MAX; leaf_count(contract)];
    for (value, leaves) in contract.values.iter().enumerate() {
        for leaf in leaves.leaves() {
            let owner = &mut owners[leaf_index(contract, *leaf)];
            if *owner == u32::MAX {
                *owner = value as u32;
            } else {
                let (a, b) = (find(&mut parents, value as u32), find(&mut parents, *owner));
                parents[a.max(b) as usize] = a.min(b);
            }
        }
    }
    let mut names = vec![u32::MAX; parents.len()];
    let mut next = 0;
    let number = |value| {
        let root = find(&mut parents, value) as usize;
        if names[root] == u32::MAX {
            names[root] = next;
            next += 1;
        }
        names[root]
    };
    (0..contract.values.len() as u32).map(number).collect()
}

fn find(parents: &mut [u32], mut at: u32) -> u32 {
    while parents[at as usize] != at {
        parents[at as usize] = parents[parents[at as usize] as usize];
        at = parents[at as usize];
    }
    at
}

/// Values of which no two share a leaf, small ones first.
fn apart(contract: &Contract) -> Vec<bool> {
    let mut by_size: Vec<usize> = (0..contract.values.len()).collect();
    by_size.sort_by_key(|&value| contract.values[value].leaves().len());
    let mut taken = vec![false; leaf_count(contract)];
    let mut apart = vec![false; contract.values.len()];
    for value in by_size {
        let leaves = contract.values[value].leaves();
        apart[value] = leaves.iter().all(|leaf| !taken[leaf_index(contract, *leaf)]);
        if apart[value] {
            leaves.iter().for_each(|leaf| taken[leaf_index(contract, *leaf)] = true);
        }
    }
    apart
}

fn leaf_count(contract: &Contract) -> usize {
    contract.blocks_per_rank() as usize * contract.ranks as usize
}

fn leaf_index(contract: &Contract, leaf: Leaf) -> usize {
    let row = contract.first_block(leaf.buffer) + leaf.block;
    leaf.rank as usize * contract.blocks_per_rank() as usize + row as usize
}

/// In a round, who knows of a rank's value at most doubles, and so does the number of ranks that one knows of.
fn rounds_one_port(contract: &Contract) -> u32 {
    let ranks = contract.ranks as usize;
    let mut told = vec![1u64; ranks];
    let mut heard_max = 1u64;
    let mut seen = vec![u32::MAX; ranks];
    let mut after = contract.after.iter().peekable();
    for rank in 0..contract.ranks {
        let mut heard = 1u64;
        seen[rank as usize] = rank;
        let mut hear = |other: u32| {
            if std::mem::replace(&mut seen[other as usize], rank) != rank {
                heard += 1;
                told[other as usize] += 1;
            }
            heard == ranks as u64
        };
        let all = contract
            .ensures_of(rank)
            .iter()
            .any(|ensure| contract.values[ensure.value as usize].leaves().iter().any(|leaf| hear(leaf.rank)));
        while let Some(&(_, other)) = after.next_if(|pair| pair.0 == rank) {
            if !all {
                hear(other);
            }
        }
        heard_max = heard_max.max(heard);
    }
    let most = told.into_iter().max().unwrap_or(1).max(heard_max);
    most.next_power_of_two().trailing_zeros()
}
