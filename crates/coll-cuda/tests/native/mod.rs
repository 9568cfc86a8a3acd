//! Code of others that tests run: what a host's C++ compiler makes of our text, and NVRTC where there is one.
//!
//! Unsafe, for symbols of a library are called by a type that only we know them to have. Memory that kernels write is a
//! [`Memory`], whose bounds are checked before a call; what lies around is looked at by tests.
#![allow(unsafe_code)]
#![allow(dead_code)]

mod host;
mod nvrtc;

#[allow(unused_imports)]
pub(crate) use host::{Argument, HostModule, Memory};
#[allow(unused_imports)]
pub(crate) use nvrtc::{Nvrtc, assemble};
