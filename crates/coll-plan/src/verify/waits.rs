//! Waits and lanes of one rank have no cycle: something can always start, if messages come.
//!
//! Lanes advance like runners who stop at the first wait that is not over. Each operation is started once and each
//! wait looked at once, or once more when it wakes its lane. What has not moved at the end stands in a cycle.

use super::PlanError;
use crate::codes::WAIT;
use crate::{OpId, RankPlan};

const NONE: u32 = u32::MAX;

pub(super) fn end(part: &RankPlan) -> Result<(), PlanError> {
    if part.waits.is_empty() {
        return Ok(());
    }
    let mut runners = Runners::new(part);
    let mut ready: Vec<u32> = (0..part.lanes.len() as u32).collect();
    while let Some(lane) = ready.pop() {
        runners.advance(part, lane, &mut ready);
    }
    match part.lanes.iter().enumerate().find(|&(i, lane)| runners.at[i] < lane.end) {
        None => Ok(()),
        Some((lane, _)) => Err(cycle(part, &runners.at, lane)),
    }
}

struct Runners {
    /// The next operation of each lane.
    at: Vec<OpId>,
    /// The wait, of that operation, to look at next.
    wait: Vec<u32>,
    /// Lanes that wait for an operation: a list through `next`.
    first: Vec<u32>,
    next: Vec<u32>,
    done: Vec<bool>,
}

impl Runners {
    fn new(part: &RankPlan) -> Runners {
        let lanes = part.lanes.len();
        Runners {
            at: part.lanes.iter().map(|lane| lane.start).collect(),
            wait: vec![0; lanes],
            first: vec![NONE; part.ops.len()],
            next: vec![NONE; lanes],
            done: vec![false; part.ops.len()],
        }
    }

    fn advance(&mut self, part: &RankPlan, lane: u32, ready: &mut Vec<u32>) {
        let l = lane as usize;
        while self.at[l] < part.lanes[l].end {
            let op = self.at[l] as usize;
            let waits = part.waits(&part.ops[op]);
            while let Some(wait) = waits.get(self.wait[l] as usize) {
                if !self.done[wait.op as usize] {
                    self.next[l] = std::mem::replace(&mut self.first[wait.op as usize], lane);
                    return;
                }
                self.wait[l] += 1;
            }
            self.done[op] = true;
            let mut sleeper = std::mem::replace(&mut self.first[op], NONE);
            while sleeper != NONE {
                ready.push(sleeper);
                sleeper = std::mem::replace(&mut self.next[sleeper as usize], NONE);
            }
            self.at[l] += 1;
            self.wait[l] = 0;
        }
    }
}

/// Walks from a stuck lane to what it waits for until it comes round, and names the operations on the way.
fn cycle(part: &RankPlan, at: &[OpId], start: usize) -> PlanError {
    let lane_of = |op: OpId| part.lanes.partition_point(|lane| lane.end <= op);
    let stuck = |op: OpId| op >= at[lane_of(op)];
    let mut seen = vec![NONE; part.lanes.len()];
    let mut path: Vec<(OpId, OpId)> = Vec::new();
    let mut lane = start;
    while seen[lane] == NONE {
        seen[lane] = path.len() as u32;
        let waits = part.waits(&part.ops[at[lane] as usize]);
        let Some(wait) = waits.iter().find(|wait| stuck(wait.op)) else { break };
        path.push((at[lane], wait.op));
        lane = lane_of(wait.op);
    }
    let round = path.get(seen[lane] as usize..).unwrap_or_default();
    let words = round.iter().map(|&(op, on)| {
        let head = at[lane_of(on)];
        let behind =
            if head == on { String::new() } else { format!(", which stands behind op {head} in its lane") };
        format!("op {op} waits for op {on}{behind}")
    });
    let found = words.collect::<Vec<_>>().join("; ");
    let first = round.first().map_or(at[start], |&(op, _)| op);
    PlanError::new(WAIT, "waits", "waits that come to an end", found).in_op(first as usize)
}
