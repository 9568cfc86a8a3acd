//! The links of a world: bounded queues of bytes, and one rank's view of them.

use super::random::Random;
use crate::{Fault, Interest, Link, Transport};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Reads and writes that a rank may do in one turn: few, so that ranks take turns often.
const CALLS_MAX: usize = 8;

/// All links, by sender, receiver and channel.
#[derive(Debug)]
pub(crate) struct Wires {
    queues: BTreeMap<(u32, u32, u32), VecDeque<u8>>,
    lost: BTreeSet<u32>,
    pub(crate) link_bytes: usize,
    pub(crate) piece_bytes_max: usize,
}

impl Wires {
    pub(crate) fn new(link_bytes: usize, piece_bytes_max: usize) -> Wires {
        Wires { queues: BTreeMap::new(), lost: BTreeSet::new(), link_bytes, piece_bytes_max }
    }

    /// Breaks all links of a rank; what it had sent can still be read.
    pub(crate) fn lose(&mut self, rank: u32) {
        self.lost.insert(rank);
    }

    /// Whether a rank's interest is met: a broken link is, as it has an error to tell.
    pub(crate) fn meets(&self, rank: u32, interest: &Interest) -> bool {
        let Link { peer, channel } = interest.link;
        let held = |from, to| self.queues.get(&(from, to, channel)).map_or(0, VecDeque::len);
        self.lost.contains(&peer)
            || interest.readable && held(peer, rank) > 0
            || interest.writable && held(rank, peer) < self.link_bytes
    }
}

/// One rank's view, for one turn.
pub(crate) struct Port<'w> {
    wires: &'w mut Wires,
    random: &'w mut Random,
    rank: u32,
    calls_left: usize,
}

impl<'w> Port<'w> {
    pub(crate) fn new(wires: &'w mut Wires, random: &'w mut Random, rank: u32) -> Port<'w> {
        let calls_left = random.size(CALLS_MAX);
        Port { wires, random, rank, calls_left }
    }

    fn take_call(&mut self) -> bool {
        let left = self.calls_left > 0;
        self.calls_left = self.calls_left.saturating_sub(1);
        left
    }

    fn lost(&self, peer: u32) -> Result<(), Fault> {
        match self.wires.lost.contains(&peer) {
            true => Err(Fault::PeerLost { peer, detail: "it was dropped".into() }),
            false => Ok(()),
        }
    }
}

impl Transport for Port<'_> {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        self.lost(link.peer)?;
        if !self.take_call() {
            return Ok(0);
        }
        let queue = self.wires.queues.entry((self.rank, link.peer, link.channel)).or_default();
        let offered: usize = parts.iter().map(|part| part.len()).sum();
        let room = self.wires.link_bytes.saturating_sub(queue.len()).min(offered);
        let size = self.random.size(room.min(self.wires.piece_bytes_max));
        queue.extend(parts.iter().copied().flatten().take(size));
        Ok(size)
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        if !self.take_call() {
            return Ok(0);
        }
        let queue = self.wires.queues.entry((link.peer, self.rank, link.channel)).or_default();
        let size = self.random.size(queue.len().min(into.len()).min(self.wires.piece_bytes_max));
        for (to, from) in into.iter_mut().zip(queue.drain(..size)) {
            *to = from;
        }
        if size == 0 { self.lost(link.peer).map(|()| 0) } else { Ok(size) }
    }

    /// Shows a piece of any size: of the same bytes a longer or a shorter one the next time, or none. By the seed a call
    /// may also refuse, so that both ways of reading meet in one message.
    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        if self.random.next() & 1 == 0 {
            return Ok(None);
        }
        if !self.take_call() {
            return Ok(Some(&[]));
        }
        let lost = self.lost(link.peer);
        let queue = self.wires.queues.entry((link.peer, self.rank, link.channel)).or_default();
        let shown = queue.as_slices().0;
        let size = self.random.size(shown.len().min(self.wires.piece_bytes_max));
        if size == 0 { lost.map(|()| Some(&[][..])) } else { Ok(Some(&shown[..size])) }
    }

    fn consume(&mut self, link: Link, bytes: usize) {
        if let Some(queue) = self.wires.queues.get_mut(&(link.peer, self.rank, link.channel)) {
            queue.drain(..bytes);
        }
    }

    /// A world never sleeps: it looks at interests itself.
    fn wait(&mut self, _interests: &[Interest]) -> Result<(), Fault> {
        Ok(())
    }
}
