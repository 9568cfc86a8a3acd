//! The program's scratch: which physical slot holds what a slot of the program holds now, and until when that is
//! used. A value lives from the write of a whole slot to the last step that reads it or reduces into it, which is
//! looked up before the rank's first operation is made.

use super::hazards::NONE;
use coll_ir::{Kind, Place, Program};

pub(super) struct Scratch<'s> {
    program: &'s Program,
    /// Slots of scratch before each, on one rank.
    first: Vec<usize>,
    /// For each slot, the physical one that holds its value, or [`NONE`].
    now: Vec<u32>,
    /// For each slot, the step in which the value that it holds now is used last.
    until: Vec<u32>,
    /// For each write of a whole slot, in order, the step in which that value is used last.
    lives: Vec<u32>,
    /// How many of those have happened.
    written: usize,
    /// What holds from the end of the step on: `(slot, physical slot)`.
    pending: Vec<(usize, u32)>,
}

impl<'s> Scratch<'s> {
    pub(super) fn new(program: &'s Program) -> Scratch<'s> {
        let mut first = Vec::new();
        let mut slots = 0;
        for scratch in &program.scratch {
            first.push(slots);
            slots += scratch.slots as usize;
        }
        Scratch {
            program,
            first,
            now: vec![NONE; slots],
            until: vec![0; slots],
            lives: Vec::new(),
            written: 0,
            pending: Vec::new(),
        }
    }

    /// Starts anew for a rank, and works out how long what is written into its slots is used.
    pub(super) fn start(&mut self, rank: u32, agenda: &[u32]) {
        self.now.fill(NONE);
        self.until.fill(0);
        self.lives.clear();
        self.written = 0;
        self.pending.clear();
        if self.now.is_empty() {
            return;
        }
        let transfers = &self.program.transfers;
        let mut life = vec![NONE; self.now.len()];
        let here = |place: Place| place.rank == rank && self.program.is_scratch(place.buffer);
        for step in agenda.chunk_by(|&a, &b| transfers[a as usize].step == transfers[b as usize].step) {
            let each = || step.iter().map(|&id| &transfers[id as usize]).filter(|t| t.carries_data());
            for transfer in each() {
                let reduces = transfer.kind != Kind::Move;
                let uses = [(true, transfer.source), (reduces, transfer.target)].into_iter();
                for (_, place) in uses.filter(|&(uses, place)| uses && here(place)) {
                    let life = life[self.index(place)];
                    if let Some(last) = self.lives.get_mut(life as usize) {
                        *last = transfer.step;
                    }
                }
            }
            let moves = each().filter(|t| t.kind == Kind::Move && t.source != t.target);
            for transfer in moves.filter(|t| here(t.target)) {
                life[self.index(transfer.target)] = self.lives.len() as u32;
                self.lives.push(transfer.step);
            }
        }
    }

    /// How many slots a rank has.
    pub(super) fn slots(&self) -> usize {
        self.now.len()
    }

    /// A place of scratch as a number below [`Scratch::slots`].
    pub(super) fn index(&self, place: Place) -> usize {
        self.first[place.buffer as usize - self.program.contract.buffers.len()] + place.block as usize
    }

    /// The physical slot that a read of this step finds, or [`NONE`].
    pub(super) fn now(&self, slot: usize) -> u32 {
        self.now[slot]
    }

    /// A value is in a physical slot from now on; or, while the step still reads the old one, from its end.
    pub(super) fn hold(&mut self, slot: usize, physical: u32, staged: bool) {
        match staged {
            true => self.pending.push((slot, physical)),
            false => self.now[slot] = physical,
        }
    }

    /// Until when the value is used that is written into a slot next; a reduction goes on with the one that is there.
    pub(super) fn until(&mut self, slot: usize, step: u32, anew: bool) -> u32 {
        if anew {
            self.until[slot] = self.lives.get(self.written).copied().unwrap_or(step);
            self.written += 1;
        }
        self.until[slot].max(step)
    }

    /// The step has ended.
    pub(super) fn end_step(&mut self) {
        for (slot, physical) in self.pending.drain(..) {
            self.now[slot] = physical;
        }
    }
}
