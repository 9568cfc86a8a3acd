//! The types of a program.

use crate::{OriginId, Origins};
use coll_base::{DType, Fraction};
use coll_contract::{ClassId, Contract};

/// A schedule, instantiated. See the crate's documentation for what it means.
#[derive(Clone, Debug)]
pub struct Program {
    /// The schedule's name, without its collective.
    pub schedule: String,
    /// Every parameter with its value, in declaration order.
    pub params: Vec<(String, i64)>,
    /// The root it was instantiated for; 0 if the collective has none.
    pub root: u32,
    /// True if the collective has a root.
    pub rooted: bool,
    /// What it must keep. Also says how many ranks there are.
    pub contract: Contract,
    /// Scratch, numbered after the contract's buffers. Each call has its own.
    pub scratch: Vec<Scratch>,
    /// Where every block is cut.
    pub cuts: Cuts,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The transfers, by step.
    pub transfers: Vec<Transfer>,
    /// Named phases: runs of steps, in order, possibly nested.
    pub stages: Vec<Stage>,
    /// Where transfers come from.
    pub origins: Origins,
    /// What `tune` says.
    pub tune: Tune,
}

impl Program {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.contract.ranks
    }

    /// True if `buffer` is scratch.
    pub fn is_scratch(&self, buffer: u32) -> bool {
        buffer as usize >= self.contract.buffers.len()
    }

    /// The name of a buffer, for messages.
    pub fn buffer_name(&self, buffer: u32) -> &str {
        match (buffer as usize).checked_sub(self.contract.buffers.len()) {
            None => &self.contract.buffers[buffer as usize].name,
            Some(scratch) => &self.scratch[scratch].name,
        }
    }

    /// How many blocks a buffer has on each rank: a scratch's slots.
    pub fn block_count(&self, buffer: u32) -> u32 {
        match (buffer as usize).checked_sub(self.contract.buffers.len()) {
            None => self.contract.buffers[buffer as usize].blocks,
            Some(scratch) => self.scratch[scratch].slots,
        }
    }

    /// The range of [`Program::transfers`] that is one step.
    pub fn transfers_of(&self, step: u32) -> &[Transfer] {
        let start = self.transfers.partition_point(|t| t.step < step);
        let end = self.transfers.partition_point(|t| t.step <= step);
        &self.transfers[start..end]
    }
}

/// Temporary slots on every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// Its name in the schedule.
    pub name: String,
    /// Slots on each rank.
    pub slots: u32,
    /// Extents as written, for messages: `tmp[a, b]` has two, `tmp` none. Slots are in row-major order.
    pub extents: Vec<u32>,
}

/// Where blocks are cut: fractions from 0 to 1, ascending, at least `0, 1`. Piece `k` is `cuts[k]..cuts[k + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cuts(pub Vec<Fraction>);

impl Cuts {
    /// Pieces of each block.
    pub fn pieces(&self) -> u32 {
        self.0.len() as u32 - 1
    }

    /// The length of pieces `low..high` as a fraction of the block.
    pub fn length(&self, low: u32, high: u32) -> Fraction {
        let (from, to) = (self.0[low as usize], self.0[high as usize]);
        to.minus(from).expect("invariant: cuts ascend and have passed verification")
    }
}

/// A step, for messages: where it stands and under which loop values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it comes from.
    pub origin: OriginId,
}

/// A named phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// First step.
    pub start: u32,
    /// After its last step.
    pub end: u32,
}

/// A block of a buffer on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The rank.
    pub rank: u32,
    /// The buffer: the contract's first, then scratch.
    pub buffer: u32,
    /// The block, or the slot of a scratch.
    pub block: u32,
}

/// What a transfer does to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// target := source
    Move,
    /// target := target ⊕ source
    Reduce,
    /// target := source ⊕ target
    ReduceLeft,
    /// The target's rank takes the source's rank's token. Buffers, blocks and pieces are 0.
    Signal,
    /// The target holds nothing. `source` equals `target`.
    Drop,
}

/// One chunk, moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What it does.
    pub kind: Kind,
    /// The step it belongs to.
    pub step: u32,
    /// What is read.
    pub source: Place,
    /// What is written.
    pub target: Place,
    /// First piece.
    pub low: u32,
    /// After the last piece; more than `low` but for signals.
    pub high: u32,
    /// The count class of the blocks that the value belongs to: the source's.
    pub class: ClassId,
    /// The statement and loop values it comes from.
    pub origin: OriginId,
}

impl Transfer {
    /// True if it stays within a rank: no message.
    pub fn is_local(&self) -> bool {
        self.source.rank == self.target.rank
    }

    /// True if it carries elements.
    pub fn carries_data(&self) -> bool {
        matches!(self.kind, Kind::Move | Kind::Reduce | Kind::ReduceLeft)
    }
}

/// How fast it runs, apart from what it computes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tune {
    /// Connections for each pair of ranks, at least 1. Messages take turns.
    pub lanes: Option<u32>,
    /// Parts that every chunk is cut into, each a message of its own, at least 1.
    pub slices: Option<u32>,
    /// The type that narrow floats are reduced in, `f32`: partial results keep it, in memory and in messages.
    pub accumulate: Option<DType>,
    /// The type that wider floats travel as, one of [`DType::WIRE`].
    pub wire: Option<DType>,
}
