//! A machine that runs a plan in a random order, as a hostile network and scheduler would, and a machine that runs a
//! program as its documentation says. Values are symbols: a reduction makes a new one of its two operands in order,
//! so that equal symbols mean equal operands, order and grouping.
//!
//! An operation of a plan starts and ends at different times. What it writes is poison in between, and what it reads
//! must be the same at both times: a missing wait shows even where the result would come out right.

use coll_contract::BufferRole;
use coll_ir::{Kind, Place, Program};
use coll_plan::{Action, Op, Plan, RankPlan, Region, Store};
use std::collections::BTreeMap;

pub(crate) type Value = u64;

const NOTHING: Value = 0;
const POISON: Value = 1;

/// What a block holds at the start.
fn leaf(rank: u32, buffer: u32, block: u32, piece: u32) -> Value {
    mix(mix(mix(mix(2, rank as u64), buffer as u64), block as u64), piece as u64)
}

fn mix(a: u64, b: u64) -> u64 {
    let mut x = a.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) ^ b.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (x ^ (x >> 29)) | 2
}

/// Numbers from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = mix(self.0, 7);
        (self.0 >> 8) % end.max(1)
    }
}

/// Where a value lies at the end: rank, buffer, block, piece.
pub(crate) type Result = BTreeMap<(u32, u32, u32, u32), Value>;

/// What the ensured blocks hold after a program, run as its documentation says.
pub(crate) fn run_program(program: &Program) -> Result {
    let pieces = program.cuts.pieces();
    let mut held: BTreeMap<(Place, u32), Value> = BTreeMap::new();
    for rank in 0..program.ranks() {
        for (buffer, decl) in (0u32..).zip(&program.contract.buffers) {
            for block in (0..decl.blocks).filter(|&block| program.contract.is_given(rank, buffer, block)) {
                for piece in 0..pieces {
                    held.insert((Place { rank, buffer, block }, piece), leaf(rank, buffer, block, piece));
                }
            }
        }
    }
    let mut start = 0;
    while start < program.transfers.len() {
        let step = program.transfers[start].step;
        let transfers = program.transfers_of(step);
        let before = held.clone();
        for transfer in transfers.iter().filter(|t| t.carries_data()) {
            for piece in transfer.low..transfer.high {
                let arriving = before.get(&(transfer.source, piece)).copied().unwrap_or(NOTHING);
                let target = held.entry((transfer.target, piece)).or_insert(NOTHING);
                *target = match transfer.kind {
                    Kind::Move => arriving,
                    Kind::ReduceLeft => mix(arriving, *target),
                    _ => mix(*target, arriving),
                };
            }
        }
        start += transfers.len();
    }
    ensured(program, |place, piece| held.get(&(place, piece)).copied().unwrap_or(NOTHING))
}

fn ensured(program: &Program, value: impl Fn(Place, u32) -> Value) -> Result {
    let places =
        program.contract.ensures.iter().map(|e| Place { rank: e.rank, buffer: e.buffer, block: e.block });
    let each = places.flat_map(|place| (0..program.cuts.pieces()).map(move |piece| (place, piece)));
    each.map(|(place, piece)| ((place.rank, place.buffer, place.block, piece), value(place, piece))).collect()
}

/// One rank of a plan while it runs.
struct Rank<'p> {
    part: &'p RankPlan,
    memory: BTreeMap<(u32, u32, u32, u32), Value>,
    /// For each lane, the operation that is next or runs.
    at: Vec<u32>,
    /// For each operation: 0 not started, 1 started, 2 done.
    state: Vec<u8>,
    /// What an operation read when it started.
    read: BTreeMap<u32, (Vec<Value>, Vec<Value>)>,
}

/// Runs a plan; `in_place` makes the three stores of a block one, `buffered` lets a send end before it is received.
/// `uncut` tells for each piece which one of the program it is a part of: it starts with the same symbol.
pub(crate) fn run_plan(
    plan: &Plan,
    uncut: &[u32],
    (in_place, buffered): (bool, bool),
    random: &mut Random,
) -> Result {
    let mut world = World { plan, uncut, in_place, buffered, ranks: Vec::new(), links: BTreeMap::new() };
    for part in &plan.ranks {
        world.add_rank(part);
    }
    let mut idle = 0;
    while world.ranks.iter().any(|rank| rank.state.iter().any(|&state| state != 2)) {
        let rank = random.below(world.ranks.len() as u64) as usize;
        let lanes = world.ranks[rank].at.len() as u64;
        let moved = lanes > 0 && world.advance(rank, random.below(lanes) as usize);
        idle = if moved { 0 } else { idle + 1 };
        assert!(idle < 20_000, "nothing goes on; the plan is stuck:\n{}", coll_plan::to_text(plan));
    }
    let mut result = Result::new();
    for ensure in &plan.contract.ensures {
        for piece in 0..plan.pieces() {
            let tag = if in_place { 0 } else { 1 };
            let key = (ensure.buffer * 4 + tag, ensure.block, piece, 0);
            let value = world.ranks[ensure.rank as usize].memory.get(&key).copied().unwrap_or(NOTHING);
            result.insert((ensure.rank, ensure.buffer, ensure.block, piece), value);
        }
    }
    result
}

struct World<'p> {
    plan: &'p Plan,
    uncut: &'p [u32],
    in_place: bool,
    buffered: bool,
    ranks: Vec<Rank<'p>>,
    /// For sender, receiver, channel: messages under way; their values are there once the send has ended.
    links: BTreeMap<(u32, u32, u32), Link>,
}

#[derive(Default)]
struct Link {
    /// Sends that have started and not been received; `Some` holds the values.
    sent: std::collections::VecDeque<Option<Vec<Value>>>,
    /// Receives that have started and not ended: 0 or 1.
    receiving: u32,
}

impl<'p> World<'p> {
    fn add_rank(&mut self, part: &'p RankPlan) {
        let contract = &self.plan.contract;
        let mut memory = BTreeMap::new();
        for (buffer, decl) in (0u32..).zip(&contract.buffers) {
            for block in (0..decl.blocks).filter(|&block| contract.is_given(part.rank, buffer, block)) {
                for piece in 0..self.plan.pieces() {
                    let region =
                        Region { store: Store::In(buffer), block, low: piece, high: piece + 1, class: 0 };
                    let key = self.keys(&region).next().unwrap();
                    assert!(decl.role != BufferRole::Out);
                    memory.insert(key, leaf(part.rank, buffer, block, self.uncut[piece as usize]));
                }
            }
        }
        self.ranks.push(Rank {
            part,
            memory,
            at: part.lanes.iter().map(|lane| lane.start).collect(),
            state: vec![0; part.ops.len()],
            read: BTreeMap::new(),
        });
    }

    /// Memory cells of a region. Pieces of a slot count from its first byte.
    fn keys(&self, region: &Region) -> impl Iterator<Item = (u32, u32, u32, u32)> + use<> {
        let (row, base) = match region.store {
            Store::In(buffer) => (buffer * 4, 0),
            Store::Out(buffer) => (buffer * 4 + !self.in_place as u32, 0),
            Store::Tmp(buffer) => (buffer * 4 + 2 * !self.in_place as u32, 0),
            Store::Slot => (u32::MAX, region.low),
        };
        let block = region.block;
        (region.low..region.high).map(move |piece| (row, block, piece - base, 0))
    }

    /// Starts or ends the next operation of a lane, if it can.
    fn advance(&mut self, rank: usize, lane: usize) -> bool {
        let part = self.ranks[rank].part;
        let id = self.ranks[rank].at[lane];
        if id == part.lanes[lane].end {
            return false;
        }
        let op = &part.ops[id as usize];
        match self.ranks[rank].state[id as usize] {
            0 => self.start(rank, id, op),
            _ => self.end(rank, lane, id, op),
        }
    }

    fn start(&mut self, rank: usize, id: u32, op: &Op) -> bool {
        let part = self.ranks[rank].part;
        let waits = part.waits(op);
        let state = &self.ranks[rank].state;
        if waits.iter().any(|wait| state[wait.op as usize] < if wait.along { 1 } else { 2 }) {
            return false;
        }
        let along = waits.iter().any(|wait| wait.along);
        let source = if along { Vec::new() } else { self.values(rank, part.regions(op.source)) };
        let operand = self.values(rank, part.regions(op.operand));
        assert!(!source.iter().chain(&operand).any(|&value| value == POISON), "reads what is being written");
        if let Some((peer, channel)) = op.action.sends_to() {
            self.links.entry((rank as u32, peer, channel)).or_default().sent.push_back(None);
        }
        if let Some((peer, channel)) = op.action.receives_from() {
            self.links.entry((peer, rank as u32, channel)).or_default().receiving = 1;
        }
        self.ranks[rank].read.insert(id, (source, operand));
        if !self.is_idle(part, op) {
            self.store(rank, part.regions(op.target), std::iter::repeat(POISON));
        }
        self.ranks[rank].state[id as usize] = 1;
        true
    }

    /// A copy of memory onto itself, as there are where a buffer is used in place.
    fn is_idle(&self, part: &RankPlan, op: &Op) -> bool {
        let keys = |run| part.regions(run).iter().flat_map(|region| self.keys(region)).collect::<Vec<_>>();
        op.action == Action::Copy && keys(op.source) == keys(op.target)
    }

    fn end(&mut self, rank: usize, lane: usize, id: u32, op: &Op) -> bool {
        let part = self.ranks[rank].part;
        let waits = part.waits(op);
        if waits.iter().any(|wait| self.ranks[rank].state[wait.op as usize] < 2) {
            return false;
        }
        let mut arrived = Vec::new();
        if let Some((peer, channel)) = op.action.receives_from() {
            let link = self.links.get_mut(&(peer, rank as u32, channel)).unwrap();
            let Some(Some(_)) = link.sent.front() else { return false };
            arrived = link.sent.pop_front().flatten().unwrap();
            link.receiving = 0;
        }
        let now = self.values(rank, part.regions(op.source));
        if let Some((peer, channel)) = op.action.sends_to() {
            let buffered = self.buffered;
            let link = self.links.get_mut(&(rank as u32, peer, channel)).unwrap();
            if !buffered && link.receiving == 0 {
                return false;
            }
            *link.sent.back_mut().unwrap() = Some(now.clone());
        }
        let (source, operand) = self.ranks[rank].read.remove(&id).unwrap();
        let along = waits.iter().any(|wait| wait.along);
        assert!(along || source == now, "op {id} of rank {rank}: its source changed while it ran");
        let combined: Vec<Value> = match op.action {
            Action::Send { .. } => Vec::new(),
            Action::Recv { .. } => arrived,
            Action::Copy => source,
            Action::RecvReduce { left, .. } => combine(operand, arrived, left),
            Action::Reduce { left } => combine(operand, source, left),
        };
        let expected: u32 = part.regions(op.target).iter().map(|region| region.high - region.low).sum();
        assert_eq!(combined.len(), expected as usize, "op {id} of rank {rank}");
        self.store(rank, part.regions(op.target), combined.into_iter());
        self.ranks[rank].state[id as usize] = 2;
        self.ranks[rank].at[lane] += 1;
        true
    }

    fn values(&self, rank: usize, regions: &[Region]) -> Vec<Value> {
        let keys = regions.iter().flat_map(|region| self.keys(region));
        keys.map(|key| self.ranks[rank].memory.get(&key).copied().unwrap_or(NOTHING)).collect()
    }

    fn store(&mut self, rank: usize, regions: &[Region], mut values: impl Iterator<Item = Value>) {
        for region in regions {
            for key in self.keys(region) {
                self.ranks[rank].memory.insert(key, values.next().unwrap());
            }
        }
    }
}

fn combine(operand: Vec<Value>, arriving: Vec<Value>, left: bool) -> Vec<Value> {
    let pairs = operand.into_iter().zip(arriving);
    pairs
        .map(|(operand, arriving)| if left { mix(arriving, operand) } else { mix(operand, arriving) })
        .collect()
}
