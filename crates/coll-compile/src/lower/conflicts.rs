//! Which writes of a step must be staged. All that a step reads is what was there when it began. A write to a cell
//! that another transfer of the step reads may therefore not land before that read is over; and a receive may not
//! wait for a send of its own step, or two ranks that exchange a chunk would wait for each other. So such a write
//! goes to a slot, and a copy at the end of the step brings it home.
//!
//! Only reads by local operations that stand before the first write in the step's order need no staging: those the
//! write can wait for.

use super::hazards::NONE;
use std::ops::Range;

#[derive(Default)]
pub(super) struct Conflicts {
    marks: Vec<Mark>,
    stamp: u32,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    /// The step that the reading fields speak of.
    read_in: u32,
    /// Position of the last that reads: [`SEND`] if a send does.
    read_last: u32,
    /// The step that the writing fields speak of.
    written_in: u32,
    /// Position of the first that writes.
    write_first: u32,
    /// The pieces that it writes.
    pieces: (u32, u32),
    /// The slot that holds what is staged, or none yet.
    slot: u32,
}

/// A position behind all others.
pub(super) const SEND: u32 = u32::MAX;

impl Conflicts {
    /// Starts anew with this many cells: of `memory`, then of the program's scratch slots.
    pub(super) fn start(&mut self, cells: usize) {
        self.marks.clear();
        self.marks.resize(cells, Mark::default());
        self.stamp = 0;
    }

    /// The next step.
    pub(super) fn next_step(&mut self) {
        self.stamp += 1;
    }

    /// The step's operation at `position` reads.
    pub(super) fn read(&mut self, cells: Range<usize>, position: u32) {
        for mark in &mut self.marks[cells] {
            let last = if mark.read_in == self.stamp { mark.read_last } else { 0 };
            mark.read_in = self.stamp;
            mark.read_last = last.max(position);
        }
    }

    /// The step's operation at `position` writes these pieces. False if an earlier one writes some of them and not
    /// the same.
    pub(super) fn write(&mut self, cells: Range<usize>, pieces: (u32, u32), position: u32) -> bool {
        let mut equal = true;
        for mark in &mut self.marks[cells] {
            if mark.written_in != self.stamp {
                mark.written_in = self.stamp;
                mark.write_first = position;
                mark.pieces = pieces;
                mark.slot = NONE;
            }
            equal &= mark.pieces == pieces;
        }
        equal
    }

    /// Whether writes to these cells must be staged.
    pub(super) fn is_staged(&self, cells: Range<usize>) -> bool {
        let clash = |mark: &Mark| mark.read_in == self.stamp && mark.read_last >= mark.write_first;
        self.marks[cells].iter().any(clash)
    }

    /// The slot in which writes to these cells are gathered in this step; [`NONE`] at first.
    pub(super) fn slot(&mut self, first_cell: usize) -> &mut u32 {
        &mut self.marks[first_cell].slot
    }
}
