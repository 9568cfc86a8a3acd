//! Calls: a schedule runs in a frame whose blocks are what the caller gave.
//!
//! To its caller a call is its contract. So that any schedule of the collective may stand there, the places that the
//! contract does not give hold nothing as the call begins, and those that it does not ensure hold nothing as it ends:
//! both are written down as drops, each in a step of its own.

use super::cutter::Cut;
use super::frame::{Frame, Region};
use super::groups::check_rank;
use super::views::{Selection, too_many};
use super::{DEPTH_MAX, Elaborator, Running, Stop, TRANSFERS_MAX, collective_of};
use crate::codes;
use crate::contract::{Facts, buffers_alone, evaluate};
use crate::eval::Fault;
use crate::lists::listed;
use crate::module::set;
use crate::resolved::{Call, Collective, GLOBAL_PARAMS, GLOBAL_ROOT, Given, Schedule, Storage, Value};
use crate::wording::counted;
use coll_base::{Diagnostic, Label, Span};
use coll_contract::BufferRole;
use coll_ir::{IdleKind, Kind, Place, Step, Transfer};
use std::rc::Rc;

/// For each buffer, for each block, its regions.
type Blocks = Vec<Vec<Vec<Region>>>;

impl<'m> Elaborator<'m> {
    pub(super) fn call(&mut self, frame: &mut Frame<'m>, call: &'m Call) -> Result<(), Stop> {
        let prepared = self.prepare(frame, call).map_err(|fault| self.stop(*fault))?;
        let Some((mut inner, facts)) = prepared else {
            self.trace.idle(IdleKind::Call, call.span, call.span, self.steps.len() as u32);
            return Ok(());
        };
        self.running.push(Running { schedule: call.schedule, ranks: inner.ranks() as u32, call: call.span });
        let schedule = inner.schedule;
        if self.only.is_some() {
            // The drops of a right program do not matter; their lines are there all the same.
            self.trace.origin(call.span);
            self.inside(&mut inner, schedule, call)?;
            self.running.pop();
            return Ok(());
        }
        let outside = Outside::new(&inner, &facts, self.root_of(&inner));
        self.drops(&outside, call.span, |buffer, position, block| {
            facts.given[buffer].contains(position, block)
        })?;
        self.inside(&mut inner, schedule, call)?;
        self.drops(&outside, call.span, |buffer, position, block| {
            facts.is_ensured(position, buffer as u32, block)
        })?;
        self.running.pop();
        Ok(())
    }

    /// Runs what is called.
    fn inside(&mut self, inner: &mut Frame<'m>, schedule: &'m Schedule, call: &Call) -> Result<(), Stop> {
        self.trace.enter(call.span);
        self.block(inner, &schedule.body)?;
        self.trace.leave();
        Ok(())
    }

    /// The root by which a frame was turned.
    fn root_of(&self, frame: &Frame<'m>) -> u32 {
        let turned = frame.collective.rooted && !frame.schedule.names_root;
        if turned { frame.globals[GLOBAL_ROOT] as u32 } else { 0 }
    }

    /// The callee's frame and facts; nothing for an empty group.
    fn prepare(
        &mut self,
        frame: &mut Frame<'m>,
        call: &'m Call,
    ) -> Result<Option<(Frame<'m>, Rc<Facts>)>, Fault> {
        let group = self.group(frame, &call.on)?;
        if group.is_empty() {
            return Ok(None);
        }
        self.check_depth(call, group.len() as u32)?;
        let module = self.module;
        let schedule = &module.schedules[call.schedule as usize];
        let collective = collective_of(module, schedule);
        let globals = self.given(frame, call, schedule, group.len() as i64)?;
        // What is wrong with the callee's collective for this group comes of the call.
        let facts = self.facts(schedule.collective, collective, &globals).map_err(|mut fault| {
            fault.calls.push(Label { span: call.span, text: self.trace.describe() });
            fault
        })?;
        let mut blocks = Blocks::new();
        for (view, decl) in call.views.iter().zip(&facts.buffers) {
            let selection = self.select(frame, view)?;
            let units = units(frame, &selection, view.span)?;
            blocks.push(self.deal(units, (&decl.name, decl.blocks), view.span)?);
        }
        self.refuse_overlap(call, collective, &blocks)?;
        let members = group.iter().map(|&position| frame.members[position as usize]).collect();
        let mut inner = Frame::new(schedule, collective, globals, members, blocks);
        inner.find(self.only.as_ref().map(|only| only.rank));
        Ok(Some((inner, facts)))
    }

    /// The callee's globals: its group's size, its root, its parameters as given or by default.
    fn given(
        &mut self,
        frame: &Frame<'m>,
        call: &'m Call,
        schedule: &Schedule,
        ranks: i64,
    ) -> Result<Vec<i64>, Fault> {
        let mut globals = vec![ranks, 0];
        let mut values: Vec<Value> = schedule.params.iter().map(|param| param.default.clone()).collect();
        for (global, given) in &call.named {
            let value = match given {
                Given::Number(value) => Value::Number(self.eval(frame, value)?),
                Given::Same(slot) => Value::List(listed(&frame.globals, *slot).to_vec()),
                Given::List(all) => {
                    let all = all.iter().map(|value| self.eval(frame, value));
                    Value::List(all.collect::<Result<_, _>>()?)
                }
            };
            match (*global as usize, given, &value) {
                (GLOBAL_ROOT, Given::Number(expr), Value::Number(root)) => {
                    check_rank(*root, ranks, expr.span).map_err(|fault| {
                        Box::new(
                            fault.help(format!("a call's root is a position in its group, of 0..{ranks}")),
                        )
                    })?;
                    globals[GLOBAL_ROOT] = *root;
                }
                (slot, ..) => values[slot - GLOBAL_PARAMS] = value,
            }
        }
        set(&mut globals, &values);
        Ok(globals)
    }

    /// A schedule may call itself, directly or not, on a smaller group only.
    fn check_depth(&self, call: &Call, size: u32) -> Result<(), Fault> {
        let same = self.running.iter().rev().find(|running| running.schedule == call.schedule);
        let schedule = &self.module.schedules[call.schedule as usize];
        let full = format!("{}.{}", schedule.collective_name, schedule.name);
        let message = match same {
            Some(outer) if size >= outer.ranks => {
                format!(
                    "`{full}` on {} calls itself on {size}: this never ends",
                    counted(outer.ranks, "rank")
                )
            }
            _ if self.running.len() >= DEPTH_MAX => format!("calls nest deeper than {DEPTH_MAX}"),
            _ => return Ok(()),
        };
        let diagnostic = Diagnostic::new(codes::ENDLESS_CALL, call.span, message);
        Err(Box::new(diagnostic.help("call it on a part of the group, at most half to nest few times")))
    }

    fn facts(
        &mut self,
        id: Option<u32>,
        collective: &Collective,
        globals: &[i64],
    ) -> Result<Rc<Facts>, Fault> {
        let key = (id.unwrap_or(0), globals[..GLOBAL_PARAMS + collective.params.len()].to_vec());
        if let Some(facts) = self.facts.get(&key) {
            return Ok(facts.clone());
        }
        // Without drops, nothing but the buffers is asked for.
        let facts = match &self.only {
            None => evaluate(collective, globals, &mut self.machine)?,
            Some(_) => buffers_alone(collective, globals, &mut self.machine)?,
        };
        let facts = Rc::new(facts);
        self.facts.insert(key, facts.clone());
        Ok(facts)
    }

    /// Makes the callee's blocks of what a view gives: one part is cut into them, several are dealt out.
    fn deal(
        &mut self,
        units: Vec<Vec<Region>>,
        (name, blocks): (&str, u32),
        span: Span,
    ) -> Result<Vec<Vec<Region>>, Fault> {
        if let [unit] = units.as_slice() {
            let mut dealt = vec![Vec::new(); blocks as usize];
            for region in unit {
                let cuts = self.cutter.table(region.low(), region.high(), blocks, span)?;
                for (block, ends) in dealt.iter_mut().zip(cuts.windows(2)) {
                    block.push(Region { cuts: ends.into(), ..region.clone() });
                }
            }
            return Ok(dealt);
        }
        if !units.len().is_multiple_of(blocks as usize) {
            let message =
                format!("{} parts cannot be dealt out to the {blocks} blocks of `{name}`", units.len());
            let diagnostic = Diagnostic::new(codes::UNEVEN_DEAL, span, message);
            let help = format!("give one part, which is cut into {blocks}, or {blocks}, or a multiple of it");
            return Err(Box::new(diagnostic.help(help)));
        }
        let each = units.len() / blocks as usize;
        let mut units = units.into_iter();
        Ok((0..blocks).map(|_| units.by_ref().take(each).flatten().collect()).collect())
    }

    /// What a call writes, no other of its views may share.
    fn refuse_overlap(&self, call: &Call, collective: &Collective, blocks: &Blocks) -> Result<(), Fault> {
        let mut regions = Vec::new();
        for (at, (blocks, buffer)) in blocks.iter().zip(&collective.buffers).enumerate() {
            for region in blocks.iter().flatten() {
                let (low, high) = (self.cutter.fraction(region.low()), self.cutter.fraction(region.high()));
                regions.push((region.buffer, region.block, low, high, buffer.role != BufferRole::In, at));
            }
        }
        regions.sort_unstable();
        for pair in regions.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            let overlap = (first.0, first.1) == (second.0, second.1) && second.2 < first.3;
            if overlap && (first.4 || second.4) {
                let (one, other) = (first.5.min(second.5), first.5.max(second.5));
                let names = [one, other].map(|at| collective.buffers[at].name.as_str());
                let message = match one == other {
                    true => format!("the view for `{}` has an element twice", names[0]),
                    false => format!("the views for `{}` and `{}` share elements", names[0], names[1]),
                };
                let diagnostic = Diagnostic::new(codes::OVERLAPPING_VIEWS, call.views[other].span, message);
                return Err(Box::new(diagnostic.help("what a call writes must be given to it once")));
            }
        }
        Ok(())
    }

    /// Makes every writable place of a call hold nothing, but for those that are `kept`.
    fn drops(
        &mut self,
        outside: &Outside,
        span: Span,
        kept: impl Fn(usize, u32, u32) -> bool,
    ) -> Result<(), Stop> {
        let origin = self.trace.origin(span);
        let step = self.steps.len() as u32;
        let first = self.transfers.len();
        for (position, &rank) in (0..).zip(&outside.members) {
            for (buffer, blocks) in &outside.blocks {
                let dropped = blocks.iter().zip(0..).filter(|(_, block)| !kept(*buffer, position, *block));
                let mut last: Option<&mut Transfer> = None;
                for &(buffer, block, low, high) in dropped.flat_map(|(regions, _)| regions) {
                    let place = Place { rank, buffer, block };
                    if let Some(last) = last.as_mut().filter(|last| last.target == place && last.high == low)
                    {
                        last.high = high;
                        continue;
                    }
                    if self.transfers.len() >= TRANSFERS_MAX {
                        self.report(*too_many(span));
                        return Err(Stop::Failed);
                    }
                    let class = self.class_of(place);
                    let (source, target) = (place, place);
                    self.transfers.push(Transfer {
                        kind: Kind::Drop,
                        step,
                        source,
                        target,
                        low,
                        high,
                        class,
                        origin,
                    });
                    last = self.transfers.last_mut();
                }
            }
        }
        if self.transfers.len() > first {
            self.steps.push(Step { origin });
        }
        Ok(())
    }
}

/// A region: buffer, block, low, high.
type Dropped = (u32, u32, Cut, Cut);

/// A call as its contract sees it: not turned by the root, and only what it may write.
struct Outside {
    members: Vec<u32>,
    /// Buffers by number, with the regions of each block.
    blocks: Vec<(usize, Vec<Vec<Dropped>>)>,
}

impl Outside {
    fn new(frame: &Frame<'_>, facts: &Facts, turned_by: u32) -> Outside {
        let mut members = frame.members.clone();
        members.rotate_right(turned_by as usize);
        let region = |region: &Region| (region.buffer, region.block, region.low(), region.high());
        let writable = facts.buffers.iter().enumerate().filter(|(_, decl)| decl.role != BufferRole::In);
        let blocks = writable.map(|(at, _)| {
            let blocks = frame.buffers[at].blocks.iter().map(|regions| regions.iter().map(region).collect());
            let mut blocks: Vec<Vec<_>> = blocks.collect();
            if frame.collective.buffers[at].by_rank {
                blocks.rotate_right(turned_by as usize);
            }
            (at, blocks)
        });
        Outside { blocks: blocks.collect(), members }
    }
}

/// The parts that a view gives to a call, in order: of a buffer with blocks, each chosen block's; of a plain one, the
/// whole choice if it is unbroken, else each row's.
fn units(frame: &Frame<'_>, selection: &Selection, span: Span) -> Result<Vec<Vec<Region>>, Fault> {
    let Storage::Buffer(buffer) = selection.storage else {
        unreachable!("the static pass refuses scratch in a call");
    };
    let own = &frame.buffers[buffer as usize];
    let cells = u64::from(frame.cells);
    let has_blocks = frame.collective.buffers[buffer as usize].blocks.is_some();
    let unbroken = selection.cells.iter().zip(selection.cells.iter().skip(1)).all(|(a, b)| a + 1 == b);
    let row = match (has_blocks, unbroken) {
        (false, false) => cells / u64::from(own.extents[0]),
        _ => cells,
    };
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for cell in selection.cells.iter() {
        match runs.last_mut() {
            Some((first, end)) if *first / row == cell / row => {
                if *end != cell {
                    return Err(with_gaps(frame, selection.storage, *end, cell, span));
                }
                *end += 1;
            }
            _ => runs.push((cell, cell + 1)),
        }
    }
    let region = |first: u64, end: u64| {
        let (block, low, high) = (first / cells, (first % cells) as usize, ((end - 1) % cells) as usize + 1);
        own.blocks[block as usize].iter().map(move |region| {
            let cuts = [region.cuts[low], region.cuts[high]];
            Region { cuts: cuts.into(), ..region.clone() }
        })
    };
    Ok(runs.into_iter().map(|(first, end)| region(first, end).collect()).collect())
}

fn with_gaps(frame: &Frame<'_>, storage: Storage, end: u64, cell: u64, span: Span) -> Fault {
    let (after, next) = (frame.shown(storage, end - 1), frame.shown(storage, cell));
    let message = format!("this view goes from {after} to {next}: a part given to a call has no gaps");
    let diagnostic = Diagnostic::new(codes::BROKEN_VIEW, span, message);
    Box::new(diagnostic.help("give an unbroken part of each block"))
}
