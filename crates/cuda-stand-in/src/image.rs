//! Kernels as code of the host: a shared library that a host compiler made of generated source, opened from memory.
//!
//! Each of its functions `NAME` takes the addresses of the arguments, the number of blocks and the threads of a block, and
//! does all that the launch would. Two words of eight bytes, `collc_user_working_bytes` and `collc_user_element_bytes`, say how
//! wide elements are; an image of built-in kernels needs none. Code that came as bytes is called: hence `unsafe`.

#![allow(unsafe_code)]

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use rustix::fs::MemfdFlags;
use std::fmt;
use std::io::Write;
use std::os::fd::AsRawFd;

/// `extern "C" void NAME(void** arguments, unsigned grid, unsigned block)`
type Entry = unsafe extern "C" fn(*const *const u64, u32, u32);

/// A library that is open.
pub(crate) struct Image {
    library: Library,
    working: u64,
    element: u64,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({} to {} bytes)", self.element, self.working)
    }
}

impl Image {
    /// Opens one.
    pub(crate) fn open(bytes: &[u8]) -> Result<Image, String> {
        let file = rustix::fs::memfd_create("cuda-stand-in-kernels", MemfdFlags::CLOEXEC);
        let mut file = std::fs::File::from(file.map_err(|error| error.to_string())?);
        file.write_all(bytes).map_err(|error| error.to_string())?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: whoever loads a module wants its code run; what a host compiler makes of generated kernels starts nothing
        // when it is loaded.
        let library =
            unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| e.to_string())?;
        let word = |name: &str| {
            // SAFETY: a symbol of that name is a constant of eight bytes.
            unsafe { library.get::<*const u64>(name.as_bytes()).ok().map(|word| **word) }
        };
        let working = word("collc_user_working_bytes").unwrap_or(0);
        let element = word("collc_user_element_bytes").unwrap_or(working);
        Ok(Image { library, working, element })
    }

    /// Bytes of a working element and of an element; 0 if the image does not say.
    pub(crate) fn widths(&self) -> (u64, u64) {
        (self.working, self.element)
    }

    /// Whether it has a function.
    pub(crate) fn has(&self, name: &str) -> bool {
        // SAFETY: nothing is done with what is found.
        unsafe { self.library.get::<Entry>(name.as_bytes()).is_ok() }
    }

    /// Calls one.
    pub(crate) fn call(&self, name: &str, arguments: &[u64], grid: u32, block: u32) -> Result<(), String> {
        let addresses: Vec<*const u64> = arguments.iter().map(|argument| argument as *const u64).collect();
        // SAFETY: kernels have this signature, by the rule that the head states; what they touch was looked up before, from
        // the same arguments.
        unsafe {
            let entry = self.library.get::<Entry>(name.as_bytes()).map_err(|error| error.to_string())?;
            entry(addresses.as_ptr(), grid, block);
        }
        Ok(())
    }
}

/// How long an image is, as its head says: to the end of its last table or part. None if it is no image of this kind of
/// machine.
pub(crate) fn length(start: *const u8) -> Option<usize> {
    const HEAD_BYTES: usize = 64;
    // SAFETY: an image has a head of that size; the caller says that it is one, and its first bytes have been looked at.
    let head = unsafe { std::slice::from_raw_parts(start, HEAD_BYTES) };
    let word = |at: usize, bytes: usize| {
        head[at..at + bytes].iter().rev().fold(0usize, |value, &byte| value << 8 | usize::from(byte))
    };
    // 64 bits, the lower byte first.
    if !head.starts_with(b"\x7fELF") || head[4] != 2 || head[5] != 1 {
        return None;
    }
    let (segments, sections) = (word(32, 8), word(40, 8));
    let end = sections.checked_add(word(58, 2) * word(60, 2))?;
    Some(end.max(segments.checked_add(word(54, 2) * word(56, 2))?))
}

/// The bytes of an image that has that length, and of a text until its first NUL.
pub(crate) fn bytes(start: *const u8) -> Vec<u8> {
    match length_of(start) {
        // SAFETY: the caller passes what it says it is: a text that ends with a NUL, or an image as long as its head says.
        Some(length) => unsafe { std::slice::from_raw_parts(start, length) }.to_vec(),
        // SAFETY: as above.
        None => unsafe { std::ffi::CStr::from_ptr(start.cast()) }.to_bytes().to_vec(),
    }
}

fn length_of(start: *const u8) -> Option<usize> {
    // One byte after the other: a text may be shorter than four.
    let magic = b"\x7fELF";
    for (at, due) in magic.iter().enumerate() {
        // SAFETY: no byte before this one was the text's NUL.
        if unsafe { start.add(at).read() } != *due {
            return None;
        }
    }
    length(start)
}
