//! One rank's links through shared memory.

use crate::arena::{Borrower, Lender};
use crate::head::{Head, Presence};
use crate::options::{Options, Waiting};
use crate::processes::Machine;
use crate::protocol::{Damage, Reader, Writer};
use crate::ring::Ring;
use crate::threads::Threads;
use coll_exec::{Fault, Interest, Link, Loan, Transport};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// The longest sleep: so often a sleeping rank looks whether the job has failed.
const SLICE: Duration = Duration::from_millis(50);

/// How often a rank lets others run before it asks whether all is well.
const YIELDS: u32 = 16;

/// Once in so many operations a rank lets go of peers' memory that these have let go of.
const FORGET_EVERY: u64 = 256;

/// Writes of this size and more look at once whether the reader sleeps: it has something to do meanwhile.
const LARGE_BYTES: usize = 4 << 10;

/// The most channels that a pair of ranks may have.
pub const CHANNELS_MAX: u32 = 64;

/// Whether the job has failed elsewhere: asked again and again by a rank that waits, so the answer must be quick.
pub trait Watch: Send + Sync {
    /// Why this rank should give up, if it should.
    fn fault(&self) -> Option<Fault>;
}

/// One rank's links through shared memory, made by [`threads::world`](crate::threads::world) or
/// [`processes::join`](crate::processes::join).
///
/// Ends well by [`ShmTransport::shutdown`]; merely dropped, it is this rank's death to the others.
pub struct ShmTransport {
    rank: u32,
    world: u32,
    home: Home,
    ports: Vec<Port>,
    /// For each peer and channel, the place of its link in `ports`.
    table: Vec<u32>,
    channels: u32,
    head: Head,
    waiting: Waiting,
    /// Ranks on this machine, this one included, whether or not it shares memory with them.
    neighbours: u32,
    watch: Option<Arc<dyn Watch>>,
    limit: Duration,
    /// Whether anything moved since this rank last slept or yielded.
    moved: bool,
    /// Since when nothing has.
    idle_since: Option<Instant>,
    /// Ports on which something moved since their peers' sleep was looked at.
    touched: Vec<u32>,
    lender: Lender,
    lend_bytes: u64,
    borrower: Borrower,
    /// Operations that have begun.
    begun: u64,
}

/// Where rings come from.
pub(crate) enum Home {
    Threads(Arc<Threads>),
    Machine(Machine),
}

/// A link.
struct Port {
    link: Link,
    writer: Writer<Ring>,
    reader: Reader<Ring>,
    peer: Head,
    touched: bool,
    /// Messages that this rank has lent, and those of the peer that it has given back.
    lent: u64,
    given_back: u64,
    /// Pieces of what was lent that the peer had read when this rank last looked, and those that this rank has read.
    seen: u64,
    pieces: u64,
}

/// No link.
const NONE: u32 = u32::MAX;

impl ShmTransport {
    /// `neighbours` ranks are on this machine.
    pub(crate) fn new(
        rank: u32,
        world: u32,
        home: Home,
        head: Head,
        neighbours: u32,
        options: &Options,
    ) -> ShmTransport {
        ShmTransport {
            rank,
            world,
            home,
            ports: Vec::new(),
            table: Vec::new(),
            channels: 0,
            head,
            waiting: options.waiting(neighbours as usize),
            neighbours,
            watch: None,
            limit: Duration::from_secs(60),
            moved: false,
            idle_since: None,
            touched: Vec::new(),
            lender: Lender::default(),
            lend_bytes: options.lend_bytes(),
            borrower: Borrower::default(),
            begun: 0,
        }
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many ranks there are.
    pub fn world(&self) -> u32 {
        self.world
    }

    /// Whether a rank can be reached through shared memory.
    pub fn reaches(&self, peer: u32) -> bool {
        match &self.home {
            Home::Threads(threads) => threads.reaches(self.rank, peer),
            Home::Machine(machine) => machine.reaches(peer),
        }
    }

    /// Ranks that share this machine's cores, this one included, whether or not it shares memory with them.
    pub fn neighbours(&self) -> u32 {
        self.neighbours
    }

    /// The other ranks that cannot be reached this way, ascending. If a rank is among these for another one, so is the
    /// other for it.
    pub fn unreached(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.world).filter(|&peer| peer != self.rank && !self.reaches(peer))
    }

    /// Makes links, as far as they are not made yet. The other end may do so at any time, before or after; what is sent
    /// meanwhile stays where it is until it does.
    pub fn connect(&mut self, links: impl IntoIterator<Item = Link>) -> Result<(), Fault> {
        links.into_iter().try_for_each(|link| match self.place(link) {
            Some(_) => Ok(()),
            None => self.open(link),
        })
    }

    fn open(&mut self, link: Link) -> Result<(), Fault> {
        let Link { peer, channel } = link;
        if !self.reaches(peer) || channel >= CHANNELS_MAX {
            return Err(Fault::NoLink { peer, channel });
        }
        let (outward, inward, head) = match &self.home {
            Home::Threads(threads) => threads.rings(self.rank, link),
            Home::Machine(machine) => machine.rings(self.rank, link),
        }
        .map_err(|error| Fault::PeerLost {
            peer,
            detail: format!("no shared memory for channel {channel}: {error}"),
        })?;
        let place = self.ports.len() as u32;
        self.ports.push(Port {
            link,
            writer: Writer::new(outward),
            reader: Reader::new(inward),
            peer: head,
            touched: false,
            lent: 0,
            given_back: 0,
            seen: 0,
            pieces: 0,
        });
        if channel >= self.channels {
            self.channels = channel + 1;
            self.table = vec![NONE; self.world as usize * self.channels as usize];
            for (place, port) in self.ports.iter().enumerate() {
                self.table[index(port.link, self.channels)] = place as u32;
            }
        }
        self.table[index(link, self.channels)] = place;
        self.touched.reserve(self.ports.len());
        Ok(())
    }

    /// Asks a watch, too, whether to give up.
    pub fn set_watch(&mut self, watch: Arc<dyn Watch>) {
        self.watch = Some(watch);
    }

    /// Begins an operation: from now on, to wait for `limit` without a byte moving is a fault.
    pub fn begin(&mut self, limit: Duration) {
        self.limit = limit;
        self.moved = true;
        self.begun += 1;
        if self.begun.is_multiple_of(FORGET_EVERY) {
            self.borrower.forget();
        }
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

    /// Whether the peer has read more of what was lent on a link since this was last asked: as long as it does, something
    /// moves, however long the message is.
    pub fn has_read_on(&mut self, link: Link) -> bool {
        let Ok(port) = self.port(link) else { return false };
        let pieces = port.writer.shared().pieces();
        let more = std::mem::replace(&mut port.seen, pieces) != pieces;
        self.moved |= more;
        more
    }

    /// Gives up. Ranks that are threads of this process hear the first reason that any of them gave; processes see that
    /// this one is gone. Returns an earlier reason, if one is known.
    pub fn abort(&mut self, reason: &str) -> Option<Fault> {
        let earlier = self.fault();
        if let Home::Threads(threads) = &self.home {
            threads.fail(Fault::Aborted { origin: self.rank, reason: reason.to_owned() });
        }
        self.leave(Presence::Dropped);
        earlier
    }

    /// Leaves in good order, which is no death to the others.
    pub fn shutdown(self) {
        self.leave(Presence::Left);
    }

    fn leave(&self, presence: Presence) {
        self.head.go(presence);
        fence(Ordering::SeqCst);
        self.ports.iter().for_each(|port| port.peer.wake());
    }

    #[inline]
    fn place(&self, link: Link) -> Option<usize> {
        if link.channel >= self.channels {
            return None;
        }
        let place = *self.table.get(index(link, self.channels))?;
        (place != NONE).then_some(place as usize)
    }

    #[inline]
    fn port(&mut self, link: Link) -> Result<&mut Port, Fault> {
        match self.place(link) {
            Some(place) => Ok(&mut self.ports[place]),
            None => Err(Fault::NoLink { peer: link.peer, channel: link.channel }),
        }
    }

    /// Notes that something moved on a link, so that its other end may be woken.
    #[inline]
    fn touch(&mut self, link: Link) {
        self.moved = true;
        if let Some(place) = self.place(link) {
            let port = &mut self.ports[place];
            if !port.touched {
                port.touched = true;
                self.touched.push(place as u32);
            }
        }
    }

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

    /// What a watch or the other threads say.
    fn fault(&self) -> Option<Fault> {
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

#[inline]
fn index(link: Link, channels: u32) -> usize {
    link.peer as usize * channels as usize + link.channel as usize
}

/// Damage as a fault of a link.
#[cold]
fn damaged(link: Link, damage: Damage) -> Fault {
    Fault::Damaged { peer: link.peer, detail: damage.0 }
}

impl Transport for ShmTransport {
    #[inline]
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        let taken = self.port(link)?.writer.write(parts).map_err(|damage| damaged(link, damage))?;
        if taken > 0 {
            self.touch(link);
        }
        if taken >= LARGE_BYTES {
            self.flush();
        }
        Ok(taken)
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        let mut got = 0;
        while got < into.len() {
            let come = self.port(link)?.reader.peek().map_err(|damage| damaged(link, damage))?;
            let len = come.len().min(into.len() - got);
            if len == 0 {
                break;
            }
            into[got..got + len].copy_from_slice(&come[..len]);
            self.consume(link, len);
            got += len;
        }
        Ok(got)
    }

    #[inline]
    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        self.port(link)?.reader.peek().map(Some).map_err(|damage| damaged(link, damage))
    }

    #[inline]
    fn consume(&mut self, link: Link, bytes: usize) {
        let Ok(port) = self.port(link) else { return };
        if port.reader.consume(bytes) {
            self.touch(link);
        } else {
            self.moved = true;
        }
    }

    #[inline]
    fn lends(&self, _: Link) -> Option<u64> {
        Some(self.lend_bytes)
    }

    #[inline]
    fn lend(&mut self, _: Link, bytes: &[u8]) -> Option<Loan> {
        self.lender.find(bytes)
    }

    #[inline]
    fn lent(&mut self, link: Link) {
        if let Ok(port) = self.port(link) {
            port.lent += 1;
        }
        // The reader has something to do, and this rank nothing before it has done it.
        self.flush();
    }

    #[inline]
    fn is_returned(&mut self, link: Link) -> Result<bool, Fault> {
        let port = self.port(link)?;
        let (returned, lent) = (port.writer.shared().returned(), port.lent);
        if returned > lent {
            let detail = format!("{returned} messages are given back, of {lent} lent");
            return Err(Fault::Damaged { peer: link.peer, detail });
        }
        self.moved |= returned == lent;
        Ok(returned == lent)
    }

    #[inline]
    fn borrow(&mut self, link: Link, loan: &Loan) -> Result<&[u8], Fault> {
        self.moved = true;
        let pid = match &self.home {
            Home::Threads(_) => std::process::id(),
            Home::Machine(machine) => machine.pid(link.peer).unwrap_or(0),
        };
        let piece = self.borrower.piece(link.peer, pid, loan);
        piece.map_err(|detail| Fault::Damaged { peer: link.peer, detail })
    }

    #[inline]
    fn still_lent(&mut self, link: Link, loan: &Loan) -> Result<(), Fault> {
        // After what was read.
        fence(Ordering::SeqCst);
        let peer = link.peer;
        let port = self.port(link)?;
        port.pieces += 1;
        port.reader.shared().set_pieces(port.pieces);
        let revoked = port.peer.has_revoked();
        if revoked || self.borrower.is_gone(peer, loan) {
            let detail = "it gave up while its memory was being read".to_owned();
            return Err(self.fault().unwrap_or(Fault::PeerLost { peer, detail }));
        }
        Ok(())
    }

    #[inline]
    fn give_back(&mut self, link: Link) {
        if let Ok(port) = self.port(link) {
            port.given_back += 1;
            port.reader.shared().set_returned(port.given_back);
            self.touch(link);
            self.flush();
        }
    }

    fn revoke(&mut self) {
        self.head.revoke();
    }

    #[inline]
    fn flush(&mut self) {
        if self.touched.is_empty() {
            return;
        }
        fence(Ordering::SeqCst);
        for place in self.touched.drain(..) {
            let port = &mut self.ports[place as usize];
            port.touched = false;
            port.peer.wake();
        }
    }

    #[inline]
    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        while !self.wait_for(interests, Duration::MAX)? {}
        Ok(())
    }
}

impl Drop for ShmTransport {
    fn drop(&mut self) {
        // Nothing new if it has left or given up before.
        self.leave(Presence::Dropped);
    }
}

impl std::fmt::Debug for ShmTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ShmTransport(rank {} of {}, {} links)", self.rank, self.world, self.ports.len())
    }
}
