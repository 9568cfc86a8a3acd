//! No two operations of a rank touch one memory, one of them writing, without a sure order between them; nor do two
//! messages of one connection leave or arrive in an order left to chance.
//!
//! Memory is looked at as it is in place: `.in`, `.out` and `.tmp` of a block are one, and a slot is one memory for all
//! its shapes. What conflicts out of place, where `.in` lies apart, conflicts in place too, with one exception: a copy
//! of a given block onto itself does nothing in place. Ranks that have such copies are looked at both ways. In the order of running it is enough to compare an access with the last write and the reads since: what
//! lies before those is ordered through them.

use super::codes::{MESSAGES_UNORDERED, NOT_PROVABLE, RACE};
use super::order::Order;
use super::pairing::Messages;
use super::whole::{NONE, OpKey, TOLD_MAX, Whole, buffer_of};
use coll_base::Diagnostic;
use coll_plan::{Action, Op, RankPlan, Region, Store};

/// Finds accesses and messages whose order is left to chance.
pub(super) fn check(whole: &Whole, messages: &Messages, order: &[OpKey]) -> Vec<Diagnostic> {
    let Some(known) = Order::new(whole, messages, order) else { return Vec::new() };
    let by_rank = by_rank(whole, order);
    let links = link_pairs(whole, messages);
    let mut links = &links[..];
    let (memory, readers, told) = Default::default();
    let mut watch = Watch { whole, known, in_place: true, memory, readers, free: NONE, told };
    for part in &whole.plan.ranks {
        let base = whole.base(part.rank) as usize;
        let ops = &by_rank[base..base + part.ops.len()];
        watch.known.turn_to(part.rank, ops);
        watch.rank(part, true, ops);
        if has_own_copy(part) {
            watch.rank(part, false, ops);
        }
        while let Some((&(_, first, second), rest)) =
            links.split_first().filter(|(pair, _)| pair.0 == part.rank)
        {
            links = rest;
            if !watch.known.is_before(first, second, false) {
                watch.told.push(unordered(whole, first, second));
            }
        }
        if watch.known.is_exhausted() {
            return vec![beyond_limits()];
        }
        if watch.told.len() >= TOLD_MAX {
            break;
        }
    }
    watch.told
}

/// Whether a copy copies a given block onto itself, if run in place.
pub(super) fn has_own_copy(part: &RankPlan) -> bool {
    let copies = part.ops.iter().filter(|op| op.action == Action::Copy);
    copies
        .flat_map(|op| part.regions(op.source).iter().zip(part.regions(op.target)))
        .any(|(from, to)| is_own(from, to))
}

/// Whether both are one memory in place.
fn is_own(from: &Region, to: &Region) -> bool {
    from.block == to.block
        && from.low == to.low
        && buffer_of(from).is_some()
        && buffer_of(from) == buffer_of(to)
}

fn beyond_limits() -> Diagnostic {
    Diagnostic::unplaced(
        NOT_PROVABLE,
        "that accesses of memory are ordered cannot be proved in reasonable time",
    )
    .expected("most accesses of one memory ordered by lanes and waits of their rank")
    .found("very many that only long chains of messages order")
    .help("let operations wait for those of their rank whose memory they reuse")
}

/// The order of running, cut apart by rank.
pub(super) fn by_rank(whole: &Whole, order: &[OpKey]) -> Vec<OpKey> {
    let mut next: Vec<OpKey> = whole.plan.ranks.iter().map(|part| whole.base(part.rank)).collect();
    let mut sorted = vec![0; order.len()];
    for &key in order {
        let at = &mut next[whole.rank_of(key) as usize];
        sorted[*at as usize] = key;
        *at += 1;
    }
    sorted
}

/// Neighbouring operations of a connection's end that stand in two lanes, as `(rank, first, second)`, by rank.
pub(super) fn link_pairs(whole: &Whole, messages: &Messages) -> Vec<(u32, OpKey, OpKey)> {
    let mut pairs = Vec::new();
    for two in messages.list.windows(2).filter(|two| two[0].first == two[1].first) {
        for (a, b) in [(two[0].send, two[1].send), (two[0].receive, two[1].receive)] {
            let part = whole.part(a);
            let lane = |key| super::whole::lane_of(part, whole.local(key));
            if lane(a) != lane(b) {
                pairs.push((part.rank, a, b));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

fn unordered(whole: &Whole, first: OpKey, second: OpKey) -> Diagnostic {
    let message =
        format!("{} and op {} use one connection in no order", whole.name(first), whole.local(second));
    Diagnostic::unplaced(MESSAGES_UNORDERED, message)
        .expected("messages of a connection one after the other, as messages pair up by their order")
        .found("two lanes, and no wait between them")
        .note(whole.words(first))
        .note(whole.words(second))
        .help(format!(
            "let op {} wait `after op{}`, or give it another channel",
            whole.local(second),
            whole.local(first)
        ))
}

/// The last write of a piece of memory, and the reads since.
#[derive(Clone, Copy)]
struct Cell {
    writer: OpKey,
    /// Which of the operation's regions it was.
    region: u32,
    /// A list through [`Reader::next`].
    readers: u32,
}

#[derive(Clone, Copy)]
struct Reader {
    key: OpKey,
    region: u32,
    next: u32,
}

const UNTOUCHED: Cell = Cell { writer: NONE, region: 0, readers: NONE };

/// The memory of one rank, under watch.
struct Watch<'a> {
    whole: &'a Whole<'a>,
    known: Order<'a>,
    /// Whether `.in` is one memory with `.out` and `.tmp`, or lies apart.
    in_place: bool,
    /// Every piece of every block, then every slot.
    memory: Vec<Cell>,
    readers: Vec<Reader>,
    free: u32,
    told: Vec<Diagnostic>,
}

/// An access: who, and by which of its regions.
#[derive(Clone, Copy)]
struct Access<'a> {
    key: OpKey,
    number: u32,
    region: &'a Region,
}

/// Tells each piece of memory that an operation touches: its place among the rank's, which region of a side it is of, and
/// whether it is written. Reads come first.
pub(super) fn accesses<'p>(
    whole: &Whole,
    part: &'p RankPlan,
    op: &Op,
    in_place: bool,
    mut touch: impl FnMut(usize, u32, &'p Region, bool),
) {
    let is_nothing = |i: usize| {
        let (from, to) = (part.regions(op.source).get(i), part.regions(op.target).get(i));
        in_place && op.action == Action::Copy && from.zip(to).is_some_and(|(from, to)| is_own(from, to))
    };
    let pieces = whole.plan.pieces() as usize;
    for (run, writes) in [(op.source, false), (op.operand, false), (op.target, true)] {
        for (region, number) in part.regions(run).iter().zip(0..) {
            let is_apart = !in_place && matches!(region.store, Store::In(_));
            if is_apart || is_nothing(number as usize) {
                continue;
            }
            match buffer_of(region) {
                None => touch(whole.width as usize * pieces + region.block as usize, number, region, writes),
                Some(buffer) => {
                    let block = whole.block(buffer, region.block) as usize * pieces;
                    for piece in region.low..region.high {
                        touch(block + piece as usize, number, region, writes);
                    }
                }
            }
        }
    }
}

impl Watch<'_> {
    /// Goes through a rank's operations in the order of running.
    fn rank(&mut self, part: &RankPlan, in_place: bool, ops: &[OpKey]) {
        let pieces = self.whole.width as usize * self.whole.plan.pieces() as usize;
        self.memory.clear();
        self.memory.resize(pieces + part.slots.len(), UNTOUCHED);
        self.readers.clear();
        self.free = NONE;
        self.in_place = in_place;
        for &key in ops {
            self.operation(part, key, &part.ops[self.whole.local(key) as usize]);
            if self.told.len() >= TOLD_MAX {
                return;
            }
        }
    }

    fn operation(&mut self, part: &RankPlan, key: OpKey, op: &Op) {
        accesses(self.whole, part, op, self.in_place, |at, number, region, writes| {
            let access = Access { key, number, region };
            if writes { self.write(access, at) } else { self.read(access, at) }
        });
    }

    fn read(&mut self, access: Access, at: usize) {
        let cell = self.memory[at];
        self.ordered(cell.writer, cell.region, "writes", access, "reads");
        let reader = Reader { key: access.key, region: access.number, next: cell.readers };
        self.memory[at].readers = match self.free {
            NONE => {
                self.readers.push(reader);
                self.readers.len() as u32 - 1
            }
            free => {
                self.free = std::mem::replace(&mut self.readers[free as usize], reader).next;
                free
            }
        };
    }

    fn write(&mut self, access: Access, at: usize) {
        let cell = self.memory[at];
        if cell.writer == access.key {
            self.tell_self(access, "writes one memory twice");
        } else if cell.readers == NONE {
            self.ordered(cell.writer, cell.region, "writes", access, "writes");
        }
        let mut next = cell.readers;
        while next != NONE {
            let reader = self.readers[next as usize];
            self.ordered(reader.key, reader.region, "reads", access, "writes");
            self.readers[next as usize].next = std::mem::replace(&mut self.free, next);
            next = reader.next;
        }
        self.memory[at] = Cell { writer: access.key, region: access.number, readers: NONE };
    }

    /// Tells if an earlier access is not surely over before this one.
    fn ordered(&mut self, earlier: OpKey, number: u32, did: &str, access: Access, does: &str) {
        let same_bytes = number == access.number;
        if earlier == access.key && !same_bytes {
            // Within an operation, what is combined may be overwritten byte by byte, and nothing else.
            self.tell_self(access, "reads and writes one memory by regions that do not lie alike");
        } else if earlier != NONE
            && earlier != access.key
            && !self.known.is_before(earlier, access.key, same_bytes)
        {
            self.tell_pair((earlier, did), (access.key, does), access.region);
        }
    }

    fn tell_self(&mut self, access: Access, does: &str) {
        let (whole, key) = (self.whole, access.key);
        let words = whole.region_words(whole.rank_of(key), access.region);
        let told = Diagnostic::unplaced(RACE, format!("{} {does}: {words}", whole.name(key)))
            .expected("every memory once among the regions of a side")
            .note(format!("accessed by {}", whole.words(key)))
            .help("make two operations of it");
        self.tell(told);
    }

    fn tell_pair(&mut self, one: (OpKey, &str), other: (OpKey, &str), region: &Region) {
        let whole = self.whole;
        // Neither comes first; the program's order says which was meant to.
        let meant = |&(key, _): &(OpKey, &str)| (whole.op(key).step, key);
        let (first, second) = if meant(&one) <= meant(&other) { (one, other) } else { (other, one) };
        let (early, late) = (whole.local(first.0), whole.local(second.0));
        let words = whole.region_words(whole.rank_of(first.0), region);
        let message =
            format!("{} {} {words} while op {early} may be at it still", whole.name(second.0), second.1);
        let told = Diagnostic::unplaced(RACE, message)
            .expected(format!("op {late} to start only when op {early} is over"))
            .found(format!("no lane, wait or message orders them; op {early} {} this memory", first.1))
            .note(whole.words(first.0))
            .note(whole.words(second.0))
            .note("in place, `.in`, `.out` and `.tmp` of a block are one memory, and a slot is one for all its shapes")
            .help(format!("let op {late} wait `after op{early}`"));
        self.tell(told);
    }

    fn tell(&mut self, told: Diagnostic) {
        // One fault shows at every piece of a region.
        if self.told.len() < TOLD_MAX && self.told.iter().all(|known| known.message != told.message) {
            self.told.push(told);
        }
    }
}
