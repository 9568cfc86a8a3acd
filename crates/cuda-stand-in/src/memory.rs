//! Which addresses mean what: live allocations, of which device and context, and what lies beside them.
//!
//! Device addresses are real addresses of a mapping for each device, so that code of a compiled kernel works on them as they
//! are; who may use which is looked up here before. Freed memory is taken again as late as can be, and there is a gap after
//! each allocation, so that stale and stray addresses are found.

use crate::clock::{Clock, Epoch};
use crate::races::History;
use crate::random::Random;
use crate::space::{self, Space};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// What kind of memory an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of a device, from `cuMemAlloc`.
    Device,
    /// Of a device, in the order of a stream, from `cuMemAllocAsync`.
    Pool,
    /// Of the host, from `cuMemHostAlloc`.
    Pinned,
    /// Of the host, told of with `cuMemHostRegister`.
    Registered,
    /// Of another process's device.
    Imported,
}

/// A word that streams wrote: each value with who wrote it and what was known there, the newest ones in order.
#[derive(Debug, Default)]
pub(crate) struct Releases(VecDeque<(u64, Epoch, Clock)>);

/// Values of a word that are kept.
const RELEASES_MAX: usize = 64;

impl Releases {
    /// One more.
    pub(crate) fn write(&mut self, value: u64, epoch: Epoch, clock: &Clock) {
        if self.0.len() == RELEASES_MAX {
            self.0.pop_front();
        }
        self.0.push_back((value, epoch, clock.clone()));
    }

    /// What was written last.
    pub(crate) fn last_value(&self) -> Option<u64> {
        self.0.back().map(|(value, ..)| *value)
    }

    /// What was known where it was written.
    pub(crate) fn last(&self) -> Option<&Clock> {
        self.0.back().map(|(.., clock)| clock)
    }

    /// What whoever waits for a value can rely on: a wait may have seen the first that does, of those that do not lie before
    /// one that it knew of already.
    pub(crate) fn first(&self, known: &Clock, does: impl Fn(u64) -> bool) -> Option<&Clock> {
        let from = self.0.iter().rposition(|(_, epoch, _)| known.covers(*epoch)).unwrap_or(0);
        self.0.range(from..).find(|(value, ..)| does(*value)).map(|(.., clock)| clock)
    }
}

/// Memory that an address may point to.
#[derive(Debug)]
pub(crate) struct Allocation {
    pub(crate) number: u64,
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: Kind,
    pub(crate) device: usize,
    pub(crate) context: u64,
    /// False until an allocation in a stream's order has come about.
    pub(crate) live: bool,
    /// Flags of host memory.
    pub(crate) flags: u32,
    /// How often it was opened, if it was imported.
    pub(crate) openings: u32,
    pub(crate) history: History,
    /// Words that streams wrote for others to wait for, by their places.
    pub(crate) releases: BTreeMap<u64, Releases>,
    /// The mapping, if it has one of its own, which lasts as long.
    _space: Option<Space>,
}

impl Allocation {
    /// True for memory of the host.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self.kind, Kind::Pinned | Kind::Registered)
    }

    /// True for memory of a device that another process may use too.
    pub(crate) fn is_shared(&self) -> bool {
        self.kind == Kind::Imported || (self.kind == Kind::Device && self.openings > 1)
    }
}

impl fmt::Display for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Allocation { number, bytes, device, .. } = self;
        match self.kind {
            Kind::Device | Kind::Pool => write!(f, "allocation {number} ({bytes} bytes on device {device})"),
            Kind::Pinned | Kind::Registered => write!(f, "allocation {number} ({bytes} bytes of the host)"),
            Kind::Imported => {
                write!(f, "allocation {number} ({bytes} bytes on another process's device {device})")
            }
        }
    }
}

#[derive(Debug)]
struct Region {
    space: Space,
    /// Where the next allocation is looked for first.
    cursor: u64,
    used: u64,
}

/// What was where an address points to.
#[derive(Debug)]
struct Grave {
    number: u64,
    bytes: u64,
    /// A mapping of its own, which nothing else takes the place of.
    _space: Option<Space>,
}

/// All memory that the driver knows of.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: Vec<Region>,
    device_bytes: u64,
    allocations: BTreeMap<u64, Allocation>,
    graves: BTreeMap<u64, Grave>,
    numbers: u64,
}

const ALIGN_BYTES: u64 = 512;

impl Memory {
    /// Memory for so many devices.
    pub(crate) fn new(devices: usize, device_bytes: u64) -> std::io::Result<Memory> {
        // Gaps take address space, not memory.
        let bytes = device_bytes.saturating_add(device_bytes / 4).saturating_add(64 << 20);
        let region = |_| {
            let space = Space::new(bytes)?;
            Ok(Region { cursor: space.start(), space, used: 0 })
        };
        let regions = (0..devices).map(region).collect::<std::io::Result<_>>()?;
        Ok(Memory { regions, device_bytes, ..Memory::default() })
    }

    /// Free bytes of a device.
    pub(crate) fn free_bytes(&self, device: usize) -> u64 {
        self.device_bytes - self.regions[device].used
    }

    /// New memory of a device; None if there is not so much.
    pub(crate) fn allocate(&mut self, device: usize, bytes: u64, kind: Kind, context: u64) -> Option<u64> {
        if bytes > self.free_bytes(device) {
            return None;
        }
        let need = bytes.checked_add(ALIGN_BYTES)?;
        let region = &self.regions[device];
        let (start, cursor, end) = (region.space.start(), region.cursor, region.space.end());
        let base = self.gap(cursor, end, need).or_else(|| self.gap(start, cursor, need))?;
        let region = &mut self.regions[device];
        region.used += bytes;
        region.cursor = base.saturating_add(need).next_multiple_of(ALIGN_BYTES).min(end);
        while let Some((&at, grave)) = self.graves.range(..base + bytes).next_back()
            && at + grave.bytes > base
        {
            self.graves.remove(&at);
        }
        self.insert(base, bytes, kind, device, context, None);
        Some(base)
    }

    /// The first place between two addresses where so many bytes are free.
    fn gap(&self, from: u64, to: u64, need: u64) -> Option<u64> {
        let mut at = from;
        for (&base, allocation) in self.allocations.range(from..to) {
            if base.saturating_sub(at) >= need {
                return Some(at);
            }
            at = (base + allocation.bytes + ALIGN_BYTES).next_multiple_of(ALIGN_BYTES);
        }
        (to.saturating_sub(at) >= need).then_some(at)
    }

    fn insert(
        &mut self,
        base: u64,
        bytes: u64,
        kind: Kind,
        device: usize,
        context: u64,
        space: Option<Space>,
    ) {
        self.numbers += 1;
        let allocation = Allocation {
            number: self.numbers,
            base,
            bytes,
            kind,
            device,
            context,
            live: kind != Kind::Pool,
            flags: 0,
            openings: 1,
            history: History::default(),
            releases: BTreeMap::new(),
            _space: space,
        };
        self.allocations.insert(base, allocation);
    }

    /// New memory of the host, from the start of a page.
    pub(crate) fn allocate_host(&mut self, bytes: u64, context: u64) -> std::io::Result<u64> {
        let space = Space::alone(bytes)?;
        let base = space.start();
        self.insert(base, bytes, Kind::Pinned, 0, context, Some(space));
        Ok(base)
    }

    /// Memory of the host that a caller has.
    pub(crate) fn register(&mut self, base: u64, bytes: u64, context: u64) {
        self.insert(base, bytes, Kind::Registered, 0, context, None);
    }

    /// Memory of another process.
    pub(crate) fn import(&mut self, base: u64, bytes: u64, device: usize, context: u64, space: Space) {
        self.insert(base, bytes, Kind::Imported, device, context, Some(space));
    }

    /// The end of an allocation.
    pub(crate) fn release(&mut self, base: u64) {
        let Some(allocation) = self.allocations.remove(&base) else { return };
        let Allocation { number, bytes, device, kind, _space: space, .. } = allocation;
        match kind {
            Kind::Device | Kind::Pool => {
                self.regions[device].used -= bytes;
                self.regions[device].space.discard(base, base + bytes);
                self.graves.insert(base, Grave { number, bytes, _space: None });
            }
            Kind::Pinned | Kind::Imported => {
                let space = space.map(Space::retired);
                self.graves.insert(base, Grave { number, bytes, _space: space });
            }
            // It stays the caller's.
            Kind::Registered => {}
        }
    }

    /// Memory that has just come about holds what it happens to hold.
    pub(crate) fn scramble(base: u64, bytes: u64, seed: u64) {
        let mut random = Random::new(seed);
        let mut block = [0u8; 4096];
        for word in block.chunks_exact_mut(8) {
            word.copy_from_slice(&random.next().to_le_bytes());
        }
        let mut at = 0;
        while at < bytes {
            let part = (bytes - at).min(4096);
            space::write(base + at, &block[..part as usize]);
            at += part;
        }
    }

    /// The allocation that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<&Allocation> {
        let (_, allocation) = self.allocations.range(..=address).next_back()?;
        (address < allocation.base + allocation.bytes).then_some(allocation)
    }

    /// The same, to be changed.
    pub(crate) fn find_mut(&mut self, address: u64) -> Option<&mut Allocation> {
        let (_, allocation) = self.allocations.range_mut(..=address).next_back()?;
        (address < allocation.base + allocation.bytes).then_some(allocation)
    }

    /// All allocations.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Allocation> {
        self.allocations.values()
    }

    /// Whether an allocation lies between two addresses.
    pub(crate) fn overlaps(&self, base: u64, bytes: u64) -> bool {
        let before = self.allocations.range(..base + bytes).next_back();
        before.is_some_and(|(_, allocation)| allocation.base + allocation.bytes > base)
    }

    /// The allocation that holds all of these bytes, or what is wrong with them. None: it is memory of the host that the
    /// driver was not told of.
    pub(crate) fn within(&self, address: u64, bytes: u64) -> Result<Option<&Allocation>, String> {
        let Some(allocation) = self.find(address) else {
            return match self.is_of_device(address) || self.grave(address).is_some() {
                true => Err(self.stray(address, bytes)),
                false if address == 0 => Err("address 0".into()),
                false => Ok(None),
            };
        };
        let offset = address - allocation.base;
        if bytes > allocation.bytes - offset {
            let past = bytes - (allocation.bytes - offset);
            return Err(format!("{bytes} bytes from byte {offset} of {allocation}, {past} beyond its end"));
        }
        if !allocation.live {
            return Err(format!("{allocation}, which has not come about yet in the order of its stream"));
        }
        Ok(Some(allocation))
    }

    /// Whether an address lies in some device's memory.
    pub(crate) fn is_of_device(&self, address: u64) -> bool {
        self.regions.iter().any(|region| (region.space.start()..region.space.end()).contains(&address))
    }

    /// What lay at an address and was freed.
    fn grave(&self, address: u64) -> Option<(u64, &Grave)> {
        let (&base, grave) = self.graves.range(..=address).next_back()?;
        (address < base + grave.bytes).then_some((base, grave))
    }

    fn stray(&self, address: u64, bytes: u64) -> String {
        match self.grave(address) {
            Some((base, grave)) => {
                let Grave { number, bytes: all, .. } = grave;
                format!(
                    "{bytes} bytes from byte {} of allocation {number} ({all} bytes), which was freed",
                    address - base
                )
            }
            None => format!("{bytes} bytes at {address:#x}, where no allocation lies"),
        }
    }

    /// The file of a device's memory, and where in it an address lies.
    pub(crate) fn file_of(&self, device: usize, address: u64) -> Option<(u32, u64)> {
        let space = &self.regions[device].space;
        Some((space.file_number()?, address - space.start()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_apart() {
        let mut memory = Memory::new(2, 1 << 20).unwrap();
        let a = memory.allocate(0, 1000, Kind::Device, 1).unwrap();
        let b = memory.allocate(1, 8, Kind::Device, 1).unwrap();
        assert_eq!(memory.find(a + 999).unwrap().device, 0);
        assert_eq!(memory.find(b).unwrap().device, 1);
        assert!(memory.within(a, 1000).unwrap().is_some());
        assert!(memory.within(a + 1, 1000).unwrap_err().contains("1 beyond its end"));
        assert!(memory.within(a + 1000, 1).unwrap_err().contains("no allocation"));
        memory.release(a);
        assert!(memory.within(a + 4, 4).unwrap_err().contains("from byte 4 of allocation 1"));
        let here = 5u64;
        assert!(memory.within(&raw const here as u64, 8).unwrap().is_none());
    }

    #[test]
    fn freed_memory_is_taken_again_when_nothing_else_is_left() {
        let mut memory = Memory::new(1, 1 << 20).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let mut again = 0;
        for _ in 0..4000 {
            let base = memory.allocate(0, 1 << 19, Kind::Device, 1).unwrap();
            again += usize::from(!seen.insert(base));
            assert!(memory.allocate(0, (1 << 19) + 1, Kind::Device, 1).is_none(), "there is not so much");
            memory.release(base);
        }
        assert!(seen.len() > 100 && again > 1000, "{} places, {again} times again", seen.len());
        assert_eq!(memory.free_bytes(0), 1 << 20);
    }
}
