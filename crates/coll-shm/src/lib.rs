//! The shared-memory transport. Ranks are [threads] of one process, or [processes] of one machine; both pass bytes
//! through the same rings, read them where they lie, and wait in the same way: they spin, yield, and sleep on a futex.
//!
//! How to read it: `protocol` says how two ranks share a ring, and is safe code that a model explores; `ring` and
//! `memory` put it into real memory; `arena` is memory that peers read in place; these are the only files with `unsafe`.
//! `bell` is how ranks sleep and wake each other; `transport` puts all together.

mod arena;
mod bell;
mod head;
mod memory;
mod options;
mod pace;
pub mod processes;
mod protocol;
mod ring;
mod stage;
pub mod threads;
mod transport;
mod wait;

pub use arena::Memory;
pub use options::{Options, Waiting};
pub use transport::{CHANNELS_MAX, ShmTransport};
pub use wait::Watch;
