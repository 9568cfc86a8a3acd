//! One operation: runs, peer, sides, waits.

use super::PlanError;
use crate::codes::{ALONG, LINK, RANK_TABLE, REGION, SIDES, WAIT};
use crate::{Action, Op, OpId, Plan, RankPlan, Region, Run, Store};

pub(super) fn verify(plan: &Plan, part: &RankPlan, id: OpId, op: &Op) -> Result<(), PlanError> {
    let regions = part.regions.len();
    run("source", op.source, regions)?;
    run("operand", op.operand, regions)?;
    run("target", op.target, regions)?;
    run("waits", op.waits, part.waits.len())?;
    if op.line as usize >= plan.lines.len() {
        let expected = format!("an index below {} into the lines", plan.lines.len());
        return Err(PlanError::new(RANK_TABLE, "line", expected, op.line));
    }
    if let Some((peer, channel)) = op.action.sends_to().or(op.action.receives_from()) {
        link(plan, part.rank, peer, channel)?;
    }
    sides(part, op)?;
    if let Some(at) = part.regions(op.target).iter().position(|r| matches!(r.store, Store::In(_))) {
        let expected = "memory that may be written: `.out`, `.tmp` or a slot";
        return Err(PlanError::new(REGION, format!("target[{at}].store"), expected, "`.in`"));
    }
    waits(part, id, op)
}

fn run(field: &str, run: Run, len: usize) -> Result<(), PlanError> {
    if run.start <= run.end && run.end as usize <= len {
        return Ok(());
    }
    let found = format!("{}..{}", run.start, run.end);
    Err(PlanError::new(RANK_TABLE, field, format!("a run within 0..{len}"), found))
}

fn link(plan: &Plan, rank: u32, peer: u32, channel: u32) -> Result<(), PlanError> {
    if peer >= plan.world() || peer == rank {
        let expected = format!("a rank below {} other than {rank}", plan.world());
        return Err(PlanError::new(LINK, "peer", expected, peer));
    }
    if channel >= plan.channels {
        return Err(PlanError::new(LINK, "channel", format!("a channel below {}", plan.channels), channel));
    }
    Ok(())
}

/// Which sides an action has. All sides that it has list regions of equal shapes.
fn sides(part: &RankPlan, op: &Op) -> Result<(), PlanError> {
    let (source, operand, target) = match op.action {
        Action::Send { .. } => (true, false, false),
        Action::Recv { .. } => (false, false, true),
        Action::RecvReduce { .. } => (false, true, true),
        Action::Copy => (true, false, true),
        Action::Reduce { .. } => (true, true, true),
    };
    let all =
        [("source", source, op.source), ("operand", operand, op.operand), ("target", target, op.target)];
    for (name, has, run) in all {
        if !has && !run.is_empty() {
            let found = format!("{} regions", run.len());
            return Err(PlanError::new(SIDES, name, "no regions, as the action has no such side", found));
        }
    }
    let is_signal_kind = matches!(op.action, Action::Send { .. } | Action::Recv { .. });
    if !is_signal_kind && op.target.is_empty() {
        return Err(PlanError::new(SIDES, "target", "at least one region", "none"));
    }
    let mut sides = all.into_iter().filter(|&(_, has, _)| has);
    let Some((first, _, reference)) = sides.next() else { return Ok(()) };
    for (name, _, run) in sides {
        equal_shapes(first, part.regions(reference), name, part.regions(run))?;
    }
    Ok(())
}

fn equal_shapes(one: &str, a: &[Region], other: &str, b: &[Region]) -> Result<(), PlanError> {
    if a.len() != b.len() {
        let expected = format!("{} regions, as {one} has", a.len());
        return Err(PlanError::new(SIDES, other, expected, format!("{} regions", b.len())));
    }
    let shape = |r: &Region| (r.class, r.low, r.high);
    match a.iter().zip(b).position(|(a, b)| shape(a) != shape(b)) {
        None => Ok(()),
        Some(at) => {
            let words = |r: &Region| format!("class {}, pieces {}..{}", r.class, r.low, r.high);
            let expected = format!("{}, as {one}[{at}] is", words(&a[at]));
            Err(PlanError::new(SIDES, format!("{other}[{at}]"), expected, words(&b[at])))
        }
    }
}

fn waits(part: &RankPlan, id: OpId, op: &Op) -> Result<(), PlanError> {
    let mut followed = None;
    for (at, wait) in part.waits(op).iter().enumerate() {
        let field = format!("waits[{at}]");
        if wait.op == id {
            return Err(PlanError::new(WAIT, field, "another operation", format!("op {id} itself")));
        }
        if !wait.along {
            continue;
        }
        if let Some(first) = followed.replace(wait.op) {
            let expected = format!("one `along`, and there is one on op {first}");
            return Err(PlanError::new(ALONG, field, expected, format!("a second one, on op {}", wait.op)));
        }
        let receive = &part.ops[wait.op as usize];
        if op.action.sends_to().is_none() || receive.action.receives_from().is_none() {
            let found = format!("{} along {}", kind(op.action), kind(receive.action));
            return Err(PlanError::new(ALONG, field, "a send along a receive", found));
        }
        if receive.target.start > receive.target.end || receive.target.end as usize > part.regions.len() {
            return run(&format!("op {} target", wait.op), receive.target, part.regions.len());
        }
        if op.source.is_empty() || part.regions(op.source) != part.regions(receive.target) {
            let expected = format!("the target of op {} as this send's source, region by region", wait.op);
            return Err(PlanError::new(ALONG, field, expected, "other regions"));
        }
    }
    Ok(())
}

fn kind(action: Action) -> &'static str {
    match action {
        Action::Send { .. } => "a send",
        Action::Recv { .. } => "a receive",
        Action::RecvReduce { .. } => "a reducing receive",
        Action::Copy => "a copy",
        Action::Reduce { .. } => "a reduction",
    }
}
