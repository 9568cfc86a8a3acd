//! Memory that ranks share: of the heap, for threads of one process, or mapped, for processes. Zeroed at first.
//!
//! Another process may write to mapped memory at any time, whatever the protocol says. What is read from it is therefore
//! never trusted: numbers are read as atomics and checked before they are used; elements are only ever moved and
//! combined. Mapped files are sealed against shrinking, so that no access can fault.

#![allow(unsafe_code)]

use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::alloc::Layout;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Pages are of this size, and blocks start at one.
pub(crate) const PAGE_BYTES: usize = 4096;

/// A piece of memory, which goes when the last rank that uses it here is gone.
#[derive(Debug)]
pub(crate) struct Block {
    base: NonNull<u8>,
    len: usize,
    origin: Origin,
}

#[derive(Debug)]
enum Origin {
    Heap,
    Mapped,
}

// SAFETY: a block is plain memory; it hands out atomics and raw pointers, whose users keep their own order.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Memory of this process.
    pub(crate) fn heap(len: usize) -> io::Result<Block> {
        let layout = layout(len)?;
        // SAFETY: `layout` refuses a length of zero.
        let base = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) });
        let base = base.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Block { base, len, origin: Origin::Heap })
    }

    /// A part of a file, which must be sealed against shrinking below its end.
    pub(crate) fn mapped(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Block> {
        Block::map(file, offset, len, ProtFlags::READ | ProtFlags::WRITE)
    }

    /// A part of such a file, not to be written to: numbers in it are only ever loaded.
    pub(crate) fn mapped_to_read(file: BorrowedFd<'_>, offset: u64, len: usize) -> io::Result<Block> {
        Block::map(file, offset, len, ProtFlags::READ)
    }

    fn map(file: BorrowedFd<'_>, offset: u64, len: usize, protection: ProtFlags) -> io::Result<Block> {
        layout(len)?;
        // SAFETY: the system chooses the address, so that no other memory is touched.
        let base = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, offset)?
        };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Block { base, len, origin: Origin::Mapped })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address of a byte.
    #[inline]
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len, "invariant: an offset within the block");
        // SAFETY: it lies within the block.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Asks the system for the pages of a part at once, which would else come one by one when they are first touched. What
    /// it cannot do is left as it is.
    #[cold]
    pub(crate) fn populate(&self, range: Range<usize>) {
        let (start, end) = (range.start / PAGE_BYTES * PAGE_BYTES, range.end.min(self.len));
        if start < end {
            let (at, len) = (self.at(start).cast(), end - start);
            // SAFETY: within the block; pages are only brought in, and what they hold stays as it is.
            let _ = unsafe { rustix::mm::madvise(at, len, Advice::LinuxPopulateWrite) };
        }
    }

    /// Bytes of a part that nobody writes to while they are looked at, or whose values are only ever moved and combined.
    #[inline]
    pub(crate) fn read(&self, offset: usize, len: usize) -> &[u8] {
        assert!(offset < self.len && len <= self.len - offset, "invariant: a part of the block");
        // SAFETY: within the block, which outlives the view; the rest is what callers vouch for.
        unsafe { std::slice::from_raw_parts(self.at(offset), len) }
    }

    /// Writes bytes that do not lie in the block to a part that nobody else looks at before it is told to; with stores that go
    /// past the cache, if so asked.
    #[inline]
    pub(crate) fn write(&self, offset: usize, bytes: &[u8], past_cache: bool) {
        assert!(offset <= self.len && bytes.len() <= self.len - offset, "invariant: a part of the block");
        if bytes.is_empty() {
            return;
        }
        // SAFETY: within the block, and nobody else's until they are told, as callers vouch for.
        let part = unsafe { std::slice::from_raw_parts_mut(self.at(offset), bytes.len()) };
        match past_cache {
            true => coll_kernel::copy_past_cache(part, bytes),
            false => part.copy_from_slice(bytes),
        }
    }

    /// The number at an aligned offset.
    #[inline]
    pub(crate) fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.len, "invariant: a word within the block");
        // SAFETY: aligned, within the block, and alive as long as the block; it is only ever used as an atomic.
        unsafe { AtomicU64::from_ptr(self.at(offset).cast()) }
    }

    /// The smaller number at an aligned offset.
    #[inline]
    pub(crate) fn half(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.len, "invariant: a number within the block");
        // SAFETY: as for a word.
        unsafe { AtomicU32::from_ptr(self.at(offset).cast()) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match self.origin {
            Origin::Heap => {
                let layout = layout(self.len).expect("invariant: it was allocated with this layout");
                // SAFETY: allocated with the same layout, and nothing refers to it any more.
                unsafe { std::alloc::dealloc(self.base.as_ptr(), layout) }
            }
            Origin::Mapped => {
                // SAFETY: mapped with this length, and nothing refers to it any more. A failure would leave it mapped.
                let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
            }
        }
    }
}

fn layout(len: usize) -> io::Result<Layout> {
    let layout = Layout::from_size_align(len, PAGE_BYTES).ok().filter(|layout| layout.size() > 0);
    layout.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}
