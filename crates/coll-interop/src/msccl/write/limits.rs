//! What runtimes can load. RCCL and msccl-executor-nccl share the numbers of `msccl_struct.h` and `msccl_parser.cc`; a file
//! beyond them is refused there, or overruns a table.

use super::blocks::ThreadBlock;
use super::{Kind, Step};
use crate::written::over;
use std::collections::BTreeMap;

const STEPS_MAX: u64 = 64;
const BLOCKS_MAX: u64 = 64;
/// Of the file as one rank keeps it: the algorithm, all ranks, and its own thread blocks and steps. The table has one more, which
/// the closing tags pass through.
const ELEMENTS_MAX: u64 = 4095;
/// Elements that one element may have.
const RANKS_MAX: u64 = 1024;
/// NCCL's, which are fewer than RCCL's 128.
const CHANNELS_MAX: u64 = 32;
const ENDS_MAX: u64 = 32;
/// Offsets have 16 bits, with a sign.
const CHUNKS_MAX: u64 = 1 << 15;
/// Reductions into one chunk that are merged into one pass.
const MERGED_MAX: u32 = 16;

/// The most of everything that has a limit.
#[derive(Default)]
pub(super) struct Most {
    channels: u64,
    ranks: u64,
    steps: u64,
    blocks: u64,
    /// Of one rank: thread blocks and steps.
    elements: u64,
    /// Thread blocks of a rank that send, or receive, on one channel.
    ends: u64,
    chunks: u64,
}

impl Most {
    /// Of a file with so many channels and ranks, of which nothing is known yet.
    pub(super) fn of(channels: u32, ranks: u32) -> Most {
        Most { channels: u64::from(channels), ranks: u64::from(ranks), ..Most::default() }
    }

    /// Takes note of a rank: its thread blocks with their steps, and the chunks of its buffers.
    pub(super) fn note(&mut self, blocks: &[ThreadBlock], steps: &[Vec<Step>], chunks: [u32; 3]) {
        let count = |steps: &Vec<Step>| steps.len() as u64;
        self.steps = self.steps.max(steps.iter().map(count).max().unwrap_or(0));
        self.blocks = self.blocks.max(steps.len() as u64);
        self.elements = self.elements.max(steps.iter().map(|steps| count(steps) + 1).sum::<u64>());
        self.chunks = self.chunks.max(chunks.into_iter().map(u64::from).max().unwrap_or(0));
        let mut ends: BTreeMap<(u32, bool), u64> = BTreeMap::new();
        for block in blocks {
            for (peer, sends) in [(block.send, true), (block.receive, false)] {
                *ends.entry((block.channel, sends)).or_default() += u64::from(peer.is_some());
            }
        }
        self.ends = self.ends.max(ends.into_values().max().unwrap_or(0));
    }

    /// The limits that are exceeded, in words.
    pub(super) fn beyond(&self) -> Vec<String> {
        let both = "RCCL as msccl-executor-nccl";
        let limits = [
            over(self.steps, STEPS_MAX, "steps in a thread block", both),
            over(self.blocks, BLOCKS_MAX, "thread blocks on a rank", both),
            over(1 + self.ranks + self.elements, ELEMENTS_MAX, "XML elements for a rank", both),
            over(self.ranks, RANKS_MAX, "ranks", both),
            over(self.channels, CHANNELS_MAX, "channels", "msccl-executor-nccl"),
            over(self.ends, ENDS_MAX, "thread blocks of a rank that send or receive on one channel", both),
            over(self.chunks, CHUNKS_MAX, "chunks in a buffer", both),
        ];
        limits.into_iter().flatten().collect()
    }
}

/// For each step of a thread block, whether it is marked so that what follows is kept apart from it. Reductions into one chunk that
/// follow each other are merged: the last one's count is taken for all, so that those of unlike counts must not be; and of
/// more than 16 the table of sources is overrun.
pub(super) fn marks(steps: &[Step]) -> Vec<bool> {
    let mut merged = 1;
    let mark = |(at, step): (usize, &Step)| {
        let is_merged = steps.get(at + 1).is_some_and(|next| {
            step.kind == Kind::Reduce
                && next.kind == Kind::Reduce
                && next.depends.is_none()
                && step.target == next.target
                && step.source.0 == next.source.0
        });
        let is_apart = is_merged && (step.count != steps[at + 1].count || merged == MERGED_MAX);
        merged = if is_merged && !is_apart { merged + 1 } else { 1 };
        is_apart
    };
    steps.iter().enumerate().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduction(target: i64, count: u32, depends: Option<(u32, u32)>) -> Step {
        Step { kind: Kind::Reduce, source: ('s', 0), target: ('o', target), count, depends }
    }

    #[test]
    fn reductions_are_kept_apart_where_their_counts_differ_and_after_sixteen() {
        let alike: Vec<Step> = (0..40).map(|_| reduction(0, 1, None)).collect();
        let marked: Vec<usize> = (0..40).filter(|&at| marks(&alike)[at]).collect();
        assert_eq!(marked, [15, 31]);
        let unlike = [reduction(0, 1, None), reduction(0, 2, None), reduction(1, 2, None)];
        assert_eq!(marks(&unlike), [true, false, false]);
        let waits = [reduction(0, 1, None), reduction(0, 2, Some((1, 0)))];
        assert_eq!(marks(&waits), [false, false]);
    }

    #[test]
    fn each_limit_is_named_with_whose_it_is() {
        let steps: Vec<Vec<Step>> =
            (0..65).map(|_| (0..65).map(|_| reduction(0, 1, None)).collect()).collect();
        let blocks: Vec<ThreadBlock> =
            (0..65).map(|peer| ThreadBlock { send: Some(peer), receive: None, channel: 0 }).collect();
        let mut most = Most::of(33, 1025);
        most.note(&blocks, &steps, [1 << 16, 0, 0]);
        let told = most.beyond();
        for (told, due) in told.iter().zip([
            "65 steps in a thread block",
            "65 thread blocks",
            "5316 XML elements",
            "1025 ranks",
            "33 channels",
            "65 thread blocks of a rank that send",
            "65536 chunks",
        ]) {
            assert!(told.starts_with(due), "{told}");
        }
        assert_eq!(told.len(), 7);
    }
}
