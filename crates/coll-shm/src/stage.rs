//! A rank's stage: memory in which a message that goes to several peers is written once, and which all of them read.
//!
//! It has two halves, filled in turn. Messages lie one after the other in a half; a half is begun anew when every message
//! that lay in it has been lent to all whom it goes to, and all of them have said that they have read it. Until then there
//! is no room, and messages go by the rings.
//!
//! It is a part of what peers have open of this rank from the start, so that they can read what was lent to them even when
//! this rank's process has ended.

use crate::memory::Block;
use crate::pace::{Copying, Pace};
use crate::transport::Port;
use std::sync::Arc;

/// The number of a stage in a loan: no other memory has it.
pub(crate) const STAGE: u64 = 0;

/// Bytes of a half. Most of a stage is never touched and takes no memory.
const HALF_BYTES: usize = 2 << 20;

/// Bytes of a stage.
pub(crate) const STAGE_BYTES: usize = 2 * HALF_BYTES;

/// Messages start at lines.
const LINE_BYTES: usize = 64;

/// The owner's view.
#[derive(Debug)]
pub(crate) struct Stage {
    block: Arc<Block>,
    /// The half that is being filled.
    half: usize,
    /// Up to where.
    filled: usize,
    /// Messages in each half that will be lent to further peers.
    open: [u32; 2],
    /// Up to where the stage has its pages.
    populated: usize,
    pace: Pace,
}

impl Stage {
    pub(crate) fn new(block: Arc<Block>) -> Stage {
        assert!(block.len() >= STAGE_BYTES, "invariant: a block of this size");
        Stage { block, half: 0, filled: 0, open: [0; 2], populated: 0, pace: Pace::new() }
    }

    /// Room for a message, if there is.
    pub(crate) fn take(&mut self, bytes: u64, ports: &[Port]) -> Option<u64> {
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= HALF_BYTES)?;
        if self.filled > 0 && self.is_read(self.half, ports) {
            self.filled = 0;
        }
        if bytes > HALF_BYTES - self.filled {
            if !self.is_read(1 - self.half, ports) {
                return None;
            }
            (self.half, self.filled) = (1 - self.half, 0);
        }
        let at = self.half * HALF_BYTES + self.filled;
        self.filled = (self.filled + bytes.next_multiple_of(LINE_BYTES)).min(HALF_BYTES);
        self.open[self.half] += 1;
        self.populate(at + bytes);
        Some(at as u64)
    }

    /// Whether nothing in a half is read any more.
    fn is_read(&self, half: usize, ports: &[Port]) -> bool {
        self.open[half] == 0 && ports.iter().all(|port| port.writer.shared().returned() >= port.staged[half])
    }

    /// Asks for the pages up to `end` at once.
    fn populate(&mut self, end: usize) {
        if end > self.populated {
            self.block.populate(self.populated..end);
            self.populated = end;
        }
    }

    /// Writes bytes of a message: the lines were last read by other cores, as those of a ring were.
    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) {
        let (block, at) = (&self.block, at as usize);
        let Copying { stream, probe_bytes } = self.pace.choose(bytes.len());
        let (probe, rest) = bytes.split_at(probe_bytes);
        if !probe.is_empty() {
            self.pace.time(probe_bytes, || block.write(at, probe, false));
        }
        block.write(at + probe_bytes, rest, stream);
    }

    /// Notes that a message has been lent whole on a link, as the `lent`th of it.
    #[inline]
    pub(crate) fn lent(&mut self, port: &mut Port, at: u64, last: bool) {
        let half = at as usize / HALF_BYTES;
        port.staged[half] = port.lent;
        self.open[half] -= u32::from(last);
    }
}

/// What a peer lends of its stage, which is mapped in `block`.
pub(crate) fn piece(block: &Block, offset: u64, bytes: u64) -> Result<&[u8], String> {
    let len = STAGE_BYTES as u64;
    if bytes == 0 || bytes > len || offset > len - bytes {
        return Err(format!("it lends {bytes} B from byte {offset} on of a stage of {len} B"));
    }
    Ok(block.read(offset as usize, bytes as usize))
}
