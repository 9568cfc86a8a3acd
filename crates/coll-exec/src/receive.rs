//! Receiving. Where a transport shows what has come, it is stored or reduced straight from there; otherwise large
//! messages go straight to their place, and small ones and reductions by way of the staging buffer, from which a slice
//! is reduced while it is still in the cache. No message is ever held whole.

use crate::code::{BoundOp, Side};
use crate::frame::Header;
use crate::run::{Engine, TURN_BYTES, Turn};
use crate::sink::Sink;
use crate::{Fault, Interest, Transport};
use coll_plan::OpId;

/// The largest message that is read together with its header: one call and a copy are cheaper than two calls.
pub(crate) const SMALL_BYTES: usize = 8 << 10;

/// Bytes that a receive stores before a send that follows it has its turn, and sends them on from the cache.
const FOLLOWED_BYTES: usize = 128 << 10;

/// A receive that has its turn.
#[derive(Clone, Copy)]
pub(crate) struct Receive {
    lane: u32,
    id: OpId,
    pub(crate) link: u32,
    message: u32,
    reduces: Option<Side>,
}

impl<'m, 'a, T: Transport> Engine<'_, 'm, 'a, T> {
    #[inline]
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
        let receive = Receive { lane, id, link, message, reduces };
        let followed = !self.code.followers.run(id).is_empty();
        let (mut turn_bytes, turn_bytes_max) = (0, if followed { FOLLOWED_BYTES } else { TURN_BYTES });
        loop {
            let got = self.receive_some(receive, turn_bytes_max - turn_bytes)?;
            if self.has_come(receive) {
                return Ok(Turn::Done);
            }
            if got == 0 {
                return Ok(match self.state.inboxes.is_empty() {
                    true => {
                        let link = self.code.links[link as usize].link;
                        Turn::Blocked(Interest::readable(link))
                    }
                    // The link's own task reads, and wakes this one.
                    false => Turn::Parked,
                });
            }
            turn_bytes += got;
            if followed {
                self.state.wake_followers(self.code, id);
            }
            if turn_bytes >= turn_bytes_max {
                return Ok(Turn::Again);
            }
        }
    }

    fn has_come(&self, receive: Receive) -> bool {
        let (lane, op) = (&self.state.lanes[receive.lane as usize], &self.code.ops[receive.id as usize]);
        lane.header_bytes == Header::size_bytes(receive.message)
            && lane.cursor.moved == op.bytes
            && lane.trailer_bytes == self.trailer_bytes(op, receive.link)
    }

    /// Takes bytes of the message from wherever they are: about `bytes_max` at most, none if there are none.
    #[inline]
    fn receive_some(&mut self, receive: Receive, bytes_max: usize) -> Result<usize, Fault> {
        if !self.state.inboxes.is_empty() {
            return self.receive_held(receive, bytes_max);
        }
        if self.state.lanes[receive.lane as usize].lent {
            return self.receive_lent(receive, bytes_max);
        }
        let link = self.code.links[receive.link as usize].link;
        let (transport, mut sink) = self.sink(receive);
        let Some(come) = transport.peek(link)? else { return self.receive_copied(receive, bytes_max) };
        if come.is_empty() {
            return Ok(0);
        }
        let taken = sink.feed(come, bytes_max)?;
        transport.consume(link, taken);
        Ok(taken)
    }

    /// From the link's message slots.
    fn receive_held(&mut self, receive: Receive, bytes_max: usize) -> Result<usize, Fault> {
        let checks = self.transport.checks(self.code.links[receive.link as usize].link);
        let inboxes = std::mem::take(&mut self.state.inboxes);
        let (_, mut sink) = self.sink(receive);
        let come = sink.code.message_bytes(sink.lane.cursor.moved) as usize + sink.lane.carry_bytes;
        let skip = sink.lane.header_bytes + come + sink.lane.trailer_bytes;
        let taken = sink.feed(inboxes[receive.link as usize].arrived(skip, checks), bytes_max);
        self.state.inboxes = inboxes;
        taken
    }

    /// From a transport that must copy.
    fn receive_copied(&mut self, receive: Receive, bytes_max: usize) -> Result<usize, Fault> {
        let link = self.code.links[receive.link as usize].link;
        // The staging buffer is lent to this call, so that memory can be written from it.
        let staging = std::mem::take(&mut self.staging);
        let (transport, mut sink) = self.sink(receive);
        let (header_left, payload_left) = (sink.header_left(), sink.payload_left());
        let passes = receive.reduces.is_some() || sink.code.cast.is_some();
        let together = passes || sink.op.bytes <= SMALL_BYTES as u64;
        let taken = if header_left == 0 && payload_left > 0 && !together {
            let cursor = sink.lane.cursor;
            let segment = sink.code.segments(sink.op.target)[cursor.segment];
            let part = segment.part(cursor.offset, bytes_max);
            let got = transport.try_recv(link, sink.memory.bytes_mut(part));
            got.inspect(|&got| {
                debug_assert!(got <= part.len, "a transport gave more than there was room for");
                let got = got.min(part.len);
                sink.note_stored(part.part(0, got));
                sink.lane.cursor.advance(segment.len, got);
            })
        } else {
            // What follows the header of a lent message is no payload.
            let payload = if together && !(sink.lends && header_left > 0) { payload_left } else { 0 };
            let trailer = if payload == payload_left { sink.trailer_left() } else { 0 };
            let wanted = header_left.saturating_add(payload).saturating_add(trailer).min(staging.len());
            transport.try_recv(link, &mut staging[..wanted]).and_then(|got| {
                debug_assert!(got <= wanted, "a transport gave more than there was room for");
                sink.feed(&staging[..got.min(wanted)], usize::MAX)
            })
        };
        self.staging = staging;
        taken
    }

    /// The transport, and where the message goes.
    #[inline]
    pub(crate) fn sink(&mut self, receive: Receive) -> (&mut T, Sink<'_, 'm, 'a>) {
        let op: &BoundOp = &self.code.ops[receive.id as usize];
        let reduction = receive.reduces.map(|side| {
            let reducer = self.reducer.expect("invariant: a plan that reduces is bound with an operator");
            (reducer, self.element_bytes, side)
        });
        let due = self.header(op, receive.link, receive.message);
        let link = self.code.links[receive.link as usize].link;
        let sink = Sink {
            lends: self.code.cast.is_none()
                && self.state.inboxes.is_empty()
                && self.transport.lends(link).is_some(),
            code: self.code,
            memory: &mut self.memory,
            lane: &mut self.state.lanes[receive.lane as usize],
            op,
            due,
            peer: link.peer,
            reduction,
        };
        (&mut *self.transport, sink)
    }

    /// Reads into a link's message slots.
    pub(crate) fn pump(&mut self, link: usize) -> Result<Turn, Fault> {
        let to = self.code.links[link].link;
        let mut turn_bytes = 0;
        let checks = self.transport.checks(to);
        loop {
            let room = self.state.inboxes[link].room(checks);
            if room.is_empty() {
                return Ok(Turn::Parked);
            }
            if turn_bytes >= TURN_BYTES {
                return Ok(Turn::Again);
            }
            let got = self.transport.try_recv(to, room)?.min(room.len());
            if got == 0 {
                return Ok(Turn::Blocked(Interest::readable(to)));
            }
            turn_bytes += got;
            self.state.inboxes[link].fill(got, checks);
            let first = self.state.links[link].received as usize;
            if let Some(&op) = self.code.links[link].receives.ops.get(first) {
                self.state.wake(self.code, op);
            }
        }
    }
}
