//! A rank's control thread while the job runs.
//!
//! The calling thread never touches the control connection. It sends [`Command`]s, and looks at the board
//! ([`crate::board`]), where the control thread pins what the server says and the links that were asked for. What the
//! server asks is answered here, without the calling thread.

use std::io;
use std::sync::mpsc as std_mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use coll_exec::{Fault, Link};
use tokio::io::{AsyncWriteExt, WriteHalf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::board::{Board, Explanation};
use crate::error::StartError;
use crate::links::{Connected, Paths};
use crate::options::JoinOptions;
use crate::stream::Stream;
use crate::wire::{FrameError, Limits, ToRank, ToServer, read_frame, write_frame};

/// How long a goodbye may take: a server that does not answer is not waited for.
const PARTING: Duration = Duration::from_secs(1);

/// What the server said, and the frame's body; or how the connection ended.
pub(crate) type Incoming = Result<(ToRank, Vec<u8>), FrameError>;

/// What the calling thread asks of the control thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// Tell the server.
    Say(ToServer, Vec<u8>),
    /// Connect these links, and hand them over by the board.
    Connect(Wanted),
    /// Say goodbye and end.
    Part,
}

/// Links to be connected.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) links: Vec<Link>,
    pub(crate) deadline: Instant,
    /// What is told if the deadline passes.
    pub(crate) limit_s: f64,
}

/// Who the server is, for people.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) address: String,
    /// The rank whose process the server runs in, if it is one.
    pub(crate) host_rank: Option<u32>,
}

impl Identity {
    /// What is to be said of a server that does not answer.
    pub(crate) fn silence(&self) -> Explanation {
        let address = &self.address;
        match self.host_rank {
            Some(rank) => Explanation {
                ranks: vec![rank],
                detail: format!(
                    "rank {rank}, which hosts the rendezvous at {address}, does not answer: is it stopped, or its machine cut off?"
                ),
            },
            None => Explanation {
                ranks: vec![],
                detail: format!(
                    "the rendezvous at {address} does not answer: is its process stopped, or its machine cut off?"
                ),
            },
        }
    }
}

/// The calling thread's end of the control thread. Dropped without a [`Control::part`], it cuts the connection, which
/// the other ranks hear of as this rank's death; unless it has given up before, which it then still tells.
#[derive(Debug)]
pub(crate) struct Control {
    reins: Option<Reins>,
    thread: Option<JoinHandle<()>>,
    gave_up: bool,
    pub(crate) server: Identity,
}

/// The calling thread's way to the control thread.
#[derive(Debug)]
pub(crate) struct Reins {
    commands: UnboundedSender<Command>,
    /// Dropping it stops the thread, whatever it is doing.
    _stop: oneshot::Sender<()>,
    /// Closed when the thread has ended.
    ended: std_mpsc::Receiver<()>,
}

/// The control thread's side of [`Reins`].
#[derive(Debug)]
pub(crate) struct Controls {
    commands: UnboundedReceiver<Command>,
    stop: oneshot::Receiver<()>,
    _ending: std_mpsc::Sender<()>,
}

/// Both sides.
pub(crate) fn controls() -> (Reins, Controls) {
    let (commands, commanded) = unbounded_channel();
    let (stop, stopped) = oneshot::channel();
    let (ending, ended) = std_mpsc::channel();
    (Reins { commands, _stop: stop, ended }, Controls { commands: commanded, stop: stopped, _ending: ending })
}

impl Control {
    pub(crate) fn new(reins: Reins, thread: JoinHandle<()>, server: Identity) -> Control {
        Control { reins: Some(reins), thread: Some(thread), gave_up: false, server }
    }

    /// Tells the server something. If the thread has ended, the board says why.
    pub(crate) fn say(&self, message: ToServer, body: Vec<u8>) {
        self.command(Command::Say(message, body));
    }

    /// Asks for links; they come by the board.
    pub(crate) fn connect(&self, wanted: Wanted) {
        self.command(Command::Connect(wanted));
    }

    /// Tells the server that this rank gives up.
    pub(crate) fn abort(&mut self, reason: &str) {
        self.gave_up = true;
        self.say(ToServer::Abort { reason: reason.to_owned() }, Vec::new());
    }

    /// A way to give up from any thread.
    pub(crate) fn commands(&self) -> Option<UnboundedSender<Command>> {
        self.reins.as_ref().map(|reins| reins.commands.clone())
    }

    /// Says goodbye, and waits for the thread to end: a second at most.
    pub(crate) fn part(mut self) {
        self.end(true);
    }

    fn command(&self, command: Command) {
        if let Some(reins) = &self.reins {
            let _ = reins.commands.send(command);
        }
    }

    fn end(&mut self, politely: bool) {
        if politely {
            self.command(Command::Part);
            if let Some(reins) = &self.reins {
                let _ = reins.ended.recv_timeout(PARTING);
            }
        }
        self.reins = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.end(self.gave_up);
    }
}

/// A rank's connection to the server.
pub(crate) struct Server {
    writer: WriteHalf<Stream>,
    inbox: UnboundedReceiver<Incoming>,
    rank: u32,
    pub(crate) identity: Identity,
}

impl Server {
    pub(crate) fn new(stream: Stream, options: &JoinOptions) -> Server {
        let (mut reader, writer) = tokio::io::split(stream);
        let (sender, inbox) = unbounded_channel();
        let limits = Limits::from_server(options.world);
        // Reading a frame cannot be broken off in the middle, so a task of its own does it.
        tokio::spawn(async move {
            loop {
                let incoming = read_frame(&mut reader, limits).await;
                let last = incoming.is_err();
                if sender.send(incoming).is_err() || last {
                    return;
                }
            }
        });
        let identity = Identity { address: options.address.clone(), host_rank: None };
        Server { writer, inbox, rank: options.rank, identity }
    }

    pub(crate) async fn say(&mut self, message: &ToServer, body: &[u8]) -> io::Result<()> {
        write_frame(&mut self.writer, message, body).await
    }

    /// What the server says next. Breaking it off loses nothing.
    pub(crate) async fn next(&mut self) -> Incoming {
        self.inbox.recv().await.unwrap_or(Err(FrameError::Closed))
    }

    /// Says a last thing and waits until the server has closed, lest what is still unread here cut it off on its way.
    pub(crate) async fn part(&mut self, message: &ToServer) {
        let parting = async {
            self.say(message, &[]).await?;
            self.writer.shutdown().await?;
            while self.next().await.is_ok() {}
            io::Result::Ok(())
        };
        let _ = timeout(PARTING, parting).await;
    }

    /// Carries commands to the server and its news to the board, until told to end.
    pub(crate) async fn attend(self, paths: Paths, board: &Board, controls: Controls) {
        let Controls { mut commands, stop, _ending } = controls;
        let mut attendance = Attendance {
            server: self,
            paths,
            board,
            wanted: None,
            connecting: JoinSet::new(),
            closing: false,
            hung_up: false,
        };
        tokio::select! {
            _ = stop => {}
            () = attendance.carry(&mut commands) => {}
        }
    }

    fn end(&self, error: &FrameError) -> Fault {
        let detail = format!("the rendezvous at {} is gone: {error}", self.identity.address);
        match self.identity.host_rank {
            Some(peer) if peer != self.rank => Fault::PeerLost { peer, detail },
            _ => Fault::Aborted { origin: self.rank, reason: detail },
        }
    }
}

/// The control thread's state while the job runs.
struct Attendance<'b> {
    server: Server,
    paths: Paths,
    board: &'b Board,
    /// Links that wait for the server to say where their peers are.
    wanted: Option<Wanted>,
    connecting: JoinSet<Result<Connected, StartError>>,
    /// The server has said that it ends.
    closing: bool,
    hung_up: bool,
}

impl Attendance<'_> {
    async fn carry(&mut self, commands: &mut UnboundedReceiver<Command>) {
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    // If this fails, the reading half knows more.
                    Some(Command::Say(message, body)) => { let _ = self.server.say(&message, &body).await; }
                    Some(Command::Connect(wanted)) => self.want(wanted).await,
                    Some(Command::Part) => return self.server.part(&ToServer::Goodbye).await,
                    None => return,
                },
                Some(connected) = self.connecting.join_next() => {
                    // A panic of that task is told by nobody else.
                    self.board.hand_over(connected.unwrap_or_else(|error| {
                        Err(StartError::System { what: "connect to peers", detail: error.to_string() })
                    }));
                }
                incoming = self.server.inbox.recv(), if !self.hung_up => self.hear(incoming).await,
            }
        }
    }

    async fn hear(&mut self, incoming: Option<Incoming>) {
        match incoming {
            Some(Ok((ToRank::Closing, _))) => self.closing = true,
            Some(Ok((ToRank::Inquire, _))) => {
                let report = self.board.report();
                let _ = self.server.say(&ToServer::Doing { report }, &[]).await;
            }
            Some(Ok((ToRank::Peers { peers }, _))) => {
                self.paths.known.extend(peers.into_iter().map(|peer| (peer.rank, peer)));
                if let Some(wanted) = self.wanted.take() {
                    self.connect(wanted);
                }
            }
            Some(Ok((message, body))) => self.board.pin(message, &body),
            Some(Err(error)) => {
                self.hung_up = true;
                let fault = if self.closing { None } else { Some(self.server.end(&error)) };
                self.board.server_gone(fault);
            }
            None => self.hung_up = true,
        }
    }

    /// Connects what is wanted, once it is known where the peers are.
    async fn want(&mut self, wanted: Wanted) {
        let ranks = self.paths.unknown(&wanted.links);
        if ranks.is_empty() {
            return self.connect(wanted);
        }
        self.wanted = Some(wanted);
        let _ = self.server.say(&ToServer::WhereAre { ranks }, &[]).await;
    }

    fn connect(&mut self, wanted: Wanted) {
        let paths = self.paths.clone();
        self.connecting.spawn(async move {
            let Wanted { links, deadline, limit_s } = wanted;
            paths.connect(&links, deadline, limit_s).await
        });
    }
}
