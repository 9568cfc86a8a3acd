//! Where the bytes of one incoming message go: its header is checked, its payload stored or reduced. Bytes may come in
//! pieces of any size, cut anywhere.

use crate::Fault;
use crate::code::{BoundOp, Code, Side};
use crate::frame::{CHECKSUM_BYTES, FIRST_HEADER_BYTES, FrameFault, Header};
use crate::memory::{Memory, Segment};
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
    /// Whether the message may be lent.
    pub(crate) lends: bool,
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
        if self.lane.lent {
            return Ok(of_header);
        }
        let payload = &bytes[of_header..];
        let payload = &payload[..payload.len().min(self.payload_left()).min(payload_bytes_max)];
        self.feed_payload(payload);
        let taken = of_header + payload.len();
        match self.trailer_left() {
            left if left > 0 && self.payload_left() == 0 && self.header_left() == 0 => {
                let trailer = &bytes[taken..];
                let trailer = &trailer[..trailer.len().min(left)];
                self.feed_trailer(trailer)?;
                Ok(taken + trailer.len())
            }
            _ => Ok(taken),
        }
    }

    /// Bytes that follow the payload and have not come.
    #[inline]
    pub(crate) fn trailer_left(&self) -> usize {
        if self.due.checked { CHECKSUM_BYTES - self.lane.trailer_bytes } else { 0 }
    }

    #[cold]
    fn feed_trailer(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let come = self.lane.trailer_bytes;
        self.lane.trailer[come..come + bytes.len()].copy_from_slice(bytes);
        self.lane.trailer_bytes += bytes.len();
        let (due, found) = (u32::from_le_bytes(self.lane.trailer), self.lane.checksum);
        if self.trailer_left() > 0 || due == found {
            return Ok(());
        }
        let fault = FrameFault::Checksum { bytes: self.due.payload_bytes, due, found };
        Err(Fault::Frame { peer: self.peer, fault })
    }

    /// Takes payload into the checksum, if there is one, that has come to its place already.
    #[inline]
    pub(crate) fn note_stored(&mut self, stored: Segment) {
        if self.due.checked {
            let stored = self.memory.bytes(stored);
            self.lane.checksum = crc32c::crc32c_append(self.lane.checksum, stored);
        }
    }

    /// Takes the next bytes of the payload, of which there are not more than are left.
    #[inline]
    pub(crate) fn feed_payload(&mut self, payload: &[u8]) {
        if self.due.checked {
            self.lane.checksum = crc32c::crc32c_append(self.lane.checksum, payload);
        }
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
        let lent = if self.lends { self.due.as_lent(&held[..come]) } else { None };
        lent.unwrap_or(self.due).check(&held[..come]).map_err(|fault| match fault {
            FrameFault::Call { ours, theirs } => Fault::Mismatch { peer: self.peer, ours, theirs },
            fault => Fault::Frame { peer: self.peer, fault },
        })?;
        self.lane.header_bytes = come;
        match self.header_left() {
            0 => self.lane.lent = lent.is_some(),
            _ => self.lane.header = held,
        }
        Ok(bytes.len())
    }

    #[inline]
    fn store(&mut self, mut payload: &[u8]) {
        while !payload.is_empty() {
            let cursor = &mut self.lane.cursor;
            let segment = self.code.segments(self.op.target)[cursor.segment];
            let part = segment.part(cursor.offset, payload.len());
            let target = self.memory.bytes_mut(part);
            match self.op.past_cache {
                true => coll_kernel::copy_past_cache(target, &payload[..part.len]),
                false => target.copy_from_slice(&payload[..part.len]),
            }
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
