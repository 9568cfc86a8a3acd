//! The plan: all that a rank needs to run a collective. It is the narrow waist between what compiles and what runs;
//! nothing that runs knows how a plan was made.
//!
//! A plan knows no sizes: a [`Region`] names pieces of a block, and element counts are given when it is bound.
//!
//! # Storage
//! A region lies in a [`Store`]. An `inout` buffer `data` has three on each rank: `data.in` holds the given blocks
//! and is never written; `data.out` holds the ensured blocks, and what is in it at the end is the result;
//! `data.tmp` holds written blocks that nothing is promised about. Called **out of place** the three are different
//! memory; called **in place** they are one: the same block at the same address. A plan is right both ways. An
//! `in` buffer has only `.in`, an `out` buffer only `.out` and `.tmp`. A **slot** is scratch: the memory of the
//! largest of its shapes; a region in it starts at the slot's first byte.
//!
//! # Running
//! A rank's operations stand in **lanes**. A lane runs its operations one after the other: the next starts when the
//! one before is done. Lanes run side by side; a [`Wait`] makes an operation start only after another is done, or,
//! with `along`, lets a send follow a receive byte by byte: it may send what the receive has stored so far.
//! A [`Action::Send`] and a [`Action::Recv`] of two ranks on one channel are paired in order: the nth send of a to b on
//! channel c with the nth receive of b from a on c. A message is the concatenation of its regions; both sides list
//! regions of equal lengths in equal order. A message without regions is a **signal**.
//! A send is done when its bytes have been taken over (by the receiver, or by one of [`Plan::slots`] message slots
//! of the connection); a receive when they have been stored or reduced.
//! Two operations of a rank that touch one piece, at least one of them writing, are ordered by lanes, waits and
//! messages; a proved plan has no others.

mod bytes;
pub mod codes;
mod json;
mod normal;
mod placement;
mod plan;
mod proof;
#[cfg(test)]
mod samples;
mod shared;
mod text;
mod verify;

pub use bytes::{DecodeError, FORMAT_VERSION, MAGIC, from_bytes, hash, to_bytes, version};
pub use json::{JsonError, from_json, to_json};
pub use normal::normal_form;
pub use placement::Placement;
pub use plan::{Action, Lane, Line, Op, OpId, Plan, RankPlan, Region, Run, Shape, SlotDecl, Store, Wait};
pub use proof::{Claims, Proof, Reference, unchanged};
pub use shared::{is_worth_sharing, shared_sends};
pub use text::{TextError, from_text, op_text, regions_text, to_text};
pub use verify::{PlanError, verify};
