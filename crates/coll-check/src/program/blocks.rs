//! A fact about every piece of every block of the contract's buffers, on all ranks. A block is kept as one fact until
//! its pieces differ, so that a program costs memory for the blocks it cuts, and not for all that it could cut.

use coll_contract::Contract;
use coll_ir::Place;

/// One `T` for each piece of each block.
pub(super) struct Blocks<T> {
    pieces: u32,
    width: usize,
    first_block: Vec<u32>,
    states: Vec<State<T>>,
    cut: Vec<T>,
}

#[derive(Clone, Copy)]
enum State<T> {
    Whole(T),
    /// Where the block's pieces start in `cut`.
    Cut(usize),
}

impl<T: Copy> Blocks<T> {
    /// Every piece is `start`.
    pub(super) fn new(contract: &Contract, pieces: u32, start: T) -> Blocks<T> {
        let width = contract.blocks_per_rank() as usize;
        Blocks {
            pieces,
            width,
            first_block: (0..contract.buffers.len() as u32)
                .map(|buffer| contract.first_block(buffer))
                .collect(),
            states: vec![State::Whole(start); width * contract.ranks as usize],
            cut: Vec::new(),
        }
    }

    /// Pieces `low..high` of a block; a single one stands for all of them if they are alike.
    pub(super) fn read(&self, place: Place, low: u32, high: u32) -> &[T] {
        match &self.states[self.index(place)] {
            State::Whole(all) => std::slice::from_ref(all),
            State::Cut(start) => &self.cut[start + low as usize..start + high as usize],
        }
    }

    /// The same to be written. If what will be written is `alike`, a single one may stand for all.
    pub(super) fn write(&mut self, place: Place, low: u32, high: u32, alike: bool) -> &mut [T] {
        let index = self.index(place);
        let keep_whole = alike && low == 0 && high == self.pieces;
        if let State::Whole(all) = self.states[index]
            && !keep_whole
        {
            self.states[index] = State::Cut(self.cut.len());
            self.cut.extend(std::iter::repeat_n(all, self.pieces as usize));
        }
        match &mut self.states[index] {
            State::Whole(all) => std::slice::from_mut(all),
            State::Cut(start) => &mut self.cut[*start + low as usize..*start + high as usize],
        }
    }

    fn index(&self, place: Place) -> usize {
        place.rank as usize * self.width + (self.first_block[place.buffer as usize] + place.block) as usize
    }
}
