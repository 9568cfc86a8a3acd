//! Execution plans of MSCCL++: JSON that its executor runs on GPUs. Ranks put into and get from each other's memory, and
//! say with signals that they have; packets carry their own word that they have come.
//!
//! A plan here knows messages and no memory of others, so on import
//!
//! - a *put* is a message whose receive stands in a lane of its own on the other rank, one for each thread block that
//!   sends there: it takes what comes as it comes, in order with the signals of that thread block;
//! - a *get*, or a reduction that reads from afar, is a signal that asks and a message that answers, from a lane of the
//!   other rank that does nothing else;
//! - a *wait* is a wait for the receive of the signal; a relaxed signal says nothing of data and has a lane of its own;
//! - an operation that reads packets waits for those that wrote them.
//!
//! Threads of a thread block wait for each other at a `nop` or `barrier` alone, and for a proxy at a `flush`, which a plan does not know:
//! what needs one and has none is found in [`order`].
//!
//! The body of a `pipeline` is taken in two turns, each for one half of what it goes through: what is wrong between two turns is wrong
//! between any. Switch channels, which multiply and add within the network, are refused by name.

mod import;
mod model;
mod order;
mod paper;
mod read;
mod write;

pub use model::ExecutionPlan;
pub use read::read;
pub use write::write;
