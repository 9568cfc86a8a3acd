//! One rank's transfers become its operations. Step by step: first the step's reads and writes are compared, so
//! that it is known which writes must be staged; then each message and local transfer becomes one operation, in the
//! order that both ends of a message agree on; last, what was staged is brought home.

use super::conflicts::{Conflicts, SEND};
use super::draft::{Draft, From, Sides};
use super::hazards::{Hazards, NONE};
use super::memory::Memory;
use super::ports::{Ports, Way};
use super::scratch::Scratch;
use super::slots::Slots;
use super::{Shared, Totals};
use crate::codes;
use coll_base::Diagnostic;
use coll_ir::{Kind, Place, Transfer};
use coll_plan::{Action, RankPlan, Region, Shape, Store};
use std::ops::Range;

/// The state of a rank; its tables are used again for the next one.
pub(super) struct Lowering<'s> {
    shared: &'s Shared<'s>,
    transfers: &'s [Transfer],
    rank: u32,
    memory: Memory,
    scratch: Scratch<'s>,
    conflicts: Conflicts,
    hazards: Hazards,
    slots: Slots,
    ports: Ports,
    draft: Draft,
    /// The regions of the operation at hand.
    sides: Sides,
    /// What the step has staged: the transfer that came first, and the slot.
    staged: Vec<(u32, u32)>,
    strays: Vec<(u32, u32)>,
}

impl<'s> Lowering<'s> {
    pub(super) fn new(shared: &'s Shared<'s>) -> Lowering<'s> {
        Lowering {
            shared,
            transfers: &shared.program.transfers,
            rank: 0,
            memory: Memory::new(shared.program),
            scratch: Scratch::new(shared.program),
            conflicts: Conflicts::default(),
            hazards: Hazards::default(),
            slots: Slots::default(),
            ports: Ports::new(shared.program.ranks(), shared.settings.lanes),
            draft: Draft::default(),
            sides: Sides::default(),
            staged: Vec::new(),
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
        let step_of = |id: u32| self.shared.program.transfers[id as usize].step;
        for step in agenda.chunk_by(|&a, &b| step_of(a) == step_of(b)) {
            self.step(step, totals)?;
        }
        self.keep_untouched();
        if self.shared.settings.prune {
            totals.pruned += self.draft.prune();
        }
        let (slots, length) = self.slots.declare();
        let part = self.draft.finish(rank, slots);
        totals.scratch_max = totals.scratch_max.max(length);
        totals.ops += part.ops.len() as u64;
        totals.waits += part.waits.len() as u64;
        totals.regions += part.regions.len() as u64;
        Ok(part)
    }

    fn start(&mut self, rank: u32, agenda: &[u32]) {
        self.rank = rank;
        self.memory.start(&self.shared.program.contract, rank, &self.shared.classes.classes.table);
        self.scratch.start(rank, agenda);
        self.conflicts.start(self.memory.cells() + self.scratch.slots());
        self.hazards.start(self.memory.cells());
        self.slots.start();
        self.ports.start();
        self.draft.start();
    }

    fn step(&mut self, step: &[u32], totals: &mut Totals) -> Result<(), Diagnostic> {
        let message = |id: u32| self.shared.message[id as usize];
        let items = || step.chunk_by(|&a, &b| message(a) == message(b));
        self.compare(items)?;
        for &id in step {
            self.settle(id, totals);
        }
        for item in items() {
            self.item(item, totals);
        }
        totals.staged += self.staged.len() as u64;
        let mut staged = std::mem::take(&mut self.staged);
        for (id, slot) in staged.drain(..) {
            self.bring_home(id, slot);
        }
        self.staged = staged;
        self.scratch.end_step();
        self.ports.end_step();
        Ok(())
    }

    /// Tells `conflicts` all that the step reads and writes on this rank.
    fn compare<'i, I: Iterator<Item = &'i [u32]>>(
        &mut self,
        items: impl Fn() -> I,
    ) -> Result<(), Diagnostic> {
        self.conflicts.next_step();
        let transfers = self.transfers;
        let each = || {
            let numbered = items().zip(0u32..);
            let each =
                numbered.flat_map(|(item, at)| item.iter().map(move |&id| (&transfers[id as usize], at)));
            each.filter(|(transfer, _)| transfer.carries_data())
        };
        for (transfer, position) in each().filter(|(t, _)| t.source.rank == self.rank) {
            let position = if transfer.is_local() { position } else { SEND };
            self.conflicts.read(self.cells(transfer.source, transfer), position);
        }
        for (transfer, position) in each().filter(|(t, _)| t.target.rank == self.rank) {
            let pieces = (transfer.low, transfer.high);
            if !self.conflicts.write(self.cells(transfer.target, transfer), pieces, position) {
                return Err(self.ragged(transfer));
            }
        }
        Ok(())
    }

    /// Brings what a transfer reads into one store, if it lies in two: a message has as many regions at both ends.
    fn settle(&mut self, id: u32, totals: &mut Totals) {
        let transfer = &self.transfers[id as usize];
        if transfer.carries_data() && self.may_stray(transfer.source) {
            self.settle_place(transfer.source, transfer, totals);
        }
        if reduces(transfer) && self.may_stray(transfer.target) {
            self.settle_place(transfer.target, transfer, totals);
        }
    }

    fn settle_place(&mut self, place: Place, transfer: &Transfer, totals: &mut Totals) {
        let mut strays = std::mem::take(&mut self.strays);
        self.memory.strays(place, transfer.low, transfer.high, &mut strays);
        self.sides.clear();
        let op = self.draft.next_op();
        for &(low, high) in &strays {
            self.sides.source.push(self.memory.region(place, low, high));
            self.write_home(place, low, high, op);
        }
        if !strays.is_empty() {
            self.add_local(Action::Copy, self.origin(transfer));
            totals.settled += 1;
        }
        self.strays = strays;
    }

    /// One message, or one local transfer.
    fn item(&mut self, item: &[u32], totals: &mut Totals) {
        let first = &self.transfers[item[0] as usize];
        self.sides.clear();
        match (first.is_local(), first.source.rank == self.rank) {
            (true, _) => self.local(item[0]),
            (false, true) => self.send(item, totals),
            (false, false) => self.receive(item),
        }
    }

    fn local(&mut self, id: u32) {
        let transfer = &self.transfers[id as usize];
        let to_itself = transfer.kind == Kind::Move && transfer.source == transfer.target;
        if to_itself || !transfer.carries_data() {
            return;
        }
        let op = self.draft.next_op();
        let source = self.read(transfer.source, transfer, op);
        self.sides.source.push(source);
        self.write(id, op);
        let action = match transfer.kind {
            Kind::Move => Action::Copy,
            kind => Action::Reduce { left: kind == Kind::ReduceLeft },
        };
        self.add_local(action, self.origin(transfer));
    }

    fn send(&mut self, item: &[u32], totals: &mut Totals) {
        let first = &self.transfers[item[0] as usize];
        let op = self.draft.next_op();
        let peer = first.target.rank;
        let (channel, lane) = self.ports.next(Way::Out, peer, &mut self.draft);
        let mut writer = None;
        if first.kind == Kind::Signal {
            self.hazards.waits.extend(self.ports.signals());
        } else {
            for &id in item {
                let transfer = &self.transfers[id as usize];
                let last = self.last_writer(transfer);
                writer = Some(if writer.is_none_or(|writer| writer == last) { last } else { NONE });
                let source = self.read(transfer.source, transfer, op);
                self.sides.source.push(source);
            }
        }
        let follows = |&writer: &u32| {
            writer != NONE && self.shared.settings.fuse && self.draft.receives(writer, &self.sides.source)
        };
        let along = writer.filter(follows).unwrap_or(NONE);
        let action = Action::Send { peer, channel };
        let from = self.origin(first);
        let follows = self.draft.add(lane, action, &self.sides, &mut self.hazards.waits, along, from);
        totals.messages += 1;
        totals.along += follows as u64;
    }

    fn receive(&mut self, item: &[u32]) {
        let first = &self.transfers[item[0] as usize];
        let op = self.draft.next_op();
        let peer = first.source.rank;
        let (channel, lane) = self.ports.next(Way::In, peer, &mut self.draft);
        let action = match first.kind {
            Kind::Reduce | Kind::ReduceLeft => {
                Action::RecvReduce { peer, channel, left: first.kind == Kind::ReduceLeft }
            }
            _ => Action::Recv { peer, channel },
        };
        if first.kind == Kind::Signal {
            self.ports.signal(lane, op);
        } else {
            for &id in item {
                self.write(id, op);
            }
        }
        let from = self.origin(first);
        self.draft.add(lane, action, &self.sides, &mut self.hazards.waits, NONE, from);
    }

    /// The operation that wrote all that a transfer reads, or [`NONE`].
    fn last_writer(&self, transfer: &Transfer) -> u32 {
        let place = transfer.source;
        if self.shared.program.is_scratch(place.buffer) {
            return match self.scratch.now(self.scratch.index(place)) {
                NONE => NONE,
                slot => self.hazards.writer(self.memory.cells() + slot as usize),
            };
        }
        let mut cells = self.memory.cells_of(place, transfer.low, transfer.high);
        let first = cells.next().map_or(NONE, |cell| self.hazards.writer(cell));
        if cells.all(|cell| self.hazards.writer(cell) == first) { first } else { NONE }
    }

    /// Operation `op` reads what a transfer has at `place`.
    fn read(&mut self, place: Place, transfer: &Transfer, op: u32) -> Region {
        if self.shared.program.is_scratch(place.buffer) {
            let index = self.scratch.index(place);
            if self.scratch.now(index) == NONE {
                let slot = self.take_slot(transfer, transfer.step);
                self.scratch.hold(index, slot, false);
            }
            return self.read_slot(transfer, self.scratch.now(index), op);
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
        let transfer = &self.transfers[id as usize];
        let place = transfer.target;
        let cells = self.cells(place, transfer);
        if self.shared.program.is_scratch(place.buffer) {
            return self.write_scratch(transfer, cells, op);
        }
        if !self.conflicts.is_staged(cells.clone()) {
            if reduces(transfer) {
                self.sides.operand.push(self.memory.region(place, transfer.low, transfer.high));
            }
            return self.write_home(place, transfer.low, transfer.high, op);
        }
        // The first to come combines what lies at home with what arrives; the others go on with that.
        let gathered = *self.conflicts.slot(cells.start);
        let slot = if gathered == NONE { self.take_slot(transfer, transfer.step) } else { gathered };
        if reduces(transfer) {
            let operand = match gathered {
                NONE => self.read(place, transfer, op),
                slot => self.slot_region(transfer, slot),
            };
            self.sides.operand.push(operand);
        }
        if gathered == NONE {
            *self.conflicts.slot(cells.start) = slot;
            self.staged.push((id, slot));
        }
        self.write_slot(transfer, slot, op);
    }

    /// A write of a whole slot takes a new one; what the step still reads stays in the old one until it ends.
    fn write_scratch(&mut self, transfer: &Transfer, cell: Range<usize>, op: u32) {
        let index = self.scratch.index(transfer.target);
        let staged = self.conflicts.is_staged(cell.clone());
        let gathered = *self.conflicts.slot(cell.start);
        let now = if gathered == NONE { self.scratch.now(index) } else { gathered };
        if reduces(transfer) && now != NONE && (gathered != NONE || !staged) {
            self.sides.operand.push(self.slot_region(transfer, now));
            return self.write_slot(transfer, now, op);
        }
        let until = self.scratch.until(index, transfer.step, !reduces(transfer));
        let new = self.take_slot(transfer, until);
        if reduces(transfer) {
            let operand = self.read_slot(transfer, if now == NONE { new } else { now }, op);
            self.sides.operand.push(operand);
        }
        *self.conflicts.slot(cell.start) = new;
        self.scratch.hold(index, new, staged);
        self.write_slot(transfer, new, op);
    }

    fn write_home(&mut self, place: Place, low: u32, high: u32, op: u32) {
        let cells = self.memory.cells_of(place, low, high);
        for cell in cells.clone() {
            self.hazards.write(cell, op);
        }
        self.sides.target.push(self.memory.home(place, low, high));
        self.memory.write(cells);
    }

    fn write_slot(&mut self, transfer: &Transfer, slot: u32, op: u32) {
        self.hazards.write(self.memory.cells() + slot as usize, op);
        self.sides.target.push(self.slot_region(transfer, slot));
    }

    fn read_slot(&mut self, transfer: &Transfer, slot: u32, op: u32) -> Region {
        self.hazards.read(self.memory.cells() + slot as usize, op);
        self.slot_region(transfer, slot)
    }

    /// Copies what was staged to where it belongs.
    fn bring_home(&mut self, id: u32, slot: u32) {
        let transfer = &self.transfers[id as usize];
        self.sides.clear();
        let op = self.draft.next_op();
        let source = self.read_slot(transfer, slot, op);
        self.sides.source.push(source);
        self.write_home(transfer.target, transfer.low, transfer.high, op);
        self.add_local(Action::Copy, self.origin(transfer));
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
        let lane = self.ports.local(&mut self.draft);
        self.draft.add(lane, action, &self.sides, &mut self.hazards.waits, NONE, from);
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
    fn cells(&self, place: Place, transfer: &Transfer) -> Range<usize> {
        if self.shared.program.is_scratch(place.buffer) {
            let cell = self.memory.cells() + self.scratch.index(place);
            return cell..cell + 1;
        }
        self.memory.cells_of(place, transfer.low, transfer.high)
    }

    /// Whether a place is a block of this rank that may lie partly in `.in` and partly at home.
    fn may_stray(&self, place: Place) -> bool {
        place.rank == self.rank
            && !self.shared.program.is_scratch(place.buffer)
            && !self.memory.is_constant(place)
    }

    fn origin(&self, transfer: &Transfer) -> From {
        From { step: transfer.step, line: self.shared.lines.of(transfer.origin) }
    }

    fn ragged(&self, transfer: &Transfer) -> Diagnostic {
        let program = self.shared.program;
        let name = program.buffer_name(transfer.target.buffer);
        let cut = |piece: u32| program.cuts.0[piece as usize];
        let message = format!(
            "step {} writes {name} of rank {} in pieces that overlap in part",
            transfer.step, self.rank
        );
        let found = format!(
            "this one writes {}..{} of the block, and another one a part of that and something else",
            cut(transfer.low),
            cut(transfer.high)
        );
        Diagnostic::new(codes::CANNOT_COMPILE, program.origins.span(transfer.origin), message)
            .expected("transfers of one step that write the same pieces, or none in common")
            .found(found)
            .help("write the two in steps of their own")
    }
}

fn reduces(transfer: &Transfer) -> bool {
    matches!(transfer.kind, Kind::Reduce | Kind::ReduceLeft)
}
