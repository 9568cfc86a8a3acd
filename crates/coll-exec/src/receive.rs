//! Receiving: large messages go straight to their place, small ones and reductions by way of the staging buffer, from
//! which a slice is reduced while it is still in the cache. No message is ever held whole.

use crate::code::{BoundOp, Side};
use crate::frame::HEADER_BYTES;
use crate::run::{Engine, TURN_BYTES, Turn};
use crate::{Fault, Interest, Transport};
use coll_plan::OpId;

/// The largest message that is read together with its header: one call and a copy are cheaper than two calls.
pub(crate) const SMALL_BYTES: usize = 8 << 10;

/// Bytes that a receive stores before a send that follows it has its turn, and sends them on from the cache.
const FOLLOWED_BYTES: usize = 256 << 10;

impl<T: Transport> Engine<'_, '_, '_, T> {
    pub(crate) fn receive(
        &mut self,
        lane: u32,
        id: OpId,
        link: u32,
        message: u32,
        reduces: Option<Side>,
    ) -> Result<Turn, Fault> {
        if self.state.links[link as usize].received != message {
            return Ok(Turn::Parked);
        }
        let op = &self.code.ops[id as usize];
        let followed = !self.code.followers.run(id).is_empty();
        let (mut turn_bytes, turn_bytes_max) = (0, if followed { FOLLOWED_BYTES } else { TURN_BYTES });
        loop {
            let state = &self.state.lanes[lane as usize];
            if state.header_bytes == HEADER_BYTES && state.cursor.moved == op.bytes {
                return Ok(Turn::Done);
            }
            if turn_bytes >= turn_bytes_max {
                return Ok(Turn::Again);
            }
            let staged =
                state.header_bytes < HEADER_BYTES || reduces.is_some() || op.bytes <= SMALL_BYTES as u64;
            let got = match staged {
                true => self.receive_staged(lane, op, link, message, reduces)?,
                false => self.receive_direct(lane, op, link, turn_bytes_max)?,
            };
            if got == 0 {
                return Ok(match self.state.inboxes.is_empty() {
                    true => {
                        let link = self.code.links[link as usize].link;
                        Turn::Blocked(Interest { link, readable: true, writable: false })
                    }
                    // The link's own task reads, and wakes this one.
                    false => Turn::Parked,
                });
            }
            turn_bytes += got;
            self.state.wake_followers(self.code, id);
        }
    }

    /// Reads what is left of the header, and with it as much of the payload as the staging buffer is for.
    fn receive_staged(
        &mut self,
        lane: u32,
        op: &BoundOp,
        link: u32,
        message: u32,
        reduces: Option<Side>,
    ) -> Result<usize, Fault> {
        let state = self.state.lanes[lane as usize];
        let (of_header, carried) = (HEADER_BYTES - state.header_bytes, state.carry_bytes);
        let payload_left = (op.bytes - state.cursor.moved) as usize - carried;
        let wanted = match reduces.is_some() || op.bytes <= SMALL_BYTES as u64 {
            true => of_header.saturating_add(payload_left),
            false => of_header,
        };
        // The staging buffer is lent to this call, so that memory can be written from it.
        let staging = std::mem::take(&mut self.staging);
        staging[..carried].copy_from_slice(&state.carry[..carried]);
        let end = wanted.saturating_add(carried).min(staging.len());
        let got = self.fill(lane, link, &mut staging[carried..end]);
        let stored = got.and_then(|got| {
            let of_header = of_header.min(got);
            self.feed_header(lane, op, link, message, &staging[..of_header])?;
            let payload = &staging[of_header..carried + got];
            match reduces {
                Some(side) => self.feed_reduction(lane, op, side, payload),
                None => self.feed_store(lane, op, payload),
            }
            Ok(got)
        });
        self.staging = staging;
        stored
    }

    fn feed_header(
        &mut self,
        lane: u32,
        op: &BoundOp,
        link: u32,
        message: u32,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        if bytes.is_empty() {
            return Ok(());
        }
        let due = self.header(op, message);
        let state = &mut self.state.lanes[lane as usize];
        state.header[state.header_bytes..][..bytes.len()].copy_from_slice(bytes);
        state.header_bytes += bytes.len();
        if state.header_bytes < HEADER_BYTES {
            return Ok(());
        }
        let peer = self.code.links[link as usize].link.peer;
        due.check(&state.header).map_err(|fault| Fault::Frame { peer, fault })
    }

    fn feed_store(&mut self, lane: u32, op: &BoundOp, mut payload: &[u8]) {
        while !payload.is_empty() {
            let cursor = &mut self.state.lanes[lane as usize].cursor;
            let segment = self.code.segments(op.target)[cursor.segment];
            let part = segment.part(cursor.offset, payload.len());
            self.memory.bytes_mut(part).copy_from_slice(&payload[..part.len]);
            cursor.advance(segment.len, part.len);
            payload = &payload[part.len..];
        }
    }

    /// Reduces whole elements and keeps the start of one that has not come whole.
    fn feed_reduction(&mut self, lane: u32, op: &BoundOp, side: Side, payload: &[u8]) {
        let reducer = self.reducer.expect("invariant: a plan that reduces is bound with an operator");
        let element_bytes = reducer.working_size_bytes() as usize;
        let (mut whole, rest) = payload.split_at(payload.len() / element_bytes * element_bytes);
        let state = &mut self.state.lanes[lane as usize];
        state.carry[..rest.len()].copy_from_slice(rest);
        state.carry_bytes = rest.len();
        while !whole.is_empty() {
            let cursor = &mut state.cursor;
            let segment = self.code.segments(op.target)[cursor.segment];
            let target = segment.part(cursor.offset, whole.len());
            let incoming = &whole[..target.len];
            match self.code.segments(op.operand).get(cursor.segment) {
                Some(operand) if operand.part(cursor.offset, target.len) != target => {
                    let operand = operand.part(cursor.offset, target.len);
                    let (target, operand) = self.memory.pair(target, operand);
                    reducer.combine_into(target, Some(operand), incoming, side == Side::Left);
                }
                _ => {
                    reducer.combine_into(self.memory.bytes_mut(target), None, incoming, side == Side::Left);
                }
            }
            cursor.advance(segment.len, target.len);
            whole = &whole[target.len..];
        }
    }

    fn receive_direct(
        &mut self,
        lane: u32,
        op: &BoundOp,
        link: u32,
        bytes_max: usize,
    ) -> Result<usize, Fault> {
        let cursor = self.state.lanes[lane as usize].cursor;
        let segment = self.code.segments(op.target)[cursor.segment];
        let part = segment.part(cursor.offset, bytes_max);
        let got = match self.state.inboxes.get(link as usize) {
            None => {
                let into = self.memory.bytes_mut(part);
                self.transport.try_recv(self.code.links[link as usize].link, into)?.min(part.len)
            }
            Some(inbox) => {
                let arrived = inbox.arrived(HEADER_BYTES + cursor.moved as usize);
                let len = arrived.len().min(part.len);
                let part = segment.part(cursor.offset, len);
                self.memory.bytes_mut(part).copy_from_slice(&arrived[..len]);
                len
            }
        };
        self.state.lanes[lane as usize].cursor.advance(segment.len, got);
        Ok(got)
    }

    /// Takes bytes from the link, or from its message slots where it has some.
    fn fill(&mut self, lane: u32, link: u32, into: &mut [u8]) -> Result<usize, Fault> {
        let Some(inbox) = self.state.inboxes.get(link as usize) else {
            let got = self.transport.try_recv(self.code.links[link as usize].link, into)?;
            debug_assert!(got <= into.len(), "a transport gave more than there was room for");
            return Ok(got.min(into.len()));
        };
        let state = &self.state.lanes[lane as usize];
        let arrived = inbox.arrived(state.header_bytes + state.cursor.moved as usize + state.carry_bytes);
        let len = arrived.len().min(into.len());
        into[..len].copy_from_slice(&arrived[..len]);
        Ok(len)
    }

    /// Reads into a link's message slots.
    pub(crate) fn pump(&mut self, link: usize) -> Result<Turn, Fault> {
        let to = self.code.links[link].link;
        let mut turn_bytes = 0;
        loop {
            let room = self.state.inboxes[link].room();
            if room.is_empty() {
                return Ok(Turn::Parked);
            }
            if turn_bytes >= TURN_BYTES {
                return Ok(Turn::Again);
            }
            let got = self.transport.try_recv(to, room)?.min(room.len());
            if got == 0 {
                return Ok(Turn::Blocked(Interest { link: to, readable: true, writable: false }));
            }
            turn_bytes += got;
            self.state.inboxes[link].fill(got);
            let first = self.state.links[link].received as usize;
            if let Some(&op) = self.code.links[link].receives.ops.get(first) {
                self.state.wake(self.code, op);
            }
        }
    }
}
