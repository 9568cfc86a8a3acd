//! A network between ranks that are threads: streams of bytes with little room, that take and give as many as a seed says. What
//! it does with pinned memory it tells the stand-in, which finds it if a copy is still under way there.

use super::Random;
use super::devices::LIMIT;
use coll_exec::{Fault, Interest, Link, Transport};
use coll_gpu::{Exchange, Network};
use cuda_stand_in::control::Witness;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are under way on a link.
const ROOM: usize = 200;

/// All links, and what all ranks are told.
#[derive(Default)]
pub struct Mesh {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By sender, receiver and channel.
    links: BTreeMap<(u32, u32, u32), VecDeque<u8>>,
    fault: Option<Fault>,
    /// A rank's test has failed, and it comes to no exchange any more.
    is_failed: bool,
    /// A byte of a link that arrives otherwise than it was sent: the link, and which one.
    damage: Option<((u32, u32, u32), usize)>,
    /// The blobs of exchanges, by number.
    told: BTreeMap<u32, BTreeMap<u32, Vec<u8>>>,
}

impl Mesh {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A rank is gone: all others hear of it.
    pub fn lose(&self, peer: u32) {
        let fault = Fault::PeerLost { peer, detail: "it was dropped".to_string() };
        self.state().fault.get_or_insert(fault);
        self.changed.notify_all();
    }

    /// A rank's test has failed.
    pub fn fail(&self, rank: u32) {
        self.state().is_failed = true;
        self.lose(rank);
    }

    /// Turns a bit of the byte of this number that a link carries.
    pub fn damage(&self, from: u32, to: u32, byte: usize) {
        self.state().damage = Some(((from, to, 0), byte));
    }

    /// One rank's end.
    pub fn port(self: &Arc<Self>, rank: u32, ranks: u32, seed: u64, witness: Witness) -> Port {
        let random = Random(seed ^ u64::from(rank) << 32);
        Port { mesh: self.clone(), rank, ranks, random, witness, limit: LIMIT, idle: None, round: 0 }
    }
}

/// One rank's end of a mesh.
pub struct Port {
    mesh: Arc<Mesh>,
    rank: u32,
    ranks: u32,
    random: Random,
    witness: Witness,
    /// After so long without a byte a rank is late.
    pub limit: Duration,
    idle: Option<Instant>,
    round: u32,
}

impl Port {
    fn some(&mut self, most: usize) -> usize {
        match self.random.below(4) {
            0 => 0,
            1 => most.min(1 + self.random.below(40)),
            _ => most,
        }
    }
}

impl Transport for Port {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        let offered: usize = parts.iter().map(|part| part.len()).sum();
        let most = self.some(offered);
        let mut state = self.mesh.state();
        let key = (self.rank, link.peer, link.channel);
        let queue = state.links.entry(key).or_default();
        let taken = most.min(ROOM.saturating_sub(queue.len()));
        let mut left = taken;
        for part in parts {
            let part = &part[..left.min(part.len())];
            self.witness.touches(part.as_ptr() as u64, part.len() as u64, false);
            queue.extend(part);
            left -= part.len();
        }
        if let Some((_, byte)) = state.damage.as_mut().filter(|(damaged, _)| *damaged == key) {
            match byte.checked_sub(taken) {
                Some(later) => *byte = later,
                None => {
                    let at = *byte;
                    state.damage = None;
                    let queue = state.links.entry(key).or_default();
                    let start = queue.len() - taken;
                    queue[start + at] ^= 0x10;
                }
            }
        }
        if taken > 0 {
            self.idle = None;
            self.mesh.changed.notify_all();
        }
        Ok(taken)
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        let most = self.some(into.len());
        let mut state = self.mesh.state();
        let queue = state.links.entry((link.peer, self.rank, link.channel)).or_default();
        let got = most.min(queue.len());
        self.witness.touches(into.as_ptr() as u64, got as u64, true);
        into.iter_mut().zip(queue.drain(..got)).for_each(|(to, from)| *to = from);
        if got > 0 {
            self.idle = None;
            self.mesh.changed.notify_all();
        }
        Ok(got)
    }

    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        self.rest(interests, Duration::from_millis(1))
    }
}

impl Network for Port {
    fn rest(&mut self, interests: &[Interest], most: Duration) -> Result<(), Fault> {
        let state = self.mesh.state();
        if let Some(fault) = &state.fault {
            return Err(fault.clone());
        }
        match (interests.is_empty(), self.idle) {
            (true, _) => self.idle = None,
            (false, None) => self.idle = Some(Instant::now()),
            (false, Some(since)) if since.elapsed() > self.limit => {
                return Err(Fault::TimedOut { limit_s: self.limit.as_secs_f64() });
            }
            _ => {}
        }
        let most = most.min(Duration::from_millis(1));
        drop(self.mesh.changed.wait_timeout(state, most));
        Ok(())
    }

    fn give_up(&mut self, reason: &str) {
        let fault = Fault::Aborted { origin: self.rank, reason: reason.to_string() };
        self.mesh.state().fault.get_or_insert(fault);
        self.mesh.changed.notify_all();
    }
}

impl Exchange for Port {
    fn exchange(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        self.round += 1;
        let (ranks, start) = (self.ranks as usize, Instant::now());
        let mut state = self.mesh.state();
        state.told.entry(self.round).or_default().insert(self.rank, bytes);
        self.mesh.changed.notify_all();
        loop {
            if let Some(told) = state.told.get(&self.round).filter(|told| told.len() == ranks) {
                return Ok(told.values().cloned().collect());
            }
            if start.elapsed() > LIMIT || state.is_failed {
                return Err(format!("exchange {} is not over", self.round));
            }
            let waited = self.mesh.changed.wait_timeout(state, Duration::from_millis(20));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
