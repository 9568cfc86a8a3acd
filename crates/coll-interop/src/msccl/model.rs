//! An algorithm as the file says it.

use super::kind::Kind;
use crate::Limits;
use crate::layout::Buffer;
use coll_base::Span;

/// A schedule in MSCCL's form, read and checked.
#[derive(Clone, Debug)]
pub struct Algorithm {
    pub(crate) name: String,
    /// The collective, as the file calls it.
    pub(crate) collective: String,
    pub(crate) limits: Limits,
    pub(crate) channels: u32,
    pub(crate) chunks_per_loop: u32,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) span: Span,
    pub(crate) chunks_span: Span,
    pub(crate) limits_span: Span,
}

impl Algorithm {
    /// The name that it gives itself.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many ranks it is for.
    pub fn ranks(&self) -> u32 {
        self.gpus.len() as u32
    }

    /// The collective in the file's own word.
    pub fn collective(&self) -> &str {
        &self.collective
    }

    /// For which calls its own runtime would take it.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The chunks of each rank's buffers, as the file says.
    pub(super) fn declared(&self) -> Vec<[u32; 3]> {
        self.gpus.iter().map(|gpu| gpu.chunks).collect()
    }

    /// Steps of all thread blocks.
    pub fn steps(&self) -> usize {
        self.gpus.iter().flat_map(|gpu| &gpu.blocks).map(|block| block.steps.len()).sum()
    }
}

/// What one rank does.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    /// Chunks of its input, its output and its scratch.
    pub(crate) chunks: [u32; 3],
    /// Thread blocks in the order of their ids.
    pub(crate) blocks: Vec<Block>,
    pub(crate) span: Span,
}

/// A thread block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The rank that it sends to.
    pub(crate) send: Option<u32>,
    /// The rank that it receives from.
    pub(crate) receive: Option<u32>,
    pub(crate) channel: u32,
    pub(crate) steps: Vec<Step>,
    pub(crate) span: Span,
}

/// The attribute that says how many chunks a buffer has.
pub(crate) fn chunks_attribute(buffer: Buffer) -> &'static str {
    ["i_chunks", "o_chunks", "s_chunks"][buffer as usize]
}

/// Where chunks start: a buffer, and an offset that is negative for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) buffer: Buffer,
    pub(crate) offset: i64,
}

/// What a thread block does at once.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) kind: Kind,
    pub(crate) source: Spot,
    pub(crate) target: Spot,
    /// Chunks.
    pub(crate) count: u32,
    /// A thread block of the rank and the number of its step.
    pub(crate) depends: Option<(u32, u32)>,
    /// Others wait for it.
    pub(crate) is_awaited: bool,
    pub(crate) span: Span,
}
