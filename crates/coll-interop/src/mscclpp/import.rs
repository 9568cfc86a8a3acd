//! From an execution plan to a plan: that its chunks fit its collective and lie in their buffers, and then its thread blocks
//! run on `paper`.

use super::model::{ExecutionPlan, Op};
use super::paper::Paper;
use crate::Imported;
use crate::attempt::{Stop, attempt, word};
use crate::codes::{CHUNKS, SHAPE, UNSUPPORTED};
use crate::collectives::{self, Known};
use crate::layout::{Layout, without_promise};
use crate::weave::finish::Title;
use crate::weave::{Staged, Weaver};
use coll_base::{Diagnostic, SourceMap, Span};
use coll_contract::Contract;
use coll_plan::Plan;
use std::cell::RefCell;

/// The most pieces that a chunk is cut into for thread blocks that share operations, and for turns of pipelines.
const PARTS_MAX: u32 = 1 << 10;

/// How many turns pipelines take. What is wrong between two of them is wrong between any; and what there is one of in each turn
/// is counted right by two numbers of turns, of which the other is 1.
const TURNS: u32 = 2;

/// How much a runtime does not order and the plan would, and where, as far as it is told.
type Missing = (u64, Vec<Diagnostic>);

impl ExecutionPlan {
    /// Makes a plan of it. `contract` is that of its collective, for its ranks and the root; none if the collective is not
    /// [known](crate::Foreign::known_collective).
    ///
    /// # Errors
    /// If chunks do not fit the collective or lie outside their buffers, if thread blocks wait for ever, or if memory is used
    /// as it may not be.
    pub fn import(
        &self,
        contract: Option<Contract>,
        root: Option<u32>,
        map: &SourceMap,
    ) -> Result<Imported, Vec<Diagnostic>> {
        let known = collectives::by_word(&self.collective);
        let parts = self.parts().map_err(|told| vec![*told])?;
        let declared: Vec<[u32; 3]> =
            self.gpus.iter().map(|gpu| gpu.chunks.map(|chunks| chunks * parts)).collect();
        let (contract, known) = match contract.zip(known) {
            Some((contract, known)) => (contract, Some(known)),
            None => (without_promise(&self.collective, &declared), None),
        };
        let mut layout = self.layout(known, &contract, &declared).map_err(|told| vec![*told])?;
        self.bounds(&layout, parts).map_err(|told| vec![*told])?;
        let missing = RefCell::new((0, Vec::new()));
        let woven = |contract: &Contract, layout: &Layout, staged: &Staged| {
            let title = Title {
                name: format!("{}.{}", contract.collective, word(&self.name)),
                root,
                file: map.name(self.span.file),
            };
            let (plan, copies, found) = self.weave(contract, layout, staged, parts, map, title)?;
            missing.replace(found);
            Ok((plan, copies))
        };
        let imported = attempt(contract, &mut layout, !self.limits.in_place, Vec::new(), woven)?;
        let (races, unordered) = missing.into_inner();
        Ok(Imported { races, unordered, ..imported })
    }

    /// Into how many pieces a chunk falls, so that every group of thread blocks can share it.
    fn parts(&self) -> Result<u32, Box<Diagnostic>> {
        let has_pipelines = self.ops().any(|op| op.pipeline.is_some());
        let mut parts = if has_pipelines { TURNS } else { 1 };
        for op in self.ops() {
            let size = op.part.1 * if op.pipeline.is_some() { TURNS } else { 1 };
            let (mut a, mut b) = (parts, size);
            while b > 0 {
                (a, b) = (b, a % b);
            }
            parts = parts / a * size;
            if parts > PARTS_MAX {
                let told =
                    Diagnostic::new(UNSUPPORTED, op.span, "groups of thread blocks cut chunks too small")
                        .expected(format!("groups whose sizes have a common multiple of at most {PARTS_MAX}"))
                        .found(format!("{parts}"))
                        .help("take groups of one size");
                return Err(Box::new(told));
            }
        }
        Ok(parts)
    }

    fn ops(&self) -> impl Iterator<Item = &Op> {
        self.gpus.iter().flat_map(|gpu| &gpu.blocks).flat_map(|block| &block.ops)
    }

    /// The operations of all thread blocks, each pipeline in so many turns.
    fn taken(&self, turns: u32) -> Vec<Vec<Op>> {
        self.gpus.iter().flat_map(|gpu| &gpu.blocks).map(|block| block.taken(turns)).collect()
    }

    fn layout(
        &self,
        known: Option<&'static Known>,
        contract: &Contract,
        declared: &[[u32; 3]],
    ) -> Result<Layout, Box<Diagnostic>> {
        let blocks = contract.buffers.first().map_or(1, |decl| decl.blocks);
        let most = declared.iter().map(|chunks| chunks[0].max(chunks[1])).max().unwrap_or(1);
        let wrong = |span: Span, expected: String, found: u32| {
            let message = format!("chunk counts do not fit `{}`", self.collective);
            let told = Diagnostic::new(SHAPE, span, message)
                .expected(expected)
                .found(found.to_string())
                .help("mend `input_chunks` and `output_chunks`, or `collective`");
            Err(Box::new(told))
        };
        let chunks = match known {
            None => 1,
            Some(_) if most > 0 && most % blocks == 0 => most / blocks,
            Some(_) => return wrong(self.gpus[0].span, format!("a multiple of {blocks} chunks"), most),
        };
        let layout = Layout::new(known, contract, chunks, self.limits.in_place, declared);
        if let Some(known) = known {
            let spans = layout.spans(known);
            for (gpu, own) in self.gpus.iter().zip(declared) {
                for (due, &found) in spans.into_iter().zip(own) {
                    if found != due && found != 0 {
                        return wrong(gpu.span, format!("{due} chunks, or 0"), found);
                    }
                }
            }
        }
        Ok(layout)
    }

    /// Every side within its buffer, on its rank.
    fn bounds(&self, layout: &Layout, parts: u32) -> Result<(), Box<Diagnostic>> {
        for (rank, gpu) in (0..).zip(&self.gpus) {
            for op in gpu.blocks.iter().flat_map(|block| &block.ops) {
                for side in op.sources.iter().chain(&op.targets) {
                    let on = side.peer.map_or(rank, |(peer, _)| peer);
                    let all = layout.size(on, side.buffer) / parts;
                    if side.index + side.size > all {
                        let word = side.buffer.word();
                        let message = format!("chunks outside buffer `{word}` of rank {on}");
                        let told = Diagnostic::new(CHUNKS, op.span, message)
                            .expected(format!("chunks below {all}"))
                            .found(format!("`index` {} and `size` {}", side.index, side.size))
                            .help("mend `index` or `size`, or the chunks of the buffer");
                        return Err(Box::new(told));
                    }
                }
            }
        }
        Ok(())
    }

    fn weave(
        &self,
        contract: &Contract,
        layout: &Layout,
        staged: &Staged,
        parts: u32,
        map: &SourceMap,
        title: Title<'_>,
    ) -> Result<(Plan, u32, Missing), Stop> {
        let pieces = if layout.refined { 1 } else { layout.chunks };
        let weaver = || Weaver::new(contract, pieces, |rank| layout.memory(rank), staged);
        let (once, ops) = (self.taken(1), self.taken(TURNS));
        if once.iter().zip(&ops).any(|(once, ops)| once.len() != ops.len()) {
            Paper::new(self, layout, weaver(), (&once, parts), map).run()?;
        }
        let mut paper = Paper::new(self, layout, weaver(), (&ops, parts), map);
        paper.run()?;
        let missing = paper.order.missing();
        let mut weaver = paper.weaver;
        if self.limits.in_place {
            weaver.copy_what_stays();
        }
        let copies = weaver.copies();
        Ok((weaver.finish(title), copies, missing))
    }
}
