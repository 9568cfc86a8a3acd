//! What every rank holds while a program runs on symbols: the contract's blocks, and the scratch slots in use.

use super::blocks::Blocks;
use super::intern::SpreadMap;
use super::values::{NOTHING, NodeId, Values};
use coll_contract::{Blocks as Given, ClassId, Leaf};
use coll_ir::{Place, Program};

/// A piece's value and how it came to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    /// The value.
    pub(super) value: NodeId,
    /// Messages on the longest path of data that led to it, and in the highest bit whether a message brought it here.
    history: u32,
}

const ARRIVED: u32 = 1 << 31;

impl Cell {
    /// A value that was there from the start.
    pub(super) fn initial(value: NodeId) -> Cell {
        Cell { value, history: 0 }
    }

    /// A value at the end of `depth` messages.
    pub(super) fn new(value: NodeId, depth: u32, arrived: bool) -> Cell {
        Cell { value, history: depth & !ARRIVED | if arrived { ARRIVED } else { 0 } }
    }

    /// Messages on the longest path of data that led to it.
    pub(super) fn depth(self) -> u32 {
        self.history & !ARRIVED
    }

    /// Whether a message brought it to this rank.
    pub(super) fn arrived(self) -> bool {
        self.history & ARRIVED != 0
    }
}

/// The state of all ranks.
pub(super) struct Memory {
    blocks: Blocks<Cell>,
    buffers: u32,
    slot_ids: SpreadMap<Place, u32>,
    slots: Vec<Slot>,
}

struct Slot {
    rank: u32,
    low: u32,
    high: u32,
    class: ClassId,
    cells: Cells,
    largest: (u32, u32),
}

enum Cells {
    Alike(Cell),
    Each(Vec<Cell>),
}

const EMPTY: Cell = Cell { value: NOTHING, history: 0 };

impl Memory {
    /// What the contract gives.
    pub(super) fn new(program: &Program, values: &Values) -> Memory {
        let contract = &program.contract;
        let mut blocks = Blocks::new(contract, program.cuts.pieces(), EMPTY);
        let mut give = |rank: u32, buffer: u32, block: u32| {
            let place = Place { rank, buffer, block };
            let cell = Cell::initial(values.leaf(Leaf { rank, buffer, block }));
            blocks.write(place, 0, program.cuts.pieces(), true)[0] = cell;
        };
        for (buffer, given) in (0..).zip(&contract.given) {
            match given {
                Given::None => {}
                Given::Listed(pairs) => pairs.iter().for_each(|&(rank, block)| give(rank, buffer, block)),
                Given::All => {
                    for rank in 0..contract.ranks {
                        (0..contract.buffers[buffer as usize].blocks)
                            .for_each(|block| give(rank, buffer, block));
                    }
                }
            }
        }
        Memory {
            blocks,
            buffers: contract.buffers.len() as u32,
            slot_ids: SpreadMap::default(),
            slots: Vec::new(),
        }
    }

    /// Appends pieces `low..high` of a place to `out`: a single cell if they are alike.
    pub(super) fn read(&self, place: Place, low: u32, high: u32, out: &mut Vec<Cell>) {
        if place.buffer < self.buffers {
            return out.extend_from_slice(self.blocks.read(place, low, high));
        }
        match self.slot(place) {
            Some(slot) if (slot.low, slot.high) == (low, high) => match &slot.cells {
                Cells::Alike(cell) => out.push(*cell),
                Cells::Each(cells) => out.extend_from_slice(cells),
            },
            Some(slot) => out.extend((low..high).map(|piece| slot.piece(piece))),
            None => out.push(EMPTY),
        }
    }

    /// Pieces `low..high` of a place, to be written; a single one may stand for all if what comes is `alike`. A slot
    /// takes this shape.
    pub(super) fn write(
        &mut self,
        place: Place,
        (low, high): (u32, u32),
        class: ClassId,
        alike: bool,
    ) -> &mut [Cell] {
        if place.buffer < self.buffers {
            return self.blocks.write(place, low, high, alike);
        }
        let fresh = self.slots.len() as u32;
        let id = *self.slot_ids.entry(place).or_insert(fresh);
        if id == fresh {
            let cells = Cells::Alike(EMPTY);
            self.slots.push(Slot { rank: place.rank, low, high, class, cells, largest: (low, high) });
        }
        self.slots[id as usize].shape(low, high, class, alike)
    }

    /// The class of what a slot holds, if it holds anything.
    pub(super) fn slot_class(&self, place: Place) -> Option<ClassId> {
        self.slot(place).map(|slot| slot.class)
    }

    /// For each slot in use its rank and the longest run of pieces it ever held, by `length`.
    pub(super) fn slots_in_use(&self) -> impl Iterator<Item = (u32, (u32, u32))> {
        self.slots.iter().map(|slot| (slot.rank, slot.largest))
    }

    fn slot(&self, place: Place) -> Option<&Slot> {
        self.slot_ids.get(&place).map(|&id| &self.slots[id as usize])
    }
}

impl Slot {
    fn piece(&self, piece: u32) -> Cell {
        match &self.cells {
            _ if piece < self.low || piece >= self.high => EMPTY,
            Cells::Alike(cell) => *cell,
            Cells::Each(cells) => cells[(piece - self.low) as usize],
        }
    }

    fn shape(&mut self, low: u32, high: u32, class: ClassId, alike: bool) -> &mut [Cell] {
        if (self.low, self.high) != (low, high) {
            self.cells = Cells::Alike(EMPTY);
            (self.low, self.high) = (low, high);
            if high - low > self.largest.1 - self.largest.0 {
                self.largest = (low, high);
            }
        }
        self.class = class;
        if let Cells::Alike(cell) = self.cells
            && !alike
        {
            self.cells = Cells::Each(vec![cell; (high - low) as usize]);
        }
        match &mut self.cells {
            Cells::Alike(cell) => std::slice::from_mut(cell),
            Cells::Each(cells) => cells,
        }
    }
}
