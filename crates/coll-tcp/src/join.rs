//! How a rank joins a job: it reaches the server, registers, learns where its peers are, connects to them, and waits
//! until every rank has. So either all ranks start or none does, and each that does not knows why.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::thread;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};

use crate::accept::{self, Stash};
use crate::board::Board;
use crate::control::{Control, Controls, Identity, Incoming, Server, controls};
use crate::dial::{Backoff, Race};
use crate::error::{RankList, StartError};
use crate::handshake::{HandshakeError, Keys, introduce};
use crate::host::{Host, ensure_descriptors};
use crate::interfaces;
use crate::links::{Connected, Ground, Paths};
use crate::options::JoinOptions;
use crate::socket;
use crate::stream::Stream;
use crate::transport::{LIMIT_MAX, TcpTransport};
use crate::wire::{Contact, Entry, FrameError, Limits, Particulars, RankClaim, ToRank, ToServer, frame_head};

/// Names that do not resolve are asked for again for so long: a cluster's may take a while to appear.
const NAME_PATIENCE: Duration = Duration::from_secs(10);

/// The server answers a moment later than a rank's time limit, if the limit is what it has to tell of.
const GRACE: Duration = Duration::from_millis(800);

/// Joins a job. Returns when every rank is connected to all the peers of its options, or with the reason why that
/// cannot be. Other links are made later, by [`TcpTransport::connect`].
///
/// A world of one rank opens no socket but a local one, and needs no server.
pub fn join(options: JoinOptions) -> Result<TcpTransport, StartError> {
    options.validate()?;
    let mut options = options;
    let chosen = use_interfaces(&mut options)?;
    let waker = |error: io::Error| StartError::System {
        what: "make a pair of sockets to wake by",
        detail: error.to_string(),
    };
    let (board, woken) = Board::new(options.rank).map_err(waker)?;
    if options.world == 1 {
        return Ok(TcpTransport::new(&options, Connected::new(), None, board, woken));
    }
    ensure_descriptors(options.links.len() as u64)?;
    let (handle, reins) = controls();
    let (starting, started) = std_mpsc::channel();
    let (rank_board, rank_options) = (Arc::clone(&board), options.clone());
    let thread = thread::Builder::new()
        .name(format!("coll-control-{}", options.rank))
        .spawn(move || attend_to_job(&rank_options, chosen, &rank_board, reins, &starting))
        .map_err(|error| StartError::System { what: "start a thread", detail: error.to_string() })?;
    let gone = |_| StartError::System {
        what: "start",
        detail: "the control thread ended without a word".to_owned(),
    };
    let (connected, server) = started.recv().map_err(gone)??;
    let control = Control::new(handle, thread, server);
    Ok(TcpTransport::new(&options, connected, Some(control), board, woken))
}

/// Listens at, or advertises, the addresses of the interfaces that were chosen, which it returns.
fn use_interfaces(options: &mut JoinOptions) -> Result<Vec<IpAddr>, StartError> {
    let Some(wanted) = &options.interfaces else { return Ok(Vec::new()) };
    if options.listen.is_some() || !options.advertise.is_empty() {
        return Ok(Vec::new());
    }
    let chosen = interfaces::choose(wanted)?;
    match chosen[..] {
        [one] => options.listen = Some(SocketAddr::new(one, 0)),
        _ => options.advertise = chosen.iter().map(|ip| SocketAddr::new(*ip, 0)).collect(),
    }
    Ok(chosen)
}

/// What a rank starts with.
type Started = Result<(Connected, Identity), StartError>;

/// The control thread's whole life.
fn attend_to_job(
    options: &JoinOptions,
    chosen: Vec<IpAddr>,
    board: &Board,
    reins: Controls,
    starting: &std_mpsc::Sender<Started>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            let error = StartError::System { what: "start an event loop", detail: error.to_string() };
            let _ = starting.send(Err(error));
            return;
        }
    };
    runtime.block_on(async {
        match start(options, chosen).await {
            Ok((server, paths, connected)) => {
                if starting.send(Ok((connected, server.identity.clone()))).is_ok() {
                    server.attend(paths, board, reins).await;
                }
            }
            Err(error) => {
                let _ = starting.send(Err(error));
            }
        }
    });
    // A name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
}

async fn start(options: &JoinOptions, chosen: Vec<IpAddr>) -> Result<(Server, Paths, Connected), StartError> {
    let deadline = deadline_of(options);
    let keys = Keys::new(options.token.clone(), options.tls)?;
    let stream = reach(options, &keys, deadline).await?;
    let listener = listen(options)?;
    let ends =
        |error: io::Error| StartError::System { what: "read a socket's address", detail: error.to_string() };
    let server_ip = stream.socket().peer_addr().map_err(ends)?.ip().to_canonical();
    let contact = Contact {
        listen: listener.local_addr().map_err(ends)?,
        advertise: options.advertise.clone(),
        control_ip: stream.socket().local_addr().map_err(ends)?.ip().to_canonical(),
        host: Host::here(),
        chosen,
    };
    let mut server = Server::new(stream, options);
    tell(options, &mut server, &register(options, contact)?, deadline).await?;
    let (generation, known) = hear_start(options, &mut server, deadline).await?;
    let ground = Ground {
        rank: options.rank,
        world: options.world,
        generation,
        keys,
        socket_buffer_bytes: options.socket_buffer_bytes,
    };
    let stash = Stash::new();
    tokio::spawn(accept::attend(listener, ground.clone(), stash.clone()));
    let paths = Paths { ground, server_ip, stash, known };
    match connect_and_agree(options, &mut server, &paths, deadline).await {
        Ok(connected) => Ok((server, paths, connected)),
        Err(error) => {
            // The others wait for this rank: they should know why it will not come.
            server.part(&ToServer::Abort { reason: error.to_string() }).await;
            Err(error)
        }
    }
}

fn deadline_of(options: &JoinOptions) -> Instant {
    Instant::now() + options.time_limit.min(LIMIT_MAX)
}

fn listen(options: &JoinOptions) -> Result<TcpListener, StartError> {
    let listener = match options.listen {
        Some(address) => socket::listen(address)?,
        None => socket::listen_anywhere()?,
    };
    TcpListener::from_std(listener)
        .map_err(|error| StartError::System { what: "listen for peers", detail: error.to_string() })
}

fn register(options: &JoinOptions, contact: Contact) -> Result<ToServer, StartError> {
    let links = options.links.iter().map(|link| (link.peer, link.channel)).collect();
    let message = ToServer::Register(Box::new(Particulars {
        fingerprint: options.fingerprint.clone(),
        links,
        contact,
    }));
    let length = frame_head(&message, 0).map_or(usize::MAX, |frame| frame.len());
    let limit = Limits::FROM_RANK.head_bytes;
    if length > limit {
        let detail = format!("fingerprint and links take {length} bytes, of {limit} allowed");
        return Err(StartError::Options { detail });
    }
    Ok(message)
}

/// Connects to the server and proves it, trying again while nobody is there yet.
async fn reach(options: &JoinOptions, keys: &Keys, deadline: Instant) -> Result<Stream, StartError> {
    let began = Instant::now();
    let mut tries = 0;
    let mut last = String::from("its name was not looked up in time");
    let answered = Cell::new(false);
    let mut pause = Backoff::new();
    let trying = async {
        loop {
            let addresses = resolve(&options.address, deadline.min(began + NAME_PATIENCE)).await?;
            let mut race = Race::new(&addresses, None);
            while let Some((_, outcome)) = race.next().await {
                tries += 1;
                let reached = match outcome {
                    Ok(stream) => introduce_to_server(options, keys, stream, deadline, &answered).await,
                    Err(error) => Err(Reach::Again(error.to_string())),
                };
                match reached {
                    Ok(stream) => return Ok(stream),
                    Err(Reach::Final(error)) => return Err(error),
                    Err(Reach::Again(why)) => last = why,
                }
            }
            pause.wait().await;
        }
    };
    match timeout_at(deadline, trying).await {
        Ok(result) => result,
        Err(_) if answered.get() => Err(silent(options)),
        Err(_) => Err(StartError::Unreachable {
            address: options.address.clone(),
            tries: tries.max(1),
            waited_s: began.elapsed().as_secs_f64(),
            last,
        }),
    }
}

/// What became of one try to reach the server.
enum Reach {
    /// Another may succeed.
    Again(String),
    Final(StartError),
}

async fn resolve(address: &str, until: Instant) -> Result<Vec<SocketAddr>, StartError> {
    let fail = |detail: String| StartError::Resolve { address: address.to_owned(), detail };
    let port = address.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    if !matches!(port, Some(Ok(1..))) {
        return Err(fail("it does not end in a port from 1 to 65535".to_owned()));
    }
    let mut pause = Backoff::new();
    loop {
        match tokio::net::lookup_host(address).await {
            Ok(found) => return Ok(found.collect()),
            Err(error) if Instant::now() + pause.next() >= until => return Err(fail(error.to_string())),
            Err(_) => pause.wait().await,
        }
    }
}

/// `answered` says, if this is broken off, whether somebody accepted the connection and was silent then.
async fn introduce_to_server(
    options: &JoinOptions,
    keys: &Keys,
    stream: TcpStream,
    deadline: Instant,
    answered: &Cell<bool>,
) -> Result<Stream, Reach> {
    answered.set(true);
    let patience = deadline.saturating_duration_since(Instant::now());
    let claim = RankClaim {
        job: options.job.clone(),
        rank: options.rank,
        world: options.world,
        patience_ms: u64::try_from(patience.as_millis()).unwrap_or(u64::MAX),
    };
    let address = options.address.clone();
    let introduced = introduce(stream, keys, claim).await;
    answered.set(false);
    match introduced {
        Ok(stream) => Ok(stream),
        Err(HandshakeError::Unlike { theirs }) => {
            Err(Reach::Final(StartError::TlsUnlike { address, theirs }))
        }
        Err(HandshakeError::Version { theirs }) => {
            Err(Reach::Final(StartError::Version { address, ours: crate::wire::PROTOCOL_VERSION, theirs }))
        }
        Err(HandshakeError::TokenRefused) => Err(Reach::Final(StartError::TokenRefused { address })),
        Err(HandshakeError::Unproven) => Err(Reach::Final(StartError::ServerUnproven { address })),
        Err(HandshakeError::NotHere(detail)) => {
            Err(Reach::Final(StartError::NotARendezvous { address, detail }))
        }
        Err(HandshakeError::Frame(FrameError::Garbage(detail))) => {
            Err(Reach::Final(StartError::NotARendezvous { address, detail }))
        }
        Err(HandshakeError::Silent) => {
            answered.set(true);
            Err(Reach::Again("it accepts connections but does not answer".to_owned()))
        }
        Err(HandshakeError::Frame(FrameError::Closed)) => Err(Reach::Again("it hung up".to_owned())),
        Err(HandshakeError::Frame(FrameError::Io(error))) => Err(Reach::Again(error.to_string())),
    }
}

async fn hear_start(
    options: &JoinOptions,
    server: &mut Server,
    deadline: Instant,
) -> Result<(u64, BTreeMap<u32, Entry>), StartError> {
    match timeout_at(deadline + GRACE, server.next()).await {
        Ok(Ok((ToRank::Start { generation, host_rank, peers }, _))) => {
            server.identity.host_rank = host_rank;
            Ok((generation, peers.into_iter().map(|peer| (peer.rank, peer)).collect()))
        }
        Ok(incoming) => Err(not_started(options, incoming)),
        Err(_) => Err(silent(options)),
    }
}

/// Connects the links, then waits until every rank has; meanwhile listens for news of the others' end.
async fn connect_and_agree(
    options: &JoinOptions,
    server: &mut Server,
    paths: &Paths,
    deadline: Instant,
) -> Result<Connected, StartError> {
    let limit_s = options.time_limit.as_secs_f64();
    let connected = tokio::select! {
        connected = paths.connect(&options.links, deadline, limit_s) => connected?,
        incoming = server.next() => return Err(not_started(options, incoming)),
    };
    tell(options, server, &ToServer::Ready, deadline).await?;
    match timeout_at(deadline, server.next()).await {
        Ok(Ok((ToRank::AllReady, _))) => return Ok(connected),
        Ok(incoming) => return Err(not_started(options, incoming)),
        Err(_) => {}
    }
    tell(options, server, &ToServer::WhoIsMissing { sequence: 0 }, deadline + GRACE).await?;
    match timeout_at(deadline + GRACE, server.next()).await {
        Ok(Ok((ToRank::AllReady, _))) => Ok(connected),
        Ok(Ok((ToRank::Missing { ranks, .. }, _))) => {
            Err(StartError::NotConnected { ranks: RankList(ranks), limit_s })
        }
        Ok(incoming) => Err(not_started(options, incoming)),
        Err(_) => Err(silent(options)),
    }
}

/// Tells the server something, which a stopped one may leave in the pipe.
async fn tell(
    options: &JoinOptions,
    server: &mut Server,
    message: &ToServer,
    deadline: Instant,
) -> Result<(), StartError> {
    match timeout_at(deadline, server.say(message, &[])).await {
        Ok(said) => said.map_err(|error| server_gone(options, &error.to_string())),
        Err(_) => Err(silent(options)),
    }
}

fn silent(options: &JoinOptions) -> StartError {
    StartError::Silent { address: options.address.clone(), limit_s: options.time_limit.as_secs_f64() }
}

/// What the server said, when it should have said that things go well.
fn not_started(options: &JoinOptions, incoming: Incoming) -> StartError {
    match incoming {
        Ok((ToRank::Refused(refusal), _)) => refusal.into_error(&options.address),
        Ok((ToRank::Gone { rank, detail }, _)) => StartError::PeerLost { rank, detail },
        Ok((ToRank::Aborted { origin, reason }, _)) => StartError::GaveUp { origin, reason },
        Ok((ToRank::Closing, _)) => server_gone(options, "it was stopped"),
        Ok((other, _)) => StartError::NotARendezvous {
            address: options.address.clone(),
            detail: format!("out of turn it said {other:?}"),
        },
        Err(error) => server_gone(options, &error.to_string()),
    }
}

fn server_gone(options: &JoinOptions, detail: &str) -> StartError {
    StartError::ServerGone { address: options.address.clone(), detail: detail.to_owned() }
}
