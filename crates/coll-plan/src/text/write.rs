//! Writes a plan as text.

use super::runs::{RunOfNumbers, groups, range, runs};
use crate::bytes::version;
use crate::{Action, Op, Plan, Proof, RankPlan, Reference, Region, Run, Store};
use coll_base::Fraction;
use coll_contract::{Blocks, BufferRole, Contract, Leaf, Value};
use std::fmt::Write;

/// A plan's text form. The plan has been verified.
pub fn to_text(plan: &Plan) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = header(&mut text, plan);
    let _ = contract(&mut text, &plan.contract);
    for part in &plan.ranks {
        let _ = rank(&mut text, plan, part);
    }
    text
}

/// What an operation does, as its line in the text form says it, without waits: `recv data.out[0:0..1] from r1
/// channel 0`.
pub fn op_text(plan: &Plan, part: &RankPlan, op: &Op) -> String {
    let list = |run: Run| regions_text(plan, part.rank, part.regions(run));
    let with = || {
        let same = part.regions(op.operand) == part.regions(op.target);
        if same { String::new() } else { format!(" with {}", list(op.operand)) }
    };
    let suffix = |left| if left { "_left" } else { "" };
    match op.action {
        Action::Send { peer, channel } => format!("send {} to r{peer} channel {channel}", list(op.source)),
        Action::Recv { peer, channel } => format!("recv {} from r{peer} channel {channel}", list(op.target)),
        Action::RecvReduce { peer, channel, left } => {
            let target = list(op.target);
            format!("recv_reduce{} {target} from r{peer} channel {channel}{}", suffix(left), with())
        }
        Action::Copy => format!("copy {} to {}", list(op.source), list(op.target)),
        Action::Reduce { left } => {
            format!("reduce{} {} into {}{}", suffix(left), list(op.source), list(op.target), with())
        }
    }
}

/// Regions as the text form writes them: `data.out[0:1..2], slot0[c3:0..4]`, or `nothing`.
pub fn regions_text(plan: &Plan, rank: u32, regions: &[Region]) -> String {
    if regions.is_empty() {
        return "nothing".into();
    }
    regions.iter().map(|region| region_text(plan, rank, region)).collect::<Vec<_>>().join(", ")
}

fn region_text(plan: &Plan, rank: u32, region: &Region) -> String {
    let Region { block, low, high, class, .. } = *region;
    let (buffer, store) = match region.store {
        Store::Slot => return format!("slot{block}[c{class}:{low}..{high}]"),
        Store::In(buffer) => (buffer, "in"),
        Store::Out(buffer) => (buffer, "out"),
        Store::Tmp(buffer) => (buffer, "tmp"),
    };
    let name = plan.contract.buffers.get(buffer as usize).map_or("unknown", |decl| &decl.name);
    let own = class_of(&plan.contract, rank, buffer, block) == Some(class);
    let class = if own { String::new() } else { format!(" class {class}") };
    format!("{name}.{store}[{block}:{low}..{high}{class}]")
}

/// The class that the table has for a block, if the block and the table are there.
pub(super) fn class_of(contract: &Contract, rank: u32, buffer: u32, block: u32) -> Option<u32> {
    let decl = contract.buffers.get(buffer as usize)?;
    let width: usize = contract.buffers.iter().map(|buffer| buffer.blocks as usize).sum();
    let before: usize = contract.buffers[..buffer as usize].iter().map(|buffer| buffer.blocks as usize).sum();
    let row = if contract.only.is_some() { 0 } else { (rank as usize).checked_mul(width)? };
    let at = row.checked_add(before)?.checked_add(block as usize)?;
    if block < decl.blocks { contract.classes.table.get(at).copied() } else { None }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn header(text: &mut String, plan: &Plan) -> std::fmt::Result {
    writeln!(text, "plan {}\nname {}", version(plan), quoted(&plan.name))?;
    for (name, value) in &plan.params {
        writeln!(text, "param {} {value}", quoted(name))?;
    }
    if let Some(root) = plan.root {
        writeln!(text, "root {root}")?;
    }
    writeln!(text, "channels {}\nslots {}", plan.channels, plan.slots)?;
    if plan.slices != 1 {
        writeln!(text, "slices {}", plan.slices)?;
    }
    if let Some(dtype) = plan.accumulate {
        writeln!(text, "accumulate {dtype}")?;
    }
    if let Some(dtype) = plan.wire {
        writeln!(text, "wire {dtype}")?;
    }
    let parts = plan.cuts.len() as u64 - 1;
    if plan.cuts.iter().zip(0..).all(|(&cut, i)| cut == Fraction::new(i, parts)) {
        writeln!(text, "cuts equal {parts}")?;
    } else {
        let cuts = plan.cuts.iter().map(Fraction::to_string).collect::<Vec<_>>();
        writeln!(text, "cuts {}", cuts.join(" "))?;
    }
    // The contract of a whole plan says it by itself.
    if plan.reduces && !plan.is_whole() {
        writeln!(text, "reduces")?;
    }
    if plan.claims.ordered {
        writeln!(text, "claim ordered")?;
    }
    if plan.claims.same_reduction_tree {
        writeln!(text, "claim same_reduction_tree")?;
    }
    if let Some(placement) = &plan.placement {
        writeln!(text, "placement {} order {}", quoted(&placement.topology), placement.words())?;
    }
    proof(text, plan)?;
    for (i, line) in plan.lines.iter().enumerate() {
        writeln!(text, "line {i} {} {}", quoted(&line.file), line.line)?;
    }
    Ok(())
}

/// Where it comes from, and on what it rests.
fn proof(text: &mut String, plan: &Plan) -> std::fmt::Result {
    if let Some(origin) = &plan.origin {
        writeln!(text, "origin {}", quoted(origin))?;
    }
    match &plan.proof {
        None => Ok(()),
        Some(Proof::Whole(hash)) => writeln!(text, "proof whole {}", quoted(hash)),
        Some(Proof::Reference(Reference { hash, counts })) => {
            write!(text, "proof reference {} on", quoted(hash))?;
            for (i, (ranks, root)) in counts.iter().enumerate() {
                write!(text, "{} {ranks} root {root}", if i == 0 { "" } else { "," })?;
            }
            writeln!(text)
        }
    }
}

fn contract(text: &mut String, contract: &Contract) -> std::fmt::Result {
    writeln!(text, "\ncontract {}\nranks {}", quoted(&contract.collective), contract.ranks)?;
    if let Some(only) = contract.only {
        writeln!(text, "only {only}")?;
    }
    for buffer in &contract.buffers {
        let role = match buffer.role {
            BufferRole::In => "in",
            BufferRole::Out => "out",
            BufferRole::InOut => "inout",
        };
        writeln!(text, "buffer {role} {}[{}]", buffer.name, buffer.blocks)?;
    }
    for (buffer, blocks) in contract.buffers.iter().zip(&contract.given) {
        given(text, &buffer.name, blocks)?;
    }
    writeln!(text, "classes {}", contract.classes.count)?;
    classes(text, contract)?;
    values(text, contract)?;
    let ranks = contract.only.map_or(0..contract.ranks, |only| only..only + 1);
    let rows = ranks.map(|rank| {
        let row = contract.ensures_of(rank).iter().map(|e| (e.buffer, e.block, e.value));
        (rank, runs(&row.collect::<Vec<_>>()))
    });
    table(text, contract, "ensure", &groups(rows))?;
    for pairs in contract.after.chunk_by(|a, b| a.0 == b.0) {
        write!(text, "after r{}:", pairs[0].0)?;
        for run in pairs.chunk_by(|a, b| a.1 + 1 == b.1) {
            write!(text, " r{}", range(run[0].1, run[run.len() - 1].1 + 1))?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn given(text: &mut String, name: &str, blocks: &Blocks) -> std::fmt::Result {
    let pairs = match blocks {
        Blocks::All => return writeln!(text, "given {name} all"),
        Blocks::None => return writeln!(text, "given {name} none"),
        Blocks::Listed(pairs) => pairs,
    };
    let runs: Vec<_> = pairs.chunk_by(|a, b| a.0 == b.0 && a.1 + 1 == b.1).collect();
    let mut lines = runs.chunks(12);
    // An empty list is a list still, and other than `none`.
    for line in std::iter::once(lines.next().unwrap_or_default()).chain(lines) {
        write!(text, "given {name}")?;
        for run in line {
            write!(text, " r{}[{}]", run[0].0, range(run[0].1, run[run.len() - 1].1 + 1))?;
        }
        writeln!(text)?;
    }
    Ok(())
}

fn classes(text: &mut String, contract: &Contract) -> std::fmt::Result {
    let places: Vec<(u32, u32)> = contract
        .buffers
        .iter()
        .zip(0..)
        .flat_map(|(buffer, b)| (0..buffer.blocks).map(move |i| (b, i)))
        .collect();
    if places.is_empty() {
        return Ok(());
    }
    let first = contract.only.unwrap_or(0);
    let rows = contract.classes.table.chunks(places.len()).zip(first..).map(|(row, rank)| {
        let row: Vec<_> =
            places.iter().zip(row).map(|(&(buffer, block), &class)| (buffer, block, class)).collect();
        (rank, runs(&row))
    });
    table(text, contract, "class", &groups(rows))
}

fn table(
    text: &mut String,
    contract: &Contract,
    word: &str,
    groups: &[(u32, u32, Vec<RunOfNumbers>)],
) -> std::fmt::Result {
    for (low, high, row) in groups {
        for run in row {
            let name = &contract.buffers[run.buffer as usize].name;
            write!(
                text,
                "{word} r{} {name}[{}] = {}",
                range(*low, *high),
                range(run.low, run.high),
                run.first
            )?;
            if run.step != 0 {
                write!(text, " step {}", run.step)?;
            }
            writeln!(text)?;
        }
    }
    Ok(())
}

fn values(text: &mut String, contract: &Contract) -> std::fmt::Result {
    let leaf = |leaf: &Leaf, high: u32| {
        let name = &contract.buffers[leaf.buffer as usize].name;
        format!("r{}.{name}[{}]", range(leaf.rank, high), leaf.block)
    };
    let mut at = 0;
    while at < contract.values.len() {
        match &contract.values[at] {
            Value::Reduce(leaves) => {
                write!(text, "value {at} = reduce")?;
                let next = |a: &Leaf, b: &Leaf| b == &Leaf { rank: a.rank + 1, ..*a };
                for run in leaves.chunk_by(next) {
                    write!(text, " {}", leaf(&run[0], run[run.len() - 1].rank + 1))?;
                }
                writeln!(text)?;
                at += 1;
            }
            Value::Copy(first) => {
                let (len, rank, block) = copies(&contract.values[at..], first);
                write!(
                    text,
                    "value {} = copy {}",
                    range(at as u32, (at + len) as u32),
                    leaf(first, first.rank + 1)
                )?;
                if len > 1 {
                    write!(
                        text,
                        " next{}{}",
                        if rank { " rank" } else { "" },
                        if block { " block" } else { "" }
                    )?;
                }
                writeln!(text)?;
                at += len;
            }
        }
    }
    Ok(())
}

/// How many copies from the first on go up by a rank, a block, or both.
fn copies(values: &[Value], first: &Leaf) -> (usize, bool, bool) {
    let run = |rank: u32, block: u32| {
        let due = |i: u32| Some((first.rank.checked_add(i * rank)?, first.block.checked_add(i * block)?));
        let follows = |&(i, value): &(u32, &Value)| match value {
            Value::Copy(leaf) => leaf.buffer == first.buffer && Some((leaf.rank, leaf.block)) == due(i),
            Value::Reduce(_) => false,
        };
        (0..).zip(values).take_while(follows).count()
    };
    let ways = [(true, true), (true, false), (false, true)];
    let found = ways.map(|(rank, block)| (run(rank.into(), block.into()), rank, block));
    found.into_iter().reduce(|best, way| if way.0 > best.0 { way } else { best }).unwrap_or((1, true, true))
}

fn rank(text: &mut String, plan: &Plan, part: &RankPlan) -> std::fmt::Result {
    writeln!(text, "\nrank {}", part.rank)?;
    for (i, slot) in part.slots.iter().enumerate() {
        write!(text, "  slot {i}:")?;
        for shape in &slot.shapes {
            write!(text, " c{}[{}..{}]", shape.class, shape.low, shape.high)?;
        }
        writeln!(text)?;
    }
    for (i, lane) in part.lanes.iter().enumerate() {
        writeln!(text, "  lane {i}")?;
        for id in lane.start..lane.end {
            let op = &part.ops[id as usize];
            write!(text, "    op{id} {}", op_text(plan, part, op))?;
            for (at, wait) in part.waits(op).iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                let word = if wait.along { "along" } else { "after" };
                write!(text, "{comma} {word} op{}", wait.op)?;
            }
            writeln!(text, " ; step {} line {}", op.step, op.line)?;
        }
    }
    Ok(())
}
