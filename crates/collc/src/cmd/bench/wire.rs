//! The transports that plans are measured over, each with every pair of ranks connected.

use super::settings::Settings;
use crate::failure::Failure;
use coll_exec::{Fault, Interest, Link, Loan, Transport};
use coll_shm::{Options, ShmTransport, processes};
use coll_tcp::{JoinOptions, TcpTransport, Token};
use std::time::Duration;

/// The name of shared memory between processes.
pub(super) const SHM: &str = "shm";
/// The name of memory of one process.
pub(super) const THREADS: &str = "threads";

/// A transport of a job.
pub(super) trait Wire: Transport + Sized {
    /// The transport whose constants apply.
    const NAME: &'static str;

    /// Begins a stretch in which something must move within the limit.
    fn begin(&mut self, limit: Duration);

    /// Tells the others that this rank gives up.
    fn abort(&mut self, reason: &str);

    /// Parts in good order.
    fn leave(self);
}

/// TCP.
pub(super) type Tcp = TcpTransport;

/// Shared memory, by the connections over which ranks found each other.
pub(super) struct Shm {
    shm: ShmTransport,
    tcp: TcpTransport,
}

fn links(settings: &Settings) -> impl Iterator<Item = Link> {
    let rank = settings.rank;
    (0..settings.world).filter(move |&peer| peer != rank).map(|peer| Link { peer, channel: 0 })
}

fn meet(settings: &Settings, choices: u64, links: Vec<Link>) -> Result<TcpTransport, Failure> {
    let mut options = JoinOptions::new(settings.rank, settings.world, settings.rendezvous.clone());
    options.token = Token::from(settings.token.clone());
    options.tls = settings.tls;
    options.time_limit = Duration::from_secs_f64(settings.time_limit_s);
    options.links = links;
    options.fingerprint = fingerprint(settings, choices);
    coll_tcp::join(options).map_err(|error| Failure::wrong(error.to_string()))
}

/// What is equal on all ranks of a job.
pub(super) fn fingerprint(settings: &Settings, choices: u64) -> Vec<(String, String)> {
    vec![
        ("cells".into(), format!("{:?}", settings.cells)),
        ("dtype".into(), settings.dtype.to_string()),
        ("operator".into(), settings.op.to_string()),
        ("types".into(), format!("{:?} {:?}", settings.accumulate, settings.wire)),
        ("choices".into(), format!("{choices:016x}")),
    ]
}

/// Meets the others over TCP, who must have the same cells and choose alike.
pub(super) fn tcp(settings: &Settings, choices: u64) -> Result<Tcp, Failure> {
    meet(settings, choices, links(settings).collect())
}

impl Wire for Tcp {
    const NAME: &'static str = "tcp";

    fn begin(&mut self, limit: Duration) {
        TcpTransport::begin(self, limit);
    }

    fn abort(&mut self, reason: &str) {
        TcpTransport::abort(self, reason);
    }

    fn leave(self) {
        self.shutdown();
    }
}

impl Shm {
    /// Meets the others, who must have the same cells and choose alike.
    pub(super) fn join(settings: &Settings, choices: u64) -> Result<Shm, Failure> {
        let mut tcp = meet(settings, choices, Vec::new())?;
        let wrong = |fault: Fault| Failure::wrong(fault.to_string());
        let exchange = &mut |blob| tcp.exchange(blob);
        let joined = processes::join(settings.rank, settings.world, exchange, &Options::default());
        let mut shm = joined.map_err(wrong)?;
        let unreached: Vec<String> = shm.unreached().map(|rank| rank.to_string()).collect();
        if !unreached.is_empty() {
            let ranks = unreached.join(", ");
            return Err(Failure::wrong(format!("no shared memory with ranks {ranks}")));
        }
        shm.connect(links(settings)).map_err(wrong)?;
        Ok(Shm { shm, tcp })
    }
}

impl Wire for Shm {
    const NAME: &'static str = SHM;

    fn begin(&mut self, limit: Duration) {
        self.shm.begin(limit);
    }

    fn abort(&mut self, reason: &str) {
        self.shm.abort(reason);
        self.tcp.abort(reason);
    }

    fn leave(self) {
        self.shm.shutdown();
        self.tcp.shutdown();
    }
}

impl Wire for ShmTransport {
    const NAME: &'static str = THREADS;

    fn begin(&mut self, limit: Duration) {
        ShmTransport::begin(self, limit);
    }

    fn abort(&mut self, reason: &str) {
        ShmTransport::abort(self, reason);
    }

    fn leave(self) {
        self.shutdown();
    }
}

/// Connects memory of one process.
pub(super) fn of_threads(mut memory: ShmTransport, settings: &Settings) -> Result<ShmTransport, Failure> {
    memory.connect(links(settings)).map_err(|fault| Failure::wrong(fault.to_string()))?;
    Ok(memory)
}

impl Transport for Shm {
    #[inline]
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        self.shm.try_send(link, parts)
    }

    #[inline]
    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        self.shm.try_recv(link, into)
    }

    #[inline]
    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        self.shm.peek(link)
    }

    #[inline]
    fn consume(&mut self, link: Link, bytes: usize) {
        self.shm.consume(link, bytes);
    }

    #[inline]
    fn lends(&self, link: Link) -> Option<u64> {
        self.shm.lends(link)
    }

    #[inline]
    fn lend(&mut self, link: Link, bytes: &[u8]) -> Option<Loan> {
        self.shm.lend(link, bytes)
    }

    #[inline]
    fn lent(&mut self, link: Link) {
        self.shm.lent(link);
    }

    #[inline]
    fn stage(&mut self, bytes: u64) -> Option<u64> {
        self.shm.stage(bytes)
    }

    #[inline]
    fn write_staged(&mut self, at: u64, bytes: &[u8]) {
        self.shm.write_staged(at, bytes);
    }

    #[inline]
    fn lend_staged(&mut self, at: u64, bytes: u64) -> Loan {
        self.shm.lend_staged(at, bytes)
    }

    #[inline]
    fn lent_staged(&mut self, link: Link, at: u64, last: bool) {
        self.shm.lent_staged(link, at, last);
    }

    #[inline]
    fn is_returned(&mut self, link: Link) -> Result<bool, Fault> {
        self.shm.is_returned(link)
    }

    #[inline]
    fn borrow(&mut self, link: Link, loan: &Loan) -> Result<&[u8], Fault> {
        self.shm.borrow(link, loan)
    }

    #[inline]
    fn still_lent(&mut self, link: Link, loan: &Loan) -> Result<(), Fault> {
        self.shm.still_lent(link, loan)
    }

    #[inline]
    fn give_back(&mut self, link: Link) {
        self.shm.give_back(link);
    }

    fn revoke(&mut self) {
        self.shm.revoke();
    }

    #[inline]
    fn flush(&mut self) {
        self.shm.flush();
    }

    #[inline]
    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        self.shm.wait(interests)
    }
}
