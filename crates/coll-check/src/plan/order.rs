//! Which of two operations of a rank surely touches memory first.
//!
//! An operation has two moments: its first touch of memory, and its last. `A` comes before `B` if A's last is before
//! B's first in every run. What surely follows what:
//!
//! - an operation's first touch follows the last of the operation before it in its lane, and of those it waits for;
//! - a receive touches memory only as bytes come in: its first touch follows the send's first, its last the last;
//! - a send that follows a receive byte by byte likewise, moment by moment.
//!
//! Almost all questions are answered by the lanes and waits of the rank itself. For these each operation gets a
//! clock: for every lane of the rank, how far that lane has surely come when the operation starts. What clocks do
//! not know is searched for, backwards and over all ranks, but only between the two operations in the order of
//! running, outside which no path can lie.

use super::pairing::Messages;
use super::whole::{NONE, OpKey, Whole, lane_of};
use coll_plan::{Op, RankPlan};

/// Clocks of more entries than this cost more than they save.
const CLOCK_ENTRIES_MAX: usize = 1 << 20;

/// Searches may look at so many operations in all, some ten seconds' worth.
const SEARCH_STEPS_MAX: u64 = 1 << 29;

/// Answers questions of order, rank by rank.
pub(super) struct Order<'a> {
    whole: &'a Whole<'a>,
    messages: &'a Messages,
    /// Every operation's place in the order of running.
    place: Vec<u32>,
    part: &'a RankPlan,
    base: OpKey,
    lanes: Vec<u32>,
    /// A row for each operation, an entry for each lane: operations below it are over. Empty if there are too many.
    clocks: Vec<u32>,
    /// Operations that the present search has been at, each moment apart. Made when first needed.
    seen_first: Vec<u32>,
    seen_last: Vec<u32>,
    searches: u32,
    steps: u64,
    /// Each operation's number when chains are walked down, and how many there are from it on. Made when first needed.
    chain: Vec<u32>,
    chain_size: Vec<u32>,
}

impl<'a> Order<'a> {
    pub(super) fn new(whole: &'a Whole<'a>, messages: &'a Messages, order: &[OpKey]) -> Option<Order<'a>> {
        let mut place = vec![0; order.len()];
        for (&key, at) in order.iter().zip(0..) {
            place[key as usize] = at;
        }
        let part = whole.plan.ranks.first()?;
        let (lanes, clocks, seen_first, seen_last) = Default::default();
        let (chain, chain_size) = Default::default();
        let (base, searches, steps) = (0, 0, 0);
        #[rustfmt::skip]
        let known = Order {
            whole, messages, place, part, base, lanes, clocks, seen_first, seen_last, searches, steps, chain, chain_size,
        };
        Some(known)
    }

    /// True once searches have become too many: answers of no may then be wrong.
    pub(super) fn is_exhausted(&self) -> bool {
        self.steps >= SEARCH_STEPS_MAX
    }

    /// Turns to a rank; `ops` are its operations in the order of running.
    pub(super) fn turn_to(&mut self, rank: u32, ops: &[OpKey]) {
        self.part = &self.whole.plan.ranks[rank as usize];
        self.base = self.whole.base(rank);
        self.lanes.clear();
        for (lane, number) in self.part.lanes.iter().zip(0..) {
            self.lanes.resize(lane.end as usize, number);
        }
        self.clocks.clear();
        let width = self.part.lanes.len();
        if width < 2 || width.saturating_mul(ops.len()) > CLOCK_ENTRIES_MAX {
            return;
        }
        self.clocks.resize(width * ops.len(), 0);
        for &key in ops {
            self.set_clock((key - self.base) as usize, width);
        }
    }

    fn set_clock(&mut self, op: usize, width: usize) {
        let lane = self.lanes[op] as usize;
        if op as u32 > self.part.lanes[lane].start {
            self.pass(op - 1, op, width);
        }
        for wait in self.part.waits(&self.part.ops[op]) {
            if wait.along {
                self.inherit(wait.op as usize, op, width);
            } else {
                self.pass(wait.op as usize, op, width);
            }
        }
    }

    /// `to` starts after `from` has touched memory for the last time.
    fn pass(&mut self, from: usize, to: usize, width: usize) {
        self.inherit(from, to, width);
        self.reach(from, to, width);
        let waits = self.part.waits(&self.part.ops[from]);
        if let Some(receive) = waits.iter().find(|wait| wait.along).map(|wait| wait.op as usize) {
            self.inherit(receive, to, width);
            self.reach(receive, to, width);
        }
    }

    /// What was over when `from` started is over when `to` starts.
    fn inherit(&mut self, from: usize, to: usize, width: usize) {
        for lane in 0..width {
            let known = self.clocks[from * width + lane];
            let entry = &mut self.clocks[to * width + lane];
            *entry = known.max(*entry);
        }
    }

    fn reach(&mut self, from: usize, to: usize, width: usize) {
        let entry = &mut self.clocks[to * width + self.lanes[from] as usize];
        *entry = (*entry).max(from as u32 + 1);
    }

    /// Whether `a` has surely touched memory for the last time before `b` does for the first, or, with `same_bytes`,
    /// each byte before `b` does; this holds for bytes at the same place of both operations' lists. Both are of the
    /// rank.
    pub(super) fn is_before(&mut self, a: OpKey, b: OpKey, same_bytes: bool) -> bool {
        let (x, y) = ((a - self.base) as usize, (b - self.base) as usize);
        if self.lanes[x] == self.lanes[y] {
            return x < y;
        }
        let waits = self.part.waits(&self.part.ops[y]);
        let covers = |op: u32| self.lanes[op as usize] == self.lanes[x] && op as usize >= x;
        if waits.iter().any(|wait| !wait.along && covers(wait.op)) {
            return true;
        }
        let width = self.part.lanes.len();
        if !self.clocks.is_empty() && self.clocks[y * width + self.lanes[x] as usize] > x as u32 {
            return true;
        }
        same_bytes && self.is_earlier_in_chain(a, b) || self.search(a, b)
    }

    fn is_earlier_in_chain(&mut self, a: OpKey, b: OpKey) -> bool {
        if self.chain.is_empty() {
            self.number_chains();
        }
        let (from, to) = (self.chain[a as usize], self.chain[b as usize]);
        from <= to && to - from < self.chain_size[a as usize]
    }

    /// Numbers all operations so that those further down the chains from one have the numbers behind its own.
    fn number_chains(&mut self) {
        let mut order = vec![0; self.place.len()];
        for (&at, key) in self.place.iter().zip(0..) {
            order[at as usize] = key;
        }
        let mut size = vec![1u32; order.len()];
        for &key in order.iter().rev() {
            if let Some(before) = self.feeder(key, self.whole.op(key)) {
                size[before as usize] += size[key as usize];
            }
        }
        let (mut number, mut next, mut roots) = (vec![0u32; order.len()], vec![0u32; order.len()], 0);
        for &key in &order {
            let from = match self.feeder(key, self.whole.op(key)) {
                Some(before) => &mut next[before as usize],
                None => &mut roots,
            };
            let own = *from;
            *from += size[key as usize];
            number[key as usize] = own;
            next[key as usize] = own + 1;
        }
        (self.chain, self.chain_size) = (number, size);
    }

    /// Whether a chain of sure consequences leads from the last touch of `a` to the first of `b`.
    fn search(&mut self, a: OpKey, b: OpKey) -> bool {
        let limit = self.place[a as usize];
        if self.place[b as usize] <= limit || self.is_exhausted() {
            return false;
        }
        if self.seen_first.is_empty() {
            self.seen_first = vec![0; self.place.len()];
            self.seen_last = vec![0; self.place.len()];
        }
        self.searches += 1;
        let mut rest: Vec<(OpKey, bool)> = vec![(b, false)];
        while let Some((key, last)) = rest.pop() {
            self.steps += 1;
            if last && key == a {
                return true;
            }
            let seen = if last { &mut self.seen_last } else { &mut self.seen_first };
            let again = std::mem::replace(&mut seen[key as usize], self.searches) == self.searches;
            if again || self.place[key as usize] <= limit {
                continue;
            }
            let op = self.whole.op(key);
            if last {
                rest.push((key, false));
                rest.extend(self.feeder(key, op).map(|feeder| (feeder, true)));
            } else {
                rest.extend(self.feeder(key, op).map(|feeder| (feeder, false)));
                self.local_causes(key, op, &mut rest);
            }
        }
        false
    }

    /// Where the bytes of a receive, or of a send that follows one, come from.
    fn feeder(&self, key: OpKey, op: &Op) -> Option<OpKey> {
        if op.action.receives_from().is_some() {
            return Some(self.messages.of(key).send);
        }
        Some(self.whole.along(key)).filter(|&receive| receive != NONE)
    }

    fn local_causes(&self, key: OpKey, op: &Op, into: &mut Vec<(OpKey, bool)>) {
        let (part, local) = (self.whole.part(key), self.whole.local(key));
        for wait in part.waits(op).iter().filter(|wait| !wait.along) {
            into.push((key - local + wait.op, true));
        }
        if local > part.lanes[lane_of(part, local)].start {
            into.push((key - 1, true));
        }
    }
}
