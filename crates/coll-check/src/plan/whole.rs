//! All ranks' operations under one numbering, and words for them.

use super::codes;
use coll_base::Diagnostic;
use coll_contract::Leaf;
use coll_plan::{Op, Plan, RankPlan, Region, Store, op_text};

/// An operation among those of all ranks: ranks one after the other, each in its own order.
pub(super) type OpKey = u32;

/// Stands for no operation, no message, nothing.
pub(super) const NONE: u32 = u32::MAX;

/// More symbolic memory than this, in pieces, is not attempted.
const CELLS_MAX: u64 = 1 << 28;

/// How many messages of one kind are told; one fault often shows in many places.
pub(super) const TOLD_MAX: usize = 6;

/// A whole, verified plan.
pub(super) struct Whole<'a> {
    pub(super) plan: &'a Plan,
    /// The first key of every rank, and one after the last.
    base: Vec<OpKey>,
    rank_of: Vec<u32>,
    /// For sends that follow a receive byte by byte, that receive. Empty if there are none.
    along: Vec<OpKey>,
    /// Blocks of the buffers before each.
    first_block: Vec<u32>,
    /// Blocks of a rank.
    pub(super) width: u32,
}

impl<'a> Whole<'a> {
    pub(super) fn new(plan: &'a Plan) -> Result<Whole<'a>, Box<Diagnostic>> {
        if let Some(only) = plan.contract.only {
            let told =
                Diagnostic::unplaced(codes::NOT_PROVABLE, "a slice of a plan cannot be proved by itself")
                    .expected("the parts of all ranks")
                    .found(format!("that of rank {only} alone"))
                    .help("prove the whole plan, and compare its hash with the slice's `proof`");
            return Err(Box::new(told));
        }
        let mut base = vec![0];
        let mut rank_of = Vec::new();
        for part in &plan.ranks {
            rank_of.resize(rank_of.len() + part.ops.len(), part.rank);
            base.push(rank_of.len() as OpKey);
        }
        let mut first_block = Vec::new();
        let mut width = 0;
        for buffer in &plan.contract.buffers {
            first_block.push(width);
            width += buffer.blocks;
        }
        let mut whole = Whole { plan, base, rank_of, along: Vec::new(), first_block, width };
        whole.find_along();
        whole.bounded()?;
        Ok(whole)
    }

    fn find_along(&mut self) {
        for (part, &base) in self.plan.ranks.iter().zip(&self.base) {
            if !part.waits.iter().any(|wait| wait.along) {
                continue;
            }
            self.along.resize(self.rank_of.len(), NONE);
            for (op, key) in part.ops.iter().zip(base..) {
                if let Some(wait) = part.waits(op).iter().find(|wait| wait.along) {
                    self.along[key as usize] = base + wait.op;
                }
            }
        }
    }

    fn bounded(&self) -> Result<(), Box<Diagnostic>> {
        let pieces = u64::from(self.plan.pieces());
        let blocks =
            u64::from(self.width).saturating_mul(self.plan.ranks.len() as u64).saturating_mul(pieces);
        let shapes =
            self.plan.ranks.iter().flat_map(|part| &part.slots).map(|slot| {
                u64::from(slot.shapes.iter().map(|shape| shape.high - shape.low).max().unwrap_or(0))
            });
        let cells = shapes.fold(blocks, u64::saturating_add);
        if cells <= CELLS_MAX {
            return Ok(());
        }
        let told = Diagnostic::unplaced(codes::NOT_PROVABLE, "the plan is too large to be proved")
            .expected(format!("at most {CELLS_MAX} pieces in all blocks and slots of all ranks"))
            .found(format!("{cells}"))
            .help("cut the blocks into fewer pieces, or prove the schedule for fewer ranks");
        Err(Box::new(told))
    }

    pub(super) fn op_count(&self) -> usize {
        self.rank_of.len()
    }

    pub(super) fn rank_of(&self, key: OpKey) -> u32 {
        self.rank_of[key as usize]
    }

    pub(super) fn base(&self, rank: u32) -> OpKey {
        self.base[rank as usize]
    }

    pub(super) fn part(&self, key: OpKey) -> &'a RankPlan {
        &self.plan.ranks[self.rank_of(key) as usize]
    }

    /// The number within its rank.
    pub(super) fn local(&self, key: OpKey) -> u32 {
        key - self.base(self.rank_of(key))
    }

    pub(super) fn op(&self, key: OpKey) -> &'a Op {
        &self.part(key).ops[self.local(key) as usize]
    }

    /// The receive that a send follows byte by byte, or [`NONE`].
    pub(super) fn along(&self, key: OpKey) -> OpKey {
        self.along.get(key as usize).copied().unwrap_or(NONE)
    }

    /// Sends that follow a receive, as `(receive, send)` in the order of the receives.
    pub(super) fn followers(&self) -> Vec<(OpKey, OpKey)> {
        let pairs = self.along.iter().zip(0..).filter(|&(&receive, _)| receive != NONE);
        let mut pairs: Vec<_> = pairs.map(|(&receive, send)| (receive, send)).collect();
        pairs.sort_unstable();
        pairs
    }

    /// The operation before it in its lane.
    pub(super) fn previous(&self, key: OpKey) -> Option<OpKey> {
        let (part, local) = (self.part(key), self.local(key));
        let lane = part.lanes[lane_of(part, local)];
        (local > lane.start).then(|| key - 1)
    }

    /// A block's place among those of its rank.
    pub(super) fn block(&self, buffer: u32, block: u32) -> u32 {
        self.first_block[buffer as usize] + block
    }

    /// A number for a leaf, below the number of all blocks of all ranks.
    pub(super) fn leaf(&self, leaf: Leaf) -> u32 {
        leaf.rank * self.width + self.block(leaf.buffer, leaf.block)
    }

    /// The leaf of a number.
    pub(super) fn leaf_of(&self, number: u32) -> Leaf {
        let (rank, at) = (number / self.width, number % self.width);
        let buffer = self.first_block.partition_point(|&first| first <= at) as u32 - 1;
        Leaf { rank, buffer, block: at - self.first_block[buffer as usize] }
    }

    /// `r1.data[0]`
    pub(super) fn leaf_words(&self, number: u32) -> String {
        let leaf = self.leaf_of(number);
        format!("r{}.{}[{}]", leaf.rank, self.plan.contract.buffers[leaf.buffer as usize].name, leaf.block)
    }

    /// `rank 1, op 3`
    pub(super) fn name(&self, key: OpKey) -> String {
        format!("rank {}, op {}", self.rank_of(key), self.local(key))
    }

    /// `rank 1, op 3: recv data.out[0:0..1] from r0 channel 0 (ring.coll:5)`
    pub(super) fn words(&self, key: OpKey) -> String {
        let (part, op) = (self.part(key), self.op(key));
        let text = short(op_text(self.plan, part, op));
        let line = &self.plan.lines[op.line as usize];
        format!("{}: {text} ({}:{})", self.name(key), line.file, line.line)
    }

    /// `data.out[0], pieces 0..1`, or a slot.
    pub(super) fn region_words(&self, rank: u32, region: &Region) -> String {
        coll_plan::regions_text(self.plan, rank, std::slice::from_ref(region))
    }
}

/// The lane of an operation.
pub(super) fn lane_of(part: &RankPlan, local: u32) -> usize {
    part.lanes.partition_point(|lane| lane.end <= local)
}

/// The buffer of a region that is not in a slot.
pub(super) fn buffer_of(region: &Region) -> Option<u32> {
    match region.store {
        Store::In(buffer) | Store::Out(buffer) | Store::Tmp(buffer) => Some(buffer),
        Store::Slot => None,
    }
}

/// Cuts a long list of regions short.
fn short(text: String) -> String {
    const LENGTH_MAX: usize = 120;
    match text.char_indices().nth(LENGTH_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
