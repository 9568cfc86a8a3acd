//! What remains of a plan for those who only ask how long it takes: messages, local work, and what follows what.

use coll_plan::{Action, OpId, Plan, RankPlan, Run};
use std::collections::HashMap;

/// The sizes that a plan is timed at.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Elements of the blocks of each class.
    pub counts: Vec<u64>,
    /// Bytes of an element.
    pub element_size_bytes: u64,
}

/// What a rank is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Sends a message. The tag tells it from all others of the same two ranks and direction.
    Send { peer: u32, tag: u64, size_bytes: u64 },
    /// Receives one.
    Receive { peer: u32, tag: u64, size_bytes: u64 },
    /// Copies so many bytes.
    Copy { size_bytes: u64 },
    /// Reduces so many bytes.
    Reduce { size_bytes: u64 },
}

/// One piece of work of a rank, and which earlier ones have to be over before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) doing: Doing,
    pub(crate) after: Vec<u32>,
}

/// All ranks' work. What a piece of work follows may stand behind it.
pub(crate) fn work(plan: &Plan, sizes: &Sizes) -> Vec<Vec<Work>> {
    plan.ranks.iter().map(|part| of_rank(plan, part, sizes)).collect()
}

fn of_rank(plan: &Plan, part: &RankPlan, sizes: &Sizes) -> Vec<Work> {
    // A reduction of what comes in is two pieces of work; others are one.
    let mut starts = Vec::with_capacity(part.ops.len());
    let mut next = 0;
    for op in &part.ops {
        starts.push(next);
        next += 1 + u32::from(matches!(op.action, Action::RecvReduce { .. }));
    }
    let last = |op: OpId| starts.get(op as usize + 1).copied().unwrap_or(next) - 1;
    let mut numbers: HashMap<(bool, u32, u32), u64> = HashMap::new();
    let mut tag = |sends: bool, peer: u32, channel: u32| {
        let number = numbers.entry((sends, peer, channel)).or_default();
        *number += 1;
        (*number - 1) * u64::from(plan.channels) + u64::from(channel)
    };
    let mut all = Vec::with_capacity(next as usize);
    let mut lanes = part.lanes.iter();
    let mut lane = lanes.next();
    for (id, op) in (0..).zip(&part.ops) {
        while lane.is_some_and(|lane| lane.end <= id) {
            lane = lanes.next();
        }
        let previous = lane.filter(|lane| id > lane.start).map(|_| id - 1);
        let waits = part.waits(op).iter().map(|wait| wait.op);
        let mut after: Vec<u32> = previous.into_iter().chain(waits).map(last).collect();
        after.sort_unstable();
        after.dedup();
        let source = size_bytes(plan, part, op.source, sizes);
        let target = size_bytes(plan, part, op.target, sizes);
        let doing = match op.action {
            Action::Send { peer, channel } => {
                Doing::Send { peer, tag: tag(true, peer, channel), size_bytes: source }
            }
            Action::Recv { peer, channel } | Action::RecvReduce { peer, channel, .. } => {
                Doing::Receive { peer, tag: tag(false, peer, channel), size_bytes: target }
            }
            Action::Copy => Doing::Copy { size_bytes: target },
            Action::Reduce { .. } => Doing::Reduce { size_bytes: target },
        };
        all.push(Work { doing, after });
        if matches!(op.action, Action::RecvReduce { .. }) {
            let received = all.len() as u32 - 1;
            all.push(Work { doing: Doing::Reduce { size_bytes: target }, after: vec![received] });
        }
    }
    all
}

fn size_bytes(plan: &Plan, part: &RankPlan, run: Run, sizes: &Sizes) -> u64 {
    let elements = part.regions(run).iter().map(|region| {
        let count = sizes.counts.get(region.class as usize).copied().unwrap_or(0);
        plan.cuts[region.high as usize].of(count) - plan.cuts[region.low as usize].of(count)
    });
    elements.sum::<u64>() * sizes.element_size_bytes
}
