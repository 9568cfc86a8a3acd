//! Runs one rank's plan over a [`Transport`]. This crate has no sockets, no clock and no threads of its own: the
//! calling thread drives progress, and the same loop runs under sockets, shared memory and simulated worlds.

mod transport;

pub use transport::{Fault, Interest, Link, Transport};
