//! The run: events in virtual time, from the first operations to the last.
//!
//! Read [`Engine::run`], then the life of an operation: [`Engine::ready`], for a message `message.rs`, then
//! [`Engine::done`]. Everything that can happen at one time happens before the rates of flows are worked out anew, so what
//! comes and goes together does so at once.

mod message;

use crate::flows::{End, Ending, Flows};
use crate::predict::{Element, Options};
use crate::table::{Kind, NONE, Table};
use crate::ways::Ways;
use coll_topo::Network;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// All that an operation waited for is over.
    Ready(u32),
    /// A send has paid for its message.
    Armed(u32),
    /// The bytes of a flow have left, unless it is another version by now.
    Left(u32, u32),
    /// The first byte of a message that is passed on byte by byte is at its receive.
    Head(u32),
    /// The last byte of a message is at its receive.
    Tail(u32),
    /// The last byte of a message is stored, or reduced, while others follow it.
    Stored(u32),
    /// A receive has paid for its message.
    Taken(u32),
    /// An operation is over.
    Done(u32),
}

/// By time, then in the order of their making: times are not negative, so their bits are ordered as they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    bits: u64,
    number: u64,
    event: Event,
}

/// Something of a device that one operation has at a time, first come, first served.
#[derive(Clone, Copy)]
struct Server {
    free: f64,
    last: u32,
}

/// How far a message is.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Of a send: it has paid. Of a receive: it is there.
    here: bool,
    /// Of a send: its bytes are on the way. Of a receive: all of them have come.
    begun: bool,
    /// Of a send that follows a receive: its bytes have left but for the last.
    drained: bool,
    /// Of a receive: its bytes are stored; those that follow it may let their last byte go.
    stored: bool,
    done: bool,
}

/// A run that is under way, and what is known of it afterwards.
pub(crate) struct Engine<'t> {
    table: &'t Table,
    network: &'t Network,
    ways: &'t Ways,
    slots: u32,
    element: Element,
    events: BinaryHeap<Reverse<Key>>,
    number: u64,
    now: f64,
    flows: Flows,
    ends: Vec<End>,
    missing: Vec<u32>,
    progress: Vec<Progress>,
    /// Messages of each connection that have been received.
    received: Vec<u32>,
    /// The rank of each operation; looked up often.
    ranks: Vec<u32>,
    /// Each rank's processor, which pays for messages, and its engine, which copies and reduces.
    processors: Vec<Server>,
    engines: Vec<Server>,
    /// When the reduction of a message that others follow ends.
    reduced: rustc_hash::FxHashMap<u32, f64>,
    /// When each operation was over.
    pub(crate) end: Vec<f64>,
    /// When each operation could begin; kept only if it is asked for.
    pub(crate) begin: Option<Vec<f64>>,
    /// The operation that each waited for last.
    pub(crate) cause: Vec<u32>,
    /// The last operation to be over.
    pub(crate) last: u32,
    left: usize,
    /// Bytes that each link carried.
    pub(crate) carried: Vec<u128>,
    pub(crate) messages: u64,
}

impl<'t> Engine<'t> {
    pub(crate) fn new(
        table: &'t Table,
        network: &'t Network,
        ways: &'t Ways,
        slots: u32,
        options: &Options,
    ) -> Engine<'t> {
        let ranks = table.bases.len() - 1;
        let count = table.len();
        let of_rank = |rank: usize| {
            std::iter::repeat_n(rank as u32, (table.bases[rank + 1] - table.bases[rank]) as usize)
        };
        Engine {
            table,
            network,
            ways,
            slots,
            element: options.element,
            events: BinaryHeap::with_capacity(4 * ranks),
            number: 0,
            now: 0.0,
            flows: if options.exact { Flows::new(network).exact() } else { Flows::new(network) },
            ends: Vec::new(),
            missing: table.missing.clone(),
            progress: vec![Progress::default(); count],
            received: vec![0; table.connections.len()],
            ranks: (0..ranks).flat_map(of_rank).collect(),
            processors: vec![Server { free: 0.0, last: NONE }; ranks],
            engines: vec![Server { free: 0.0, last: NONE }; ranks],
            reduced: rustc_hash::FxHashMap::default(),
            end: vec![0.0; count],
            begin: options.timeline.then(|| vec![0.0; count]),
            cause: vec![NONE; count],
            last: NONE,
            left: count,
            carried: vec![0; network.links.len()],
            messages: 0,
        }
    }

    /// Runs until nothing can happen any more. True if all operations are over.
    pub(crate) fn run(&mut self) -> bool {
        for op in 0..self.table.len() as u32 {
            if self.missing[op as usize] == 0 {
                self.push(0.0, Event::Ready(op));
            }
        }
        while let Some(Reverse(Key { bits, event, .. })) = self.events.pop() {
            self.now = f64::from_bits(bits);
            self.handle(event);
            let is_last_now = self.events.peek().is_none_or(|Reverse(next)| next.bits > bits);
            if is_last_now && !self.flows.is_settled() {
                self.settle();
            }
        }
        self.left == 0
    }

    fn settle(&mut self) {
        let mut ends = std::mem::take(&mut self.ends);
        self.flows.settle(self.now, &mut ends);
        for End { at, flow, version } in ends.drain(..) {
            self.push(at, Event::Left(flow, version));
        }
        self.ends = ends;
    }

    fn push(&mut self, at: f64, event: Event) {
        self.number += 1;
        self.events.push(Reverse(Key { bits: at.to_bits(), number: self.number, event }));
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Ready(op) => self.ready(op),
            Event::Armed(send) => self.armed(send),
            Event::Left(flow, version) => match self.flows.end(flow, version, self.now) {
                Ending::OutOfDate => {}
                Ending::Later(End { at, flow, version }) => self.push(at, Event::Left(flow, version)),
                Ending::Ended(send) => self.drained(send),
            },
            Event::Head(receive) => self.head(receive),
            Event::Tail(receive) => self.tail(receive),
            Event::Stored(receive) => self.stored(receive),
            Event::Taken(receive) => self.taken(receive),
            Event::Done(op) => self.done(op),
        }
    }

    /// One thing less that an operation waits for.
    fn release(&mut self, op: u32, by: u32) {
        let missing = &mut self.missing[op as usize];
        *missing -= 1;
        if *missing == 0 {
            self.cause[op as usize] = by;
            self.push(self.now, Event::Ready(op));
        }
    }

    fn ready(&mut self, op: u32) {
        if let Some(begin) = &mut self.begin {
            begin[op as usize] = self.now;
        }
        match self.table.kinds[op as usize] {
            Kind::Send => {
                let paid = self.pay(op);
                self.soon(paid, Event::Armed(op));
            }
            Kind::Recv | Kind::RecvReduce => self.posted(op),
            Kind::Copy => {
                let end = self.work(op, self.device(op).copy_ns);
                self.soon(end, Event::Done(op));
            }
            Kind::Reduce => {
                let end = self.work(op, self.device(op).reduce_ns);
                self.soon(end, Event::Done(op));
            }
        }
    }

    fn done(&mut self, op: u32) {
        self.end[op as usize] = self.now;
        self.progress[op as usize].done = true;
        self.left -= 1;
        self.last = op;
        let table = self.table;
        table.next(op).iter().for_each(|&next| self.release(next, op));
        if matches!(table.kinds[op as usize], Kind::Recv | Kind::RecvReduce) {
            self.free_slot(op);
        }
    }

    /// What happens at once is handled at once, so that it keeps its turn.
    fn soon(&mut self, at: f64, event: Event) {
        if at > self.now {
            self.push(at, event);
        } else {
            self.handle(event);
        }
    }

    fn device(&self, op: u32) -> &'t coll_topo::Device {
        let rank = self.ranks[op as usize];
        &self.network.devices[self.ways.devices[rank as usize] as usize]
    }

    /// A message's cost at one of its ends, in turn with those of the rank's other messages.
    fn pay(&mut self, op: u32) -> f64 {
        let cost = self.device(op).message_us;
        let server = &mut self.processors[self.ranks[op as usize] as usize];
        serve(server, &mut self.cause[op as usize], self.now, op, cost)
    }

    /// Work on an operation's bytes, in turn with the rank's other work.
    fn work(&mut self, op: u32, byte_ns: f64) -> f64 {
        let bytes = u128::from(self.table.elements[op as usize]) * u128::from(self.element.held_bytes);
        let cost = bytes as f64 * byte_ns / 1000.0;
        let server = &mut self.engines[self.ranks[op as usize] as usize];
        serve(server, &mut self.cause[op as usize], self.now, op, cost)
    }

    /// What an operation that is not over waits for.
    pub(crate) fn state(&self, op: u32) -> State {
        let progress = self.progress[op as usize];
        if progress.done {
            State::Done
        } else if self.missing[op as usize] > 0 {
            State::Waits
        } else {
            State::Open
        }
    }
}

/// How far an operation is, when nothing can happen any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Others have to be over first.
    Waits,
    /// It waits for the other end of its message.
    Open,
    Done,
}

/// When a server is done with something that comes now. What costs nothing waits for nobody.
fn serve(server: &mut Server, cause: &mut u32, now: f64, op: u32, cost: f64) -> f64 {
    if cost == 0.0 {
        return now;
    }
    if server.free > now {
        *cause = server.last;
    }
    *server = Server { free: server.free.max(now) + cost, last: op };
    server.free
}
