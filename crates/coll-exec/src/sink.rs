//! Where the bytes of one incoming message go: its header is checked, its payload stored or reduced. Bytes may come in
//! pieces of any size, cut anywhere.

use crate::Fault;
use crate::code::{BoundOp, Code, Side};
use crate::frame::{FIRST_HEADER_BYTES, FrameFault, Header};
use crate::memory::Memory;
use crate::state::{ELEMENT_BYTES_MAX, LaneState};
use coll_kernel::{Cast, Reducer};

/// Elements of another type that are made those of memory at a time: they stay in the first-level cache.
const CAST_ELEMENTS: usize = 512;

/// One message that is coming in.
pub(crate) struct Sink<'s, 'm, 'a> {
    pub(crate) code: &'s Code,
    pub(crate) memory: &'s mut Memory<'m, 'a>,
    pub(crate) lane: &'s mut LaneState,
    pub(crate) op: &'s BoundOp,
    /// The header that is due.
    pub(crate) due: Header,
    pub(crate) peer: u32,
    /// The operator, if it reduces, the bytes of its element and its side.
    pub(crate) reduction: Option<(&'s Reducer, usize, Side)>,
}

impl Sink<'_, '_, '_> {
    /// Bytes of the header that have not come.
    #[inline]
    pub(crate) fn header_left(&self) -> usize {
        Header::size_bytes(self.due.message) - self.lane.header_bytes
    }

    /// Bytes of the payload that have not come.
    #[inline]
    pub(crate) fn payload_left(&self) -> usize {
        let left = self.op.bytes - self.lane.cursor.moved;
        self.code.message_bytes(left) as usize - self.lane.carry_bytes
    }

    /// Takes a prefix of what has come: at most the message's own bytes, and `payload_bytes_max` of its payload.
    /// Returns how many.
    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8], payload_bytes_max: usize) -> Result<usize, Fault> {
        let of_header = match self.header_left() {
            0 => 0,
            left => self.feed_header(&bytes[..left.min(bytes.len())])?,
        };
        let payload = &bytes[of_header..];
        let payload = &payload[..payload.len().min(self.payload_left()).min(payload_bytes_max)];
        match (self.code.cast, self.reduction) {
            (Some(cast), _) => {
                let size = cast.wire_size_bytes();
                self.elements(size, payload, |sink, whole| {
                    whole.chunks(CAST_ELEMENTS * size).for_each(|wire| sink.widened(cast, wire));
                });
            }
            (None, Some((reducer, size, side))) => {
                self.elements(size, payload, |sink, whole| sink.reduce_whole(reducer, side, whole));
            }
            (None, None) => self.store(payload),
        }
        Ok(of_header + payload.len())
    }

    #[inline]
    fn feed_header(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let whole: Option<&[u8; FIRST_HEADER_BYTES]> = bytes.first_chunk();
        match whole {
            Some(&first) if self.lane.header_bytes == 0 && self.due.check(&first).is_ok() => {
                self.lane.header_bytes = FIRST_HEADER_BYTES;
                Ok(FIRST_HEADER_BYTES)
            }
            _ => self.feed_part_of_header(bytes),
        }
    }

    fn feed_part_of_header(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        // A copy is checked: the sender may share the memory that the bytes lie in.
        let mut held = [0; FIRST_HEADER_BYTES];
        let before = self.lane.header_bytes;
        let come = before + bytes.len();
        held[..before].copy_from_slice(&self.lane.header[..before]);
        held[before..come].copy_from_slice(bytes);
        self.due.check(&held[..come]).map_err(|fault| match fault {
            FrameFault::Call { ours, theirs } => Fault::Mismatch { peer: self.peer, ours, theirs },
            fault => Fault::Frame { peer: self.peer, fault },
        })?;
        self.lane.header_bytes = come;
        if self.header_left() > 0 {
            self.lane.header = held;
        }
        Ok(bytes.len())
    }

    #[inline]
    fn store(&mut self, mut payload: &[u8]) {
        while !payload.is_empty() {
            let cursor = &mut self.lane.cursor;
            let segment = self.code.segments(self.op.target)[cursor.segment];
            let part = segment.part(cursor.offset, payload.len());
            self.memory.bytes_mut(part).copy_from_slice(&payload[..part.len]);
            cursor.advance(segment.len, part.len);
            payload = &payload[part.len..];
        }
    }

    /// Stores or reduces elements of the wire as those of memory.
    fn widened(&mut self, cast: Cast, wire: &[u8]) {
        let mut memory = [0; CAST_ELEMENTS * ELEMENT_BYTES_MAX];
        let memory = &mut memory[..wire.len() / cast.wire_size_bytes() * cast.memory_size_bytes()];
        cast.widen(wire, memory);
        match self.reduction {
            Some((reducer, _, side)) => self.reduce_whole(reducer, side, memory),
            None => self.store(memory),
        }
    }

    /// Takes whole elements of `size` bytes and keeps the start of one that has not come whole.
    #[inline]
    fn elements(&mut self, size: usize, mut payload: &[u8], take: impl Fn(&mut Self, &[u8])) {
        let carried = self.lane.carry_bytes;
        if carried > 0 {
            let (first, rest) = payload.split_at((size - carried).min(payload.len()));
            self.lane.carry[carried..carried + first.len()].copy_from_slice(first);
            self.lane.carry_bytes += first.len();
            if self.lane.carry_bytes < size {
                return;
            }
            let element = self.lane.carry;
            self.lane.carry_bytes = 0;
            take(self, &element[..size]);
            payload = rest;
        }
        let (whole, rest) = match size.is_power_of_two() {
            true => payload.split_at(payload.len() & !(size - 1)),
            false => payload.split_at(payload.len() / size * size),
        };
        take(self, whole);
        if !rest.is_empty() {
            self.lane.carry[..rest.len()].copy_from_slice(rest);
            self.lane.carry_bytes = rest.len();
        }
    }

    #[inline]
    fn reduce_whole(&mut self, reducer: &Reducer, side: Side, mut whole: &[u8]) {
        let left = side == Side::Left;
        while !whole.is_empty() {
            let cursor = &mut self.lane.cursor;
            let segment = self.code.segments(self.op.target)[cursor.segment];
            let target = segment.part(cursor.offset, whole.len());
            let incoming = &whole[..target.len];
            match self.code.segments(self.op.operand).get(cursor.segment) {
                Some(operand) if operand.part(cursor.offset, target.len) != target => {
                    let operand = operand.part(cursor.offset, target.len);
                    let (target, operand) = self.memory.pair(target, operand);
                    reducer.combine_into(target, Some(operand), incoming, left);
                }
                _ => reducer.combine_into(self.memory.bytes_mut(target), None, incoming, left),
            }
            cursor.advance(segment.len, target.len);
            whole = &whole[target.len..];
        }
    }
}
