//! A job whose ranks are all there: who is connected, who left, what they exchange, and why it ended.
//!
//! Pure: what ranks said goes in, what to tell them comes out. The first reason to fail is the job's verdict and is
//! told to every rank; later ones, which most often follow from it, are not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::roster::LineId;
use crate::wire::{ToRank, ToServer};

/// Something to tell a rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Telling {
    pub(crate) line: LineId,
    pub(crate) message: ToRank,
    pub(crate) body: Arc<Vec<u8>>,
}

impl Telling {
    pub(crate) fn plain(line: LineId, message: ToRank) -> Telling {
        Telling { line, message, body: Arc::default() }
    }
}

/// A rank of the job.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) line: LineId,
    /// Process and host, for messages.
    pub(crate) whence: String,
}

/// The job.
#[derive(Debug)]
pub(crate) struct Job {
    world: u32,
    present: BTreeMap<u32, Member>,
    /// Ranks that said goodbye.
    left: BTreeSet<u32>,
    ready: BTreeSet<u32>,
    sequence: u64,
    blobs: BTreeMap<u32, Vec<u8>>,
    failed: bool,
}

impl Job {
    /// All ranks of `members` are present, none is ready.
    pub(crate) fn new(members: BTreeMap<u32, Member>) -> Job {
        Job {
            world: u32::try_from(members.len()).unwrap_or(u32::MAX),
            present: members,
            left: BTreeSet::new(),
            ready: BTreeSet::new(),
            sequence: 0,
            blobs: BTreeMap::new(),
            failed: false,
        }
    }

    /// Whether nobody is left to talk to.
    pub(crate) fn is_over(&self) -> bool {
        self.present.is_empty()
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = LineId> {
        self.present.values().map(|member| member.line)
    }

    /// Takes what a rank said, with the frame's body.
    pub(crate) fn hear(&mut self, rank: u32, message: ToServer, body: Vec<u8>) -> Vec<Telling> {
        match message {
            ToServer::Register(_) => self.fail_by(rank, "it registered twice on one connection"),
            ToServer::Ready => self.ready(rank),
            ToServer::Blob { sequence } => self.blob(rank, sequence, body),
            ToServer::WhoIsMissing { sequence } => self.who_is_missing(rank, sequence),
            ToServer::Abort { reason } => self.verdict(None, ToRank::Aborted { origin: rank, reason }),
            ToServer::Goodbye => self.goodbye(rank),
        }
    }

    /// The rank's connection closed without a goodbye.
    pub(crate) fn lost(&mut self, rank: u32, detail: &str) -> Vec<Telling> {
        let Some(member) = self.present.remove(&rank) else { return Vec::new() };
        let detail = format!("{} left without a goodbye ({detail})", member.whence);
        self.verdict(Some(rank), ToRank::Gone { rank, detail })
    }

    fn ready(&mut self, rank: u32) -> Vec<Telling> {
        self.ready.insert(rank);
        if self.ready.len() < self.world as usize {
            return Vec::new();
        }
        self.tell_all(&ToRank::AllReady)
    }

    fn blob(&mut self, rank: u32, sequence: u64, body: Vec<u8>) -> Vec<Telling> {
        if self.failed {
            return Vec::new();
        }
        if sequence != self.sequence || self.blobs.contains_key(&rank) {
            let expected = self.sequence;
            return self.fail_by(rank, &format!("it came to exchange {sequence} when {expected} was due"));
        }
        self.blobs.insert(rank, body);
        self.settle_exchange()
    }

    /// Ends the exchange if everyone has come, or if someone has left who never will.
    fn settle_exchange(&mut self) -> Vec<Telling> {
        if self.blobs.is_empty() {
            return Vec::new();
        }
        if let Some(&rank) = self.left.iter().find(|rank| !self.blobs.contains_key(rank)) {
            let detail = format!("it said goodbye before exchange {}", self.sequence);
            return self.verdict(None, ToRank::Gone { rank, detail });
        }
        if self.blobs.len() < self.world as usize {
            return Vec::new();
        }
        let blobs = std::mem::take(&mut self.blobs);
        let lengths = blobs.values().map(|blob| blob.len() as u64).collect();
        let body = Arc::new(blobs.into_values().flatten().collect::<Vec<u8>>());
        let message = ToRank::Gathered { sequence: self.sequence, lengths };
        self.sequence += 1;
        self.lines().map(|line| Telling { line, message: message.clone(), body: body.clone() }).collect()
    }

    fn who_is_missing(&self, rank: u32, sequence: u64) -> Vec<Telling> {
        let Some(member) = self.present.get(&rank) else { return Vec::new() };
        if sequence != self.sequence {
            return Vec::new();
        }
        let connected = self.ready.len() == self.world as usize;
        let has_come =
            |rank: &u32| if connected { self.blobs.contains_key(rank) } else { self.ready.contains(rank) };
        let ranks = (0..self.world).filter(|rank| !has_come(rank)).collect();
        vec![Telling::plain(member.line, ToRank::Missing { sequence, ranks })]
    }

    fn goodbye(&mut self, rank: u32) -> Vec<Telling> {
        if self.present.remove(&rank).is_none() {
            return Vec::new();
        }
        self.left.insert(rank);
        if self.failed {
            return Vec::new();
        }
        if self.ready.len() < self.world as usize {
            let detail = "it said goodbye before every rank was connected".to_owned();
            return self.verdict(None, ToRank::Gone { rank, detail });
        }
        self.settle_exchange()
    }

    /// A rank broke the protocol.
    fn fail_by(&mut self, rank: u32, what: &str) -> Vec<Telling> {
        self.verdict(None, ToRank::Aborted { origin: rank, reason: format!("protocol error: {what}") })
    }

    /// Fails the job, for the first time: everyone is told, but for the rank that it is about.
    fn verdict(&mut self, about: Option<u32>, message: ToRank) -> Vec<Telling> {
        if std::mem::replace(&mut self.failed, true) {
            return Vec::new();
        }
        self.blobs.clear();
        let told = self.present.iter().filter(|(rank, _)| Some(**rank) != about);
        told.map(|(_, member)| Telling::plain(member.line, message.clone())).collect()
    }

    fn tell_all(&self, message: &ToRank) -> Vec<Telling> {
        self.lines().map(|line| Telling::plain(line, message.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(world: u32) -> Job {
        let member =
            |rank| (rank, Member { line: 100 + u64::from(rank), whence: format!("pid {rank} on node") });
        Job::new((0..world).map(member).collect())
    }

    fn job(world: u32) -> Job {
        let mut job = started(world);
        for rank in 0..world {
            let told = job.hear(rank, ToServer::Ready, vec![]);
            assert_eq!(told.len(), if rank + 1 == world { world as usize } else { 0 });
        }
        job
    }

    fn lines(tellings: &[Telling]) -> Vec<LineId> {
        tellings.iter().map(|telling| telling.line).collect()
    }

    #[test]
    fn an_exchange_ends_when_the_last_rank_has_come() {
        let mut job = job(3);
        assert!(job.hear(2, ToServer::Blob { sequence: 0 }, b"cc".to_vec()).is_empty());
        assert!(job.hear(0, ToServer::Blob { sequence: 0 }, b"a".to_vec()).is_empty());
        let asked = job.hear(0, ToServer::WhoIsMissing { sequence: 0 }, vec![]);
        assert_eq!(asked[0].message, ToRank::Missing { sequence: 0, ranks: vec![1] });
        let told = job.hear(1, ToServer::Blob { sequence: 0 }, vec![]);
        assert_eq!(lines(&told), [100, 101, 102]);
        assert_eq!(told[0].message, ToRank::Gathered { sequence: 0, lengths: vec![1, 0, 2] });
        assert_eq!(**told[2].body, *b"acc");
        assert!(job.hear(1, ToServer::Blob { sequence: 1 }, vec![]).is_empty(), "the next has begun");
    }

    #[test]
    fn the_first_reason_wins_and_all_but_the_dead_hear_it() {
        let mut job = job(4);
        let told = job.lost(2, "closed");
        assert_eq!(lines(&told), [100, 101, 103]);
        let detail = "pid 2 on node left without a goodbye (closed)".to_owned();
        assert_eq!(told[0].message, ToRank::Gone { rank: 2, detail });
        assert!(job.hear(1, ToServer::Abort { reason: "lost rank 2".into() }, vec![]).is_empty());
        assert!(job.lost(0, "closed").is_empty());
    }

    #[test]
    fn the_one_who_gives_up_is_told_too() {
        let mut job = job(2);
        let told = job.hear(1, ToServer::Abort { reason: "no".into() }, vec![]);
        assert_eq!(lines(&told), [100, 101]);
    }

    #[test]
    fn before_all_are_connected_the_missing_are_those_who_are_not() {
        let mut job = started(3);
        job.hear(1, ToServer::Ready, vec![]);
        let told = job.hear(1, ToServer::WhoIsMissing { sequence: 0 }, vec![]);
        assert_eq!(told, [Telling::plain(101, ToRank::Missing { sequence: 0, ranks: vec![0, 2] })]);
    }

    #[test]
    fn a_goodbye_is_no_death_unless_the_rank_is_still_needed() {
        let mut job = job(3);
        assert!(job.hear(1, ToServer::Goodbye, vec![]).is_empty());
        let told = job.hear(0, ToServer::Blob { sequence: 0 }, vec![]);
        let detail = "it said goodbye before exchange 0".to_owned();
        assert_eq!(told[0].message, ToRank::Gone { rank: 1, detail });
        assert_eq!(lines(&told), [100, 102]);
    }

    #[test]
    fn a_goodbye_ends_the_wait_of_those_who_had_come_before() {
        let mut job = job(2);
        assert!(job.hear(0, ToServer::Blob { sequence: 0 }, vec![]).is_empty());
        let told = job.hear(1, ToServer::Goodbye, vec![]);
        assert_eq!(lines(&told), [100]);
        assert!(!job.is_over());
        job.hear(0, ToServer::Goodbye, vec![]);
        assert!(job.is_over());
    }

    #[test]
    fn a_blob_out_of_turn_is_a_protocol_error_of_its_rank() {
        let mut job = job(2);
        let told = job.hear(1, ToServer::Blob { sequence: 5 }, vec![]);
        let reason = "protocol error: it came to exchange 5 when 0 was due".to_owned();
        assert_eq!(told[0].message, ToRank::Aborted { origin: 1, reason });
    }
}
