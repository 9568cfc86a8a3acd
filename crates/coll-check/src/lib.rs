//! The judge: says whether a schedule keeps its contract, and separately whether a plan does. It shares no code with
//! what it judges: `coll-compile` and this crate do not know each other.
//!
//! [`program::prove`] runs a program on symbols instead of numbers and compares what every rank ends with to what
//! the contract asks for. [`plan`] does the like for a compiled plan, where also waiting and memory can go wrong.
//! The two share no code either, so that a fault in one judge is not a fault in both.

pub mod codes;
pub mod plan;
pub mod program;
