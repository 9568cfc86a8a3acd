//! Exact sets of integers in which equal sets have equal ids, and sets that overlap share their common parts.
//!
//! A set is a big-endian Patricia tree (Okasaki and Gill, *Fast Mergeable Integer Maps*, 1998) with 64 integers in a
//! tip, as one word. The shape of such a tree follows from what is in it, so a table that holds every subtree once
//! makes equality a comparison of ids. A ring of n ranks makes n² different sets of up to n contributions each; here
//! each of them costs a few nodes, whatever the order of the ranks.

use super::intern::{IdTable, hash_pair};

/// A set.
pub(super) type SetId = u32;

/// All sets of one proof.
pub(super) struct Sets {
    nodes: Vec<Node>,
    table: IdTable,
}

/// A tip if `branch` is 0: `low` and `high` are a word of 64 bits, for the integers from `prefix`. Otherwise a fork:
/// `branch` is the highest bit in which its elements differ, `low` and `high` are the sets without and with it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Node {
    prefix: u32,
    branch: u32,
    low: u32,
    high: u32,
}

const TIP: u32 = 63;

impl Sets {
    /// The set without elements.
    pub(super) const EMPTY: SetId = 0;

    pub(super) fn new() -> Sets {
        let nothing = Node { prefix: 0, branch: 0, low: 0, high: 0 };
        Sets { nodes: vec![nothing], table: IdTable::default() }
    }

    /// `{element}`
    pub(super) fn single(&mut self, element: u32) -> SetId {
        self.tip(element & !TIP, 1 << (element & TIP))
    }

    /// The set of these.
    pub(super) fn of(&mut self, elements: &[u32]) -> SetId {
        match *elements {
            [] => Sets::EMPTY,
            [element] => self.single(element),
            _ => {
                let (left, right) = elements.split_at(elements.len() / 2);
                let (left, right) = (self.of(left), self.of(right));
                self.union(left, right).0
            }
        }
    }

    /// What is in either, and whether anything is in both.
    pub(super) fn union(&mut self, x: SetId, y: SetId) -> (SetId, bool) {
        if x == Sets::EMPTY || y == Sets::EMPTY {
            return (x.max(y), false);
        }
        if x == y {
            return (x, true);
        }
        let (a, b) = (self.nodes[x as usize], self.nodes[y as usize]);
        if a.branch == b.branch && a.prefix == b.prefix {
            if a.branch == 0 {
                return (self.tip(a.prefix, a.word() | b.word()), a.word() & b.word() != 0);
            }
            let (low, low_meets) = self.union(a.low, b.low);
            let (high, high_meets) = self.union(a.high, b.high);
            (self.fork(a.prefix, a.branch, low, high), low_meets || high_meets)
        } else if a.branch > b.branch && a.covers(b.prefix) {
            self.insert(a, b.prefix, y)
        } else if b.branch > a.branch && b.covers(a.prefix) {
            self.insert(b, a.prefix, x)
        } else {
            let branch = 1 << (a.prefix ^ b.prefix).ilog2();
            let prefix = a.prefix & !(branch | (branch - 1));
            let (low, high) = if a.prefix & branch == 0 { (x, y) } else { (y, x) };
            (self.fork(prefix, branch, low, high), false)
        }
    }

    /// True if `element` is in the set.
    pub(super) fn contains(&self, set: SetId, element: u32) -> bool {
        let mut at = set;
        while at != Sets::EMPTY {
            let node = self.nodes[at as usize];
            if node.branch == 0 {
                return node.prefix == element & !TIP && node.word() >> (element & TIP) & 1 == 1;
            }
            at = if element & node.branch == 0 { node.low } else { node.high };
        }
        false
    }

    /// The least element that is in both.
    pub(super) fn first_common(&self, x: SetId, y: SetId) -> Option<u32> {
        let mut open = vec![(x, y)];
        while let Some((x, y)) = open.pop() {
            if x == Sets::EMPTY || y == Sets::EMPTY {
                continue;
            }
            let (a, b) = (self.nodes[x as usize], self.nodes[y as usize]);
            if a.branch == b.branch && a.prefix == b.prefix {
                if a.branch > 0 {
                    open.extend([(a.high, b.high), (a.low, b.low)]);
                } else if a.word() & b.word() != 0 {
                    return Some(a.prefix + (a.word() & b.word()).trailing_zeros());
                }
            } else if a.branch > b.branch && a.covers(b.prefix) {
                open.push((if b.prefix & a.branch == 0 { a.low } else { a.high }, y));
            } else if b.branch > a.branch && b.covers(a.prefix) {
                open.push((x, if a.prefix & b.branch == 0 { b.low } else { b.high }));
            }
        }
        None
    }

    /// The elements, ascending.
    pub(super) fn elements(&self, set: SetId) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![set];
        while let Some(at) = open.pop() {
            let node = self.nodes[at as usize];
            if node.branch == 0 {
                found.extend((0..64).filter(|&bit| node.word() >> bit & 1 == 1).map(|bit| node.prefix + bit));
            } else {
                open.extend([node.high, node.low]);
            }
        }
        found
    }

    fn insert(&mut self, fork: Node, key: u32, set: SetId) -> (SetId, bool) {
        if key & fork.branch == 0 {
            let (low, meets) = self.union(fork.low, set);
            (self.fork(fork.prefix, fork.branch, low, fork.high), meets)
        } else {
            let (high, meets) = self.union(fork.high, set);
            (self.fork(fork.prefix, fork.branch, fork.low, high), meets)
        }
    }

    fn tip(&mut self, prefix: u32, word: u64) -> SetId {
        self.intern(Node { prefix, branch: 0, low: word as u32, high: (word >> 32) as u32 })
    }

    fn fork(&mut self, prefix: u32, branch: u32, low: SetId, high: SetId) -> SetId {
        self.intern(Node { prefix, branch, low, high })
    }

    fn intern(&mut self, node: Node) -> SetId {
        let Sets { nodes, table } = self;
        let fresh = nodes.len() as u32;
        let is_it = |id: u32| nodes[id as usize] == node;
        let id = table.find_or_add(node.hash(), fresh, is_it, |id| nodes[id as usize].hash());
        if id == fresh {
            nodes.push(node);
        }
        id
    }
}

impl Node {
    fn word(self) -> u64 {
        self.low as u64 | (self.high as u64) << 32
    }

    fn covers(self, key: u32) -> bool {
        key & !(self.branch | (self.branch - 1)) == self.prefix
    }

    fn hash(self) -> u64 {
        hash_pair((self.prefix as u64) << 32 | self.branch as u64, self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn unions_are_those_of_plain_sets_and_equal_sets_have_equal_ids() {
        let mut sets = Sets::new();
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut known: Vec<(SetId, BTreeSet<u32>)> = vec![(Sets::EMPTY, BTreeSet::new())];
        for round in 0..600 {
            let spread = [70, 5_000, u32::MAX as u64][round % 3];
            let element = random(spread) as u32;
            known.push((sets.single(element), BTreeSet::from([element])));
            let (x, a) = known[random(known.len() as u64) as usize].clone();
            let (y, b) = known[random(known.len() as u64) as usize].clone();
            let (union, meets) = sets.union(x, y);
            let expected: BTreeSet<u32> = a.union(&b).copied().collect();
            assert_eq!(meets, a.intersection(&b).next().is_some());
            assert_eq!(sets.first_common(x, y), a.intersection(&b).next().copied());
            let elements = sets.elements(union);
            assert_eq!(elements, expected.iter().copied().collect::<Vec<_>>());
            assert_eq!(sets.of(&elements), union);
            assert!(elements.iter().all(|&e| sets.contains(union, e)));
            assert!((0..200).all(|e| sets.contains(union, e) == expected.contains(&e)));
            known.push((union, expected));
        }
    }
}
