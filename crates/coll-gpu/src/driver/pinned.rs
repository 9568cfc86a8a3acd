//! Memory of the host that devices copy to and from by themselves, and words in it by which streams and the host tell each
//! other how far they are.

use super::{Current, Device, Pointer, StreamHandle, fault, said};
use crate::GpuError;
use cudarc::driver::sys::{self, CUresult};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Usable by every context, and at the same address by devices.
const FLAGS: u32 = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;

/// Pinned memory. Freeing it waits for nothing: whoever has copies on their way to it or from it waits for them before.
#[derive(Debug)]
pub(crate) struct Pinned {
    device: Arc<Device>,
    address: u64,
    bytes: usize,
}

impl Pinned {
    /// So many bytes, of which nothing is known.
    pub(crate) fn new(device: &Arc<Device>, bytes: usize) -> Result<Pinned, GpuError> {
        let mut address = std::ptr::null_mut();
        if bytes > 0 {
            let _current = Current::of(device)?;
            // SAFETY: a context is current; it writes one address.
            match unsafe { sys::cuMemHostAlloc(&mut address, bytes, FLAGS) } {
                CUresult::CUDA_SUCCESS => {}
                CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                    return Err(GpuError::NoPinned { wanted_bytes: bytes as u64 });
                }
                code => return Err(fault(code, "cuMemHostAlloc", device.number())),
            }
        }
        Ok(Pinned { device: device.clone(), address: address as u64, bytes })
    }

    /// Where it lies, for devices.
    pub(crate) fn pointer(&self) -> Pointer {
        // SAFETY: memory that every context may use lies there until it is dropped.
        unsafe { Pointer::new(self.address) }
    }

    /// Bytes that a copy has brought, and which no copy changes while they are looked at.
    pub(crate) fn read(&self, part: Range<usize>) -> &[u8] {
        assert!(part.start <= part.end && part.end <= self.bytes, "invariant: within the memory");
        if part.is_empty() {
            return &[];
        }
        // SAFETY: the part lies in the memory, and the caller has seen the end of the copy to it.
        unsafe { std::slice::from_raw_parts((self.address as *const u8).add(part.start), part.len()) }
    }

    /// Bytes that no copy reads until the next one is put on a stream.
    pub(crate) fn write(&mut self, part: Range<usize>) -> &mut [u8] {
        assert!(part.start <= part.end && part.end <= self.bytes, "invariant: within the memory");
        if part.is_empty() {
            return &mut [];
        }
        // SAFETY: the part lies in the memory, which is borrowed exclusively, and the caller has seen the end of copies from it.
        unsafe { std::slice::from_raw_parts_mut((self.address as *mut u8).add(part.start), part.len()) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let (true, Ok(_current)) = (self.bytes > 0, Current::of(&self.device)) {
            // SAFETY: it was allocated once.
            let _ = unsafe { sys::cuMemFreeHost(self.address as *mut _) };
        }
    }
}

/// HostWords in pinned memory, at first 0. Each is a run's number, and counted in a circle.
#[derive(Debug)]
pub(crate) struct HostWords(Pinned, usize);

impl HostWords {
    pub(crate) fn new(device: &Arc<Device>, count: usize) -> Result<HostWords, GpuError> {
        let mut memory = Pinned::new(device, count * 4)?;
        memory.write(0..count * 4).fill(0);
        Ok(HostWords(memory, count))
    }

    /// Where they lie, for devices.
    pub(crate) fn pointer(&self) -> Pointer {
        self.0.pointer()
    }

    /// Whether a stream has come to a run.
    pub(crate) fn has_come(&self, word: usize, run: u32) -> bool {
        (self.word(word).load(Ordering::Acquire).wrapping_sub(run) as i32) >= 0
    }

    /// Lets streams go on that wait for a run. A word that is further stays so.
    pub(crate) fn raise(&self, word: usize, run: u32) {
        let raised = |now: u32| ((now.wrapping_sub(run) as i32) < 0).then_some(run);
        // An error says that it was as far already.
        let _ = self.word(word).fetch_update(Ordering::AcqRel, Ordering::Acquire, raised);
    }

    /// Lets go on whatever waits for any of them, in a run and in those that have been put on streams after it.
    pub(crate) fn let_go(&self, run: u32) {
        (0..self.1).for_each(|word| self.raise(word, run.wrapping_add(1 << 30)));
    }

    fn word(&self, word: usize) -> &AtomicU32 {
        assert!(word < self.1, "invariant: there is such a word");
        // SAFETY: the word lies in the memory, aligned, and is only looked at as an atomic one; streams write it whole.
        unsafe { AtomicU32::from_ptr((self.0.address as *mut u32).add(word)) }
    }
}

/// Copies between pinned memory and a device, on a stream of it whose context is current.
#[inline]
pub(crate) fn copy_pinned(
    target: Pointer,
    source: Pointer,
    bytes: u64,
    stream: StreamHandle,
    device: &Device,
) -> Result<(), GpuError> {
    // SAFETY: whoever made the pointers and the stream vouches for them.
    let done = unsafe { sys::cuMemcpyAsync(target.address(), source.address(), bytes as usize, stream.0) };
    said(done, "cuMemcpyAsync", device.number())
}
