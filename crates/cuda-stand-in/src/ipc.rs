//! Memory and events that processes share. A handle says which process, which of its files in memory, and where in it; who
//! opens it maps that part of the file. Words of shared events lie in a file of their own.
//!
//! Who knows what is not told between processes: the accesses of another one are not checked against one's own, and what a
//! stream has told others, by a word or an event that they can see, may come back in ways that are not seen here; so whoever
//! waits for others, and the host, are taken to know it. A process may open its own handles too, which CUDA refuses, so that
//! ranks of one process can be tried.

use crate::code::{Answer, Code};
use crate::driver::Driver;
use crate::event::{DISABLE_TIMING, Event, INTERPROCESS};
use crate::memory::Kind;
use crate::space::Space;
use crate::work::Record;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A `CUipcMemHandle` or `CUipcEventHandle`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Handle(pub(crate) [u8; 64]);

/// What a handle says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    process: u32,
    file: u32,
    from: u64,
    bytes: u64,
    device: u32,
    event: bool,
}

const MAGIC: [u8; 8] = *b"collcIPC";
/// Bytes of the file of shared events: 16 each.
const WORDS_BYTES: u64 = 1 << 20;
const LAZY_PEER_ACCESS: u32 = 1;

impl Handle {
    fn of(place: Place) -> Handle {
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&place.process.to_le_bytes());
        bytes[12..16].copy_from_slice(&place.file.to_le_bytes());
        bytes[16..24].copy_from_slice(&place.from.to_le_bytes());
        bytes[24..32].copy_from_slice(&place.bytes.to_le_bytes());
        bytes[32..36].copy_from_slice(&place.device.to_le_bytes());
        bytes[36] = place.event.into();
        Handle(bytes)
    }

    fn place(&self) -> Option<Place> {
        let bytes = &self.0;
        let four = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
        let eight = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        bytes.starts_with(&MAGIC).then(|| Place {
            process: four(8),
            file: four(12),
            from: eight(16),
            bytes: eight(24),
            device: four(32),
            event: bytes[36] != 0,
        })
    }
}

/// What this process shares and has opened.
#[derive(Debug)]
pub(crate) struct Exchange {
    words: Space,
    used: u64,
    /// Memory of others, by what its handle says and for which context, and where it lies here.
    opened: BTreeMap<(Place, u64), u64>,
    /// Where shared events were recorded last by this process, by their words.
    recorded: BTreeMap<u64, Arc<Record>>,
    /// Files of others' events.
    files: Vec<(Place, Space, u64)>,
}

impl Driver {
    fn exchange(&mut self) -> Answer<&mut Exchange> {
        if self.exchange.is_none() {
            let words = Space::new(WORDS_BYTES).map_err(|_| Code::OPERATING_SYSTEM)?;
            let (opened, recorded) = (BTreeMap::new(), BTreeMap::new());
            let exchange = Exchange { words, used: 0, opened, recorded, files: Vec::new() };
            self.exchange = Some(exchange);
        }
        self.exchange.as_mut().ok_or(Code::UNKNOWN)
    }

    /// Two words that processes share.
    pub(crate) fn shared_word(&mut self) -> Answer<u64> {
        let exchange = self.exchange()?;
        if exchange.used + 16 > WORDS_BYTES {
            return Err(self.wrong(Code::OUT_OF_MEMORY, "there are too many events of several processes"));
        }
        exchange.used += 16;
        Ok(exchange.words.start() + exchange.used - 16)
    }

    /// A shared event has been recorded by this process.
    pub(crate) fn recorded(&mut self, word: u64, record: &Arc<Record>) {
        if let Some(exchange) = &mut self.exchange {
            exchange.recorded.insert(word, record.clone());
        }
    }

    /// Where this process recorded a shared event last.
    pub(crate) fn last_recorded(&self, word: u64) -> Option<Arc<Record>> {
        self.exchange.as_ref()?.recorded.get(&word).cloned()
    }

    /// A handle of an allocation.
    pub(crate) fn handle_of_memory(&mut self, at: u64) -> Answer<Handle> {
        let Some(allocation) = self.memory.find_mut(at).filter(|allocation| allocation.kind == Kind::Device)
        else {
            let text = format!("{at:#x} is no memory of cuMemAlloc; others cannot be shared");
            return Err(self.wrong(Code::INVALID_VALUE, text));
        };
        allocation.openings = allocation.openings.max(2);
        let (base, bytes, device) = (allocation.base, allocation.bytes, allocation.device);
        let Some((file, from)) = self.memory.file_of(device, base) else { return Err(Code::UNKNOWN) };
        let process = std::process::id();
        Ok(Handle::of(Place { process, file, from, bytes, device: device as u32, event: false }))
    }

    /// Memory by its handle.
    pub(crate) fn open_memory(&mut self, handle: &Handle, flags: u32) -> Answer<u64> {
        let context = self.current_context()?;
        if flags != LAZY_PEER_ACCESS {
            return Err(self.wrong(Code::INVALID_VALUE, format!("flags {flags}; only 1 is a flag here")));
        }
        let Some(place) = handle.place().filter(|place| !place.event) else {
            return Err(self.wrong(Code::INVALID_HANDLE, "it is no handle of memory"));
        };
        let device = self.device(place.device as i32)?;
        let mine = self.context(context)?.device;
        if mine != device && !self.config.reaches(mine, device) {
            let text = format!("device {mine} cannot reach the memory of device {device}");
            return Err(self.wrong(Code::PEER_ACCESS_UNSUPPORTED, text));
        }
        if place.process == std::process::id() {
            return self.open_own(place, device, context);
        }
        if let Some(&base) = self.exchange()?.opened.get(&(place, context)) {
            if let Some(allocation) = self.memory.find_mut(base) {
                allocation.openings += 1;
            }
            return Ok(base);
        }
        let (space, base) = match Space::of_process(place.process, place.file, place.from, place.bytes) {
            Ok(opened) => opened,
            Err(error) => {
                let text = format!("memory of process {} cannot be opened: {error}", place.process);
                return Err(self.wrong(Code::MAP_FAILED, text));
            }
        };
        self.memory.import(base, place.bytes, device, context, space);
        self.exchange()?.opened.insert((place, context), base);
        Ok(base)
    }

    /// Whoever opens memory of another device gets access to it, as between processes.
    fn open_own(&mut self, place: Place, device: usize, context: u64) -> Answer<u64> {
        let found = self.memory.all().find(|allocation| {
            allocation.device == device
                && allocation.kind == Kind::Device
                && self.memory.file_of(device, allocation.base) == Some((place.file, place.from))
        });
        let base = found.map(|allocation| allocation.base);
        let Some(allocation) = base.and_then(|base| self.memory.find_mut(base)) else {
            return Err(self.wrong(Code::INVALID_HANDLE, "the memory of the handle was freed"));
        };
        allocation.openings += 1;
        let (base, owner) = (allocation.base, allocation.context);
        if let Some(opener) = self.contexts.get_mut(&context).filter(|_| owner != context) {
            opener.peers.insert(owner);
        }
        Ok(base)
    }

    /// Memory of another process is let go of. True if nobody has it open any more and it is to be unmapped.
    pub(crate) fn close_memory(&mut self, at: u64) -> Answer<bool> {
        match self.memory.find_mut(at) {
            Some(allocation) if allocation.base == at && allocation.kind == Kind::Imported => {
                allocation.openings -= 1;
                Ok(allocation.openings == 0)
            }
            Some(allocation) if allocation.base == at && allocation.openings > 2 => {
                allocation.openings -= 1;
                Ok(false)
            }
            _ => Err(self.wrong(Code::INVALID_VALUE, format!("{at:#x} was not opened by a handle"))),
        }
    }

    /// The end of memory that was opened, if nobody has it open any more.
    pub(crate) fn forget_closed(&mut self, base: u64) {
        if self.memory.find(base).is_none_or(|found| found.kind != Kind::Imported || found.openings > 0) {
            return;
        }
        self.memory.release(base);
        if let Some(exchange) = &mut self.exchange {
            exchange.opened.retain(|_, opened| *opened != base);
        }
    }

    /// A handle of an event.
    pub(crate) fn handle_of_event(&mut self, event: u64) -> Answer<Handle> {
        let Some(word) = self.event(event)?.shared else {
            return Err(self.wrong(Code::INVALID_HANDLE, "the event was not made for several processes"));
        };
        let exchange = self.exchange()?;
        let Some(file) = exchange.words.file_number() else { return Err(Code::UNKNOWN) };
        let from = word.wrapping_sub(exchange.words.start());
        if from >= WORDS_BYTES {
            return Err(self.wrong(Code::INVALID_HANDLE, "the event is another process's"));
        }
        let process = std::process::id();
        Ok(Handle::of(Place { process, file, from, bytes: 16, device: 0, event: true }))
    }

    /// An event by its handle.
    pub(crate) fn open_event(&mut self, handle: &Handle) -> Answer<u64> {
        let context = self.current_context()?;
        let Some(place) = handle.place().filter(|place| place.event && place.from < WORDS_BYTES) else {
            return Err(self.wrong(Code::INVALID_HANDLE, "it is no handle of an event"));
        };
        let exchange = self.exchange()?;
        let whole = Place { from: 0, bytes: WORDS_BYTES, ..place };
        let start = if place.process == std::process::id() && Some(place.file) == exchange.words.file_number()
        {
            exchange.words.start()
        } else if let Some((_, _, start)) = exchange.files.iter().find(|(file, ..)| *file == whole) {
            *start
        } else {
            match Space::of_process(whole.process, whole.file, 0, WORDS_BYTES) {
                Ok((space, start)) => {
                    exchange.files.push((whole, space, start));
                    start
                }
                Err(error) => {
                    let text = format!("events of process {} cannot be opened: {error}", whole.process);
                    return Err(self.wrong(Code::MAP_FAILED, text));
                }
            }
        };
        let event = self.handle();
        let flags = INTERPROCESS | DISABLE_TIMING;
        self.events.insert(event, Event { context, flags, latest: None, shared: Some(start + place.from) });
        Ok(event)
    }
}
