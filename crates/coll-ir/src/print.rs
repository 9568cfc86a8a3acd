//! A program as text, for `--emit program` and for tests of passes: what is printed here, `read` reads back.
//!
//! ```text
//! program allreduce.ring for 4 ranks
//! buffer data: inout
//! given data: all
//! ensure data on 0..4 == reduce data on 0..4
//! cuts 0 1/4 1/2 3/4 1
//!
//! step 0 ; s = 0
//!   reduce 0.data{0..1} into 1.data
//!   reduce 1.data{1..2} into 2.data
//! ```
//!
//! `0.data[2]{4..6}` is pieces 4 and 5 of block 2 of `data` on rank 0; the block is left out where there is only
//! one, the pieces where they are all. A semicolon starts a comment. `class` lines tell which blocks have equal
//! counts, `class on 0..4: 0 1 2..5`; without them block i of every rank is of class i. A transfer's class is
//! written where it is not that of its source's block.

use crate::{Kind, Place, Program, Transfer};
use coll_contract::{Blocks, BufferRole, Contract, Leaf, Value};
use std::fmt::{self, Write};
use std::ops::Range;

/// The text of a program.
pub fn print(program: &Program) -> String {
    let mut text = String::new();
    write_program(&mut text, program).expect("invariant: writing to a string does not fail");
    text
}

/// One transfer as it stands in the text of a program.
pub fn print_transfer(program: &Program, transfer: &Transfer) -> String {
    let (source, target) = (transfer.source, transfer.target);
    let from = || place(program, source);
    let pieces = match transfer.high - transfer.low {
        count if count == program.cuts.pieces() => String::new(),
        _ => format!("{{{}}}", range(transfer.low, transfer.high)),
    };
    let mut text = match transfer.kind {
        Kind::Move => format!("move {}{pieces} to {}", from(), place(program, target)),
        Kind::Reduce => format!("reduce {}{pieces} into {}", from(), place(program, target)),
        Kind::ReduceLeft => format!("reduce left {}{pieces} into {}", from(), place(program, target)),
        Kind::Signal => format!("signal {} to {}", source.rank, target.rank),
        Kind::Drop => format!("drop {}{pieces}", place(program, target)),
    };
    if transfer.kind != Kind::Signal && default_class(program, source) != Some(transfer.class) {
        let _ = write!(text, " class {}", transfer.class);
    }
    text
}

/// The class of a place's block; none for scratch, which has no class of its own.
pub(crate) fn default_class(program: &Program, place: Place) -> Option<u32> {
    let own = !program.is_scratch(place.buffer);
    own.then(|| program.contract.class(place.rank, place.buffer, place.block))
}

fn write_program(text: &mut String, program: &Program) -> fmt::Result {
    let contract = &program.contract;
    write!(text, "program {}.{} for {} ranks", contract.collective, program.schedule, contract.ranks)?;
    match program.rooted {
        true => writeln!(text, ", root {}", program.root)?,
        false => writeln!(text)?,
    }
    for (name, value) in &program.params {
        writeln!(text, "param {name} = {value}")?;
    }
    write_contract(text, contract)?;
    let cuts = program.cuts.0.iter().map(ToString::to_string);
    writeln!(text, "cuts {}", cuts.collect::<Vec<_>>().join(" "))?;
    for scratch in &program.scratch {
        let extents = scratch.extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match scratch.extents.is_empty() {
            true => writeln!(text, "scratch {}", scratch.name)?,
            false => writeln!(text, "scratch {}[{extents}]", scratch.name)?,
        }
    }
    for (word, value) in [("lanes", program.tune.lanes), ("slices", program.tune.slices)] {
        if let Some(value) = value {
            writeln!(text, "tune {word} {value}")?;
        }
    }
    if let Some(dtype) = program.tune.accumulate {
        writeln!(text, "tune accumulate {dtype}")?;
    }
    if let Some(dtype) = program.tune.wire {
        writeln!(text, "tune wire {dtype}")?;
    }
    for stage in &program.stages {
        writeln!(text, "stage {} {}..{}", stage.name, stage.start, stage.end)?;
    }
    write_steps(text, program)
}

fn write_steps(text: &mut String, program: &Program) -> fmt::Result {
    let mut transfers = program.transfers.iter().peekable();
    for (number, step) in program.steps.iter().enumerate() {
        write!(text, "\nstep {number}")?;
        match program.origins.describe(step.origin) {
            bindings if bindings.is_empty() => writeln!(text)?,
            bindings => writeln!(text, " ; {bindings}")?,
        }
        while let Some(transfer) = transfers.next_if(|t| t.step as usize == number) {
            writeln!(text, "  {}", print_transfer(program, transfer))?;
        }
    }
    Ok(())
}

fn write_contract(text: &mut String, contract: &Contract) -> fmt::Result {
    for buffer in &contract.buffers {
        let role = match buffer.role {
            BufferRole::In => "in",
            BufferRole::Out => "out",
            BufferRole::InOut => "inout",
        };
        match buffer.blocks {
            1 => writeln!(text, "buffer {}: {role}", buffer.name)?,
            blocks => writeln!(text, "buffer {}[{blocks}]: {role}", buffer.name)?,
        }
    }
    for (buffer, given) in contract.buffers.iter().zip(&contract.given) {
        write!(text, "given {}:", buffer.name)?;
        match given {
            Blocks::All => write!(text, " all")?,
            Blocks::None => write!(text, " none")?,
            Blocks::Listed(pairs) => {
                for (rank, block) in pairs {
                    write!(text, " {rank}[{block}]")?;
                }
            }
        }
        writeln!(text)?;
    }
    write_classes(text, contract)?;
    write_ensures(text, contract)?;
    let mut pairs = contract.after.iter().copied().peekable();
    while let Some((rank, first)) = pairs.next() {
        let mut others = vec![first];
        while let Some((_, other)) = pairs.next_if(|&(r, _)| r == rank) {
            others.push(other);
        }
        writeln!(text, "after {rank}: {}", runs(&others))?;
    }
    Ok(())
}

fn write_classes(text: &mut String, contract: &Contract) -> fmt::Result {
    let width = contract.blocks_per_rank() as usize;
    if width == 0 {
        return Ok(());
    }
    let rows: Vec<&[u32]> = contract.classes.table.chunks(width).collect();
    if rows.iter().all(|row| row.iter().copied().eq(0..width as u32)) {
        return Ok(());
    }
    let mut start = 0;
    for same in rows.chunk_by(|a, b| a == b) {
        let end = start + same.len() as u32;
        writeln!(text, "class on {}: {}", range(start, end), runs(same[0]))?;
        start = end;
    }
    Ok(())
}

fn write_ensures(text: &mut String, contract: &Contract) -> fmt::Result {
    let mut by_place: Vec<_> =
        contract.ensures.iter().map(|e| (e.buffer, e.block, e.rank, e.value)).collect();
    by_place.sort_unstable();
    let follows = |a: &(u32, u32, u32, u32), b: &(u32, u32, u32, u32)| {
        (a.0, a.1, a.3) == (b.0, b.1, b.3) && a.2 + 1 == b.2
    };
    for same in by_place.chunk_by(follows) {
        let (buffer, block, first, value) = same[0];
        let ranks = first..first + same.len() as u32;
        let value = &contract.values[value as usize];
        let word = if value.is_reduction() { "reduce" } else { "copy" };
        write!(text, "ensure {} == {word} ", blocks_on(contract, buffer, block, ranks))?;
        let follows = |a: &Leaf, b: &Leaf| {
            (a.buffer, a.block) == (b.buffer, b.block) && a.rank.checked_add(1) == Some(b.rank)
        };
        let leaves = match value {
            Value::Copy(leaf) => std::slice::from_ref(leaf),
            Value::Reduce(leaves) => leaves,
        };
        let groups = leaves.chunk_by(follows).map(|run| {
            let ranks = run[0].rank..run[0].rank + run.len() as u32;
            blocks_on(contract, run[0].buffer, run[0].block, ranks)
        });
        writeln!(text, "{}", groups.collect::<Vec<_>>().join(", "))?;
    }
    Ok(())
}

/// `data[2] on 0..4`
fn blocks_on(contract: &Contract, buffer: u32, block: u32, ranks: Range<u32>) -> String {
    let buffer = &contract.buffers[buffer as usize];
    let ranks = range(ranks.start, ranks.end);
    match buffer.blocks {
        1 => format!("{} on {ranks}", buffer.name),
        _ => format!("{}[{block}] on {ranks}", buffer.name),
    }
}

/// `3.data[2]`
fn place(program: &Program, place: Place) -> String {
    let name = program.buffer_name(place.buffer);
    match program.block_count(place.buffer) {
        1 => format!("{}.{name}", place.rank),
        _ => format!("{}.{name}[{}]", place.rank, place.block),
    }
}

/// `4`, or `4..7`
fn range(start: u32, end: u32) -> String {
    if end == start + 1 { start.to_string() } else { format!("{start}..{end}") }
}

/// `0 1 2 5` as `0..3 5`
fn runs(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    runs.map(|run| range(run[0], run[0] + run.len() as u32)).collect::<Vec<_>>().join(" ")
}
