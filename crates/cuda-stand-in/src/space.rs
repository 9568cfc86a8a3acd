//! Memory as it lies: mappings that serve as devices' memory, and bytes moved between addresses. All of the stand-in's
//! reading and writing at addresses is here.
//!
//! A device's memory is a nameless file in memory, mapped whole. Other processes map parts of it, which they find by the
//! process and the file's number there. Addresses come from callers of a C interface, so this cannot be without `unsafe`:
//! those of devices have been looked up among live allocations before, those of the host are as good as the caller's word.

#![allow(unsafe_code)]

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A mapping.
#[derive(Debug)]
pub(crate) struct Space {
    /// None if nobody else can map it.
    file: Option<OwnedFd>,
    start: u64,
    bytes: u64,
}

const PAGE_BYTES: u64 = 4096;

impl Space {
    /// New memory, which takes no pages until it is written.
    pub(crate) fn new(bytes: u64) -> io::Result<Space> {
        let file = rustix::fs::memfd_create("cuda-stand-in", MemfdFlags::CLOEXEC)?;
        let bytes = bytes.next_multiple_of(PAGE_BYTES);
        rustix::fs::ftruncate(&file, bytes)?;
        let start = map(file.as_fd(), 0, bytes)?;
        Ok(Space { file: Some(file), start, bytes })
    }

    /// New memory for this process alone.
    pub(crate) fn alone(bytes: u64) -> io::Result<Space> {
        let (bytes, access) = (bytes.next_multiple_of(PAGE_BYTES), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping, wherever there is room, takes nothing away from anyone.
        let start = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes as usize, access, MapFlags::PRIVATE)?
        };
        Ok(Space { file: None, start: start as u64, bytes })
    }

    /// Part of another process's memory. `from` need not be the start of a page; the address of its byte comes along.
    pub(crate) fn of_process(process: u32, number: u32, from: u64, bytes: u64) -> io::Result<(Space, u64)> {
        let path = format!("/proc/{process}/fd/{number}");
        let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let page = from / PAGE_BYTES * PAGE_BYTES;
        let bytes = (from + bytes - page).next_multiple_of(PAGE_BYTES);
        if rustix::fs::fstat(&file)?.st_size < (page + bytes) as i64 {
            return Err(io::Error::other("it is not that long"));
        }
        let start = map(file.as_fd(), page, bytes)?;
        Ok((Space { file: Some(file), start, bytes }, start + (from - page)))
    }

    /// The same addresses, where nobody finds anything any more.
    pub(crate) fn retired(mut self) -> Space {
        let (access, flags) = (ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED);
        // SAFETY: it takes the place of this mapping alone, of which nobody is to look at anything any more.
        let _ =
            unsafe { rustix::mm::mmap_anonymous(self.start as *mut _, self.bytes as usize, access, flags) };
        self.file = None;
        self
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes
    }

    /// The number of its file in this process, if it has one.
    pub(crate) fn file_number(&self) -> Option<u32> {
        self.file.as_ref().map(|file| file.as_raw_fd() as u32)
    }

    /// Whole pages between two addresses are given back.
    pub(crate) fn discard(&self, from: u64, to: u64) {
        let (from, to) = (from.next_multiple_of(PAGE_BYTES), to / PAGE_BYTES * PAGE_BYTES);
        if from < to
            && let Some(file) = &self.file
        {
            let holes = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // Where it cannot be done the pages go with the mapping.
            let _ = rustix::fs::fallocate(file, holes, from - self.start, to - from);
        }
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nothing looks at addresses that are not of live allocations.
        let _ = unsafe { rustix::mm::munmap(self.start as *mut _, self.bytes as usize) };
    }
}

fn map(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<u64> {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
    // SAFETY: a new mapping, wherever there is room, takes nothing away from anyone.
    let start =
        unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes as usize, access, flags, file, offset)? };
    Ok(start as u64)
}

/// Bytes from one address to another; the two may overlap.
pub(crate) fn copy(to: u64, from: u64, bytes: u64) {
    // SAFETY: see the head of this file.
    unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes as usize) }
}

/// Bytes at an address.
pub(crate) fn read(from: u64, bytes: u64) -> Vec<u8> {
    let mut read = vec![0; bytes as usize];
    copy(read.as_mut_ptr() as u64, from, bytes);
    read
}

/// Bytes put at an address.
pub(crate) fn write(to: u64, bytes: &[u8]) {
    copy(to, bytes.as_ptr() as u64, bytes.len() as u64);
}

/// A word of 4 or 8 bytes that someone else may change meanwhile. The address is a multiple of its width.
pub(crate) fn load(from: u64, wide: bool) -> u64 {
    if wide {
        // SAFETY: see the head of this file; it is aligned, and whoever else looks at it does so as at an atomic word.
        unsafe { AtomicU64::from_ptr(from as *mut u64) }.load(Ordering::Acquire)
    } else {
        // SAFETY: as above.
        u64::from(unsafe { AtomicU32::from_ptr(from as *mut u32) }.load(Ordering::Acquire))
    }
}

/// The same, changed.
pub(crate) fn store(to: u64, wide: bool, value: u64) {
    if wide {
        // SAFETY: as in `load`.
        unsafe { AtomicU64::from_ptr(to as *mut u64) }.store(value, Ordering::Release);
    } else {
        // SAFETY: as in `load`.
        unsafe { AtomicU32::from_ptr(to as *mut u32) }.store(value as u32, Ordering::Release);
    }
}

/// An eight-byte word raised by `by`, and what it was.
pub(crate) fn add(to: u64, by: u64) -> u64 {
    // SAFETY: as in `load`.
    unsafe { AtomicU64::from_ptr(to as *mut u64) }.fetch_add(by, Ordering::AcqRel)
}

/// An eight-byte word raised to `value` at least.
pub(crate) fn raise(to: u64, value: u64) {
    // SAFETY: as in `load`.
    unsafe { AtomicU64::from_ptr(to as *mut u64) }.fetch_max(value, Ordering::AcqRel);
}
