//! Memory that a rank's peers can read where it lies: each piece is a nameless file in memory, which the owner has mapped
//! and a peer maps, to read, when it first hears of it.
//!
//! | bytes of the file | |
//! |---|---|
//! | 0..8 | its number: random, so that who reads it through a mapping has the right one |
//! | 64..68 | not 0 once the owner has let go of it |
//! | 4096.. | what the owner uses |
//!
//! Nobody but its owner writes to it. A peer reads it only between the word that it is lent and its own word that it has
//! read it; should the owner give up and go on in between, the peer finds that out after it has read (`still_lent`), and
//! uses nothing of it. The owner's pages go when it lets go, even where a peer still has them mapped, and such a mapping
//! stays valid and reads as zeros. Peers that are threads of the owner's process map it a second time like any other.
//!
//! The owner looks at its memory as a slice, and the compiler cannot know that it lives in a mapping: hence `unsafe`.

#![allow(unsafe_code)]

use crate::memory::{Block, PAGE_BYTES};
use coll_exec::Loan;
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use std::fs;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const NAME: &str = "coll-arena";
const LINK: &str = "/memfd:coll-arena";

const NUMBER_AT: usize = 0;
const GONE_AT: usize = 64;
const DATA_AT: usize = PAGE_BYTES;

/// Memory of this process that ranks which share memory with it read in place when it is sent: bytes, zeroed at first, from
/// the start of a page. Where the system gives no such memory it is ordinary, and is sent like any other.
#[derive(Debug)]
pub struct Memory {
    /// None if it is empty.
    arena: Option<Arc<Arena>>,
    len: usize,
}

impl Memory {
    /// So many bytes.
    ///
    /// # Errors
    /// If there is not so much memory.
    pub fn new(len: usize) -> io::Result<Memory> {
        if len == 0 {
            return Ok(Memory { arena: None, len });
        }
        let arena = match Arena::shared(len) {
            Ok(arena) => {
                let arena = Arc::new(arena);
                registry().push(arena.clone());
                CHANGES.fetch_add(1, Ordering::Release);
                arena
            }
            Err(_) => Arc::new(Arena { block: Block::heap(file_bytes(len)?)?, len, number: 0, file: None }),
        };
        Ok(Memory { arena: Some(arena), len })
    }

    /// Whether peers that share memory with this process can read it in place.
    pub fn is_shared(&self) -> bool {
        self.arena.as_ref().is_some_and(|arena| arena.file.is_some())
    }
}

impl Deref for Memory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.arena {
            None => &[],
            // SAFETY: these bytes lie in the block, which lives as long as `self`; only `self` hands them out to be
            // written, and other mappings of them only read.
            Some(arena) => unsafe { std::slice::from_raw_parts(arena.block.at(DATA_AT), self.len) },
        }
    }
}

impl DerefMut for Memory {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &self.arena {
            None => &mut [],
            // SAFETY: as above; `self` is borrowed alone, and is the only one of this arena that hands out its bytes.
            Some(arena) => unsafe { std::slice::from_raw_parts_mut(arena.block.at(DATA_AT), self.len) },
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Some(arena) = &self.arena else { return };
        let Some(file) = &arena.file else { return };
        registry().retain(|known| known.number != arena.number);
        CHANGES.fetch_add(1, Ordering::Release);
        // In this order: a peer that reads what is no longer there finds that it is gone.
        arena.block.half(GONE_AT).store(1, Ordering::SeqCst);
        let holes = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Where it cannot be done the pages go with the last mapping.
        let _ = rustix::fs::fallocate(file, holes, DATA_AT as u64, self.len as u64);
    }
}

/// A piece of memory. It stays mapped as long as a transport may still look whether bytes lie in it, so that no other
/// memory takes its place before.
#[derive(Debug)]
struct Arena {
    block: Block,
    len: usize,
    number: u64,
    /// None for ordinary memory.
    file: Option<OwnedFd>,
}

impl Arena {
    fn shared(len: usize) -> io::Result<Arena> {
        let file = rustix::fs::memfd_create(NAME, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let total = file_bytes(len)?;
        rustix::fs::ftruncate(&file, total as u64)?;
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let block = Block::mapped(file.as_fd(), 0, total)?;
        let mut number = [0; 8];
        rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
        let number = u64::from_ne_bytes(number).max(1);
        block.word(NUMBER_AT).store(number, Ordering::Release);
        // As a peer would: without `/proc` nobody could read it.
        fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        Ok(Arena { block, len, number, file: Some(file) })
    }

    /// The address of its first byte.
    fn start(&self) -> usize {
        self.block.at(DATA_AT).addr()
    }
}

fn file_bytes(len: usize) -> io::Result<usize> {
    len.checked_add(DATA_AT).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// All shared memory of this process, and how often that has changed.
static REGISTRY: Mutex<Vec<Arc<Arena>>> = Mutex::new(Vec::new());
static CHANGES: AtomicU64 = AtomicU64::new(0);

fn registry() -> MutexGuard<'static, Vec<Arc<Arena>>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells a transport which bytes lie in shared memory. It takes the lock only when memory has come or gone since it last
/// looked.
#[derive(Debug, Default)]
pub(crate) struct Lender {
    seen: u64,
    /// By address.
    arenas: Vec<Arc<Arena>>,
}

impl Lender {
    /// What a peer needs to read these bytes, if they lie in shared memory.
    #[inline]
    pub(crate) fn find(&mut self, bytes: &[u8]) -> Option<Loan> {
        if CHANGES.load(Ordering::Acquire) != self.seen {
            self.look();
        }
        let address = bytes.as_ptr().addr();
        let after = self.arenas.partition_point(|arena| arena.start() <= address);
        let arena = &self.arenas[after.checked_sub(1)?];
        let offset = address - arena.start();
        let within = bytes.len() <= arena.len && offset <= arena.len - bytes.len();
        let file = arena.file.as_ref().filter(|_| within)?;
        let (handle, bytes) = (file.as_raw_fd() as u64, bytes.len() as u64);
        Some(Loan { memory: arena.number, handle, offset: offset as u64, bytes })
    }

    #[cold]
    fn look(&mut self) {
        let known = registry();
        self.seen = CHANGES.load(Ordering::Acquire);
        self.arenas.clear();
        self.arenas.extend(known.iter().cloned());
        drop(known);
        self.arenas.sort_unstable_by_key(|arena| arena.start());
    }
}

/// Peers' memory as far as this rank has mapped it.
#[derive(Debug, Default)]
pub(crate) struct Borrower {
    maps: Vec<Map>,
    /// Where the last one was found.
    last: usize,
}

#[derive(Debug)]
struct Map {
    peer: u32,
    number: u64,
    block: Block,
}

impl Borrower {
    /// What a peer lends. It is mapped if it is not yet, out of the peer's process `pid`.
    #[inline]
    pub(crate) fn piece(&mut self, peer: u32, pid: u32, loan: &Loan) -> Result<&[u8], String> {
        let at = match self.place(peer, loan.memory) {
            Some(at) => at,
            None => self.map(peer, pid, loan)?,
        };
        let block = &self.maps[at].block;
        let len = (block.len() - DATA_AT) as u64;
        if loan.bytes == 0 || loan.bytes > len || loan.offset > len - loan.bytes {
            let Loan { offset, bytes, .. } = loan;
            return Err(format!("it lends {bytes} B from byte {offset} on of a memory of {len} B"));
        }
        // SAFETY: within the mapping, as was just checked, and that outlives the view. It is only read; that the owner may
        // write to it at any time is as with a ring: what is read is only ever moved and combined.
        Ok(unsafe {
            std::slice::from_raw_parts(block.at(DATA_AT + loan.offset as usize), loan.bytes as usize)
        })
    }

    /// Whether the owner has let go of it.
    #[inline]
    pub(crate) fn is_gone(&mut self, peer: u32, loan: &Loan) -> bool {
        let at = self.place(peer, loan.memory);
        at.is_none_or(|at| self.maps[at].block.half(GONE_AT).load(Ordering::SeqCst) != 0)
    }

    #[inline]
    fn place(&mut self, peer: u32, number: u64) -> Option<usize> {
        let is = |map: &Map| map.number == number && map.peer == peer;
        if self.maps.get(self.last).is_some_and(is) {
            return Some(self.last);
        }
        self.last = self.maps.iter().position(is)?;
        Some(self.last)
    }

    #[cold]
    fn map(&mut self, peer: u32, pid: u32, loan: &Loan) -> Result<usize, String> {
        self.forget();
        let block = open(pid, loan).map_err(|error| format!("the memory that it lends: {error}"))?;
        self.maps.push(Map { peer, number: loan.memory, block });
        Ok(self.maps.len() - 1)
    }

    /// Lets go of what its owner has let go of.
    pub(crate) fn forget(&mut self) {
        self.maps.retain(|map| map.block.half(GONE_AT).load(Ordering::Acquire) == 0);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.maps.len()
    }
}

/// Maps what a peer lends, if it is what the peer says.
fn open(pid: u32, loan: &Loan) -> io::Result<Block> {
    let refused = || io::Error::from(io::ErrorKind::InvalidData);
    let path = format!("/proc/{pid}/fd/{}", loan.handle);
    // What the peer has open may be anything: to be looked at before it is opened, and then without waiting.
    if !fs::read_link(&path)?.as_os_str().as_encoded_bytes().starts_with(LINK.as_bytes()) {
        return Err(refused());
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let sealed = rustix::fs::fcntl_get_seals(&file)?.contains(SealFlags::SHRINK);
    let size = usize::try_from(rustix::fs::fstat(&file)?.st_size).map_err(|_| refused())?;
    if !sealed || size <= DATA_AT {
        return Err(refused());
    }
    let block = Block::mapped_to_read(file.as_fd(), 0, size)?;
    match block.word(NUMBER_AT).load(Ordering::Acquire) == loan.memory {
        true => Ok(block),
        false => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid() -> u32 {
        std::process::id()
    }

    #[test]
    fn what_lies_in_shared_memory_is_found_and_read_in_place() {
        let (mut lender, mut borrower) = (Lender::default(), Borrower::default());
        let mut memory = Memory::new(10_000).unwrap();
        assert!(memory.is_shared() && memory.iter().all(|&byte| byte == 0));
        assert_eq!(memory.as_ptr().addr() % PAGE_BYTES, 0);
        memory.iter_mut().zip(0u32..).for_each(|(byte, at)| *byte = at as u8);
        for range in [0..1, 0..10_000, 4095..4097, 9_999..10_000] {
            let loan = lender.find(&memory[range.clone()]).unwrap();
            assert_eq!(borrower.piece(0, pid(), &loan).unwrap(), &memory[range]);
        }
        assert_eq!(borrower.len(), 1);
        let ordinary = [1u8; 4];
        assert_eq!((lender.find(&ordinary), lender.find(&[])), (None, None));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let (mut lender, mut borrower) = (Lender::default(), Borrower::default());
        let memory = Memory::new(5000).unwrap();
        let good = lender.find(&memory[10..20]).unwrap();
        borrower.piece(3, pid(), &good).unwrap();
        let mut refuse = |loan: Loan| borrower.piece(3, pid(), &loan).map(|_| ()).unwrap_err();
        // Up to the end of the last page there is memory, which nobody is told of.
        for (offset, bytes) in [(4999, 2), (5001, 1), (0, 0), (u64::MAX, 2), (2, u64::MAX), (0, 5001)] {
            let said = refuse(Loan { offset, bytes, ..good });
            assert!(said.contains("of a memory of 5000 B"), "{said}");
        }
        for handle in [0, 1, 1 << 20, u64::MAX] {
            refuse(Loan { memory: good.memory ^ 1, handle, ..good });
        }
        refuse(Loan { memory: good.memory ^ 1, ..good });
    }

    #[test]
    fn memory_that_is_gone_is_told_and_forgotten() {
        let (mut lender, mut borrower) = (Lender::default(), Borrower::default());
        let mut memory = Memory::new(4096).unwrap();
        memory.fill(7);
        let (address, loan) = (memory.as_ptr().addr(), lender.find(&memory).unwrap());
        assert_eq!(borrower.piece(0, pid(), &loan).unwrap()[4095], 7);
        assert!(!borrower.is_gone(0, &loan));
        drop(memory);
        assert!(borrower.is_gone(0, &loan));
        assert_eq!(borrower.piece(0, pid(), &loan).unwrap()[4095], 0, "its pages went at once");
        let next = Memory::new(4096).unwrap();
        // As long as the lender may look for it, no other memory lies there.
        assert_ne!(next.as_ptr().addr(), address);
        let loan = lender.find(&next).unwrap();
        assert_eq!(borrower.piece(0, pid(), &loan).unwrap(), &[0; 4096]);
        assert_eq!(borrower.len(), 1, "the other is unmapped");
    }

    #[test]
    fn no_bytes_are_memory_too_and_too_many_are_none() {
        let mut empty = Memory::new(0).unwrap();
        assert!(empty.is_empty() && empty.iter_mut().next().is_none() && !empty.is_shared());
        assert!(Memory::new(usize::MAX).is_err());
        assert!(Memory::new(1 << 60).is_err());
    }
}
