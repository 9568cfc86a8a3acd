//! How a communicator's ranks reach each other: the one file that knows transports by name. Ranks of one machine share
//! memory, others are connected over TCP, and both may serve one plan; a rank's control connection, over which it hears of
//! failures and exchanges what is small, is TCP always.

use crate::comm::meeting::{Host, Meeting, Via};
use crate::comm::words::CallWords;
use coll_exec::{Fault, Field, FrameFault, Interest, Link, RunOptions, Transport};
use coll_shm::{CHANNELS_MAX, ShmTransport};
use coll_tcp::{ConnectError, JoinOptions, StartError, TcpTransport, Token};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The channel of messages between two ranks, apart from those of collectives, so that a message that nobody has asked for
/// yet is in no collective's way: the last that shared memory has.
pub(crate) const MESSAGE_CHANNEL: u32 = CHANNELS_MAX - 1;

/// For so long a rank waits in shared memory before it asks what the others are doing.
const PATIENCE: Duration = Duration::from_millis(200);

/// A rank that waits for links of both kinds looks at those in shared memory so often.
const GLANCE: Duration = Duration::from_micros(50);

/// A peer that is gone may have told why: its word comes by another way, and is waited for so long.
const GRACE: Duration = Duration::from_millis(400);

/// A rank's connections.
#[derive(Debug)]
pub(crate) struct Wires {
    tcp: Option<TcpTransport>,
    shm: Option<ShmTransport>,
    reach: Reach,
    meeting: Meeting,
    /// Interests apart by kind, kept so that waiting allocates nothing.
    near: Vec<Interest>,
    far: Vec<Interest>,
    /// Held by the rank that hosts it, as long as its connections.
    _host: Option<Host>,
}

/// Which peers share memory with this rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    None,
    Some,
    All,
}

impl Wires {
    /// Meets the others, and finds out which of them share memory with this rank.
    pub(crate) fn join(mut meeting: Meeting, host: Option<Host>) -> Result<Wires, StartError> {
        let mut options = JoinOptions::new(meeting.rank, meeting.world, meeting.address.clone());
        options.token = Token::from(meeting.token.clone());
        options.job = meeting.job.clone();
        options.time_limit = meeting.time_limit;
        options.fingerprint = vec![("transport".to_string(), meeting.via.name().to_string())];
        let mut tcp = coll_tcp::join(options)?;
        let mut shm = match (&meeting.via, meeting.threads.take()) {
            (_, Some(threads)) => Some(threads),
            (Via::Auto | Via::Shm, None) if meeting.world > 1 => {
                let mut exchange = |blob: Vec<u8>| tcp.exchange(blob);
                let joined = coll_shm::processes::join(
                    meeting.rank,
                    meeting.world,
                    &mut exchange,
                    &Default::default(),
                );
                Some(joined.map_err(|fault| StartError::Options { detail: fault.to_string() })?)
            }
            _ => None,
        };
        if let Some(shm) = &mut shm {
            shm.set_watch(Arc::new(Ears(tcp.watch())));
        }
        let unreached = shm.as_ref().map_or(meeting.world - 1, |shm| shm.unreached().count() as u32);
        if let Some(peer) = shm.as_ref().and_then(|shm| shm.unreached().next())
            && meeting.via == Via::Shm
        {
            let detail = format!(
                "rank {} cannot share memory with rank {peer}: are they processes of one machine and user?",
                meeting.rank
            );
            tcp.abort(&detail);
            return Err(StartError::Options { detail });
        }
        tcp.set_local_ranks(meeting.world - unreached);
        let reach = match unreached {
            _ if shm.is_none() => Reach::None,
            0 => Reach::All,
            _ => Reach::Some,
        };
        Ok(Wires { tcp: Some(tcp), shm, reach, meeting, near: Vec::new(), far: Vec::new(), _host: host })
    }

    /// Where and how this rank met the others.
    pub(crate) fn meeting(&self) -> &Meeting {
        &self.meeting
    }

    /// The transport whose costs count: that of the slowest links.
    pub(crate) fn transport(&self) -> &'static str {
        match self.reach {
            Reach::All => self.meeting.via.near_name(),
            Reach::None | Reach::Some => "tcp",
        }
    }

    /// Makes links that an operation will use, if they are not there, within `limit`. Both ends do so at the same operation.
    pub(crate) fn connect(&mut self, links: &[Link], limit: Duration) -> Result<(), Fault> {
        self.tcp_mut().begin(limit);
        let (near, far): (Vec<Link>, Vec<Link>) = links.iter().partition(|link| self.is_near(**link));
        if let Some(shm) = &mut self.shm {
            shm.connect(near)?;
        }
        self.near.reserve(links.len());
        self.far.reserve(links.len());
        self.tcp_mut().connect(&far).map_err(|error| match error {
            ConnectError::Fault(fault) => fault,
            error => Fault::Aborted { origin: self.meeting.rank, reason: error.to_string() },
        })
    }

    /// Begins an operation that fails once nothing has moved for `limit`. Says how its frames are marked. Collective
    /// operations are numbered alike on all ranks, and compared where ranks stall; messages are not.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        limit: Duration,
        operation: u64,
        call: &CallWords,
        collective: bool,
    ) -> RunOptions {
        if let Some(shm) = &mut self.shm {
            shm.begin(limit);
        }
        match collective {
            true => self.tcp_mut().begin_call(limit, operation, &call.call),
            false => self.tcp_mut().begin(limit),
        }
        RunOptions { generation: 0, operation, fingerprint: call.call.fingerprint }
    }

    /// The operation is over.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.tcp_mut().end_call();
    }

    /// Gives a small blob to every rank and takes one of each, by rank. Every rank must come.
    pub(crate) fn exchange(&mut self, limit: Duration, blob: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        self.tcp_mut().begin(limit);
        self.tcp_mut().exchange(blob)
    }

    /// Tells every rank that this one gives up. The reason that came first, if another's did.
    pub(crate) fn abort(&mut self, reason: &str) -> Option<Fault> {
        let earlier = self.tcp_mut().abort(reason);
        let told = self.shm.as_mut().and_then(|shm| shm.abort(reason));
        earlier.or(told)
    }

    /// What is behind a fault: where a peer makes another call, both calls in words.
    pub(crate) fn explain(&mut self, fault: Fault) -> Fault {
        match other_call(&fault) {
            Some(peer) => self.tcp_mut().explain_mismatch(peer).unwrap_or(fault),
            None => fault,
        }
    }

    #[inline]
    fn is_near(&self, link: Link) -> bool {
        match self.reach {
            Reach::None => false,
            Reach::All => link.channel < CHANNELS_MAX,
            Reach::Some => {
                link.channel < CHANNELS_MAX && self.shm.as_ref().is_some_and(|shm| shm.reaches(link.peer))
            }
        }
    }

    /// The transport of links in shared memory; there is one where a link is near.
    #[inline]
    fn shm_mut(&mut self) -> &mut ShmTransport {
        self.shm.as_mut().expect("invariant: a near link has one")
    }

    #[inline]
    fn tcp_mut(&mut self) -> &mut TcpTransport {
        self.tcp.as_mut().expect("invariant: taken only when dropped")
    }

    /// Waits in shared memory; when that takes long, looks at what the other ranks say.
    #[inline]
    fn wait_near(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        match self.shm_mut().wait_for(interests, PATIENCE) {
            Ok(true) => Ok(()),
            Ok(false) => self.wait_long(interests),
            Err(fault) => Err(self.reason(fault)),
        }
    }

    #[cold]
    fn wait_long(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        loop {
            let began = Instant::now();
            let ready = self.shm_mut().wait_for(interests, PATIENCE);
            match ready {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    let peers = interests.iter().map(|interest| interest.link.peer);
                    self.tcp_mut().waited(began.elapsed(), peers)?;
                }
                Err(Fault::TimedOut { .. }) => {
                    let peers = interests.iter().map(|interest| interest.link.peer);
                    return Err(self.tcp_mut().explain_timeout(peers));
                }
                Err(fault) => return Err(self.reason(fault)),
            }
        }
    }

    /// A lost peer's own reason, if it comes soon.
    #[cold]
    fn reason(&mut self, fault: Fault) -> Fault {
        if !matches!(fault, Fault::PeerLost { .. }) {
            return fault;
        }
        let (watch, began) = (self.tcp_mut().watch(), Instant::now());
        while began.elapsed() < GRACE {
            if let Some(reason) = watch.fault() {
                return reason;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        fault
    }

    /// Waits for links of both kinds by turns.
    #[cold]
    fn wait_mixed(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        self.near.clear();
        self.far.clear();
        for &interest in interests {
            if self.is_near(interest.link) { self.near.push(interest) } else { self.far.push(interest) }
        }
        let (near, far) = (std::mem::take(&mut self.near), std::mem::take(&mut self.far));
        let outcome = match (near.is_empty(), far.is_empty()) {
            (_, true) => self.wait_near(&near),
            (true, _) => self.tcp_mut().wait(&far),
            _ => self.alternate(&near, &far),
        };
        (self.near, self.far) = (near, far);
        outcome
    }

    fn alternate(&mut self, near: &[Interest], far: &[Interest]) -> Result<(), Fault> {
        loop {
            match self.shm_mut().poll_ready(near) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(fault) => return Err(self.reason(fault)),
            }
            if self.tcp_mut().wait_for(far, GLANCE)? {
                return Ok(());
            }
        }
    }
}

/// The control connection's news, for those who wait in shared memory.
struct Ears(coll_tcp::Watch);

impl coll_shm::Watch for Ears {
    fn fault(&self) -> Option<Fault> {
        if self.0.has_failed() { self.0.fault() } else { None }
    }
}

/// The peer, if a fault means that it makes another call than this rank.
pub(crate) fn other_call(fault: &Fault) -> Option<u32> {
    match fault {
        Fault::Mismatch { peer, .. } => Some(*peer),
        Fault::Frame {
            peer,
            fault: FrameFault::Field { field: Field::Generation | Field::Operation, .. },
        } => Some(*peer),
        _ => None,
    }
}

impl Transport for Wires {
    #[inline]
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        match self.is_near(link) {
            true => self.shm_mut().try_send(link, parts),
            false => self.tcp_mut().try_send(link, parts),
        }
    }

    #[inline]
    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        match self.is_near(link) {
            true => self.shm_mut().try_recv(link, into),
            false => self.tcp_mut().try_recv(link, into),
        }
    }

    #[inline]
    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        match self.is_near(link) {
            true => self.shm_mut().peek(link),
            false => self.tcp_mut().peek(link),
        }
    }

    #[inline]
    fn consume(&mut self, link: Link, bytes: usize) {
        match self.is_near(link) {
            true => self.shm_mut().consume(link, bytes),
            false => self.tcp_mut().consume(link, bytes),
        }
    }

    #[inline]
    fn flush(&mut self) {
        if let Some(shm) = &mut self.shm {
            shm.flush();
        }
    }

    #[inline]
    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        match self.reach {
            Reach::None => self.tcp_mut().wait(interests),
            Reach::All if interests.iter().all(|interest| interest.link.channel < CHANNELS_MAX) => {
                self.wait_near(interests)
            }
            _ => self.wait_mixed(interests),
        }
    }
}

impl Drop for Wires {
    /// Leaves in good order; but a rank that panics is a death to the others. Waits a second at most.
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if let Some(shm) = self.shm.take() {
            shm.shutdown();
        }
        if let Some(tcp) = self.tcp.take() {
            tcp.shutdown();
        }
    }
}
