//! What thread blocks know of each other, as MSCCL++'s executor has it. All threads of a block share each operation that moves
//! data, and go on to the next one without waiting for one another: only a `nop` or a `barrier` lets them. So
//!
//! - an operation is over when the next `nop` or `barrier` of its block is: a *span* of a block is what stands between two;
//! - a signal or a release tells of the spans before its own, and of nothing in it;
//! - what a wait or an acquire has heard holds from the next span on: one thread waited, and the others did not.
//!
//! The plan that is woven takes operations of a thread block one after the other. What it would order and the executor does
//! not is found here, while thread blocks run on paper: a `nop` is missing. Packets say themselves that they have come,
//! and operations on packets give each thread the same bytes of the same chunks.
//!
//! What goes over a port channel is done by its proxy, later: it is an *agent* of its own, which knows what its thread block knew when
//! it asked, and takes what it is asked for in order. So the channel's own signals tell of what went over it before, and nothing
//! else does but a `flush`, after which the thread block knows what the agent has done. Until then its source is still read.
//!
//! A packet orders what one thread did to make it before what another does with it: the same bytes of the operations on the way,
//! from packet to packet. So each packet keeps which operations came before it, at its place in their chunks.

use super::model::{Channel, Op};
use crate::codes::NO_NOP;
use crate::layout::Buffer;
use crate::weave::CellId;
use coll_base::{Diagnostic, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How many missing ones are told.
const TOLD_MAX: usize = 6;

/// For each thread block of all ranks, and behind these for each proxy, how many of its spans are over.
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
    /// The side that it is of, the thread block's part of it, and which of that part's cells it is.
    pub(super) side: Chunks,
    pub(super) share: (u32, u32),
    pub(super) place: u32,
}

/// An operation that touched a cell.
#[derive(Clone, Copy)]
struct Earlier {
    block: usize,
    at: usize,
    /// Its number in the file.
    number: u32,
    /// Who does it: the thread block, or a proxy. Then its span.
    agent: usize,
    strict: u32,
    plan: u32,
    span: Span,
    /// Threads share it packet by packet.
    by_packets: bool,
    touch: Touch,
}

/// An operation by its thread block and its place there.
type OpOf = (usize, usize);

/// What packets in a cell tell who reads them, and which operations were over before, each at one place of its sides.
struct Sealed {
    heard: Heard,
    before: BTreeSet<(OpOf, u32)>,
}

/// The watch over all memory.
pub(super) struct Order {
    strict: View,
    plan: View,
    /// The proxy that each thread block has for a channel.
    agents: BTreeMap<(usize, Channel), usize>,
    memory: HashMap<(u32, CellId), Vec<Earlier>>,
    packets: HashMap<(u32, CellId), Sealed>,
    found: BTreeSet<(OpOf, OpOf)>,
    told: Vec<Diagnostic>,
    /// Rank and number of each block, for messages.
    names: Vec<(u32, u32)>,
}

impl Order {
    pub(super) fn new(names: Vec<(u32, u32)>, ops: &[Vec<Op>]) -> Order {
        let blocks = names.len();
        let mut agents = BTreeMap::new();
        for (block, ops) in ops.iter().enumerate() {
            for &channel in ops.iter().flat_map(|op| &op.channels).filter(|channel| channel.is_port) {
                let next = blocks + agents.len();
                agents.entry((block, channel)).or_insert(next);
            }
        }
        let all = blocks + agents.len();
        let (strict, plan) = (View::new(all), View::new(all));
        let (memory, packets) = (HashMap::new(), HashMap::new());
        Order { strict, plan, agents, memory, packets, found: BTreeSet::new(), told: Vec::new(), names }
    }

    /// All thread blocks have come to their end. A rank's call is over when its own have, and by then what others wrote into its
    /// input and output has to be.
    pub(super) fn end(&mut self) {
        let blocks = self.names.len();
        let all = |view: &View, rank: u32| {
            let mut clock = vec![0; blocks + self.agents.len()];
            let own = (0..blocks).filter(|&block| self.names[block].0 == rank);
            own.for_each(|block| merge(&mut clock, &view.tell(block)));
            clock
        };
        let mut known: BTreeMap<u32, (Clock, Clock)> = BTreeMap::new();
        let mut late: Vec<Earlier> = Vec::new();
        for (&(rank, _), touched) in &self.memory {
            let (strict, plan) =
                known.entry(rank).or_insert_with(|| (all(&self.strict, rank), all(&self.plan, rank)));
            let written = touched.iter().filter(|one| {
                let is_users = one.touch.side.1 != Buffer::Scratch;
                is_users && one.touch.writes && self.names[one.block].0 != rank
            });
            late.extend(written.filter(|one| plan[one.block] > one.plan && strict[one.agent] <= one.strict));
        }
        late.sort_unstable_by_key(|one| (one.block, one.at, one.touch.side.0));
        for one in late {
            let own = (one.block, one.at);
            if self.found.insert((own, own)) && self.told.len() < TOLD_MAX {
                let told = ends_early(&self.names, &one);
                self.told.push(told);
            }
        }
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

    /// A signal. That of a port channel comes after all that went over the channel.
    pub(super) fn signal(&mut self, block: usize, channel: Channel) -> Heard {
        let mut heard = self.tell(block);
        if let Some(agent) = self.asks(block, Some(channel)) {
            heard.strict = self.strict.tell(agent);
        }
        heard
    }

    /// A flush: what has gone over the channel is over.
    pub(super) fn flush(&mut self, block: usize, channel: Channel) {
        if let Some(&agent) = self.agents.get(&(block, channel)) {
            let done = self.strict.tell(agent);
            self.strict.hear(block, &done);
        }
        self.plan.turn(block);
    }

    /// The proxy of a channel, which by now knows what the thread block knows; none of a channel without.
    fn asks(&mut self, block: usize, channel: Option<Channel>) -> Option<usize> {
        let agent = *self.agents.get(&(block, channel?))?;
        let known = self.strict.tell(block);
        merge(&mut self.strict.known[agent], &known);
        Some(agent)
    }

    /// A release, or a signal of the threads.
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

    /// An operation that moves data. The packets that it reads are there.
    pub(super) fn moves(&mut self, (block, at): OpOf, op: &Op, touches: &[Touch]) {
        self.plan.turn(block);
        let agent = self.asks(block, op.proxy()).unwrap_or(block);
        let (mut strict, mut plan) = (self.strict.known[agent].clone(), self.plan.known[block].clone());
        let mut chains: BTreeMap<u32, BTreeSet<(OpOf, u32)>> = BTreeMap::new();
        for touch in touches.iter().filter(|touch| touch.packets && !touch.writes) {
            let Some(Sealed { heard, before }) = self.packets.get(&(touch.rank, touch.cell)) else {
                continue;
            };
            merge(&mut strict, &heard.strict);
            merge(&mut plan, &heard.plan);
            self.strict.hear(block, &heard.strict);
            self.plan.hear(block, &heard.plan);
            chains.entry(touch.place).or_default().extend(before);
        }
        if agent != block {
            merge(&mut self.strict.known[agent], &strict);
        }
        let by_packets = op.sources.iter().chain(&op.targets).any(|side| side.packets);
        let (own, own_plan) = (self.strict.span(agent), self.plan.span(block));
        let now = |&touch: &Touch| Earlier {
            block,
            at,
            number: op.number,
            agent,
            strict: own,
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
                let is_over = strict[earlier.agent] > earlier.strict;
                let own = ((earlier.block, earlier.at), earlier.touch.place);
                let is_chained = chains.get(&later.touch.place).is_some_and(|before| before.contains(&own));
                is_in_plan && !is_over && !is_chained && !goes_by_packets(earlier, &later)
            });
            let apart: Vec<Earlier> = apart.copied().collect();
            before.push(later);
            for earlier in apart {
                if self.found.insert(((earlier.block, earlier.at), (block, at))) && self.told.len() < TOLD_MAX
                {
                    let told = told(&self.names, &earlier, &later);
                    self.told.push(told);
                }
            }
        }
        self.plan.turn(block);
        for touch in touches.iter().filter(|touch| touch.packets && touch.writes) {
            let heard = Heard { strict: self.strict.known[agent].clone(), plan: self.plan.tell(block) };
            let mut before = chains.get(&touch.place).cloned().unwrap_or_default();
            before.insert(((block, at), touch.place));
            self.packets.insert((touch.rank, touch.cell), Sealed { heard, before });
        }
        if agent != block {
            // It takes the next one after this.
            self.strict.turn(agent);
        }
    }
}

/// Packets are waited for one by one; and a thread that has the same packets in two operations takes them in order.
fn goes_by_packets(earlier: &Earlier, later: &Earlier) -> bool {
    let reads_packets = earlier.touch.writes && earlier.touch.packets && later.touch.packets;
    let is_one_thread = earlier.block == later.block
        && earlier.by_packets
        && later.by_packets
        && (earlier.touch.side, earlier.touch.share) == (later.touch.side, later.touch.share);
    reads_packets && !later.touch.writes || is_one_thread
}

/// An operation in words.
fn name(names: &[(u32, u32)], one: &Earlier) -> String {
    let (rank, id) = names[one.block];
    format!("operation {} of thread block {id} of rank {rank}", one.number)
}

/// Chunks in words.
fn words((rank, buffer, index, size): Chunks) -> String {
    let chunks = match size {
        1 => format!("chunk {index}"),
        _ => format!("chunks {index} to {}", index + size - 1),
    };
    format!("{chunks} of buffer `{}` of rank {rank}", buffer.word())
}

fn ends_early(names: &[(u32, u32)], one: &Earlier) -> Diagnostic {
    let rank = one.touch.side.0;
    let message =
        format!("rank {rank} may end before {} is over, for no `nop` is before the signal", name(names, one));
    Diagnostic::new(NO_NOP, one.span, message)
        .expected("a `nop` between what a signal tells of and the signal: threads of a block do not wait for each other else")
        .found(format!("none, and it writes {}", words(one.touch.side)))
        .help("put a `nop` before the signal that tells of it")
}

fn told(names: &[(u32, u32)], earlier: &Earlier, later: &Earlier) -> Diagnostic {
    let name = |one: &Earlier| name(names, one);
    let does = |one: &Earlier| if one.touch.writes { "writes" } else { "reads" };
    let is_by_proxy = earlier.agent != earlier.block;
    let message = format!(
        "{} {} what {} {}, and no `{}` makes sure that this is over",
        name(later),
        does(later),
        name(earlier),
        does(earlier),
        if is_by_proxy { "flush" } else { "nop" },
    );
    if is_by_proxy {
        return Diagnostic::new(NO_NOP, later.span, message)
            .also(earlier.span, "the first of them, which the port channel's proxy does")
            .expected("a `flush` of the channel and a `nop` after it, or an answer to a signal that went over the channel")
            .found(format!("neither, and both use {}", words(later.touch.side)))
            .help("put a `flush` of the channel and a `nop` between them, or take `pwsf` for the first");
    }
    let help = match earlier.block == later.block {
        true => "put a `nop` between them",
        false => {
            "put a `nop` between the first and the signal that tells of it, and one between the wait for that and the second"
        }
    };
    Diagnostic::new(NO_NOP, later.span, message)
        .also(earlier.span, "the first of them")
        .expected("a `nop` or `barrier`: threads of a block do not wait for each other else")
        .found(format!("none, and both use {}", words(later.touch.side)))
        .help(help)
}
