//! A rank's links while the job runs: plain non-blocking sockets of the calling thread, and one `poll` to sleep in.
//!
//! What fails on a link is often the shadow of something else: a rank that gave up closes its links, and its word of
//! why comes by another way. So a broken link is not an error at once. It is set aside for [`GRACE`], in which the
//! control thread may learn the reason; only then is the link's own end the error.
//!
//! A message takes one call to the system on each side that moves its bytes: header and payload go out by one
//! `sendmsg`, and a small message comes in by one `recv`. Beside these there are `recv`s in vain while it waits, about
//! one for each message of a ping-pong between two cores, and a `poll` only if nothing comes soon ([`crate::spin`]).
//! Measured on two cores by `examples/speed.rs`, which prints these counts: 8 B take 5 µs from rank to rank; both ways
//! at once, each direction carries 4 to 5 GB/s up to 4 MiB and 2.5 GB/s beyond, where memory is the limit. Socket
//! buffers of fixed sizes from 256 KiB to 4 MiB were no better than the system's own choice. Copies are not avoided by
//! MSG_ZEROCOPY, which loopback turns into copies anyway.
//!
//! A rank that sleeps for long asks the server what the others are doing; if its time runs out, the answer says who
//! kept it waiting, and if the ranks make different calls, that ends the job on all of them ([`crate::inquiry`]).

use std::io::{self, IoSlice};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coll_exec::{Fault, Interest, Link, Transport};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use tokio::sync::mpsc::UnboundedSender;

use crate::board::{Board, Watch, drain};
use crate::call::Call;
use crate::control::{Command, Control};
use crate::links::Connected;
use crate::options::JoinOptions;
use crate::spin::{Rest, Spin};
use crate::stall::Stall;
use crate::wire::ToServer;
use crate::wires::{Wire, Wires};

/// How many parts one call to the system takes; more are left to the next.
const PARTS_AT_A_TIME: usize = 16;

/// Nobody waits for longer than a year, whatever the limit says: what is longer may be no time that a clock can show.
pub(crate) const LIMIT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// One rank's connections over TCP. Made by [`join`](crate::join()).
///
/// Ends well by [`shutdown`](TcpTransport::shutdown); merely dropped, it is this rank's death to the others.
#[derive(Debug)]
pub struct TcpTransport {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    pub(crate) wires: Wires,
    /// None in a world of one rank.
    pub(crate) control: Option<Control>,
    pub(crate) board: Arc<Board>,
    pub(crate) woken: UnixStream,
    pub(crate) limit: Duration,
    /// How long this rank has slept since anything moved, and what it knows of the reason.
    pub(crate) stall: Stall,
    /// Whether anything moved since it last looked for something to do.
    moved: bool,
    spin: Spin,
    /// Ranks on this machine, if the caller has said so.
    local_ranks: Option<u32>,
    /// The number of the next exchange.
    pub(crate) sequence: u64,
    counters: Counters,
    /// Kept from one sleep to the next, so that sleeping allocates nothing.
    poll_space: Vec<PollFd<'static>>,
}

/// Gives up on a rank's behalf, from any thread and at once: it waits for nothing, least of all for the thread that runs
/// operations. Has no effect once the [`TcpTransport`] has ended.
#[derive(Clone, Debug)]
pub struct Aborter {
    rank: u32,
    board: Arc<Board>,
    commands: Option<UnboundedSender<Command>>,
}

impl Aborter {
    /// Gives up: like [`TcpTransport::abort`].
    pub fn abort(&self, reason: &str) {
        if let Some(commands) = &self.commands {
            let message = ToServer::Abort { reason: reason.to_owned() };
            // If the control thread has ended, there is nobody left to tell.
            let _ = commands.send(Command::Say(message, Vec::new()));
        }
        self.board.fail(Fault::Aborted { origin: self.rank, reason: reason.to_owned() });
    }
}

/// Calls to the system that a rank has made, and the bytes that they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls that sent, with bytes taken or not.
    pub sends: u64,
    /// Calls that received, with bytes given or not.
    pub receives: u64,
    /// Those of both that moved nothing.
    pub in_vain: u64,
    /// Times that it gave its core away.
    pub yields: u64,
    /// Times that it slept.
    pub sleeps: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

impl TcpTransport {
    pub(crate) fn new(
        options: &JoinOptions,
        connected: Connected,
        control: Option<Control>,
        board: Arc<Board>,
        woken: UnixStream,
    ) -> TcpTransport {
        let mut transport = TcpTransport {
            rank: options.rank,
            world: options.world,
            poll_space: Vec::new(),
            wires: Wires::default(),
            control,
            board,
            woken,
            limit: options.time_limit.min(LIMIT_MAX),
            stall: Stall::default(),
            moved: false,
            spin: Spin::new(options.spin_limit, false),
            local_ranks: None,
            sequence: 0,
            counters: Counters::default(),
        };
        transport.add(connected);
        transport
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
        self.wires.links()
    }

    /// Begins something that is no call of its own: from now on, to sleep for `limit` in all without a byte moving is
    /// a fault.
    pub fn begin(&mut self, limit: Duration) {
        self.limit = limit.min(LIMIT_MAX);
        self.moved = false;
        self.stall.renew();
        self.spin.renew();
    }

    /// Begins operation number `operation`, as [`begin`](TcpTransport::begin) does. If ranks wait for each other, their
    /// calls under one number are compared, and those that have not come to it are named. Numbers must rise.
    pub fn begin_call(&mut self, limit: Duration, operation: u64, call: &Arc<Call>) {
        self.begin(limit);
        self.board.begin(operation, call);
    }

    /// Ends the operation: what others wait for from here on, this rank has not begun.
    pub fn end_call(&mut self) {
        self.board.end();
    }

    /// Says that bytes have moved in another transport: the time limit starts anew.
    pub fn progressed(&mut self) {
        self.moved = true;
    }

    /// Says how many ranks share this machine, this one included. If there are more than cores, ranks that wait give
    /// theirs away. Unless it is said, a world whose links all stay on this machine counts as sharing it.
    pub fn set_local_ranks(&mut self, ranks: u32) {
        self.local_ranks = Some(ranks);
        self.judge_crowd();
    }

    /// A handle that tells whether the job has failed, for whoever waits for something else than this transport.
    pub fn watch(&self) -> Watch {
        Watch::new(&self.board)
    }

    /// A handle that gives up on this rank's behalf, from any thread.
    pub fn aborter(&self) -> Aborter {
        let commands = self.control.as_ref().and_then(Control::commands);
        Aborter { rank: self.rank, board: Arc::clone(&self.board), commands }
    }

    /// What this rank has asked of the system so far.
    pub fn counters(&self) -> Counters {
        self.counters
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

    /// Leaves in good order, which is no death to the others. Waits a second at most, and for no rank.
    pub fn shutdown(mut self) {
        self.wires.part();
        if let Some(control) = self.control.take() {
            control.part();
        }
    }

    /// Takes new links in.
    pub(crate) fn add(&mut self, connected: Connected) {
        for (link, (socket, session)) in connected {
            self.wires.add(link, socket, session);
        }
        self.poll_space.reserve(self.wires.len() + 1);
        self.judge_crowd();
    }

    /// Whether there are more ranks than cores here.
    fn judge_crowd(&mut self) {
        let is_local = |socket: &std::net::TcpStream| match (socket.local_addr(), socket.peer_addr()) {
            (Ok(here), Ok(there)) => here.ip() == there.ip() || there.ip().is_loopback(),
            _ => false,
        };
        let seen = || if self.wires.sockets().all(is_local) { self.world } else { 1 };
        let ranks = self.local_ranks.unwrap_or_else(seen);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.spin.set_crowded(ranks as usize > cores);
    }

    /// The fault of a call to the system that can only fail by this rank's own doing.
    pub(crate) fn own_fault(&self, errno: Errno) -> Fault {
        Fault::Aborted { origin: self.rank, reason: format!("cannot poll its sockets: {errno}") }
    }

    /// Takes the outcome of moving bytes on a link: how many, or none for now.
    fn note(&mut self, place: usize, outcome: Result<usize, String>) -> usize {
        match outcome {
            Ok(count) => {
                self.moved |= count > 0;
                self.counters.in_vain += u64::from(count == 0);
                count
            }
            Err(detail) => {
                self.wires.set_aside(place, detail);
                0
            }
        }
    }

    /// As [`note`](TcpTransport::note), of bytes that were offered.
    fn note_sent(&mut self, place: usize, outcome: Result<usize, String>) -> usize {
        let taken = self.note(place, outcome);
        self.counters.sends += 1;
        self.counters.sent_bytes += taken as u64;
        taken
    }

    /// Waits like [`Transport::wait`], but no longer than `patience`, which is no fault. Says whether a link is ready.
    pub fn wait_for(&mut self, interests: &[Interest], patience: Duration) -> Result<bool, Fault> {
        if std::mem::take(&mut self.moved) {
            self.stall.renew();
            self.spin.renew();
        }
        if let Some(fault) = self.board.fault() {
            return Err(fault);
        }
        let grace = self.wires.grace()?;
        let left = self.limit.saturating_sub(self.stall.slept);
        if left.is_zero() {
            return Err(self.overdue(interests));
        }
        let until_question = self.ask_if_due(interests);
        let nap = left.min(until_question).min(grace.unwrap_or(left)).min(patience);
        self.doze(interests, nap)
    }

    /// Sleeps until a link or the board has something, or for `limit`. Says whether a link has.
    fn doze(&mut self, interests: &[Interest], limit: Duration) -> Result<bool, Fault> {
        for interest in interests.iter().filter(|interest| interest.readable) {
            // Bytes that TLS has taken from the socket are none that poll would see.
            if self.wires.holds(self.wires.place(interest.link)?) {
                return Ok(true);
            }
        }
        let mut ears: Vec<PollFd<'_>> = std::mem::take(&mut self.poll_space);
        ears.push(PollFd::new(&self.woken, PollFlags::IN));
        for interest in interests {
            let place = self.wires.place(interest.link)?;
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, interest.readable);
            flags.set(PollFlags::OUT, interest.writable);
            match self.wires.socket(place) {
                Some(socket) if !flags.is_empty() => ears.push(PollFd::new(socket, flags)),
                _ => {}
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
        self.counters.sleeps += 1;
        self.stall.slept(began.elapsed());
        if woken {
            drain(&self.woken);
        }
        Ok(ready)
    }

    /// Whether to look again at once, by returning early.
    fn looks_again(&mut self, interests: &[Interest]) -> Result<bool, Fault> {
        if interests.is_empty() {
            return Ok(false);
        }
        let rest = self.spin.next();
        if rest != Rest::Sleep {
            // What sleep would find out.
            for interest in interests {
                self.wires.place(interest.link)?;
            }
        }
        if rest == Rest::Yield {
            self.counters.yields += 1;
            std::thread::yield_now();
        }
        Ok(rest != Rest::Sleep)
    }
}

impl Transport for TcpTransport {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        let place = self.wires.place(link)?;
        let Some(wire) = self.wires.wire(place) else { return Ok(0) };
        if let Some(session) = &mut wire.session {
            let outcome = session.send(&wire.socket, parts);
            return Ok(self.note_sent(place, outcome));
        }
        let socket = &wire.socket;
        let mut slices = [IoSlice::new(&[]); PARTS_AT_A_TIME];
        let mut count = 0;
        for (slice, part) in slices.iter_mut().zip(parts.iter().filter(|part| !part.is_empty())) {
            *slice = IoSlice::new(part);
            count += 1;
        }
        // Not `write`: that raises a signal when the peer is gone, which a host program may not expect.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let outcome = match &slices[..count] {
            [] => return Ok(0),
            [one] => send(socket, one, flags),
            several => sendmsg(socket, several, &mut SendAncillaryBuffer::default(), flags),
        };
        Ok(self.note_sent(place, outcome.or_else(would_block)))
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        let place = self.wires.place(link)?;
        let Some(Wire { socket, session, .. }) = self.wires.wire(place) else { return Ok(0) };
        if into.is_empty() {
            return Ok(0);
        }
        let outcome = match session {
            Some(session) => session.recv(socket, into),
            None => match recv(socket, into, RecvFlags::DONTWAIT) {
                Ok((0, _)) => Err("it closed the connection".to_owned()),
                Ok((count, _)) => Ok(count),
                Err(errno) => would_block(errno),
            },
        };
        let got = self.note(place, outcome);
        self.counters.receives += 1;
        self.counters.received_bytes += got as u64;
        Ok(got)
    }

    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        if std::mem::take(&mut self.moved) {
            self.stall.renew();
            self.spin.renew();
        }
        loop {
            if let Some(fault) = self.board.fault() {
                return Err(fault);
            }
            let grace = self.wires.grace()?;
            if self.looks_again(interests)? {
                return Ok(());
            }
            let left = self.limit.saturating_sub(self.stall.slept);
            if left.is_zero() {
                return Err(self.overdue(interests));
            }
            let until_question = self.ask_if_due(interests);
            let nap = left.min(until_question).min(grace.unwrap_or(left));
            if self.doze(interests, nap)? {
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
pub(crate) fn sleep(ears: &mut [PollFd<'_>], limit: Duration) -> Result<(), Errno> {
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
        let mut options = JoinOptions::new(0, 2, "unused");
        options.spin_limit = Duration::ZERO;
        let link = Link { peer: 1, channel: 0 };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (board, woken) = Board::new(0).unwrap();
        let mut transport =
            TcpTransport::new(&options, Connected::from([(link, (socket, None))]), None, board, woken);
        let space = transport.poll_space.as_ptr();
        assert!(transport.poll_space.capacity() >= 2);
        for _ in 0..3 {
            transport.wait(&[Interest { writable: true, ..Interest::readable(link) }]).unwrap();
            assert_eq!((transport.poll_space.as_ptr(), transport.poll_space.len()), (space, 0));
        }
    }
}
