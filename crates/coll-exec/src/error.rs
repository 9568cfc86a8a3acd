//! What can go wrong: before anything moves ([`BindError`]), and while a plan runs ([`RunError`]).

use crate::Fault;
use crate::frame::Grouped;
use coll_base::DType;
use coll_plan::{Line, OpId};
use std::fmt;

/// Why a plan cannot be bound. Nothing has moved yet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// The plan holds nothing for this rank.
    #[error("the plan has no part for rank {rank}: it is for {found}")]
    NoPart {
        /// The rank.
        rank: u32,
        /// What the plan has.
        found: String,
    },
    /// As many counts are needed as there are classes.
    #[error("{found} counts are given, and the plan has {expected} count classes")]
    Counts {
        /// Classes of the plan.
        expected: u32,
        /// Counts that were given.
        found: usize,
    },
    /// As many placements are needed as there are buffers.
    #[error("{found} placements are given, and the plan has {expected} buffers")]
    Placements {
        /// Buffers of the plan.
        expected: usize,
        /// Placements that were given.
        found: usize,
    },
    /// Offsets do not fit an address.
    #[error("{what} does not fit this machine's addresses: its counts are too large")]
    TooLarge {
        /// What is too large.
        what: String,
    },
    /// A block does not lie within the memory that it is said to lie in.
    #[error(
        "block {block} has {count} elements{}, and the buffer has {len}",
        start.map_or(" and no displacement".to_string(), |start| format!(" from element {start} on"))
    )]
    Outside {
        /// The block.
        block: u32,
        /// Its first element, if it is given.
        start: Option<u64>,
        /// Its elements.
        count: u64,
        /// Elements of the memory.
        len: u64,
    },
    /// Two blocks of an output overlap.
    #[error(
        "blocks {} and {} overlap from element {at} of the output on: what is received must lie apart",
        blocks[0],
        blocks[1]
    )]
    Overlap {
        /// The blocks.
        blocks: [u32; 2],
        /// The first element of both.
        at: u64,
    },
    /// No memory for scratch.
    #[error("no memory for {} B of scratch", Grouped(*needed_bytes))]
    Memory {
        /// Bytes that the plan needs beside the caller's buffers.
        needed_bytes: u64,
    },
    /// The plan reduces, and no operator was given.
    #[error("the plan reduces in operation {op}, and no operator is given")]
    NoReducer {
        /// The first reduction.
        op: OpId,
    },
    /// The plan sends elements as another type, and theirs is not known.
    #[error("the plan sends elements as {wire}, and it is not said what they are: bind it with their type")]
    NoType {
        /// What they travel as.
        wire: DType,
    },
    /// The operator works on elements of another size.
    #[error("elements of {found_bytes} B are bound, and {operator} works on elements of {expected_bytes} B")]
    ElementSize {
        /// The operator and its type.
        operator: String,
        /// Its element size.
        expected_bytes: u64,
        /// What was bound.
        found_bytes: u64,
    },
    /// A contract that both copies and reduces, with an operator that changes what a rank puts in.
    #[error(
        "{collective} promises copies beside reductions: {operator} changes what ranks put in, and the copies with it"
    )]
    Mixed {
        /// The collective.
        collective: String,
        /// The operator.
        operator: String,
    },
    /// An average over more values than there are ranks would form sums that overflow where the mean does not.
    #[error(
        "{operator} takes at most one value of each of the {ranks} ranks, and a result is made of {leaves}"
    )]
    Leaves {
        /// The operator.
        operator: String,
        /// Ranks that run together.
        ranks: u32,
        /// Values that a result is made of.
        leaves: usize,
    },
    /// The plan is not one: it would not have passed verification.
    #[error("the plan is damaged: {what}")]
    Plan {
        /// Where, and what is wrong.
        what: String,
    },
}

/// Why an operation ended early, and where it was. Shown in one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub struct RunError {
    /// The rank that says so.
    pub rank: u32,
    /// The operation's number.
    pub operation: u64,
    /// The schedule's name.
    pub name: String,
    /// Where in the plan, if it was anywhere.
    pub place: Option<Box<Place>>,
    /// What happened.
    #[source]
    pub fault: Fault,
}

/// An operation of a rank's plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its number in the plan.
    pub op: OpId,
    /// What it does: `receive from rank 1`.
    pub what: String,
    /// The step it comes from.
    pub step: u32,
    /// The source line it comes from, if the plan says so.
    pub line: Option<Line>,
    /// The other rank, if there is one.
    pub peer: Option<u32>,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, operation {} ({})", self.rank, self.operation, self.name)?;
        if let Some(place) = &self.place {
            write!(f, ", {place}")?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}", self.step)?;
        if let Some(line) = &self.line {
            write!(f, " ({}:{})", line.file, line.line)?;
        }
        write!(f, ", op {}, {}", self.op, self.what)
    }
}
