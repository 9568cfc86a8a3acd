//! Dense numbers for all that a program touches, so that analyses keep their state in flat tables.
//!
//! A **cell** is one piece of a block of the contract's buffers on one rank, or one whole slot of a scratch (slots
//! are written and read whole). Only blocks that some transfer names get numbers, so the tables grow with the
//! program and not with ranks × blocks × pieces.

use crate::{Kind, Place, Program, Transfer};
use std::ops::Range;

/// The numbering for one program.
#[derive(Clone, Debug)]
pub struct Cells {
    /// First cell of each block, rank by rank; [`Cells::UNTOUCHED`] for those that no transfer names.
    first: Vec<usize>,
    /// Blocks before each buffer on one rank.
    before: Vec<usize>,
    blocks_per_rank: usize,
    scratch_start: u32,
    pieces: usize,
    count: usize,
}

impl Cells {
    const UNTOUCHED: usize = usize::MAX;

    /// Numbers the cells that a program's transfers name. The program has passed verification.
    pub fn of(program: &Program) -> Cells {
        let scratch_start = program.contract.buffers.len() as u32;
        let buffers = scratch_start + program.scratch.len() as u32;
        let mut before = Vec::with_capacity(buffers as usize);
        let mut blocks_per_rank = 0;
        for buffer in 0..buffers {
            before.push(blocks_per_rank);
            blocks_per_rank += program.block_count(buffer) as usize;
        }
        let mut cells = Cells {
            first: vec![Cells::UNTOUCHED; blocks_per_rank * program.ranks() as usize],
            before,
            blocks_per_rank,
            scratch_start,
            pieces: program.cuts.pieces() as usize,
            count: 0,
        };
        for transfer in program.transfers.iter().filter(|t| t.kind != Kind::Signal) {
            cells.touch(transfer.source);
            cells.touch(transfer.target);
        }
        cells
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The cells of a transfer's source.
    pub fn source(&self, transfer: &Transfer) -> Range<usize> {
        self.range(transfer.source, transfer.low, transfer.high)
    }

    /// The cells of a transfer's target.
    pub fn target(&self, transfer: &Transfer) -> Range<usize> {
        self.range(transfer.target, transfer.low, transfer.high)
    }

    /// All cells of a block; none if no transfer names it.
    pub fn block(&self, place: Place) -> Range<usize> {
        self.range(place, 0, self.pieces as u32)
    }

    fn range(&self, place: Place, low: u32, high: u32) -> Range<usize> {
        match self.first[self.position(place)] {
            Cells::UNTOUCHED => 0..0,
            first if place.buffer >= self.scratch_start => first..first + 1,
            first => first + low as usize..first + high as usize,
        }
    }

    fn touch(&mut self, place: Place) {
        let position = self.position(place);
        if self.first[position] == Cells::UNTOUCHED {
            self.first[position] = self.count;
            self.count += if place.buffer >= self.scratch_start { 1 } else { self.pieces };
        }
    }

    fn position(&self, place: Place) -> usize {
        place.rank as usize * self.blocks_per_rank + self.before[place.buffer as usize] + place.block as usize
    }
}
