//! Few operations on short messages, run straight through: a message goes out whole or not at all, comes in whole or
//! not at all, and the operations that are left are the bits of one word. As soon as something happens that does not
//! fit this (half a message, a transport that does not show what has come), the general loop takes over where this one
//! stands.

use crate::code::{Code, Kind, Side};
use crate::frame::{FrameFault, Header};
use crate::memory::Segment;
use crate::run::Engine;
use crate::state::State;
use crate::{Fault, Interest, Link, Transport};
use coll_plan::{OpId, Run};

/// As many operations as a word has bits.
const OPS_MAX: usize = 64;

/// Bytes of the longest message: about what two cores need to hand over the first byte they need for as many.
pub(crate) const BYTES_MAX: u64 = 4 << 10;

/// A rank's operations in the order in which they are tried: sends, receives, then what is local.
pub(crate) struct Short {
    ops: Vec<ShortOp>,
}

/// One operation: at most one segment on each side.
struct ShortOp {
    id: OpId,
    kind: Kind,
    /// Operations that must be done before, as bits.
    needs: u64,
    link: Link,
    message: u32,
    step: u32,
    source: Segment,
    operand: Segment,
    target: Segment,
}

/// How far it came.
pub(crate) enum ShortTurn {
    Done,
    /// Nothing can go on before one of these, as bits, can.
    Blocked(u64),
    /// The general loop has to take over. This operation has sent so many bytes of its message.
    HandOver(Option<(OpId, usize)>),
}

/// How far an operation came.
enum Step {
    Whole,
    Nothing,
    HandOver(usize),
}

impl Short {
    /// Nothing if the plan is not of this kind.
    pub(crate) fn new(code: &Code) -> Option<Short> {
        let fits = |op: &crate::code::BoundOp| {
            op.bytes <= BYTES_MAX && [op.source, op.operand, op.target].into_iter().all(|run| run.len() <= 1)
        };
        if code.ops.is_empty() || code.ops.len() > OPS_MAX || !code.ops.iter().all(fits) {
            return None;
        }
        let mut order: Vec<OpId> = (0..code.ops.len() as OpId).collect();
        order.sort_by_key(|&id| match code.ops[id as usize].kind {
            Kind::Send { .. } => 0,
            Kind::Recv { .. } => 1,
            Kind::Copy | Kind::Reduce(_) => 2,
        });
        let mut bits = vec![0u64; order.len()];
        order.iter().enumerate().for_each(|(at, &id)| bits[id as usize] = 1 << at);
        let ops = order.iter().map(|&id| ShortOp::new(code, id, &bits)).collect();
        Some(Short { ops })
    }

    /// Every operation.
    #[inline]
    pub(crate) fn all(&self) -> u64 {
        u64::MAX >> (64 - self.ops.len())
    }

    /// Puts the state of a run where the general loop would have it, with these operations left.
    #[cold]
    pub(crate) fn hand_over(&self, code: &Code, state: &mut State, todo: u64) {
        let sent = state.sent_messages;
        state.begin(code, state.options);
        for at in (0..self.ops.len()).filter(|at| todo >> at & 1 == 0) {
            let id = self.ops[at].id;
            match self.ops[at].kind {
                Kind::Send { link, .. } => state.links[link as usize].sent += 1,
                Kind::Recv { link, .. } => state.links[link as usize].received += 1,
                Kind::Copy | Kind::Reduce(_) => {}
            }
            let lane = &mut state.lanes[code.lane_of[id as usize] as usize];
            lane.at = lane.at.max(id + 1);
            for index in code.dependents.run(id) {
                state.missing[code.dependents.at(index) as usize] -= 1;
            }
        }
        state.sent_messages = sent;
        state.remaining = todo.count_ones() as usize;
        (0..code.lanes.len() as u32).for_each(|lane| state.push(lane));
    }

    /// Notes what blocked operations wait for.
    pub(crate) fn note_interests(&self, code: &Code, state: &mut State, mut blocked: u64) {
        state.interests.clear();
        state.waiting.clear();
        while blocked != 0 {
            let op = &self.ops[blocked.trailing_zeros() as usize];
            blocked &= blocked - 1;
            let readable = matches!(op.kind, Kind::Recv { .. });
            let (link, writable) = (op.link, !readable);
            state.interests.push(Interest { link, readable, writable, returned: false });
            let lane = code.lane_of[op.id as usize];
            state.lanes[lane as usize].at = op.id;
            state.waiting.push(lane);
        }
    }
}

impl ShortOp {
    fn new(code: &Code, id: OpId, bits: &[u64]) -> ShortOp {
        let op = &code.ops[id as usize];
        let nowhere = Segment { area: crate::memory::Area::Scratch, offset: 0, len: 0 };
        let segment = |run: Run| code.segments(run).first().copied();
        let target = segment(op.target).unwrap_or(nowhere);
        let (link, message, before) = match op.kind {
            Kind::Send { link, message } => (Some(link), message, &code.links[link as usize].sends),
            Kind::Recv { link, message, .. } => (Some(link), message, &code.links[link as usize].receives),
            Kind::Copy | Kind::Reduce(_) => (None, 0, &crate::code::Messages::default()),
        };
        let lane = code.lanes[code.lane_of[id as usize] as usize];
        let bit = |id: OpId| bits[id as usize];
        let mut needs = if id > lane.start { bit(id - 1) } else { 0 };
        needs |= message.checked_sub(1).map_or(0, |before_it| bit(before.ops[before_it as usize]));
        needs |= op.leader.map_or(0, bit);
        let waits_for = |other: &OpId| code.dependents.run(*other).any(|at| code.dependents.at(at) == id);
        needs |= (0..code.ops.len() as OpId).filter(waits_for).map(bit).fold(0, |all, bit| all | bit);
        ShortOp {
            id,
            kind: op.kind,
            needs,
            link: link.map_or(Link { peer: 0, channel: 0 }, |link| code.links[link as usize].link),
            message,
            step: op.step,
            source: segment(op.source).unwrap_or(nowhere),
            operand: segment(op.operand).unwrap_or(target),
            target,
        }
    }
}

impl<T: Transport> Engine<'_, '_, '_, T> {
    /// Goes on in the general loop, where one operation may have sent the start of its message.
    #[cold]
    pub(crate) fn take_over(&mut self, short: &Short, todo: u64, sent: Option<(OpId, usize)>) {
        short.hand_over(self.code, self.state, todo);
        if let Some((op, bytes)) = sent {
            let bound = &self.code.ops[op as usize];
            if let Kind::Send { link, message } = bound.kind {
                self.note_sent(
                    self.code.lane_of[op as usize],
                    bound,
                    link,
                    Header::size_bytes(message),
                    bytes,
                );
            }
        }
    }

    /// Runs what can be run. `todo` are the operations that are left.
    pub(crate) fn drive_short(&mut self, short: &Short, todo: &mut u64) -> Result<ShortTurn, (OpId, Fault)> {
        loop {
            let (before, mut blocked) = (*todo, 0);
            let mut left = before;
            while left != 0 {
                let at = left.trailing_zeros() as usize;
                left &= left - 1;
                let op = &short.ops[at];
                if op.needs & *todo != 0 {
                    continue;
                }
                match self.short_step(op).map_err(|fault| (op.id, fault))? {
                    Step::Whole => *todo &= !(1 << at),
                    Step::Nothing => blocked |= 1 << at,
                    Step::HandOver(sent) => {
                        let sent = matches!(op.kind, Kind::Send { .. }).then_some((op.id, sent));
                        return Ok(ShortTurn::HandOver(sent));
                    }
                }
            }
            if *todo == 0 {
                return Ok(ShortTurn::Done);
            }
            if *todo == before {
                return Ok(if blocked == 0 {
                    ShortTurn::HandOver(None)
                } else {
                    ShortTurn::Blocked(blocked)
                });
            }
        }
    }

    #[inline]
    fn short_step(&mut self, op: &ShortOp) -> Result<Step, Fault> {
        match op.kind {
            Kind::Send { .. } => return self.short_send(op),
            Kind::Recv { reduces, .. } => return self.short_receive(op, reduces),
            Kind::Copy => self.memory.copy(op.target, op.source, false),
            Kind::Reduce(_) if op.target.len == 0 => {}
            Kind::Reduce(side) => self.reduce_piece(op.target, op.operand, op.source, side),
        }
        Ok(Step::Whole)
    }

    #[inline]
    fn short_send(&mut self, op: &ShortOp) -> Result<Step, Fault> {
        if self.transport.checks(op.link) {
            return Ok(Step::HandOver(0));
        }
        let header = self.short_header(op, op.source.len).to_bytes();
        let header = &header[..Header::size_bytes(op.message)];
        let taken = self.transport.try_send(op.link, &[header, self.memory.bytes(op.source)])?;
        Ok(match taken {
            0 => Step::Nothing,
            taken if taken >= header.len() + op.source.len => {
                self.state.sent_messages += 1;
                Step::Whole
            }
            taken => Step::HandOver(taken),
        })
    }

    #[inline]
    fn short_receive(&mut self, op: &ShortOp, reduces: Option<Side>) -> Result<Step, Fault> {
        if self.transport.checks(op.link) {
            return Ok(Step::HandOver(0));
        }
        let due = self.short_header(op, op.target.len);
        let Some(come) = self.transport.peek(op.link)? else { return Ok(Step::HandOver(0)) };
        let header_bytes = Header::size_bytes(op.message);
        if come.is_empty() {
            return Ok(Step::Nothing);
        }
        let Some((header, payload)) = come.split_at_checked(header_bytes) else {
            return Ok(Step::HandOver(0));
        };
        // Before the payload is looked at: a peer that makes another call may send less.
        check(&due, header, op.link.peer)?;
        let Some(payload) = payload.get(..op.target.len) else { return Ok(Step::HandOver(0)) };
        match reduces {
            None => self.memory.bytes_mut(op.target).copy_from_slice(payload),
            Some(_) if payload.is_empty() => {}
            Some(side) => {
                let reducer = self.reducer.expect("invariant: a plan that reduces is bound with an operator");
                let left = side == Side::Left;
                if op.operand == op.target {
                    reducer.combine_into(self.memory.bytes_mut(op.target), None, payload, left);
                } else {
                    let (target, operand) = self.memory.pair(op.target, op.operand);
                    reducer.combine_into(target, Some(operand), payload, left);
                }
            }
        }
        self.transport.consume(op.link, header_bytes + op.target.len);
        Ok(Step::Whole)
    }

    #[inline]
    fn short_header(&self, op: &ShortOp, payload_bytes: usize) -> Header {
        Header {
            prepared: self.prepared,
            lent: false,
            checked: false,
            generation: self.state.options.generation,
            operation: self.state.options.operation,
            message: op.message,
            step: op.step,
            payload_bytes: payload_bytes as u64,
            fingerprint: self.state.options.fingerprint,
        }
    }
}

/// Checks a copy of a header: the sender may share the memory that it lies in.
#[inline]
fn check(due: &Header, arrived: &[u8], peer: u32) -> Result<(), Fault> {
    let fault = match (arrived.first_chunk::<{ crate::FIRST_HEADER_BYTES }>(), arrived.first_chunk()) {
        (Some(&first), _) => due.check(&first),
        (None, Some(&later)) => {
            let later: [u8; crate::HEADER_BYTES] = later;
            due.check(&later)
        }
        (None, None) => Ok(()),
    };
    fault.map_err(|fault| match fault {
        FrameFault::Call { ours, theirs } => Fault::Mismatch { peer, ours, theirs },
        fault => Fault::Frame { peer, fault },
    })
}
