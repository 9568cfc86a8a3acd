//! Equal chunks: foreign forms cut a buffer into chunks of one length, a plan cuts blocks at fractions. The grid is the
//! coarsest of equal chunks that every cut falls on.

use coll_plan::{Plan, Region};

/// The most chunks of a block; a plan with odder cuts is refused.
const CHUNKS_MAX: u64 = 1 << 16;

/// Equal chunks of each block.
pub(crate) struct Grid {
    /// Chunks of a block.
    pub(crate) chunks: u32,
    /// Before each piece, how many chunks.
    starts: Vec<u32>,
}

impl Grid {
    /// None if cuts fall on no grid of reasonable size.
    pub(crate) fn of(plan: &Plan) -> Option<Grid> {
        let mut chunks = 1u64;
        for cut in &plan.cuts {
            let common = gcd(chunks, cut.denominator());
            chunks = (chunks / common).checked_mul(cut.denominator()).filter(|&all| all <= CHUNKS_MAX)?;
        }
        let start = |cut: &coll_base::Fraction| (cut.numerator() * (chunks / cut.denominator())) as u32;
        Some(Grid { chunks: chunks as u32, starts: plan.cuts.iter().map(start).collect() })
    }

    /// The first chunk of a piece, within its block.
    pub(crate) fn start(&self, piece: u32) -> u32 {
        self.starts[piece as usize]
    }

    /// Chunks of some pieces.
    pub(crate) fn count(&self, low: u32, high: u32) -> u32 {
        self.start(high) - self.start(low)
    }

    /// Chunks of a region.
    pub(crate) fn length(&self, region: &Region) -> u32 {
        self.count(region.low, region.high)
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A rank's scratch in chunks: its slots one behind the other, and behind them blocks of which nothing is promised and
/// which a foreign form has no buffer for.
pub(crate) struct Scratch {
    /// Where each slot starts.
    slots: Vec<u32>,
    /// Where each block starts that is kept here, in ascending order of buffer and block.
    blocks: std::collections::BTreeMap<(u32, u32), u32>,
    /// All of it.
    pub(crate) chunks: u32,
}

impl Scratch {
    pub(crate) fn of(part: &coll_plan::RankPlan, grid: &Grid) -> Scratch {
        let mut chunks = 0;
        let mut slots = Vec::with_capacity(part.slots.len());
        for slot in &part.slots {
            slots.push(chunks);
            chunks += slot.shapes.iter().map(|shape| grid.count(shape.low, shape.high)).max().unwrap_or(0);
        }
        let mut blocks = std::collections::BTreeMap::new();
        for region in &part.regions {
            if let coll_plan::Store::Tmp(buffer) = region.store {
                blocks.insert((buffer, region.block), 0);
            }
        }
        for start in blocks.values_mut() {
            *start = chunks;
            chunks += grid.chunks;
        }
        Scratch { slots, blocks, chunks }
    }

    /// Where a region of a slot, or of a block that is kept here, starts. None for other regions.
    pub(crate) fn start(&self, region: &Region, grid: &Grid) -> Option<u32> {
        match region.store {
            coll_plan::Store::Slot => self.slots.get(region.block as usize).copied(),
            coll_plan::Store::Tmp(buffer) => {
                Some(self.blocks.get(&(buffer, region.block))? + grid.start(region.low))
            }
            _ => None,
        }
    }
}
