//! How two ranks pass bytes through memory that both see: one writes, one reads, and neither ever waits here.
//!
//! Bytes travel in **packets**. A ring of cells, each of one cache line, holds a packet's stamp and, if it is short, the
//! packet itself: the reader waits for the stamp and finds the bytes in the line that brought it, so that a short
//! message costs one line's way from core to core (as in FastForward: J. Giacomoni, T. Moseley, M. Vachharajani, PPoPP
//! 2008, which keeps the flag with the datum too). The bytes of a long packet lie in a second ring, and its cell says
//! where. The reader tells how far it is on a line of its own, which the writer looks at only when it has run out of
//! room.
//!
//! | word of a cell | |
//! |---|---|
//! | 0, high half | number of the packet from 1, modulo 2³² |
//! | 0, low half | bit 31: long; the rest: bytes |
//! | 1.. | the bytes, or the position in the second ring where they start |
//!
//! What the other side wrote is never trusted for a place in memory: lengths and positions are compared with what they
//! can be, and what cannot be is [`Damage`].
//!
//! The code is the same for real memory and for the model that explores its interleavings (`protocol/model.rs`).

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use crate::pace::{Copying, Pace};
use std::ops::Range;

/// Cells of a ring: packets that may be under way at once.
pub(crate) const CELLS: usize = 64;

/// Bytes that a cell holds beside its stamp.
pub(crate) const CELL_BYTES: usize = 56;

/// The longest packet in the second ring: the reader works on it while the writer copies the next.
pub(crate) const PACKET_BYTES_MAX: usize = 32 << 10;

/// From this on a message's header goes ahead in a cell, and its payload follows from the start of a cache line.
const SPLIT_BYTES: usize = 8 << 10;

const LINE: u64 = 64;
const LONG: u32 = 1 << 31;

/// How far a reader is: packets, and position in the second ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) packets: u64,
    pub(crate) position: u64,
}

/// What both sides see. Offsets are within the rings; the protocol keeps readers and writers of bytes apart.
pub(crate) trait Shared {
    /// How many cells there are.
    fn cells(&self) -> usize;
    /// Bytes of the second ring: a power of two.
    fn long_bytes(&self) -> usize;
    /// A cell's stamp; what was written before it was set is seen after.
    fn stamp(&self, cell: usize) -> u64;
    fn set_stamp(&self, cell: usize, stamp: u64);
    /// How far the reader is; what it had read before it told so may be written after.
    fn taken(&self) -> Taken;
    fn set_taken(&self, taken: Taken);
    fn cell(&self, cell: usize) -> &[u8; CELL_BYTES];
    fn write_cell(&self, cell: usize, at: usize, bytes: &[u8]);
    fn long(&self, offset: usize, len: usize) -> &[u8];
    /// Writes a part of a long packet; past the cache if `stream` says so.
    fn write_long(&self, offset: usize, bytes: &[u8], stream: bool);
}

/// What the other side wrote cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) String);

/// The writing side.
#[derive(Debug)]
pub(crate) struct Writer<S> {
    shared: S,
    /// Packets written, and the position after the last long one.
    written: Taken,
    /// How far the reader was when it was last looked at.
    taken: Taken,
    pace: Pace,
}

/// The reading side.
#[derive(Debug)]
pub(crate) struct Reader<S> {
    shared: S,
    taken: Taken,
    open: Open,
}

/// What is left of the packet that is being read.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    long: bool,
    /// Offset in its cell or in the second ring.
    at: usize,
    left: usize,
    /// Where it ends in the second ring.
    end: u64,
}

/// Copies bytes `range` of what the parts hold together to the same places after `to`.
#[inline]
fn copy<S: Shared>(shared: &S, to: usize, parts: &[&[u8]], range: Range<usize>, stream: bool) {
    let mut start = 0;
    for part in parts {
        let end = start + part.len();
        let (low, high) = (range.start.max(start), range.end.min(end));
        if low < high {
            shared.write_long(to + low, &part[low - start..high - start], stream);
        }
        start = end;
    }
}

impl<S: Shared> Writer<S> {
    pub(crate) fn new(shared: S) -> Writer<S> {
        Writer { shared, written: Taken::default(), taken: Taken::default(), pace: Pace::new() }
    }

    pub(crate) fn shared(&self) -> &S {
        &self.shared
    }

    /// Takes bytes, `parts` one after the other, as one packet. Returns how many: 0 if there is no room.
    #[inline]
    pub(crate) fn write(&mut self, parts: &[&[u8]]) -> Result<usize, Damage> {
        let total: usize = parts.iter().map(|part| part.len()).sum();
        if self.written.packets - self.taken.packets == self.shared.cells() as u64 {
            self.look()?;
            if self.written.packets - self.taken.packets == self.shared.cells() as u64 {
                return Ok(0);
            }
        }
        match *parts {
            [] => Ok(0),
            _ if total <= CELL_BYTES => Ok(self.write_short(parts, total)),
            [header, ..] if total >= SPLIT_BYTES && !header.is_empty() && header.len() <= CELL_BYTES => {
                Ok(self.write_short(&[header], header.len()))
            }
            _ => self.write_long(parts, total),
        }
    }

    #[inline]
    fn write_short(&mut self, parts: &[&[u8]], total: usize) -> usize {
        let cell = self.written.packets as usize % self.shared.cells();
        let mut at = 0;
        for part in parts {
            self.shared.write_cell(cell, at, part);
            at += part.len();
        }
        if total > 0 {
            self.publish(total as u32);
        }
        total
    }

    fn write_long(&mut self, parts: &[&[u8]], total: usize) -> Result<usize, Damage> {
        // What comes after a header starts a line.
        let lead = if parts.len() > 1 && parts[0].len() < LINE as usize { parts[0].len() as u64 } else { 0 };
        let start = self.start(lead);
        let wanted = total.min(PACKET_BYTES_MAX).min(self.shared.long_bytes() / 2);
        let mut room = self.room(start);
        if room < wanted {
            self.look()?;
            room = self.room(start);
        }
        let mask = self.shared.long_bytes() - 1;
        let len = wanted.min(room).min(self.shared.long_bytes() - (start as usize & mask));
        if len == 0 {
            return Ok(0);
        }
        let to = start as usize & mask;
        let Copying { stream, probe_bytes } = self.pace.choose(len);
        if probe_bytes > 0 {
            let shared = &self.shared;
            self.pace.time(probe_bytes, || copy(shared, to, parts, 0..probe_bytes, false));
        }
        copy(&self.shared, to, parts, probe_bytes..len, stream);
        self.shared.write_cell(self.written.packets as usize % self.shared.cells(), 0, &start.to_le_bytes());
        self.written.position = start + len as u64;
        self.publish(LONG | len as u32);
        Ok(len)
    }

    /// Where a long packet starts: so that what follows its first `lead` bytes starts a line.
    fn start(&self, lead: u64) -> u64 {
        self.written.position.next_multiple_of(LINE) + (LINE - lead) % LINE
    }

    /// Free bytes of the second ring from a position on.
    fn room(&self, start: u64) -> usize {
        (self.shared.long_bytes() as u64).saturating_sub(start - self.taken.position) as usize
    }

    #[inline]
    fn publish(&mut self, what: u32) {
        let cell = self.written.packets as usize % self.shared.cells();
        self.written.packets += 1;
        self.shared.set_stamp(cell, u64::from(self.written.packets as u32) << 32 | u64::from(what));
    }

    /// Looks how far the reader is.
    #[cold]
    fn look(&mut self) -> Result<(), Damage> {
        let taken = self.shared.taken();
        let between = |before: u64, now: u64, after: u64| before <= now && now <= after;
        if between(self.taken.packets, taken.packets, self.written.packets)
            && between(self.taken.position, taken.position, self.written.position)
        {
            self.taken = taken;
            return Ok(());
        }
        Err(Damage(format!(
            "its reader claims {} packets and position {}, of {} and {} written",
            taken.packets, taken.position, self.written.packets, self.written.position
        )))
    }

    /// Whether the next [`Writer::write`] takes something, whatever it is. Damage is: it has news.
    pub(crate) fn is_writable(&mut self) -> bool {
        let free = |writer: &Writer<S>| {
            writer.written.packets - writer.taken.packets < writer.shared.cells() as u64
                && writer.room(writer.start(1)) > 0
        };
        free(self) || self.look().is_err() || free(self)
    }
}

impl<S: Shared> Reader<S> {
    pub(crate) fn new(shared: S) -> Reader<S> {
        Reader { shared, taken: Taken::default(), open: Open::default() }
    }

    pub(crate) fn shared(&self) -> &S {
        &self.shared
    }

    /// What has come and is not consumed, as far as it lies together; nothing if nothing has.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<&[u8], Damage> {
        let cell = self.taken.packets as usize % self.shared.cells();
        if self.open.left == 0 {
            let stamp = self.shared.stamp(cell);
            if (stamp >> 32) as u32 != (self.taken.packets + 1) as u32 {
                return Ok(&[]);
            }
            self.open(stamp as u32)?;
        }
        let Open { long, at, left, .. } = self.open;
        Ok(if long { self.shared.long(at, left) } else { &self.shared.cell(cell)[at..at + left] })
    }

    #[inline]
    fn open(&mut self, what: u32) -> Result<(), Damage> {
        let len = (what & !LONG) as usize;
        if what & LONG == 0 {
            if len == 0 || len > CELL_BYTES {
                return Err(Damage(format!("a packet of {len} B in a cell of {CELL_BYTES} B")));
            }
            self.open = Open { long: false, at: 0, left: len, end: self.taken.position };
            return Ok(());
        }
        let [a, b, c, d, e, f, g, h, ..] =
            *self.shared.cell(self.taken.packets as usize % self.shared.cells());
        let start = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let ring = self.shared.long_bytes();
        let at = start as usize & (ring - 1);
        let ahead = start.checked_sub(self.taken.position);
        let fits = ahead.is_some_and(|ahead| ahead <= ring as u64 && len as u64 <= ring as u64 - ahead);
        if len == 0 || !fits || len > ring - at {
            return Err(Damage(format!(
                "a packet of {len} B at position {start} of a ring of {ring} B that is read up to {}",
                self.taken.position
            )));
        }
        self.open = Open { long: true, at, left: len, end: start + len as u64 };
        Ok(())
    }

    /// Gives back the first bytes of what [`Reader::peek`] showed. Says whether a packet has been read whole, so that
    /// the writer may have room again.
    #[inline]
    pub(crate) fn consume(&mut self, bytes: usize) -> bool {
        let bytes = bytes.min(self.open.left);
        self.open.at += bytes;
        self.open.left -= bytes;
        let whole = self.open.left == 0 && bytes > 0;
        if whole {
            self.taken = Taken { packets: self.taken.packets + 1, position: self.open.end };
            self.shared.set_taken(self.taken);
        }
        whole
    }

    /// Whether there is something to read.
    #[inline]
    pub(crate) fn is_readable(&self) -> bool {
        let stamp = || self.shared.stamp(self.taken.packets as usize % self.shared.cells());
        self.open.left > 0 || (stamp() >> 32) as u32 == (self.taken.packets + 1) as u32
    }
}
