//! A world whose ranks are threads of one process: rings on the heap, made when the first of two ends asks for one.

use crate::head::Head;
use crate::ledger::Ledger;
use crate::memory::Block;
use crate::options::Options;
use crate::ring::Ring;
use crate::stage::STAGE_BYTES;
use crate::transport::{Home, ShmTransport};
use coll_exec::{Fault, Link};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All ranks of a world, by rank. Each goes to a thread of its own.
pub fn world(ranks: u32) -> io::Result<Vec<ShmTransport>> {
    world_with(ranks, &Options::default())
}

/// All ranks of a world, by rank.
pub fn world_with(ranks: u32, options: &Options) -> io::Result<Vec<ShmTransport>> {
    let ranks_per_host = options.ranks_per_host.unwrap_or(ranks).max(1);
    let machine = |rank: u32| options.machines.get(rank as usize).copied().unwrap_or(rank / ranks_per_host);
    let threads = Arc::new(Threads {
        heads: (0..ranks).map(|_| Head::private()).collect::<io::Result<_>>()?,
        ring_bytes: options.ring_bytes(ranks),
        machines: (0..ranks).map(machine).collect(),
        rings: Mutex::default(),
        stages: Mutex::default(),
        ledgers: Mutex::default(),
        failed: AtomicBool::new(false),
        fault: Mutex::default(),
    });
    let rank = |rank: u32| {
        let home = Home::Threads(threads.clone());
        ShmTransport::new(rank, ranks, home, threads.heads[rank as usize].clone(), ranks, options)
    };
    Ok((0..ranks).map(rank).collect())
}

/// What the threads share.
pub(crate) struct Threads {
    heads: Vec<Head>,
    ring_bytes: usize,
    /// By rank: only those of one share memory.
    machines: Vec<u32>,
    /// By sender, receiver and channel.
    rings: Mutex<BTreeMap<(u32, u32, u32), Arc<Block>>>,
    /// By rank.
    stages: Mutex<BTreeMap<u32, Arc<Block>>>,
    /// By the same.
    ledgers: Mutex<BTreeMap<(u32, u32, u32), Arc<Ledger>>>,
    failed: AtomicBool,
    /// The first fault that made a rank give up.
    fault: Mutex<Option<Fault>>,
}

impl Threads {
    /// The ring outwards, the ring inwards and the other end's head.
    pub(crate) fn rings(&self, rank: u32, link: Link) -> io::Result<(Ring, Ring, Head)> {
        let outward = self.ring(rank, link.peer, link.channel)?;
        let inward = self.ring(link.peer, rank, link.channel)?;
        Ok((outward, inward, self.heads[link.peer as usize].clone()))
    }

    /// What is shown on a link: outwards and inwards.
    pub(crate) fn ledgers(&self, rank: u32, link: Link) -> [Arc<Ledger>; 2] {
        let Link { peer, channel } = link;
        let mut ledgers = locked(&self.ledgers);
        [(rank, peer, channel), (peer, rank, channel)].map(|way| ledgers.entry(way).or_default().clone())
    }

    pub(crate) fn reaches(&self, rank: u32, peer: u32) -> bool {
        let machine = |rank: u32| self.machines.get(rank as usize);
        peer != rank && machine(peer).is_some_and(|other| machine(rank) == Some(other))
    }

    /// A rank's stage, made when it is first asked for.
    pub(crate) fn stage(&self, rank: u32) -> io::Result<Arc<Block>> {
        let mut stages = locked(&self.stages);
        if let Some(block) = stages.get(&rank) {
            return Ok(block.clone());
        }
        let block = Arc::new(Block::heap(STAGE_BYTES)?);
        stages.insert(rank, block.clone());
        Ok(block)
    }

    fn ring(&self, from: u32, to: u32, channel: u32) -> io::Result<Ring> {
        let mut rings = locked(&self.rings);
        let block = match rings.get(&(from, to, channel)) {
            Some(block) => block.clone(),
            None => {
                let block = Arc::new(Block::heap(Ring::block_bytes(self.ring_bytes))?);
                rings.insert((from, to, channel), block.clone());
                block
            }
        };
        Ok(Ring::new(block, self.ring_bytes))
    }

    pub(crate) fn fail(&self, fault: Fault) {
        locked(&self.fault).get_or_insert(fault);
        self.failed.store(true, Ordering::Release);
    }

    pub(crate) fn fault(&self) -> Option<Fault> {
        if self.failed.load(Ordering::Acquire) { locked(&self.fault).clone() } else { None }
    }
}

/// A thread that panicked left nothing half done behind these locks.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
