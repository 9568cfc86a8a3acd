//! Which waits say nothing new. An operation need not wait for what the operation before it in its lane, or another
//! one that it waits for, has waited for already.
//!
//! For each operation a **clock** says, for some lanes, up to which operation they are known to be done when this
//! one is. Clocks are short: they keep the latest few lanes and forget the rest, which only leaves a wait in that
//! could have gone. A wait `along` a receive does not wait for its end, so nothing is concluded from it.

use coll_plan::{Op, Wait};

/// Entries that a clock keeps.
const CLOCK_MAX: usize = 16;
/// Entries while it is made.
const WORKING_MAX: usize = 64;

/// `(lane, operation)`: all up to this operation of the lane are done.
type Entry = (u32, u32);

#[derive(Default)]
pub(super) struct Pruner {
    /// Clocks of all operations, one after the other.
    entries: Vec<Entry>,
    /// Where each operation's clock starts.
    starts: Vec<u32>,
    /// The last operation of each lane.
    last: Vec<u32>,
    /// The clock at hand.
    clock: Vec<Entry>,
    kept: Vec<Wait>,
}

impl Pruner {
    /// Takes out what it can: `ops` and `lane_of` are in an order in which every wait is for an earlier operation.
    /// Operations' runs of waits follow each other. Returns how many waits went.
    pub(super) fn prune(
        &mut self,
        ops: &mut [Op],
        lane_of: &[u32],
        lanes: u32,
        waits: &mut Vec<Wait>,
    ) -> u64 {
        self.entries.clear();
        self.starts.clear();
        self.starts.push(0);
        self.last.clear();
        self.last.resize(lanes as usize, u32::MAX);
        let before = waits.len();
        let mut end = 0;
        for (id, op) in ops.iter_mut().enumerate() {
            let lane = lane_of[id];
            self.clock.clear();
            self.know(self.last[lane as usize]);
            self.kept.clear();
            // From the latest: an earlier one may follow from it, never the other way round.
            let (start, stop) = (op.waits.start as usize, op.waits.end as usize);
            for at in (start..stop).rev() {
                let wait = waits[at];
                let on = lane_of[wait.op as usize];
                if self.clock.iter().any(|&(lane, done)| lane == on && done >= wait.op) {
                    continue;
                }
                self.kept.push(wait);
                if !wait.along {
                    self.know(wait.op);
                }
            }
            self.kept.reverse();
            op.waits.start = end as u32;
            waits[end..end + self.kept.len()].copy_from_slice(&self.kept);
            end += self.kept.len();
            op.waits.end = end as u32;
            self.clock.retain(|entry| entry.0 != lane);
            self.clock.push((lane, id as u32));
            self.last[lane as usize] = id as u32;
            self.keep_latest();
            self.entries.extend_from_slice(&self.clock);
            self.starts.push(self.entries.len() as u32);
        }
        waits.truncate(end);
        (before - end) as u64
    }

    /// What is known when `op` is done.
    fn know(&mut self, op: u32) {
        if op == u32::MAX {
            return;
        }
        for at in self.starts[op as usize]..self.starts[op as usize + 1] {
            self.add(self.entries[at as usize]);
        }
    }

    fn add(&mut self, (lane, op): Entry) {
        if let Some(entry) = self.clock.iter_mut().find(|entry| entry.0 == lane) {
            entry.1 = entry.1.max(op);
        } else if self.clock.len() < WORKING_MAX {
            self.clock.push((lane, op));
        }
    }

    fn keep_latest(&mut self) {
        if self.clock.len() > CLOCK_MAX {
            self.clock.sort_unstable_by_key(|&(_, op)| std::cmp::Reverse(op));
            self.clock.truncate(CLOCK_MAX);
        }
    }
}
