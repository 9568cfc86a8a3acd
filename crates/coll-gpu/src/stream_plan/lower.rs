//! What each operation is on a stream: copies and kernels, and the moments that others wait for.

use super::arithmetic::Arithmetic;
use super::clocks::{Clocks, Moment};
use super::order::{At, Order};
use super::pieces::{List, pieces, whole};
use super::{Deed, Heading, Launch, Layout, Origin, Parcel, RankPart, Spot, StreamPart, StreamPlan};
use crate::stream_plan::staging::Staging;
use coll_exec::{Act, Extent, Fold, Memory, Operation, Outline};
use coll_kernel::Cast;
use coll_plan::OpId;

pub(super) fn lower(outlines: Vec<Outline>, layout: &Layout, order: &Order) -> StreamPlan {
    let staging: Vec<Staging> =
        outlines.iter().map(|outline| Staging::new(outline, &outlines, layout, order)).collect();
    let mut firsts = Vec::with_capacity(outlines.len());
    let mut streams = Vec::new();
    for (outline, staging) in outlines.iter().zip(&staging) {
        let device = layout.devices[outline.rank as usize];
        firsts.push(streams.len() as u32);
        streams.extend((0..staging.streams).map(|_| StreamPart { rank: outline.rank, device }));
    }
    let clocks = Clocks::new(streams, |stream| firsts.contains(&stream));
    let arithmetic = outlines[0].reducer.as_ref().map(|reducer| Arithmetic::of(reducer, outlines[0].world));
    let moments = || outlines.iter().map(|outline| vec![None; outline.ops.len()]).collect::<Vec<_>>();
    let mut lowering = Lowering {
        ready: moments(),
        read: moments(),
        done: moments(),
        outlines: &outlines,
        layout,
        order,
        staging: &staging,
        firsts: &firsts,
        arithmetic: arithmetic.as_ref(),
        clocks,
        parcels: Vec::new(),
    };
    let begins: Vec<Moment> = outlines.iter().map(|outline| lowering.prepare(outline)).collect();
    for &at in &order.ops {
        lowering.operation(at, begins[at.0 as usize]);
    }
    outlines.iter().for_each(|outline| lowering.finish(outline));
    let parcels = std::mem::take(&mut lowering.parcels);
    let (streams, events, work) = lowering.clocks.finish();
    let name = outlines[0].name.clone();
    let parts = outlines.into_iter().zip(staging).zip(firsts);
    let ranks = parts.map(|((outline, staging), first)| RankPart {
        device: layout.devices[outline.rank as usize],
        streams: first..first + staging.streams,
        scratch_bytes: staging.bytes,
        outline,
    });
    let ranks = ranks.collect();
    StreamPlan { name, ranks, streams, events, parcels, work, arithmetic }
}

struct Lowering<'a> {
    outlines: &'a [Outline],
    layout: &'a Layout,
    order: &'a Order,
    staging: &'a [Staging],
    /// The caller's stream of each rank.
    firsts: &'a [u32],
    arithmetic: Option<&'a Arithmetic>,
    clocks: Clocks,
    parcels: Vec<Parcel>,
    /// When a send's source may be read.
    ready: Vec<Vec<Option<Moment>>>,
    /// When a send's source, or the slot that took it, has been read by the receiver, or by the porter.
    read: Vec<Vec<Option<Moment>>>,
    /// When an operation is done. Of a send that is when it has been read, or a slot has taken it.
    done: Vec<Vec<Option<Moment>>>,
}

impl Lowering<'_> {
    /// Working elements on the caller's stream, and the moment after which the rank's operations begin.
    fn prepare(&mut self, outline: &Outline) -> Moment {
        let (rank, stream) = (outline.rank, self.firsts[outline.rank as usize]);
        for block in outline.prepares.iter().filter(|block| block.user.bytes > 0) {
            let arithmetic = self.arithmetic.expect("invariant: what is prepared has an operator");
            let (input, working) = (spot(rank, block.user), spot(rank, block.working));
            let count = block.working.bytes / arithmetic.working_bytes();
            let mut launch = |launch| self.clocks.push(stream, Deed::Launch(launch), Origin::Prepare);
            let input = match arithmetic.narrow() {
                None => input,
                Some(from) => {
                    let to = arithmetic.operator().dtype();
                    launch(Launch::Cast { target: working, source: input, count, from, to });
                    working
                }
            };
            if !arithmetic.operator().is_direct() {
                launch(Launch::Prepare { working, input, count });
            }
        }
        self.clocks.now(stream, Origin::Prepare)
    }

    /// The caller's stream goes on when all is done, and results are made on it.
    fn finish(&mut self, outline: &Outline) {
        let (rank, stream) = (outline.rank, self.firsts[outline.rank as usize]);
        let done = |op: OpId| self.done[rank as usize][op as usize];
        let lasts =
            outline.lanes.iter().filter(|lane| !lane.is_empty()).filter_map(|lane| done(lane.end - 1));
        let mut ends: Vec<Moment> = lasts.collect();
        if outline.slots > 0 {
            // What slots have taken must be read before the next run fills them again.
            ends.extend(self.read[rank as usize].iter().flatten());
        }
        self.clocks.after(stream, &ends, Origin::Finish);
        for block in outline.finishes.iter().filter(|block| block.user.bytes > 0) {
            let arithmetic = self.arithmetic.expect("invariant: what is finished has an operator");
            let (output, working) = (spot(rank, block.user), spot(rank, block.working));
            let count = block.working.bytes / arithmetic.working_bytes();
            let mut launch = |launch| self.clocks.push(stream, Deed::Launch(launch), Origin::Finish);
            let made = if arithmetic.narrow().is_some() { working } else { output };
            if !arithmetic.operator().is_direct() {
                launch(Launch::Finish { output: made, working, count, leaves: block.leaves });
            }
            if let Some(to) = arithmetic.narrow() {
                let from = arithmetic.operator().dtype();
                launch(Launch::Cast { target: output, source: working, count, from, to });
            }
        }
    }

    fn operation(&mut self, at: At, begin: Moment) {
        let (rank, op) = at;
        let outline = &self.outlines[rank as usize];
        let operation = &outline.ops[op as usize];
        let (stream, origin) = (self.stream(at), Origin::Op(op));
        let met = self.order.meets(at);
        let mut before = vec![begin];
        let own = self.order.own(self.outlines, at);
        before.extend(own.filter_map(|op| self.done[rank as usize][op as usize]));
        let freed = self.order.frees(at).and_then(|receive| self.order.meets(receive));
        before.extend(freed.and_then(|(rank, send)| self.read[rank as usize][send as usize]));
        if let (Act::Receive { .. }, Some((sender, send))) = (operation.act, met)
            && self.layout.is_near(rank, sender)
        {
            before.extend(self.ready[sender as usize][send as usize]);
        }
        self.clocks.after(stream, &before, origin);
        match operation.act {
            Act::Send { .. } => self.send(at, operation),
            Act::Receive { fold, .. } => {
                self.receive(at, met.expect("invariant: messages are paired"), operation, fold);
            }
            Act::Copy => self.copy(at, (rank, &operation.target), (rank, &operation.source)),
            Act::Reduce(fold) => self.combine(at, operation, (rank, &operation.source), fold),
        }
        let now = self.clocks.now(stream, origin);
        match (operation.act, met) {
            (Act::Send { .. }, Some((receiver, _))) => {
                self.ready[rank as usize][op as usize] = Some(now);
                if outline.slots > 0 {
                    self.done[rank as usize][op as usize] = Some(now);
                }
                if !self.layout.is_near(rank, receiver) {
                    let carried = self.post(at, Heading::Out, self.message(at));
                    self.is_read(at, carried);
                }
            }
            (Act::Receive { .. }, Some((sender, send))) => {
                self.done[rank as usize][op as usize] = Some(now);
                if self.layout.is_near(rank, sender) {
                    self.is_read((sender, send), now);
                }
            }
            _ => self.done[rank as usize][op as usize] = Some(now),
        }
    }

    fn is_read(&mut self, (rank, send): At, moment: Moment) {
        self.read[rank as usize][send as usize] = Some(moment);
        if self.outlines[rank as usize].slots == 0 {
            self.done[rank as usize][send as usize] = Some(moment);
        }
    }

    /// Where a send's message is read from.
    fn message(&self, (rank, op): At) -> Vec<Extent> {
        let outline = &self.outlines[rank as usize];
        let operation = &outline.ops[op as usize];
        let bytes = outline.cast.map_or(operation.bytes, |cast| message_bytes(cast, operation.bytes));
        match self.staging[rank as usize].outgoing(op) {
            Some(offset) => whole(Memory::Scratch, offset, bytes),
            None => operation.source.clone(),
        }
    }

    /// Has the porter carry a message whose bytes lie here.
    fn post(&mut self, at: At, heading: Heading, parts: Vec<Extent>) -> Moment {
        let (rank, op) = at;
        let operation = &self.outlines[rank as usize].ops[op as usize];
        let (Act::Send { link, message } | Act::Receive { link, message, .. }) = operation.act else {
            unreachable!("invariant: sends and receives are carried")
        };
        let parts: Vec<(Spot, u64)> = parts.iter().map(|part| (spot(rank, *part), part.bytes)).collect();
        let bytes = parts.iter().map(|(_, bytes)| bytes).sum();
        let step = operation.step;
        self.parcels.push(Parcel { rank, op, step, heading, link, message, parts, bytes });
        self.clocks.post(self.stream(at), Origin::Op(op))
    }

    /// Puts a message where it is read from, if that is not where its parts lie.
    fn send(&mut self, at: At, operation: &Operation) {
        let Some(staged) = self.staging[at.0 as usize].outgoing(at.1) else { return };
        match self.outlines[at.0 as usize].cast {
            None => self.copy(
                at,
                (at.0, &whole(Memory::Scratch, staged, operation.bytes)),
                (at.0, &operation.source),
            ),
            Some(cast) => {
                let mut moved = 0;
                for piece in pieces([List { rank: at.0, extents: &operation.source }]) {
                    let target = scratch(at.0, staged + message_bytes(cast, moved));
                    self.cast(at, cast, Way::Narrow, target, piece.spots[0], piece.bytes);
                    moved += piece.bytes;
                }
            }
        }
    }

    /// Takes a message from where it lies, or from where the porter puts it.
    fn receive(&mut self, at: At, send: At, operation: &Operation, fold: Option<Fold>) {
        let (rank, cast) = (at.0, self.outlines[at.0 as usize].cast);
        let staging = &self.staging[rank as usize];
        let message = cast.map_or(operation.bytes, |cast| message_bytes(cast, operation.bytes));
        let computes = fold.is_some() || cast.is_some();
        let near = || (rank, whole(Memory::Scratch, staging.incoming(at.1), message));
        let mut incoming = (send.0, self.message(send));
        if !self.layout.is_near(rank, send.0) {
            let (_, parts) = if computes { near() } else { (rank, operation.target.clone()) };
            let carried = self.post(at, Heading::In, parts.clone());
            self.clocks.after(self.stream(at), &[carried], Origin::Op(at.1));
            if !computes {
                return;
            }
            incoming = (rank, parts);
        } else if computes && !self.layout.reads(rank, send.0) {
            let near = near();
            self.copy(at, (near.0, &near.1), (incoming.0, &incoming.1));
            incoming = near;
        }
        if let Some(cast) = cast.filter(|_| message > 0) {
            let wire = Spot { rank: incoming.0, memory: Memory::Scratch, offset: incoming.1[0].offset };
            if fold.is_none() {
                let mut moved = 0;
                for piece in pieces([List { rank, extents: &operation.target }]) {
                    let source = wire.moved(message_bytes(cast, moved));
                    self.cast(at, cast, Way::Widen, piece.spots[0], source, piece.bytes);
                    moved += piece.bytes;
                }
                return;
            }
            let wide = staging.widened(at.1);
            self.cast(at, cast, Way::Widen, scratch(rank, wide), wire, operation.bytes);
            incoming = (rank, whole(Memory::Scratch, wide, operation.bytes));
        }
        match fold {
            None => self.copy(at, (rank, &operation.target), (incoming.0, &incoming.1)),
            Some(fold) => self.combine(at, operation, (incoming.0, &incoming.1), fold),
        }
    }

    fn copy(&mut self, at: At, target: (u32, &[Extent]), source: (u32, &[Extent])) {
        let stream = self.stream(at);
        let lists = [target, source].map(|(rank, extents)| List { rank, extents });
        for piece in pieces(lists) {
            let [target, source] = piece.spots;
            // What is already there, as in a call in place, is not touched.
            if target != source {
                let deed = Deed::Copy { target, source, bytes: piece.bytes };
                self.clocks.push(stream, deed, Origin::Op(at.1));
            }
        }
    }

    fn combine(&mut self, at: At, operation: &Operation, incoming: (u32, &[Extent]), fold: Fold) {
        let stream = self.stream(at);
        let element_bytes = self.outlines[at.0 as usize].element_bytes;
        let lists = [(at.0, &operation.target[..]), (at.0, &operation.operand), incoming];
        for piece in pieces(lists.map(|(rank, extents)| List { rank, extents })) {
            let [target, operand, incoming] = piece.spots;
            let sources = match fold {
                Fold::OperandFirst => vec![operand, incoming],
                Fold::IncomingFirst => vec![incoming, operand],
            };
            let launch = Launch::Combine { target, sources, count: piece.bytes / element_bytes };
            self.clocks.push(stream, Deed::Launch(launch), Origin::Op(at.1));
        }
    }

    /// `memory_bytes` of elements, as those of a message or back.
    fn cast(&mut self, at: At, cast: Cast, way: Way, target: Spot, source: Spot, memory_bytes: u64) {
        let (memory, wire) = cast.parts();
        let (from, to) = match way {
            Way::Narrow => (memory, wire),
            Way::Widen => (wire, memory),
        };
        let count = memory_bytes / memory.size_bytes();
        let launch = Launch::Cast { target, source, count, from, to };
        self.clocks.push(self.stream(at), Deed::Launch(launch), Origin::Op(at.1));
    }

    fn stream(&self, (rank, op): At) -> u32 {
        self.firsts[rank as usize] + self.staging[rank as usize].stream(op)
    }
}

/// From memory to message, or back.
#[derive(Clone, Copy)]
enum Way {
    Narrow,
    Widen,
}

/// Bytes of a message that so many bytes of memory make.
pub(super) fn message_bytes(cast: Cast, memory_bytes: u64) -> u64 {
    let (memory, wire) = cast.parts();
    memory_bytes / memory.size_bytes() * wire.size_bytes()
}

fn spot(rank: u32, extent: Extent) -> Spot {
    Spot { rank, memory: extent.memory, offset: extent.offset }
}

fn scratch(rank: u32, offset: u64) -> Spot {
    Spot { rank, memory: Memory::Scratch, offset }
}
