//! Connects a rank to its peers: one socket for each unordered pair and channel, when a plan first needs it.
//!
//! Of two ranks the higher connects and the lower accepts. Whoever connects tries every candidate address, again and
//! again with growing pauses, until the peer has proved who it is or time is up. Whoever accepts takes the connection
//! from the stash ([`crate::accept`]), where it may have been waiting.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coll_exec::Link;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::accept::Stash;
use crate::address::candidates;
use crate::dial::{Backoff, Race};
use crate::error::{Attempt, LinkFailure, StartError};
use crate::handshake::{Keys, introduce};
use crate::host::Host;
use crate::interfaces;
use crate::session::Session;
use crate::stream::Stream;
use crate::wire::{Entry, LinkClaim};

/// How many peers a rank connects to at a time, so that an all-to-all does not flood the peers' queues.
const AT_A_TIME: usize = 64;

/// How much longer than the deadline a rank waits that has nothing but to be connected to: whoever connects knows what
/// was tried, and its word should come first.
const ACCEPTOR_GRACE: Duration = Duration::from_millis(300);

/// What both ends of a link must know of the job.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    pub(crate) generation: u64,
    pub(crate) keys: Keys,
    pub(crate) socket_buffer_bytes: Option<usize>,
}

/// The links that are connected, by link.
pub(crate) type Connected = BTreeMap<Link, (std::net::TcpStream, Option<Box<Session>>)>;

/// What was tried so far, by link: the error's text, if time runs out.
type Tried = Arc<Mutex<BTreeMap<Link, BTreeMap<SocketAddr, (u32, String)>>>>;

/// A rank's way to its peers, while the job runs.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) ground: Ground,
    pub(crate) server_ip: IpAddr,
    pub(crate) stash: Stash,
    /// Peers whose whereabouts are known.
    pub(crate) known: BTreeMap<u32, Entry>,
}

impl Paths {
    /// The peers among these links whose whereabouts must be known first: those that this rank connects to.
    pub(crate) fn unknown(&self, links: &[Link]) -> Vec<u32> {
        let dialed = links.iter().map(|link| link.peer).filter(|&peer| peer < self.ground.rank);
        let mut peers: Vec<u32> = dialed.filter(|peer| !self.known.contains_key(peer)).collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    }

    /// Connects all of these links, until `deadline`; the limit is what is told if that passes.
    pub(crate) async fn connect(
        &self,
        links: &[Link],
        deadline: Instant,
        limit_s: f64,
    ) -> Result<Connected, StartError> {
        let tried = Tried::default();
        let mut connecting = self.start(links, &tried);
        let mut connected = BTreeMap::new();
        let mut until = deadline;
        while connected.len() < links.len() {
            tokio::select! {
                Some(outcome) = connecting.join_next() => connected.extend(outcome),
                () = tokio::time::sleep_until(until) => {
                    let missing = links.iter().copied().filter(|link| !connected.contains_key(link));
                    if until == deadline && missing.clone().all(|link| link.peer > self.ground.rank) {
                        until = deadline + ACCEPTOR_GRACE;
                        continue;
                    }
                    let failures = failures(self.ground.rank, missing, &tried);
                    return Err(StartError::Links { rank: self.ground.rank, limit_s, failures });
                }
            }
        }
        let handed = |(link, stream): (Link, Stream)| {
            let (socket, tls) = stream.into_parts().map_err(unusable)?;
            Ok((link, (socket, tls.map(|tls| Box::new(Session::new(tls))))))
        };
        connected.into_iter().map(handed).collect()
    }

    fn start(&self, links: &[Link], tried: &Tried) -> JoinSet<(Link, Stream)> {
        let turns = Arc::new(Semaphore::new(AT_A_TIME));
        let here = Host::here();
        let mut connecting = JoinSet::new();
        for &link in links {
            if link.peer > self.ground.rank {
                let stash = self.stash.clone();
                connecting.spawn(async move { (link, stash.take(link).await) });
                continue;
            }
            let entry = self.known.get(&link.peer);
            let addresses = entry.map_or(Vec::new(), |peer| candidates(&here, self.server_ip, peer));
            connecting.spawn(dial(self.ground.clone(), link, addresses, turns.clone(), tried.clone()));
        }
        connecting
    }
}

fn unusable(error: std::io::Error) -> StartError {
    StartError::System { what: "keep a connected socket", detail: error.to_string() }
}

/// Tries a peer's addresses until one answers as that peer. Ends in no other way: the caller watches the time.
async fn dial(
    ground: Ground,
    link: Link,
    addresses: Vec<SocketAddr>,
    turns: Arc<Semaphore>,
    tried: Tried,
) -> (Link, Stream) {
    let mut pause = Backoff::new();
    loop {
        let turn = turns.acquire().await;
        let mut race = Race::new(&addresses, ground.socket_buffer_bytes);
        while let Some((address, outcome)) = race.next().await {
            let attempt = match outcome {
                Ok(stream) => claim_link(stream, &ground, link).await,
                Err(error) => Err(error.to_string()),
            };
            match attempt {
                Ok(stream) => return (link, stream),
                Err(result) => {
                    let mut tried = tried.lock().unwrap_or_else(PoisonError::into_inner);
                    let entry = tried.entry(link).or_default().entry(address).or_default();
                    *entry = (entry.0.saturating_add(1), result);
                }
            }
        }
        drop(race);
        drop(turn);
        pause.wait().await;
    }
}

async fn claim_link(stream: TcpStream, ground: &Ground, link: Link) -> Result<Stream, String> {
    let claim =
        LinkClaim { generation: ground.generation, from: ground.rank, to: link.peer, channel: link.channel };
    introduce(stream, &ground.keys, claim).await.map_err(|error| error.to_string())
}

/// One try at one address, for tests of the accepting side.
#[cfg(test)]
pub(crate) async fn dial_once(ground: &Ground, link: Link, address: SocketAddr) -> Result<Stream, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    claim_link(stream, ground, link).await
}

fn failures(rank: u32, missing: impl Iterator<Item = Link>, tried: &Tried) -> Vec<LinkFailure> {
    let tried = tried.lock().unwrap_or_else(PoisonError::into_inner);
    let failure = |link: Link| {
        let attempts = tried.get(&link).into_iter().flatten();
        let attempts = attempts
            .map(|(address, (tries, result))| Attempt {
                address: *address,
                interface: interfaces::towards(*address),
                tries: *tries,
                result: result.clone(),
            })
            .collect();
        LinkFailure { link, attempts, dialed: link.peer < rank }
    };
    missing.map(failure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;
    use crate::wire::Contact;
    use expect_test::expect;
    use std::net::Ipv4Addr;

    fn peer(rank: u32, listen: SocketAddr) -> Entry {
        let contact = Contact {
            listen,
            advertise: vec![],
            control_ip: listen.ip(),
            host: Host::here(),
            chosen: vec![],
        };
        Entry { rank, contact, observed_ip: listen.ip(), beside_server: true }
    }

    #[tokio::test]
    async fn peers_that_do_not_answer_are_a_table_of_what_was_tried() {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let other_address = other.local_addr().unwrap();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = other.accept() {
                let _ = std::io::Write::write_all(&mut stream, b"220 mail.example.org ready\r\n");
            }
        });
        let links = [0, 1, 3].map(|peer| Link { peer, channel: 5 });
        let keys = Keys::new(Token::from("sesame"), false).unwrap();
        let paths = Paths {
            ground: Ground { rank: 2, world: 4, generation: 1, keys, socket_buffer_bytes: None },
            server_ip: Ipv4Addr::LOCALHOST.into(),
            stash: Stash::new(),
            known: [(0, peer(0, closed)), (1, peer(1, other_address))].into(),
        };
        assert!(paths.unknown(&links).is_empty());
        let deadline = Instant::now() + Duration::from_millis(300);
        let error = paths.connect(&links, deadline, 0.3).await.unwrap_err();
        let StartError::Links { failures, rank: 2, .. } = error else { panic!("{error}") };
        let lines: Vec<String> = failures
            .iter()
            .map(|failure| {
                assert!(failure.attempts.iter().all(|attempt| attempt.tries > 1));
                let results: Vec<&str> =
                    failure.attempts.iter().map(|attempt| attempt.result.as_str()).collect();
                format!("{} {} {}", failure.link.peer, failure.dialed, results.join("; "))
            })
            .collect();
        expect![[r#"
            0 true Connection refused (os error 111)
            1 true a frame begins with "220 ", not "coll"
            3 false "#]]
        .assert_eq(&lines.join("\n"));
    }
}
