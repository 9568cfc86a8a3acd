//! Connects a rank to its peers: one socket for each unordered pair and channel.
//!
//! Of two ranks the higher connects and the lower accepts. Whoever connects tries every candidate address in turn,
//! again and again with growing pauses, until the peer has proved who it is or time is up. Whoever accepts hears
//! each connection out on its own, so that a stranger holds up nobody, and turns away what it does not expect.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use coll_exec::Link;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::address::candidates;
use crate::error::{Attempt, LinkFailure, StartError};
use crate::handshake::{challenge, introduce};
use crate::host::Host;
use crate::options::JoinOptions;
use crate::socket;
use crate::token::Token;
use crate::wire::{Entry, LinkClaim, PROTOCOL_VERSION};

/// How many peers a rank connects to at a time, so that an all-to-all does not flood the peers' queues.
const AT_A_TIME: usize = 64;

/// What both ends of a link must know of the job.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) rank: u32,
    pub(crate) generation: u64,
    pub(crate) token: Token,
    pub(crate) socket_buffer_bytes: Option<usize>,
}

/// The links that are connected, by link.
pub(crate) type Connected = BTreeMap<Link, std::net::TcpStream>;

/// What was tried so far, by link: the error's text, if time runs out.
type Tried = Arc<Mutex<BTreeMap<Link, BTreeMap<SocketAddr, (u32, String)>>>>;

/// Connects all links of `options`, until `deadline`.
pub(crate) async fn connect(
    options: &JoinOptions,
    generation: u64,
    server_ip: IpAddr,
    peers: &[Entry],
    listener: TcpListener,
    deadline: Instant,
) -> Result<Connected, StartError> {
    let ground = Ground {
        rank: options.rank,
        generation,
        token: options.token.clone(),
        socket_buffer_bytes: options.socket_buffer_bytes,
    };
    let (dialed, awaited): (Vec<Link>, Vec<Link>) =
        options.links.iter().partition(|link| link.peer < options.rank);
    let addresses: BTreeMap<u32, Vec<SocketAddr>> =
        peers.iter().map(|peer| (peer.rank, candidates(&Host::here(), server_ip, peer))).collect();
    let tried = Tried::default();
    let mut connected = BTreeMap::new();
    let mut dialing = dial_all(&ground, &dialed, &addresses, &tried);
    let mut accepting = JoinSet::new();
    while connected.len() < options.links.len() {
        tokio::select! {
            Some(dialed) = dialing.join_next() => connected.extend(dialed),
            // A stranger leaves nothing; the next in line must be heard all the same.
            Some(accepted) = accepting.join_next() => connected.extend(accepted.ok().flatten()),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => { accepting.spawn(accept(stream, ground.clone(), awaited.clone())); }
                // Out of descriptors, most likely: strangers' may close.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            () = tokio::time::sleep_until(deadline) => {
                let missing = options.links.iter().copied().filter(|link| !connected.contains_key(link));
                return Err(failures(options, missing, &tried));
            }
        }
    }
    connected.into_iter().map(|(link, stream)| Ok((link, stream.into_std().map_err(unusable)?))).collect()
}

fn unusable(error: std::io::Error) -> StartError {
    StartError::System { what: "keep a connected socket", detail: error.to_string() }
}

fn dial_all(
    ground: &Ground,
    links: &[Link],
    addresses: &BTreeMap<u32, Vec<SocketAddr>>,
    tried: &Tried,
) -> JoinSet<(Link, TcpStream)> {
    let turns = Arc::new(Semaphore::new(AT_A_TIME));
    let mut dialing = JoinSet::new();
    for &link in links {
        let addresses = addresses.get(&link.peer).cloned().unwrap_or_default();
        dialing.spawn(dial(ground.clone(), link, addresses, turns.clone(), tried.clone()));
    }
    dialing
}

/// Tries a peer's addresses until one answers as that peer. Ends in no other way: the caller watches the time.
async fn dial(
    ground: Ground,
    link: Link,
    addresses: Vec<SocketAddr>,
    turns: Arc<Semaphore>,
    tried: Tried,
) -> (Link, TcpStream) {
    let mut pause = Backoff::new();
    loop {
        for &address in &addresses {
            let turn = turns.acquire().await;
            let attempt = dial_once(&ground, link, address).await;
            drop(turn);
            match attempt {
                Ok(stream) => return (link, stream),
                Err(result) => {
                    let mut tried = tried.lock().unwrap_or_else(PoisonError::into_inner);
                    let entry = tried.entry(link).or_default().entry(address).or_default();
                    *entry = (entry.0.saturating_add(1), result);
                }
            }
        }
        pause.wait().await;
    }
}

async fn dial_once(ground: &Ground, link: Link, address: SocketAddr) -> Result<TcpStream, String> {
    let mut stream =
        connect_to(address, ground.socket_buffer_bytes).await.map_err(|error| error.to_string())?;
    let claim =
        LinkClaim { generation: ground.generation, from: ground.rank, to: link.peer, channel: link.channel };
    introduce(&mut stream, &ground.token, claim).await.map_err(|error| error.to_string())?;
    Ok(stream)
}

/// Connects to an address, once, for three seconds at most: a lost packet is tried again soon, and other addresses
/// get their turn.
pub(crate) async fn connect_to(
    address: SocketAddr,
    buffer_bytes: Option<usize>,
) -> std::io::Result<TcpStream> {
    const PATIENCE: Duration = Duration::from_secs(3);
    let stream = tokio::time::timeout(PATIENCE, TcpStream::connect(address))
        .await
        .map_err(|_| std::io::Error::other(format!("no answer in {} s", PATIENCE.as_secs())))??;
    // Towards a free port of this machine, the system may pick that same port for this end, and connect it to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(std::io::ErrorKind::ConnectionRefused.into());
    }
    socket::prepare(&stream)?;
    if let Some(size_bytes) = buffer_bytes {
        socket::set_buffers(&stream, size_bytes)?;
    }
    Ok(stream)
}

/// Hears one connection out: a link that is awaited, or nothing.
async fn accept(mut stream: TcpStream, ground: Ground, awaited: Vec<Link>) -> Option<(Link, TcpStream)> {
    socket::prepare(&stream).ok()?;
    if let Some(size_bytes) = ground.socket_buffer_bytes {
        socket::set_buffers(&stream, size_bytes).ok()?;
    }
    let fits = |claim: &LinkClaim| {
        if claim.generation != ground.generation {
            return Err("this port is another job's now".to_owned());
        }
        if claim.to != ground.rank {
            return Err(format!("this is rank {}, not rank {}", ground.rank, claim.to));
        }
        if !awaited.contains(&Link { peer: claim.from, channel: claim.channel }) {
            let (rank, from, channel) = (ground.rank, claim.from, claim.channel);
            return Err(format!("rank {rank} awaits no connection from rank {from} on channel {channel}"));
        }
        Ok(())
    };
    let claim = challenge(&mut stream, &ground.token, fits).await?;
    let link = Link { peer: claim.what.from, channel: claim.what.channel };
    (claim.version == PROTOCOL_VERSION).then_some((link, stream))
}

fn failures(options: &JoinOptions, missing: impl Iterator<Item = Link>, tried: &Tried) -> StartError {
    let tried = tried.lock().unwrap_or_else(PoisonError::into_inner);
    let failure = |link: Link| {
        let attempts = tried.get(&link).into_iter().flatten();
        let attempts = attempts
            .map(|(address, (tries, result))| Attempt {
                address: *address,
                tries: *tries,
                result: result.clone(),
            })
            .collect();
        LinkFailure { link, attempts, dialed: link.peer < options.rank }
    };
    StartError::Links {
        rank: options.rank,
        limit_s: options.time_limit.as_secs_f64(),
        failures: missing.map(failure).collect(),
    }
}

/// Pauses between tries, from 10 ms doubling to half a second.
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff(Duration::from_millis(10))
    }

    /// How long the next pause is.
    pub(crate) fn next(&self) -> Duration {
        self.0
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(Duration::from_millis(500));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Contact;
    use expect_test::expect;
    use std::net::Ipv4Addr;

    fn peer(rank: u32, listen: SocketAddr) -> Entry {
        let contact = Contact { listen, advertise: vec![], control_ip: listen.ip(), host: Host::here() };
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
        let mut options = JoinOptions::new(2, 4, "unused");
        options.links = [0, 1, 3].map(|peer| Link { peer, channel: 5 }).to_vec();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let deadline = Instant::now() + Duration::from_millis(300);
        let peers = [peer(0, closed), peer(1, other_address)];
        let server_ip = Ipv4Addr::LOCALHOST.into();
        let error = connect(&options, 1, server_ip, &peers, listener, deadline).await.unwrap_err();
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

    #[tokio::test]
    async fn who_is_not_awaited_is_told_why_and_turned_away() {
        let ground =
            Ground { rank: 1, generation: 9, token: Token::from("sesame"), socket_buffer_bytes: None };
        let awaited = vec![Link { peer: 3, channel: 0 }];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut answers = Vec::new();
        for (generation, from, to, channel) in
            [(9, 3, 1, 0), (8, 3, 1, 0), (9, 3, 2, 0), (9, 2, 1, 0), (9, 3, 1, 1)]
        {
            let dialer = Ground { rank: from, generation, ..ground.clone() };
            let accepting = async {
                let (stream, _) = listener.accept().await.unwrap();
                accept(stream, ground.clone(), awaited.clone()).await.is_some()
            };
            let link = Link { peer: to, channel };
            let (dialed, accepted) = tokio::join!(dial_once(&dialer, link, address), accepting);
            assert_eq!(dialed.is_ok(), accepted);
            answers.push(dialed.map_or_else(|why| why, |_| "welcome".to_owned()));
        }
        expect![[r#"
            welcome
            this port is another job's now
            this is rank 1, not rank 2
            rank 1 awaits no connection from rank 2 on channel 0
            rank 1 awaits no connection from rank 3 on channel 1"#]]
        .assert_eq(&answers.join("\n"));
    }
}
