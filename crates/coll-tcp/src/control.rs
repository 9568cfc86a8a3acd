//! A rank's control thread while the job runs, and the board on which it pins what the calling thread must know.
//!
//! The calling thread never touches the control connection. It sends [`Command`]s, and looks at the [`Board`]: a
//! fault, or an exchange's blobs. The control thread wakes it by a byte on a local socket, which it polls beside the
//! links.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use coll_exec::Fault;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::options::JoinOptions;
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
    /// Say goodbye and end.
    Part,
}

/// The calling thread's end of the control thread. Dropped without a [`Control::part`], it cuts the connection, which
/// the other ranks hear of as this rank's death; unless it has given up before, which it then still tells.
#[derive(Debug)]
pub(crate) struct Control {
    reins: Option<Reins>,
    thread: Option<JoinHandle<()>>,
    gave_up: bool,
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
    pub(crate) fn new(reins: Reins, thread: JoinHandle<()>) -> Control {
        Control { reins: Some(reins), thread: Some(thread), gave_up: false }
    }

    /// Tells the server something. If the thread has ended, the board says why.
    pub(crate) fn say(&self, message: ToServer, body: Vec<u8>) {
        self.command(Command::Say(message, body));
    }

    /// Tells the server that this rank gives up.
    pub(crate) fn abort(&mut self, reason: &str) {
        self.gave_up = true;
        self.say(ToServer::Abort { reason: reason.to_owned() }, Vec::new());
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
    writer: OwnedWriteHalf,
    inbox: UnboundedReceiver<Incoming>,
    address: String,
    rank: u32,
    /// The rank whose process the server runs in, once known.
    pub(crate) host_rank: Option<u32>,
}

impl Server {
    pub(crate) fn new(stream: TcpStream, options: &JoinOptions) -> Server {
        let (mut reader, writer) = stream.into_split();
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
        Server { writer, inbox, address: options.address.clone(), rank: options.rank, host_rank: None }
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
    pub(crate) async fn attend(mut self, board: &Board, controls: Controls) {
        let Controls { mut commands, stop, _ending } = controls;
        tokio::select! {
            _ = stop => {}
            () = self.carry(board, &mut commands) => {}
        }
    }

    async fn carry(&mut self, board: &Board, commands: &mut UnboundedReceiver<Command>) {
        let mut closing = false;
        let mut hung_up = false;
        loop {
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Say(message, body)) => {
                        // If this fails, the reading half knows more.
                        let _ = self.say(&message, &body).await;
                    }
                    Some(Command::Part) => return self.part(&ToServer::Goodbye).await,
                    None => return,
                },
                incoming = self.inbox.recv(), if !hung_up => match incoming {
                    Some(Ok((ToRank::Closing, _))) => closing = true,
                    Some(Ok((message, body))) => board.pin(message, &body),
                    Some(Err(error)) => {
                        hung_up = true;
                        board.server_gone(if closing { None } else { Some(self.end_of_server(&error)) });
                    }
                    None => hung_up = true,
                },
            }
        }
    }

    fn end_of_server(&self, error: &FrameError) -> Fault {
        let detail = format!("the rendezvous at {} is gone: {error}", self.address);
        match self.host_rank {
            Some(peer) if peer != self.rank => Fault::PeerLost { peer, detail },
            _ => Fault::Aborted { origin: self.rank, reason: detail },
        }
    }
}

/// What the control thread has to tell the calling thread.
#[derive(Debug)]
pub(crate) struct Board {
    rank: u32,
    notes: Mutex<Notes>,
    /// Whether there is a fault: looked at without the lock.
    failed: AtomicBool,
    waker: UnixStream,
}

#[derive(Debug, Default)]
struct Notes {
    fault: Option<Fault>,
    gathered: Option<(u64, Vec<Vec<u8>>)>,
    missing: Option<(u64, Vec<u32>)>,
    server_gone: bool,
}

impl Board {
    /// A board, and the socket that becomes readable when something new is on it.
    pub(crate) fn new(rank: u32) -> io::Result<(Arc<Board>, UnixStream)> {
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let board = Board { rank, notes: Mutex::default(), failed: AtomicBool::new(false), waker };
        Ok((Arc::new(board), woken))
    }

    /// The job's fault, if it has one.
    pub(crate) fn fault(&self) -> Option<Fault> {
        if !self.failed.load(Ordering::Acquire) {
            return None;
        }
        self.notes().fault.clone()
    }

    /// Pins a fault, unless there is one already.
    pub(crate) fn fail(&self, fault: Fault) {
        self.notes().fault.get_or_insert(fault);
        self.failed.store(true, Ordering::Release);
        self.wake();
    }

    /// Takes the blobs of an exchange, if they have come.
    pub(crate) fn take_gathered(&self, sequence: u64) -> Option<Vec<Vec<u8>>> {
        self.notes().gathered.take_if(|(number, _)| *number == sequence).map(|(_, blobs)| blobs)
    }

    /// Takes the server's answer to who is missing in an exchange, if it has come.
    pub(crate) fn take_missing(&self, sequence: u64) -> Option<Vec<u32>> {
        self.notes().missing.take_if(|(number, _)| *number == sequence).map(|(_, ranks)| ranks)
    }

    /// Whether the server has ended, in good order or not.
    pub(crate) fn is_server_gone(&self) -> bool {
        self.notes().server_gone
    }

    fn pin(&self, message: ToRank, body: &[u8]) {
        match message {
            ToRank::Gone { rank, detail } => return self.fail(Fault::PeerLost { peer: rank, detail }),
            ToRank::Aborted { origin, reason } => return self.fail(Fault::Aborted { origin, reason }),
            ToRank::Gathered { sequence, lengths } => match cut(body, &lengths) {
                Some(blobs) => self.notes().gathered = Some((sequence, blobs)),
                None => return self.garbled(&format!("{} bytes are not blobs of {lengths:?}", body.len())),
            },
            ToRank::Missing { sequence, ranks } => self.notes().missing = Some((sequence, ranks)),
            other => return self.garbled(&format!("it said {other:?} while the job ran")),
        }
        self.wake();
    }

    fn garbled(&self, what: &str) {
        let reason = format!("protocol error of the rendezvous: {what}");
        self.fail(Fault::Aborted { origin: self.rank, reason });
    }

    fn server_gone(&self, fault: Option<Fault>) {
        self.notes().server_gone = true;
        match fault {
            Some(fault) => self.fail(fault),
            None => self.wake(),
        }
    }

    fn wake(&self) {
        // A full pipe wakes as well as another byte would.
        let _ = (&self.waker).write(&[1]);
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Empties the socket that the board wakes by, so that it can wake again.
pub(crate) fn drain(mut woken: &UnixStream) {
    let mut bytes = [0; 64];
    while matches!(woken.read(&mut bytes), Ok(1..)) {}
}

/// Cuts a body into parts of the given lengths; nothing if they do not add up to it.
fn cut(mut body: &[u8], lengths: &[u64]) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    for &length in lengths {
        let (part, rest) = body.split_at_checked(usize::try_from(length).ok()?)?;
        parts.push(part.to_vec());
        body = rest;
    }
    body.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_cut_only_where_the_lengths_add_up() {
        assert_eq!(cut(b"abc", &[1, 0, 2]), Some(vec![b"a".to_vec(), vec![], b"bc".to_vec()]));
        assert_eq!(cut(b"abc", &[1, 1]), None);
        assert_eq!(cut(b"abc", &[4]), None);
        assert_eq!(cut(b"", &[u64::MAX]), None);
    }

    #[test]
    fn the_first_fault_stays() {
        let (board, woken) = Board::new(0).unwrap();
        assert_eq!(board.fault(), None);
        board.pin(ToRank::Gone { rank: 3, detail: "x".into() }, &[]);
        board.pin(ToRank::Aborted { origin: 1, reason: "lost rank 3".into() }, &[]);
        assert_eq!(board.fault(), Some(Fault::PeerLost { peer: 3, detail: "x".into() }));
        let mut byte = [0];
        assert_eq!((&woken).read(&mut byte).unwrap(), 1, "the board has woken the calling thread");
        drain(&woken);
        assert!((&woken).read(&mut byte).is_err());
    }
}
