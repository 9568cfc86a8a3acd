//! The CUDA driver, as far as it is used here: handles that are given back when they are dropped, and typed errors.
//!
//! Unsafe, for every function of the driver is one of C. What makes the calls safe: a [`Driver`] exists only where the
//! library has been opened and has every function that is called; handles are made by the driver and live as long as
//! their wrappers; a context is made current before anything that needs one. Device memory cannot be vouched for:
//! whoever makes a [`Pointer`] or a [`StreamHandle`] of a number does, in code of its own that says so.
#![allow(unsafe_code)]

mod compile;
mod device;
mod graph;
mod ipc;
mod kernel;
mod library;
mod memory;
mod pinned;
mod stream;

pub(crate) use compile::{compile, nvrtc};
pub(crate) use device::Current;
pub use device::Device;
pub(crate) use graph::Graph;
pub(crate) use ipc::{Opened, SHARE_BYTES, Share, wait_word, write_word};
pub(crate) use kernel::{ARGUMENTS_MAX, Argument, Kernel, Module};
pub use library::Driver;
pub use memory::{DeviceBuffer, Pointer};
pub(crate) use pinned::{HostWords, Pinned, copy_pinned};
pub(crate) use stream::{Event, copy};
pub use stream::{Stream, StreamHandle};

use crate::GpuError;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::CStr;

/// What a call of the driver said, with what it concerned.
fn said(code: CUresult, call: &'static str, device: impl std::fmt::Display) -> Result<(), GpuError> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(fault(code, call, device)),
    }
}

#[cold]
fn fault(code: CUresult, call: &'static str, device: impl std::fmt::Display) -> GpuError {
    let (name, text) = (text_of(code, Text::Name), text_of(code, Text::Meaning));
    GpuError::Call { call, device: device.to_string(), code: code as u32, name, text }
}

enum Text {
    Name,
    Meaning,
}

fn text_of(code: CUresult, text: Text) -> String {
    let mut found = std::ptr::null();
    // SAFETY: the functions are there (see `library`), and write a pointer to a constant text or null.
    let done = unsafe {
        match text {
            Text::Name => sys::cuGetErrorName(code, &mut found),
            Text::Meaning => sys::cuGetErrorString(code, &mut found),
        }
    };
    if done != CUresult::CUDA_SUCCESS || found.is_null() {
        return format!("error {}", code as u32);
    }
    // SAFETY: the driver's texts end in a NUL, and are never freed.
    unsafe { CStr::from_ptr(found) }.to_string_lossy().into_owned()
}
