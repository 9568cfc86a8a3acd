//! How a rank waits for its links: it looks again and again, then lets others run, then sleeps; and now and then it asks
//! whether the job has failed.

use crate::head::Presence;
use crate::transport::{Home, ShmTransport};
use coll_exec::{Fault, Interest, Transport};
use std::time::{Duration, Instant};

/// The longest sleep: so often a sleeping rank looks whether the job has failed.
const SLICE: Duration = Duration::from_millis(50);

/// How often a rank lets others run before it asks whether all is well.
const YIELDS: u32 = 16;

/// Whether the job has failed elsewhere: asked again and again by a rank that waits, so the answer must be quick.
pub trait Watch: Send + Sync {
    /// Why this rank should give up, if it should.
    fn fault(&self) -> Option<Fault>;
}

impl ShmTransport {
    #[inline]
    fn is_ready(&mut self, interests: &[Interest]) -> Result<bool, Fault> {
        for interest in interests {
            let port = self.port(interest.link)?;
            if interest.readable && port.reader.is_readable()
                || interest.writable && port.writer.is_writable()
                || interest.returned && port.writer.shared().returned() == port.lent
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether one of the links may do what is asked of it now, without waiting. A link with news of a fault may.
    pub fn poll_ready(&mut self, interests: &[Interest]) -> Result<bool, Fault> {
        self.flush();
        let ready = self.is_ready(interests)?;
        if !ready {
            self.check(interests)?;
        }
        Ok(ready)
    }

    /// What a watch or the other threads say.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let said = self.watch.as_ref().and_then(|watch| watch.fault());
        said.or_else(|| match &self.home {
            Home::Threads(threads) => threads.fault(),
            Home::Machine(_) => None,
        })
    }

    /// Whether the job has failed, or a peer is gone that is waited for.
    fn check(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        if let Some(fault) = self.fault() {
            return Err(fault);
        }
        let gone = self.ports.iter().find_map(|port| {
            let presence = match (port.peer.presence(), &self.home) {
                (Presence::Here, Home::Machine(machine)) if machine.is_dead(port.link.peer) => {
                    Presence::Dropped
                }
                (presence, _) => presence,
            };
            let awaited = || interests.iter().any(|interest| interest.link == port.link);
            let detail = match presence {
                Presence::Dropped => "it ended in the middle of things",
                Presence::Left if awaited() => "it has left",
                _ => return None,
            };
            Some(Fault::PeerLost { peer: port.link.peer, detail: detail.to_owned() })
        });
        let Some(gone) = gone else { return Ok(()) };
        // What it did before it went counts first; and whoever makes it go may have said why.
        match self.is_ready(interests)? {
            true => Ok(()),
            false => Err(self.fault().unwrap_or(gone)),
        }
    }

    /// Waits like [`Transport::wait`], but no longer than `patience`, which is no fault. Says whether a link is ready.
    #[inline]
    pub fn wait_for(&mut self, interests: &[Interest], patience: Duration) -> Result<bool, Fault> {
        self.flush();
        for _ in 0..self.waiting.spins {
            if self.is_ready(interests)? {
                return Ok(true);
            }
            std::hint::spin_loop();
        }
        self.wait_long(interests, patience)
    }

    /// Yields, then sleeps. Says whether a link is ready; not if `patience` is over first.
    #[cold]
    fn wait_long(&mut self, interests: &[Interest], patience: Duration) -> Result<bool, Fault> {
        let began = Instant::now();
        if std::mem::take(&mut self.moved) || self.idle_since.is_none() {
            self.idle_since = Some(began);
        }
        let mut idle_since = self.idle_since.unwrap_or(began);
        let mut now = began;
        loop {
            let yields = now - began < self.waiting.yielding;
            // To ask after the peers costs as much as to let them run: not before that has been tried.
            if !yields || now > began {
                if self.is_ready(interests)? {
                    return Ok(true);
                }
                self.check(interests)?;
            }
            if interests.iter().any(|interest| interest.returned && self.has_read_on(interest.link)) {
                idle_since = now;
                self.idle_since = Some(now);
            }
            let left = self.limit.saturating_sub(now - idle_since);
            if left.is_zero() {
                self.check(interests)?;
                return Err(Fault::TimedOut { limit_s: self.limit.as_secs_f64() });
            }
            let patient = patience.saturating_sub(now - began);
            if patient.is_zero() {
                return Ok(false);
            }
            if yields {
                for _ in 0..YIELDS {
                    std::thread::yield_now();
                    if self.is_ready(interests)? {
                        return Ok(true);
                    }
                }
            } else {
                let head = self.head.clone();
                head.sleep(left.min(SLICE).min(patient), || {
                    !matches!(self.is_ready(interests), Ok(false)) || self.check(interests).is_err()
                });
            }
            now = Instant::now();
        }
    }
}
