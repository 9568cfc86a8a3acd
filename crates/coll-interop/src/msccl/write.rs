//! From a plan to MSCCL XML, in the strict form that RCCL's hand-written parser loads: a line for each tag, single spaces,
//! no declaration, every attribute there.
//!
//! 1. `flow`: messages and local work as transfers of single runs of chunks, in an order in which they can run;
//!    sends of what a receive brings are fused with it where their order allows;
//! 2. `blocks`: connections become thread blocks, and get channels such that fused ones share theirs;
//! 3. here: dependencies are spread over steps and `nop`s, and all is written down.
//!
//! 4. `limits`: what RCCL and msccl-executor-nccl could not load is told.

mod blocks;
mod flow;
mod limits;

use super::kind::Kind;
use crate::Written;
use crate::collectives::{self, Known};
use crate::grid::{Grid, Scratch};
use crate::refusal::{refusal, whole};
use blocks::ThreadBlocks;
use coll_base::Diagnostic;
use coll_plan::Plan;
use flow::{Flow, Move};
use limits::Most;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const FORM: &str = "MSCCL XML";

/// What a plan does not say and the form asks for.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// `Simple`, `LL` or `LL128`.
    pub protocol: String,
    /// The least size that the file is for, in bytes.
    pub min_bytes: u64,
    /// The greatest, in bytes; 0 for no limit.
    pub max_bytes: u64,
    /// What is received and sent on is one step, where the order allows. Such a step holds its outgoing slot before it frees
    /// the incoming one, so that a file may need more slots.
    pub fuse: bool,
    /// The most chunks of one step, from 1 to 64. Runtimes cut steps of many chunks up where chunks are large, down to single
    /// ones, each of which takes a slot.
    pub chunks_max: u32,
}

/// Runtimes take fewer than 72 chunks in a step.
pub const CHUNKS_MAX: u32 = 64;

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            protocol: "Simple".into(),
            min_bytes: 0,
            max_bytes: 1 << 30,
            fuse: true,
            chunks_max: CHUNKS_MAX,
        }
    }
}

/// Writes a proved plan.
///
/// # Errors
/// If the form has no such collective, or the plan does what it cannot say.
pub fn write(plan: &Plan, options: &WriteOptions) -> Result<Written, Box<Diagnostic>> {
    whole(plan, FORM)?;
    let Some(known) = collectives::by_name(&plan.contract.collective) else {
        let found = format!("`{}`", plan.contract.collective);
        return Err(refusal(plan, FORM, format!("one of {}", collectives::names()), found));
    };
    let Some(grid) = Grid::of(plan) else {
        return Err(refusal(plan, FORM, "cuts into equal chunks", "cuts that no such chunks meet"));
    };
    if plan.ranks.iter().flat_map(|part| &part.ops).any(|op| op.source.is_empty() && op.target.is_empty()) {
        return Err(refusal(plan, FORM, "messages that carry chunks", "signals, which carry nothing"));
    }
    let stops = || refusal(plan, FORM, "a plan that runs to its end", "one that stops");
    let mut flow = Flow::of(plan, options.fuse).ok_or_else(stops)?;
    let blocks = ThreadBlocks::of(plan, &flow);
    flow.split(plan, |into, out| blocks.are_joined(into, out));
    let chunks_max = options.chunks_max.clamp(1, CHUNKS_MAX);
    let sheet = Sheet { plan, known, grid: &grid, flow: &flow, blocks: &blocks, chunks_max };
    Ok(sheet.write(options))
}

/// A step, to be written.
struct Step {
    kind: Kind,
    source: (char, i64),
    target: (char, i64),
    count: u32,
    depends: Option<(u32, u32)>,
}

struct Sheet<'a> {
    plan: &'a Plan,
    known: &'static Known,
    grid: &'a Grid,
    flow: &'a Flow,
    blocks: &'a ThreadBlocks,
    chunks_max: u32,
}

/// Steps of each thread block of a rank.
type Steps = Vec<Vec<Step>>;

impl Sheet<'_> {
    fn write(&self, options: &WriteOptions) -> Written {
        let plan = self.plan;
        let blocks = plan.contract.buffers.first().map_or(1, |decl| decl.blocks);
        let channels = self.blocks.channels;
        let mut text = format!(
            "<algo name=\"{}\" proto=\"{}\" nchannels=\"{channels}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" \
             inplace=\"1\" outofplace=\"1\" minBytes=\"{}\" maxBytes=\"{}\">\n",
            name(plan),
            options.protocol,
            blocks / self.known.blocks_apart(blocks) * self.grid.chunks,
            plan.world(),
            self.known.words[0],
            options.min_bytes,
            options.max_bytes,
        );
        let mut most = Most::of(channels, plan.world());
        for rank in 0..plan.world() {
            self.gpu(&mut text, rank, blocks, &mut most);
        }
        text += "</algo>\n";
        Written { text, beyond: most.beyond(), form: FORM, loaded_by: "RCCL and msccl-executor-nccl" }
    }

    fn gpu(&self, text: &mut String, rank: u32, blocks: u32, most: &mut Most) {
        let scratch = Scratch::of(&self.plan.ranks[rank as usize], self.grid);
        let span = |spans| match spans {
            collectives::Blocks::All => blocks * self.grid.chunks,
            collectives::Blocks::Own => self.grid.chunks,
        };
        let (input, output) = (span(self.known.input), span(self.known.output));
        let (steps, awaited) = self.steps(rank, &scratch);
        let _ = writeln!(
            text,
            "  <gpu id=\"{rank}\" i_chunks=\"{input}\" o_chunks=\"{output}\" s_chunks=\"{}\">",
            scratch.chunks
        );
        for (id, (block, steps)) in self.blocks.of_rank(rank).iter().zip(&steps).enumerate() {
            let peer = |peer: Option<u32>| peer.map_or(-1, i64::from);
            let _ = writeln!(
                text,
                "    <tb id=\"{id}\" send=\"{}\" recv=\"{}\" chan=\"{}\">",
                peer(block.send),
                peer(block.receive),
                block.channel
            );
            let marks = limits::marks(steps);
            for (number, step) in steps.iter().enumerate() {
                let (on, at) = step.depends.map_or((-1, -1), |(on, at)| (i64::from(on), i64::from(at)));
                let is_awaited = awaited.contains(&(id as u32, number as u32)) || marks[number];
                let _ = writeln!(
                    text,
                    "      <step s=\"{number}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" \
                     cnt=\"{}\" depid=\"{on}\" deps=\"{at}\" hasdep=\"{}\"/>",
                    step.kind.word(),
                    step.source.0,
                    step.source.1,
                    step.target.0,
                    step.target.1,
                    step.count,
                    u8::from(is_awaited)
                );
            }
            *text += "    </tb>\n";
        }
        *text += "  </gpu>\n";
        most.note(self.blocks.of_rank(rank), &steps, [input, output, scratch.chunks]);
    }

    /// The steps of a rank's thread blocks, and which of them others wait for.
    fn steps(&self, rank: u32, scratch: &Scratch) -> (Steps, BTreeSet<(u32, u32)>) {
        let mut steps: Steps = self.blocks.of_rank(rank).iter().map(|_| Vec::new()).collect();
        // For each operation, the step that it ends with; for each thread block, how far it has waited for others.
        let mut ends: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        let mut waited: Vec<BTreeMap<u32, u32>> = steps.iter().map(|_| BTreeMap::new()).collect();
        let mut awaited = BTreeSet::new();
        for moved in self.flow.of_rank(rank) {
            let block = self.blocks.block_of(self.plan, moved);
            let mut due: BTreeMap<u32, u32> = BTreeMap::new();
            for cause in self.flow.causes(self.plan, moved) {
                let (on, at) = ends[&cause];
                if on != block && waited[block as usize].get(&on).is_none_or(|&known| known < at) {
                    let entry = due.entry(on).or_insert(at);
                    *entry = (*entry).max(at);
                }
            }
            for (&on, &at) in &due {
                waited[block as usize].insert(on, at);
                awaited.insert((on, at));
            }
            self.add(&mut steps[block as usize], moved, due.into_iter().collect(), scratch);
            let last = (block, steps[block as usize].len() as u32 - 1);
            for &op in &moved.ops {
                ends.insert(op, last);
            }
        }
        (steps, awaited)
    }

    /// Adds the steps of one operation, or of two that are fused. All dependencies but one go to `nop`s before them.
    fn add(&self, steps: &mut Vec<Step>, moved: &Move, mut due: Vec<(u32, u32)>, scratch: &Scratch) {
        let own = due.pop();
        for depends in due {
            let none = ('i', -1);
            steps.push(Step {
                kind: Kind::Nothing,
                source: none,
                target: ('o', -1),
                count: 0,
                depends: Some(depends),
            });
        }
        let mut depends = own;
        for (kind, source, target, count) in moved.steps(self.plan, self.grid, self.chunks_max) {
            let place = |region: Option<(coll_plan::Region, u32)>, other: char| {
                region.map_or((other, -1), |(region, skip)| self.place(moved.rank, &region, skip, scratch))
            };
            let (source, target) = (place(source, 'i'), place(target, 'o'));
            steps.push(Step { kind, source, target, count, depends: depends.take() });
        }
    }

    /// The buffer and chunk where a region starts, after some of its chunks.
    fn place(&self, rank: u32, region: &coll_plan::Region, skip: u32, scratch: &Scratch) -> (char, i64) {
        if let Some(start) = scratch.start(region, self.grid) {
            return ('s', i64::from(start + skip));
        }
        let (word, spans) = match region.store {
            coll_plan::Store::In(_) => ('i', self.known.input),
            _ => ('o', self.known.output),
        };
        let first = match spans {
            collectives::Blocks::All => region.block * self.grid.chunks,
            // The rank's own block is all there is.
            collectives::Blocks::Own => {
                debug_assert_eq!(region.block, rank);
                0
            }
        };
        (word, i64::from(first + self.grid.start(region.low) + skip))
    }
}

/// What the plan is called, short enough for parsers of fixed size.
fn name(plan: &Plan) -> String {
    let mut word = crate::attempt::word(&plan.name);
    word.truncate(200);
    word
}
