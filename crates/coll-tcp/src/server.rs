//! The rendezvous server: a thread that listens, hears out one connection per rank, and lets the desk decide.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::desk::{Desk, Event, Letter};
use crate::error::StartError;
use crate::handshake::{self, Keys, challenge};
use crate::host::{self, Host};
use crate::roster::{LineId, Registration};
use crate::socket;
use crate::stream::Stream;
use crate::token::{self, Token};
use crate::wire::{
    Claim, FrameError, Limits, RankClaim, ToServer, WORLD_LIMIT, read_frame, read_message, write_frame,
};

/// How long a connection that is being closed may take to hear its last words.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running rendezvous server. Dropping it ends it: jobs that still run are told, and go on without news of the
/// deaths of ranks that they are not linked to. [`Rendezvous::finish`] waits for them.
#[derive(Debug)]
pub struct Rendezvous {
    address: SocketAddr,
    orders: watch::Sender<Order>,
    ended: mpsc::Receiver<()>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Serve,
    /// End once no rank is left.
    Drain,
    /// End.
    Stop,
}

impl Rendezvous {
    /// Listens at `address` (`host:port`; port 0 for any free one) and serves in the background any number of jobs,
    /// one after the other or at once, whose ranks know `token`. A name other than `localhost` that stands for loopback
    /// here is this machine's own, which others reach at another address: then it listens at all.
    pub fn bind(address: &str, token: impl Into<Token>) -> Result<Rendezvous, StartError> {
        Rendezvous::bind_tls(address, token, false)
    }

    /// As [`Rendezvous::bind`], within TLS if that is `on`: for ranks that have it on
    /// ([`JoinOptions::tls`](crate::JoinOptions::tls)).
    pub fn bind_tls(address: &str, token: impl Into<Token>, on: bool) -> Result<Rendezvous, StartError> {
        let keys = Keys::new(token.into(), on)?;
        let listener = listen(address)?;
        host::raise_descriptor_limit();
        let bound = listener.local_addr().map_err(|error| system("read the port that was bound", &error))?;
        let first_generation = token::nonce().map_err(|error| system("draw random bytes", &error))?;
        let first_generation = u64::from_le_bytes(std::array::from_fn(|place| first_generation[place]));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| system("start an event loop", &error))?;
        let (orders, orders_seen) = watch::channel(Order::Serve);
        let (ending, ended) = mpsc::channel();
        let serve = move || {
            let desk = Desk::new(first_generation, Host::here());
            runtime.block_on(serve(listener, keys, desk, orders_seen));
            runtime.shutdown_background();
            let _ = ending.send(());
        };
        let thread = thread::Builder::new()
            .name("coll-rendezvous".to_owned())
            .spawn(serve)
            .map_err(|error| system("start a thread", &error))?;
        Ok(Rendezvous { address: bound, orders, ended, thread: Some(thread) })
    }

    /// The address it listens at, with the port that it got.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until every rank has left, or for `limit`, then ends. Says whether every rank had left.
    pub fn finish(self, limit: Duration) -> bool {
        self.orders.send_replace(Order::Drain);
        self.ended.recv_timeout(limit).is_ok()
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        self.orders.send_replace(Order::Stop);
        if let Some(thread) = self.thread.take() {
            // It ends within LAST_WORDS. A panic of that thread has been its ranks' error already.
            let _ = thread.join();
        }
    }
}

fn listen(address: &str) -> Result<TcpListener, StartError> {
    let resolve = |detail: String| StartError::Resolve { address: address.to_owned(), detail };
    let mut candidates: Vec<SocketAddr> =
        address.to_socket_addrs().map_err(|error| resolve(error.to_string()))?.collect();
    if is_name_of_this_machine(address, &candidates) {
        let anywhere = |address: &SocketAddr| match address {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, address.port())),
        };
        candidates = candidates.iter().map(anywhere).collect();
    }
    let mut last = resolve("it stands for no address".to_owned());
    for candidate in candidates {
        match socket::listen(candidate) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Many systems let their own name stand for loopback (Debian for 127.0.1.1). Elsewhere it stands for a real address:
/// who listens by that name must be found there too.
fn is_name_of_this_machine(address: &str, candidates: &[SocketAddr]) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_literal = host.parse::<std::net::IpAddr>().is_ok();
    let means_loopback =
        host == "localhost" || host.ends_with(".localhost") || host.starts_with("localhost.");
    !is_literal
        && !means_loopback
        && !candidates.is_empty()
        && candidates.iter().all(|candidate| candidate.ip().is_loopback())
}

fn system(what: &'static str, error: &std::io::Error) -> StartError {
    StartError::System { what, detail: error.to_string() }
}

async fn serve(listener: TcpListener, keys: Keys, mut desk: Desk, mut orders: watch::Receiver<Order>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let (events, mut happened) = unbounded_channel();
    let mut lines = JoinSet::new();
    let mut next_line: LineId = 0;
    loop {
        match *orders.borrow_and_update() {
            Order::Stop => break,
            Order::Drain if desk.is_empty() => break,
            Order::Serve | Order::Drain => {}
        }
        let deadline = desk.next_deadline();
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    lines.spawn(attend(stream, from, next_line, keys.clone(), events.clone()));
                    next_line += 1;
                }
                // Out of descriptors, most likely: those that are open may close.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(event) = happened.recv() => desk.handle(event, Instant::now()),
            () = until(deadline) => desk.expire(Instant::now()),
            Some(_) = lines.join_next() => {}
            changed = orders.changed() => if changed.is_err() { break },
        }
    }
    desk.close();
    let _ = tokio::time::timeout(LAST_WORDS, async { while lines.join_next().await.is_some() {} }).await;
}

/// Sleeps until a time, or for ever if there is none.
async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// Attends to one connection from its challenge to its end. A stranger's ends without a trace.
async fn attend(
    stream: TcpStream,
    from: SocketAddr,
    line: LineId,
    keys: Keys,
    events: UnboundedSender<Event>,
) {
    if socket::prepare(&stream).is_err() {
        return;
    }
    let Some((mut stream, claim)) = challenge(stream, &keys, claim_fits).await else { return };
    let observed_ip = from.ip().to_canonical();
    let own_ip = stream.socket().local_addr().map(|address| address.ip().to_canonical());
    let beside_server = observed_ip.is_loopback() || own_ip.is_ok_and(|ip| ip == observed_ip);
    let is_like = claim.is_like(&keys);
    let Claim { version, tls, what: RankClaim { job, rank, world, patience_ms }, .. } = claim;
    let mut registration = Registration {
        version,
        tls,
        rank,
        world,
        patience: Duration::from_millis(patience_ms),
        particulars: None,
        observed_ip,
        beside_server,
    };
    let (letters, outgoing) = unbounded_channel();
    if !is_like {
        // It has read our version, and whether TLS is on here, and will say so itself; the others have yet to hear of it.
        let _ = events.send(Event::Came { line, job, registration: Box::new(registration), letters });
        return;
    }
    let registered =
        tokio::time::timeout(handshake::PATIENCE, read_message(&mut stream, Limits::FROM_RANK)).await;
    let Ok(Ok(ToServer::Register(particulars))) = registered else { return };
    registration.particulars = Some(*particulars);
    let _ = events.send(Event::Came { line, job, registration: Box::new(registration), letters });
    let (reader, writer) = tokio::io::split(stream);
    let hearing = hear(reader, line, events);
    tokio::pin!(hearing);
    let telling = tell(writer, outgoing);
    tokio::pin!(telling);
    tokio::select! {
        () = &mut hearing => { let _ = tokio::time::timeout(LAST_WORDS, telling).await; }
        () = &mut telling => { let _ = tokio::time::timeout(LAST_WORDS, hearing).await; }
    }
}

fn claim_fits(claim: &RankClaim) -> Result<(), String> {
    let world = claim.world;
    if world == 0 || world > WORLD_LIMIT {
        return Err(format!("a job of {world} ranks: from 1 to {WORLD_LIMIT} are possible"));
    }
    Ok(())
}

/// Reports what a rank says, until it says goodbye or cannot be understood.
async fn hear(mut reader: ReadHalf<Stream>, line: LineId, events: UnboundedSender<Event>) {
    loop {
        match read_frame(&mut reader, Limits::FROM_RANK).await {
            Ok((message, body)) => {
                let last = matches!(message, ToServer::Goodbye);
                if events.send(Event::Said { line, message, body }).is_err() || last {
                    return;
                }
            }
            Err(error) => {
                let detail = match error {
                    FrameError::Garbage(what) => format!("protocol error: {what}"),
                    other => other.to_string(),
                };
                let _ = events.send(Event::Closed { line, detail });
                return;
            }
        }
    }
}

/// Sends a rank its letters, until there will be no more.
async fn tell(mut writer: WriteHalf<Stream>, mut letters: UnboundedReceiver<Letter>) {
    while let Some((message, body)) = letters.recv().await {
        if write_frame(&mut writer, &message, &body).await.is_err() {
            // The reading half will say so.
            return;
        }
    }
    let _ = tokio::io::AsyncWriteExt::shutdown(&mut writer).await;
}
