//! Which blocks have equal counts: union-find over every block of every rank.
//!
//! Each ensured block unites with the leaves it is made of, as an element of one is made of the same elements of the
//! others. A block that no fact names joins the class of the same block on the ranks whose facts do name it, if those
//! agree; so a gather's intermediate ranks can hold what passes through.

use super::Facts;
use coll_contract::{Blocks, Classes, Leaf};

/// Numbers the classes in order of first appearance by rank, buffer, block.
pub(super) fn number(facts: &Facts, ranks: u32) -> Classes {
    let firsts = facts.first_blocks();
    let width = facts.blocks_per_rank() as usize;
    let place =
        |leaf: Leaf| leaf.rank as usize * width + (firsts[leaf.buffer as usize] + leaf.block) as usize;
    let mut union = Union::new(ranks as usize * width);
    let mut named = vec![false; ranks as usize * width];
    for (buffer, given) in facts.given.iter().enumerate() {
        if let Blocks::Listed(pairs) = given {
            for &(rank, block) in pairs {
                named[place(Leaf { rank, buffer: buffer as u32, block })] = true;
            }
        }
    }
    let heads: Vec<usize> = facts.values.iter().map(|value| place(value.leaves()[0])).collect();
    for (value, &head) in facts.values.iter().zip(&heads) {
        for &leaf in value.leaves() {
            named[place(leaf)] = true;
            union.unite(place(leaf), head);
        }
    }
    for ensure in &facts.ensures {
        let at = place(Leaf { rank: ensure.rank, buffer: ensure.buffer, block: ensure.block });
        named[at] = true;
        union.unite(at, heads[ensure.value as usize]);
    }
    for block in 0..width {
        join_unnamed(&mut union, &named, ranks as usize, width, block);
    }
    dense(&mut union)
}

/// Puts the ranks that no fact names at this block with those that some does, if these are of one class.
fn join_unnamed(union: &mut Union, named: &[bool], ranks: usize, width: usize, block: usize) {
    let places = || (0..ranks).map(|rank| rank * width + block);
    let mut classes = places().filter(|&at| named[at]).map(|at| union.find(at));
    let Some(class) = classes.next() else { return };
    if classes.all(|other| other == class) {
        for at in places().filter(|&at| !named[at]) {
            union.unite(at, class);
        }
    }
}

fn dense(union: &mut Union) -> Classes {
    let mut ids = vec![u32::MAX; union.parents.len()];
    let mut count = 0;
    let mut table = Vec::with_capacity(union.parents.len());
    for at in 0..union.parents.len() {
        let root = union.find(at);
        if ids[root] == u32::MAX {
            ids[root] = count;
            count += 1;
        }
        table.push(ids[root]);
    }
    Classes { count, table }
}

/// Disjoint sets, with path halving (Tarjan and van Leeuwen 1984); the smaller number is the root.
struct Union {
    parents: Vec<u32>,
}

impl Union {
    fn new(places: usize) -> Union {
        Union { parents: (0..places as u32).collect() }
    }

    fn find(&mut self, mut at: usize) -> usize {
        while self.parents[at] as usize != at {
            self.parents[at] = self.parents[self.parents[at] as usize];
            at = self.parents[at] as usize;
        }
        at
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.parents[a.max(b)] = a.min(b) as u32;
    }
}
