//! Modules and the kernels in them.

use super::{Current, Device, StreamHandle, fault, said};
use crate::{GpuError, Version};
use cudarc::driver::sys::{self, CUfunction, CUmodule, CUresult};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// A loaded module. It lives as long as any of its kernels.
#[derive(Debug)]
pub(crate) struct Module {
    device: Arc<Device>,
    raw: CUmodule,
}

// SAFETY: the driver's functions on a module may be called from any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads PTX text, or an image of machine code, onto a device. Text ends in a NUL here.
    pub(crate) fn load(device: &Arc<Device>, image: &[u8]) -> Result<Arc<Module>, GpuError> {
        let _current = Current::of(device)?;
        let image = [image, &[0]].concat();
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current; text ends in NUL, and images of machine code say how long they are.
        match unsafe { sys::cuModuleLoadData(&mut raw, image.as_ptr().cast()) } {
            CUresult::CUDA_SUCCESS => Ok(Arc::new(Module { device: device.clone(), raw })),
            CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => {
                let found = super::Driver::open()?.version();
                let needed = ptx_needs(&image).unwrap_or(Version { major: found.major + 1, minor: 0 });
                Err(GpuError::DriverTooOld { found, needed })
            }
            code => Err(fault(code, "cuModuleLoadData", device.number())),
        }
    }

    /// One of its kernels.
    pub(crate) fn kernel(self: &Arc<Module>, name: &str) -> Result<Kernel, GpuError> {
        let no_kernel = |why: String| GpuError::NoKernel { name: name.to_string(), why };
        let text = CString::new(name).map_err(|error| no_kernel(error.to_string()))?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is held, and the name ends in a NUL.
        match unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, text.as_ptr()) } {
            CUresult::CUDA_SUCCESS => Ok(Kernel { module: self.clone(), raw }),
            CUresult::CUDA_ERROR_NOT_FOUND => Err(no_kernel("not found".to_string())),
            code => Err(no_kernel(fault(code, "cuModuleGetFunction", self.device.number()).to_string())),
        }
    }
}

/// The CUDA that knows a PTX text's version: 7.0 is 11.0, 8.0 is 12.0, and so on.
fn ptx_needs(image: &[u8]) -> Option<Version> {
    let text = std::str::from_utf8(image).ok()?;
    let version = text.split(".version").nth(1)?.split_whitespace().next()?;
    let (major, minor) = version.split_once('.')?;
    let major: u32 = major.parse().ok()?;
    Some(Version { major: major + 4, minor: minor.parse().ok()? })
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(_current) = Current::of(&self.device) {
            // SAFETY: it was loaded once, and no kernel of it is left.
            let _ = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// A kernel of a module.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    module: Arc<Module>,
    raw: CUfunction,
}

// SAFETY: as for modules.
unsafe impl Send for Kernel {}
// SAFETY: as for modules.
unsafe impl Sync for Kernel {}

/// One argument of a kernel; each is eight bytes wide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Argument {
    Address(u64),
    Count(u64),
    Number(f64),
}

/// The most arguments that a kernel has: a target, eight sources and a count.
pub(crate) const ARGUMENTS_MAX: usize = 10;

impl Kernel {
    /// Puts it on a stream of its device, whose context is current: `grid` blocks of `block` threads.
    #[inline]
    pub(crate) fn launch(
        &self,
        arguments: &[Argument],
        grid: u32,
        block: u32,
        stream: StreamHandle,
    ) -> Result<(), GpuError> {
        let mut words = [0u64; ARGUMENTS_MAX];
        let mut pointers = [std::ptr::null_mut::<c_void>(); ARGUMENTS_MAX];
        for ((word, pointer), argument) in words.iter_mut().zip(&mut pointers).zip(arguments) {
            *word = match *argument {
                Argument::Address(value) | Argument::Count(value) => value,
                Argument::Number(value) => value.to_bits(),
            };
            *pointer = std::ptr::from_mut(word).cast();
        }
        // SAFETY: the kernel takes these arguments, each of eight bytes, which the driver copies before it returns; whoever
        // made the addresses and the stream vouches for them.
        let done = unsafe {
            let null = std::ptr::null_mut();
            sys::cuLaunchKernel(self.raw, grid, 1, 1, block, 1, 1, 0, stream.0, pointers.as_mut_ptr(), null)
        };
        said(done, "cuLaunchKernel", self.module.device.number())
    }
}
