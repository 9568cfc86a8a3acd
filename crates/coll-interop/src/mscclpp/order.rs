//! What thread blocks know of each other, as MSCCL++'s executor has it. All threads of a block share each operation that moves
//! data, and go on to the next one without waiting for one another: only a `nop` or a `barrier` lets them. So
//!
//! - an operation is over when the next `nop` or `barrier` of its block is: a *span* of a block is what stands between two;
//! - a signal or a release tells of the spans before its own, and of nothing in it;
//! - what a wait or an acquire has heard holds from the next span on: one thread waited, and the others did not.
//!
//! The plan that is woven takes operations of a thread block one after the other. What it would order and the executor does
//! not is found here, while thread blocks run on paper: a `nop` is missing. Packets say themselves that they have come,
//! and operations on packets give each thread the same bytes of the same chunks. What goes over a port channel is done by its
//! proxy, in order with the channel's signals; that its source is free again is not asked for. A `pipeline` is looked at once: what is
//! missing between its end and its next turn is not found.

use super::model::Op;
use crate::codes::NO_NOP;
use crate::layout::Buffer;
use crate::weave::CellId;
use coll_base::{Diagnostic, Span};
use std::collections::{BTreeSet, HashMap};

/// How many missing ones are told.
const TOLD_MAX: usize = 6;

/// For each thread block of all ranks, how many of its spans are over.
pub(super) type Clock = Vec<u32>;

/// What a signal or release tells of: as the executor has it, and as a plan has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    strict: Clock,
    plan: Clock,
}

/// One view of what each thread block knows.
struct View {
    /// Of each block, what it knows in its present span; of itself, its span.
    known: Vec<Clock>,
    /// What it has heard since, which holds from the next span on.
    heard: Vec<Clock>,
}

impl View {
    fn new(blocks: usize) -> View {
        let mut known = vec![vec![0; blocks]; blocks];
        known.iter_mut().enumerate().for_each(|(block, clock)| clock[block] = 1);
        View { known, heard: vec![vec![0; blocks]; blocks] }
    }

    fn span(&self, block: usize) -> u32 {
        self.known[block][block]
    }

    /// The block's next span begins.
    fn turn(&mut self, block: usize) {
        merge(&mut self.known[block], &self.heard[block]);
        self.known[block][block] += 1;
    }

    /// What the block can tell now. The thread that tells is the one that waited.
    fn tell(&self, block: usize) -> Clock {
        let mut clock = self.known[block].clone();
        merge(&mut clock, &self.heard[block]);
        clock
    }

    fn hear(&mut self, block: usize, clock: &Clock) {
        merge(&mut self.heard[block], clock);
    }

    /// All have come to a barrier.
    fn meet(&mut self, blocks: &[usize]) {
        for &block in blocks {
            self.turn(block);
        }
        let mut all = vec![0; self.known.len()];
        blocks.iter().for_each(|&block| merge(&mut all, &self.known[block]));
        blocks.iter().for_each(|&block| merge(&mut self.known[block], &all));
    }
}

fn merge(into: &mut Clock, other: &Clock) {
    for (entry, &known) in into.iter_mut().zip(other) {
        *entry = known.max(*entry);
    }
}

/// Chunks as an operation names them.
type Chunks = (u32, Buffer, u32, u32);

/// One side of an operation, on one cell.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub(super) rank: u32,
    pub(super) cell: CellId,
    pub(super) writes: bool,
    /// They are packets.
    pub(super) packets: bool,
    /// The side that it is of.
    pub(super) side: Chunks,
}

/// An operation that touched a cell.
#[derive(Clone, Copy)]
struct Earlier {
    block: usize,
    at: usize,
    strict: u32,
    plan: u32,
    span: Span,
    /// Threads share it packet by packet.
    by_packets: bool,
    touch: Touch,
}

/// An operation by its thread block and its place there.
type OpOf = (usize, usize);

/// The watch over all memory.
pub(super) struct Order {
    strict: View,
    plan: View,
    memory: HashMap<(u32, CellId), Vec<Earlier>>,
    found: BTreeSet<(OpOf, OpOf)>,
    told: Vec<Diagnostic>,
    /// Rank and number of each block, for messages.
    names: Vec<(u32, u32)>,
}

impl Order {
    pub(super) fn new(names: Vec<(u32, u32)>) -> Order {
        let blocks = names.len();
        let (strict, plan) = (View::new(blocks), View::new(blocks));
        Order { strict, plan, memory: HashMap::new(), found: BTreeSet::new(), told: Vec::new(), names }
    }

    /// Pairs of operations that no `nop` keeps apart, and words for the first few.
    pub(super) fn missing(self) -> (u64, Vec<Diagnostic>) {
        (self.found.len() as u64, self.told)
    }

    /// A `nop`.
    pub(super) fn nop(&mut self, block: usize) {
        self.strict.turn(block);
        self.plan.turn(block);
    }

    /// All have come to a barrier.
    pub(super) fn meet(&mut self, blocks: &[usize]) {
        self.strict.meet(blocks);
        self.plan.meet(blocks);
    }

    /// A signal or release.
    pub(super) fn tell(&mut self, block: usize) -> Heard {
        self.plan.turn(block);
        Heard { strict: self.strict.tell(block), plan: self.plan.tell(block) }
    }

    /// A wait or acquire.
    pub(super) fn hear(&mut self, block: usize, heard: &Heard) {
        self.strict.hear(block, &heard.strict);
        self.plan.hear(block, &heard.plan);
        self.plan.turn(block);
    }

    /// An operation that moves data. `packets` tells of those whose packets it reads.
    pub(super) fn moves(&mut self, (block, at): OpOf, op: &Op, touches: &[Touch], packets: &[Heard]) {
        self.plan.turn(block);
        let (mut strict, mut plan) = (self.strict.known[block].clone(), self.plan.known[block].clone());
        for heard in packets {
            merge(&mut strict, &heard.strict);
            merge(&mut plan, &heard.plan);
            self.strict.hear(block, &heard.strict);
            self.plan.hear(block, &heard.plan);
        }
        let by_packets = op.sources.iter().chain(&op.targets).any(|side| side.packets);
        let (own, own_plan) = (self.strict.span(block), self.plan.span(block));
        // What a proxy does, the channel's next signal comes after.
        let strict_span = own - u32::from(op.by_proxy);
        let now = |&touch: &Touch| Earlier {
            block,
            at,
            strict: strict_span,
            plan: own_plan,
            span: op.span,
            by_packets,
            touch,
        };
        for later in touches.iter().map(now) {
            let before = self.memory.entry((later.touch.rank, later.touch.cell)).or_default();
            let conflicts = before.iter().filter(|earlier| {
                let is_same = (earlier.block, earlier.at) == (block, at);
                !is_same && (earlier.touch.writes || later.touch.writes)
            });
            let apart = conflicts.filter(|earlier| {
                let is_in_plan = earlier.block == block || plan[earlier.block] > earlier.plan;
                let is_over = strict[earlier.block] > earlier.strict;
                is_in_plan && !is_over && !goes_by_packets(earlier, &later)
            });
            let apart: Vec<Earlier> = apart.copied().collect();
            before.push(later);
            for earlier in apart {
                if self.found.insert(((earlier.block, earlier.at), (block, at))) && self.told.len() < TOLD_MAX {
                    let told = told(&self.names, &earlier, &later);
                    self.told.push(told);
                }
            }
        }
        self.plan.turn(block);
    }

    /// What packets that an operation writes now tell those who read them.
    pub(super) fn sealed(&self, block: usize) -> Heard {
        Heard { strict: self.strict.known[block].clone(), plan: self.plan.tell(block) }
    }
}

/// Packets are waited for one by one; and a thread that has the same packets in two operations takes them in order.
fn goes_by_packets(earlier: &Earlier, later: &Earlier) -> bool {
    let reads_packets = earlier.touch.writes && earlier.touch.packets && later.touch.packets;
    let is_one_thread = earlier.block == later.block
        && earlier.by_packets
        && later.by_packets
        && earlier.touch.side == later.touch.side;
    reads_packets && !later.touch.writes || is_one_thread
}

fn told(names: &[(u32, u32)], earlier: &Earlier, later: &Earlier) -> Diagnostic {
    let name = |one: &Earlier| {
        let (rank, id) = names[one.block];
        format!("operation {} of thread block {id} of rank {rank}", one.at)
    };
    let does = |one: &Earlier| if one.touch.writes { "writes" } else { "reads" };
    let (rank, buffer, index, size) = later.touch.side;
    let message = format!(
        "{} {} what {} {}, and no `nop` makes sure that this is over",
        name(later),
        does(later),
        name(earlier),
        does(earlier)
    );
    let help = match earlier.block == later.block {
        true => "put a `nop` between them",
        false => {
            "put a `nop` between the first and the signal that tells of it, and one between the wait for that and the second"
        }
    };
    let chunks = match size {
        1 => format!("chunk {index}"),
        _ => format!("chunks {index} to {}", index + size - 1),
    };
    Diagnostic::new(NO_NOP, later.span, message)
        .also(earlier.span, "the first of them")
        .expected("a `nop` or `barrier`: threads of a block do not wait for each other else")
        .found(format!("none, and both use {chunks} of buffer `{}` of rank {rank}", buffer.word()))
        .help(help)
}
