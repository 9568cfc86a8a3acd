//! Copies and reductions within a rank, a turn's worth at a time.

use crate::Transport;
use crate::code::{BoundOp, Side};
use crate::memory::Segment;
use crate::run::{Engine, TURN_BYTES, Turn};

impl<T: Transport> Engine<'_, '_, '_, T> {
    /// `target := source`. What is already there, as in a call in place, is not touched.
    pub(crate) fn copy(&mut self, lane: u32, op: &BoundOp) -> Turn {
        let cursor = &mut self.state.lanes[lane as usize].cursor;
        let (sources, targets) = (self.code.segments(op.source), self.code.segments(op.target));
        let mut turn_bytes = 0;
        while let Some(&target) = targets.get(cursor.segment) {
            if turn_bytes >= TURN_BYTES {
                return Turn::Again;
            }
            let source = sources[cursor.segment];
            // A segment that need not be copied takes no time, however long it is.
            let len = if source == target { target.len } else { TURN_BYTES - turn_bytes };
            let part = target.part(cursor.offset, len);
            if source != target {
                self.memory.copy(part, source.part(cursor.offset, part.len), op.past_cache);
                turn_bytes += part.len;
            }
            cursor.advance(target.len, part.len);
        }
        Turn::Done
    }

    /// `target := operand ⊕ source`.
    pub(crate) fn reduce(&mut self, lane: u32, op: &BoundOp, side: Side) -> Turn {
        let piece_bytes = self.staging.len() / self.element_bytes * self.element_bytes;
        let mut turn_bytes = 0;
        loop {
            let cursor = self.state.lanes[lane as usize].cursor;
            let Some(&target) = self.code.segments(op.target).get(cursor.segment) else { return Turn::Done };
            if turn_bytes >= TURN_BYTES {
                return Turn::Again;
            }
            let part = |segment: &Segment| segment.part(cursor.offset, piece_bytes);
            let source = part(&self.code.segments(op.source)[cursor.segment]);
            let operand = self.code.segments(op.operand).get(cursor.segment).map_or(part(&target), part);
            self.reduce_piece(part(&target), operand, source, side);
            self.state.lanes[lane as usize].cursor.advance(target.len, source.len);
            turn_bytes += source.len;
        }
    }

    /// Each of the three may be the same memory as another.
    pub(crate) fn reduce_piece(&mut self, target: Segment, operand: Segment, source: Segment, side: Side) {
        let reducer = self.reducer.expect("invariant: a plan that reduces is bound with an operator");
        let left = side == Side::Left;
        if source == target && operand != target {
            // The target is what comes in: the operand takes its part, on the other side.
            let (target, operand) = self.memory.pair(target, operand);
            return reducer.combine_into(target, None, operand, !left);
        }
        if operand == target && source != target {
            let (target, source) = self.memory.pair(target, source);
            return reducer.combine_into(target, None, source, left);
        }
        let staged = &mut self.staging[..source.len];
        staged.copy_from_slice(self.memory.bytes(source));
        if operand == target {
            reducer.combine_into(self.memory.bytes_mut(target), None, staged, left);
        } else {
            let (target, operand) = self.memory.pair(target, operand);
            reducer.combine_into(target, Some(operand), staged, left);
        }
    }
}
