//! The board between a rank's two threads: what the control thread has learned, and what the calling thread is doing.
//!
//! The calling thread looks at it without a lock while things go well, and is woken by a byte on a local socket, which
//! it polls beside the links. The control thread reads from it what this rank is doing, when the server asks; so a
//! rank answers for itself even while its calling thread is busy elsewhere.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coll_exec::Fault;

use crate::call::{Call, Doing, Moment, Report};
use crate::error::StartError;
use crate::links::Connected;
use crate::wire::ToRank;

/// What the threads of a rank tell each other.
#[derive(Debug)]
pub(crate) struct Board {
    rank: u32,
    notes: Mutex<Notes>,
    doing: Mutex<Doing>,
    moment: Moment,
    /// Whether there is a fault: looked at without the lock.
    failed: AtomicBool,
    waker: UnixStream,
}

#[derive(Debug, Default)]
struct Notes {
    fault: Option<Fault>,
    gathered: Option<(u64, Vec<Vec<u8>>)>,
    missing: Option<(u64, Vec<u32>)>,
    explained: Option<(u64, Explanation)>,
    connected: Option<Result<Connected, StartError>>,
    server_gone: bool,
}

/// What the server found out about a stall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Explanation {
    /// Who keeps the others waiting; nobody if nothing was found.
    pub(crate) ranks: Vec<u32>,
    pub(crate) detail: String,
}

/// Tells whether the job has failed, from any thread and without a call to the system: for other transports that
/// sleep by themselves. Stays valid after its [`TcpTransport`](crate::TcpTransport) has ended.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Board>);

impl Watch {
    pub(crate) fn new(board: &Arc<Board>) -> Watch {
        Watch(Arc::clone(board))
    }

    /// The job's fault, if it has one: the first reason that any rank gave.
    pub fn fault(&self) -> Option<Fault> {
        self.0.fault()
    }

    /// Whether there is a fault: one load from memory.
    pub fn has_failed(&self) -> bool {
        self.0.failed.load(Ordering::Acquire)
    }
}

impl Board {
    /// A board, and the socket that becomes readable when something new is on it.
    pub(crate) fn new(rank: u32) -> io::Result<(Arc<Board>, UnixStream)> {
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        let board = Board {
            rank,
            notes: Mutex::default(),
            doing: Mutex::default(),
            moment: Moment::default(),
            failed: AtomicBool::new(false),
            waker,
        };
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

    /// Takes the server's explanation of a stall, if it has come.
    pub(crate) fn take_explained(&self, sequence: u64) -> Option<Explanation> {
        self.notes().explained.take_if(|(number, _)| *number == sequence).map(|(_, explanation)| explanation)
    }

    /// Takes what has become of the links that were asked for, if it is known.
    pub(crate) fn take_connected(&self) -> Option<Result<Connected, StartError>> {
        self.notes().connected.take()
    }

    /// Hands over links, or tells why there are none.
    pub(crate) fn hand_over(&self, connected: Result<Connected, StartError>) {
        self.notes().connected = Some(connected);
        self.wake();
    }

    /// Whether the server has ended, in good order or not.
    pub(crate) fn is_server_gone(&self) -> bool {
        self.notes().server_gone
    }

    /// Notes that this rank begins an operation.
    pub(crate) fn begin(&self, operation: u64, call: &Arc<Call>) {
        self.waited();
        // Whoever begins a call while it is in one makes both as one.
        self.doing().begin(operation, call, self.moment.is_within());
        self.moment.turn(true);
    }

    /// Notes that this rank has ended its operation.
    pub(crate) fn end(&self) {
        self.waited();
        self.moment.turn(false);
    }

    /// It waits for nobody any more.
    fn waited(&self) {
        if self.moment.may_wait() {
            self.doing().waited();
            self.moment.set_waits(false);
        }
    }

    /// Notes whom this rank waits for.
    pub(crate) fn wait_for(&self, peers: impl Iterator<Item = u32>) {
        self.moment.set_waits(true);
        self.doing().wait_for(peers);
    }

    /// What this rank is doing, for the server.
    pub(crate) fn report(&self) -> Report {
        self.doing().report(&self.moment)
    }

    /// Pins what the server said, unless it is a question.
    pub(crate) fn pin(&self, message: ToRank, body: &[u8]) {
        match message {
            ToRank::Gone { rank, detail } => return self.fail(Fault::PeerLost { peer: rank, detail }),
            ToRank::Aborted { origin, reason } => return self.fail(Fault::Aborted { origin, reason }),
            ToRank::Mismatch { operation, detail } => {
                return self.fail(Fault::UnlikeCalls { operation, detail });
            }
            ToRank::Gathered { sequence, lengths } => match cut(body, &lengths) {
                Some(blobs) => self.notes().gathered = Some((sequence, blobs)),
                None => return self.garbled(&format!("{} bytes are not blobs of {lengths:?}", body.len())),
            },
            ToRank::Missing { sequence, ranks } => self.notes().missing = Some((sequence, ranks)),
            ToRank::Explained { sequence, ranks, detail } => {
                self.notes().explained = Some((sequence, Explanation { ranks, detail }));
            }
            other => return self.garbled(&format!("it said {other:?} while the job ran")),
        }
        self.wake();
    }

    fn garbled(&self, what: &str) {
        let reason = format!("protocol error of the rendezvous: {what}");
        self.fail(Fault::Aborted { origin: self.rank, reason });
    }

    pub(crate) fn server_gone(&self, fault: Option<Fault>) {
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

    fn doing(&self) -> MutexGuard<'_, Doing> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
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
        let watch = Watch::new(&board);
        assert_eq!((board.fault(), watch.fault(), watch.has_failed()), (None, None, false));
        board.pin(ToRank::Gone { rank: 3, detail: "x".into() }, &[]);
        board.pin(ToRank::Aborted { origin: 1, reason: "lost rank 3".into() }, &[]);
        assert_eq!(board.fault(), Some(Fault::PeerLost { peer: 3, detail: "x".into() }));
        assert_eq!((watch.fault(), watch.has_failed()), (board.fault(), true));
        let mut byte = [0];
        assert_eq!((&woken).read(&mut byte).unwrap(), 1, "the board has woken the calling thread");
        drain(&woken);
        assert!((&woken).read(&mut byte).is_err());
    }
}
