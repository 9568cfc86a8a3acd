//! What a plan will take: a model with measured constants, evaluated on plans. No code here knows an algorithm.
//!
//! # The model
//! It is of the LogGP kind (D. Culler et al., *LogP: towards a realistic model of parallel computation*, 1993;
//! A. Alexandrov et al., *LogGP: incorporating long messages into the LogP model*, 1995), bent to what collectives on
//! CPUs are bound by:
//!
//! - A rank is one thread. Whatever it does takes processor time: an overhead for each message and local operation, and
//!   a time for each byte that is sent, received, copied or reduced. What can go on does so in the order in which it
//!   became possible.
//! - A message comes to another core after `wake_us`. A rank with nothing to do waits: on a core of its own it goes on at
//!   once; where ranks share a core they look for messages in turns, and to hand the core to the next takes `switch_us`.
//! - Messages stream: a receive may begin when the first [`QUANTUM_BYTES`] have been sent, and ends after the send. A send
//!   that follows a receive byte by byte passes the stream on.
//! - Bytes are cheap while all that the ranks of a machine touch lies in its cache, and dear beyond ([`Rate`]).
//! - Between machines a message takes `latency_us` more, and shares its machine's wire with the others'.
//!
//! An [`Outline`] is a plan with its sizes left open, each operation's bytes a share of the buffer's; [`Outline::predict_us`]
//! runs it on the [`Constants`] of a transport, in time about linear in its operations. Plans of too many ranks to be
//! compiled whole are judged by a few ranks' [`Slices`].
//!
//! All arithmetic is additions, multiplications and comparisons of IEEE doubles in a fixed order, so that every rank of
//! a job finds the same times, and takes the same schedule.

mod bound;
mod constants;
mod file;
mod fit;
mod layout;
mod outline;
mod shipped;
mod simulate;
mod slices;

pub use bound::Totals;
pub use constants::{Constants, Fit, Rate, Wire};
pub use file::{ConstantsError, Tuning};
pub use fit::{Probe, REDUCED, fit};
pub use layout::{Layout, Work};
pub use outline::{Item, ItemKind, Outline, is_direct};
pub use simulate::QUANTUM_BYTES;
pub use slices::{Slices, chain_ranks};
