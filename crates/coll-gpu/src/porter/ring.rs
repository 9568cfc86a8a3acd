//! Pinned memory in slots that slices of messages take in turn. A slot is used again when whoever took its slice has it: on the
//! way out the network, on the way in the copy to the device.

use super::Trouble;
use crate::GpuError;
use crate::driver::{Device, Event, Pinned, Pointer, StreamHandle, copy_pinned};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Slots of one direction of a link: one is copied, one travels, and one each is on its way between.
const SLOTS: usize = 4;

/// Slots, and the slices in them, oldest first.
pub(super) struct Ring {
    memory: Pinned,
    slot_bytes: usize,
    events: Vec<Event>,
    slices: VecDeque<Slice>,
    /// The slot of the next slice.
    next: usize,
}

/// A part of a message that is in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    /// Which message of the direction's list.
    pub(super) message: usize,
    pub(super) bytes: usize,
    /// Whether the message ends with it.
    pub(super) last: bool,
    /// The copy to the slot, or from it, has been put on a stream.
    copying: bool,
    /// That copy has been seen to be done.
    copied: bool,
    slot: usize,
}

impl Ring {
    /// Slots for messages of at most `message_bytes`, in slices of at most `slice_bytes`.
    pub(super) fn new(
        device: &Arc<Device>,
        messages: usize,
        message_bytes: u64,
        slice_bytes: usize,
    ) -> Result<Ring, GpuError> {
        let slot_bytes = usize::try_from(message_bytes).unwrap_or(usize::MAX).min(slice_bytes.max(1));
        let slices = message_bytes.div_ceil(slot_bytes.max(1) as u64).saturating_mul(messages as u64);
        let slots = usize::try_from(slices).unwrap_or(usize::MAX).min(SLOTS);
        Ok(Ring {
            memory: Pinned::new(device, slot_bytes * slots)?,
            slot_bytes,
            events: (0..slots).map(|_| Event::new(device)).collect::<Result<_, _>>()?,
            slices: VecDeque::with_capacity(slots),
            next: 0,
        })
    }

    /// Nothing is in it any more.
    pub(super) fn clear(&mut self) {
        self.slices.clear();
        self.next = 0;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// Bytes of the next slice of a message that lacks so many, if a slot is free.
    pub(super) fn room(&self, lacking: u64) -> Option<usize> {
        let free = self.slices.len() < self.events.len();
        free.then(|| usize::try_from(lacking).unwrap_or(usize::MAX).min(self.slot_bytes))
    }

    /// The first bytes of the slot that is taken next.
    pub(super) fn next_slot(&mut self, part: Range<usize>) -> &mut [u8] {
        let start = self.next * self.slot_bytes;
        self.memory.write(start + part.start..start + part.end)
    }

    /// Takes that slot for a slice.
    pub(super) fn take(&mut self, message: usize, bytes: usize, last: bool) {
        let slot = self.next;
        self.next = (slot + 1) % self.events.len();
        self.slices.push_back(Slice { message, bytes, last, copying: false, copied: false, slot });
    }

    /// The oldest slice whose copy has not been put on a stream, and its slot.
    pub(super) fn to_copy(&self) -> Option<(Slice, Pointer)> {
        let slice = self.slices.iter().find(|slice| !slice.copying)?;
        Some((*slice, self.memory.pointer().moved((slice.slot * self.slot_bytes) as u64)))
    }

    /// Notes that its copy is on a stream.
    pub(super) fn copies(&mut self, stream: StreamHandle) -> Result<(), GpuError> {
        if let Some(slice) = self.slices.iter_mut().find(|slice| !slice.copying) {
            self.events[slice.slot].record(stream)?;
            slice.copying = true;
        }
        Ok(())
    }

    /// The next slice whose copy is done, if it is.
    pub(super) fn copied(&mut self) -> Result<Option<Slice>, GpuError> {
        let Some(slice) = self.slices.iter_mut().find(|slice| !slice.copied) else { return Ok(None) };
        if !slice.copying || !self.events[slice.slot].is_done()? {
            return Ok(None);
        }
        slice.copied = true;
        Ok(Some(*slice))
    }

    /// The oldest slice, if its copy is done, and its bytes.
    pub(super) fn front(&self) -> Option<(Slice, &[u8])> {
        let slice = self.slices.front().filter(|slice| slice.copied)?;
        let start = slice.slot * self.slot_bytes;
        Some((*slice, self.memory.read(start..start + slice.bytes)))
    }

    /// Frees the slot of the oldest slice.
    pub(super) fn free(&mut self) {
        self.slices.pop_front();
    }
}

/// Where the bytes of a message lie in a device's memory, walked through from front to back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walk {
    part: usize,
    offset: u64,
}

/// Which way slices are copied.
#[derive(Clone, Copy, Debug)]
pub(super) enum Copies {
    ToHost,
    ToDevice,
}

impl Walk {
    /// Copies the next bytes of a message from a slot, or to it.
    pub(super) fn copy(
        &mut self,
        copies: Copies,
        parts: &[(Pointer, u64)],
        mut slot: Pointer,
        mut bytes: u64,
        (stream, device): (StreamHandle, &Device),
    ) -> Result<(), Trouble> {
        while bytes > 0 {
            let (start, length) = parts[self.part];
            let run = bytes.min(length - self.offset);
            let place = start.moved(self.offset);
            match copies {
                Copies::ToHost => copy_pinned(slot, place, run, stream, device)?,
                Copies::ToDevice => copy_pinned(place, slot, run, stream, device)?,
            }
            (slot, bytes, self.offset) = (slot.moved(run), bytes - run, self.offset + run);
            if self.offset == length {
                (self.part, self.offset) = (self.part + 1, 0);
            }
        }
        Ok(())
    }
}
