//! Reductions as CUDA C++: text made of an operator, an element type and a number of operands, for the built-in operators and
//! for users' own. It gives the bits that `coll-kernel` gives on a CPU, but for which NaN comes of arithmetic.
//!
//! This crate writes text and knows no driver. [`Kernels::of`] tells which entries a [`Reducer`](coll_kernel::Reducer) needs.
//! PTX of the built-in operators is shipped, so that no compiler is needed where they run: [`Kernels::ptx`] is a module of the
//! entries of one reducer, [`builtin_ptx`] of all. A user's operator comes as [`Kernels::source`], for NVRTC with
//! [`nvrtc_options`]. The same text is compiled by a host's C++ compiler with [`HOST_OPTIONS`], and so it is tested.
//!
//! # Entries
//! All counts are elements, in 64 bits; any one-dimensional grid and block will do. Addresses are aligned as C aligns the
//! element: complex numbers, pairs and 128-bit integers as one of their parts. A target may be exactly any of the sources.
//! - `collc_combine{K}_{op}_{working}(target, s0 .. sK-1, count)`, for K of [`ARITIES`]: from left to right, rounded each time.
//! - `collc_prepare_{op}_{dtype}(working, input, count, ranks, factor)` and `collc_finish_{op}_{dtype}(output, working, count,
//!   ranks, leaves)`; with `_in_f32` behind it for narrow floats that are accumulated in `f32`.
//! - `collc_cast_{from}_{to}(to, from, count)`: counts parts of complex numbers. `collc_copy(target, source, bytes)`.
//! - A user's: `collc_user_combine{K}`, and, without ranks and factor or leaves, `collc_user_prepare`, `collc_user_finish`.
//!
//! # How to read it
//! `src/text` holds what all kernels share, from the ground up in the order of `source.rs`. `builtin.rs` lists entries,
//! `user.rs` writes those of a user's operator.

mod builtin;
mod entry;
mod kernels;
mod ptx;
mod source;
mod user;
mod working;

pub use builtin::{COPY, builtin_entries, cast};
pub use entry::{ARITIES, Entry, Shape};
pub use kernels::Kernels;
pub use ptx::{builtin_ptx, ptx_of};
pub use source::{HOST_OPTIONS, builtin_source, nvrtc_options, source_of};
