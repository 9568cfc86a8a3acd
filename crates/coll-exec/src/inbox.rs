//! Message slots of one incoming link: whole messages that came before their receive was ready. Plans that the
//! compiler makes need none; foreign plans may send before the other end receives, and say how often.

use crate::error::BindError;
use crate::frame::{CHECKSUM_BYTES, Header};

/// A ring of slots. Messages are numbered from 0 in each run.
pub(crate) struct Inbox {
    /// Header and payload of message m are in slot m modulo the number of slots.
    slots: Vec<Vec<u8>>,
    /// Bytes of each message with its header, and without a checksum.
    sizes: Vec<usize>,
    /// The first message that has not been taken out.
    first: usize,
    /// The message that is coming in.
    next: usize,
    /// How much of it has come.
    filled: usize,
}

impl Inbox {
    /// Slots for messages of these payload sizes.
    pub(crate) fn new(
        slots: u32,
        payloads: impl Iterator<Item = u64>,
        allocate: impl Fn(usize) -> Result<Vec<u8>, BindError>,
    ) -> Result<Inbox, BindError> {
        let sizes: Vec<usize> = (0..)
            .zip(payloads)
            .map(|(message, bytes)| bytes as usize + Header::size_bytes(message))
            .collect();
        let count = (slots as usize).min(sizes.len());
        let largest = |slot| {
            let sizes = sizes.iter().skip(slot).step_by(count).copied();
            sizes.max().unwrap_or(0) + CHECKSUM_BYTES
        };
        let slots = (0..count).map(|slot| allocate(largest(slot))).collect::<Result<_, _>>()?;
        Ok(Inbox { slots, sizes, first: 0, next: 0, filled: 0 })
    }

    pub(crate) fn begin(&mut self) {
        (self.first, self.next, self.filled) = (0, 0, 0);
    }

    /// Bytes of a message on a link that has checksums or not.
    fn size(&self, message: usize, checks: bool) -> usize {
        let (size, header) = (self.sizes[message], Header::size_bytes(message as u32));
        if checks && size > header { size + CHECKSUM_BYTES } else { size }
    }

    /// Where the next bytes go; nothing if no message is due or no slot is free.
    pub(crate) fn room(&mut self, checks: bool) -> &mut [u8] {
        if self.next == self.sizes.len() || self.next - self.first == self.slots.len() {
            return &mut [];
        }
        let slot = self.next % self.slots.len();
        let size = self.size(self.next, checks);
        &mut self.slots[slot][self.filled..size]
    }

    /// Notes that bytes have come into the room.
    pub(crate) fn fill(&mut self, bytes: usize, checks: bool) {
        self.filled += bytes;
        if self.filled == self.size(self.next, checks) {
            self.next += 1;
            self.filled = 0;
        }
    }

    /// What has come of the first message after its first `skip` bytes.
    pub(crate) fn arrived(&self, skip: usize, checks: bool) -> &[u8] {
        let Some(slot) = self.first.checked_rem(self.slots.len()) else { return &[] };
        let come = if self.first < self.next { self.size(self.first, checks) } else { self.filled };
        &self.slots[slot][skip.min(come)..come]
    }

    /// The first message has been used.
    pub(crate) fn take_out(&mut self) {
        self.first += 1;
    }
}
