//! From syntax tree to program: names, types, constants, and the instantiation of a schedule for a number of ranks.
//!
//! Two passes, each a function of its input alone:
//!
//! 1. [`load`](load()) reads a file and all that it brings in by `use`, and makes a [`Module`] of **resolved** trees
//!    (`resolved`), in which names have become numbers and everything is well typed. It reports every error of names
//!    and types at once (`resolve`); a schedule with one is *broken*, and the others go on.
//! 2. [`Module::instantiate`] runs a schedule's statements for one number of ranks, root and set of parameters
//!    (`elaborate`), and writes down the transfers that they make, next to the contract (`contract`).
//!
//! Calls are elaborated in place: the callee runs in a *frame* of its own, whose blocks are regions of the caller's.

mod builtin;
pub mod codes;
mod concerns;
mod contract;
mod elaborate;
mod eval;
mod lists;
mod load;
mod module;
mod resolve;
mod resolved;
mod wording;

pub use coll_base::nearest;
pub use load::{Library, load};
pub use module::{Instance, Instantiated, Module, Refusal, ScheduleInfo};
