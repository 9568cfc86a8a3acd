//! The life of a message: paid for by its sender, on its way once its receive or a slot is there, there, paid for by its
//! receiver, and reduced.

use super::{Engine, Event};
use crate::table::{Kind, NONE};

impl Engine<'_> {
    /// A send has paid.
    pub(super) fn armed(&mut self, send: u32) {
        self.progress[send as usize].here = true;
        let receive = self.table.partners[send as usize];
        if receive == NONE {
            return;
        }
        if self.may_go(send, receive) {
            // The receive was there before, and waited.
            self.cause[receive as usize] = send;
            self.go(send, receive);
        }
    }

    /// A receive is there.
    pub(super) fn posted(&mut self, receive: u32) {
        self.progress[receive as usize].here = true;
        let send = self.table.partners[receive as usize];
        if send == NONE {
            return;
        }
        if self.progress[receive as usize].begun {
            // The message came before its receive and lies in a slot.
            self.take(receive, true);
        } else if self.progress[send as usize].here && !self.progress[send as usize].begun {
            // The send was there before, and waited for what this receive waited for.
            self.cause[send as usize] = self.cause[receive as usize];
            self.go(send, receive);
        } else if self.progress[send as usize].begun {
            self.cause[receive as usize] = send;
        }
    }

    /// Whether a message that is paid for may set out: its receive is there, or a slot is free for it.
    fn may_go(&self, send: u32, receive: u32) -> bool {
        let (connection, place) = self.table.places[send as usize];
        let slots = u64::from(self.received[connection as usize]) + u64::from(self.slots);
        self.progress[receive as usize].here || u64::from(place) < slots
    }

    /// A receive is over, and so its message's slot is free for the one that is due.
    pub(super) fn free_slot(&mut self, receive: u32) {
        let (connection, _) = self.table.places[receive as usize];
        self.received[connection as usize] += 1;
        if self.slots == 0 {
            return;
        }
        let due = u64::from(self.received[connection as usize]) + u64::from(self.slots) - 1;
        let sends = &self.table.connections[connection as usize].sends;
        let Some(&send) = usize::try_from(due).ok().and_then(|due| sends.get(due)) else { return };
        let progress = self.progress[send as usize];
        let next = self.table.partners[send as usize];
        if progress.here && !progress.begun && next != NONE {
            self.cause[send as usize] = receive;
            self.go(send, next);
        }
    }

    /// A message sets out.
    fn go(&mut self, send: u32, receive: u32) {
        self.progress[send as usize].begun = true;
        self.messages += 1;
        let (connection, _) = self.table.places[send as usize];
        let way = self.ways.of(connection);
        if self.table.followers.contains_key(&receive) {
            self.push(self.now + way.latency_us, Event::Head(receive));
        }
        let bytes = u128::from(self.table.elements[send as usize]) * u128::from(self.element.sent_bytes);
        if bytes == 0 {
            return self.drained(send);
        }
        let links = self.ways.links(way);
        links.iter().for_each(|&link| self.carried[link as usize] += bytes);
        self.flows.add(send, links, way.bytes_per_us, bytes, self.now);
    }

    /// A message's bytes have left; the last only if it does not follow a receive that is not stored yet.
    pub(super) fn drained(&mut self, send: u32) {
        let leader = self.table.leaders.get(&send).copied();
        if leader.is_some_and(|leader| !self.progress[leader as usize].stored) {
            self.progress[send as usize].drained = true;
            return;
        }
        let receive = self.table.partners[send as usize];
        let (connection, _) = self.table.places[send as usize];
        let there = self.now + self.ways.of(connection).latency_us;
        self.done(send);
        match leader {
            None => self.soon(there, Event::Tail(receive)),
            // By an event even if it is there at once: a chain of followers may be long.
            Some(_) => self.push(there, Event::Tail(receive)),
        }
    }

    /// The first byte has come: what follows may begin, and so does a reduction that is passed on.
    pub(super) fn head(&mut self, receive: u32) {
        if self.table.kinds[receive as usize] == Kind::RecvReduce {
            let cause = self.cause[receive as usize];
            let end = self.work(receive, self.device(receive).reduce_ns);
            self.reduced.insert(receive, end);
            self.cause[receive as usize] = cause;
        }
        let table = self.table;
        let followers = table.followers.get(&receive).map_or(&[][..], Vec::as_slice);
        followers.iter().for_each(|&follower| self.release(follower, receive));
    }

    /// The last byte has come.
    pub(super) fn tail(&mut self, receive: u32) {
        self.progress[receive as usize].begun = true;
        if self.progress[receive as usize].here {
            self.take(receive, false);
        }
    }

    /// Both the receive and all of its message are there.
    fn take(&mut self, receive: u32, from_slot: bool) {
        if self.table.followers.contains_key(&receive) {
            let stored = self.reduced.remove(&receive).unwrap_or(self.now).max(self.now);
            return self.soon(stored, Event::Stored(receive));
        }
        if from_slot && self.table.kinds[receive as usize] == Kind::Recv {
            let copied = self.work(receive, self.device(receive).copy_ns);
            return self.soon(copied, Event::Stored(receive));
        }
        let paid = self.pay(receive);
        self.soon(paid, Event::Taken(receive));
    }

    /// All bytes lie where they belong: followers let their last byte go.
    pub(super) fn stored(&mut self, receive: u32) {
        self.progress[receive as usize].stored = true;
        let table = self.table;
        let followers = table.followers.get(&receive).map_or(&[][..], Vec::as_slice);
        for &follower in followers {
            if self.progress[follower as usize].drained {
                self.cause[follower as usize] = receive;
                self.drained(follower);
            }
        }
        let paid = self.pay(receive);
        let then = match followers.is_empty() {
            true => Event::Taken(receive),
            false => Event::Done(receive),
        };
        self.soon(paid, then);
    }

    /// A receive has paid: what it reduces is yet to be reduced.
    pub(super) fn taken(&mut self, receive: u32) {
        match self.table.kinds[receive as usize] {
            Kind::RecvReduce => {
                let reduced = self.work(receive, self.device(receive).reduce_ns);
                self.soon(reduced, Event::Done(receive));
            }
            _ => self.done(receive),
        }
    }
}
