//! The stand-in through cudarc, as code for GPUs uses a driver.
//!
//! cudarc's functions are calls through pointers: hence `unsafe`, in the macro `cu!` alone.

#![allow(unsafe_code)]

/// A driver function and its result.
macro_rules! cu {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: the stand-in looks at everything that it is given; pointers are to values of the caller's that live on.
        unsafe { cudarc::driver::sys::$name($($argument),*) }.result().map_err(|error| error.0)
    }};
}

mod basics;
mod faults;
mod graphs;
mod ipc;
mod kernels;
mod oracle;
mod races;
mod strict;
mod support;
mod threads;
mod words;
