//! How a communicator's ranks reach each other: the one file that knows a transport by name.
//!
//! Ranks that share memory, as threads of a process or processes of a machine, pass messages through it; the others over
//! TCP. Every rank of a world of several has a control connection as well, by which ranks meet, exchange small blobs, and
//! hear that one of them has given up or is gone, whatever their messages go by.

mod mixed;

use coll_cost::Layout;
use coll_exec::{Fault, Field, FrameFault, Interest, Link, Loan, RunOptions, Sight, Transport};
use coll_shm::ShmTransport;
use coll_tcp::{
    Aborter, Call, ConnectError, JoinOptions, Rendezvous, StartError, TcpTransport, Token, Watch,
};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The channel of messages between two ranks, apart from those of collectives, so that a message that nobody has asked for
/// yet is in no collective's way: the last that shared memory has.
pub(crate) const MESSAGE_CHANNEL: u32 = coll_shm::CHANNELS_MAX - 1;

/// How long a rank waits in shared memory before it asks whether the others are in the same call.
const ASK_AFTER: Duration = Duration::from_secs(1);

/// A rank that is gone from shared memory may have said why by another way: that word is awaited so long.
const GRACE: Duration = Duration::from_millis(400);

/// How ranks may reach each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// Shared memory between those that share it, TCP between others.
    #[default]
    Fastest,
    /// Shared memory between all; ranks that do not share any are an error.
    Shm,
    /// TCP between all.
    Tcp,
}

impl std::fmt::Display for Via {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Via::Fastest => "auto",
            Via::Shm => "shm",
            Via::Tcp => "tcp",
        })
    }
}

/// What a rank must know to reach the others.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    /// `host:port`
    pub(crate) address: String,
    pub(crate) token: String,
    /// Whether what goes over TCP, and the meeting itself, is within TLS.
    pub(crate) tls: bool,
    pub(crate) job: String,
    pub(crate) time_limit: Duration,
    pub(crate) via: Via,
    /// A name of the machine that this rank is on, beside the one that it finds: ranks with another one share no memory.
    pub(crate) host: String,
    /// Whether payloads carry checksums over TCP.
    pub(crate) checksums: bool,
    /// What every rank must have the same, as ordered (field, value) pairs, to meet at all.
    pub(crate) fingerprint: Vec<(String, String)>,
}

/// A rendezvous that runs as long as anybody holds it. Nobody locks it: a lock makes it one that threads may share.
pub(crate) type Host = Arc<Mutex<Rendezvous>>;

/// A rank's connections.
#[derive(Debug)]
pub(crate) struct Wires {
    /// None only while it is dropped.
    tcp: Option<TcpTransport>,
    watch: Watch,
    shm: Option<ShmTransport>,
    /// By rank: reached through shared memory.
    near: Box<[bool]>,
    reach: Reach,
    meeting: Meeting,
    layout: Layout,
    limit: Duration,
    /// Whether anything moved since this rank last ran out of patience.
    moved: bool,
    /// How long it has waited since anything moved: for shared memory alone in whole spells, for both ways by the clock.
    waited: Duration,
    idle_since: Option<Instant>,
    yields: u32,
    /// Kept from one wait to the next, so that waiting allocates nothing.
    near_interests: Vec<Interest>,
    far_interests: Vec<Interest>,
    /// Held by the rank that hosts it, as long as its connections.
    _host: Option<Host>,
}

/// Which peers are reached through shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    AllNear,
    AllFar,
    Mixed,
}

/// What ranks tell each other of their machines once they have met.
#[derive(Debug, Serialize, Deserialize)]
struct Machine {
    cores: u32,
    near: u32,
}

impl Wires {
    /// Meets the others. `threads` is the shared memory of ranks that are threads of one process.
    pub(crate) fn join(
        meeting: Meeting,
        host: Option<Host>,
        threads: Option<ShmTransport>,
    ) -> Result<Wires, WiresError> {
        let (rank, world) = (meeting.rank, meeting.world);
        let mut options = JoinOptions::new(rank, world, meeting.address.clone());
        options.token = Token::from(meeting.token.clone());
        options.tls = meeting.tls;
        options.job = meeting.job.clone();
        options.time_limit = meeting.time_limit;
        options.fingerprint = meeting.fingerprint.clone();
        options.fingerprint.push(("transport".to_string(), meeting.via.to_string()));
        let checksums = if meeting.checksums { "on" } else { "off" };
        options.fingerprint.push(("checksums".to_string(), checksums.to_string()));
        let mut tcp = coll_tcp::join(options)?;
        let watch = tcp.watch();
        let of_threads = threads.is_some();
        let mut shm = match (threads, meeting.via) {
            (Some(threads), _) => Some(threads),
            (None, Via::Fastest | Via::Shm) if world > 1 => {
                let mut exchange = |blob| tcp.exchange(blob);
                let options = coll_shm::Options { host: meeting.host.clone(), ..Default::default() };
                Some(coll_shm::processes::join(rank, world, &mut exchange, &options)?)
            }
            (None, _) => None,
        };
        if let Some(shm) = &mut shm {
            shm.set_watch(Arc::new(Watched(watch.clone())));
        }
        if let Some((peer, why)) = shm.as_ref().and_then(apart) {
            if meeting.via == Via::Shm {
                let why = why.unwrap_or("are they processes of one machine and one user?").to_owned();
                let apart = WiresError::Apart { rank, peer, why };
                tcp.abort(&apart.to_string());
                return Err(apart);
            }
            if let Some(why) = why {
                log::warn!("rank {rank} shares no memory with rank {peer}, which it reaches over TCP: {why}");
            }
        }
        let near: Box<[bool]> =
            (0..world).map(|peer| shm.as_ref().is_some_and(|shm| shm.reaches(peer))).collect();
        let reached = near.iter().filter(|&&near| near).count() as u32;
        let reach = match reached {
            0 => Reach::AllFar,
            _ if reached + 1 == world => Reach::AllNear,
            _ => Reach::Mixed,
        };
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let layout = match of_threads && reach == Reach::AllNear || world == 1 {
            true => Layout::one_host(cores),
            false => agree(&mut tcp, &Machine { cores, near: reached + 1 }, world)?,
        };
        if let Some(shm) = &shm {
            tcp.set_local_ranks(shm.neighbours());
        }
        let limit = meeting.time_limit;
        log::info!("{}", ways(rank, &near));
        Ok(Wires {
            tcp: Some(tcp),
            watch,
            shm,
            near,
            reach,
            meeting,
            layout,
            limit,
            moved: false,
            waited: Duration::ZERO,
            idle_since: None,
            yields: 0,
            near_interests: Vec::new(),
            far_interests: Vec::new(),
            _host: host,
        })
    }

    /// Where and how this rank met the others.
    pub(crate) fn meeting(&self) -> &Meeting {
        &self.meeting
    }

    /// The name under which constants of the cost model are kept, and where the ranks are. The same on every rank.
    pub(crate) fn place(&self) -> (&'static str, Layout) {
        let one_host = self.layout.ranks_per_host >= self.meeting.world;
        let transport = match (self.meeting.via, self.reach, one_host) {
            (Via::Fastest | Via::Shm, Reach::AllNear, true) => "shm",
            _ => "tcp",
        };
        (transport, self.layout)
    }

    /// Makes links that an operation will use, if they are not there, within `limit`. Both ends do so at the same operation.
    pub(crate) fn connect(&mut self, links: &[Link], limit: Duration) -> Result<(), Fault> {
        let near = |link: &Link| self.near.get(link.peer as usize).copied().unwrap_or(false);
        let (through_memory, far): (Vec<Link>, Vec<Link>) = links.iter().partition(|link| near(link));
        if let Some(shm) = &mut self.shm {
            shm.connect(through_memory)?;
        }
        if far.is_empty() {
            return Ok(());
        }
        self.tcp_mut().begin(limit);
        self.tcp_mut().connect(&far).map_err(|error| match error {
            ConnectError::Fault(fault) => fault,
            other => Fault::Aborted { origin: self.meeting.rank, reason: other.to_string() },
        })
    }

    /// Begins an operation that fails once nothing has moved for `limit`. Says how its frames are marked. `counted` tells
    /// operations of all ranks, whose calls can be compared by number, from those of two.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        limit: Duration,
        operation: u64,
        call: &Arc<Call>,
        counted: bool,
    ) -> RunOptions {
        self.limit = limit;
        self.waited = Duration::ZERO;
        self.idle_since = None;
        if let Some(shm) = &mut self.shm {
            shm.begin(limit.min(ASK_AFTER));
        }
        let tcp = self.tcp_mut();
        match counted {
            true => tcp.begin_call(limit, operation, call),
            false => tcp.begin(limit),
        }
        RunOptions { generation: 0, operation, fingerprint: call.fingerprint }
    }

    /// Ends an operation: what others wait for from here on, this rank has not begun.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.tcp_mut().end_call();
    }

    /// A fault in better words, if other ranks know more: both calls where ranks make different ones, and why a rank is gone.
    /// Takes under a second.
    pub(crate) fn explain(&mut self, fault: Fault) -> Fault {
        match &fault {
            // The call is the same.
            Fault::Frame { fault: FrameFault::Checksum { .. }, .. } => fault,
            Fault::Mismatch { peer, .. } | Fault::Frame { peer, .. } => {
                let peer = *peer;
                self.tcp_mut().explain_mismatch(peer).unwrap_or(fault)
            }
            Fault::PeerLost { .. } if self.meeting.world > 1 => {
                let began = Instant::now();
                while began.elapsed() < GRACE {
                    if let Some(better) = self.watch.fault() {
                        return better;
                    }
                    thread::sleep(Duration::from_millis(2));
                }
                fault
            }
            _ => fault,
        }
    }

    /// Gives a small blob to every rank and takes one of each, by rank. Every rank must come.
    pub(crate) fn exchange(&mut self, limit: Duration, blob: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        self.tcp_mut().begin(limit);
        self.tcp_mut().exchange(blob)
    }

    /// A way to tell every rank so from another thread. Whoever waits in shared memory hears of it by its watch.
    pub(crate) fn aborter(&self) -> Aborter {
        self.tcp.as_ref().expect("invariant: taken only when dropped").aborter()
    }

    /// Tells every rank that this one gives up.
    pub(crate) fn abort(&mut self, reason: &str) {
        self.tcp_mut().abort(reason);
        if let Some(shm) = &mut self.shm {
            shm.abort(reason);
        }
    }

    #[inline]
    fn tcp_mut(&mut self) -> &mut TcpTransport {
        self.tcp.as_mut().expect("invariant: taken only when dropped")
    }

    /// The shared memory, if a link goes through it.
    #[inline]
    fn near(&mut self, link: Link) -> Option<&mut ShmTransport> {
        if self.is_near(link.peer) { self.shm.as_mut() } else { None }
    }

    #[inline]
    fn is_near(&self, peer: u32) -> bool {
        match self.reach {
            Reach::AllNear => true,
            Reach::AllFar => false,
            Reach::Mixed => self.near.get(peer as usize).copied().unwrap_or(false),
        }
    }

    /// Waits for links through shared memory alone.
    #[inline]
    fn wait_near(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        let Some(shm) = &mut self.shm else { return self.tcp_mut().wait(interests) };
        match shm.wait(interests) {
            Ok(()) => Ok(()),
            Err(fault) => self.impatient(fault, interests),
        }
    }

    /// What shared memory said when this rank waited for it alone. After the first spell without a move it is asked whether
    /// the ranks are in the same call; when time is up, who is late.
    #[cold]
    fn impatient(&mut self, spell: Fault, interests: &[Interest]) -> Result<(), Fault> {
        let Fault::TimedOut { limit_s } = spell else { return Err(spell) };
        if std::mem::take(&mut self.moved) {
            self.waited = Duration::ZERO;
        }
        let first = self.waited.is_zero();
        self.waited += Duration::from_secs_f64(limit_s);
        let left = self.limit.saturating_sub(self.waited);
        let peers = interests.iter().map(|interest| interest.link.peer);
        if left.is_zero() {
            return Err(self.tcp_mut().explain_timeout(peers));
        }
        if first
            && let Some(peer) = peers.into_iter().next()
            && let Some(fault) = self.tcp_mut().explain_mismatch(peer)
        {
            return Err(fault);
        }
        if let Some(shm) = &mut self.shm {
            shm.begin(left);
        }
        Ok(())
    }
}

/// A rank that shares no memory with this one, and why, if the system is the reason: those that have one first.
fn apart(shm: &ShmTransport) -> Option<(u32, Option<&str>)> {
    let told = shm.unreached().find_map(|peer| Some((peer, Some(shm.why_unreached(peer)?))));
    told.or_else(|| shm.unreached().next().map(|peer| (peer, None)))
}

/// `rank 0 of 6: shared memory with ranks 1 and 2, TCP with ranks 3 to 5`
fn ways(rank: u32, near: &[bool]) -> String {
    let with = |way: bool| {
        let peers = (0..near.len() as u32).filter(|&peer| peer != rank && near[peer as usize] == way);
        coll_tcp::RankList(peers.collect())
    };
    let told = [("shared memory", with(true)), ("TCP", with(false))]
        .into_iter()
        .filter(|(_, peers)| !peers.0.is_empty())
        .map(|(way, peers)| format!("{way} with {peers}"));
    let told = told.collect::<Vec<_>>().join(", ");
    let told = if told.is_empty() { "alone".to_string() } else { told };
    format!("rank {rank} of {}: {told}", near.len())
}

/// Where the ranks are, as all find alike.
fn agree(tcp: &mut TcpTransport, mine: &Machine, world: u32) -> Result<Layout, WiresError> {
    let blob = serde_json::to_vec(mine).expect("invariant: numbers serialise");
    let blobs = tcp.exchange(blob)?;
    let machines: Result<Vec<Machine>, _> = blobs.iter().map(|blob| serde_json::from_slice(blob)).collect();
    let machines = machines.map_err(|error| WiresError::Garbled(error.to_string()))?;
    let cores = machines.iter().map(|machine| machine.cores).min().unwrap_or(1);
    let together = machines.iter().map(|machine| machine.near).max().unwrap_or(1);
    Ok(match together >= world || machines.iter().all(|machine| machine.near == 1) {
        true => Layout::one_host(cores),
        false => Layout { ranks_per_host: together.max(1), cores: cores.max(1) },
    })
}

/// Why ranks could not be connected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WiresError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("rank {rank} shares no memory with rank {peer}: {why}")]
    Apart { rank: u32, peer: u32, why: String },
    #[error("the ranks met, and then: {0}")]
    Fault(#[from] Fault),
    #[error("a rank said what cannot be read ({0}); do all ranks run one release?")]
    Garbled(String),
}

/// The control connection's news, for who sleeps in shared memory.
struct Watched(Watch);

impl coll_shm::Watch for Watched {
    fn fault(&self) -> Option<Fault> {
        self.0.fault()
    }
}

/// The peer, if a fault means that it makes another call than this rank.
pub(crate) fn other_call(fault: &Fault) -> Option<u32> {
    match fault {
        Fault::Mismatch { peer, .. } => Some(*peer),
        Fault::Frame { peer, fault: FrameFault::Field { field: Field::Operation, .. } } => Some(*peer),
        _ => None,
    }
}

impl Transport for Wires {
    #[inline]
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        let taken = match self.near(link) {
            Some(shm) => shm.try_send(link, parts)?,
            None => self.tcp_mut().try_send(link, parts)?,
        };
        self.moved |= taken > 0;
        Ok(taken)
    }

    #[inline]
    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        let got = match self.near(link) {
            Some(shm) => shm.try_recv(link, into)?,
            None => self.tcp_mut().try_recv(link, into)?,
        };
        self.moved |= got > 0;
        Ok(got)
    }

    #[inline]
    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        match self.near(link) {
            Some(shm) => shm.peek(link),
            None => Ok(None),
        }
    }

    #[inline]
    fn consume(&mut self, link: Link, bytes: usize) {
        self.moved = true;
        if let Some(shm) = self.near(link) {
            shm.consume(link, bytes);
        }
    }

    #[inline]
    fn checks(&self, link: Link) -> bool {
        self.meeting.checksums && !self.is_near(link.peer)
    }

    #[inline]
    fn lends(&self, link: Link) -> Option<u64> {
        self.shm.as_ref().filter(|_| self.is_near(link.peer))?.lends(link)
    }

    #[inline]
    fn lend(&mut self, link: Link, bytes: &[u8]) -> Option<Loan> {
        self.near(link)?.lend(link, bytes)
    }

    #[inline]
    fn shows(&self, link: Link) -> Option<u64> {
        self.shm.as_ref().filter(|_| self.is_near(link.peer))?.shows(link)
    }

    #[inline]
    fn show(&mut self, link: Link, sight: Sight) -> Option<Loan> {
        self.near(link)?.show(link, sight)
    }

    #[inline]
    fn lent(&mut self, link: Link) {
        if let Some(shm) = self.near(link) {
            shm.lent(link);
        }
    }

    #[inline]
    fn stage(&mut self, bytes: u64) -> Option<u64> {
        self.shm.as_mut()?.stage(bytes)
    }

    #[inline]
    fn write_staged(&mut self, at: u64, bytes: &[u8]) {
        if let Some(shm) = &mut self.shm {
            shm.write_staged(at, bytes);
        }
    }

    #[inline]
    fn lend_staged(&mut self, at: u64, bytes: u64) -> Loan {
        self.shm.as_mut().map_or(Loan::default(), |shm| shm.lend_staged(at, bytes))
    }

    #[inline]
    fn lent_staged(&mut self, link: Link, at: u64, last: bool) {
        if let Some(shm) = self.near(link) {
            shm.lent_staged(link, at, last);
        }
    }

    #[inline]
    fn is_returned(&mut self, link: Link) -> Result<bool, Fault> {
        let Some(shm) = self.near(link) else { return Ok(true) };
        let (returned, more) = (shm.is_returned(link)?, shm.has_read_on(link));
        self.moved |= returned || more;
        Ok(returned)
    }

    #[inline]
    fn borrow(&mut self, link: Link, loan: &Loan) -> Result<&[u8], Fault> {
        self.moved = true;
        match self.near(link) {
            Some(shm) => shm.borrow(link, loan),
            None => Err(Fault::NoLink { peer: link.peer, channel: link.channel }),
        }
    }

    #[inline]
    fn still_lent(&mut self, link: Link, loan: &Loan) -> Result<(), Fault> {
        self.near(link).map_or(Ok(()), |shm| shm.still_lent(link, loan))
    }

    #[inline]
    fn give_back(&mut self, link: Link) {
        if let Some(shm) = self.near(link) {
            shm.give_back(link);
        }
    }

    fn revoke(&mut self) {
        if let Some(shm) = &mut self.shm {
            shm.revoke();
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
            Reach::AllNear => self.wait_near(interests),
            Reach::AllFar => self.tcp_mut().wait(interests),
            Reach::Mixed => self.wait_mixed(interests),
        }
    }
}

impl Drop for Wires {
    /// Leaves in good order; but a rank that panics is a death to the others. Waits a second at most.
    fn drop(&mut self) {
        if thread::panicking() {
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
