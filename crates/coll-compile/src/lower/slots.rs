//! Physical slots. A value of scratch gets a slot when it is written and gives it back after the step that reads it
//! last; the next value that fits takes it. A slot is only taken again in a later step, so that messages of one
//! step never wait for each other's memory.

use coll_plan::{Shape, SlotDecl};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

#[derive(Default)]
pub(super) struct Slots {
    shapes: Vec<Vec<Shape>>,
    /// Length of the longest shape of each slot.
    length: Vec<f64>,
    /// `(step of last use, slot)`, earliest first.
    taken: BinaryHeap<Reverse<(u32, u32)>>,
    /// Free slots by length: a float that is not negative orders as its bits.
    free: BTreeSet<(u64, u32)>,
}

impl Slots {
    pub(super) fn start(&mut self) {
        self.shapes.clear();
        self.length.clear();
        self.taken.clear();
        self.free.clear();
    }

    /// A slot for a value that is written in `step` and used for the last time in step `last`. The second part of
    /// the answer is true if the slot is new.
    pub(super) fn take(&mut self, shape: Shape, length: f64, step: u32, last: u32) -> (u32, bool) {
        while let Some(&Reverse((until, slot))) = self.taken.peek()
            && until < step
        {
            self.taken.pop();
            self.free.insert((self.length[slot as usize].to_bits(), slot));
        }
        // The shortest that is long enough, else the longest, which grows.
        let fits = self.free.range((length.to_bits(), 0)..).next().or(self.free.last()).copied();
        let slot = match fits {
            Some(found) => {
                self.free.remove(&found);
                found.1
            }
            None => {
                self.shapes.push(Vec::new());
                self.length.push(0.0);
                self.shapes.len() as u32 - 1
            }
        };
        let index = slot as usize;
        self.length[index] = self.length[index].max(length);
        if self.shapes[index].last() != Some(&shape) {
            self.shapes[index].push(shape);
        }
        self.taken.push(Reverse((last, slot)));
        (slot, fits.is_none())
    }

    /// The declarations, and the length of all together in blocks.
    pub(super) fn declare(&mut self) -> (Vec<SlotDecl>, f64) {
        let declared = self.shapes.iter_mut().map(|shapes| {
            shapes.sort_unstable();
            shapes.dedup();
            SlotDecl { shapes: std::mem::take(shapes) }
        });
        (declared.collect(), self.length.iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_taken_again_in_a_later_step_and_the_best_fit_first() {
        let mut slots = Slots::default();
        let shape = |high| Shape { class: 0, low: 0, high };
        let mut take = |high: u32, step, last| slots.take(shape(high), high as f64, step, last);
        assert_eq!([take(4, 0, 1), take(2, 0, 1), take(2, 0, 0)], [(0, true), (1, true), (2, true)]);
        assert_eq!(take(2, 0, 0), (3, true), "step 0 still uses what it wrote");
        assert_eq!([take(3, 1, 1), take(2, 1, 1)], [(3, false), (2, false)], "the longest free one grows");
        assert_eq!(take(2, 2, 2), (1, false));
        assert_eq!(take(4, 2, 2), (0, false));
        assert_eq!(slots.declare().0[3].shapes, [shape(2), shape(3)]);
    }
}
