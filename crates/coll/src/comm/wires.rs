//! How a communicator's ranks reach each other: the one file that knows a transport by name. Today that is TCP, with every
//! pair of ranks connected from the start.

use crate::comm::words::CallWords;
use coll_exec::{Fault, Field, FrameFault, Interest, Link, RunOptions, Transport};
use coll_tcp::{JoinOptions, Rendezvous, StartError, TcpTransport, Token};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The channel of messages between two ranks, apart from those of collectives, so that a message that nobody has asked for
/// yet is in no collective's way: the last that a plan can have.
pub(crate) const MESSAGE_CHANNEL: u32 = 1023;

/// What a rank must know to reach the others.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    /// `host:port`
    pub(crate) address: String,
    pub(crate) token: String,
    pub(crate) job: String,
    pub(crate) time_limit: Duration,
}

/// A rendezvous that runs as long as anybody holds it. Nobody locks it: a lock makes it one that threads may share.
pub(crate) type Host = Arc<Mutex<Rendezvous>>;

/// A rank's connections.
#[derive(Debug)]
pub(crate) struct Wires {
    tcp: Option<TcpTransport>,
    meeting: Meeting,
    /// Held by the rank that hosts it, as long as its connections.
    _host: Option<Host>,
}

impl Wires {
    /// Meets the others, and connects to them.
    pub(crate) fn join(meeting: Meeting, host: Option<Host>) -> Result<Wires, StartError> {
        let mut options = JoinOptions::new(meeting.rank, meeting.world, meeting.address.clone());
        options.token = Token::from(meeting.token.clone());
        options.job = meeting.job.clone();
        options.time_limit = meeting.time_limit;
        let peers = (0..meeting.world).filter(|&peer| peer != meeting.rank);
        options.links =
            peers.flat_map(|peer| [0, MESSAGE_CHANNEL].map(|channel| Link { peer, channel })).collect();
        let tcp = coll_tcp::join(options)?;
        Ok(Wires { tcp: Some(tcp), meeting, _host: host })
    }

    /// Where and how this rank met the others.
    pub(crate) fn meeting(&self) -> &Meeting {
        &self.meeting
    }

    /// Makes links that an operation will use, if they are not there, within `limit`. Both ends do so at the same operation.
    pub(crate) fn connect(&mut self, links: &[Link], limit: Duration) -> Result<(), Fault> {
        self.tcp_mut().begin(limit);
        let there = |link: &Link| self.tcp().links().any(|known| known == *link);
        match links.iter().find(|link| !there(link)) {
            None => Ok(()),
            Some(&Link { peer, channel }) => Err(Fault::NoLink { peer, channel }),
        }
    }

    /// Begins an operation that fails once nothing has moved for `limit`. Says how its frames are marked.
    pub(crate) fn begin(&mut self, limit: Duration, operation: u64, call: &CallWords) -> RunOptions {
        self.tcp_mut().begin(limit);
        // A frame has no room for a call's fingerprint but its generation's, which is free: connections belong to one
        // generation from the start.
        let [a, b, c, d, ..] = call.fingerprint;
        RunOptions { generation: u32::from_le_bytes([a, b, c, d]), operation }
    }

    /// Gives a small blob to every rank and takes one of each, by rank. Every rank must come.
    pub(crate) fn exchange(&mut self, limit: Duration, blob: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        self.tcp_mut().begin(limit);
        self.tcp_mut().exchange(blob)
    }

    /// Tells every rank that this one gives up. The reason that came first, if another's did.
    pub(crate) fn abort(&mut self, reason: &str) -> Option<Fault> {
        self.tcp_mut().abort(reason)
    }

    fn tcp(&self) -> &TcpTransport {
        self.tcp.as_ref().expect("invariant: taken only when dropped")
    }

    fn tcp_mut(&mut self) -> &mut TcpTransport {
        self.tcp.as_mut().expect("invariant: taken only when dropped")
    }
}

/// The peer, if a fault means that it makes another call than this rank.
pub(crate) fn other_call(fault: &Fault) -> Option<u32> {
    match fault {
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
        self.tcp_mut().try_send(link, parts)
    }

    #[inline]
    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        self.tcp_mut().try_recv(link, into)
    }

    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        self.tcp_mut().wait(interests)
    }
}

impl Drop for Wires {
    /// Leaves in good order; but a rank that panics is a death to the others. Waits a second at most.
    fn drop(&mut self) {
        if let Some(tcp) = self.tcp.take().filter(|_| !std::thread::panicking()) {
            tcp.shutdown();
        }
    }
}
