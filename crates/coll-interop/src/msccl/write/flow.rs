//! A plan's operations in an order in which they can run, sends of what a receive brings fused with it where that leaves the
//! order of messages as it is.

use crate::course::{by_levels, running_order};
use crate::grid::Grid;
use crate::msccl::kind::Kind;
use coll_plan::{Action, Op, OpId, Plan, Region};
use std::collections::HashMap;

/// An operation, or a receive with the send that follows it.
pub(super) struct Move {
    pub(super) rank: u32,
    /// One operation, or a receive and its send.
    pub(super) ops: Vec<OpId>,
}

/// A connection of the plan: sender, receiver, channel.
pub(super) type Link = (u32, u32, u32);

/// A step to be written: its kind, the regions it reads and writes with how far into each, and its chunks.
pub(super) type StepOf = (Kind, Option<(Region, u32)>, Option<(Region, u32)>, u32);

/// All moves, rank by rank, each rank's in the order of running.
pub(super) struct Flow {
    moves: Vec<Vec<Move>>,
}

impl Flow {
    pub(super) fn of(plan: &Plan, fuse: bool) -> Option<Flow> {
        let order = running_order(plan)?;
        let order = if fuse { by_levels(plan, &order) } else { order };
        let mut place: Vec<Vec<u32>> = plan.ranks.iter().map(|part| vec![0; part.ops.len()]).collect();
        for (&(rank, op), at) in order.iter().zip(0..) {
            place[rank as usize][op as usize] = at;
        }
        let fused = plan.ranks.iter().map(|part| match fuse {
            true => fused(plan, part.rank, &place[part.rank as usize]),
            false => HashMap::new(),
        });
        let fused: Vec<HashMap<OpId, OpId>> = fused.collect();
        let mut moves: Vec<Vec<Move>> = plan.ranks.iter().map(|_| Vec::new()).collect();
        let mut sent: Vec<Vec<bool>> = plan.ranks.iter().map(|part| vec![false; part.ops.len()]).collect();
        for (rank, op) in order {
            let r = rank as usize;
            if sent[r][op as usize] {
                continue;
            }
            let mut ops = vec![op];
            if let Some(&send) = fused[r].get(&op) {
                ops.push(send);
                sent[r][send as usize] = true;
            }
            moves[r].push(Move { rank, ops });
        }
        Some(Flow { moves })
    }

    /// Takes those apart again that pass on between connections which have no thread block in common. The send stays where
    /// it is, right behind its receive.
    pub(super) fn split(&mut self, plan: &Plan, joined: impl Fn(Link, Link) -> bool) {
        for moves in &mut self.moves {
            let taken = std::mem::take(moves);
            for moved in taken {
                let (into, out) = (moved.incoming(plan), moved.outgoing(plan));
                match into.zip(out).is_none_or(|(into, out)| joined(into, out)) {
                    true => moves.push(moved),
                    false => {
                        moves.extend(moved.ops.iter().map(|&op| Move { rank: moved.rank, ops: vec![op] }))
                    }
                }
            }
        }
    }

    /// A rank's moves.
    pub(super) fn of_rank(&self, rank: u32) -> &[Move] {
        &self.moves[rank as usize]
    }

    /// All ranks' moves.
    pub(super) fn of_all(&self) -> impl Iterator<Item = &Move> {
        self.moves.iter().flatten()
    }

    /// Operations that have to be over before a move starts: those it waits for, and those before it in their lanes.
    pub(super) fn causes(&self, plan: &Plan, moved: &Move) -> Vec<OpId> {
        let part = &plan.ranks[moved.rank as usize];
        let mut causes = Vec::new();
        for &op in &moved.ops {
            causes.extend(part.waits(&part.ops[op as usize]).iter().map(|wait| wait.op));
            let lane = part.lanes.partition_point(|lane| lane.end <= op);
            if op > part.lanes[lane].start {
                causes.push(op - 1);
            }
        }
        causes.retain(|cause| !moved.ops.contains(cause));
        causes
    }
}

/// For receives, the send that is fused with each: one that sends just what the receive brings, is the next on its connection,
/// and waits for nothing that comes later than the receive.
fn fused(plan: &Plan, rank: u32, place: &[u32]) -> HashMap<OpId, OpId> {
    let part = &plan.ranks[rank as usize];
    let mut followers: HashMap<OpId, OpId> = HashMap::new();
    let mut sends: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
    for (id, op) in (0..).zip(&part.ops) {
        if let Some(link) = op.action.sends_to() {
            sends.entry(link).or_default().push(place[id as usize]);
        }
    }
    sends.values_mut().for_each(|places| places.sort_unstable());
    for (send, op) in (0..).zip(&part.ops) {
        let Some(link) = op.action.sends_to() else { continue };
        let lane = part.lanes.partition_point(|lane| lane.end <= send);
        let previous = (send > part.lanes[lane].start).then(|| send - 1);
        let waits = part.waits(op).iter().map(|wait| wait.op);
        let brings = |&cause: &OpId| {
            let cause = &part.ops[cause as usize];
            cause.action.receives_from().is_some() && part.regions(cause.target) == part.regions(op.source)
        };
        let Some(receive) = waits.clone().chain(previous).find(brings) else { continue };
        let (from, to) = (place[receive as usize], place[send as usize]);
        let between = &sends[&link];
        let overtakes = between.partition_point(|&at| at < from) != between.partition_point(|&at| at < to);
        let is_early = |cause: OpId| cause == receive || place[cause as usize] < from;
        if !overtakes && waits.chain(previous).all(is_early) && !followers.contains_key(&receive) {
            followers.insert(receive, send);
        }
    }
    followers
}

impl Move {
    fn op<'p>(&self, plan: &'p Plan, at: usize) -> Option<&'p Op> {
        self.ops.get(at).map(|&op| &plan.ranks[self.rank as usize].ops[op as usize])
    }

    /// The connection that it sends over.
    pub(super) fn outgoing(&self, plan: &Plan) -> Option<Link> {
        let (peer, channel) = self.op(plan, self.ops.len() - 1)?.action.sends_to()?;
        Some((self.rank, peer, channel))
    }

    /// The connection that it receives over.
    pub(super) fn incoming(&self, plan: &Plan) -> Option<Link> {
        let (peer, channel) = self.op(plan, 0)?.action.receives_from()?;
        Some((peer, self.rank, channel))
    }

    /// Its steps, region by region, none of too many chunks.
    pub(super) fn steps(&self, plan: &Plan, grid: &Grid, chunks_max: u32) -> Vec<StepOf> {
        let part = &plan.ranks[self.rank as usize];
        let Some(op) = self.op(plan, 0) else { return Vec::new() };
        let sends = self.ops.len() > 1;
        let (source, target) = (part.regions(op.source), part.regions(op.target));
        let operand = part.regions(op.operand);
        let sides = |kind: Kind, source: &[Region], target: &[Region]| {
            let count = source.len().max(target.len());
            (0..count)
                .flat_map(|at| {
                    pieces(kind, source.get(at).copied(), target.get(at).copied(), grid, chunks_max)
                })
                .collect::<Vec<StepOf>>()
        };
        match op.action {
            Action::Send { .. } => sides(Kind::Send, source, &[]),
            Action::Recv { .. } if sends => sides(Kind::ReceiveCopySend, &[], target),
            Action::Recv { .. } => sides(Kind::Receive, &[], target),
            Action::RecvReduce { .. } if sends => sides(Kind::ReceiveReduceCopySend, operand, target),
            Action::RecvReduce { .. } => sides(Kind::ReceiveReduceCopy, operand, target),
            Action::Copy => sides(Kind::Copy, source, target),
            // In the form the target is an operand; which of both is does not matter to what commutes.
            Action::Reduce { .. } if operand == target => sides(Kind::Reduce, source, target),
            Action::Reduce { .. } if source == target => sides(Kind::Reduce, operand, target),
            Action::Reduce { .. } => {
                let mut steps = sides(Kind::Copy, operand, target);
                steps.extend(sides(Kind::Reduce, source, target));
                steps
            }
        }
    }
}

/// One region, in steps of so many chunks at most.
fn pieces(
    kind: Kind,
    source: Option<Region>,
    target: Option<Region>,
    grid: &Grid,
    chunks_max: u32,
) -> Vec<StepOf> {
    let all = source.or(target).map_or(0, |region| grid.length(&region));
    let starts = (0..all).step_by(chunks_max as usize);
    let step = |skip: u32| {
        let count = chunks_max.min(all - skip);
        (kind, source.map(|region| (region, skip)), target.map(|region| (region, skip)), count)
    };
    starts.map(step).collect()
}
