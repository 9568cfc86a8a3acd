//! An execution plan as the file says it.

use crate::Limits;
use crate::collectives::{by_word, likely_roots};
use crate::layout::Buffer;
use coll_base::Span;

/// A plan of MSCCL++, read and checked by itself.
#[derive(Clone, Debug)]
pub struct ExecutionPlan {
    pub(crate) name: String,
    pub(crate) collective: String,
    pub(crate) limits: Limits,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) span: Span,
}

impl ExecutionPlan {
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

    /// If the collective has a root, which the form does not say: all ranks, the likely ones first.
    pub fn roots(&self) -> Option<Vec<u32>> {
        let root = by_word(&self.collective)?.root?;
        let mut traffic = vec![(0, 0); self.gpus.len()];
        for (rank, gpu) in self.gpus.iter().enumerate() {
            for op in gpu.blocks.iter().flat_map(|block| &block.ops) {
                for &(peer, _) in op.targets.iter().filter_map(|side| side.peer.as_ref()) {
                    traffic[rank].0 += 1;
                    traffic[peer as usize].1 += 1;
                }
                for &(peer, _) in op.sources.iter().filter_map(|side| side.peer.as_ref()) {
                    traffic[peer as usize].0 += 1;
                    traffic[rank].1 += 1;
                }
            }
        }
        Some(likely_roots(root, &traffic))
    }
}

/// One rank.
#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    /// Chunks of its input, its output and its scratch.
    pub(crate) chunks: [u32; 3],
    pub(crate) blocks: Vec<Block>,
    /// How often each semaphore may be acquired at the start.
    pub(crate) semaphores: Vec<u32>,
    pub(crate) span: Span,
}

/// A thread block; what a `pipeline` holds stands in its place, once.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) ops: Vec<Op>,
}

impl Block {
    /// Its operations as they are taken, if each pipeline takes so many turns: in each, its body does one tile.
    pub(crate) fn taken(&self, turns: u32) -> Vec<Op> {
        let mut all = Vec::new();
        for body in self.ops.chunk_by(|a, b| a.pipeline == b.pipeline) {
            let turns = if body[0].pipeline.is_some() { turns } else { 1 };
            for turn in 0..turns {
                all.extend(body.iter().map(|op| Op { tile: (turn, turns), ..op.clone() }));
            }
        }
        all
    }
}

/// A channel to another rank, as this one names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Channel {
    pub(crate) peer: u32,
    /// Which of those of its type to that peer: the other rank's with the same number is its other end.
    pub(crate) nth: u32,
    /// A proxy does what is asked of it, not the threads that ask.
    pub(crate) is_port: bool,
}

/// What an operation does. Its sides say with what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Copies, puts or gets: what the first source has goes to every target.
    Move,
    /// Adds up all sources; what comes out goes to every target.
    Reduce,
    /// Lets the peers know. A relaxed one says nothing of data.
    Signal {
        relaxed: bool,
    },
    /// Waits for the peers to let know.
    Wait {
        relaxed: bool,
    },
    /// Waits for the proxies of port channels to be done with all that they were asked for.
    Flush,
    /// Lets the threads of the block wait for each other.
    Nop,
    /// Waits for other thread blocks of the rank.
    Barrier,
    Acquire,
    Release,
}

/// Chunks at one end of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    /// Another rank, if they lie there.
    pub(crate) peer: Option<(u32, Buffer)>,
    /// The buffer; of another rank's, the same as is said there.
    pub(crate) buffer: Buffer,
    pub(crate) index: u32,
    pub(crate) size: u32,
    /// They are packets, which say themselves that they have come.
    pub(crate) packets: bool,
}

/// An operation.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) act: Act,
    pub(crate) sources: Vec<Side>,
    pub(crate) targets: Vec<Side>,
    /// For signals, waits and flushes; and of what a proxy moves, the one.
    pub(crate) channels: Vec<Channel>,
    /// For a barrier its number and how many thread blocks meet; for semaphores their numbers.
    pub(crate) numbers: Vec<u32>,
    pub(crate) meets: u32,
    /// Which part of how many thread blocks that share it.
    pub(crate) part: (u32, u32),
    /// The pipeline of its thread block that it is in.
    pub(crate) pipeline: Option<u32>,
    /// Which turn of how many of that pipeline.
    pub(crate) tile: (u32, u32),
    /// Where it stands in its thread block, those of pipelines counted once.
    pub(crate) number: u32,
    pub(crate) span: Span,
}

impl Op {
    /// The channel whose proxy moves data for it.
    pub(crate) fn proxy(&self) -> Option<Channel> {
        let moves = matches!(self.act, Act::Move | Act::Reduce);
        self.channels.first().copied().filter(|channel| moves && channel.is_port)
    }
}
