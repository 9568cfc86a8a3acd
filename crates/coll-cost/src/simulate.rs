//! Runs an outline on constants: a queue of events in virtual time.
//!
//! Ranks of a machine share its cores, each at home on one of them. Where a core is all its own, a rank goes on as soon as a
//! message has come. Where ranks share a core, they have it in turns: a rank runs what it can until nothing is left, and hands
//! the core to the next, which looks for messages and hands it on if none has come. It is never interrupted. So a step of a
//! chain is as dear as there are ranks on a core, and those are cheap that have many messages to wait for at once.

use crate::outline::NONE;
use crate::{Constants, ItemKind, Layout, Outline, Work};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A receive may begin when so much has been sent.
pub const QUANTUM_BYTES: f64 = 65_536.0;

/// How much of what memory takes more than the cache is left where the executor stores past the cache: what is overwritten is
/// not fetched.
const PAST_CACHE: f64 = 0.5;

impl Outline {
    /// The time of one call, in microseconds, from its start on all ranks to its end on the last.
    pub fn predict_us(&self, constants: &Constants, layout: Layout, work: Work) -> f64 {
        self.predict_within_us(constants, layout, work, f64::INFINITY).unwrap_or(f64::INFINITY)
    }

    /// The same, or none where that is above a limit: as soon as an event is, the rest is not looked at.
    pub fn predict_within_us(
        &self,
        constants: &Constants,
        layout: Layout,
        work: Work,
        limit_us: f64,
    ) -> Option<f64> {
        let mut run = Run::new(self, constants, layout, work);
        for (id, item) in (0..).zip(&self.items) {
            if item.waits == 0 {
                run.push(0.0, Event::Ready(id));
            }
        }
        while let Some(Reverse(Key { bits, event, .. })) = run.events.pop() {
            let now = f64::from_bits(bits);
            // What begins or ends now ends no earlier.
            if constants.call_us + now > limit_us {
                return None;
            }
            match event {
                Event::Ready(id) => run.ready(now, id),
                Event::Free(rank) => run.free(now, rank),
            }
        }
        Some(constants.call_us + run.last).filter(|&us| us <= limit_us)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// An operation may begin.
    Ready(u32),
    /// A rank has done what it was at.
    Free(u32),
}

/// By time, then what may begin before who has nothing left to do, then in the order of their making. Times are not
/// negative, so their bits are ordered as they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    bits: u64,
    frees: bool,
    number: u32,
    event: Event,
}

/// What a rank is at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Asleep,
    /// It could go on, and waits for its core.
    Waiting,
    Running,
}

struct Rank {
    mode: Mode,
    /// Its core's place among all machines' cores.
    core: u32,
    /// Its place among the ranks of its core.
    place: usize,
    able: VecDeque<u32>,
}

#[derive(Default)]
struct Core {
    /// Ranks that are at home here, in the order of their turns.
    ranks: Vec<u32>,
    /// Whose turn it is, or was when the last had nothing left.
    turn: usize,
    /// Since when none can go on.
    idle_since: f64,
    busy: bool,
}

impl Core {
    /// Turns from one place to another.
    fn turns(&self, from: usize, to: usize) -> usize {
        (to + self.ranks.len() - from) % self.ranks.len()
    }

    /// The first of its ranks from the turn at hand on of which something holds, and how many turns away it is.
    fn first(&self, holds: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let len = self.ranks.len();
        (0..len).map(|turns| (turns, self.ranks[(self.turn + turns) % len])).find(|&(_, rank)| holds(rank))
    }

    /// When the rank at a place looks again whose message comes at `now`, while all have been looking in turns.
    fn look(&self, now: f64, place: usize, turn_us: f64) -> f64 {
        if turn_us <= 0.0 {
            return now;
        }
        let passed = ((now - self.idle_since) / turn_us).ceil();
        let from = (self.turn + (passed % self.ranks.len() as f64) as usize) % self.ranks.len();
        self.idle_since + (passed + self.turns(from, place) as f64) * turn_us
    }
}

/// Microseconds for bytes and messages of one work.
struct Prices {
    bytes: f64,
    send: f64,
    recv: f64,
    copy: f64,
    /// What is stored past the cache.
    recv_past: f64,
    /// What is not stored as it is.
    recv_near: f64,
    copy_past: f64,
    reduce: f64,
}

struct Run<'o> {
    outline: &'o Outline,
    constants: &'o Constants,
    layout: Layout,
    prices: Prices,
    events: BinaryHeap<Reverse<Key>>,
    number: u32,
    missing: Vec<u32>,
    /// When the last came of what each operation waits for, as far as that is known.
    since: Vec<f64>,
    /// The end of each operation, or of what it does itself while `open` says that it waits for another's end.
    end: Vec<f64>,
    state: Vec<State>,
    /// Which messages that go to several peers have been written.
    written: Vec<bool>,
    ranks: Vec<Rank>,
    cores: Vec<Core>,
    /// For each machine, when its wire is free.
    wires: Vec<f64>,
    last: f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ahead,
    /// Its own part is done; its stream's has not ended.
    Open,
    Done,
}

impl<'o> Run<'o> {
    fn new(outline: &'o Outline, constants: &'o Constants, layout: Layout, work: Work) -> Run<'o> {
        let bytes = work.bytes as f64;
        let touched = outline.touched * bytes * f64::from(layout.ranks_on_host(outline.ranks));
        let far = constants.far_share(touched);
        let accumulates_far = far * outline.accumulated;
        let us = |ns: f64| ns / 1000.0;
        let prices = Prices {
            bytes,
            send: us(constants.send.ns(far)),
            recv: us(constants.recv.ns(far)),
            copy: us(constants.copy.ns(far)),
            recv_near: us(constants.recv.near_ns),
            recv_past: us(constants.recv.ns(far * PAST_CACHE)),
            copy_past: us(constants.copy.ns(far * PAST_CACHE)),
            reduce: us(constants.reduction(work.dtype, work.user_operator).ns(accumulates_far)),
        };
        let items = outline.items.len();
        let home = |rank: u32| {
            let host = layout.host(rank);
            host * layout.cores + (rank - host * layout.ranks_per_host.min(rank)) % layout.cores
        };
        let hosts = layout.hosts(outline.ranks);
        let mut cores: Vec<Core> = (0..hosts * layout.cores).map(|_| Core::default()).collect();
        (0..outline.ranks).for_each(|rank| cores[home(rank) as usize].ranks.push(rank));
        let place = |rank: u32| cores[home(rank) as usize].ranks.partition_point(|&other| other < rank);
        let places: Vec<usize> = (0..outline.ranks).map(place).collect();
        Run {
            outline,
            constants,
            layout,
            prices,
            events: BinaryHeap::with_capacity(2 * outline.ranks as usize),
            number: 0,
            missing: outline.items.iter().map(|item| item.waits).collect(),
            since: vec![0.0; items],
            end: vec![0.0; items],
            state: vec![State::Ahead; items],
            written: vec![false; outline.shared.len()],
            ranks: (0..outline.ranks)
                .map(|rank| Rank {
                    mode: Mode::Asleep,
                    core: home(rank),
                    place: places[rank as usize],
                    able: VecDeque::new(),
                })
                .collect(),
            cores,
            wires: vec![0.0; hosts as usize],
            last: 0.0,
        }
    }

    fn push(&mut self, at: f64, event: Event) {
        self.number += 1;
        self.events.push(Reverse(Key {
            bits: at.to_bits(),
            frees: matches!(event, Event::Free(_)),
            number: self.number,
            event,
        }));
    }

    /// One thing less that an operation waits for. Some are known of ahead of their time: the last that is heard of need not
    /// be the last that comes.
    fn release(&mut self, at: f64, id: u32) {
        let since = &mut self.since[id as usize];
        *since = since.max(at);
        let since = *since;
        self.missing[id as usize] -= 1;
        if self.missing[id as usize] == 0 {
            self.push(since, Event::Ready(id));
        }
    }

    fn ready(&mut self, now: f64, id: u32) {
        let rank = self.outline.items[id as usize].rank;
        self.ranks[rank as usize].able.push_back(id);
        if self.ranks[rank as usize].mode != Mode::Asleep {
            return;
        }
        let core = &self.cores[self.ranks[rank as usize].core as usize];
        if core.busy {
            self.ranks[rank as usize].mode = Mode::Waiting;
            return;
        }
        let begins = match core.ranks.len() {
            1 => now,
            _ => core.look(now, self.ranks[rank as usize].place, self.constants.switch_us),
        };
        self.take_turn(begins, rank);
    }

    fn free(&mut self, now: f64, rank: u32) {
        if !self.ranks[rank as usize].able.is_empty() {
            return self.go(now, rank);
        }
        self.ranks[rank as usize].mode = Mode::Asleep;
        let core = &mut self.cores[self.ranks[rank as usize].core as usize];
        let waits = |rank: u32| self.ranks[rank as usize].mode == Mode::Waiting;
        match core.first(waits) {
            None => {
                core.busy = false;
                core.idle_since = now;
            }
            Some((turns, next)) => {
                self.take_turn(now + turns as f64 * self.constants.switch_us, next);
            }
        }
    }

    fn take_turn(&mut self, begins: f64, rank: u32) {
        let core = &mut self.cores[self.ranks[rank as usize].core as usize];
        core.busy = true;
        core.turn = self.ranks[rank as usize].place;
        self.go(begins, rank);
    }

    /// Runs the operation that a rank could have begun first.
    fn go(&mut self, now: f64, rank: u32) {
        let id = self.ranks[rank as usize].able.pop_front().expect("invariant: a rank goes for an operation");
        self.ranks[rank as usize].mode = Mode::Running;
        let outline = self.outline;
        let item = outline.items[id as usize];
        let (constants, prices) = (self.constants, &self.prices);
        let bytes = item.share * prices.bytes;
        let shares = item.common != NONE && constants.shares(outline.shared[item.common as usize], bytes);
        let written = shares && std::mem::replace(&mut self.written[item.common as usize], true);
        let (message, byte) = match item.kind {
            ItemKind::Send if written => (constants.send_us, 0.0),
            ItemKind::Send => (constants.send_us, prices.send),
            ItemKind::Recv if item.past_cache => (constants.recv_us, prices.recv_past),
            ItemKind::Recv => (constants.recv_us, prices.recv),
            ItemKind::RecvReduce => (constants.recv_us, prices.recv_near + prices.reduce),
            ItemKind::Copy if item.past_cache => (constants.local_us, prices.copy_past),
            ItemKind::Copy => (constants.local_us, prices.copy),
            ItemKind::Reduce => (constants.local_us, prices.reduce),
        };
        let end = now + message + bytes * byte;
        self.push(end, Event::Free(rank));
        if item.kind == ItemKind::Send && item.leader == NONE {
            let first = now + message + bytes.min(QUANTUM_BYTES) * byte;
            self.set_out(first, id);
        }
        for &(_, follower) in outline.followers(id) {
            // What comes in goes out a quantum behind.
            let out = constants.send_us + bytes.min(QUANTUM_BYTES) * self.prices.send;
            let first = now + message + bytes.min(QUANTUM_BYTES) * byte + out;
            self.set_out(first, follower);
            self.release(now, follower);
        }
        self.end[id as usize] = end;
        self.state[id as usize] = State::Open;
        self.settle(id);
    }

    /// The first bytes of a message are under way: its receive may begin.
    fn set_out(&mut self, first: f64, send: u32) {
        let item = self.outline.items[send as usize];
        if item.partner == NONE {
            return;
        }
        let to = self.outline.items[item.partner as usize].rank;
        let (from_host, to_host) = (self.layout.host(item.rank), self.layout.host(to));
        let same_core = self.ranks[item.rank as usize].core == self.ranks[to as usize].core;
        let mut arrives = first;
        if let Some(wire) = self.constants.wire.filter(|_| from_host != to_host) {
            let bytes = item.share * self.prices.bytes;
            let free = &mut self.wires[from_host as usize];
            let begins = first.max(*free);
            *free = begins + bytes * wire.byte_ns / 1000.0;
            arrives = begins + bytes.min(QUANTUM_BYTES) * wire.byte_ns / 1000.0 + wire.latency_us;
        }
        arrives += if same_core { 0.0 } else { self.constants.wake_us };
        self.release(arrives, item.partner);
    }

    /// Ends an operation whose own part is done, if what it streams from has ended; and then what streams from it.
    fn settle(&mut self, id: u32) {
        let outline = self.outline;
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if self.state[id as usize] != State::Open {
                continue;
            }
            let item = outline.items[id as usize];
            let source = match item.kind {
                ItemKind::Send => item.leader,
                _ => item.partner,
            };
            let mut end = self.end[id as usize];
            if source != NONE {
                if self.state[source as usize] != State::Done {
                    continue;
                }
                end = end.max(self.end[source as usize] + self.way(source, id));
            }
            self.end[id as usize] = end;
            self.state[id as usize] = State::Done;
            self.last = self.last.max(end);
            for &next in outline.next(id) {
                self.release(end, next);
            }
            open.extend(outline.followers(id).iter().map(|&(_, follower)| follower));
            if item.kind == ItemKind::Send && item.partner != NONE {
                open.push(item.partner);
            }
        }
    }

    /// How much later the last byte of a stream comes to another machine.
    fn way(&self, from: u32, to: u32) -> f64 {
        let [a, b] = [from, to].map(|id| self.layout.host(self.outline.items[id as usize].rank));
        let (Some(wire), true) = (self.constants.wire, a != b) else { return 0.0 };
        let bytes = self.outline.items[to as usize].share * self.prices.bytes;
        let behind = (bytes * wire.byte_ns / 1000.0 - (bytes * self.prices.send)).max(0.0);
        wire.latency_us + behind
    }
}
