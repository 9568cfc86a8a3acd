//! Predicts a run of a plan on a network, in virtual time. No code here knows an algorithm.
//!
//! # The model
//! - A message is paid for by its sender: `message_us` of the device's processor, which serves one after the other. Then it
//!   sets out, once its receive is there or one of the connection's slots is free; with no slots, which is what plans ask
//!   for that the compiler makes, every send waits for its receive.
//! - Its bytes are a flow over all links of its way at once. Flows share links max–min fairly; a link that all cross is
//!   what all share, be it a wire, a bus or a NIC. A send is over when its last byte has left, which arrives the way's
//!   latency later. A message without bytes takes the latency alone.
//! - The receiver pays `message_us`, then for each byte that it reduces `reduce_ns` of its engine, which serves one after
//!   the other too; copies and reductions within a rank take the same engine. A message that came before its receive lies
//!   in a slot and is copied from there, at `copy_ns`.
//! - Lanes run side by side, waits hold, the nth send of a connection meets its nth receive, as the plan has it. Messages are
//!   stored whole before they are passed on, unless [`Options::stream`] lets sends follow receives byte by byte: such a
//!   send begins with the first byte, and its last leaves after the receive's last is stored, or reduced.
//!
//! All is deterministic: events of one time happen in the order of their making, and sums are taken in a fixed order.
//!
//! [`placed`] puts ranks where they send each other least over slow links. [`predict`] runs a plan, [`Simulator`] the same plan at many sizes. [`loggops`] is another model, for [`goal`] files.

mod bound;
mod compare;
mod dot;
mod drawing;
mod engine;
mod error;
mod flows;
pub mod loggops;
mod path;
mod placed;
mod plot;
mod predict;
mod stuck;
mod svg;
mod table;
mod trace;
mod ways;

pub use bound::Bound;
pub use coll_interop::goal;
pub use compare::{Comparison, SizeTime, compare, crossovers};
pub use dot::dot;
pub use drawing::{DrawError, drawing};
pub use error::SimError;
pub use path::{PathStep, by_line};
pub use placed::{ByTime, Placed, placed, size_taken_bytes, traffic};
pub use plot::{Curve, plot};
pub use predict::{Element, LinkUse, Options, Prediction, Simulator, predict};
pub use stuck::BlockedStep;
pub use trace::{trace, trace_of};
