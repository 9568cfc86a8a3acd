//! Sets of leaves. Nearly all are of leaves of one block on many ranks: these are kept as the block and a set of ranks,
//! and since blocks are mostly treated alike, they share their sets of ranks.

use super::sets::{SetId, Sets};

/// A set of leaves; equal sets are equal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct LeafSet {
    /// The row of numbers that all its leaves are of, or [`MIXED`].
    row: u32,
    /// Ranks, if the leaves are of one row, or else leaf numbers.
    set: SetId,
}

const MIXED: u32 = u32::MAX;

/// All sets of leaves of one proof. Leaf `number` is of row `number / ranks`, on rank `number % ranks`.
pub(super) struct LeafSets {
    ranks: u32,
    sets: Sets,
}

impl LeafSets {
    /// The set without leaves.
    pub(super) const EMPTY: LeafSet = LeafSet { row: MIXED, set: Sets::EMPTY };

    pub(super) fn new(ranks: u32) -> LeafSets {
        LeafSets { ranks, sets: Sets::new() }
    }

    /// `{number}`
    pub(super) fn single(&mut self, number: u32) -> LeafSet {
        LeafSet { row: number / self.ranks, set: self.sets.single(number % self.ranks) }
    }

    /// The set of these.
    pub(super) fn of(&mut self, numbers: &[u32]) -> LeafSet {
        let Some(&first) = numbers.first() else { return LeafSets::EMPTY };
        let row = first / self.ranks;
        if numbers.iter().all(|number| number / self.ranks == row) {
            let ranks: Vec<u32> = numbers.iter().map(|number| number % self.ranks).collect();
            LeafSet { row, set: self.sets.of(&ranks) }
        } else {
            LeafSet { row: MIXED, set: self.sets.of(numbers) }
        }
    }

    /// What is in either, and whether anything is in both.
    pub(super) fn union(&mut self, a: LeafSet, b: LeafSet) -> (LeafSet, bool) {
        if a == LeafSets::EMPTY || b == LeafSets::EMPTY {
            return (if a == LeafSets::EMPTY { b } else { a }, false);
        }
        let alike = a.row == b.row;
        let (x, y) = if alike { (a.set, b.set) } else { (self.mixed(a), self.mixed(b)) };
        let (set, meets) = self.sets.union(x, y);
        (LeafSet { row: if alike { a.row } else { MIXED }, set }, meets)
    }

    /// True if a leaf is in the set.
    pub(super) fn contains(&self, set: LeafSet, number: u32) -> bool {
        match set.row {
            MIXED => self.sets.contains(set.set, number),
            row => row == number / self.ranks && self.sets.contains(set.set, number % self.ranks),
        }
    }

    /// The least leaf that is in both.
    pub(super) fn first_common(&mut self, a: LeafSet, b: LeafSet) -> Option<u32> {
        match (a.row, b.row) {
            (MIXED, _) | (_, MIXED) => {
                let (a, b) = (self.mixed(a), self.mixed(b));
                self.sets.first_common(a, b)
            }
            (row, other) if row == other => Some(row * self.ranks + self.sets.first_common(a.set, b.set)?),
            _ => None,
        }
    }

    /// The leaves, ascending.
    pub(super) fn elements(&self, set: LeafSet) -> Vec<u32> {
        let mut elements = self.sets.elements(set.set);
        if set.row != MIXED {
            elements.iter_mut().for_each(|rank| *rank += set.row * self.ranks);
        }
        elements
    }

    /// The set as one of leaf numbers.
    fn mixed(&mut self, set: LeafSet) -> SetId {
        if set.row == MIXED { set.set } else { self.sets.of(&self.elements(set)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn sets_of_one_row_and_of_several_are_one_kind_of_set() {
        let mut sets = LeafSets::new(5);
        let lists: [&[u32]; 6] = [&[], &[1], &[1, 3], &[6, 8], &[1, 6], &[0, 1, 2, 12]];
        for a in lists {
            for b in lists {
                let (x, y) = (sets.of(a), sets.of(b));
                let union: BTreeSet<u32> = a.iter().chain(b).copied().collect();
                let common = a.iter().find(|number| b.contains(number)).copied();
                let (both, meets) = sets.union(x, y);
                let union: Vec<u32> = union.into_iter().collect();
                assert!(both == sets.of(&union));
                assert_eq!(sets.elements(both), union);
                assert_eq!((meets, sets.first_common(x, y)), (common.is_some(), common));
                assert!((0..15).all(|number| sets.contains(both, number) == union.contains(&number)));
                assert_eq!(x == y, a == b);
            }
        }
    }
}
