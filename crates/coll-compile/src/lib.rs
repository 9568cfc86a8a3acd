//! Passes and lowering: a [`coll_ir::Program`] becomes a [`coll_plan::Plan`].
//!
//! ```text
//! program ──drop_dead──► ──merge──► ──slice──► grouped program ──lower──► plan
//! ```
//!
//! The passes work on a [`Grouped`] program: the program, and for each transfer the message it travels in. Each can
//! be skipped, and each run alone with [`run_pass`]; [`PASSES`] lists them. Lowering takes the grouped program rank
//! by rank, looking at nothing but that rank's own transfers, and ends with two passes over its waits and sends
//! (`fuse`, `prune`) that may be skipped too.
//!
//! # Why a plan made here cannot deadlock
//! Order all operations by step, then message number, then, last in their step, the copies that end a staged
//! exchange. Every operation waits only for operations before it in that order, its lane runs in that order, and a
//! send and its receive stand at the same place in it. So the first operation that is not done can always run,
//! even if every send waits for its receive: [`coll_plan::Plan::slots`] is 0.

#![forbid(unsafe_code)]
// A refusal ends the compilation; what it weighs on the way up costs nothing.
#![allow(clippy::result_large_err)]

pub mod codes;
mod lower;
mod passes;
mod pipeline;

pub use passes::Grouped;
pub use pipeline::{Compiled, Options, PASSES, PassInfo, PassReport, compile, compile_rank, run_pass};
