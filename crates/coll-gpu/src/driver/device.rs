//! A device, and its primary context: the one that other libraries of the process use as well.

use super::{Driver, fault, said};
use crate::GpuError;
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdevice_attribute as Attribute, CUresult};
use std::ffi::CStr;
use std::sync::Arc;

/// A device whose context is held.
#[derive(Debug)]
pub struct Device {
    number: u32,
    raw: CUdevice,
    context: CUcontext,
}

// SAFETY: the driver's functions on a context may be called from any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// How many there are.
    pub(crate) fn count(_: Driver) -> Result<u32, GpuError> {
        let mut count = 0;
        // SAFETY: the driver is open; it writes one number.
        said(unsafe { sys::cuDeviceGetCount(&mut count) }, "cuDeviceGetCount", "none")?;
        Ok(count.max(0) as u32)
    }

    /// Takes hold of a device.
    pub fn open(driver: Driver, number: u32) -> Result<Arc<Device>, GpuError> {
        let found = Device::count(driver)?;
        if number >= found {
            return Err(if found == 0 {
                GpuError::NoDevice
            } else {
                GpuError::InvalidDevice { device: number, found }
            });
        }
        let mut raw = 0;
        // SAFETY: the driver is open, and there is a device of that number.
        said(unsafe { sys::cuDeviceGet(&mut raw, number as i32) }, "cuDeviceGet", number)?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the device is one that the driver named.
        let retained = unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, raw) };
        said(retained, "cuDevicePrimaryCtxRetain", number)?;
        Ok(Arc::new(Device { number, raw, context }))
    }

    /// Its number, as the driver counts.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Its name.
    pub fn name(&self) -> Result<String, GpuError> {
        let mut bytes = [0 as std::ffi::c_char; 256];
        let room = bytes.len() as i32 - 1;
        // SAFETY: there is room for so many characters, and the last one stays NUL.
        said(
            unsafe { sys::cuDeviceGetName(bytes.as_mut_ptr(), room, self.raw) },
            "cuDeviceGetName",
            self.number,
        )?;
        // SAFETY: the last character is NUL.
        Ok(unsafe { CStr::from_ptr(bytes.as_ptr()) }.to_string_lossy().into_owned())
    }

    /// Bytes of its memory.
    pub fn memory_bytes(&self) -> Result<u64, GpuError> {
        let mut bytes = 0;
        // SAFETY: the device is one that the driver named; it writes one number.
        said(unsafe { sys::cuDeviceTotalMem_v2(&mut bytes, self.raw) }, "cuDeviceTotalMem", self.number)?;
        Ok(bytes as u64)
    }

    /// Major and minor number of what it computes.
    pub fn capability(&self) -> Result<(u32, u32), GpuError> {
        let major = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        Ok((major, self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?))
    }

    /// How many multiprocessors it has.
    pub fn processors(&self) -> Result<u32, GpuError> {
        self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
    }

    /// Where it is on the PCI bus: `0000:1b:00.0`.
    pub fn pci(&self) -> Result<String, GpuError> {
        let domain = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)?;
        let bus = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)?;
        let device = self.attribute(Attribute::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)?;
        Ok(format!("{domain:04x}:{bus:02x}:{device:02x}.0"))
    }

    fn attribute(&self, attribute: Attribute) -> Result<u32, GpuError> {
        let mut value = 0;
        // SAFETY: the device is one that the driver named; it writes one number.
        let got = unsafe { sys::cuDeviceGetAttribute(&mut value, attribute, self.raw) };
        said(got, "cuDeviceGetAttribute", self.number)?;
        Ok(value.max(0) as u32)
    }

    /// Whether it could read another's memory.
    pub fn can_reach(&self, other: &Device) -> Result<bool, GpuError> {
        let mut can = 0;
        // SAFETY: both are devices that the driver named; it writes one number.
        let got = unsafe { sys::cuDeviceCanAccessPeer(&mut can, self.raw, other.raw) };
        said(got, "cuDeviceCanAccessPeer", self.number)?;
        Ok(can != 0)
    }

    /// Lets kernels here read another's memory. Asked twice, it stays so.
    pub fn reach(&self, other: &Device) -> Result<(), GpuError> {
        let _current = Current::of(self)?;
        // SAFETY: the context of this device is current, and the other one is held.
        match unsafe { sys::cuCtxEnablePeerAccess(other.context, 0) } {
            CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            code => {
                let why = fault(code, "cuCtxEnablePeerAccess", self.number).to_string();
                Err(GpuError::PeerAccess { from: self.number, to: other.number, why })
            }
        }
    }

    /// Bytes of memory that are free, and all.
    pub fn free_bytes(&self) -> Result<(u64, u64), GpuError> {
        let _current = Current::of(self)?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: a context is current; it writes two numbers.
        said(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) }, "cuMemGetInfo", self.number)?;
        Ok((free as u64, total as u64))
    }

    /// Waits for all that is on it.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        let _current = Current::of(self)?;
        // SAFETY: a context is current.
        said(unsafe { sys::cuCtxSynchronize() }, "cuCtxSynchronize", self.number)
    }

    pub(super) fn context(&self) -> CUcontext {
        self.context
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: it was retained once. What it says cannot be told to anybody.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.raw) };
    }
}

/// Has contexts current in turn on this thread, and puts back the caller's at the end.
#[derive(Debug)]
pub(crate) struct Current {
    before: CUcontext,
    now: CUcontext,
}

impl Current {
    /// The caller's stays current for now.
    pub(crate) fn caller() -> Result<Current, GpuError> {
        let mut before = std::ptr::null_mut();
        // SAFETY: devices exist only where the driver is open; it writes one pointer, null if there is none.
        said(unsafe { sys::cuCtxGetCurrent(&mut before) }, "cuCtxGetCurrent", "none")?;
        Ok(Current { before, now: before })
    }

    /// A device's.
    pub(crate) fn of(device: &Device) -> Result<Current, GpuError> {
        let mut current = Current::caller()?;
        current.switch(device)?;
        Ok(current)
    }

    /// Another device's.
    #[inline]
    pub(crate) fn switch(&mut self, device: &Device) -> Result<(), GpuError> {
        if self.now != device.context {
            // SAFETY: the context is held by the device.
            said(unsafe { sys::cuCtxSetCurrent(device.context) }, "cuCtxSetCurrent", device.number)?;
            self.now = device.context;
        }
        Ok(())
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if self.now != self.before {
            // SAFETY: it was current before, or there was none.
            let _ = unsafe { sys::cuCtxSetCurrent(self.before) };
        }
    }
}
