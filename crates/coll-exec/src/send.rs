//! Sending: header and payload go out in one call, straight from where the payload lies, or from the staging buffer where
//! elements travel as another type.

use crate::code::BoundOp;
use crate::frame::{CHECKSUM_BYTES, Header};
use crate::run::{Engine, TURN_BYTES, Turn};
use crate::{Fault, Interest, Transport};
use coll_kernel::Cast;

/// Parts that one call offers to the transport: the header and this many segments but one.
const PARTS_MAX: usize = 16;

/// Bytes of elements that are made at a time for a message of another type: what a transport does not take is made again.
const CAST_BYTES: usize = 32 << 10;

impl<T: Transport> Engine<'_, '_, '_, T> {
    #[inline]
    pub(crate) fn send(&mut self, lane: u32, op: &BoundOp, link: u32, message: u32) -> Result<Turn, Fault> {
        if self.state.links[link as usize].sent != message {
            return Ok(Turn::Parked);
        }
        let (state, to) = (&self.state.lanes[lane as usize], self.code.links[link as usize].link);
        let begins = state.header_bytes == 0;
        let (lent, shared) = (state.lent && !state.shared, state.shared);
        if lent || begins && self.may_lend(op, to) {
            return self.send_lent(lane, op, link, message);
        }
        if shared || begins && self.may_share(op, to) {
            return self.send_shared(lane, op, link, message);
        }
        let mut turn_bytes = 0;
        let header_size = Header::size_bytes(message);
        loop {
            let state = &self.state.lanes[lane as usize];
            let (header_bytes, moved) = (state.header_bytes, state.cursor.moved);
            if header_bytes == header_size && moved == op.bytes {
                return self.send_checksum(lane, op, link);
            }
            // A send that follows a receive may send what has been stored so far.
            let limit =
                op.leader.map_or(op.bytes, |leader| self.state.progress(self.code, leader).min(op.bytes));
            if moved == limit && limit < op.bytes {
                return Ok(Turn::Parked);
            }
            if turn_bytes >= TURN_BYTES {
                return Ok(Turn::Again);
            }
            let taken = match (self.code.cast, op.source.len()) {
                (Some(cast), _) => self.offer_cast(cast, lane, op, (link, message), limit - moved)?,
                (None, 0 | 1) => self.offer::<2>(lane, op, link, message, limit - moved)?,
                (None, _) => self.offer::<PARTS_MAX>(lane, op, link, message, limit - moved)?,
            };
            if taken == 0 {
                let link = self.code.links[link as usize].link;
                return Ok(Turn::Blocked(Interest::writable(link)));
            }
            turn_bytes += taken;
            self.note_sent(lane, op, link, header_size, taken);
        }
    }

    /// Offers what is left of the header and up to `payload_bytes`, in at most `PARTS` parts.
    #[inline]
    fn offer<const PARTS: usize>(
        &mut self,
        lane: u32,
        op: &BoundOp,
        link: u32,
        message: u32,
        payload_bytes: u64,
    ) -> Result<usize, Fault> {
        let state = &self.state.lanes[lane as usize];
        let header = self.header(op, link, message).to_bytes();
        let header = &header[..Header::size_bytes(message)];
        let mut parts: [&[u8]; PARTS] = [&[]; PARTS];
        let (mut count, mut left) = (0, payload_bytes.min(usize::MAX as u64) as usize);
        if state.header_bytes < header.len() {
            parts[0] = &header[state.header_bytes..];
            count = 1;
        }
        let mut skip = state.cursor.offset;
        for segment in &self.code.segments(op.source)[state.cursor.segment..] {
            if count == PARTS || left == 0 {
                break;
            }
            let part = segment.part(skip, left);
            parts[count] = self.memory.bytes(part);
            count += 1;
            left -= part.len;
            skip = 0;
        }
        let offered: usize = parts[..count].iter().map(|part| part.len()).sum();
        let taken = self.transport.try_send(self.code.links[link as usize].link, &parts[..count])?;
        debug_assert!(taken <= offered, "a transport took more than it was offered");
        Ok(taken.min(offered))
    }

    /// Offers what is left of the header and of up to `memory_bytes` as elements of the wire. Of an element that has gone in
    /// part, the rest goes first.
    fn offer_cast(
        &mut self,
        cast: Cast,
        lane: u32,
        op: &BoundOp,
        (link, message): (u32, u32),
        memory_bytes: u64,
    ) -> Result<usize, Fault> {
        let state = &self.state.lanes[lane as usize];
        let header = self.header(op, link, message).to_bytes();
        let header = &header[state.header_bytes..Header::size_bytes(message)];
        let most = CAST_BYTES / cast.wire_size_bytes() * cast.memory_size_bytes();
        let (mut left, mut filled, mut skip) =
            (memory_bytes.min(most as u64) as usize, 0, state.cursor.offset);
        for segment in &self.code.segments(op.source)[state.cursor.segment..] {
            if left == 0 {
                break;
            }
            let part = segment.part(skip, left);
            let end = filled + self.code.message_bytes(part.len as u64) as usize;
            cast.narrow(self.memory.bytes(part), &mut self.staging[filled..end]);
            (filled, left, skip) = (end, left - part.len, 0);
        }
        let payload = &self.staging[state.carry_bytes.min(filled)..filled];
        let taken = self.transport.try_send(self.code.links[link as usize].link, &[header, payload])?;
        debug_assert!(taken <= header.len() + payload.len(), "a transport took more than it was offered");
        if self.transport.checks(self.code.links[link as usize].link) {
            let gone = &payload[..taken.saturating_sub(header.len()).min(payload.len())];
            let checksum = &mut self.state.lanes[lane as usize].checksum;
            *checksum = crc32c::crc32c_append(*checksum, gone);
        }
        Ok(taken.min(header.len() + payload.len()))
    }

    #[inline]
    pub(crate) fn note_sent(&mut self, lane: u32, op: &BoundOp, link: u32, header_size: usize, taken: usize) {
        // Of elements of another type it was taken when they were made.
        let checked = self.code.cast.is_none() && self.trailer_bytes(op, link) > 0;
        let state = &mut self.state.lanes[lane as usize];
        let of_header = taken.min(header_size - state.header_bytes);
        state.header_bytes += of_header;
        let mut left = taken - of_header;
        if let Some(cast) = self.code.cast {
            let gone = state.carry_bytes + left;
            state.carry_bytes = gone % cast.wire_size_bytes();
            left = gone / cast.wire_size_bytes() * cast.memory_size_bytes();
        }
        while left > 0 {
            let segment = self.code.segments(op.source)[state.cursor.segment];
            let bytes = left.min(segment.len - state.cursor.offset);
            if checked {
                let sent = self.memory.bytes(segment.part(state.cursor.offset, bytes));
                state.checksum = crc32c::crc32c_append(state.checksum, sent);
            }
            state.cursor.advance(segment.len, bytes);
            left -= bytes;
        }
    }

    /// Sends what follows the payload, if something does.
    #[inline]
    fn send_checksum(&mut self, lane: u32, op: &BoundOp, link: u32) -> Result<Turn, Fault> {
        let trailer_bytes = self.trailer_bytes(op, link);
        let to = self.code.links[link as usize].link;
        let state = &mut self.state.lanes[lane as usize];
        while state.trailer_bytes < trailer_bytes {
            let checksum = state.checksum.to_le_bytes();
            let taken = self.transport.try_send(to, &[&checksum[state.trailer_bytes..]])?;
            if taken == 0 {
                return Ok(Turn::Blocked(Interest::writable(to)));
            }
            state.trailer_bytes += taken;
        }
        Ok(Turn::Done)
    }

    /// Bytes that follow a message's payload.
    #[inline]
    pub(crate) fn trailer_bytes(&self, op: &BoundOp, link: u32) -> usize {
        let checks = op.bytes > 0 && self.transport.checks(self.code.links[link as usize].link);
        if checks { CHECKSUM_BYTES } else { 0 }
    }

    /// The header of a message of this run.
    #[inline]
    pub(crate) fn header(&self, op: &BoundOp, link: u32, message: u32) -> Header {
        Header {
            prepared: self.prepared,
            lent: false,
            checked: self.trailer_bytes(op, link) > 0,
            generation: self.state.options.generation,
            operation: self.state.options.operation,
            message,
            step: op.step,
            payload_bytes: self.code.message_bytes(op.bytes),
            fingerprint: self.state.options.fingerprint,
        }
    }
}
