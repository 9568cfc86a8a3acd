//! Memory of devices.

use super::{Current, Device, Stream, fault, said};
use crate::GpuError;
use cudarc::driver::sys::{self, CUresult};
use std::sync::Arc;

/// An address in device memory that somebody vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer(u64);

impl Pointer {
    /// Of a buffer that has no bytes.
    pub const NOWHERE: Pointer = Pointer(0);

    /// An address as the driver, another library or another language gives it.
    ///
    /// # Safety
    /// Memory that the devices of the group reach lies there, as long as what it is given for is bound to need, until
    /// all work that was given it is done.
    pub unsafe fn new(address: u64) -> Pointer {
        Pointer(address)
    }

    /// The address.
    pub fn address(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn moved(self, bytes: u64) -> Pointer {
        Pointer(self.0 + bytes)
    }
}

/// Memory of a device. Freeing it waits for what is on the device.
#[derive(Debug)]
pub struct DeviceBuffer {
    device: Arc<Device>,
    address: u64,
    bytes: u64,
}

impl DeviceBuffer {
    /// So many bytes, of which nothing is known.
    pub fn new(device: &Arc<Device>, bytes: u64) -> Result<DeviceBuffer, GpuError> {
        let mut address = 0;
        if bytes > 0 {
            let _current = Current::of(device)?;
            let size = usize::try_from(bytes).unwrap_or(usize::MAX);
            // SAFETY: a context is current; it writes one address.
            match unsafe { sys::cuMemAlloc_v2(&mut address, size) } {
                CUresult::CUDA_SUCCESS => {}
                CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                    let (free_bytes, total_bytes) = device.free_bytes().unwrap_or_default();
                    let (device, wanted_bytes) = (device.number(), bytes);
                    return Err(GpuError::OutOfMemory { device, wanted_bytes, free_bytes, total_bytes });
                }
                code => return Err(fault(code, "cuMemAlloc", device.number())),
            }
        }
        Ok(DeviceBuffer { device: device.clone(), address, bytes })
    }

    /// A copy of host memory.
    pub fn of(device: &Arc<Device>, bytes: &[u8]) -> Result<DeviceBuffer, GpuError> {
        let mut buffer = DeviceBuffer::new(device, bytes.len() as u64)?;
        buffer.write(bytes)?;
        Ok(buffer)
    }

    /// Where it lies.
    pub fn pointer(&self) -> Pointer {
        Pointer(self.address)
    }

    /// How long it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Takes the first bytes from host memory, at most as many as it has, and waits for that.
    pub fn write(&mut self, from: &[u8]) -> Result<(), GpuError> {
        let bytes = from.len().min(self.bytes as usize);
        if bytes == 0 {
            return Ok(());
        }
        let _current = Current::of(&self.device)?;
        // SAFETY: both memories are so long, and the call returns when the host's has been read.
        let done = unsafe { sys::cuMemcpyHtoD_v2(self.address, from.as_ptr().cast(), bytes) };
        said(done, "cuMemcpyHtoD", self.device.number())?;
        // Of memory that is not pinned, the driver may still have a copy on its way.
        self.device.synchronize()
    }

    /// Gives the first bytes to host memory, at most as many as it has, and waits for that. What is on streams that do not
    /// wait for the default stream must be done.
    pub fn read(&self, into: &mut [u8]) -> Result<(), GpuError> {
        let bytes = into.len().min(self.bytes as usize);
        if bytes == 0 {
            return Ok(());
        }
        let _current = Current::of(&self.device)?;
        // SAFETY: both memories are so long, and the call returns when the host's has been written.
        let done = unsafe { sys::cuMemcpyDtoH_v2(into.as_mut_ptr().cast(), self.address, bytes) };
        said(done, "cuMemcpyDtoH", self.device.number())
    }

    /// All of it.
    pub fn to_vec(&self) -> Result<Vec<u8>, GpuError> {
        let mut bytes = vec![0; self.bytes as usize];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Sets every byte, and waits for that.
    pub fn fill(&mut self, byte: u8) -> Result<(), GpuError> {
        if self.bytes == 0 {
            return Ok(());
        }
        let _current = Current::of(&self.device)?;
        // SAFETY: the memory is so long.
        let done = unsafe { sys::cuMemsetD8_v2(self.address, byte, self.bytes as usize) };
        said(done, "cuMemsetD8", self.device.number())?;
        self.device.synchronize()
    }

    /// Sets every byte by way of a stream, and waits for nothing.
    pub(crate) fn fill_on(&mut self, byte: u8, stream: &Stream) -> Result<(), GpuError> {
        if self.bytes == 0 {
            return Ok(());
        }
        let _current = Current::of(&self.device)?;
        // SAFETY: the memory is so long, and the stream is held.
        let done =
            unsafe { sys::cuMemsetD8Async(self.address, byte, self.bytes as usize, stream.handle().0) };
        said(done, "cuMemsetD8Async", self.device.number())
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let (true, Ok(_current)) = (self.bytes > 0, Current::of(&self.device)) {
            // SAFETY: it was allocated once, and the driver waits for work that uses it.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}
