//! What a rank does, as plain values: for executors of other kinds than this crate's, such as streams of a device.
//!
//! An [`Outline`] is bound by the very code that a [`Bound`](crate::Bound) is: the same layout, the same order of
//! operands, the same working elements. Who carries it out in the order that it asks for computes the same bits. It
//! holds no memory.

use crate::Link;
use crate::bind::{Binding, Draft, Spread};
use crate::code::{BoundOp, Code, Kind, Side};
use crate::error::{BindError, Place};
use crate::layout;
use crate::memory::{Area, Placement, Segment};
use coll_base::DType;
use coll_kernel::{Cast, Reducer};
use coll_plan::{Line, OpId, Run};
use std::ops::Range;

/// One rank of a plan, bound.
#[derive(Clone, Debug)]
pub struct Outline {
    /// The rank.
    pub rank: u32,
    /// How many ranks run it together.
    pub world: u32,
    /// The schedule's full name.
    pub name: String,
    /// Message slots that each link must offer; 0 if every send may wait for its receive.
    pub slots: u32,
    /// All operations, lane by lane.
    pub ops: Vec<Operation>,
    /// Runs of operations that follow each other.
    pub lanes: Vec<Range<OpId>>,
    /// The caller's buffers, as the contract has them.
    pub buffers: Vec<Buffer>,
    /// Bytes of [`Memory::Scratch`]. Nothing is promised of what is in it when a run begins.
    pub scratch_bytes: u64,
    /// What is made working elements before the first operation.
    pub prepares: Vec<Conversion>,
    /// What is made of working elements after the last.
    pub finishes: Vec<Conversion>,
    /// The operator, in the form that it works in: if the plan accumulates in a wider type, it does.
    pub reducer: Option<Reducer>,
    /// Bytes of a working element; 1 without an operator.
    pub element_bytes: u64,
    /// What makes elements those of messages and back, if they are others.
    pub cast: Option<Cast>,
}

/// One operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it does.
    pub act: Act,
    /// What is sent, copied or reduced in. No part is empty.
    pub source: Vec<Extent>,
    /// What comes in is combined with this. As many parts as the target, of the same lengths; only for reductions.
    pub operand: Vec<Extent>,
    /// What is written.
    pub target: Vec<Extent>,
    /// Bytes of memory that move.
    pub bytes: u64,
    /// Operations that must be done before, beside those that come before it in its lane. A send that may follow a
    /// receive byte by byte waits for it here.
    pub waits: Vec<OpId>,
    /// The step it comes from.
    pub step: u32,
    /// The source line it comes from, if the plan says so.
    pub line: Option<Line>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sends the source: the link's message of this number, from 0.
    Send {
        /// The link.
        link: Link,
        /// The message's number.
        message: u32,
    },
    /// Receives the link's message of this number. See [`Fold`] for what is done with it.
    Receive {
        /// The link.
        link: Link,
        /// The message's number.
        message: u32,
        /// How it is reduced; stored if it is not.
        fold: Option<Fold>,
    },
    /// `target := source`
    Copy,
    /// Combines operand and source into the target.
    Reduce(Fold),
}

/// The order of operands in which the executor combines what comes in, for bits depend on it where both are NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// `target := operand ⊕ incoming`
    OperandFirst,
    /// `target := incoming ⊕ operand`
    IncomingFirst,
}

/// Bytes of one of a rank's memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Which memory.
    pub memory: Memory,
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

/// One of a rank's memories; numbers are buffers of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// The input of a separate buffer.
    Input(u32),
    /// The output of a separate buffer, or all of one in place.
    Output(u32),
    /// The executor's own.
    Scratch,
}

/// A buffer of the caller.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its name in the contract.
    pub name: String,
    /// How it is given.
    pub placement: Placement,
    /// Bytes of input and output. In place all is output.
    pub bytes: [u64; 2],
}

/// A block that is prepared or finished.
#[derive(Clone, Copy, Debug)]
pub struct Conversion {
    /// Where it lies with the caller.
    pub user: Extent,
    /// Where it lies as working elements.
    pub working: Extent,
    /// Values that the result is made of.
    pub leaves: u64,
}

impl Outline {
    /// Binds a rank as [`Bound::spread`](crate::Bound::spread) does, without any memory of its own.
    ///
    /// # Errors
    /// What [`Bound::spread`](crate::Bound::spread) refuses.
    pub fn new(binding: Binding<'_>, dtype: DType, spreads: &[Spread<'_>]) -> Result<Outline, BindError> {
        let draft = Draft::new(binding, Some(dtype), spreads)?;
        let plan = binding.plan;
        let part = plan.rank(binding.rank).expect("invariant: the draft was made of it");
        let waits = |op: &coll_plan::Op| part.waits(op).iter().map(|wait| wait.op).collect();
        let ops = draft.code.ops.iter().zip(&part.ops).map(|(bound, op)| {
            let users = draft.reducer.as_ref().is_some_and(|reducer| reducer.builtin_op().is_none());
            let line = plan.lines.get(op.line as usize).cloned();
            operation(&draft.code, bound, users, waits(op), line)
        });
        let buffers = draft.layout.buffers.iter().map(|buffer| Buffer {
            name: buffer.name.clone(),
            placement: buffer.placement,
            bytes: buffer.sizes,
        });
        Ok(Outline {
            rank: binding.rank,
            world: plan.world(),
            name: plan.name.clone(),
            slots: plan.slots,
            ops: ops.collect(),
            lanes: draft.code.lanes.iter().map(|lane| lane.start..lane.end).collect(),
            buffers: buffers.collect(),
            scratch_bytes: draft.layout.scratch_bytes as u64,
            prepares: draft.layout.prepares.iter().map(Conversion::of).collect(),
            finishes: draft.layout.finishes.iter().map(Conversion::of).collect(),
            element_bytes: draft.element_bytes() as u64,
            reducer: draft.reducer,
            cast: draft.code.cast,
        })
    }

    /// Where an operation is, as errors tell it.
    pub fn place(&self, op: OpId) -> Option<Place> {
        let operation = self.ops.get(op as usize)?;
        let (what, peer) = match operation.act {
            Act::Send { link, .. } => (format!("send to rank {}", link.peer), Some(link.peer)),
            Act::Receive { link, .. } => (format!("receive from rank {}", link.peer), Some(link.peer)),
            Act::Copy => ("copy".to_string(), None),
            Act::Reduce(_) => ("reduction".to_string(), None),
        };
        Some(Place { op, what, step: operation.step, line: operation.line.clone(), peer })
    }
}

fn operation(code: &Code, bound: &BoundOp, users: bool, waits: Vec<OpId>, line: Option<Line>) -> Operation {
    let link = |link: u32| code.links[link as usize].link;
    let extents =
        |run: Run| code.segments(run).iter().map(|&segment| Extent::of(segment)).collect::<Vec<_>>();
    let (source, target) = (extents(bound.source), extents(bound.target));
    let mut operand = extents(bound.operand);
    let (act, folds) = match bound.kind {
        Kind::Send { link: at, message } => (Act::Send { link: link(at), message }, false),
        Kind::Recv { link: at, message, reduces } => {
            let fold = reduces.map(|side| fold(side, users));
            (Act::Receive { link: link(at), message, fold }, fold.is_some())
        }
        Kind::Copy => (Act::Copy, false),
        Kind::Reduce(side) => (Act::Reduce(local_fold(code, bound, side, users)), true),
    };
    if folds && operand.is_empty() {
        operand.clone_from(&target);
    }
    Operation { act, source, operand, target, bytes: bound.bytes, waits, step: bound.step, line }
}

/// Built-in operators commute, and their kernels take the operand first whatever the side.
fn fold(side: Side, users: bool) -> Fold {
    match side {
        Side::Left if users => Fold::IncomingFirst,
        Side::Left | Side::Right => Fold::OperandFirst,
    }
}

/// As `Engine::reduce_piece`: where the target is what comes in, it becomes the operand, and the side turns round.
fn local_fold(code: &Code, bound: &BoundOp, side: Side, users: bool) -> Fold {
    let (source, target) = (code.segments(bound.source), code.segments(bound.target));
    let turned = !target.is_empty() && source == target && !bound.operand.is_empty();
    match fold(side, users) {
        Fold::OperandFirst if turned && !users => Fold::IncomingFirst,
        fold => fold,
    }
}

impl Extent {
    fn of(segment: Segment) -> Extent {
        let memory = match segment.area {
            Area::Input(buffer) => Memory::Input(buffer),
            Area::Output(buffer) => Memory::Output(buffer),
            Area::Scratch => Memory::Scratch,
        };
        Extent { memory, offset: segment.offset as u64, bytes: segment.len as u64 }
    }

    /// The byte after the last.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

impl Conversion {
    fn of(conversion: &layout::Conversion) -> Conversion {
        Conversion {
            user: Extent::of(conversion.user),
            working: Extent::of(conversion.working),
            leaves: conversion.leaves,
        }
    }
}
