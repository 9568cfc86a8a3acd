//! Several operations as one: all are begun, and progress is made on whichever can go on.
//!
//! Operations that use one direction of one link take turns in it, in the order of the group, for a link is a stream of
//! bytes. That cannot deadlock where both ends list what they share in the same order: the first of them waits for none of
//! the others.

use crate::comm::engine::{Begun, Engine};
use crate::comm::entry::{End, Entry};
use crate::comm::resolve::Resolved;
use crate::comm::wires::Wires;
use crate::comm::{CommError, Element, Op, Request};
use coll_exec::{Fault, Interest, Link, Loan, Progress, RunError, RunOptions, Running, Transport};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Operations that are to run as one: see [`Communicator::group`](crate::Communicator::group).
#[derive(Debug, Default)]
pub struct Group<'a> {
    pub(crate) requests: Vec<Request<'a>>,
}

impl<'a> Group<'a> {
    /// Adds any call.
    pub fn add(&mut self, request: Request<'a>) -> &mut Self {
        self.requests.push(request);
        self
    }

    /// Adds a [`Communicator::send`](crate::Communicator::send).
    pub fn send<T: Element>(&mut self, data: &'a [T], to: u32) -> &mut Self {
        self.add(Request::send(data, to))
    }

    /// Adds a [`Communicator::receive`](crate::Communicator::receive).
    pub fn receive<T: Element>(&mut self, data: &'a mut [T], from: u32) -> &mut Self {
        self.add(Request::receive(data, from))
    }

    /// Adds a [`Communicator::all_reduce`](crate::Communicator::all_reduce).
    pub fn all_reduce<T: Element>(
        &mut self,
        input: &'a [T],
        output: &'a mut [T],
        op: impl Into<Op>,
    ) -> &mut Self {
        self.add(Request::all_reduce(input, output, op))
    }

    /// Adds a [`Communicator::all_reduce_in_place`](crate::Communicator::all_reduce_in_place).
    pub fn all_reduce_in_place<T: Element>(&mut self, data: &'a mut [T], op: impl Into<Op>) -> &mut Self {
        self.add(Request::all_reduce_in_place(data, op))
    }

    /// Adds a [`Communicator::broadcast`](crate::Communicator::broadcast).
    pub fn broadcast<T: Element>(&mut self, data: &'a mut [T], root: u32) -> &mut Self {
        self.add(Request::broadcast(data, root))
    }
}

/// An operation of a group, taken out of the cache while it runs.
struct Member<'a> {
    place: usize,
    entry: Box<Entry>,
    resolved: Resolved<'a>,
    options: RunOptions,
    noted: u64,
}

impl Engine {
    /// Runs requests as one operation.
    pub(crate) fn run_group(&mut self, requests: Vec<Request<'_>>) -> Result<(), CommError> {
        self.check_alive()?;
        let mut copies = FxHashMap::default();
        let mut all = Vec::with_capacity(requests.len());
        for request in requests {
            let mut resolved = self.resolve(request)?;
            let copy = copies.entry(resolved.key).or_insert(0u32);
            resolved.key.copy = *copy;
            *copy += 1;
            all.push(resolved);
        }
        let mut places = Vec::with_capacity(all.len());
        let mut held = Vec::with_capacity(all.len());
        for resolved in &all {
            let place = self.place(resolved)?;
            held.extend(self.cache.get_mut(place).map(|entry| Arc::clone(&entry.held)));
            places.push(place);
        }
        let begun =
            places.iter().map(|&place| self.begin(place)).collect::<Result<Vec<Begun>, CommError>>()?;
        self.connect(&places, begun.first().copied())?;
        let mut members = Vec::with_capacity(all.len());
        for ((resolved, place), begun) in all.into_iter().zip(places).zip(begun) {
            let lent = self.cache.lend(place);
            let entry = lent.expect("invariant: each copy of a call has an entry of its own");
            members.push(Member { place, entry, resolved, options: begun.options, noted: begun.noted });
        }
        let ran = run(&mut self.wires, &mut members);
        if ran.is_err() {
            Transport::revoke(&mut self.wires);
        }
        for member in members {
            if ran.is_ok() {
                self.record.end(member.noted);
            }
            self.cache.bring_back(member.place, member.entry);
        }
        drop(held);
        if ran.is_ok() {
            self.wires.end();
        }
        ran.map_err(|failed| {
            let Failed { error, call, noted } = *failed;
            self.fail_run(error, call, noted)
        })
    }
}

/// What failed, in which member.
struct Failed {
    error: RunError,
    call: String,
    noted: u64,
}

fn run(wires: &mut Wires, members: &mut [Member<'_>]) -> Result<(), Box<Failed>> {
    let mut turns = Turns::default();
    for (number, member) in members.iter().enumerate() {
        turns.queue(number, &member.entry.ends);
    }
    let mut about = Vec::with_capacity(members.len());
    let mut running: Vec<Option<Running<'_, '_>>> = Vec::with_capacity(members.len());
    let mut ends: Vec<&[End]> = Vec::with_capacity(members.len());
    for member in members {
        let Entry { bound, call, ends: its_ends, .. } = &mut *member.entry;
        about.push((Arc::clone(call), member.noted));
        ends.push(its_ends);
        let begun = bound.begin(member.resolved.memory.as_mut_slice(), member.options);
        let begun = begun.map_err(|error| failed(error, &about, about.len() - 1))?;
        running.push(Some(begun));
    }
    let mut interests = Vec::new();
    let mut left = running.len();
    while left > 0 {
        interests.clear();
        let mut ended = false;
        for number in 0..running.len() {
            let Some(member) = &mut running[number] else { continue };
            let mut gate = Gate { wires, turns: &turns, number };
            match member.advance(&mut gate).map_err(|error| failed(error, &about, number))? {
                Progress::Done => {
                    running[number] = None;
                    turns.pass(number, ends[number]);
                    (left, ended) = (left - 1, true);
                }
                Progress::Blocked => interests.extend(turns.allowed(number, member.interests())),
            }
        }
        // Whose turn it is now may go on at once.
        if left > 0 && !ended {
            wires.wait(&interests).map_err(|fault| {
                let number = running.iter().position(Option::is_some).unwrap_or(0);
                let waiting = running[number].as_mut().expect("invariant: some are left");
                failed(waiting.fail(fault), &about, number)
            })?;
        }
    }
    Ok(())
}

fn failed(
    error: RunError,
    about: &[(Arc<crate::comm::words::CallWords>, u64)],
    number: usize,
) -> Box<Failed> {
    let (call, noted) = &about[number];
    Box::new(Failed { error, call: call.text.clone(), noted: *noted })
}

/// Whose turn it is in each direction of each link.
#[derive(Debug, Default)]
struct Turns {
    /// Sending and receiving, by link: members in order.
    queues: FxHashMap<Link, [VecDeque<usize>; 2]>,
}

impl Turns {
    fn queue(&mut self, number: usize, ends: &[End]) {
        for end in ends {
            let [sending, receiving] = self.queues.entry(end.link).or_default();
            if end.sends {
                sending.push_back(number);
            }
            if end.receives {
                receiving.push_back(number);
            }
        }
    }

    /// A member is done: the next have their turn.
    fn pass(&mut self, number: usize, ends: &[End]) {
        for end in ends {
            for queue in self.queues.entry(end.link).or_default() {
                if queue.front() == Some(&number) {
                    queue.pop_front();
                }
            }
        }
    }

    fn may_send(&self, number: usize, link: Link) -> bool {
        self.queues.get(&link).is_some_and(|[sending, _]| sending.front() == Some(&number))
    }

    fn may_receive(&self, number: usize, link: Link) -> bool {
        self.queues.get(&link).is_some_and(|[_, receiving]| receiving.front() == Some(&number))
    }

    /// What a member waits for, as far as it has its turn.
    fn allowed<'i>(
        &'i self,
        number: usize,
        interests: &'i [Interest],
    ) -> impl Iterator<Item = Interest> + 'i {
        let allowed = move |interest: &Interest| Interest {
            link: interest.link,
            readable: interest.readable && self.may_receive(number, interest.link),
            writable: interest.writable && self.may_send(number, interest.link),
            returned: interest.returned,
        };
        let asks = |interest: &Interest| interest.readable || interest.writable || interest.returned;
        interests.iter().map(allowed).filter(asks)
    }
}

/// The connections as one member may use them now.
struct Gate<'g> {
    wires: &'g mut Wires,
    turns: &'g Turns,
    number: usize,
}

impl Transport for Gate<'_> {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        match self.turns.may_send(self.number, link) {
            true => self.wires.try_send(link, parts),
            false => Ok(0),
        }
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        match self.turns.may_receive(self.number, link) {
            true => self.wires.try_recv(link, into),
            false => Ok(0),
        }
    }

    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        match self.turns.may_receive(self.number, link) {
            true => self.wires.peek(link),
            // It has to ask again, by whatever way.
            false => Ok(None),
        }
    }

    fn consume(&mut self, link: Link, bytes: usize) {
        self.wires.consume(link, bytes);
    }

    fn checks(&self, link: Link) -> bool {
        self.wires.checks(link)
    }

    fn lends(&self, link: Link) -> Option<u64> {
        self.wires.lends(link)
    }

    fn lend(&mut self, link: Link, bytes: &[u8]) -> Option<Loan> {
        self.wires.lend(link, bytes)
    }

    fn lent(&mut self, link: Link) {
        self.wires.lent(link);
    }

    fn stage(&mut self, bytes: u64) -> Option<u64> {
        self.wires.stage(bytes)
    }

    fn write_staged(&mut self, at: u64, bytes: &[u8]) {
        self.wires.write_staged(at, bytes);
    }

    fn lend_staged(&mut self, at: u64, bytes: u64) -> Loan {
        self.wires.lend_staged(at, bytes)
    }

    fn lent_staged(&mut self, link: Link, at: u64, last: bool) {
        self.wires.lent_staged(link, at, last);
    }

    fn is_returned(&mut self, link: Link) -> Result<bool, Fault> {
        self.wires.is_returned(link)
    }

    fn borrow(&mut self, link: Link, loan: &Loan) -> Result<&[u8], Fault> {
        self.wires.borrow(link, loan)
    }

    fn still_lent(&mut self, link: Link, loan: &Loan) -> Result<(), Fault> {
        self.wires.still_lent(link, loan)
    }

    fn give_back(&mut self, link: Link) {
        self.wires.give_back(link);
    }

    fn revoke(&mut self) {
        self.wires.revoke();
    }

    fn flush(&mut self) {
        self.wires.flush();
    }

    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        self.wires.wait(interests)
    }
}
