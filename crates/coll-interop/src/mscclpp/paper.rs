//! Thread blocks run on paper, in turns, and what each does is woven. The head of the parent module says what becomes of puts,
//! gets, signals and packets.

use super::model::{Act, Channel, ExecutionPlan, Op, Side};
use super::order::{Heard, Order, Touch};
use crate::attempt::Stop;
use crate::codes::{ACCESS, CHUNKS, RING, UNMATCHED, UNSUPPORTED};
use crate::layout::Layout;
use crate::weave::{CellId, OpRef, Operand, Snag, Told, Weaver};
use coll_base::{Diagnostic, SourceMap, Span};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A thread block, as far as it has come.
struct State {
    rank: u32,
    id: u32,
    lane: u32,
    at: usize,
    last: Option<OpRef>,
    /// What the next action waits for.
    pending: Vec<OpRef>,
}

/// What goes from one rank to another on behalf of a thread block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Stream {
    /// What it puts, and its signals.
    Data,
    /// Signals that say nothing of data.
    Relaxed,
    /// Questions for what it gets.
    Ask,
    /// Answers, which come back.
    Answer,
}

/// From, to, the thread block on whose behalf.
type StreamOf = (u32, u32, u32, Stream);

/// A signal: after what, where, and what its sender had heard of.
type Signal = (OpRef, Span, Heard);

/// What releases a semaphore: after what, and what was heard of by then.
type Release = (Vec<OpRef>, Heard);

/// All thread blocks, run on paper.
pub(super) struct Paper<'a> {
    plan: &'a ExecutionPlan,
    layout: &'a Layout,
    pub(super) weaver: Weaver<'a>,
    parts: u32,
    map: &'a SourceMap,
    blocks: Vec<State>,
    /// The operations of each thread block, pipelines turn by turn.
    ops: &'a [Vec<Op>],
    /// The channel of each stream, and the lane of the rank that does nothing else.
    streams: HashMap<StreamOf, (u32, u32)>,
    /// Streams from one rank to another.
    counts: HashMap<(u32, u32), u32>,
    /// Signals that were sent and not waited for: by sender and its channel.
    signals: BTreeMap<(u32, Channel), VecDeque<Signal>>,
    /// Which thread block signals on a channel, and which waits: by who signals.
    users: HashMap<(u32, Channel, bool), u32>,
    /// Who wrote packets into a cell of a rank.
    packets: HashMap<(u32, CellId), OpRef>,
    /// For each semaphore of a rank, what those who acquire it wait for.
    semaphores: HashMap<(u32, u32), VecDeque<Release>>,
    /// Thread blocks that have come to a barrier.
    arrived: HashMap<(u32, u32), Vec<usize>>,
    /// What the executor does not order and the plan would.
    pub(super) order: Order,
}

impl<'a> Paper<'a> {
    pub(super) fn new(
        plan: &'a ExecutionPlan,
        layout: &'a Layout,
        mut weaver: Weaver<'a>,
        (ops, parts): (&'a [Vec<Op>], u32),
        map: &'a SourceMap,
    ) -> Paper<'a> {
        let (mut blocks, mut semaphores) = (Vec::new(), HashMap::new());
        for (rank, gpu) in (0..).zip(&plan.gpus) {
            for id in 0..gpu.blocks.len() as u32 {
                let lane = weaver.lane(rank);
                blocks.push(State { rank, id, lane, at: 0, last: None, pending: Vec::new() });
            }
            for (number, &free) in (0..).zip(&gpu.semaphores) {
                semaphores.insert((rank, number), (0..free).map(|_| Default::default()).collect());
            }
        }
        let order = Order::new(blocks.iter().map(|block: &State| (block.rank, block.id)).collect(), ops);
        Paper {
            plan,
            layout,
            weaver,
            parts,
            map,
            blocks,
            ops,
            streams: HashMap::new(),
            counts: HashMap::new(),
            signals: BTreeMap::new(),
            users: HashMap::new(),
            packets: HashMap::new(),
            semaphores,
            arrived: HashMap::new(),
            order,
        }
    }

    /// Lets thread blocks go on in turns until all are through.
    pub(super) fn run(&mut self) -> Result<(), Stop> {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for block in 0..self.blocks.len() {
                while let Some(op) = self.head(block) {
                    if !self.take(block, op)? {
                        break;
                    }
                    moved = true;
                }
            }
        }
        if (0..self.blocks.len()).any(|block| self.head(block).is_some()) {
            return Err(told(self.ring()));
        }
        self.order.end();
        for (&(from, channel), rest) in &self.signals {
            if let Some(&(_, span, _)) = rest.front() {
                let to = channel.peer;
                let message = format!("rank {to} never waits for a signal of rank {from}");
                let diagnostic = Diagnostic::new(UNMATCHED, span, message)
                    .expected("as many waits as signals on each channel")
                    .found(format!("{} signals too many", rest.len()))
                    .help("add the wait, or take the signal away");
                return Err(told(diagnostic));
            }
        }
        Ok(())
    }

    fn head(&self, block: usize) -> Option<&'a Op> {
        self.ops[block].get(self.blocks[block].at)
    }

    /// Takes the operation at a thread block's head, if it can be taken now.
    fn take(&mut self, block: usize, op: &'a Op) -> Result<bool, Stop> {
        let rank = self.blocks[block].rank;
        match op.act {
            Act::Wait { .. } => {
                // As its sender names it.
                let from = |channel: &Channel| (channel.peer, Channel { peer: rank, ..*channel });
                for channel in &op.channels {
                    self.uses(block, op, from(channel), false)?;
                }
                let is_there = |channel: &Channel| {
                    self.signals.get(&from(channel)).is_some_and(|queue| !queue.is_empty())
                };
                if !op.channels.iter().all(is_there) {
                    return Ok(false);
                }
                for channel in &op.channels {
                    let signal = self.signals.get_mut(&from(channel)).and_then(VecDeque::pop_front);
                    if let Some((signal, _, heard)) = signal {
                        self.order.hear(block, &heard);
                        self.blocks[block].pending.push(signal);
                    }
                }
            }
            Act::Signal { relaxed } => {
                for &channel in &op.channels {
                    self.uses(block, op, (rank, channel), true)?;
                    self.signal(block, op, channel, relaxed)?;
                }
            }
            Act::Flush => op.channels.iter().for_each(|&channel| self.order.flush(block, channel)),
            Act::Acquire => {
                let is_free =
                    |number: &u32| self.semaphores.get(&(rank, *number)).is_some_and(|s| !s.is_empty());
                if !op.numbers.iter().all(is_free) {
                    return Ok(false);
                }
                for &number in &op.numbers {
                    let after = self.semaphores.get_mut(&(rank, number)).and_then(VecDeque::pop_front);
                    if let Some((after, heard)) = after {
                        self.order.hear(block, &heard);
                        self.blocks[block].pending.extend(after);
                    }
                }
            }
            Act::Release => {
                let done = (self.done(block), self.order.tell(block));
                for &number in &op.numbers {
                    self.semaphores.entry((rank, number)).or_default().push_back(done.clone());
                }
            }
            Act::Nop => self.order.nop(block),
            Act::Barrier => return Ok(self.arrive(block, op)),
            Act::Move | Act::Reduce => {
                let Some(waits) = self.packets_there(rank, op) else { return Ok(false) };
                let touches = self.touches(rank, op);
                self.order.moves((block, self.blocks[block].at), op, &touches);
                self.blocks[block].pending.extend(waits);
                self.moves(block, op)?;
            }
        }
        self.blocks[block].at += 1;
        Ok(true)
    }

    /// What a thread block has done so far.
    fn done(&self, block: usize) -> Vec<OpRef> {
        let state = &self.blocks[block];
        state.last.iter().chain(&state.pending).copied().collect()
    }

    /// Each end of a channel has one thread block: else it would be left to chance whose signal is waited for.
    fn uses(
        &mut self,
        block: usize,
        op: &Op,
        (from, channel): (u32, Channel),
        signals: bool,
    ) -> Result<(), Stop> {
        let id = self.blocks[block].id;
        let known = *self.users.entry((from, channel, signals)).or_insert(id);
        if known == id {
            return Ok(());
        }
        let does = if signals { "signal" } else { "wait" };
        let message = format!("thread blocks {known} and {id} both {does} on one channel");
        let diagnostic = Diagnostic::new(UNSUPPORTED, op.span, message)
            .expected("one thread block at each end of a channel")
            .found("two, so that it is left to chance which signal meets which wait")
            .help("give each a channel of its own");
        Err(told(diagnostic))
    }

    /// A barrier lets all go on once the last has come.
    fn arrive(&mut self, block: usize, op: &Op) -> bool {
        let rank = self.blocks[block].rank;
        let key = (rank, op.numbers[0]);
        let arrived = self.arrived.entry(key).or_default();
        if !arrived.contains(&block) {
            arrived.push(block);
        }
        if (arrived.len() as u32) < op.meets {
            return false;
        }
        let all = self.arrived.remove(&key).unwrap_or_default();
        self.order.meet(&all);
        let done: Vec<OpRef> = all.iter().flat_map(|&block| self.done(block)).collect();
        for &other in &all {
            self.blocks[other].pending = done.clone();
            self.blocks[other].at += 1;
        }
        true
    }

    /// The cells of a side, those that the thread block's part covers, and of these the turn's tile. Thread blocks of a group each
    /// have their share of every chunk.
    fn cells(&self, rank: u32, op: &Op, side: &Side) -> Vec<CellId> {
        let on = side.peer.map_or(rank, |(peer, _)| peer);
        let first = self.layout.cell(on, side.buffer, side.index * self.parts);
        let ((part, of), (turn, turns)) = (op.part, op.tile);
        let share = self.parts / of;
        let starts = (0..side.size).map(|chunk| first + chunk * self.parts + part * share);
        let tile = (side.size * share / turns) as usize;
        starts.flat_map(|start| start..start + share).skip(turn as usize * tile).take(tile).collect()
    }

    /// What an operation waits for whose sources are packets; none if some have not come.
    fn packets_there(&self, rank: u32, op: &Op) -> Option<Vec<OpRef>> {
        let mut waits = Vec::new();
        for side in op.sources.iter().filter(|side| side.packets) {
            for cell in self.cells(rank, op, side) {
                waits.push(*self.packets.get(&(rank, cell))?);
            }
        }
        waits.sort_unstable();
        waits.dedup();
        Some(waits)
    }

    /// All that an operation reads and writes, here and elsewhere.
    fn touches(&self, rank: u32, op: &Op) -> Vec<Touch> {
        let mut touches = Vec::new();
        for (sides, writes) in [(&op.sources, false), (&op.targets, true)] {
            for side in sides {
                let on = side.peer.map_or(rank, |(peer, _)| peer);
                let touch = |(place, cell)| Touch {
                    rank: on,
                    cell,
                    writes,
                    packets: side.packets,
                    side: (on, side.buffer, side.index, side.size),
                    share: op.part,
                    place,
                };
                touches.extend((0..).zip(self.cells(rank, op, side)).map(touch));
            }
        }
        touches
    }

    /// The channel of a stream, and the lane of the rank that it comes to (of answers, that it goes out from).
    fn stream(&mut self, from: u32, to: u32, id: u32, stream: Stream) -> (u32, u32) {
        if let Some(&known) = self.streams.get(&(from, to, id, stream)) {
            return known;
        }
        let lane = match stream {
            Stream::Answer => self.stream(to, from, id, Stream::Ask).1,
            _ => self.weaver.lane(to),
        };
        let count = self.counts.entry((from, to)).or_default();
        let channel = *count;
        *count += 1;
        self.streams.insert((from, to, id, stream), (channel, lane));
        (channel, lane)
    }

    fn signal(&mut self, block: usize, op: &Op, over: Channel, relaxed: bool) -> Result<(), Stop> {
        let peer = over.peer;
        let (rank, id) = (self.blocks[block].rank, self.blocks[block].id);
        let stream = if relaxed { Stream::Relaxed } else { Stream::Data };
        let (channel, lane) = self.stream(rank, peer, id, stream);
        let arrival = self.carry(block, op, (peer, channel, lane), &[], &[])?;
        let heard = self.order.signal(block, over);
        self.signals.entry((rank, over)).or_default().push_back((arrival, op.span, heard));
        Ok(())
    }

    /// Sends cells from the thread block's lane to a lane of a peer; gives the receive.
    fn carry(
        &mut self,
        block: usize,
        op: &Op,
        (peer, channel, lane): (u32, u32, u32),
        from: &[CellId],
        to: &[CellId],
    ) -> Result<OpRef, Stop> {
        let line = self.map.line_of(op.span);
        let state = &mut self.blocks[block];
        let rank = state.rank;
        let waits = std::mem::take(&mut state.pending);
        let here = Told { rank, lane: state.lane, waits: &waits, line };
        let there = Told { rank: peer, lane, waits: &[], line };
        let sent = self.weaver.send(here, (peer, channel), from, None);
        state.last = Some(sent.map_err(|snag| stop(op, &snag))?);
        self.weaver.receive(there, (rank, channel), to, None).map_err(|snag| stop(op, &snag))
    }

    /// Puts cells into a peer's memory.
    fn put(&mut self, block: usize, op: &Op, from: &[CellId], side: &Side) -> Result<(), Stop> {
        let (rank, id) = (self.blocks[block].rank, self.blocks[block].id);
        let Some((peer, _)) = side.peer else { return Ok(()) };
        let to = self.cells(rank, op, side);
        let (channel, lane) = self.stream(rank, peer, id, Stream::Data);
        let stored = self.carry(block, op, (peer, channel, lane), from, &to)?;
        if side.packets {
            self.packets.extend(to.into_iter().map(|cell| ((peer, cell), stored)));
        }
        Ok(())
    }

    /// Gets a peer's cells, reduced with the operand's if there is one.
    fn get(
        &mut self,
        block: usize,
        op: &Op,
        side: &Side,
        to: &[CellId],
        operand: Option<&[CellId]>,
    ) -> Result<(), Stop> {
        let (rank, id) = (self.blocks[block].rank, self.blocks[block].id);
        let Some((peer, _)) = side.peer else { return Ok(()) };
        let from = self.cells(rank, op, side);
        let (ask, lane) = self.stream(rank, peer, id, Stream::Ask);
        let (answer, _) = self.stream(peer, rank, id, Stream::Answer);
        self.carry(block, op, (peer, ask, lane), &[], &[])?;
        let line = self.map.line_of(op.span);
        let there = Told { rank: peer, lane, waits: &[], line };
        self.weaver.send(there, (rank, answer), &from, None).map_err(|snag| stop(op, &snag))?;
        let state = &mut self.blocks[block];
        let here = Told { rank, lane: state.lane, waits: &[], line };
        let operand = operand.map(|cells| Operand { cells, left: false });
        let got = self.weaver.receive(here, (peer, answer), to, operand);
        state.last = Some(got.map_err(|snag| stop(op, &snag))?);
        Ok(())
    }

    fn local(
        &mut self,
        block: usize,
        op: &Op,
        from: &[CellId],
        to: &[CellId],
        operand: Option<&[CellId]>,
    ) -> Result<(), Stop> {
        let line = self.map.line_of(op.span);
        let state = &mut self.blocks[block];
        let waits = std::mem::take(&mut state.pending);
        let here = Told { rank: state.rank, lane: state.lane, waits: &waits, line };
        let operand = operand.map(|cells| Operand { cells, left: false });
        let done = self.weaver.local(here, from, to, operand);
        state.last = Some(done.map_err(|snag| stop(op, &snag))?);
        Ok(())
    }

    /// Moves and reductions: the first target takes the result, the others take it from there.
    fn moves(&mut self, block: usize, op: &'a Op) -> Result<(), Stop> {
        let rank = self.blocks[block].rank;
        let (first, rest) = (&op.sources[0], &op.sources[1..]);
        let mut targets = &op.targets[..];
        let mut held = self.cells(rank, op, first);
        let is_moved_at_once = rest.is_empty() && first.peer.is_none();
        if !is_moved_at_once {
            let target = &targets[0];
            if target.peer.is_some() {
                let diagnostic = Diagnostic::new(
                    UNSUPPORTED,
                    op.span,
                    "what comes of several places goes to another rank at once",
                )
                .expected("a place of the rank itself first among the targets")
                .found("a place of another rank")
                .help("reduce into the rank's own memory, and put from there");
                return Err(told(diagnostic));
            }
            targets = &targets[1..];
            let into = self.cells(rank, op, target);
            let mut operand: Option<Vec<CellId>> = None;
            if first.peer.is_some() {
                self.get(block, op, first, &into, None)?;
                operand = Some(into.clone());
            }
            for side in rest {
                let with = operand.as_deref().unwrap_or(&held).to_vec();
                match side.peer {
                    Some(_) => self.get(block, op, side, &into, Some(&with))?,
                    None => {
                        let from = self.cells(rank, op, side);
                        self.local(block, op, &from, &into, Some(&with))?;
                    }
                }
                operand = Some(into.clone());
            }
            held = into;
        }
        for side in targets {
            match side.peer {
                Some(_) => self.put(block, op, &held, side)?,
                None => {
                    let to = self.cells(rank, op, side);
                    self.local(block, op, &held, &to, None)?;
                    if let Some(last) = self.blocks[block].last.filter(|_| side.packets) {
                        self.packets.extend(to.into_iter().map(|cell| ((rank, cell), last)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Those that stand still, and why.
    fn ring(&self) -> Diagnostic {
        let stuck: Vec<usize> = (0..self.blocks.len()).filter(|&block| self.head(block).is_some()).collect();
        let name = |block: usize, op: &Op| {
            let State { rank, id, .. } = self.blocks[block];
            format!("operation {} of thread block {id} of rank {rank}", op.number)
        };
        let why = |op: &Op| match op.act {
            Act::Wait { .. } => "waits for a signal".to_string(),
            Act::Acquire => "waits for a semaphore".to_string(),
            Act::Barrier => format!("waits until {} thread blocks have come to its barrier", op.meets),
            _ => "waits for packets".to_string(),
        };
        const TOLD_MAX: usize = 6;
        let heads: Vec<(usize, &Op)> =
            stuck.iter().filter_map(|&block| Some((block, self.head(block)?))).collect();
        let span = heads.first().map_or(self.plan.span, |(_, op)| op.span);
        let mut told = Diagnostic::new(RING, span, format!("{} thread blocks wait for ever", stuck.len()))
            .expected("an order in which all operations can be taken")
            .found("none");
        for &(block, op) in heads.iter().take(TOLD_MAX) {
            told = told.note(format!("{} {}", name(block, op), why(op)));
        }
        told.help("let one of them signal before it waits")
    }
}

fn told(diagnostic: Diagnostic) -> Stop {
    Stop::Told(Box::new(diagnostic))
}

fn stop(op: &Op, snag: &Snag) -> Stop {
    let diagnostic = match snag {
        Snag::OtherPiece(_) => return Stop::OtherPiece,
        Snag::WritesGiven(_) => {
            Diagnostic::new(ACCESS, op.span, "an operation writes the input of an out-of-place call")
                .expected("`o` or `s`, as `inplace` is false")
                .found("`i`")
                .help("write to `o` or `s`, or let the plan be in place")
        }
        Snag::ReadsNothing(_) => {
            Diagnostic::new(ACCESS, op.span, "an operation reads input that the rank does not have")
                .expected("chunks that are given to this rank, or were written before")
                .found("chunks in which nothing is")
                .help("put something there first")
        }
        Snag::Unmatched => {
            Diagnostic::new(CHUNKS, op.span, "the sides of an operation are of unlike lengths")
        }
    };
    told(diagnostic)
}
