//! The types of a plan. The crate's documentation says what they mean.

use crate::{Claims, Placement, Proof};
use coll_base::{DType, Fraction};
use coll_contract::{ClassId, Contract};
use serde::{Deserialize, Serialize};

/// A plan for all ranks, or a slice of it for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The schedule's full name, `allreduce.ring`.
    pub name: String,
    /// Every parameter with its value, in declaration order.
    pub params: Vec<(String, i64)>,
    /// The root it is for, if the collective has one.
    pub root: Option<u32>,
    /// What it keeps. In a slice, what concerns that rank.
    pub contract: Contract,
    /// True if any value of the whole contract is a reduction: a slice of it cannot always tell.
    pub reduces: bool,
    /// What was proved of it besides.
    pub claims: Claims,
    /// Where every block is cut: fractions from 0 to 1, ascending. Piece k is `cuts[k]..cuts[k + 1]`.
    pub cuts: Vec<Fraction>,
    /// Connections for each pair of ranks and direction: channels are `0..channels`.
    pub channels: u32,
    /// How many parts each chunk was cut into, on top of what the schedule asks; 1 if into none. Nothing depends on it: it
    /// tells ranks that were given different ones what they disagree on.
    pub slices: u32,
    /// The type that narrow floats are reduced in, `f32`, or none for their own. Where a call's elements are narrow floats,
    /// and its operator rounds, every region and every message holds elements of this type from the start to the end,
    /// when the result is rounded once. To all other calls it means nothing.
    #[serde(default)]
    pub accumulate: Option<DType>,
    /// The type that floats travel as, one of [`DType::WIRE`], or none. Where elements in memory are wider floats, or
    /// complex numbers of such parts, every message holds elements of this type: rounded when they are sent, and widened
    /// when they are received. To all other calls it means nothing.
    #[serde(default)]
    pub wire: Option<DType>,
    /// Message slots that each connection must offer for the plan to end. 0 means that it runs even if every send waits
    /// for its receive; plans that the compiler makes are such.
    pub slots: u32,
    /// Source lines that operations refer to.
    pub lines: Vec<Line>,
    /// One for each rank, in order; in a slice, one.
    pub ranks: Vec<RankPlan>,
    /// What it was compiled from, if it was: a hash over the schedule's texts, its parameters, rank count and root, and
    /// the options. What has one origin is one plan, or slices of it.
    pub origin: Option<String>,
    /// The proof that it rests on, if it is known. A slice made alone has an origin too.
    pub proof: Option<Proof>,
    /// Where its ranks are meant to run, if it was compiled for a topology. In a slice, where all ranks are.
    #[serde(default)]
    pub placement: Option<Placement>,
}

impl Plan {
    /// Number of ranks that run it together.
    pub fn world(&self) -> u32 {
        self.contract.ranks
    }

    /// True if every rank's part is here.
    pub fn is_whole(&self) -> bool {
        self.contract.only.is_none()
    }

    /// One rank's part, if it is here.
    pub fn rank(&self, rank: u32) -> Option<&RankPlan> {
        if self.is_whole() {
            self.ranks.get(rank as usize)
        } else {
            self.ranks.iter().find(|r| r.rank == rank)
        }
    }

    /// Pieces of each block.
    pub fn pieces(&self) -> u32 {
        self.cuts.len() as u32 - 1
    }

    /// One rank's part as a plan of its own.
    pub fn slice(&self, rank: u32) -> Option<Plan> {
        let part = self.rank(rank)?.clone();
        Some(Plan {
            name: self.name.clone(),
            params: self.params.clone(),
            root: self.root,
            contract: self.contract.slice(rank),
            reduces: self.reduces,
            claims: self.claims,
            cuts: self.cuts.clone(),
            channels: self.channels,
            slices: self.slices,
            accumulate: self.accumulate,
            wire: self.wire,
            slots: self.slots,
            lines: self.lines.clone(),
            ranks: vec![part],
            origin: self.origin.clone(),
            proof: self.proof.clone(),
            placement: self.placement.clone(),
        })
    }
}

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Line {
    /// The file's name as it was given.
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// What one rank does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPlan {
    /// The rank.
    pub rank: u32,
    /// Its scratch.
    pub slots: Vec<SlotDecl>,
    /// Its lanes: runs of [`RankPlan::ops`] that follow each other and cover it.
    pub lanes: Vec<Lane>,
    /// All operations, lane by lane.
    pub ops: Vec<Op>,
    /// What operations' runs of regions point into.
    pub regions: Vec<Region>,
    /// What operations' runs of waits point into.
    pub waits: Vec<Wait>,
}

impl RankPlan {
    /// Regions of a run.
    pub fn regions(&self, run: Run) -> &[Region] {
        &self.regions[run.start as usize..run.end as usize]
    }

    /// What an operation waits for.
    pub fn waits(&self, op: &Op) -> &[Wait] {
        &self.waits[op.waits.start as usize..op.waits.end as usize]
    }
}

/// Scratch memory, as large as the largest of its shapes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotDecl {
    /// What it holds at one time or another, sorted, no two alike.
    pub shapes: Vec<Shape>,
}

/// Pieces of a block of some count class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Shape {
    /// The class of the block.
    pub class: ClassId,
    /// First piece.
    pub low: u32,
    /// After the last piece.
    pub high: u32,
}

/// A run of operations that run one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// First operation.
    pub start: OpId,
    /// After the last operation.
    pub end: OpId,
}

/// Index into [`RankPlan::ops`].
pub type OpId = u32;

/// `start..end` of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// First.
    pub start: u32,
    /// After the last.
    pub end: u32,
}

impl Run {
    /// How many.
    pub fn len(self) -> usize {
        (self.end - self.start) as usize
    }

    /// True if there is none.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// One operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Op {
    /// What it does.
    pub action: Action,
    /// Regions that are read: what is sent, copied or reduced in. Empty for receives.
    pub source: Run,
    /// Regions that are combined with what comes in: `target := operand ⊕ incoming`. Only for reductions; it may be
    /// the target itself. As many regions as the target, of the same lengths.
    pub operand: Run,
    /// Regions that are written. Empty for sends.
    pub target: Run,
    /// What must have happened before it starts.
    pub waits: Run,
    /// The step of the program it comes from.
    pub step: u32,
    /// Index into [`Plan::lines`].
    pub line: u32,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Sends the source to a peer.
    Send {
        /// The receiver.
        peer: u32,
        /// The channel.
        channel: u32,
    },
    /// Stores what a peer sends in the target.
    Recv {
        /// The sender.
        peer: u32,
        /// The channel.
        channel: u32,
    },
    /// `target := operand ⊕ received`, or `received ⊕ operand` if `left`.
    RecvReduce {
        /// The sender.
        peer: u32,
        /// The channel.
        channel: u32,
        /// What is received is the left operand.
        left: bool,
    },
    /// `target := source`
    Copy,
    /// `target := operand ⊕ source`, or `source ⊕ operand` if `left`.
    Reduce {
        /// The source is the left operand.
        left: bool,
    },
}

impl Action {
    /// The receiver and channel of a send.
    pub fn sends_to(self) -> Option<(u32, u32)> {
        match self {
            Action::Send { peer, channel } => Some((peer, channel)),
            _ => None,
        }
    }

    /// The sender and channel of a receive.
    pub fn receives_from(self) -> Option<(u32, u32)> {
        match self {
            Action::Recv { peer, channel } | Action::RecvReduce { peer, channel, .. } => {
                Some((peer, channel))
            }
            _ => None,
        }
    }
}

/// An operation that another waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wait {
    /// What is waited for.
    pub op: OpId,
    /// Only for a send on a receive whose target is the send's source, region by region: follow it byte by byte.
    pub along: bool,
}

/// Pieces `low..high` of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Region {
    /// The memory it lies in.
    pub store: Store,
    /// The block of the buffer, or the number of the slot.
    pub block: u32,
    /// First piece.
    pub low: u32,
    /// After the last piece.
    pub high: u32,
    /// The count class that gives the pieces their lengths: the block's own, or in a slot that of what it holds.
    pub class: ClassId,
}

/// The memory a region lies in; numbers are buffers of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Store {
    /// `data.in`
    In(u32),
    /// `data.out`
    Out(u32),
    /// `data.tmp`
    Tmp(u32),
    /// `slot`
    Slot,
}
