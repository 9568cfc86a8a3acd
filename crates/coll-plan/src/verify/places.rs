//! What the contract says of each block of one rank, laid out for questions that come millions of times.

use coll_contract::{Blocks, ClassId, Contract};

/// What may be done with a block.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) class: ClassId,
    /// It holds its own value at the start.
    pub(super) given: bool,
    /// Something is asked of it at the end.
    pub(super) ensured: bool,
}

/// One rank's blocks, buffer by buffer.
pub(super) struct Places {
    first_block: Vec<usize>,
    places: Vec<Place>,
}

impl Places {
    /// An empty table; the contract has been verified.
    pub(super) fn new(contract: &Contract) -> Places {
        let mut first_block = Vec::with_capacity(contract.buffers.len());
        let mut total = 0;
        for buffer in &contract.buffers {
            first_block.push(total);
            total += buffer.blocks as usize;
        }
        // The class table has at least one row of this width, so the size is bounded by the input.
        Places { first_block, places: vec![Place::default(); total] }
    }

    /// Writes the table anew for a rank that the contract speaks of.
    pub(super) fn fill(&mut self, contract: &Contract, rank: u32) {
        let row = if contract.only.is_some() { 0 } else { rank as usize * self.places.len() };
        let classes = &contract.classes.table[row..row + self.places.len()];
        for (place, &class) in self.places.iter_mut().zip(classes) {
            *place = Place { class, given: false, ensured: false };
        }
        for (buffer, blocks) in contract.given.iter().enumerate() {
            let start = self.first_block[buffer];
            match blocks {
                Blocks::None => {}
                Blocks::All => {
                    let count = contract.buffers[buffer].blocks as usize;
                    self.places[start..start + count].iter_mut().for_each(|place| place.given = true);
                }
                Blocks::Listed(pairs) => {
                    let from = pairs.partition_point(|&(holder, _)| holder < rank);
                    for &(_, block) in pairs[from..].iter().take_while(|&&(holder, _)| holder == rank) {
                        self.places[start + block as usize].given = true;
                    }
                }
            }
        }
        for ensure in contract.ensures_of(rank) {
            self.places[self.first_block[ensure.buffer as usize] + ensure.block as usize].ensured = true;
        }
    }

    /// A block, which is in range.
    pub(super) fn place(&self, buffer: u32, block: u32) -> Place {
        self.places[self.first_block[buffer as usize] + block as usize]
    }
}
