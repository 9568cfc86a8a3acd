//! Where a plan that was made for calls out of place would go wrong in place: a given piece may be read after the same
//! piece of the output has been written, which in place is the same memory.
//!
//! Only lanes and waits of the rank are looked at. What messages alone order counts as unordered, and is then staged
//! though it need not be: a copy too many, and nothing worse.

use super::{Place, Staged};
use coll_plan::{Action, Op, Plan, RankPlan, Region, Store};
use std::collections::BTreeMap;

/// The places, by rank, whose given value has to be copied away before anything is written.
pub(crate) fn unsafe_in_place(plan: &Plan) -> Staged {
    let mut found = Staged::new();
    for part in &plan.ranks {
        let writes = writes(part);
        if writes.is_empty() {
            continue;
        }
        let clocks = Clocks::new(part);
        for (id, op) in (0..).zip(&part.ops) {
            let sides = [part.regions(op.source), part.regions(op.operand)];
            let read = sides.into_iter().flat_map(|side| side.iter().enumerate());
            for (at, region) in read.filter(|(_, region)| matches!(region.store, Store::In(_))) {
                // An operation may overwrite byte by byte what it reads, if both stand at one place of its lists.
                let own = part.regions(op.target).get(at);
                let overwrites = own.is_some_and(|own| places(own).eq(places(region)));
                for place in places(region) {
                    let later = |&writer: &u32| match writer == id {
                        true => overwrites,
                        false => clocks.is_before(id, writer),
                    };
                    if !writes.get(&place).is_none_or(|writers| writers.iter().all(later)) {
                        found.insert((part.rank, place));
                    }
                }
            }
        }
    }
    found
}

fn places(region: &Region) -> impl Iterator<Item = Place> + use<> {
    let Region { store, block, low, high, .. } = *region;
    let buffer = match store {
        Store::In(buffer) | Store::Out(buffer) | Store::Tmp(buffer) => Some(buffer),
        Store::Slot => None,
    };
    buffer.into_iter().flat_map(move |buffer| (low..high).map(move |piece| Place { buffer, block, piece }))
}

/// Who writes each place of a buffer, but for copies of a place onto itself.
fn writes(part: &RankPlan) -> BTreeMap<Place, Vec<u32>> {
    let mut writes: BTreeMap<Place, Vec<u32>> = BTreeMap::new();
    for (id, op) in (0..).zip(&part.ops) {
        for (at, region) in part.regions(op.target).iter().enumerate() {
            if !is_own_copy(part, op, at) {
                places(region).for_each(|place| writes.entry(place).or_default().push(id));
            }
        }
    }
    writes
}

fn is_own_copy(part: &RankPlan, op: &Op, at: usize) -> bool {
    let buffer = |region: &Region| match region.store {
        Store::In(buffer) | Store::Out(buffer) | Store::Tmp(buffer) => Some(buffer),
        Store::Slot => None,
    };
    let (Some(from), to) = (part.regions(op.source).get(at), &part.regions(op.target)[at]) else {
        return false;
    };
    op.action == Action::Copy
        && buffer(from).is_some()
        && (buffer(from), from.block, from.low) == (buffer(to), to.block, to.low)
}

/// For each operation, how far each lane has surely come when it starts.
struct Clocks {
    lane_of: Vec<u32>,
    /// A row for each operation, an entry for each lane: operations below it are over.
    rows: Vec<Vec<u32>>,
}

impl Clocks {
    fn new(part: &RankPlan) -> Clocks {
        let width = part.lanes.len();
        let mut lane_of = Vec::with_capacity(part.ops.len());
        for (lane, number) in part.lanes.iter().zip(0..) {
            lane_of.resize(lane.end as usize, number);
        }
        let mut clocks = Clocks { lane_of, rows: vec![Vec::new(); part.ops.len()] };
        // Lanes advance as far as what they wait for is known, in turns, until all are through.
        let mut at: Vec<u32> = part.lanes.iter().map(|lane| lane.start).collect();
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for (at, lane) in at.iter_mut().zip(&part.lanes) {
                while *at < lane.end && clocks.set(part, *at, width) {
                    *at += 1;
                    moved = true;
                }
            }
        }
        clocks
    }

    /// Sets an operation's clock, if those that it needs are set.
    fn set(&mut self, part: &RankPlan, op: u32, width: usize) -> bool {
        let before = (op > part.lanes[self.lane_of[op as usize] as usize].start).then(|| op - 1);
        let waits = part.waits(&part.ops[op as usize]).iter().filter(|wait| !wait.along);
        let mut all: Vec<u32> = before.into_iter().chain(waits.map(|wait| wait.op)).collect();
        // A send that has followed a receive to its end was not done before that.
        let follows = |&from: &u32| part.waits(&part.ops[from as usize]).iter().find(|wait| wait.along);
        let followed: Vec<u32> = all.iter().filter_map(follows).map(|wait| wait.op).collect();
        all.extend(followed);
        if all.iter().any(|&from| self.rows[from as usize].is_empty()) {
            return false;
        }
        let mut row = vec![0; width];
        for from in all {
            for (entry, &known) in row.iter_mut().zip(&self.rows[from as usize]) {
                *entry = known.max(*entry);
            }
            let entry = &mut row[self.lane_of[from as usize] as usize];
            *entry = (*entry).max(from + 1);
        }
        self.rows[op as usize] = row;
        true
    }

    fn is_before(&self, a: u32, b: u32) -> bool {
        let (x, y) = (self.lane_of[a as usize], self.lane_of[b as usize]);
        if x == y {
            return a < b;
        }
        self.rows[b as usize].get(x as usize).is_some_and(|&over| over > a)
    }
}
