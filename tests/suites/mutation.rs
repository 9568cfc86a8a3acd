//! The checker, tested by mutation: every plan of the library at 5 and 8 ranks, with a transfer or a wait dropped,
//! redirected, doubled or moved, is refused, or shown to be equivalent by running it: every operation and every wait of
//! every rank, in each way there is.

mod support;

use coll::library;
use coll_plan::{Action, OpId, Plan, RankPlan, Run};
use libtest_mimic::{Arguments, Failed, Trial};
use support::{Case, library_plan, run_world, seed};

/// Runs that show a mutant equivalent: orders of events, in place and out of place.
const RUNS: u64 = 6;

fn main() {
    let arguments = Arguments::from_args();
    let seed = seed();
    let trials = library::entries().flat_map(|entry| {
        [5, 8].map(|ranks| {
            let name = format!("{}.{} at {ranks}", entry.collective, entry.schedule);
            Trial::test(name, move || check(&entry, ranks, seed))
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn check(entry: &library::Entry, ranks: u32, seed: u64) -> Result<(), Failed> {
    let Some(plan) = library_plan(entry, ranks, ranks - 1) else { return Ok(()) };
    let mutants = mutations(&plan);
    let (mut refused, mut equivalent) = (0, 0);
    for mutation in &mutants {
        let mutant = mutation.apply(&plan);
        if is_refused(&mutant) {
            refused += 1;
            continue;
        }
        shown_equivalent(&mutant, seed)
            .map_err(|message| format!("{mutation:?} is accepted, and wrong: {message}"))?;
        equivalent += 1;
    }
    if refused == 0 && !mutants.is_empty() {
        return Err(format!("none of {equivalent} mutants was refused").into());
    }
    Ok(())
}

fn is_refused(plan: &Plan) -> bool {
    coll_plan::verify(plan).is_err() || coll_check::plan::prove(plan).diagnostics.iter().any(|d| d.is_error())
}

/// Runs in several orders, with small links, in place and out of place.
fn shown_equivalent(plan: &Plan, seed: u64) -> Result<(), String> {
    for run in 0..RUNS {
        let case = Case {
            elements: 61,
            in_place: run % 2 == 0,
            seed: seed + run,
            link_bytes: [3, 64, 4096][run as usize % 3],
            ..Case::new(coll_base::RedOp::Sum, coll_base::DType::I32)
        };
        run_world(plan, &case)?;
    }
    Ok(())
}

/// A change to one rank's part.
#[derive(Clone, Copy, Debug)]
enum Mutation {
    DropOp(u32, OpId),
    DoubleOp(u32, OpId),
    SwapWithNext(u32, OpId),
    RedirectPeer(u32, OpId),
    MoveSource(u32, OpId),
    MoveTarget(u32, OpId),
    MoveOperand(u32, OpId),
    PlainReceive(u32, OpId),
    DropWait(u32, u32),
    RedirectWait(u32, u32),
    FollowOrNot(u32, u32),
}

fn mutations(plan: &Plan) -> Vec<Mutation> {
    let mut all = Vec::new();
    for part in &plan.ranks {
        let rank = part.rank;
        for wait in 0..part.waits.len() as u32 {
            all.extend([
                Mutation::DropWait(rank, wait),
                Mutation::RedirectWait(rank, wait),
                Mutation::FollowOrNot(rank, wait),
            ]);
        }
        for op in 0..part.ops.len() as OpId {
            all.extend([
                Mutation::DropOp(rank, op),
                Mutation::DoubleOp(rank, op),
                Mutation::RedirectPeer(rank, op),
            ]);
            let ends_lane = part.lanes.iter().any(|lane| lane.end == op + 1);
            if !ends_lane {
                all.push(Mutation::SwapWithNext(rank, op));
            }
            let known = &part.ops[op as usize];
            if !known.source.is_empty() {
                all.push(Mutation::MoveSource(rank, op));
            }
            if !known.target.is_empty() {
                all.push(Mutation::MoveTarget(rank, op));
            }
            if !known.operand.is_empty() {
                all.push(Mutation::MoveOperand(rank, op));
            }
            if matches!(known.action, Action::RecvReduce { .. }) {
                all.push(Mutation::PlainReceive(rank, op));
            }
        }
    }
    all
}

impl Mutation {
    fn apply(self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        let (pieces, world) = (plan.pieces(), plan.world());
        match self {
            Mutation::DropOp(rank, op) => remove(&mut plan.ranks[rank as usize], op),
            Mutation::DoubleOp(rank, op) => double(&mut plan.ranks[rank as usize], op),
            Mutation::SwapWithNext(rank, op) => swap(&mut plan.ranks[rank as usize], op),
            Mutation::RedirectPeer(rank, op) => {
                let action = &mut plan.ranks[rank as usize].ops[op as usize].action;
                if let Action::Send { peer, .. }
                | Action::Recv { peer, .. }
                | Action::RecvReduce { peer, .. } = action
                {
                    *peer = (1..world)
                        .map(|step| (*peer + step) % world)
                        .find(|&peer| peer != rank)
                        .unwrap_or(*peer);
                }
            }
            Mutation::MoveSource(rank, op) => shift(&mut plan.ranks[rank as usize], pieces, |o| o.source, op),
            Mutation::MoveTarget(rank, op) => shift(&mut plan.ranks[rank as usize], pieces, |o| o.target, op),
            Mutation::MoveOperand(rank, op) => {
                shift(&mut plan.ranks[rank as usize], pieces, |o| o.operand, op)
            }
            Mutation::PlainReceive(rank, op) => {
                let op = &mut plan.ranks[rank as usize].ops[op as usize];
                if let Action::RecvReduce { peer, channel, .. } = op.action {
                    op.action = Action::Recv { peer, channel };
                    op.operand = Run::default();
                }
            }
            Mutation::DropWait(rank, wait) => drop_wait(&mut plan.ranks[rank as usize], wait),
            Mutation::RedirectWait(rank, wait) => {
                let part = &mut plan.ranks[rank as usize];
                let ops = part.ops.len() as OpId;
                let wait = &mut part.waits[wait as usize];
                wait.op = (wait.op + 1) % ops;
                wait.along = false;
            }
            Mutation::FollowOrNot(rank, wait) => {
                let wait = &mut plan.ranks[rank as usize].waits[wait as usize];
                wait.along = !wait.along;
            }
        }
        plan
    }
}

/// Takes an operation out; what waited for it waits no more.
fn remove(part: &mut RankPlan, op: OpId) {
    rebuild_waits(part, |_, wait| wait != op);
    part.ops.remove(op as usize);
    for lane in &mut part.lanes {
        lane.start -= u32::from(lane.start > op);
        lane.end -= u32::from(lane.end > op);
    }
    part.lanes.retain(|lane| lane.start < lane.end);
    for wait in &mut part.waits {
        wait.op -= u32::from(wait.op > op);
    }
}

/// Puts an operation in twice, one after the other.
fn double(part: &mut RankPlan, op: OpId) {
    part.ops.insert(op as usize + 1, part.ops[op as usize]);
    for lane in &mut part.lanes {
        lane.start += u32::from(lane.start > op);
        lane.end += u32::from(lane.end > op);
    }
    for wait in &mut part.waits {
        wait.op += u32::from(wait.op > op);
    }
}

/// Changes places with the next operation of the lane; waits follow the operation.
fn swap(part: &mut RankPlan, op: OpId) {
    part.ops.swap(op as usize, op as usize + 1);
    for wait in &mut part.waits {
        match wait.op {
            at if at == op => wait.op = op + 1,
            at if at == op + 1 => wait.op = op,
            _ => {}
        }
    }
}

/// Moves a run's first region to the next piece, or to the next block where there is one piece only.
fn shift(part: &mut RankPlan, pieces: u32, run: impl Fn(&coll_plan::Op) -> Run, op: OpId) {
    let run = run(&part.ops[op as usize]);
    let mut regions = part.regions(run).to_vec();
    match regions[0].high < pieces {
        true => (regions[0].low, regions[0].high) = (regions[0].low + 1, regions[0].high + 1),
        false if regions[0].low > 0 => {
            (regions[0].low, regions[0].high) = (regions[0].low - 1, regions[0].high - 1)
        }
        false => regions[0].block = if regions[0].block == 0 { 1 } else { regions[0].block - 1 },
    }
    let start = part.regions.len() as u32;
    part.regions.extend(regions);
    let moved = Run { start, end: part.regions.len() as u32 };
    let op = &mut part.ops[op as usize];
    for place in [&mut op.source, &mut op.target, &mut op.operand] {
        if *place == run {
            *place = moved;
            break;
        }
    }
}

fn drop_wait(part: &mut RankPlan, dropped: u32) {
    rebuild_waits(part, |at, _| at != dropped);
}

/// Keeps the waits that pass a test of their index and what they wait for.
fn rebuild_waits(part: &mut RankPlan, keep: impl Fn(u32, OpId) -> bool) {
    let mut waits = Vec::new();
    for op in &mut part.ops {
        let start = waits.len() as u32;
        for at in op.waits.start..op.waits.end {
            let wait = part.waits[at as usize];
            if keep(at, wait.op) {
                waits.push(wait);
            }
        }
        op.waits = Run { start, end: waits.len() as u32 };
    }
    part.waits = waits;
}
