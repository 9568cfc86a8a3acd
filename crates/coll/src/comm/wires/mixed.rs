//! Waiting where some peers are reached through shared memory and others over TCP.
//!
//! Each transport counts by itself how long nothing has moved on its links, and neither sees the other's. So whatever has
//! moved on one is told to both before a rank waits: that a plan works on near links for longer than the time limit makes
//! nobody late on the far ones, or the other way round.

use super::{ASK_AFTER, Wires};
use coll_exec::{Fault, Interest};
use std::thread;
use std::time::{Duration, Instant};

/// A rank that waits for both ways gives its core away so often, then sleeps on its sockets for so long between looks at
/// memory: waking takes about as long.
const YIELDS: u32 = 200;
const NAP: Duration = Duration::from_micros(100);

impl Wires {
    /// Waits for links of either kind.
    pub(super) fn wait_mixed(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        if std::mem::take(&mut self.moved) {
            self.renew();
        }
        self.near_interests.clear();
        self.far_interests.clear();
        for interest in interests {
            match self.near.get(interest.link.peer as usize) {
                Some(true) => self.near_interests.push(*interest),
                _ => self.far_interests.push(*interest),
            }
        }
        match (self.near_interests.is_empty(), self.far_interests.is_empty()) {
            (false, true) => self.wait_near(interests),
            (true, _) => {
                // Near peers that sleep are to find what came before this.
                if let Some(shm) = &mut self.shm {
                    coll_exec::Transport::flush(shm);
                }
                coll_exec::Transport::wait(self.tcp_mut(), interests)
            }
            (false, false) => self.wait_for_both(interests),
        }
    }

    /// Something has moved, on whichever link: every clock starts anew.
    fn renew(&mut self) {
        self.waited = Duration::ZERO;
        (self.idle_since, self.yields) = (None, 0);
        self.tcp_mut().progressed();
        let spell = self.limit.min(ASK_AFTER);
        if let Some(shm) = &mut self.shm {
            shm.begin(spell);
        }
    }

    /// Looks, gives its core away, naps.
    fn wait_for_both(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        let now = Instant::now();
        let idle = now - *self.idle_since.get_or_insert(now);
        if let Some(fault) = self.watch.fault() {
            return Err(fault);
        }
        if idle >= self.limit {
            let peers = interests.iter().map(|interest| interest.link.peer);
            return Err(self.tcp_mut().explain_timeout(peers));
        }
        if let Some(shm) = &mut self.shm
            && shm.poll_ready(&self.near_interests)?
        {
            return Ok(());
        }
        // Until it sleeps, sockets are asked by the executor itself when this returns.
        if self.yields < YIELDS {
            self.yields += 1;
            thread::yield_now();
            return Ok(());
        }
        let far = std::mem::take(&mut self.far_interests);
        let waited = self.tcp_mut().wait_for(&far, NAP);
        self.far_interests = far;
        waited.map(|_| ())
    }
}
