//! Runs one rank's plan over a [`Transport`]. This crate has no sockets, no clock and no threads of its own: the
//! calling thread drives progress, and the same loop runs under sockets, shared memory and simulated worlds.
//!
//! A [`Binding`] becomes a [`Bound`], which holds all offsets and all scratch; [`Bound::run`] then runs any number of
//! times and allocates nothing. [`Bound::begin`] hands the loop to the caller, a step at a time; [`world`] uses it to
//! run all ranks of a plan in one process, in an order that a seed decides. An [`Outline`] tells another executor what a
//! rank does.

mod bind;
mod code;
mod error;
mod frame;
mod inbox;
mod journal;
mod layout;
mod lend;
mod local;
mod memory;
mod outline;
mod ready;
mod receive;
mod run;
mod send;
mod share;
mod short;
mod sight;
mod sink;
mod state;
mod transport;
pub mod world;

pub use bind::{Binding, Bound, Spread};
pub use error::{BindError, Place, RunError};
pub use frame::{FINGERPRINT_BYTES, FIRST_HEADER_BYTES, Field, FrameFault, HEADER_BYTES, Header};
pub use journal::Clock;
pub use memory::{BufferMemory, Placement};
pub use outline::{Act, Buffer, Conversion, Extent, Fold, Memory, Operation, Outline};
pub use run::{Progress, RunOptions, Running};
pub use sight::{Look, Sight};
pub use transport::{Fault, Interest, LOAN_BYTES, Link, Loan, Transport};
