//! What a rank does while nothing moves: it sleeps, asks the server what the others are doing, and names who kept it
//! waiting when its time is up. Exchanges and new links, which wait for the control thread, are here too.

use std::time::{Duration, Instant};

use coll_exec::{Fault, Interest, Link};
use rustix::event::{PollFd, PollFlags};

use crate::board::{Board, Explanation, drain};
use crate::control::Wanted;
use crate::error::{ConnectError, RankList, StartError};
use crate::host::ensure_descriptors;
use crate::inquiry;
use crate::transport::{TcpTransport, sleep};
use crate::wire::{BLOB_LIMIT_BYTES, ToServer};

/// How long a rank sleeps before it asks; half of its time limit if that is less.
const ASK_AFTER: Duration = Duration::from_secs(1);

/// How long an answer may take: as long as the server waits for the ranks, and a while to travel.
const ANSWER: Duration = inquiry::PATIENCE.saturating_add(Duration::from_millis(300));

/// How long this rank has slept since anything moved, and what it knows of the reason.
#[derive(Debug, Default)]
pub(crate) struct Stall {
    pub(crate) slept: Duration,
    /// Questions of this stall so far.
    asked: u32,
    /// The number of the latest question, of any stall.
    sequence: u64,
    /// When it was put, while there is no answer.
    pending: Option<Instant>,
}

impl Stall {
    /// Something has moved.
    pub(crate) fn renew(&mut self) {
        self.slept = Duration::ZERO;
        self.asked = 0;
        self.pending = None;
    }

    pub(crate) fn slept(&mut self, time: Duration) {
        self.slept += time;
    }

    /// After how much sleep the next question is put: early, so that a mismatch ends the job soon; and once more late
    /// enough to be fresh when time is up, and early enough to be answered by then.
    fn next_question(&self, limit: Duration) -> Option<Duration> {
        let first = ASK_AFTER.min(limit / 2);
        let second = limit.saturating_sub(ANSWER);
        match self.asked {
            0 => Some(first),
            1 if second > first + ANSWER => Some(second),
            _ => None,
        }
    }
}

impl TcpTransport {
    /// Asks the server if it is time. Returns how much more sleep there is until the next question.
    pub(crate) fn ask_if_due(&mut self, interests: &[Interest]) -> Duration {
        let Some(due) = self.stall.next_question(self.limit) else { return Duration::MAX };
        if self.stall.slept < due {
            return due - self.stall.slept;
        }
        self.ask(interests.iter().map(|interest| interest.link.peer));
        Duration::MAX
    }

    /// Counts time that this rank has waited for `peers` in another transport than this one, and asks what they are doing
    /// when it is time. The job's fault, if it has one.
    pub fn waited(&mut self, time: Duration, peers: impl Iterator<Item = u32>) -> Result<(), Fault> {
        self.stall.slept(time);
        if self.stall.next_question(self.limit).is_some_and(|due| self.stall.slept >= due) {
            self.ask(peers);
        }
        self.board.fault().map_or(Ok(()), Err)
    }

    /// Asks the server what the other ranks are doing while this one waits for some of them.
    fn ask(&mut self, peers: impl Iterator<Item = u32>) {
        self.board.wait_for(peers);
        self.stall.asked += 1;
        self.stall.sequence += 1;
        self.stall.pending = Some(Instant::now());
        if let Some(control) = &self.control {
            let sequence = self.stall.sequence;
            control.say(ToServer::Stalled { sequence, report: self.board.report() }, Vec::new());
        }
    }

    /// The fault of a rank whose time is up: who kept it waiting, as far as that can be known soon.
    pub(crate) fn overdue(&mut self, interests: &[Interest]) -> Fault {
        self.explain_timeout(interests.iter().map(|interest| interest.link.peer))
    }

    /// The fault of a time limit that has passed while this rank waited for `peers`, in another transport than this
    /// one perhaps. Asks the server who is late, which takes under a second.
    pub fn explain_timeout(&mut self, peers: impl Iterator<Item = u32>) -> Fault {
        let limit_s = self.limit.as_secs_f64();
        let nobody_late = Fault::TimedOut { limit_s };
        match self.explanation(peers) {
            Err(fault) => fault,
            Ok(Some(Explanation { ranks, detail })) if !detail.is_empty() => {
                Fault::Late { limit_s, ranks, detail }
            }
            Ok(_) => nobody_late,
        }
    }

    /// What a rank that received something else than was due should tell: if the ranks make different calls, that is
    /// the fault, on all of them, with both sides' calls in words. Takes under a second; nothing if the server found
    /// no difference, or does not answer.
    pub fn explain_mismatch(&mut self, peer: u32) -> Option<Fault> {
        self.stall.pending = None;
        self.explanation([peer].into_iter()).err()
    }

    /// The answer to the question that is pending, or to one that is put now. Nothing in a world of one rank, or if
    /// the server has ended.
    fn explanation(&mut self, peers: impl Iterator<Item = u32>) -> Result<Option<Explanation>, Fault> {
        let Some(control) = &self.control else { return Ok(None) };
        let silence = control.server.silence();
        let asked = match self.stall.pending {
            Some(asked) => asked,
            None => {
                self.ask(peers);
                Instant::now()
            }
        };
        let sequence = self.stall.sequence;
        let patience = ANSWER.saturating_sub(asked.elapsed());
        let answer = self.await_note(patience, |board| board.take_explained(sequence));
        self.stall.pending = None;
        match answer {
            Ok(Some(explanation)) => Ok(Some(explanation)),
            Ok(None) => Ok(Some(silence)),
            // A server that has ended in good order explains nothing any more.
            Err(_) if self.board.fault().is_none() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Gives a small blob to every rank and takes one of each, by rank: a barrier, too. Every rank must come, in the
    /// same order of exchanges. A blob has at most [`BLOB_LIMIT_BYTES`].
    pub fn exchange(&mut self, blob: Vec<u8>) -> Result<Vec<Vec<u8>>, Fault> {
        if blob.len() > BLOB_LIMIT_BYTES {
            let reason =
                format!("a blob of {} bytes for an exchange, of {BLOB_LIMIT_BYTES} allowed", blob.len());
            self.abort(&reason);
            return Err(Fault::Aborted { origin: self.rank, reason });
        }
        let Some(control) = &self.control else { return Ok(vec![blob]) };
        let sequence = self.sequence;
        self.sequence += 1;
        control.say(ToServer::Blob { sequence }, blob);
        if let Some(blobs) = self.await_note(self.limit, |board| board.take_gathered(sequence))? {
            return Ok(blobs);
        }
        Err(self.late_exchange(sequence))
    }

    /// The fault of an exchange that was not complete in time: the server knows who has not come, and who of them
    /// does not answer.
    fn late_exchange(&mut self, sequence: u64) -> Fault {
        if let Some(control) = &self.control {
            control.say(ToServer::WhoIsMissing { sequence }, Vec::new());
        }
        let limit_s = self.limit.as_secs_f64();
        let explained = match self.explanation(std::iter::empty()) {
            Ok(explained) => explained,
            Err(fault) => return fault,
        };
        // The server answers in order: if it has answered the second question, it has answered the first.
        match self.board.take_missing(sequence) {
            Some(missing) if !missing.is_empty() => {
                let silent = explained
                    .filter(|explanation| explanation.ranks.iter().any(|rank| missing.contains(rank)));
                let peer = silent
                    .as_ref()
                    .and_then(|silent| silent.ranks.iter().copied().find(|rank| missing.contains(rank)));
                let why = silent.map_or(String::new(), |silent| format!("; {}", silent.detail));
                Fault::PeerLost {
                    peer: peer.unwrap_or(missing[0]),
                    detail: format!(
                        "{} did not come to exchange {sequence} within {} s{why}",
                        RankList(missing),
                        (limit_s * 1e3).round() / 1e3
                    ),
                }
            }
            _ => match explained {
                Some(Explanation { ranks, detail }) if !detail.is_empty() => {
                    Fault::Late { limit_s, ranks, detail }
                }
                _ => Fault::TimedOut { limit_s },
            },
        }
    }

    /// Makes the links that do not exist yet, within the time limit. Both ranks of a link call this with their own
    /// side of the same plan, at any time: whoever connects need not wait for whoever accepts. If it fails, the job
    /// has: the other ranks are told.
    pub fn connect(&mut self, links: &[Link]) -> Result<(), ConnectError> {
        let mut links: Vec<Link> = links.iter().copied().filter(|link| !self.wires.has(*link)).collect();
        if links.is_empty() {
            return Ok(());
        }
        links.sort_unstable();
        links.dedup();
        match self.connect_new(links) {
            Err(ConnectError::Start(error)) => {
                self.abort(&error.to_string());
                Err(error.into())
            }
            outcome => outcome,
        }
    }

    fn connect_new(&mut self, links: Vec<Link>) -> Result<(), ConnectError> {
        if let Some(&Link { peer, channel }) =
            links.iter().find(|link| link.peer == self.rank || link.peer >= self.world)
        {
            let (rank, world) = (self.rank, self.world);
            let detail =
                format!("rank {rank} of {world} asks for a link to rank {peer}, on channel {channel}");
            return Err(StartError::Options { detail }.into());
        }
        ensure_descriptors(links.len() as u64)?;
        // In a world of one rank every link is out of range.
        let Some(control) = &self.control else { return Ok(()) };
        let limit_s = self.limit.as_secs_f64();
        let peers: Vec<u32> = links.iter().map(|link| link.peer).collect();
        let deadline = tokio::time::Instant::now() + self.limit;
        control.connect(Wanted { links, deadline, limit_s });
        // The control thread tells what was tried when the limit has passed; it hangs only if the server does.
        match self.await_note(self.limit + ANSWER, Board::take_connected)? {
            Some(Ok(connected)) => {
                self.add(connected);
                Ok(())
            }
            Some(Err(error)) => match self.explain_timeout(peers.into_iter()) {
                // Who is late says more than that it did not connect.
                fault @ (Fault::Late { .. } | Fault::UnlikeCalls { .. }) => Err(fault.into()),
                Fault::TimedOut { .. } => Err(error.into()),
                fault => Err(fault.into()),
            },
            None => {
                let Explanation { ranks, detail } = control.server.silence();
                Err(Fault::Late { limit_s, ranks, detail }.into())
            }
        }
    }

    /// Waits for something on the board: nothing if it has not come in time.
    fn await_note<T>(&self, limit: Duration, look: impl Fn(&Board) -> Option<T>) -> Result<Option<T>, Fault> {
        let began = Instant::now();
        loop {
            drain(&self.woken);
            if let Some(found) = look(&self.board) {
                return Ok(Some(found));
            }
            if let Some(fault) = self.board.fault() {
                return Err(fault);
            }
            if self.board.is_server_gone() {
                return Err(Fault::Aborted {
                    origin: self.rank,
                    reason: "the rendezvous has ended, and exchanges with it".to_owned(),
                });
            }
            let left = limit.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(None);
            }
            let mut ears = [PollFd::new(&self.woken, PollFlags::IN)];
            sleep(&mut ears, left).map_err(|errno| self.own_fault(errno))?;
        }
    }
}
