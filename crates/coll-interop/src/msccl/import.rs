//! From an algorithm to a plan. A thread block becomes a lane. If some of its steps send on what they receive, its sends get a
//! second lane, where these follow their receives byte by byte, as the runtimes' fused steps do: a fused step holds its
//! outgoing slot before it frees the incoming one. Dependencies become waits, a connection a channel. A `nop`'s
//! dependency is that of the next step.
//!
//! One tile stands for all: tiles of one chunk touch bytes of their own, so what is right for one is right for each.

use super::check::connections;
use super::model::{Algorithm, Step};
use super::order::{StepRef, order};
use super::places::layout;
use crate::Imported;
use crate::attempt::{Stop, attempt, word};
use crate::codes::{ACCESS, NEVER_TAKEN, UNMARKED};
use crate::collectives::{self, Known};
use crate::layout::{Layout, without_promise};
use crate::weave::finish::Title;
use crate::weave::{CellId, OpRef, Operand, Snag, Staged, Told, Weaver};
use coll_base::{Diagnostic, SourceMap};
use coll_contract::Contract;
use coll_plan::Plan;
use std::collections::{BTreeMap, BTreeSet};

impl Algorithm {
    fn known(&self) -> Option<&'static Known> {
        collectives::by_word(&self.collective)
    }

    /// If the collective has a root, which the form does not say: all ranks, the likely ones first.
    pub fn roots(&self) -> Option<Vec<u32>> {
        let root = self.known()?.root?;
        let count = |gpu: &super::model::Gpu, takes: fn(&Step) -> bool| {
            gpu.blocks.iter().flat_map(|block| &block.steps).filter(|step| takes(step)).count() as u64
        };
        let traffic: Vec<(u64, u64)> = self
            .gpus
            .iter()
            .map(|gpu| (count(gpu, |step| step.kind.sends()), count(gpu, |step| step.kind.receives())))
            .collect();
        Some(collectives::likely_roots(root, &traffic))
    }

    /// Makes a plan of it. `contract` is that of its collective, for its ranks and the root; none if the collective is not
    /// [known](crate::Foreign::known_collective).
    ///
    /// # Errors
    /// If chunks do not fit the collective or lie outside their buffers, if steps wait for each other in a ring, or if
    /// memory is used as it may not be.
    pub fn import(
        &self,
        contract: Option<Contract>,
        root: Option<u32>,
        map: &SourceMap,
    ) -> Result<Imported, Vec<Diagnostic>> {
        let known = self.known();
        let (contract, known) = match contract.zip(known) {
            Some((contract, known)) => (contract, Some(known)),
            None => (without_promise(&self.collective, &self.declared()), None),
        };
        let mut layout = layout(self, known, &contract)?;
        let unmatched = connections(self);
        if !unmatched.is_empty() {
            return Err(unmatched);
        }
        let order = order(self)?;
        let title = |contract: &Contract| Title {
            name: format!("{}.{}", contract.collective, word(&self.name)),
            root,
            file: map.name(self.span.file),
        };
        attempt(contract, &mut layout, !self.limits.in_place, self.warnings(), |contract, layout, staged| {
            self.weave(contract, layout, &order, staged, map, title(contract))
        })
    }

    fn weave(
        &self,
        contract: &Contract,
        layout: &Layout,
        order: &[StepRef],
        staged: &Staged,
        map: &SourceMap,
        title: Title<'_>,
    ) -> Result<(Plan, u32), Stop> {
        let pieces = if layout.refined { 1 } else { layout.chunks };
        let mut loom = Loom {
            algorithm: self,
            layout,
            weaver: Weaver::new(contract, pieces, |rank| layout.memory(rank), staged),
            blocks: Vec::new(),
            first: Vec::new(),
            done: self.awaited(),
            map,
        };
        loom.lanes();
        for &step in order {
            loom.step(step)?;
        }
        let mut weaver = loom.weaver;
        // In place what is promised may lie there already.
        if self.limits.in_place && !self.limits.out_of_place {
            weaver.copy_what_stays();
        }
        let copies = weaver.copies();
        let mut plan = weaver.finish(title);
        plan.channels = self.channels.max(plan.channels);
        Ok((plan, copies))
    }

    /// Steps that others wait for.
    fn awaited(&self) -> BTreeMap<StepRef, Vec<OpRef>> {
        let mut awaited = BTreeMap::new();
        for (rank, gpu) in (0..).zip(&self.gpus) {
            for step in gpu.blocks.iter().flat_map(|block| &block.steps) {
                if let Some((block, number)) = step.depends {
                    awaited.insert((rank, block, number), Vec::new());
                }
            }
        }
        awaited
    }

    fn warnings(&self) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let limits = &self.limits;
        let why = match limits.max_bytes {
            _ if !limits.in_place && !limits.out_of_place => Some("`inplace` and `outofplace` are both 0"),
            Some(max) if max < limits.min_bytes => Some("`maxBytes` is less than `minBytes`"),
            None => Some(
                "`maxBytes` is 0 or not there, which RCCL takes for no limit and the classic MSCCL runtime for 0 bytes",
            ),
            Some(_) => None,
        };
        if let Some(why) = why {
            let told =
                Diagnostic::new(NEVER_TAKEN, self.limits_span, format!("`{}` may never be taken", self.name))
                    .expected("`inplace`, `outofplace`, `minBytes` and `maxBytes` that leave some call")
                    .found(why)
                    .help("write the sizes that it is for; here a `maxBytes` of 0 is no limit");
            warnings.push(told);
        }
        let unmarked = |gpu: &super::model::Gpu| {
            let steps = gpu.blocks.iter().flat_map(|block| &block.steps);
            let depends: BTreeSet<(u32, u32)> = steps.filter_map(|step| step.depends).collect();
            let step = |(block, number): (u32, u32)| &gpu.blocks[block as usize].steps[number as usize];
            depends
                .into_iter()
                .map(step)
                .filter(|step| !step.is_awaited)
                .map(|step| step.span)
                .collect::<Vec<_>>()
        };
        let unmarked: Vec<_> = self.gpus.iter().flat_map(unmarked).collect();
        if let Some(&first) = unmarked.first() {
            let told =
                Diagnostic::new(UNMARKED, first, "others wait for this step, and its `hasdep` is not 1")
                    .expected("`hasdep` 1, without which a runtime does not tell that the step is done")
                    .found(format!("{} such steps", unmarked.len()))
                    .help("write `hasdep=\"1\"`; here it is waited for all the same");
            warnings.push(told);
        }
        warnings
    }
}

/// A thread block, as far as it has come.
struct BlockState {
    lane: u32,
    /// For sends that follow receives.
    send_lane: Option<u32>,
    /// For what is received and sent on without being kept.
    passing: CellId,
    last: Option<OpRef>,
    /// What `nop`s before the next step wait for.
    pending: Vec<OpRef>,
}

struct Loom<'a> {
    algorithm: &'a Algorithm,
    layout: &'a Layout,
    weaver: Weaver<'a>,
    blocks: Vec<BlockState>,
    /// The number of each rank's first thread block.
    first: Vec<u32>,
    /// For steps that others wait for, what is to be waited for.
    done: BTreeMap<StepRef, Vec<OpRef>>,
    map: &'a SourceMap,
}

impl Loom<'_> {
    fn lanes(&mut self) {
        for (rank, gpu) in (0..).zip(&self.algorithm.gpus) {
            self.first.push(self.blocks.len() as u32);
            for block in &gpu.blocks {
                let lane = self.weaver.lane(rank);
                let fused = block.steps.iter().any(|step| step.kind.is_fused());
                let send_lane = fused.then(|| self.weaver.lane(rank));
                let passes = |step: &&Step| step.kind.is_fused() && !step.kind.writes();
                let most = block.steps.iter().filter(passes).map(|step| step.count).max().unwrap_or(0);
                let passing = self.weaver.scratch(rank, most);
                self.blocks.push(BlockState { lane, send_lane, passing, last: None, pending: Vec::new() });
            }
        }
    }

    fn step(&mut self, at: StepRef) -> Result<(), Stop> {
        use super::kind::Kind;
        let (rank, id, number) = at;
        let block = &self.algorithm.gpus[rank as usize].blocks[id as usize];
        let step = &block.steps[number as usize];
        let index = (self.first[rank as usize] + id) as usize;
        let mut waits = std::mem::take(&mut self.blocks[index].pending);
        if let Some((on, number)) = step.depends {
            waits.extend(self.done.get(&(rank, on, number)).into_iter().flatten());
        }
        if step.kind == Kind::Nothing {
            self.blocks[index].pending = waits;
            let state = &self.blocks[index];
            let over: Vec<OpRef> = state.last.iter().chain(&state.pending).copied().collect();
            if let Some(done) = self.done.get_mut(&at) {
                *done = over;
            }
            return Ok(());
        }
        waits.extend(self.blocks[index].last);
        let last = self.act(rank, index, step, (block.send, block.receive, block.channel), &waits);
        let last = last.map_err(|snag| self.stop(at, step, &snag))?;
        self.blocks[index].last = Some(last);
        if let Some(done) = self.done.get_mut(&at) {
            done.push(last);
        }
        Ok(())
    }

    /// Tells the weaver what a step does; gives the action that is over when the step is.
    fn act(
        &mut self,
        rank: u32,
        index: usize,
        step: &Step,
        (send, receive, channel): (Option<u32>, Option<u32>, u32),
        waits: &[OpRef],
    ) -> Result<OpRef, Snag> {
        use super::kind::Kind::*;
        let state = &self.blocks[index];
        let (lane, send_lane, passing) = (state.lane, state.send_lane, state.passing);
        let line = self.map.line_of(step.span);
        let told = Told { rank, lane, waits, line };
        let run = |first: CellId| (first..first + step.count).collect::<Vec<CellId>>();
        let source = if step.kind.reads() {
            run(self.layout.cell(rank, step.source.buffer, step.source.offset as u32))
        } else {
            Vec::new()
        };
        let target = match step.kind {
            ReceiveReduceSend => run(passing),
            _ if step.kind.writes() => {
                run(self.layout.cell(rank, step.target.buffer, step.target.offset as u32))
            }
            _ => Vec::new(),
        };
        let to = (send.unwrap_or(rank), channel);
        let from = (receive.unwrap_or(rank), channel);
        let received = Operand { cells: &source, left: true };
        let arrived = match step.kind {
            // All sends of a connection stand in one lane, as messages pair up by their order there.
            Send => {
                let told = Told { lane: send_lane.unwrap_or(lane), ..told };
                return self.weaver.send(told, to, &source, None);
            }
            Copy => return self.weaver.local(told, &source, &target, None),
            Reduce => {
                let operand = Operand { cells: &target, left: true };
                return self.weaver.local(told, &source, &target, Some(operand));
            }
            Receive | ReceiveCopySend => self.weaver.receive(told, from, &target, None)?,
            _ => self.weaver.receive(told, from, &target, Some(received))?,
        };
        match send_lane.filter(|_| step.kind.sends()) {
            None => Ok(arrived),
            Some(lane) => {
                let told = Told { lane, waits: &[], ..told };
                self.weaver.send(told, to, &target, Some(arrived))
            }
        }
    }

    fn stop(&self, (rank, id, number): StepRef, step: &Step, snag: &Snag) -> Stop {
        let who = format!("step {number} of thread block {id} of gpu {rank}");
        let told = match snag {
            Snag::OtherPiece(_) => return Stop::OtherPiece,
            Snag::WritesGiven(_) => {
                Diagnostic::new(ACCESS, step.span, format!("{who} writes the input of an out-of-place call"))
                    .expected("`o` or `s`, as `outofplace` is 1 and the caller's input stays as it is")
                    .found("`dstbuf` `i`")
                    .help("write to `o` or `s`, or let the file be for calls in place alone")
            }
            Snag::ReadsNothing(_) => {
                Diagnostic::new(ACCESS, step.span, format!("{who} reads input that the rank does not have"))
                    .expected("chunks that are given to this rank, or were written before")
                    .found("chunks in which nothing is")
                    .help("receive them first")
            }
            Snag::Unmatched => Diagnostic::new(ACCESS, step.span, format!("{who} has no other side")),
        };
        Stop::Told(Box::new(told))
    }
}
