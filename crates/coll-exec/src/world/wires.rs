//! The links of a world: bounded queues of bytes, and one rank's view of them.

use super::mishap::Fates;
use super::random::Random;
use crate::{Fault, Interest, Link, Loan, Transport};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Reads and writes that a rank may do in one turn: few, so that ranks take turns often.
const CALLS_MAX: usize = 8;

/// What is held back comes after so many turns, on average.
const RELEASED_EVERY: u64 = 24;

/// The number of every rank's stage.
const STAGE: u64 = u64::MAX;

/// All links, by sender, receiver and channel.
#[derive(Debug)]
pub(crate) struct Wires {
    queues: BTreeMap<(u32, u32, u32), VecDeque<u8>>,
    lost: BTreeSet<u32>,
    /// Whether payloads carry checksums.
    pub(crate) checks: bool,
    /// From how many bytes on messages are lent.
    pub(crate) lend_bytes: Option<u64>,
    /// What befalls messages.
    pub(crate) fates: Fates,
    /// What is lent, as it was then.
    loans: Vec<Vec<u8>>,
    /// Buffers lie in memory that peers cannot read.
    pub(crate) ordinary: bool,
    /// Only so many ranks, one after the other, lend to each other.
    pub(crate) ranks_per_host: u32,
    /// What ranks have staged.
    stages: BTreeMap<u32, Vec<u8>>,
    /// Staged messages that will be lent to further peers.
    pub(crate) open_stages: u32,
    /// Messages lent and given back, by link.
    lent: BTreeMap<(u32, u32, u32), [u64; 2]>,
    pub(crate) link_bytes: usize,
    pub(crate) piece_bytes_max: usize,
}

impl Wires {
    pub(crate) fn new(link_bytes: usize, piece_bytes_max: usize) -> Wires {
        Wires {
            queues: BTreeMap::new(),
            lost: BTreeSet::new(),
            checks: false,
            lend_bytes: None,
            fates: Fates::default(),
            loans: Vec::new(),
            ordinary: false,
            ranks_per_host: u32::MAX,
            stages: BTreeMap::new(),
            open_stages: 0,
            lent: BTreeMap::new(),
            link_bytes,
            piece_bytes_max,
        }
    }

    /// Breaks all links of a rank; what it had sent can still be read.
    pub(crate) fn lose(&mut self, rank: u32) {
        self.lost.insert(rank);
    }

    /// Lets what was held back come. Says whether there was something.
    pub(crate) fn release(&mut self) -> bool {
        let released = self.fates.release();
        for (link, bytes) in &released {
            self.queues.entry(*link).or_default().extend(bytes);
        }
        !released.is_empty()
    }

    /// Whether a rank's interest is met: a broken link is, as it has an error to tell.
    pub(crate) fn meets(&self, rank: u32, interest: &Interest) -> bool {
        let Link { peer, channel } = interest.link;
        let held = |from, to| self.queues.get(&(from, to, channel)).map_or(0, VecDeque::len);
        self.lost.contains(&peer)
            || interest.readable && held(peer, rank) > 0
            || interest.writable && held(rank, peer) < self.link_bytes
            || interest.returned && self.is_returned(rank, interest.link)
    }

    fn is_returned(&self, rank: u32, link: Link) -> bool {
        self.lent.get(&(rank, link.peer, link.channel)).is_none_or(|[lent, returned]| lent == returned)
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
        // A turn in eight is not cut short, so that of very many lanes the last have theirs as well.
        let is_long = random.next().is_multiple_of(8);
        let calls_left = if is_long { usize::MAX } else { random.size(CALLS_MAX) };
        if random.next().is_multiple_of(RELEASED_EVERY) {
            wires.release();
        }
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
        let key = (self.rank, link.peer, link.channel);
        let offered: usize = parts.iter().map(|part| part.len()).sum();
        if self.wires.fates.is_amiss(key, parts, self.wires.checks) {
            let size = self.random.size(offered.min(self.wires.piece_bytes_max));
            let bytes: Vec<u8> = parts.iter().copied().flatten().copied().take(size).collect();
            let come = self.wires.fates.take(key, &bytes, self.random);
            self.wires.queues.entry(key).or_default().extend(come);
            return Ok(size);
        }
        let queue = self.wires.queues.entry(key).or_default();
        let room = self.wires.link_bytes.saturating_sub(queue.len()).min(offered);
        let size = self.random.size(room.min(self.wires.piece_bytes_max));
        queue.extend(parts.iter().copied().flatten().take(size));
        self.wires.fates.pass(key, size);
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

    fn checks(&self, _: Link) -> bool {
        self.wires.checks
    }

    fn lends(&self, link: Link) -> Option<u64> {
        let near = self.rank / self.wires.ranks_per_host == link.peer / self.wires.ranks_per_host;
        self.wires.lend_bytes.filter(|_| near)
    }

    /// What is lent is kept as it is now: a world has one thread, and cannot share the memory itself.
    fn lend(&mut self, _: Link, bytes: &[u8]) -> Option<Loan> {
        self.wires.lend_bytes.filter(|_| !self.wires.ordinary)?;
        self.wires.loans.push(bytes.to_vec());
        Some(Loan { memory: self.wires.loans.len() as u64 - 1, bytes: bytes.len() as u64, ..Loan::default() })
    }

    fn lent(&mut self, link: Link) {
        self.wires.lent.entry((self.rank, link.peer, link.channel)).or_default()[0] += 1;
    }

    /// One staged message follows the other; what is written to it is seen by all who are lent it from then on.
    fn stage(&mut self, bytes: u64) -> Option<u64> {
        self.wires.lend_bytes?;
        // Now and then there is no room.
        if self.random.next().is_multiple_of(8) {
            return None;
        }
        let stage = &mut self.wires.stages.entry(self.rank).or_default();
        let at = stage.len() as u64;
        stage.resize(stage.len() + usize::try_from(bytes).ok()?, 0xa5);
        self.wires.open_stages += 1;
        Some(at)
    }

    fn write_staged(&mut self, at: u64, bytes: &[u8]) {
        let stage = self.wires.stages.entry(self.rank).or_default();
        stage[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }

    fn lend_staged(&mut self, at: u64, bytes: u64) -> Loan {
        Loan { memory: STAGE, handle: 0, offset: at, bytes }
    }

    fn lent_staged(&mut self, link: Link, _: u64, last: bool) {
        self.wires.open_stages -= u32::from(last);
        self.lent(link);
    }

    fn is_returned(&mut self, link: Link) -> Result<bool, Fault> {
        match self.wires.is_returned(self.rank, link) {
            true => Ok(true),
            false => self.lost(link.peer).map(|()| false),
        }
    }

    fn borrow(&mut self, link: Link, loan: &Loan) -> Result<&[u8], Fault> {
        if loan.memory == STAGE {
            let stage = self.wires.stages.get(&link.peer).map_or(&[][..], Vec::as_slice);
            let end = loan.offset.saturating_add(loan.bytes) as usize;
            let detail = || format!("it lends {} B of a stage of {} B", loan.bytes, stage.len());
            let staged = stage.get(loan.offset as usize..end);
            return staged.ok_or_else(|| Fault::Damaged { peer: link.peer, detail: detail() });
        }
        let kept = usize::try_from(loan.memory).ok().and_then(|at| self.wires.loans.get(at));
        let kept = kept.filter(|kept| kept.len() as u64 == loan.bytes);
        let detail = || format!("it lends {} B of memory {}", loan.bytes, loan.memory);
        kept.map(Vec::as_slice).ok_or_else(|| Fault::Damaged { peer: link.peer, detail: detail() })
    }

    fn give_back(&mut self, link: Link) {
        self.wires.lent.entry((link.peer, self.rank, link.channel)).or_default()[1] += 1;
    }

    /// A world never sleeps: it looks at interests itself.
    fn wait(&mut self, _interests: &[Interest]) -> Result<(), Fault> {
        Ok(())
    }
}
