//! Copies and fills: which memory is on either side, and when a call waits for it.
//!
//! Memory of the host that the driver was not told of cannot be copied in the background. As CUDA does it, such a source is
//! read before the call returns, and such a target is written before it does. In a capture both stay as they are, and are
//! looked at when the graph runs.

use crate::code::{Answer, Code};
use crate::driver::Driver;
use crate::space;
use crate::wait::Wait;
use crate::work::Work;

/// What a caller says that an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Device,
    Host,
    /// It is for the driver to find out.
    Any,
}

/// What memory an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Device,
    Pinned,
    Pageable,
}

impl Driver {
    fn classify(&mut self, at: u64, side: Side) -> Answer<Found> {
        let found = match self.memory.find(at) {
            Some(allocation) if allocation.is_host() => Found::Pinned,
            Some(_) => Found::Device,
            None if self.memory.is_of_device(at) => Found::Device,
            None => Found::Pageable,
        };
        match (side, found) {
            (Side::Device, Found::Pageable) => {
                let text = format!(
                    "{at:#x} is no memory of a device, and memory of the host that no device can reach"
                );
                Err(self.wrong(Code::INVALID_VALUE, text))
            }
            (Side::Host, Found::Device) => {
                let text = format!("{at:#x} is memory of a device, where memory of the host belongs");
                Err(self.wrong(Code::INVALID_VALUE, text))
            }
            _ => Ok(found),
        }
    }

    /// Enqueues a copy. What the caller waits for before the call returns, if it must.
    pub(crate) fn copy(
        &mut self,
        stream: u64,
        (to, to_side): (u64, Side),
        (from, from_side): (u64, Side),
        bytes: u64,
    ) -> Answer<Wait> {
        if bytes == 0 {
            return Ok(Wait::default());
        }
        let (target, source) = (self.classify(to, to_side)?, self.classify(from, from_side)?);
        let captured = self.streams[&stream].capture.is_some();
        let staged = source == Found::Pageable && target != Found::Pageable && !captured;
        let mut work = Work::Copy { to, from, bytes };
        self.check(stream, &work)?;
        if staged {
            work = Work::Upload { to, bytes: space::read(from, bytes).into() };
        }
        self.enqueue(stream, work)?;
        match target == Found::Pageable && !captured {
            true => Ok(self.wait_for_streams(&[stream])),
            false => Ok(Wait::default()),
        }
    }

    /// A copy on stream 0 that blocks if memory of the host is on either side. Out of memory that the driver was not told of it
    /// blocks until that has been read, which is after all that came before, and may still be under way then.
    pub(crate) fn copy_now(
        &mut self,
        (to, to_side): (u64, Side),
        (from, from_side): (u64, Side),
        bytes: u64,
    ) -> Answer<Wait> {
        self.no_capture_minds()?;
        let stream = self.stream(0)?;
        let (target, source) = (self.classify(to, to_side)?, self.classify(from, from_side)?);
        if (target, source) == (Found::Device, Found::Pageable) && bytes > 0 {
            self.check(stream, &Work::Copy { to, from, bytes })?;
            self.may_enqueue(stream)?;
            self.order_with_default(stream);
            let before = self.wait_for_streams(&[stream]);
            self.copy(stream, (to, to_side), (from, from_side), bytes)?;
            return Ok(before);
        }
        self.copy(stream, (to, to_side), (from, from_side), bytes)?;
        match (target, source) == (Found::Device, Found::Device) || bytes == 0 {
            true => Ok(Wait::default()),
            false => Ok(self.wait_for_streams(&[stream])),
        }
    }

    /// A copy between devices: each side must be of the context that is said.
    pub(crate) fn copy_peer(
        &mut self,
        stream: u64,
        (to, to_context): (u64, u64),
        (from, from_context): (u64, u64),
        bytes: u64,
    ) -> Answer<Wait> {
        for (at, context) in [(to, to_context), (from, from_context)] {
            let device = self.context(context)?.device;
            let other = self.memory.find(at).filter(|a| !a.is_host() && a.device != device);
            if let Some(text) =
                other.map(|other| format!("{other} is not of device {device}, as its context"))
            {
                return Err(self.wrong(Code::INVALID_VALUE, text));
            }
        }
        self.copy(stream, (to, Side::Device), (from, Side::Device), bytes)
    }

    /// Enqueues a fill.
    pub(crate) fn fill(&mut self, stream: u64, to: u64, value: u32, width: u64, count: u64) -> Answer {
        if count == 0 {
            return Ok(());
        }
        self.classify(to, Side::Device)?;
        if !to.is_multiple_of(width) {
            return Err(self.wrong(Code::INVALID_VALUE, format!("{to:#x} is no multiple of {width}")));
        }
        let work = Work::Fill { to, pattern: value.to_le_bytes(), width, count };
        self.check(stream, &work)?;
        self.enqueue(stream, work)
    }

    /// Enqueues a fill on stream 0; the host does not wait for it.
    pub(crate) fn fill_now(&mut self, to: u64, value: u32, width: u64, count: u64) -> Answer {
        self.no_capture_minds()?;
        let stream = self.stream(0)?;
        self.fill(stream, to, value, width, count)
    }
}
