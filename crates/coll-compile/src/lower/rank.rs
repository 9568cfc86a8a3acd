//! One rank's transfers become its operations. Step by step: first the step's reads and writes are compared, so
//! that it is known which writes must be staged; then each message and local transfer becomes one operation, in the
//! order that both ends of a message agree on; last, what was staged is brought home.

use super::conflicts::{Conflicts, SEND};
use super::draft::{Draft, From, Sides};
use super::hazards::{Hazards, NONE};
use super::memory::Memory;
use super::slots::Slots;
use super::{Shared, Totals};
use crate::codes;
use coll_base::Diagnostic;
use coll_ir::{Kind, Place, Transfer};
use coll_plan::{Action, RankPlan, Region, Shape, Store};

/// The state of a rank; its tables are used again for the next one.
pub(super) struct Lowering<'s> {
    shared: &'s Shared<'s>,
    rank: u32,
    memory: Memory,
    conflicts: Conflicts,
    hazards: Hazards,
    slots: Slots,
    draft: Draft,
    scratch: ScratchMap,
    ports: Ports,
    tokens: Tokens,
    /// What the step has staged: the transfer that wrote it first, and the slot.
    staged: Vec<(u32, u32)>,
    sides: Sides,
    strays: Vec<(u32, u32)>,
}

/// Which physical slot holds what a slot of the program holds.
struct ScratchMap {
    /// Slots of scratch before each, on one rank.
    first: Vec<usize>,
    /// For each slot, the physical one, or [`NONE`].
    now: Vec<u32>,
    /// For each slot, the step in which the value it holds now is used last.
    until: Vec<u32>,
    /// For each write of a whole slot, in order, the step in which that value is used last.
    lives: Vec<u32>,
    /// How many of those have happened.
    written: usize,
    /// What holds from the end of the step on.
    pending: Vec<(usize, u32)>,
}

/// Lanes, and how many messages each pair of ranks has exchanged.
struct Ports {
    out: Vec<Port>,
    into: Vec<Port>,
    /// Lanes by peer and channel: first those out, then those in.
    lanes: Vec<u32>,
    local: u32,
}

#[derive(Clone, Copy, Default)]
struct Port {
    messages: u64,
}

/// Signals that have reached this rank.
#[derive(Default)]
struct Tokens {
    /// The latest of each incoming lane, from earlier steps.
    arrived: Vec<(u32, u32)>,
    /// Those of this step.
    arriving: Vec<(u32, u32)>,
}

impl<'s> Lowering<'s> {
    pub(super) fn new(shared: &'s Shared<'s>) -> Lowering<'s> {
        let program = shared.program;
        let ranks = program.ranks() as usize;
        let mut first = Vec::new();
        let mut slots = 0;
        for scratch in &program.scratch {
            first.push(slots);
            slots += scratch.slots as usize;
        }
        Lowering {
            shared,
            rank: 0,
            memory: Memory::new(program),
            conflicts: Conflicts::default(),
            hazards: Hazards::default(),
            slots: Slots::default(),
            draft: Draft::default(),
            scratch: ScratchMap {
                first,
                now: vec![NONE; slots],
                until: vec![0; slots],
                lives: Vec::new(),
                written: 0,
                pending: Vec::new(),
            },
            ports: Ports {
                out: vec![Port::default(); ranks],
                into: vec![Port::default(); ranks],
                lanes: vec![NONE; 2 * ranks * shared.settings.lanes as usize],
                local: NONE,
            },
            tokens: Tokens::default(),
            staged: Vec::new(),
            sides: Sides::default(),
            strays: Vec::new(),
        }
    }

    /// Lowers one rank. `agenda` are the transfers that concern it, in order.
    pub(super) fn rank(
        &mut self,
        rank: u32,
        agenda: &[u32],
        totals: &mut Totals,
    ) -> Result<RankPlan, Diagnostic> {
        self.start(rank, agenda);
        let transfers = &self.shared.program.transfers;
        for step in agenda.chunk_by(|&a, &b| transfers[a as usize].step == transfers[b as usize].step) {
            self.step(step, totals)?;
        }
        self.keep_untouched();
        if self.shared.settings.prune {
            totals.pruned += self.draft.prune();
        }
        let (slots, length) = self.slots.declare();
        totals.scratch_max = totals.scratch_max.max(length);
        let part = self.draft.finish(rank, slots);
        totals.ops += part.ops.len() as u64;
        totals.waits += part.waits.len() as u64;
        totals.regions += part.ops.iter().map(|op| (op.source.len() + op.operand.len() + op.target.len()) as u64).sum::<u64>();
        Ok(part)
    }

    fn start(&mut self, rank: u32, agenda: &[u32]) {
        let program = self.shared.program;
        self.rank = rank;
        self.memory.start(&program.contract, rank, &self.shared.classes.classes.table);
        self.conflicts.start(self.memory.cells() + self.scratch.now.len());
        self.hazards.start(self.memory.cells());
        self.slots.start();
        self.draft.start();
        self.scratch.start(self.shared, rank, agenda);
        self.ports.out.fill(Port::default());
        self.ports.into.fill(Port::default());
        self.ports.lanes.fill(NONE);
        self.ports.local = NONE;
        self.tokens = Tokens::default();
    }

    fn step(&mut self, step: &[u32], totals: &mut Totals) -> Result<(), Diagnostic> {
        let message = |id: u32| self.shared.message[id as usize];
        let mut items = step.chunk_by(|&a, &b| message(a) == message(b));
        self.compare(items.clone())?;
        for &id in step {
            self.settle(&self.shared.program.transfers[id as usize], totals);
        }
        items.try_for_each(|item| {
            self.item(item, totals);
            Ok(())
        })?;
        for at in 0..self.staged.len() {
            let (id, slot) = self.staged[at];
            self.bring_home(&self.shared.program.transfers[id as usize], slot);
        }
        totals.staged += self.staged.len() as u64;
        self.staged.clear();
        for (slot, physical) in self.scratch.pending.drain(..) {
            self.scratch.now[slot] = physical;
        }
        self.tokens.end_step();
        Ok(())
    }

    /// Tells `conflicts` all that the step reads and writes on this rank.
    fn compare<'i>(&mut self, items: impl Iterator<Item = &'i [u32]> + Clone) -> Result<(), Diagnostic> {
        self.conflicts.next_step();
        let transfers = &self.shared.program.transfers;
        let each = || {
            let numbered = items.clone().zip(0u32..);
            numbered.flat_map(|(item, position)| item.iter().map(move |&id| (&transfers[id as usize], position)))
        };
        for (transfer, position) in each().filter(|(t, _)| t.carries_data() && t.source.rank == self.rank) {
            let position = if transfer.is_local() { position } else { SEND };
            self.conflicts.read(self.cells(transfer.source, transfer), position);
        }
        for (transfer, position) in each().filter(|(t, _)| t.carries_data() && t.target.rank == self.rank) {
            let pieces = (transfer.low, transfer.high);
            if !self.conflicts.write(self.cells(transfer.target, transfer), pieces, position) {
                return Err(self.ragged(transfer));
            }
        }
        Ok(())
    }

    /// Brings what a transfer reads into one store, if it lies in two: a message has as many regions at both ends.
    fn settle(&mut self, transfer: &Transfer, totals: &mut Totals) {
        let reduces = matches!(transfer.kind, Kind::Reduce | Kind::ReduceLeft);
        let places = [(transfer.carries_data(), transfer.source), (reduces, transfer.target)];
        for (_, place) in places.into_iter().filter(|&(reads, place)| reads && self.owns(place)) {
            let mut strays = std::mem::take(&mut self.strays);
            self.memory.strays(place, transfer.low, transfer.high, &mut strays);
            self.sides.clear();
            let op = self.draft.next_op();
            for &(low, high) in &strays {
                self.sides.source.push(self.memory.region(place, low, high));
                self.write_home(place, low, high, op);
            }
            if !strays.is_empty() {
                self.add_local(Action::Copy, self.from(transfer));
                totals.settled += 1;
            }
            self.strays = strays;
        }
    }

    /// One message, or one local transfer.
    fn item(&mut self, item: &[u32], totals: &mut Totals) {
        let transfers = &self.shared.program.transfers;
        let first = &transfers[item[0] as usize];
        if first.kind == Kind::Move && first.source == first.target {
            return;
        }
        self.sides.clear();
        let op = self.draft.next_op();
        let from = self.from(first);
        let left = first.kind == Kind::ReduceLeft;
        if first.is_local() && first.carries_data() {
            let source = self.read(first.source, first, op);
            self.sides.source.push(source);
            self.write(item[0], op);
            let action = if first.kind == Kind::Move { Action::Copy } else { Action::Reduce { left } };
            self.add_local(action, from);
        } else if first.source.rank == self.rank && !first.is_local() {
            totals.messages += 1;
            self.send(item, from, totals);
        } else if !first.is_local() {
            let (peer, channel, lane) = self.ports.next_in(first.source.rank, self.shared.settings.lanes, &mut self.draft);
            let action = match first.kind {
                Kind::Signal => {
                    self.tokens.arriving.push((lane, op));
                    Action::Recv { peer, channel }
                }
                Kind::Reduce | Kind::ReduceLeft => Action::RecvReduce { peer, channel, left },
                Kind::Move | Kind::Drop => Action::Recv { peer, channel },
            };
            for &id in item.iter().filter(|_| first.kind != Kind::Signal) {
                self.write(id, op);
            }
            self.draft.add(lane, action, &self.sides, &mut self.hazards.waits, NONE, from);
        }
    }

    fn send(&mut self, item: &[u32], from: From, totals: &mut Totals) {
        let transfers = &self.shared.program.transfers;
        let first = &transfers[item[0] as usize];
        let op = self.draft.next_op();
        let (peer, channel, lane) = self.ports.next_out(first.target.rank, self.shared.settings.lanes, &mut self.draft);
        let mut writer = None;
        if first.kind == Kind::Signal {
            self.hazards.waits.extend(self.tokens.arrived.iter().map(|&(_, op)| op));
        } else {
            for &id in item {
                let transfer = &transfers[id as usize];
                let last = self.last_writer(transfer.source, transfer);
                writer = if writer.is_none_or(|writer| writer == last) { Some(last) } else { Some(NONE) };
                let source = self.read(transfer.source, transfer, op);
                self.sides.source.push(source);
            }
        }
        let along = writer.filter(|&writer| {
            writer != NONE && self.shared.settings.fuse && self.draft.receives(writer, &self.sides.source)
        });
        let action = Action::Send { peer, channel };
        let along = along.unwrap_or(NONE);
        let follows = self.draft.add(lane, action, &self.sides, &mut self.hazards.waits, along, from);
        totals.along += follows as u64;
    }

    /// The operation that wrote all that a transfer reads, or [`NONE`].
    fn last_writer(&self, place: Place, transfer: &Transfer) -> u32 {
        let same = |writers: &mut dyn Iterator<Item = u32>| {
            let first = writers.next().unwrap_or(NONE);
            if writers.all(|writer| writer == first) { first } else { NONE }
        };
        if self.shared.program.is_scratch(place.buffer) {
            return match self.scratch.now[self.scratch.index(self.shared, place)] {
                NONE => NONE,
                physical => self.hazards.writer(self.memory.cells() + physical as usize),
            };
        }
        let cells = self.memory.cells_of(place, transfer.low, transfer.high);
        same(&mut cells.map(|cell| self.hazards.writer(cell)))
    }

    /// Operation `op` reads what a transfer moves from `place`.
    fn read(&mut self, place: Place, transfer: &Transfer, op: u32) -> Region {
        if self.shared.program.is_scratch(place.buffer) {
            let index = self.scratch.index(self.shared, place);
            if self.scratch.now[index] == NONE {
                self.scratch.now[index] = self.take_slot(transfer, transfer.step);
            }
            let physical = self.scratch.now[index];
            self.hazards.read(self.memory.cells() + physical as usize, op);
            return self.slot_region(transfer, physical);
        }
        if !self.memory.is_constant(place) {
            for cell in self.memory.cells_of(place, transfer.low, transfer.high) {
                self.hazards.read(cell, op);
            }
        }
        self.memory.region(place, transfer.low, transfer.high)
    }

    /// Operation `op` writes the target of a transfer: adds the target's region, and of a reduction the operand's.
    fn write(&mut self, id: u32, op: u32) {
        let transfer = &self.shared.program.transfers[id as usize];
        let place = transfer.target;
        let staged = self.conflicts.is_staged(self.cells(place, transfer));
        if self.shared.program.is_scratch(place.buffer) {
            return self.write_scratch(transfer, staged, op);
        }
        if !staged {
            if transfer.kind != Kind::Move {
                let operand = self.memory.region(place, transfer.low, transfer.high);
                self.sides.operand.push(operand);
            }
            return self.write_home(place, transfer.low, transfer.high, op);
        }
        let cells = self.memory.cells_of(place, transfer.low, transfer.high);
        let gathered = *self.conflicts.slot(cells.start);
        let slot = match gathered {
            NONE => self.take_slot(transfer, transfer.step),
            slot => slot,
        };
        *self.conflicts.slot(cells.start) = slot;
        if gathered == NONE {
            self.staged.push((id, slot));
        }
        if transfer.kind != Kind::Move {
            let operand = match gathered {
                NONE => self.read(place, transfer, op),
                slot => self.slot_region(transfer, slot),
            };
            self.sides.operand.push(operand);
        }
        self.write_slot(transfer, slot, op);
    }

    /// A write of a whole slot takes a new one; what the step still reads stays in the old one until it ends.
    fn write_scratch(&mut self, transfer: &Transfer, staged: bool, op: u32) {
        let index = self.scratch.index(self.shared, transfer.target);
        let pending = self.scratch.pending.iter().rev().find(|&&(slot, _)| slot == index).map(|&(_, slot)| slot);
        let now = pending.unwrap_or(self.scratch.now[index]);
        let reduces = transfer.kind != Kind::Move;
        if reduces && now != NONE && (pending.is_some() || !staged) {
            let operand = self.slot_region(transfer, now);
            self.sides.operand.push(operand);
            return self.write_slot(transfer, now, op);
        }
        let until = match reduces {
            true => self.scratch.until[index].max(transfer.step),
            false => self.scratch.next_life(transfer.step),
        };
        let new = self.take_slot(transfer, until);
        self.scratch.until[index] = until;
        if reduces {
            let old = if now == NONE { new } else { now };
            self.hazards.read(self.memory.cells() + old as usize, op);
            let operand = self.slot_region(transfer, old);
            self.sides.operand.push(operand);
        }
        match staged {
            true => self.scratch.pending.push((index, new)),
            false => self.scratch.now[index] = new,
        }
        self.write_slot(transfer, new, op);
    }

    fn write_slot(&mut self, transfer: &Transfer, slot: u32, op: u32) {
        self.hazards.write(self.memory.cells() + slot as usize, op);
        let target = self.slot_region(transfer, slot);
        self.sides.target.push(target);
    }

    fn write_home(&mut self, place: Place, low: u32, high: u32, op: u32) {
        let cells = self.memory.cells_of(place, low, high);
        for cell in cells.clone() {
            self.hazards.write(cell, op);
        }
        self.sides.target.push(self.memory.home(place, low, high));
        self.memory.write(cells);
    }

    /// Copies what was staged to where it belongs.
    fn bring_home(&mut self, transfer: &Transfer, slot: u32) {
        self.sides.clear();
        let op = self.draft.next_op();
        self.hazards.read(self.memory.cells() + slot as usize, op);
        let source = self.slot_region(transfer, slot);
        self.sides.source.push(source);
        self.write_home(transfer.target, transfer.low, transfer.high, op);
        self.add_local(Action::Copy, self.from(transfer));
    }

    /// What is ensured and was never written is copied from `.in` to `.out`, in a lane of its own: nothing waits for
    /// it, and in place there is nothing to do.
    fn keep_untouched(&mut self) {
        self.sides.clear();
        let sides = &mut self.sides;
        self.memory.untouched(|from, to| {
            sides.source.push(from);
            sides.target.push(to);
        });
        if !self.sides.target.is_empty() {
            let lane = self.draft.open_lane();
            let from = From { step: 0, line: self.shared.lines.whole };
            self.draft.add(lane, Action::Copy, &self.sides, &mut self.hazards.waits, NONE, from);
        }
    }

    fn add_local(&mut self, action: Action, from: From) {
        if self.ports.local == NONE {
            self.ports.local = self.draft.open_lane();
        }
        self.draft.add(self.ports.local, action, &self.sides, &mut self.hazards.waits, NONE, from);
    }

    fn take_slot(&mut self, transfer: &Transfer, until: u32) -> u32 {
        let cuts = &self.shared.program.cuts.0;
        let length = cuts[transfer.high as usize].to_f64() - cuts[transfer.low as usize].to_f64();
        let (slot, new) = self.slots.take(self.shape(transfer), length, transfer.step, until);
        if new {
            self.hazards.add_cell();
        }
        slot
    }

    fn shape(&self, transfer: &Transfer) -> Shape {
        Shape { class: self.shared.classes.of(transfer.class), low: transfer.low, high: transfer.high }
    }

    fn slot_region(&self, transfer: &Transfer, slot: u32) -> Region {
        let Shape { class, low, high } = self.shape(transfer);
        Region { store: Store::Slot, block: slot, low, high, class }
    }

    /// The cells of a place in the numbering of `conflicts`.
    fn cells(&self, place: Place, transfer: &Transfer) -> std::ops::Range<usize> {
        if self.shared.program.is_scratch(place.buffer) {
            let cell = self.memory.cells() + self.scratch.index(self.shared, place);
            return cell..cell + 1;
        }
        self.memory.cells_of(place, transfer.low, transfer.high)
    }

    /// Whether a place is a block of a buffer on this rank.
    fn owns(&self, place: Place) -> bool {
        place.rank == self.rank
            && !self.shared.program.is_scratch(place.buffer)
            && !self.memory.is_constant(place)
    }

    fn from(&self, transfer: &Transfer) -> From {
        From { step: transfer.step, line: self.shared.lines.of(transfer.origin) }
    }

    fn ragged(&self, transfer: &Transfer) -> Diagnostic {
        let program = self.shared.program;
        let cuts = &program.cuts.0;
        let message = format!(
            "step {} reduces into {} of rank {} in pieces that overlap in part",
            transfer.step,
            program.buffer_name(transfer.target.buffer),
            self.rank
        );
        let found = format!("another transfer of the step covers only a part of {}..{}", cuts[transfer.low as usize], cuts[transfer.high as usize]);
        Diagnostic::new(codes::RAGGED, program.origins.span(transfer.origin), message)
            .expected("transfers of one step that write the same pieces or none in common")
            .found(found)
            .help("write the two in steps of their own")
    }
}

impl ScratchMap {
    /// Works out how long what is written into slots is used.
    fn start(&mut self, shared: &Shared<'_>, rank: u32, agenda: &[u32]) {
        self.now.fill(NONE);
        self.lives.clear();
        self.written = 0;
        self.pending.clear();
        if self.now.is_empty() {
            return;
        }
        let transfers = &shared.program.transfers;
        let mut life = vec![NONE; self.now.len()];
        let on_rank = |place: Place| place.rank == rank && shared.program.is_scratch(place.buffer);
        for step in agenda.chunk_by(|&a, &b| transfers[a as usize].step == transfers[b as usize].step) {
            let each = || step.iter().map(|&id| &transfers[id as usize]).filter(|t| t.carries_data());
            for transfer in each() {
                let reduces = transfer.kind != Kind::Move;
                for (_, place) in [(true, transfer.source), (reduces, transfer.target)]
                    .into_iter()
                    .filter(|&(uses, place)| uses && on_rank(place))
                {
                    if let Some(last) = self.lives.get_mut(life[self.index(shared, place)] as usize) {
                        *last = transfer.step;
                    }
                }
            }
            for transfer in each().filter(|t| t.kind == Kind::Move && t.source != t.target && on_rank(t.target)) {
                life[self.index(shared, transfer.target)] = self.lives.len() as u32;
                self.lives.push(transfer.step);
            }
        }
    }

    /// How long the value is used that is written next.
    fn next_life(&mut self, step: u32) -> u32 {
        let last = self.lives.get(self.written).copied().unwrap_or(step);
        self.written += 1;
        last
    }

    fn index(&self, shared: &Shared<'_>, place: Place) -> usize {
        let scratch = place.buffer as usize - shared.program.contract.buffers.len();
        self.first[scratch] + place.block as usize
    }
}

impl Ports {
    fn next_out(&mut self, peer: u32, channels: u32, draft: &mut Draft) -> (u32, u32, u32) {
        let channel = self.out[peer as usize].next(channels);
        (peer, channel, lane(&mut self.lanes[(peer * channels + channel) as usize], draft))
    }

    fn next_in(&mut self, peer: u32, channels: u32, draft: &mut Draft) -> (u32, u32, u32) {
        let channel = self.into[peer as usize].next(channels);
        let ranks = self.into.len();
        (peer, channel, lane(&mut self.lanes[(ranks + peer as usize) * channels as usize + channel as usize], draft))
    }
}

impl Port {
    /// Messages take turns.
    fn next(&mut self, channels: u32) -> u32 {
        let channel = (self.messages % channels as u64) as u32;
        self.messages += 1;
        channel
    }
}

fn lane(lane: &mut u32, draft: &mut Draft) -> u32 {
    if *lane == NONE {
        *lane = draft.open_lane();
    }
    *lane
}

impl Tokens {
    fn end_step(&mut self) {
        for (lane, op) in self.arriving.drain(..) {
            match self.arrived.iter_mut().find(|arrived| arrived.0 == lane) {
                Some(arrived) => arrived.1 = op,
                None => self.arrived.push((lane, op)),
            }
        }
    }
}
