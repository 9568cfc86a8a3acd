//! Where a piece lies. A block that is given starts in `.in`; the first local write puts a piece into its home,
//! `.out` if its block is ensured and `.tmp` if not, and there it stays. So nothing is copied first: what was not
//! written yet is read where the caller left it, and a reduction takes one operand from there.
//!
//! Cells are one rank's own here: piece p of its block b is cell `b · pieces + p`, blocks of all buffers in a row.

use coll_contract::{Blocks, BufferRole, Contract};
use coll_ir::{Place, Program};
use coll_plan::{Region, Store};
use std::ops::Range;

pub(super) struct Memory {
    pieces: usize,
    /// Blocks before each buffer.
    first: Vec<usize>,
    blocks: Vec<Block>,
    /// For each cell, whether it lies in its home.
    at_home: Vec<bool>,
}

#[derive(Clone, Copy)]
struct Block {
    buffer: u32,
    /// Its number in the buffer.
    number: u32,
    role: BufferRole,
    given: bool,
    ensured: bool,
    class: u32,
}

impl Memory {
    pub(super) fn new(program: &Program) -> Memory {
        let mut first = Vec::new();
        let mut blocks = Vec::new();
        for (buffer, decl) in program.contract.buffers.iter().enumerate() {
            first.push(blocks.len());
            let new = (0..decl.blocks).map(|number| Block {
                buffer: buffer as u32,
                number,
                role: decl.role,
                given: false,
                ensured: false,
                class: 0,
            });
            blocks.extend(new);
        }
        let pieces = program.cuts.pieces() as usize;
        Memory { pieces, first, at_home: vec![false; blocks.len() * pieces], blocks }
    }

    /// How many cells a rank has.
    pub(super) fn cells(&self) -> usize {
        self.at_home.len()
    }

    /// Starts anew for a rank. `classes` are those of the plan.
    pub(super) fn start(&mut self, contract: &Contract, rank: u32, classes: &[u32]) {
        let row = if contract.only.is_some() { 0 } else { rank as usize * self.blocks.len() };
        let row = &classes[row..];
        for (block, &class) in self.blocks.iter_mut().zip(row) {
            *block = Block { class, given: false, ensured: false, ..*block };
        }
        for (buffer, given) in contract.given.iter().enumerate() {
            let start = self.first[buffer];
            let own = &mut self.blocks[start..start + contract.buffers[buffer].blocks as usize];
            match given {
                Blocks::None => {}
                Blocks::All => own.iter_mut().for_each(|block| block.given = true),
                Blocks::Listed(pairs) => {
                    let from = pairs.partition_point(|&(holder, _)| holder < rank);
                    for &(_, block) in pairs[from..].iter().take_while(|&&(holder, _)| holder == rank) {
                        own[block as usize].given = true;
                    }
                }
            }
        }
        for ensure in contract.ensures_of(rank) {
            self.blocks[self.first[ensure.buffer as usize] + ensure.block as usize].ensured = true;
        }
        for (block, cells) in self.blocks.iter().zip(self.at_home.chunks_mut(self.pieces)) {
            cells.fill(!block.given && block.role != BufferRole::In);
        }
    }

    /// The cells of pieces of a block of the contract's buffers.
    pub(super) fn cells_of(&self, place: Place, low: u32, high: u32) -> Range<usize> {
        let start = self.block_index(place) * self.pieces;
        start + low as usize..start + high as usize
    }

    /// True if nothing ever writes the block, so that reading it needs no care.
    pub(super) fn is_constant(&self, place: Place) -> bool {
        self.blocks[self.block_index(place)].role == BufferRole::In
    }

    /// Where pieces lie now, which is one store for all: see [`Memory::strays`].
    pub(super) fn region(&self, place: Place, low: u32, high: u32) -> Region {
        let index = self.block_index(place);
        match self.at_home[index * self.pieces + low as usize] {
            true => self.home(place, low, high),
            false => self.with_store(index, Store::In(place.buffer), low, high),
        }
    }

    /// Where pieces lie once they are written.
    pub(super) fn home(&self, place: Place, low: u32, high: u32) -> Region {
        let index = self.block_index(place);
        let store = match self.blocks[index].ensured {
            true => Store::Out(place.buffer),
            false => Store::Tmp(place.buffer),
        };
        self.with_store(index, store, low, high)
    }

    /// Pieces have been written.
    pub(super) fn write(&mut self, cells: Range<usize>) {
        self.at_home[cells].fill(true);
    }

    /// If some of the pieces lie at home and some do not, the runs of those that do not.
    pub(super) fn strays(&self, place: Place, low: u32, high: u32, into: &mut Vec<(u32, u32)>) {
        into.clear();
        let cells = &self.at_home[self.cells_of(place, low, high)];
        if high - low < 2 || cells.iter().all(|&home| home == cells[0]) {
            return;
        }
        away(cells, low, into);
    }

    /// Calls `each` with every ensured run of pieces that was given and never written: the result is what was there.
    pub(super) fn untouched(&self, mut each: impl FnMut(Region, Region)) {
        let mut runs = Vec::new();
        for (index, block) in self.blocks.iter().enumerate() {
            if !block.given || !block.ensured || block.role == BufferRole::In {
                continue;
            }
            runs.clear();
            away(&self.at_home[index * self.pieces..(index + 1) * self.pieces], 0, &mut runs);
            for &(low, high) in &runs {
                let region = |store| self.with_store(index, store, low, high);
                each(region(Store::In(block.buffer)), region(Store::Out(block.buffer)));
            }
        }
    }

    fn with_store(&self, index: usize, store: Store, low: u32, high: u32) -> Region {
        Region { store, block: self.blocks[index].number, low, high, class: self.blocks[index].class }
    }

    fn block_index(&self, place: Place) -> usize {
        self.first[place.buffer as usize] + place.block as usize
    }
}

/// Runs of pieces that are not at home; the first is number `low`.
fn away(at_home: &[bool], low: u32, into: &mut Vec<(u32, u32)>) {
    let mut at = low;
    for run in at_home.chunk_by(|a, b| a == b) {
        if !run[0] {
            into.push((at, at + run.len() as u32));
        }
        at += run.len() as u32;
    }
}
