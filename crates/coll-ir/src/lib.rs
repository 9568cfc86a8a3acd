//! The program: what a schedule does for one number of ranks, one root and one set of parameters, as a list of
//! transfers between places.
//!
//! # Places
//! A [`Place`] is a block of a buffer on a rank. Buffers are numbered: first the contract's, in its order, then the
//! program's scratch. Every block of every buffer is cut at the same fractions, [`Program::cuts`], into **pieces**;
//! a transfer moves the pieces `low..high` of one block onto the same pieces of another. That is why moving chunk i
//! onto chunk j cannot be written here: they may differ by an element.
//!
//! A scratch block is a slot: it has no count of its own and takes the shape (pieces and count class) of what is
//! written into it; it is always written and read whole, so one write replaces a slot's whole content.
//!
//! # Steps
//! [`Transfer::step`] never decreases along [`Program::transfers`]. Within a step every transfer reads what its
//! source held when the step began; writes then land in list order, so reductions into one piece are applied in
//! that order, onto what it held as the step began. Across steps only data orders things. A [`Kind::Drop`] makes
//! its target hold nothing (the contract of a call names it not); it stands in a step of its own kind and moves
//! nothing. Signals carry a rank's *token*, the set of ranks known to have entered: a signal unites the sender's
//! token, as the step began, with the receiver's. Tokens and data do not order each other.
//!
//! # Promise
//! A `Program` that `coll-sema` returns has passed [`verify`]: ids in range, steps in order, no plain write beside
//! another write to one piece in one step, no write to an `in` buffer. Whether what is read holds anything, and
//! whether the contract is kept, is for `coll-check` to say.

mod cells;
mod deps;
mod dot;
mod origins;
mod print;
mod program;
mod read;
mod verify;
mod words;

pub use cells::Cells;
pub use deps::{Dependence, Dependences};
pub use dot::dot;
pub use origins::{Binding, Call, Idle, IdleKind, Origin, OriginId, Origins};
pub use print::{print, print_transfer};
pub use program::{Cuts, Kind, Place, Program, Scratch, Stage, Step, Transfer, Tune};
pub use read::{ReadError, read};
pub use verify::verify;
