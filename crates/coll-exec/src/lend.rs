//! Messages that are lent: in place of the payload come [loans](crate::Loan), and the receiver reads what they name in the
//! sender's memory, straight into its target or reduction. It spares a message its way through the transport.
//!
//! A send is done when the receiver has said that it has read all: what waits for the send may then overwrite its
//! source, as ever. So a lent message is synchronous, which plans without slots are made for: they have been proved to
//! end even if no message is held on its way. Plans with slots lend nothing.
//!
//! Between threads of one process all memory can be read in place, as long as it is there: a run to its end *shows* what its messages
//! are made of ([`Sight`](crate::Sight)), wherever that lies, if they are large; one that the caller drives himself may be
//! left in the middle, and shows nothing.
//!
//! A send that follows a receive lends what is there, a part at a time.

use crate::Fault;
use crate::Interest;
use crate::Transport;
use crate::code::BoundOp;
use crate::frame::{Field, FrameFault, Header};
use crate::memory::Segment;
use crate::receive::Receive;
use crate::run::{Engine, Turn};
use crate::short;
use crate::transport::{LOAN_BYTES, Link, Loan};

/// Bytes that are read in one go.
const READ_BYTES: usize = 256 << 10;

/// A lane's loan under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoanState {
    /// As it goes over the wire.
    pub(crate) bytes: [u8; LOAN_BYTES],
    /// How much of it has come; on the sender's side, has gone.
    pub(crate) moved: usize,
    /// On the sender's side: bytes of the message that it stands for, or none while there is no loan.
    pub(crate) lends: usize,
    /// On the receiver's side: bytes that were read of what it names.
    pub(crate) read: usize,
    /// On the sender's side: all of the message is lent.
    pub(crate) whole: bool,
}

impl LoanState {
    pub(crate) fn none() -> LoanState {
        LoanState { bytes: [0; LOAN_BYTES], moved: 0, lends: 0, read: 0, whole: false }
    }

    /// Nothing under way; the bytes may stay.
    #[inline]
    pub(crate) fn clear(&mut self) {
        (self.moved, self.lends, self.read, self.whole) = (0, 0, 0, false);
    }
}

impl<T: Transport> Engine<'_, '_, '_, T> {
    /// Whether a message is to be shown: if it is large, and the peer is a thread of this process.
    #[inline]
    pub(crate) fn may_show(&self, op: &BoundOp, link: Link) -> bool {
        self.state.shows.is_open()
            && self.transport.shows(link).is_some_and(|least_bytes| op.bytes >= least_bytes)
    }

    /// Whether a message that has not begun is to be lent: if it is large, and all of it lies where the peer can read it.
    #[inline]
    pub(crate) fn may_lend(&mut self, op: &BoundOp, link: Link) -> bool {
        let Some(least_bytes) = self.transport.lends(link) else { return false };
        // What goes over the wire as another type or with a checksum is no copy of what lies in memory.
        if self.code.cast.is_some() || self.transport.checks(link) {
            return false;
        }
        // Whoever runs straight through knows of no loans.
        if op.bytes < least_bytes.max(short::BYTES_MAX + 1) || !self.state.inboxes.is_empty() {
            return false;
        }
        // Many short pieces are faster copied.
        let (segments, shows) = (self.code.segments(op.source), self.may_show(op, link));
        segments.len() as u64 * least_bytes <= op.bytes
            && segments.iter().all(|&segment| {
                let mut lends = || self.transport.lend(link, self.memory.bytes(segment)).is_some();
                segment.len > 0 && (shows || lends())
            })
    }

    /// Lends a message, and waits until it has been read.
    pub(crate) fn send_lent(
        &mut self,
        lane: u32,
        op: &BoundOp,
        link: u32,
        message: u32,
    ) -> Result<Turn, Fault> {
        let to = self.code.links[link as usize].link;
        if !self.lend_header(lane, op, link, message)? {
            return Ok(Turn::Blocked(Interest::writable(to)));
        }
        while self.state.lanes[lane as usize].cursor.moved < op.bytes {
            if self.state.lanes[lane as usize].loan.lends == 0 {
                let Some(part) = self.part_to_lend(lane, op, to) else { return Ok(Turn::Parked) };
                let bytes = self.memory.bytes(part);
                let loan = match self.may_show(op, to) {
                    true => self.state.shows.show(bytes).and_then(|sight| self.transport.show(to, sight)),
                    false => self.transport.lend(to, bytes),
                };
                let loan = loan.expect("invariant: it could be lent when the message began, and is borrowed");
                let state = &mut self.state.lanes[lane as usize].loan;
                (state.bytes, state.lends, state.moved) = (loan.to_bytes(), part.len, 0);
            }
            let Some(told) = self.tell_of_loan(lane, to)? else {
                return Ok(Turn::Blocked(Interest::writable(to)));
            };
            let cursor = &mut self.state.lanes[lane as usize].cursor;
            cursor.advance(self.code.segments(op.source)[cursor.segment].len, told);
        }
        let loan = &mut self.state.lanes[lane as usize].loan;
        if !std::mem::replace(&mut loan.whole, true) {
            self.transport.lent(to);
        }
        Ok(match self.transport.is_returned(to)? {
            true => Turn::Done,
            false => Turn::Blocked(Interest::returned(to)),
        })
    }

    /// Sends a lane's loan, or what is left of it. Gives how many bytes it names once it is gone whole.
    pub(crate) fn tell_of_loan(&mut self, lane: u32, to: Link) -> Result<Option<usize>, Fault> {
        let loan = &mut self.state.lanes[lane as usize].loan;
        while loan.moved < LOAN_BYTES {
            let taken = self.transport.try_send(to, &[&loan.bytes[loan.moved..]])?;
            if taken == 0 {
                return Ok(None);
            }
            loan.moved += taken;
        }
        Ok(Some(std::mem::take(&mut loan.lends)))
    }

    /// Sends the header, or what is left of it. Says whether it is gone whole.
    pub(crate) fn lend_header(
        &mut self,
        lane: u32,
        op: &BoundOp,
        link: u32,
        message: u32,
    ) -> Result<bool, Fault> {
        let to = self.code.links[link as usize].link;
        let header = Header { lent: true, ..self.header(op, link, message) }.to_bytes();
        let header = &header[..Header::size_bytes(message)];
        let state = &mut self.state.lanes[lane as usize];
        while state.header_bytes < header.len() {
            let taken = self.transport.try_send(to, &[&header[state.header_bytes..]])?;
            if taken == 0 {
                return Ok(false);
            }
            state.header_bytes += taken;
            state.lent = true;
        }
        Ok(true)
    }

    /// The next part that is there; nothing if a receive that is followed must come further first.
    fn part_to_lend(&self, lane: u32, op: &BoundOp, link: Link) -> Option<Segment> {
        let cursor = self.state.lanes[lane as usize].cursor;
        let there = op.leader.map_or(op.bytes, |leader| self.state.progress(self.code, leader).min(op.bytes));
        let (ready, segment) = (there - cursor.moved, self.code.segments(op.source)[cursor.segment]);
        let part = segment.part(cursor.offset, usize::try_from(ready).unwrap_or(usize::MAX));
        let is_worth_it = there == op.bytes
            || part.len == segment.len - cursor.offset
            || part.len as u64 >= self.transport.lends(link).unwrap_or(0);
        (part.len > 0 && is_worth_it).then_some(part)
    }

    /// Takes a loan, or reads what one names: about `bytes_max` at most, nothing if none has come.
    pub(crate) fn receive_lent(&mut self, receive: Receive, bytes_max: usize) -> Result<usize, Fault> {
        let link = self.code.links[receive.link as usize].link;
        let (transport, mut sink) = self.sink(receive);
        let loan = &mut sink.lane.loan;
        if loan.moved < LOAN_BYTES {
            let room = &mut loan.bytes[loan.moved..];
            let got = match transport.peek(link)? {
                None => transport.try_recv(link, room)?,
                Some(come) => {
                    let len = come.len().min(room.len());
                    room[..len].copy_from_slice(&come[..len]);
                    transport.consume(link, len);
                    len
                }
            };
            loan.moved += got;
            return Ok(got);
        }
        let (named, read) = (Loan::from_bytes(&loan.bytes), loan.read);
        // With what was read of this one, the message must not have more than it says.
        let left = sink.payload_left() as u64 + read as u64;
        if named.bytes == 0 || named.bytes > left {
            let (sent, due, step) = (named.bytes, left, sink.due.step);
            let fault = FrameFault::Field { field: Field::PayloadBytes, sent, due, sender_step: step, step };
            return Err(Fault::Frame { peer: link.peer, fault });
        }
        let there = transport.borrow(link, &named)?.get(read..).unwrap_or_default();
        let part = &there[..there.len().min(bytes_max).min(READ_BYTES)];
        let len = part.len();
        sink.feed_payload(part);
        transport.still_lent(link, &named)?;
        let loan = &mut sink.lane.loan;
        loan.read += len;
        if loan.read as u64 == named.bytes {
            loan.clear();
            if sink.payload_left() == 0 {
                transport.give_back(link);
            }
        }
        Ok(len)
    }
}
