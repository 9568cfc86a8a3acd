//! A ring of the [protocol](crate::protocol) in a [`Block`].
//!
//! | bytes | |
//! |---|---|
//! | 0..16 | how far the reader is: packets, position |
//! | 64..72 | how many messages that were lent the reader has read whole |
//! | 72..80 | how many pieces of such messages it has read |
//! | 4096..8192 | cells |
//! | 8192.. | the second ring |
//!
//! Plain memory is read and written where the protocol says that nobody else does: hence `unsafe`. Every offset is checked
//! here, whatever the protocol says.

#![allow(unsafe_code)]

use crate::memory::{Block, PAGE_BYTES};
use crate::protocol::{CELL_BYTES, CELLS, Shared, Taken};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const RETURNED_AT: usize = 64;
const PIECES_AT: usize = 72;
const CELLS_AT: usize = PAGE_BYTES;
const LONG_AT: usize = CELLS_AT + CELLS * LINE_BYTES;
const LINE_BYTES: usize = 64;
const STAMP_BYTES: usize = 8;

/// The most pages of a ring, in bytes, that are asked for at once.
const AHEAD_BYTES_MAX: usize = 256 << 10;

/// One side's view of a ring.
#[derive(Debug)]
pub(crate) struct Ring {
    block: Arc<Block>,
    long_bytes: usize,
    /// Up to where this side has its pages of the second ring. A message of 1 KiB that touches a page first takes half as
    /// long again, on either side; a ring has room for two thousand such messages.
    populated: Cell<usize>,
}

impl Ring {
    /// Bytes of a block for a ring of so many bytes.
    pub(crate) fn block_bytes(long_bytes: usize) -> usize {
        LONG_AT + long_bytes
    }

    /// A view of a block of [`Ring::block_bytes`]; `long_bytes` is a power of two.
    pub(crate) fn new(block: Arc<Block>, long_bytes: usize) -> Ring {
        assert!(long_bytes.is_power_of_two() && block.len() >= Ring::block_bytes(long_bytes));
        Ring { block, long_bytes, populated: Cell::new(0) }
    }

    /// Sees to it that pages are there up to an offset: as many again as there are, so that little is asked for of rings
    /// that are little used.
    #[inline]
    fn populate(&self, end: usize) {
        let populated = self.populated.get();
        if end > populated {
            let ahead = populated.clamp(4 * PAGE_BYTES, AHEAD_BYTES_MAX);
            let upto = (end + ahead).next_multiple_of(PAGE_BYTES).min(self.long_bytes);
            self.block.populate(LONG_AT + populated..LONG_AT + upto);
            self.populated.set(upto);
        }
    }

    /// How many messages that were lent the reader has read; after that they may be overwritten.
    #[inline]
    pub(crate) fn returned(&self) -> u64 {
        self.block.word(RETURNED_AT).load(Ordering::Acquire)
    }

    /// Tells the writer so; what was read before is read.
    #[inline]
    pub(crate) fn set_returned(&self, messages: u64) {
        self.block.word(RETURNED_AT).store(messages, Ordering::Release);
    }

    /// How many pieces of messages that were lent the reader has read: that it comes on.
    #[inline]
    pub(crate) fn pieces(&self) -> u64 {
        self.block.word(PIECES_AT).load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_pieces(&self, pieces: u64) {
        self.block.word(PIECES_AT).store(pieces, Ordering::Relaxed);
    }

    /// The memory it lies in.
    #[cfg(test)]
    pub(crate) fn block(&self) -> Arc<Block> {
        self.block.clone()
    }

    #[inline]
    fn cell_at(cell: usize) -> usize {
        CELLS_AT + cell % CELLS * LINE_BYTES
    }
}

impl Shared for Ring {
    #[inline]
    fn cells(&self) -> usize {
        CELLS
    }

    #[inline]
    fn long_bytes(&self) -> usize {
        self.long_bytes
    }

    #[inline]
    fn stamp(&self, cell: usize) -> u64 {
        self.block.word(Ring::cell_at(cell)).load(Ordering::Acquire)
    }

    #[inline]
    fn set_stamp(&self, cell: usize, stamp: u64) {
        self.block.word(Ring::cell_at(cell)).store(stamp, Ordering::Release);
    }

    #[inline]
    fn taken(&self) -> Taken {
        // The other way round than they are set: the position is never behind the packets.
        let packets = self.block.word(0).load(Ordering::Acquire);
        Taken { packets, position: self.block.word(8).load(Ordering::Acquire) }
    }

    #[inline]
    fn set_taken(&self, taken: Taken) {
        self.block.word(8).store(taken.position, Ordering::Release);
        self.block.word(0).store(taken.packets, Ordering::Release);
    }

    #[inline]
    fn cell(&self, cell: usize) -> &[u8; CELL_BYTES] {
        let at = self.block.at(Ring::cell_at(cell) + STAMP_BYTES);
        // SAFETY: within the block, which outlives the view. The protocol lets a cell be read only once its stamp is
        // there, and the writer leaves it alone until the reader has said that it is done.
        unsafe { &*at.cast() }
    }

    #[inline]
    fn write_cell(&self, cell: usize, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= CELL_BYTES, "invariant: what is written fits the cell");
        let to = self.block.at(Ring::cell_at(cell) + STAMP_BYTES);
        // SAFETY: within the cell, which the reader does not look at before its stamp is set. Callers' memory never
        // overlaps a ring.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.add(at), bytes.len()) }
    }

    #[inline]
    fn long(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset < self.long_bytes && len <= self.long_bytes - offset, "invariant: bytes of the ring");
        self.populate(offset + len);
        self.block.read(LONG_AT + offset, len)
    }

    #[inline]
    fn write_long(&self, offset: usize, bytes: &[u8], stream: bool) {
        assert!(offset <= self.long_bytes && bytes.len() <= self.long_bytes - offset, "invariant: as above");
        self.populate(offset + bytes.len());
        self.block.write(LONG_AT + offset, bytes, stream);
    }
}
