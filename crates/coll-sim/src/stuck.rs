//! What is blocked when nothing can happen any more: the first operation of each lane that is not over.

use crate::engine::{Engine, State};
use crate::table::{NONE, Parts, Table};
use coll_plan::Action;
use std::fmt;

/// An operation that cannot go on, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockedStep {
    /// The rank.
    pub rank: u32,
    /// The lane, as in the plan.
    pub lane: u32,
    /// The operation, as in the plan.
    pub op: u32,
    /// The step of the program.
    pub step: u32,
    /// The source line, if the plan knows it: file and number.
    pub line: Option<(String, u32)>,
    /// What it waits for.
    pub why: String,
}

impl fmt::Display for BlockedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockedStep { rank, lane, op, step, line, why } = self;
        write!(f, "rank {rank}, lane {lane}, op {op}, step {step}")?;
        if let Some((file, line)) = line {
            write!(f, " ({file}:{line})")?;
        }
        write!(f, ": {why}")
    }
}

/// The first operation of each lane that is not over.
pub(crate) fn blocked(parts: &Parts, table: &Table, engine: &Engine) -> Vec<BlockedStep> {
    let mut found = Vec::new();
    for rank in 0..parts.world() {
        let (part, base) = (parts.part(rank), table.bases[rank as usize]);
        for (lane, ops) in (0..).zip(&part.lanes) {
            let Some(op) = (ops.start..ops.end).find(|&op| engine.state(base + op) != State::Done) else {
                continue;
            };
            let what = &part.ops[op as usize];
            found.push(BlockedStep {
                rank,
                lane,
                op,
                step: what.step,
                line: parts.line(rank, what).map(|line| (line.file.clone(), line.line)),
                why: why(parts, table, engine, rank, op),
            });
        }
    }
    found
}

fn why(parts: &Parts, table: &Table, engine: &Engine, rank: u32, op: u32) -> String {
    let (part, base) = (parts.part(rank), table.bases[rank as usize]);
    let what = &part.ops[op as usize];
    if engine.state(base + op) == State::Waits {
        let open = part.waits(what).iter().find(|wait| engine.state(base + wait.op) != State::Done);
        return open.map_or("waits for its turn".into(), |wait| format!("waits for op {}", wait.op));
    }
    let partner = table.partners[(base + op) as usize];
    let other = || {
        let local = table.local(partner);
        match engine.state(partner) {
            State::Waits => format!("op {local}, which has not begun"),
            _ => format!("op {local}"),
        }
    };
    match what.action {
        Action::Send { peer, channel } if partner == NONE => {
            format!("its message to rank {peer} on channel {channel} is never received")
        }
        Action::Send { peer, .. } => format!("its message waits for rank {peer}'s {}", other()),
        Action::Recv { peer, channel } | Action::RecvReduce { peer, channel, .. } if partner == NONE => {
            format!("rank {peer} never sends it a message on channel {channel}")
        }
        Action::Recv { peer, .. } | Action::RecvReduce { peer, .. } => {
            format!("it waits for the message of rank {peer}'s {}", other())
        }
        Action::Copy | Action::Reduce { .. } => "waits for its turn".into(),
    }
}
