//! One rank's memory, as a foreign schedule numbers it, and what it holds as the schedule runs.

use super::{CellId, Snag};
use coll_contract::Contract;
use coll_plan::{Region, Shape, SlotDecl, Store};
use std::collections::BTreeSet;

/// A piece of a block of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) buffer: u32,
    pub(crate) block: u32,
    pub(crate) piece: u32,
}

/// What a cell is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    /// A piece of the caller's buffers. Where input and output are one memory, both places are there.
    Buffer {
        /// Where it is read until it is written.
        given: Option<Place>,
        /// Where it is written, and then read.
        kept: Option<Place>,
    },
    /// Memory of the schedule's own.
    Scratch,
}

/// What is in a cell: nothing, or a piece of this shape.
const NOTHING: u32 = u32::MAX;

struct Cell {
    memory: Memory,
    holds: u32,
    /// Of scratch, its slot in the plan, from the first write on.
    slot: u32,
}

/// One rank's cells.
pub(crate) struct Cells {
    pieces: u32,
    cells: Vec<Cell>,
    /// The shapes that each slot has held.
    slots: Vec<BTreeSet<u32>>,
    /// For each buffer its first block among all, and what each block is.
    first_block: Vec<u32>,
    blocks: Vec<Block>,
}

/// A block of the rank.
#[derive(Clone, Copy, Default)]
struct Block {
    class: u32,
    given: bool,
    ensured: bool,
}

impl Cells {
    pub(super) fn new(contract: &Contract, pieces: u32, rank: u32, memory: Vec<Memory>) -> Cells {
        let (mut first_block, mut blocks) = (Vec::new(), Vec::new());
        for (buffer, decl) in (0..).zip(&contract.buffers) {
            first_block.push(blocks.len() as u32);
            blocks.extend((0..decl.blocks).map(|block| Block {
                class: contract.class(rank, buffer, block),
                given: contract.is_given(rank, buffer, block),
                ensured: false,
            }));
        }
        for ensure in contract.ensures_of(rank) {
            blocks[(first_block[ensure.buffer as usize] + ensure.block) as usize].ensured = true;
        }
        let cells = memory.into_iter().map(|memory| Cell { memory, holds: NOTHING, slot: 0 }).collect();
        Cells { pieces, cells, slots: Vec::new(), first_block, blocks }
    }

    pub(super) fn add_scratch(&mut self, count: u32) -> CellId {
        let first = self.cells.len() as CellId;
        self.cells.extend((0..count).map(|_| Cell { memory: Memory::Scratch, holds: NOTHING, slot: 0 }));
        first
    }

    fn block(&self, place: Place) -> Block {
        self.blocks[(self.first_block[place.buffer as usize] + place.block) as usize]
    }

    fn shape_of(&self, place: Place) -> u32 {
        self.block(place).class * self.pieces + place.piece
    }

    fn region(&self, store: Store, place: Place) -> Region {
        let class = self.block(place).class;
        Region { store, block: place.block, low: place.piece, high: place.piece + 1, class }
    }

    fn slot_region(&self, slot: u32, shape: u32) -> Region {
        let (class, low) = (shape / self.pieces, shape % self.pieces);
        Region { store: Store::Slot, block: slot, low, high: low + 1, class }
    }

    fn kept_region(&self, place: Place) -> Region {
        let store = if self.block(place).ensured { Store::Out } else { Store::Tmp };
        self.region(store(place.buffer), place)
    }

    /// The place that a read of the cell takes what was given from, if it is one of a buffer that nothing has written.
    pub(super) fn given_place(&self, cell: CellId) -> Option<Place> {
        let cell = &self.cells[cell as usize];
        match cell.memory {
            Memory::Buffer { given, .. } if cell.holds == NOTHING => given,
            _ => None,
        }
    }

    /// The place that a write of the cell goes to, if it is one of a buffer.
    pub(super) fn kept_place(&self, cell: CellId) -> Option<Place> {
        match self.cells[cell as usize].memory {
            Memory::Buffer { kept, .. } => kept,
            Memory::Scratch => None,
        }
    }

    /// A given place, to be read whatever has happened.
    pub(super) fn given_region(&self, place: Place) -> (Region, u32) {
        (self.region(Store::In(place.buffer), place), self.shape_of(place))
    }

    /// Where a cell is read now, and the shape of what is there.
    pub(super) fn read(&mut self, id: CellId) -> Result<(Region, u32), Snag> {
        let cell = &self.cells[id as usize];
        match cell.memory {
            // What was never written has some shape all the same; the proof tells that nothing is there.
            Memory::Scratch if cell.holds == NOTHING => {
                self.write(id, 0).map(|region| (region, 0)).inspect(|_| {
                    self.cells[id as usize].holds = NOTHING;
                })
            }
            Memory::Scratch => Ok((self.slot_region(cell.slot, cell.holds), cell.holds)),
            Memory::Buffer { given, kept } => match (given, kept) {
                (Some(place), _) if cell.holds == NOTHING && self.block(place).given => {
                    Ok(self.given_region(place))
                }
                (_, Some(place)) => Ok((self.kept_region(place), self.shape_of(place))),
                _ => Err(Snag::ReadsNothing(id)),
            },
        }
    }

    /// Writes a piece of some shape into a cell.
    pub(super) fn write(&mut self, id: CellId, shape: u32) -> Result<Region, Snag> {
        let cell = &self.cells[id as usize];
        match cell.memory {
            Memory::Scratch => {
                if cell.slot == 0 {
                    self.slots.push(BTreeSet::new());
                    // Numbered from 1 here, so that 0 is none.
                    self.cells[id as usize].slot = self.slots.len() as u32;
                }
                let cell = &mut self.cells[id as usize];
                cell.holds = shape;
                let slot = cell.slot;
                self.slots[slot as usize - 1].insert(shape);
                Ok(self.slot_region(slot, shape))
            }
            Memory::Buffer { kept: None, .. } => Err(Snag::WritesGiven(id)),
            Memory::Buffer { kept: Some(place), .. } => {
                if shape != self.shape_of(place) {
                    return Err(Snag::OtherPiece(id));
                }
                self.cells[id as usize].holds = shape;
                Ok(self.kept_region(place))
            }
        }
    }

    /// For each cell that nothing has written, and that is input and output at once: where it is given, and where something
    /// is promised of it.
    pub(super) fn what_stays(&self) -> impl Iterator<Item = (Region, Region)> {
        self.cells.iter().filter(|cell| cell.holds == NOTHING).filter_map(|cell| {
            let Memory::Buffer { given: Some(given), kept: Some(kept) } = cell.memory else { return None };
            let stays = self.block(given).given && self.block(kept).ensured;
            let fits = self.shape_of(given) == self.shape_of(kept);
            (stays && fits).then(|| (self.given_region(given).0, self.kept_region(kept)))
        })
    }

    /// The slots, numbered from 0 as plans have them.
    pub(super) fn declare(&self) -> Vec<SlotDecl> {
        let shape = |&shape: &u32| {
            let (class, low) = (shape / self.pieces, shape % self.pieces);
            Shape { class, low, high: low + 1 }
        };
        self.slots.iter().map(|shapes| SlotDecl { shapes: shapes.iter().map(shape).collect() }).collect()
    }
}
