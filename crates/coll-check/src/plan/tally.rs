//! How many races a plan has. The proof (`races`) looks at the last write of each piece and the reads since, for a plan in which
//! these are ordered has no race at all, and it tells of a few. To count them all, each access is compared with every one
//! before it.

use super::order::Order;
use super::pairing::Messages;
use super::races::{accesses, by_rank, has_own_copy, link_pairs};
use super::whole::{NONE, OpKey, Whole};
use coll_plan::RankPlan;
use std::collections::{BTreeSet, HashMap};

/// So many pairs are compared, some seconds' worth.
const COMPARED_MAX: u64 = 1 << 25;

/// Counts pairs of operations whose accesses, or whose messages, no order is sure of. None if they are too many.
pub(super) fn count(whole: &Whole, messages: &Messages, order: &[OpKey]) -> Option<u64> {
    let Some(known) = Order::new(whole, messages, order) else { return Some(0) };
    let mut tally = Tally { whole, known, found: BTreeSet::new(), asked: HashMap::new(), compared: 0 };
    let by_rank = by_rank(whole, order);
    let links = link_pairs(whole, messages);
    for part in &whole.plan.ranks {
        let base = whole.base(part.rank) as usize;
        let ops = &by_rank[base..base + part.ops.len()];
        tally.known.turn_to(part.rank, ops);
        tally.asked.clear();
        tally.rank(part, true, ops)?;
        if has_own_copy(part) {
            tally.rank(part, false, ops)?;
        }
        for &(_, first, second) in links.iter().filter(|(rank, ..)| *rank == part.rank) {
            if !tally.known.is_before(first, second, false) {
                tally.add(first, second);
            }
        }
    }
    (!tally.known.is_exhausted()).then_some(tally.found.len() as u64)
}

/// An access that came before.
#[derive(Clone, Copy)]
struct Earlier {
    key: OpKey,
    /// Which of the operation's regions it was.
    number: u32,
    writes: bool,
}

struct Tally<'a> {
    whole: &'a Whole<'a>,
    known: Order<'a>,
    found: BTreeSet<(OpKey, OpKey)>,
    /// Of two operations, and whether the same bytes of both are meant: what the answer was.
    asked: HashMap<(OpKey, OpKey, bool), bool>,
    compared: u64,
}

impl Tally<'_> {
    /// Goes through a rank's operations in the order of running; none once that takes too long.
    fn rank(&mut self, part: &RankPlan, in_place: bool, ops: &[OpKey]) -> Option<()> {
        let mut memory: HashMap<usize, Vec<Earlier>> = HashMap::new();
        for &key in ops {
            let op = &part.ops[self.whole.local(key) as usize];
            accesses(self.whole, part, op, in_place, |at, number, _, writes| {
                let before = memory.entry(at).or_default();
                for earlier in before.iter().filter(|earlier| earlier.writes || writes) {
                    self.compare(*earlier, key, number, writes);
                }
                before.push(Earlier { key, number, writes });
            });
            if self.compared > COMPARED_MAX || self.known.is_exhausted() {
                return None;
            }
        }
        Some(())
    }

    fn compare(&mut self, earlier: Earlier, key: OpKey, number: u32, writes: bool) {
        self.compared += 1;
        let same_bytes = earlier.number == number;
        if earlier.key == key {
            // Within an operation, what is combined may be overwritten byte by byte, and nothing else.
            if !same_bytes || earlier.writes && writes {
                self.add(key, key);
            }
            return;
        }
        let asked = (earlier.key, key, same_bytes);
        let is_before = match self.asked.get(&asked) {
            Some(&known) => known,
            None => {
                let found = self.known.is_before(earlier.key, key, same_bytes);
                self.asked.insert(asked, found);
                found
            }
        };
        if !is_before {
            self.add(earlier.key, key);
        }
    }

    fn add(&mut self, a: OpKey, b: OpKey) {
        // What is received and sent on at once is one step of those who wrote it so.
        let step = |key: OpKey| match self.whole.along(key) {
            NONE => key,
            receive => receive,
        };
        let (a, b) = (step(a), step(b));
        self.found.insert((a.min(b), a.max(b)));
    }
}
