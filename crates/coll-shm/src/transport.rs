//! One rank's links through shared memory.

use crate::arena::{Borrower, Lender};
use crate::head::{Head, Presence};
use crate::ledger::{self, Ledger};
use crate::memory::Block;
use crate::options::{Options, Waiting};
use crate::processes::Machine;
use crate::protocol::{Damage, Reader, Writer};
use crate::ring::Ring;
use crate::stage::{self, STAGE, Stage};
use crate::threads::Threads;
use crate::wait::Watch;
use coll_exec::{Fault, Interest, Link, Loan, Look, Sight, Transport};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// Once in so many operations a rank lets go of peers' memory that these have let go of.
const FORGET_EVERY: u64 = 256;

/// Writes of this size and more look at once whether the reader sleeps: it has something to do meanwhile.
const LARGE_BYTES: usize = 4 << 10;

/// The most channels that a pair of ranks may have.
pub const CHANNELS_MAX: u32 = 64;

/// One rank's links through shared memory, made by [`threads::world`](crate::threads::world) or
/// [`processes::join`](crate::processes::join).
///
/// Ends well by [`ShmTransport::shutdown`]; merely dropped, it is this rank's death to the others.
pub struct ShmTransport {
    rank: u32,
    world: u32,
    pub(crate) home: Home,
    pub(crate) ports: Vec<Port>,
    /// For each peer and channel, the place of its link in `ports`.
    table: Vec<u32>,
    channels: u32,
    pub(crate) head: Head,
    pub(crate) waiting: Waiting,
    /// Ranks on this machine, this one included, whether or not it shares memory with them.
    neighbours: u32,
    pub(crate) watch: Option<Arc<dyn Watch>>,
    pub(crate) limit: Duration,
    /// Whether anything moved since this rank last slept or yielded.
    pub(crate) moved: bool,
    /// Since when nothing has.
    pub(crate) idle_since: Option<Instant>,
    /// Ports on which something moved since their peers' sleep was looked at.
    touched: Vec<u32>,
    lender: Lender,
    lend_bytes: u64,
    borrower: Borrower,
    /// None before it is first used; an error if there is no memory for it.
    stage: Option<Result<Stage, ()>>,
    show_bytes: u64,
    /// What another thread shows, as long as it is being read.
    look: Option<Look>,
    /// Operations that have begun.
    begun: u64,
}

/// Where rings come from.
pub(crate) enum Home {
    Threads(Arc<Threads>),
    Machine(Machine),
}

/// A link.
pub(crate) struct Port {
    pub(crate) link: Link,
    pub(crate) writer: Writer<Ring>,
    pub(crate) reader: Reader<Ring>,
    pub(crate) peer: Head,
    touched: bool,
    /// Messages that this rank has lent, and those of the peer that it has given back.
    pub(crate) lent: u64,
    given_back: u64,
    /// For each half of this rank's stage the last of these that lay there.
    pub(crate) staged: [u64; 2],
    /// The peer's stage, once it has been used.
    stage: Option<Arc<Block>>,
    /// Pieces of what was lent that the peer had read when this rank last looked, and those that this rank has read.
    seen: u64,
    pieces: u64,
    /// What threads show each other here: outwards and inwards. None between processes.
    ledgers: Option<[Arc<Ledger>; 2]>,
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
            stage: None,
            show_bytes: options.show_bytes(),
            look: None,
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

    /// What the system refused that keeps a rank from being reached, if that is the reason.
    pub fn why_unreached(&self, peer: u32) -> Option<&str> {
        match &self.home {
            Home::Machine(machine) if !self.reaches(peer) => machine.reason(self.rank, peer),
            _ => None,
        }
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
        let ledgers = match &self.home {
            Home::Threads(threads) => Some(threads.ledgers(self.rank, link)),
            Home::Machine(_) => None,
        };
        let place = self.ports.len() as u32;
        self.ports.push(Port {
            link,
            writer: Writer::new(outward),
            reader: Reader::new(inward),
            peer: head,
            touched: false,
            lent: 0,
            given_back: 0,
            staged: [0; 2],
            stage: None,
            seen: 0,
            pieces: 0,
            ledgers,
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
        self.look = None;
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
    pub(crate) fn port(&mut self, link: Link) -> Result<&mut Port, Fault> {
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

    /// Why what a peer lends cannot be read.
    #[cold]
    fn gave_up(&self, peer: u32) -> Fault {
        let detail = "it gave up while its memory was being read".to_owned();
        self.fault().unwrap_or(Fault::PeerLost { peer, detail })
    }

    /// A rank's stage: this one's, if no peer is named.
    fn stage_of(&self, peer: Option<u32>) -> std::io::Result<Arc<Block>> {
        match &self.home {
            Home::Threads(threads) => threads.stage(peer.unwrap_or(self.rank)),
            Home::Machine(machine) => machine.stage(peer).map(Arc::new),
        }
    }

    /// What a peer lends of its stage.
    fn borrow_staged(&mut self, link: Link, loan: &Loan) -> Result<&[u8], Fault> {
        let failed = |detail| Fault::Damaged { peer: link.peer, detail };
        if self.port(link)?.stage.is_none() {
            let block =
                self.stage_of(Some(link.peer)).map_err(|error| failed(format!("its stage: {error}")))?;
            self.port(link)?.stage = Some(block);
        }
        let block = self.port(link)?.stage.as_ref().expect("invariant: it was just mapped");
        stage::piece(block, loan.offset, loan.bytes).map_err(failed)
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
    fn shows(&self, _: Link) -> Option<u64> {
        matches!(self.home, Home::Threads(_)).then_some(self.show_bytes)
    }

    fn show(&mut self, link: Link, sight: Sight) -> Option<Loan> {
        let [outward, _] = self.port(link).ok()?.ledgers.as_ref()?;
        Some(outward.put(sight))
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
    fn stage(&mut self, bytes: u64) -> Option<u64> {
        if self.stage.is_none() {
            self.stage = Some(self.stage_of(None).map(Stage::new).map_err(|_| ()));
        }
        match &mut self.stage {
            Some(Ok(stage)) => stage.take(bytes, &self.ports),
            _ => None,
        }
    }

    #[inline]
    fn write_staged(&mut self, at: u64, bytes: &[u8]) {
        if let Some(Ok(stage)) = &mut self.stage {
            stage.write(at, bytes);
        }
    }

    #[inline]
    fn lend_staged(&mut self, at: u64, bytes: u64) -> Loan {
        Loan { memory: STAGE, handle: 0, offset: at, bytes }
    }

    #[inline]
    fn lent_staged(&mut self, link: Link, at: u64, last: bool) {
        if let (Some(place), Some(Ok(stage))) = (self.place(link), &mut self.stage) {
            let port = &mut self.ports[place];
            port.lent += 1;
            stage.lent(port, at, last);
        }
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
        if loan.memory == STAGE {
            return self.borrow_staged(link, loan);
        }
        if ledger::holds(loan)
            && let Some([_, inward]) = &self.port(link)?.ledgers
        {
            let look = inward.look(loan);
            let look = look.map_err(|detail| Fault::Damaged { peer: link.peer, detail })?;
            let look: &[u8] = self.look.insert(look.ok_or_else(|| self.gave_up(link.peer))?);
            return Ok(look);
        }
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
        // What was staged stays, whatever becomes of the peer.
        if loan.memory == STAGE {
            return Ok(());
        }
        let revoked = port.peer.has_revoked();
        // What a thread shows is there until this rank says that it has read it.
        let shown = self.look.take().is_some();
        if revoked || !shown && self.borrower.is_gone(peer, loan) {
            return Err(self.gave_up(peer));
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
