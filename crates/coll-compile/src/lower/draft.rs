//! One rank's operations while they are made, in an order in which each waits only for earlier ones, and how they
//! become a [`RankPlan`]: sorted by lane, with tables in the order of the operations.

use super::hazards::NONE;
use super::prune::Pruner;
use coll_plan::{Action, Lane, Op, OpId, RankPlan, Region, Run, SlotDecl, Wait};

#[derive(Default)]
pub(super) struct Draft {
    ops: Vec<Op>,
    /// For each operation, its lane.
    lane_of: Vec<u32>,
    lanes: u32,
    regions: Vec<Region>,
    waits: Vec<Wait>,
    /// For each lane, the latest operation that the one at hand waits for.
    latest: Vec<OpId>,
    pruner: Pruner,
}

/// The regions of an operation; those that it has none of are empty.
#[derive(Default)]
pub(super) struct Sides {
    pub(super) source: Vec<Region>,
    pub(super) operand: Vec<Region>,
    pub(super) target: Vec<Region>,
}

impl Sides {
    pub(super) fn clear(&mut self) {
        self.source.clear();
        self.operand.clear();
        self.target.clear();
    }
}

/// Where an operation comes from.
#[derive(Clone, Copy)]
pub(super) struct From {
    pub(super) step: u32,
    pub(super) line: u32,
}

impl Draft {
    /// Starts anew.
    pub(super) fn start(&mut self) {
        self.ops.clear();
        self.lane_of.clear();
        self.lanes = 0;
        self.regions.clear();
        self.waits.clear();
        self.latest.clear();
    }

    /// Opens a lane.
    pub(super) fn open_lane(&mut self) -> u32 {
        self.lanes += 1;
        self.latest.push(NONE);
        self.lanes - 1
    }

    /// The number that the next operation gets.
    pub(super) fn next_op(&self) -> OpId {
        self.ops.len() as OpId
    }

    /// If an operation is a receive and its target is just this, in order.
    pub(super) fn receives(&self, op: OpId, target: &[Region]) -> bool {
        let op = &self.ops[op as usize];
        let run = op.target.start as usize..op.target.end as usize;
        op.action.receives_from().is_some() && self.regions[run] == *target
    }

    /// Adds an operation. `before` are those it must wait for, with doubles; it is left empty. `along` is the receive
    /// that it follows, if any. True if it does follow it.
    pub(super) fn add(
        &mut self,
        lane: u32,
        action: Action,
        sides: &Sides,
        before: &mut Vec<OpId>,
        along: OpId,
        from: From,
    ) -> bool {
        let start = self.waits.len() as u32;
        let follows = self.add_waits(lane, before, along);
        let waits = Run { start, end: self.waits.len() as u32 };
        let source = self.add_regions(&sides.source);
        let operand = self.add_regions(&sides.operand);
        let target = self.add_regions(&sides.target);
        self.ops.push(Op { action, source, operand, target, waits, step: from.step, line: from.line });
        self.lane_of.push(lane);
        follows
    }

    /// Of the operations of one lane only the latest is waited for, and none of the own lane.
    fn add_waits(&mut self, own: u32, before: &mut Vec<OpId>, along: OpId) -> bool {
        for &op in before.iter() {
            let latest = &mut self.latest[self.lane_of[op as usize] as usize];
            if *latest == NONE || *latest < op {
                *latest = op;
            }
        }
        let first = self.waits.len();
        let mut follows = false;
        for op in before.drain(..) {
            let lane = self.lane_of[op as usize];
            let latest = std::mem::replace(&mut self.latest[lane as usize], NONE);
            if latest != NONE && lane != own {
                self.waits.push(Wait { op: latest, along: latest == along });
                follows |= latest == along;
            }
        }
        self.waits[first..].sort_unstable();
        follows
    }

    fn add_regions(&mut self, regions: &[Region]) -> Run {
        if regions.is_empty() {
            return Run::default();
        }
        let start = self.regions.len() as u32;
        self.regions.extend_from_slice(regions);
        Run { start, end: self.regions.len() as u32 }
    }

    /// Takes out waits that say nothing new, and returns how many.
    pub(super) fn prune(&mut self) -> u64 {
        self.pruner.prune(&mut self.ops, &self.lane_of, self.lanes, &mut self.waits)
    }

    /// The rank's part, operations sorted by lane.
    pub(super) fn finish(&self, rank: u32, slots: Vec<SlotDecl>) -> RankPlan {
        let mut lanes = vec![Lane { start: 0, end: 0 }; self.lanes as usize];
        for &lane in &self.lane_of {
            lanes[lane as usize].end += 1;
        }
        let mut end = 0;
        for lane in &mut lanes {
            *lane = Lane { start: end, end: end + lane.end };
            end = lane.end;
        }
        let mut next: Vec<u32> = lanes.iter().map(|lane| lane.start).collect();
        let mut new_id = vec![0; self.ops.len()];
        let mut order = vec![0u32; self.ops.len()];
        for (old, &lane) in self.lane_of.iter().enumerate() {
            new_id[old] = next[lane as usize];
            order[next[lane as usize] as usize] = old as u32;
            next[lane as usize] += 1;
        }
        let mut part = RankPlan {
            rank,
            slots,
            lanes,
            ops: Vec::with_capacity(self.ops.len()),
            regions: Vec::with_capacity(self.regions.len()),
            waits: Vec::with_capacity(self.waits.len()),
        };
        for old in order {
            let op = self.lay_out(&self.ops[old as usize], &new_id, &mut part);
            part.ops.push(op);
        }
        part.regions.shrink_to_fit();
        part
    }

    /// Copies an operation's runs behind those that are there; an operand that is the target is not stored twice.
    fn lay_out(&self, op: &Op, new_id: &[OpId], part: &mut RankPlan) -> Op {
        let of = |run: Run| &self.regions[run.start as usize..run.end as usize];
        let source = append(&mut part.regions, of(op.source).iter().copied());
        let in_place = of(op.operand) == of(op.target);
        let operand = match in_place {
            true => Run::default(),
            false => append(&mut part.regions, of(op.operand).iter().copied()),
        };
        let target = append(&mut part.regions, of(op.target).iter().copied());
        let waits = &self.waits[op.waits.start as usize..op.waits.end as usize];
        let renamed = waits.iter().map(|wait| Wait { op: new_id[wait.op as usize], ..*wait });
        let waits = append(&mut part.waits, renamed);
        Op { source, operand: if in_place { target } else { operand }, target, waits, ..*op }
    }
}

fn append<T>(table: &mut Vec<T>, new: impl Iterator<Item = T>) -> Run {
    let start = table.len() as u32;
    table.extend(new);
    match table.len() as u32 {
        end if end == start => Run::default(),
        end => Run { start, end },
    }
}
