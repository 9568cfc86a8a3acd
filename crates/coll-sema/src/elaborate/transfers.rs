//! One transfer statement: a transfer for each chunk of its views.

use super::frame::{Frame, Held, Part};
use super::views::{Selection, too_many};
use super::{Elaborator, TRANSFERS_MAX};
use crate::codes;
use crate::eval::Fault;
use crate::resolved::{Storage, Transfer};
use crate::wording::counted;
use coll_base::Diagnostic;
use coll_ir::{Kind, OriginId, Place};
use std::ops::Range;

/// A run of one block on one rank: what one transfer reads or writes.
#[derive(Clone, Copy)]
struct Run {
    place: Place,
    part: Part,
}

/// A statement's ends: positions, and where its transfers come from.
#[derive(Clone, Copy)]
struct Ends {
    from: u32,
    to: u32,
    origin: OriginId,
}

impl<'m> Elaborator<'m> {
    pub(super) fn transfer(&mut self, frame: &mut Frame<'m>, transfer: &'m Transfer) -> Result<(), Fault> {
        let from = self.position(frame, &transfer.from)?;
        let to = match &transfer.to {
            Some(to) => self.position(frame, to)?,
            None => from,
        };
        let concerns = self.concerns(frame, from, to);
        if !concerns && self.is_known(transfer) {
            return Ok(());
        }
        let Some(source) = &transfer.source else {
            self.saw(transfer, true);
            if !concerns {
                return Ok(());
            }
            let token = |position: u32| Place { rank: frame.members[position as usize], buffer: 0, block: 0 };
            let origin = self.trace.origin(transfer.span);
            let nothing = Part { class: 0, low: 0, high: 0 };
            let runs = [token(from), token(to)].map(|place| Run { place, part: nothing });
            return self.emit(transfer, Ends { from, to, origin }, runs[0], runs[1]);
        };
        let source = self.select(frame, source)?;
        let target = match &transfer.target {
            Some(target) => self.select(frame, target)?,
            None => source.clone(),
        };
        let (reads, writes) = (source.cells.len(), target.cells.len());
        self.saw(transfer, reads > 0 && writes > 0);
        if !concerns {
            return Ok(());
        }
        let ends = Ends { from, to, origin: self.trace.origin(transfer.span) };
        if reads == writes {
            for i in 0..reads {
                self.chunk(frame, transfer, ends, (&source, i..i + 1), (&target, i..i + 1))?;
            }
            return Ok(());
        }
        // A single slot takes a view whole, and gives it back whole.
        if is_slot(&source) || is_slot(&target) {
            if reads == 0 || writes == 0 {
                return Ok(());
            }
            return self.chunk(frame, transfer, ends, (&source, 0..reads), (&target, 0..writes));
        }
        let message = format!("{} onto {writes}", counted(reads, "chunk"));
        let diagnostic = Diagnostic::new(codes::CHUNK_COUNTS, transfer.span, message);
        let help =
            "both ends of a transfer have as many chunks; only a single scratch slot takes a view of several";
        Err(Box::new(diagnostic.expected(counted(reads, "chunk")).found(counted(writes, "chunk")).help(help)))
    }

    /// Chunks that move as one: a single chunk, or all of a view for a slot.
    fn chunk(
        &mut self,
        frame: &Frame<'m>,
        transfer: &Transfer,
        ends: Ends,
        source: (&Selection, Range<u64>),
        target: (&Selection, Range<u64>),
    ) -> Result<(), Fault> {
        let (from, to) = (frame.members[ends.from as usize], frame.members[ends.to as usize]);
        let mut reads = Vec::new();
        if self.is_elsewhere(frame, source.0, ends.from) && matches!(target.0.storage, Storage::Buffer(_)) {
            let mut writes = Vec::new();
            self.runs(frame, transfer, target, (ends.to, to), &mut writes)?;
            reads = self.unknown(frame, source, from, &writes);
            return reads
                .iter()
                .zip(&writes)
                .try_for_each(|(read, write)| self.emit(transfer, ends, *read, *write));
        }
        self.runs(frame, transfer, source.clone(), (ends.from, from), &mut reads)?;
        if let (Storage::Scratch(scratch), Kind::Move) = (target.0.storage, transfer.kind) {
            return self.write_slot(
                frame,
                transfer,
                ends,
                scratch,
                target.0.cells.at(target.1.start),
                &reads,
            );
        }
        let mut writes = Vec::new();
        self.runs(frame, transfer, target.clone(), (ends.to, to), &mut writes)?;
        let shape = |run: &Run| (run.part.low, run.part.high);
        if !reads.iter().map(shape).eq(writes.iter().map(shape)) {
            return Err(self.unequal(frame, transfer, (source, &reads), (target, &writes)));
        }
        reads.iter().zip(&writes).try_for_each(|(read, write)| self.emit(transfer, ends, *read, *write))
    }

    /// Whether a view is of scratch whose content is not followed, as one rank's part is made without the others'.
    fn is_elsewhere(&self, frame: &Frame<'m>, selection: &Selection, position: u32) -> bool {
        let Storage::Scratch(scratch) = selection.storage else { return false };
        self.only.is_some() && !frame.scratch[scratch as usize].positions.contains(&position)
    }

    /// What is read from scratch that is not followed: it has the shape of where it is written, in a right program.
    fn unknown(
        &self,
        frame: &Frame<'m>,
        (selection, cells): (&Selection, Range<u64>),
        rank: u32,
        writes: &[Run],
    ) -> Vec<Run> {
        let Storage::Scratch(scratch) = selection.storage else { return Vec::new() };
        let own = &frame.scratch[scratch as usize];
        // A chunk is read from one slot; what it holds besides its first part lies where `write_slot` puts it.
        let slot = selection.cells.at(cells.start) as u32;
        let place = |k: u32| Place { rank, buffer: own.buffer, block: slot + k * own.slots };
        writes.iter().zip(0..).map(|(write, k)| Run { place: place(k), part: write.part }).collect()
    }

    /// The runs of some cells on a rank, in order. Neighbours in a block that move as one are one run.
    fn runs(
        &self,
        frame: &Frame<'m>,
        transfer: &Transfer,
        (selection, cells): (&Selection, Range<u64>),
        (position, rank): (u32, u32),
        runs: &mut Vec<Run>,
    ) -> Result<(), Fault> {
        let joins = cells.end - cells.start > 1;
        for cell in cells.map(|i| selection.cells.at(i)) {
            match selection.storage {
                Storage::Buffer(buffer) => {
                    let (block, cell) =
                        (cell / u64::from(frame.cells), (cell % u64::from(frame.cells)) as usize);
                    for region in &frame.buffers[buffer as usize].blocks[block as usize] {
                        let place = Place { rank, buffer: region.buffer, block: region.block };
                        let class = self.class_of(place);
                        let part = Part { class, low: region.cuts[cell], high: region.cuts[cell + 1] };
                        push_run(runs, Run { place, part }, joins);
                    }
                }
                Storage::Scratch(scratch) => {
                    let own = &frame.scratch[scratch as usize];
                    let held = own.at(position, cell as u32).map(|at| &own.held[at]);
                    let Some(parts) = held.and_then(Held::parts) else {
                        return Err(empty_slot(frame, transfer, selection.storage, cell, position));
                    };
                    let block = |k: u32| cell as u32 + k * own.slots;
                    let place = |k| Place { rank, buffer: own.buffer, block: block(k) };
                    runs.extend(parts.iter().zip(0..).map(|(&part, k)| Run { place: place(k), part }));
                }
            }
        }
        Ok(())
    }

    /// A slot takes the shape of what is written. What it takes beyond one run goes into blocks of the program's
    /// scratch after the slots proper.
    fn write_slot(
        &mut self,
        frame: &Frame<'m>,
        transfer: &Transfer,
        ends: Ends,
        scratch: u32,
        slot: u64,
        reads: &[Run],
    ) -> Result<(), Fault> {
        let own = &frame.scratch[scratch as usize];
        let rank = frame.members[ends.to as usize];
        for (read, k) in reads.iter().zip(0..) {
            let place = Place { rank, buffer: own.buffer, block: slot as u32 + k * own.slots };
            self.emit(transfer, ends, *read, Run { place, part: read.part })?;
        }
        let parts = &mut self.scratch_parts[own.buffer as usize - self.contract.buffers.len()];
        *parts = (*parts).max(reads.len() as u32);
        let held = match reads {
            [read] => Held::One(read.part),
            _ => Held::Many(reads.iter().map(|read| read.part).collect()),
        };
        if let Some(at) = own.at(ends.to, slot as u32) {
            self.written.push((scratch, at, held));
        }
        Ok(())
    }

    fn emit(&mut self, transfer: &Transfer, ends: Ends, read: Run, write: Run) -> Result<(), Fault> {
        if self.transfers.len() >= TRANSFERS_MAX {
            return Err(too_many(transfer.span));
        }
        self.senders.push(ends.from);
        self.transfers.push(coll_ir::Transfer {
            kind: transfer.kind,
            step: self.steps.len() as u32,
            source: read.place,
            target: write.place,
            low: read.part.low,
            high: read.part.high,
            class: read.part.class,
            origin: ends.origin,
        });
        Ok(())
    }

    fn unequal(
        &self,
        frame: &Frame<'m>,
        transfer: &Transfer,
        (source, reads): ((&Selection, Range<u64>), &[Run]),
        (target, writes): ((&Selection, Range<u64>), &[Run]),
    ) -> Fault {
        let shown = |(selection, cells): (&Selection, Range<u64>)| {
            let (first, last) = (selection.cells.at(cells.start), selection.cells.at(cells.end - 1));
            match first == last {
                true => frame.shown(selection.storage, first),
                false => format!(
                    "{} to {}",
                    frame.shown(selection.storage, first),
                    frame.shown(selection.storage, last)
                ),
            }
        };
        let (source, target) = (shown(source), shown(target));
        let message = format!("{source} onto {target}: they are different parts of a block");
        let diagnostic = Diagnostic::new(codes::UNEQUAL_CHUNKS, transfer.span, message)
            .expected(format!("{target}, which is {}", self.parts(writes)))
            .found(format!("{source}, which is {}", self.parts(reads)))
            .note("chunks of one block may differ by an element, so chunk i fits only chunk i");
        let help =
            "move it onto itself, or give the collective a buffer with a block for each, as in `data[ranks]`";
        Box::new(diagnostic.help(help))
    }

    /// `1/4..1/2 of its block`
    fn parts(&self, runs: &[Run]) -> String {
        let one = |run: &Run| {
            format!("{}..{}", self.cutter.fraction(run.part.low), self.cutter.fraction(run.part.high))
        };
        let mut parts: Vec<String> = runs.iter().take(3).map(one).collect();
        if runs.len() > 3 {
            parts.push("…".to_string());
        }
        match runs.len() {
            0 => "nothing".to_string(),
            1 => format!("{} of its block", parts[0]),
            _ => format!("{} of its blocks", parts.join(", ")),
        }
    }
}

fn push_run(runs: &mut Vec<Run>, run: Run, joins: bool) {
    match runs.last_mut() {
        Some(last) if joins && last.place == run.place && last.part.high == run.part.low => {
            last.part.high = run.part.high
        }
        _ => runs.push(run),
    }
}

/// A view of one slot.
fn is_slot(selection: &Selection) -> bool {
    matches!(selection.storage, Storage::Scratch(_)) && selection.cells.len() == 1
}

fn empty_slot(frame: &Frame<'_>, transfer: &Transfer, storage: Storage, slot: u64, position: u32) -> Fault {
    let shown = frame.shown(storage, slot);
    let message = format!("{shown} holds nothing on rank {position}");
    let diagnostic = Diagnostic::new(codes::EMPTY_SLOT, transfer.span, message);
    let note = "a step reads what was there when it began; what it writes can be read from the next step on";
    Box::new(diagnostic.note(note).help(format!("write {shown} in an earlier step")))
}
