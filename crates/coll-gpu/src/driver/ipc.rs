//! Memory that processes of one machine share, and words in it by which their streams wait for each other.

use super::{Current, Device, Pointer, StreamHandle, fault, said};
use crate::GpuError;
use cudarc::driver::sys::{self, CUipcMem_flags, CUipcMemHandle, CUresult, CUstreamWaitValue_flags};
use std::sync::Arc;

/// Bytes of a [`Share`] on its way.
pub(crate) const SHARE_BYTES: usize = 72;

/// What another process finds memory by: the driver's handle of an allocation, and where in it the memory begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Share {
    handle: [u8; 64],
    offset: u64,
}

impl Share {
    /// Of memory on a device.
    pub(crate) fn of(device: &Device, pointer: Pointer) -> Result<Share, GpuError> {
        let _current = Current::of(device)?;
        let (mut base, mut size) = (0, 0);
        // SAFETY: a context is current; it writes two numbers.
        let found = unsafe { sys::cuMemGetAddressRange_v2(&mut base, &mut size, pointer.address()) };
        said(found, "cuMemGetAddressRange", device.number())?;
        let mut raw = CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: a context is current; it writes one handle.
        said(unsafe { sys::cuIpcGetMemHandle(&mut raw, base) }, "cuIpcGetMemHandle", device.number())?;
        Ok(Share { handle: raw.reserved.map(|byte| byte as u8), offset: pointer.address() - base })
    }

    pub(crate) fn to_bytes(self) -> [u8; SHARE_BYTES] {
        let mut bytes = [0; SHARE_BYTES];
        bytes[..64].copy_from_slice(&self.handle);
        bytes[64..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8; SHARE_BYTES]) -> Share {
        let (handle, offset) = bytes.split_first_chunk::<64>().expect("invariant: it is longer");
        let mut word = [0; 8];
        word.copy_from_slice(offset);
        Share { handle: *handle, offset: u64::from_le_bytes(word) }
    }

    /// The allocation, which is opened once however many memories lie in it.
    pub(crate) fn allocation(&self) -> [u8; 64] {
        self.handle
    }

    /// Where it lies, in its allocation as it was opened.
    pub(crate) fn within(&self, opened: &Opened) -> Pointer {
        opened.pointer.moved(self.offset)
    }
}

/// Another process's allocation, opened here.
#[derive(Debug)]
pub(crate) struct Opened {
    device: Arc<Device>,
    pointer: Pointer,
}

impl Opened {
    /// Opens it for a device, which gets access to the other's memory by that.
    pub(crate) fn new(device: &Arc<Device>, allocation: [u8; 64], from: u32) -> Result<Opened, GpuError> {
        let _current = Current::of(device)?;
        let handle = CUipcMemHandle { reserved: allocation.map(|byte| byte as std::ffi::c_char) };
        let flags = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut address = 0;
        // SAFETY: a context is current; the driver looks at the handle, whoever made it, and writes one address.
        match unsafe { sys::cuIpcOpenMemHandle_v2(&mut address, handle, flags) } {
            CUresult::CUDA_SUCCESS => {
                // SAFETY: the allocation lies there until it is closed, in `drop`.
                Ok(Opened { device: device.clone(), pointer: unsafe { Pointer::new(address) } })
            }
            code => {
                let why = fault(code, "cuIpcOpenMemHandle", device.number()).to_string();
                Err(GpuError::Foreign { rank: from, device: device.number(), why })
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Ok(_current) = Current::of(&self.device) {
            // SAFETY: it was opened once, and the driver waits for work that uses it.
            let _ = unsafe { sys::cuIpcCloseMemHandle(self.pointer.address()) };
        }
    }
}

/// Has a stream write a word after what is on it, so that others see all that came before.
#[inline]
pub(crate) fn write_word(
    stream: StreamHandle,
    word: Pointer,
    value: u32,
    device: &Device,
) -> Result<(), GpuError> {
    // SAFETY: whoever made the pointer and the stream vouches for them; the context is current.
    let done = unsafe { sys::cuStreamWriteValue32_v2(stream.0, word.address(), value, 0) };
    said(done, "cuStreamWriteValue32", device.number())
}

/// Has a stream go on only when a word has come to a value, counted in a circle.
#[inline]
pub(crate) fn wait_word(
    stream: StreamHandle,
    word: Pointer,
    value: u32,
    device: &Device,
) -> Result<(), GpuError> {
    let flags = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ as u32;
    // SAFETY: as above.
    let done = unsafe { sys::cuStreamWaitValue32_v2(stream.0, word.address(), value, flags) };
    said(done, "cuStreamWaitValue32", device.number())
}
