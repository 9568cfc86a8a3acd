//! What a rank must say to join a job.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use coll_exec::Link;

use crate::error::StartError;
use crate::token::Token;
use crate::wire::WORLD_LIMIT;

/// What a rank must say to join a job. [`JoinOptions::new`] fills in what most need not.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// This rank.
    pub rank: u32,
    /// How many ranks there are. One alone joins without a server.
    pub world: u32,
    /// The rendezvous, as `host:port`.
    pub address: String,
    /// The job's token. Empty by default, which keeps nobody out who speaks the protocol.
    pub token: Token,
    /// Whether every connection is within TLS, whose key is made from the token: nobody else reads or changes what is
    /// sent. Equal on all ranks and the server ([`Rendezvous::bind_tls`](crate::Rendezvous::bind_tls)). Off by default.
    pub tls: bool,
    /// Tells jobs apart that use one server. Empty by default.
    pub job: String,
    /// What every rank must have the same, as ordered (field, value) pairs: the plan's hash, the count and so on.
    pub fingerprint: Vec<(String, String)>,
    /// The links that are made before the job starts. Peers must list theirs alike. Others are made when
    /// [`TcpTransport::connect`](crate::TcpTransport::connect) asks for them.
    pub links: Vec<Link>,
    /// How long to wait until the job has started; and, until [`TcpTransport::begin`](crate::TcpTransport::begin)
    /// says otherwise, for anything to move later. 30 s by default.
    pub time_limit: Duration,
    /// Where to listen for peers. By default any free port of any address of this machine.
    pub listen: Option<SocketAddr>,
    /// Where peers should connect to, if that is not where this rank listens. A port of 0 stands for the one that it
    /// listens at. By default what this rank and the server see of its address.
    pub advertise: Vec<SocketAddr>,
    /// Which interfaces or networks of this machine peers should use, as a list such as `eth,^eth1` or `10.0.0.0/8`:
    /// every interface whose name begins so, `=name` for one alone, `^` before what should not be used. One list may
    /// serve machines that name theirs differently. Not used where `listen` or `advertise` say more.
    pub interfaces: Option<String>,
    /// The size of each link's socket buffers, in bytes. Left to the system by default, which does better.
    pub socket_buffer_bytes: Option<usize>,
    /// How long a rank that waits for bytes asks again before it sleeps: a millisecond at most. Zero saves the
    /// processor's time at the price of latency; 200 µs by default.
    pub spin_limit: Duration,
}

impl JoinOptions {
    /// Options for a rank of a world that meets at `address`.
    pub fn new(rank: u32, world: u32, address: impl Into<String>) -> JoinOptions {
        JoinOptions {
            rank,
            world,
            address: address.into(),
            token: Token::default(),
            tls: false,
            job: String::new(),
            fingerprint: Vec::new(),
            links: Vec::new(),
            time_limit: Duration::from_secs(30),
            listen: None,
            advertise: Vec::new(),
            interfaces: None,
            socket_buffer_bytes: None,
            spin_limit: Duration::from_micros(200),
        }
    }

    /// Refuses what no other rank need be asked about. A rank outside of the world is not among it: the server tells
    /// the others too, who would wait for nothing.
    pub(crate) fn validate(&self) -> Result<(), StartError> {
        let wrong = |detail: String| Err(StartError::Options { detail });
        let JoinOptions { rank, world, .. } = *self;
        if world == 0 || world > WORLD_LIMIT {
            return wrong(format!("a job of {world} ranks; from 1 to {WORLD_LIMIT} are possible"));
        }
        if world == 1 && rank != 0 {
            return wrong(format!("rank {rank} of 1 rank; the only one is rank 0"));
        }
        if self.tls && self.token.reveal().is_empty() {
            return Err(StartError::TlsWithoutToken);
        }
        if self.time_limit.is_zero() {
            return wrong("a time limit of 0 s".to_owned());
        }
        let mut seen = BTreeSet::new();
        for link in &self.links {
            let Link { peer, channel } = *link;
            if peer == rank {
                return wrong(format!("rank {rank} has a link to itself, on channel {channel}"));
            }
            if peer >= world {
                return wrong(format!("a link to rank {peer} of {world} ranks, on channel {channel}"));
            }
            if !seen.insert(*link) {
                return wrong(format!("the link to rank {peer} on channel {channel} is listed twice"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut JoinOptions), detail: &str) {
        let mut options = JoinOptions::new(1, 4, "localhost:1");
        assert_eq!(options.validate(), Ok(()));
        change(&mut options);
        assert_eq!(options.validate(), Err(StartError::Options { detail: detail.to_owned() }));
    }

    #[test]
    fn contradictions_are_named_with_their_values() {
        let link = |peer, channel| Link { peer, channel };
        check(|options| options.world = 0, "a job of 0 ranks; from 1 to 65536 are possible");
        check(|options| options.world = 1, "rank 1 of 1 rank; the only one is rank 0");
        check(
            |options| options.links = vec![link(0, 0), link(1, 2)],
            "rank 1 has a link to itself, on channel 2",
        );
        check(|options| options.links = vec![link(4, 0)], "a link to rank 4 of 4 ranks, on channel 0");
        check(
            |options| options.links = vec![link(0, 3), link(2, 3), link(0, 3)],
            "the link to rank 0 on channel 3 is listed twice",
        );
    }
}
