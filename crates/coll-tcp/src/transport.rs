//! A rank's links while the job runs: plain non-blocking sockets of the calling thread, and one `poll` to sleep in.
//!
//! What fails on a link is often the shadow of something else: a rank that gave up closes its links, and its word of
//! why comes by another way. So a broken link is not an error at once. It is set aside for [`GRACE`], in which the
//! control thread may learn the reason; only then is the link's own end the error.

use std::io::{self, IoSlice};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coll_exec::{Fault, Interest, Link, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use crate::control::{Board, Control, drain};
use crate::links::Connected;
use crate::options::JoinOptions;
use crate::wire::{BLOB_LIMIT_BYTES, ToServer};

/// How long a broken link waits for a better reason than its own.
const GRACE: Duration = Duration::from_millis(400);

/// How many parts one call to the system takes; more are left to the next.
const PARTS_AT_A_TIME: usize = 16;

/// One rank's connections over TCP. Made by [`join`](crate::join()).
///
/// Ends well by [`shutdown`](TcpTransport::shutdown); merely dropped, it is this rank's death to the others.
#[derive(Debug)]
pub struct TcpTransport {
    rank: u32,
    world: u32,
    /// By link, ascending.
    wires: Vec<Wire>,
    /// None in a world of one rank.
    control: Option<Control>,
    board: Arc<Board>,
    woken: UnixStream,
    limit: Duration,
    /// How long this rank has slept since anything moved.
    slept: Duration,
    /// Whether anything moved since it last slept.
    moved: bool,
    /// The number of the next exchange.
    sequence: u64,
    /// Kept from one sleep to the next, so that sleeping allocates nothing.
    poll_space: Vec<PollFd<'static>>,
}

#[derive(Debug)]
struct Wire {
    link: Link,
    socket: TcpStream,
    broken: Option<Break>,
}

#[derive(Debug)]
struct Break {
    since: Instant,
    detail: String,
}

impl TcpTransport {
    pub(crate) fn new(
        options: &JoinOptions,
        connected: Connected,
        control: Option<Control>,
        board: Arc<Board>,
        woken: UnixStream,
    ) -> TcpTransport {
        let wires: Vec<Wire> =
            connected.into_iter().map(|(link, socket)| Wire { link, socket, broken: None }).collect();
        TcpTransport {
            rank: options.rank,
            world: options.world,
            poll_space: Vec::with_capacity(wires.len() + 1),
            wires,
            control,
            board,
            woken,
            limit: options.time_limit,
            slept: Duration::ZERO,
            moved: false,
            sequence: 0,
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

    /// The links, ascending.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        self.wires.iter().map(|wire| wire.link)
    }

    /// Begins an operation: from now on, to sleep for `limit` in all without a byte moving is a fault.
    pub fn begin(&mut self, limit: Duration) {
        self.limit = limit;
        self.slept = Duration::ZERO;
        self.moved = false;
    }

    /// Gives up: every rank will hear of it, with the first reason that any of them gave. Does not wait. Returns
    /// that reason, if another's is already known here.
    pub fn abort(&mut self, reason: &str) -> Option<Fault> {
        let earlier = self.board.fault();
        if let Some(control) = &mut self.control {
            control.abort(reason);
        }
        self.board.fail(Fault::Aborted { origin: self.rank, reason: reason.to_owned() });
        earlier
    }

    /// Gives a small blob to every rank and takes one of each, by rank: a barrier, too. Every rank must come, in the
    /// same order of exchanges. A blob has at most [`BLOB_LIMIT_BYTES`].
    pub fn exchange(&mut self, blob: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        if blob.len() > BLOB_LIMIT_BYTES {
            let reason =
                format!("a blob of {} bytes for an exchange, of {BLOB_LIMIT_BYTES} allowed", blob.len());
            self.abort(&reason);
            return Err(Fault::Aborted { origin: self.rank, reason });
        }
        let Some(control) = &self.control else { return Ok(vec![blob]) };
        let sequence = self.sequence;
        self.sequence += 1;
        control.say(ToServer::Blob { sequence }, blob);
        if let Some(blobs) = self.await_note(self.limit, |board| board.take_gathered(sequence))? {
            return Ok(blobs);
        }
        Err(self.late_exchange(sequence))
    }

    /// Leaves in good order, which is no death to the others. Waits a second at most, and for no rank.
    pub fn shutdown(mut self) {
        if let Some(control) = self.control.take() {
            control.part();
        }
    }

    /// Waits for something on the board: nothing if it has not come in time.
    fn await_note<T>(&self, limit: Duration, look: impl Fn(&Board) -> Option<T>) -> Result<Option<T>, Fault> {
        let began = Instant::now();
        loop {
            drain(&self.woken);
            if let Some(found) = look(&self.board) {
                return Ok(Some(found));
            }
            if let Some(fault) = self.board.fault() {
                return Err(fault);
            }
            if self.board.is_server_gone() {
                return Err(Fault::Aborted {
                    origin: self.rank,
                    reason: "the rendezvous has ended, and exchanges with it".to_owned(),
                });
            }
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let mut ears = [PollFd::new(&self.woken, PollFlags::IN)];
            sleep(&mut ears, left).map_err(|errno| self.own_fault(errno))?;
        }
    }

    /// The fault of an exchange that was not complete in time: the server knows who has not come.
    fn late_exchange(&self, sequence: u64) -> Fault {
        if let Some(control) = &self.control {
            control.say(ToServer::WhoIsMissing { sequence }, Vec::new());
        }
        let limit_s = self.limit.as_secs_f64();
        match self.await_note(GRACE, |board| board.take_missing(sequence)) {
            Ok(Some(ranks)) if !ranks.is_empty() => Fault::PeerLost {
                peer: ranks[0],
                detail: format!(
                    "{} did not come to exchange {sequence} within {limit_s} s",
                    crate::RankList(ranks)
                ),
            },
            Ok(_) => Fault::TimedOut { limit_s },
            Err(fault) => fault,
        }
    }

    /// The fault of a call to the system that can only fail by this rank's own doing.
    fn own_fault(&self, errno: Errno) -> Fault {
        Fault::Aborted { origin: self.rank, reason: format!("cannot poll its sockets: {errno}") }
    }

    fn place(&self, link: Link) -> Result<usize, Fault> {
        self.wires
            .binary_search_by_key(&link, |wire| wire.link)
            .map_err(|_| Fault::NoLink { peer: link.peer, channel: link.channel })
    }

    /// Takes the outcome of moving bytes on a link: how many, or none for now.
    fn note(&mut self, place: usize, outcome: Result<usize, String>) -> usize {
        match outcome {
            Ok(count) => {
                self.moved |= count > 0;
                count
            }
            Err(detail) => {
                self.wires[place].broken = Some(Break { since: Instant::now(), detail });
                0
            }
        }
    }

    /// How long the first broken link still waits for a reason; it is the fault if that is over.
    fn grace(&self) -> Result<Option<Duration>, Fault> {
        let breaks = self.wires.iter().filter_map(|wire| Some((wire.link, wire.broken.as_ref()?)));
        let Some((link, first)) = breaks.min_by_key(|(_, broken)| broken.since) else { return Ok(None) };
        let left = GRACE.saturating_sub(first.since.elapsed());
        if left.is_zero() {
            return Err(Fault::PeerLost { peer: link.peer, detail: first.detail.clone() });
        }
        Ok(Some(left))
    }

    /// Sleeps until a link or the board has something, or for `limit`. Says whether a link has.
    fn doze(&mut self, interests: &[Interest], limit: Duration) -> Result<bool, Fault> {
        let mut ears: Vec<PollFd<'_>> = std::mem::take(&mut self.poll_space);
        ears.push(PollFd::new(&self.woken, PollFlags::IN));
        for interest in interests {
            let place = self.wires.binary_search_by_key(&interest.link, |wire| wire.link);
            let Link { peer, channel } = interest.link;
            let wire = place.map(|place| &self.wires[place]).map_err(|_| Fault::NoLink { peer, channel })?;
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, interest.readable);
            flags.set(PollFlags::OUT, interest.writable);
            if wire.broken.is_none() && !flags.is_empty() {
                ears.push(PollFd::new(&wire.socket, flags));
            }
        }
        let began = Instant::now();
        let slept = sleep(&mut ears, limit);
        let ready = ears[1..].iter().any(|ear| !ear.revents().is_empty());
        let woken = !ears[0].revents().is_empty();
        // Keeps the allocation and drops the borrows: collecting into the same layout happens in place.
        #[expect(clippy::unnecessary_filter_map, reason = "a filter would keep the lifetime")]
        let emptied = ears.into_iter().filter_map(|_| None).collect();
        self.poll_space = emptied;
        slept.map_err(|errno| self.own_fault(errno))?;
        self.slept += began.elapsed();
        if woken {
            drain(&self.woken);
        }
        Ok(ready)
    }
}

impl Transport for TcpTransport {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        let place = self.place(link)?;
        let Wire { socket, broken: None, .. } = &self.wires[place] else { return Ok(0) };
        let mut slices = [IoSlice::new(&[]); PARTS_AT_A_TIME];
        let mut count = 0;
        for (slice, part) in slices.iter_mut().zip(parts.iter().filter(|part| !part.is_empty())) {
            *slice = IoSlice::new(part);
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // Not `write`: that raises a signal when the peer is gone, which a host program may not expect.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let outcome = match sendmsg(socket, &slices[..count], &mut SendAncillaryBuffer::default(), flags) {
            Ok(sent) => Ok(sent),
            Err(errno) => would_block(errno),
        };
        Ok(self.note(place, outcome))
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        let place = self.place(link)?;
        let Wire { socket, broken: None, .. } = &self.wires[place] else { return Ok(0) };
        if into.is_empty() {
            return Ok(0);
        }
        let outcome = match recv(socket, into, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Err("it closed the connection".to_owned()),
            Ok((count, _)) => Ok(count),
            Err(errno) => would_block(errno),
        };
        Ok(self.note(place, outcome))
    }

    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        if std::mem::take(&mut self.moved) {
            self.slept = Duration::ZERO;
        }
        loop {
            if let Some(fault) = self.board.fault() {
                return Err(fault);
            }
            let grace = self.grace()?;
            let left = self.limit.saturating_sub(self.slept);
            if left.is_zero() {
                return Err(Fault::TimedOut { limit_s: self.limit.as_secs_f64() });
            }
            if self.doze(interests, grace.map_or(left, |grace| grace.min(left)))? {
                return Ok(());
            }
        }
    }
}

/// No bytes for now, or what is wrong with the link.
fn would_block(errno: Errno) -> Result<usize, String> {
    match errno {
        Errno::AGAIN | Errno::INTR => Ok(0),
        errno => Err(io::Error::from(errno).to_string()),
    }
}

/// Polls for at most `limit`. A signal ends it early, as if that were up.
fn sleep(ears: &mut [PollFd<'_>], limit: Duration) -> Result<(), Errno> {
    let timeout = Timespec::try_from(limit).ok();
    match poll(ears, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_again_allocates_nothing() {
        let options = JoinOptions::new(0, 2, "unused");
        let link = Link { peer: 1, channel: 0 };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (board, woken) = Board::new(0).unwrap();
        let mut transport =
            TcpTransport::new(&options, Connected::from([(link, socket)]), None, board, woken);
        let space = transport.poll_space.as_ptr();
        assert!(transport.poll_space.capacity() >= 2);
        for _ in 0..3 {
            transport.wait(&[Interest { link, readable: true, writable: true }]).unwrap();
            assert_eq!((transport.poll_space.as_ptr(), transport.poll_space.len()), (space, 0));
        }
    }
}
