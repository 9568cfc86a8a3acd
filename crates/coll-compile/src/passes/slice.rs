//! Cuts every transfer into as many equal parts as `tune slices` says, each a message of its own, so that a rank
//! passes the first part on while the second is still on its way. Scratch slots are cut alike: slot i becomes the
//! slots k·i to k·i + k - 1.

use super::Grouped;
use crate::codes;
use coll_base::{Diagnostic, Fraction};
use coll_ir::{Cuts, Kind, Program, Transfer};
use std::collections::{BTreeMap, BTreeSet};

/// More would only be messages of a few bytes.
const PIECES_MAX: usize = 1 << 20;
const TRANSFERS_MAX: u64 = 1 << 28;

/// Refines the cuts so that each transfer can be cut in `parts`, and cuts them.
pub(crate) fn run(grouped: &mut Grouped<'_>, parts: u32) -> Result<(), Diagnostic> {
    if parts == 1 || grouped.program.transfers.is_empty() {
        return Ok(());
    }
    refuse_if_too_many(&grouped.program, parts)?;
    let program = grouped.program.to_mut();
    let inner = inner_cuts(program, parts)?;
    let all: BTreeSet<Fraction> = program.cuts.0.iter().chain(inner.values().flatten()).copied().collect();
    if all.len() > PIECES_MAX {
        let found = format!("{} pieces for each block; at most {PIECES_MAX}", all.len() - 1);
        return Err(too_fine(program, parts, found));
    }
    let cuts: Vec<Fraction> = all.into_iter().collect();
    let number = |cut: &Fraction| cuts.partition_point(|other| other < cut) as u32;
    let renumbered: BTreeMap<(u32, u32), Vec<u32>> =
        inner.iter().map(|(&pieces, ends)| (pieces, ends.iter().map(number).collect())).collect();

    let scratch_start = program.contract.buffers.len() as u32;
    let old = std::mem::take(&mut program.transfers);
    let mut message = Vec::with_capacity(old.len() * parts as usize);
    program.transfers.reserve(old.len() * parts as usize);
    for (transfer, old_message) in old.into_iter().zip(&grouped.message) {
        if transfer.kind == Kind::Signal {
            program.transfers.push(transfer);
            message.push(old_message * parts);
            continue;
        }
        let ends = &renumbered[&(transfer.low, transfer.high)];
        for part in 0..parts {
            program.transfers.push(part_of(&transfer, part, parts, ends, scratch_start));
            message.push(old_message * parts + part);
        }
    }
    for scratch in &mut program.scratch {
        scratch.slots *= parts;
        scratch.extents.push(parts);
    }
    program.cuts = Cuts(cuts);
    grouped.message = message;
    Ok(())
}

fn part_of(transfer: &Transfer, part: u32, parts: u32, ends: &[u32], scratch_start: u32) -> Transfer {
    let mut new = Transfer { low: ends[part as usize], high: ends[part as usize + 1], ..*transfer };
    for place in [&mut new.source, &mut new.target] {
        if place.buffer >= scratch_start {
            place.block = place.block * parts + part;
        }
    }
    new
}

/// For each run of pieces that some transfer moves, the ends of its parts.
fn inner_cuts(program: &Program, parts: u32) -> Result<BTreeMap<(u32, u32), Vec<Fraction>>, Diagnostic> {
    let mut inner = BTreeMap::new();
    for transfer in program.transfers.iter().filter(|t| t.kind != Kind::Signal) {
        let pieces = (transfer.low, transfer.high);
        if inner.contains_key(&pieces) {
            continue;
        }
        let (low, high) = (program.cuts.0[pieces.0 as usize], program.cuts.0[pieces.1 as usize]);
        let ends = (0..=parts).map(|part| Fraction::between(low, high, part as u64, parts as u64));
        let ends = ends.collect::<Result<Vec<_>, _>>().map_err(|error| {
            let found = format!("{error}, at {low}..{high} of a block");
            too_fine(program, parts, found)
        })?;
        if (inner.len() as u64 + 1) * parts as u64 > 2 * PIECES_MAX as u64 {
            let found = format!("{} runs of pieces in {parts} parts each", inner.len() + 1);
            return Err(too_fine(program, parts, found));
        }
        inner.insert(pieces, ends);
    }
    Ok(inner)
}

fn refuse_if_too_many(program: &Program, parts: u32) -> Result<(), Diagnostic> {
    let transfers = program.transfers.len() as u64 * parts as u64;
    if transfers > TRANSFERS_MAX {
        let found = format!("{transfers} transfers; at most {TRANSFERS_MAX}");
        return Err(too_fine(program, parts, found));
    }
    let slots = program.scratch.iter().map(|scratch| scratch.slots as u64).max().unwrap_or(0);
    if slots * parts as u64 > PIECES_MAX as u64 * 16 {
        let found = format!("{} scratch slots on each rank", slots * parts as u64);
        return Err(too_fine(program, parts, found));
    }
    Ok(())
}

fn too_fine(program: &Program, parts: u32, found: String) -> Diagnostic {
    let message = format!("{parts} slices cut this schedule too finely");
    let refusal = match program.transfers.first() {
        Some(first) => Diagnostic::new(codes::CANNOT_COMPILE, program.origins.span(first.origin), message),
        None => Diagnostic::unplaced(codes::CANNOT_COMPILE, message),
    };
    refusal
        .expected(format!(
            "at most {PIECES_MAX} pieces of a block and {TRANSFERS_MAX} transfers, cut at 64-bit fractions"
        ))
        .found(found)
        .help("tune fewer slices, or give the schedule fewer chunks")
}
