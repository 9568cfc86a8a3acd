//! What a collective promises, instantiated for a number of ranks and a root: which rank holds what before, and
//! what after. Contracts are data: they come from `collective` declarations, and nothing in this workspace knows
//! the word *allreduce*.
//!
//! # Meaning
//! A contract has **buffers**. Each is, on each rank, a row of **blocks** (a plain buffer is one block). At the
//! start a rank's block holds the value [`Leaf`]`{rank, buffer, block}` if it is *given*, and nothing otherwise.
//! At the end each [`Ensure`] must hold: its block equals a copy of one leaf, or a reduction of leaves, in order.
//! Element `i` of the result is made of element `i` of each leaf, so a contract holds for any cut of its blocks.
//! What no ensure names is undefined at the end. [`Contract::after`] orders entries and exits (barriers).
//!
//! # Count classes
//! How many elements a block has is unknown until a buffer is bound. Blocks that must have the same count share a
//! **class**: `ensure output[q] == q.input[r]` puts those two blocks into one. A block that no fact names joins
//! the class of the same block of the same buffer on other ranks when those agree (a gather's intermediate ranks).

mod bounds;
mod counts;
mod facts;

pub use bounds::{Bounds, bounds};
pub use counts::{CountsError, block_count};
pub use facts::{Blocks, BufferDecl, BufferRole, ClassId, Classes, Contract, Ensure, Leaf, Value, ValueId};
