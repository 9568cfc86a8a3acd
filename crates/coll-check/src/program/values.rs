//! What a piece holds: nothing, one leaf, or a reduction of two values. Equal values have equal ids.
//!
//! Each reduction carries what a verdict asks: the exact set of leaves in it, whether one of them is in it twice (then it
//! can never be right, and the set no longer says how often), and whether its leaves stand in rank order.

use super::intern::{IdTable, hash_pair};
use super::leaf_sets::{LeafSet, LeafSets};
use coll_contract::{Contract, Leaf};
use std::collections::BTreeMap;

/// A value. Children have smaller ids than what is made of them.
pub(super) type NodeId = u32;

/// A piece that holds nothing.
pub(super) const NOTHING: NodeId = 0;
/// What was made of nothing, and has been told of.
pub(super) const POISON: NodeId = 1;
const LEAVES: NodeId = 2;

/// All values of one proof.
pub(super) struct Values {
    /// How leaves are numbered.
    pub(super) leaves: Leaves,
    /// Sets of leaves, by their numbers.
    pub(super) sets: LeafSets,
    nodes: Vec<Reduction>,
    table: IdTable,
}

#[derive(Clone, Copy)]
struct Reduction {
    left: NodeId,
    right: NodeId,
    leaves: LeafSet,
    first: u32,
    last: u32,
    twice: bool,
    in_order: bool,
}

impl Values {
    pub(super) fn new(contract: &Contract) -> Values {
        let leaves = Leaves::new(contract);
        let sets = LeafSets::new(contract.ranks);
        Values { leaves, sets, nodes: Vec::new(), table: IdTable::default() }
    }

    /// What a block holds at the start, if it is given.
    pub(super) fn leaf(&self, leaf: Leaf) -> NodeId {
        LEAVES + self.leaves.number(leaf)
    }

    /// `left ⊕ right`; neither is [`NOTHING`].
    pub(super) fn reduce(&mut self, left: NodeId, right: NodeId) -> NodeId {
        if left == POISON || right == POISON {
            return POISON;
        }
        let base = LEAVES + self.leaves.count;
        let Values { nodes, table, .. } = self;
        let key = |id: NodeId| (nodes[(id - base) as usize].left, nodes[(id - base) as usize].right);
        let hash = |(left, right): (NodeId, NodeId)| hash_pair(left as u64, right as u64);
        let fresh = base + nodes.len() as u32;
        let is_it = |id| key(id) == (left, right);
        let id = table.find_or_add(hash((left, right)), fresh, is_it, |id| hash(key(id)));
        if id == fresh {
            let reduction = self.reduction(left, right);
            self.nodes.push(reduction);
        }
        id
    }

    fn reduction(&mut self, left: NodeId, right: NodeId) -> Reduction {
        let (left_set, right_set) = (self.set(left), self.set(right));
        let (leaves, meets) = self.sets.union(left_set, right_set);
        let (left_ends, right_ends) = (self.ends(left), self.ends(right));
        let follows = self.leaves.order(left_ends.1) < self.leaves.order(right_ends.0);
        Reduction {
            left,
            right,
            leaves,
            first: left_ends.0,
            last: right_ends.1,
            twice: meets || self.is_twice(left) || self.is_twice(right),
            in_order: follows && self.is_in_order(left) && self.is_in_order(right),
        }
    }

    /// The leaves in a value.
    pub(super) fn set(&mut self, node: NodeId) -> LeafSet {
        match self.parts(node) {
            Parts::None => LeafSets::EMPTY,
            Parts::Leaf(number) => self.sets.single(number),
            Parts::Two(reduction) => reduction.leaves,
        }
    }

    /// True if some leaf is in it more than once.
    pub(super) fn is_twice(&self, node: NodeId) -> bool {
        matches!(self.parts(node), Parts::Two(reduction) if reduction.twice)
    }

    /// True if its leaves, from left to right, are of ascending ranks.
    pub(super) fn is_in_order(&self, node: NodeId) -> bool {
        !matches!(self.parts(node), Parts::Two(reduction) if !reduction.in_order)
    }

    /// Its leaves, by number, from left to right, but no more than `limit`.
    pub(super) fn sequence(&self, node: NodeId, limit: usize) -> Vec<u32> {
        let mut found = Vec::new();
        let mut open = vec![node];
        while let Some(node) = open.pop().filter(|_| found.len() < limit) {
            match self.parts(node) {
                Parts::None => {}
                Parts::Leaf(number) => found.push(number),
                Parts::Two(reduction) => open.extend([reduction.right, reduction.left]),
            }
        }
        found
    }

    /// Its leaves, by number, with how often each is in it.
    pub(super) fn multiplicities(&self, node: NodeId) -> BTreeMap<u32, u64> {
        let mut leaves = BTreeMap::new();
        let mut open = BTreeMap::from([(node, 1u64)]);
        while let Some((node, times)) = open.pop_last() {
            match self.parts(node) {
                Parts::None => {}
                Parts::Leaf(number) => {
                    leaves.insert(number, times);
                }
                Parts::Two(reduction) => {
                    for part in [reduction.left, reduction.right] {
                        let sum = open.entry(part).or_insert(0);
                        *sum = sum.saturating_add(times);
                    }
                }
            }
        }
        leaves
    }

    /// For every value the id of its reduction tree, in which `a ⊕ b` and `b ⊕ a` are one: values of one tree have
    /// equal bits under every commutative operator.
    pub(super) fn trees(&self) -> Trees {
        let base = LEAVES + self.leaves.count;
        let mut trees = Trees { base, of_reductions: Vec::with_capacity(self.nodes.len()) };
        let mut table = IdTable::default();
        let mut keys: Vec<(u32, u32)> = Vec::new();
        let hash = |(a, b): (u32, u32)| hash_pair(a as u64, b as u64);
        for reduction in &self.nodes {
            let (a, b) = (trees.of(reduction.left), trees.of(reduction.right));
            let key = (a.min(b), a.max(b));
            let fresh = base + keys.len() as u32;
            let known = |id: u32| keys[(id - base) as usize];
            let id = table.find_or_add(hash(key), fresh, |id| known(id) == key, |id| hash(known(id)));
            if id == fresh {
                keys.push(key);
            }
            trees.of_reductions.push(id);
        }
        trees
    }

    fn ends(&self, node: NodeId) -> (u32, u32) {
        match self.parts(node) {
            Parts::None => (0, 0),
            Parts::Leaf(number) => (number, number),
            Parts::Two(reduction) => (reduction.first, reduction.last),
        }
    }

    fn parts(&self, node: NodeId) -> Parts {
        if node < LEAVES {
            Parts::None
        } else if node - LEAVES < self.leaves.count {
            Parts::Leaf(node - LEAVES)
        } else {
            Parts::Two(self.nodes[(node - LEAVES - self.leaves.count) as usize])
        }
    }
}

enum Parts {
    None,
    Leaf(u32),
    Two(Reduction),
}

/// The answer of [`Values::trees`].
pub(super) struct Trees {
    base: NodeId,
    of_reductions: Vec<u32>,
}

impl Trees {
    /// The tree of a value.
    pub(super) fn of(&self, node: NodeId) -> u32 {
        if node < self.base { node } else { self.of_reductions[(node - self.base) as usize] }
    }
}

/// Numbers for leaves. The leaves of one block on all ranks follow each other, which keeps their sets small.
#[derive(Clone)]
pub(super) struct Leaves {
    ranks: u32,
    count: u32,
    first_block: Vec<u32>,
}

impl Leaves {
    fn new(contract: &Contract) -> Leaves {
        let first_block =
            (0..contract.buffers.len() as u32).map(|buffer| contract.first_block(buffer)).collect();
        let count = contract.blocks_per_rank().checked_mul(contract.ranks);
        let count =
            count.expect("invariant: a contract whose class table fits memory has fewer than 2^32 blocks");
        Leaves { ranks: contract.ranks, count, first_block }
    }

    /// The number of a leaf.
    pub(super) fn number(&self, leaf: Leaf) -> u32 {
        (self.first_block[leaf.buffer as usize] + leaf.block) * self.ranks + leaf.rank
    }

    /// The leaf of a number.
    pub(super) fn leaf(&self, number: u32) -> Leaf {
        let row = number / self.ranks;
        let buffer = self.first_block.partition_point(|&first| first <= row) - 1;
        Leaf { rank: number % self.ranks, buffer: buffer as u32, block: row - self.first_block[buffer] }
    }

    /// Where a leaf stands in an ordered reduction: by rank first.
    pub(super) fn order(&self, number: u32) -> (u32, u32) {
        (number % self.ranks, number / self.ranks)
    }
}
