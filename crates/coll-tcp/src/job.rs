//! A job whose ranks are all there: who is connected, who left, what they exchange, what they do when one of them
//! stalls, and why it ended.
//!
//! Pure: what ranks said goes in, what to tell them comes out. The first reason to fail is the job's verdict and is
//! told to every rank; later ones, which most often follow from it, are not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use crate::board::Explanation;
use crate::call::Report;
use crate::inquiry::Inquiry;
use crate::roster::LineId;
use crate::wire::{Entry, ToRank, ToServer};

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
    /// Where others reach it.
    pub(crate) entry: Option<Entry>,
}

/// The job.
#[derive(Debug)]
pub(crate) struct Job {
    world: u32,
    present: BTreeMap<u32, Member>,
    entries: BTreeMap<u32, Entry>,
    inquiry: Option<Inquiry>,
    /// Ranks that said goodbye.
    left: BTreeSet<u32>,
    ready: BTreeSet<u32>,
    sequence: u64,
    blobs: BTreeMap<u32, Vec<u8>>,
    failed: bool,
}

impl Job {
    /// All ranks of `members` are present, none is ready.
    pub(crate) fn new(mut members: BTreeMap<u32, Member>) -> Job {
        let entries = members.iter_mut().filter_map(|(rank, member)| Some((*rank, member.entry.take()?)));
        let entries = entries.collect();
        Job {
            world: u32::try_from(members.len()).unwrap_or(u32::MAX),
            entries,
            inquiry: None,
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

    /// When the job has something to do by itself.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.inquiry.as_ref().map(Inquiry::deadline)
    }

    /// Does what is due.
    pub(crate) fn expire(&mut self, now: Instant) -> Vec<Telling> {
        match &self.inquiry {
            Some(inquiry) if inquiry.deadline() <= now => self.close_inquiry(),
            _ => Vec::new(),
        }
    }

    /// Takes what a rank said, with the frame's body.
    pub(crate) fn hear(&mut self, rank: u32, message: ToServer, body: Vec<u8>, now: Instant) -> Vec<Telling> {
        match message {
            ToServer::Register(_) => self.fail_by(rank, "it registered twice on one connection"),
            ToServer::Ready => self.ready(rank),
            ToServer::Blob { sequence } => self.blob(rank, sequence, body),
            ToServer::WhoIsMissing { sequence } => self.who_is_missing(rank, sequence),
            ToServer::WhereAre { ranks } => self.where_are(rank, &ranks),
            ToServer::Stalled { sequence, report } => self.stalled(rank, sequence, report, now),
            ToServer::Doing { report } => self.doing(rank, report),
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

    fn where_are(&self, rank: u32, ranks: &[u32]) -> Vec<Telling> {
        let Some(member) = self.present.get(&rank) else { return Vec::new() };
        // Each once, however often it was asked for.
        let ranks: BTreeSet<&u32> = ranks.iter().collect();
        let peers = ranks.into_iter().filter_map(|rank| self.entries.get(rank).cloned()).collect();
        vec![Telling::plain(member.line, ToRank::Peers { peers })]
    }

    /// A rank asks what the others do: so are they, unless that is under way.
    fn stalled(&mut self, rank: u32, sequence: u64, report: Report, now: Instant) -> Vec<Telling> {
        if self.failed {
            return Vec::new();
        }
        let mut tellings = Vec::new();
        if self.inquiry.is_none() {
            let others = self.present.iter().filter(|(other, _)| **other != rank);
            tellings.extend(others.map(|(_, other)| Telling::plain(other.line, ToRank::Inquire)));
        }
        self.inquiry.get_or_insert_with(|| Inquiry::new(now)).ask(rank, sequence, report);
        tellings.extend(self.settle_inquiry());
        tellings
    }

    fn doing(&mut self, rank: u32, report: Report) -> Vec<Telling> {
        // An answer that comes too late is of no use.
        let Some(inquiry) = &mut self.inquiry else { return Vec::new() };
        inquiry.take(rank, report);
        self.settle_inquiry()
    }

    /// Ends the inquiry if everyone has answered.
    fn settle_inquiry(&mut self) -> Vec<Telling> {
        let Some(inquiry) = &self.inquiry else { return Vec::new() };
        match self.present.keys().all(|rank| inquiry.has_heard(*rank)) {
            true => self.close_inquiry(),
            false => Vec::new(),
        }
    }

    fn close_inquiry(&mut self) -> Vec<Telling> {
        let Some(inquiry) = self.inquiry.take() else { return Vec::new() };
        if let Some((operation, detail)) = inquiry.mismatch() {
            return self.verdict(None, ToRank::Mismatch { operation, detail });
        }
        let present = self.present.iter().map(|(rank, member)| (*rank, member.whence.clone())).collect();
        let explanations = inquiry.explanations(&present, &self.left);
        let tell = |(rank, sequence, explanation): (u32, u64, Explanation)| {
            let Explanation { ranks, detail } = explanation;
            let line = self.present.get(&rank)?.line;
            Some(Telling::plain(line, ToRank::Explained { sequence, ranks, detail }))
        };
        explanations.into_iter().filter_map(tell).collect()
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
        let mut tellings = self.settle_exchange();
        tellings.extend(self.settle_inquiry());
        tellings
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
        self.inquiry = None;
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
        let member = |rank| {
            (rank, Member { line: 100 + u64::from(rank), whence: format!("pid {rank} on node"), entry: None })
        };
        Job::new((0..world).map(member).collect())
    }

    fn job(world: u32) -> Job {
        let mut job = started(world);
        for rank in 0..world {
            let told = hear(&mut job, rank, ToServer::Ready, vec![]);
            assert_eq!(told.len(), if rank + 1 == world { world as usize } else { 0 });
        }
        job
    }

    fn hear(job: &mut Job, rank: u32, message: ToServer, body: Vec<u8>) -> Vec<Telling> {
        job.hear(rank, message, body, Instant::now())
    }

    fn lines(tellings: &[Telling]) -> Vec<LineId> {
        tellings.iter().map(|telling| telling.line).collect()
    }

    #[test]
    fn an_exchange_ends_when_the_last_rank_has_come() {
        let mut job = job(3);
        assert!(hear(&mut job, 2, ToServer::Blob { sequence: 0 }, b"cc".to_vec()).is_empty());
        assert!(hear(&mut job, 0, ToServer::Blob { sequence: 0 }, b"a".to_vec()).is_empty());
        let asked = hear(&mut job, 0, ToServer::WhoIsMissing { sequence: 0 }, vec![]);
        assert_eq!(asked[0].message, ToRank::Missing { sequence: 0, ranks: vec![1] });
        let told = hear(&mut job, 1, ToServer::Blob { sequence: 0 }, vec![]);
        assert_eq!(lines(&told), [100, 101, 102]);
        assert_eq!(told[0].message, ToRank::Gathered { sequence: 0, lengths: vec![1, 0, 2] });
        assert_eq!(**told[2].body, *b"acc");
        assert!(hear(&mut job, 1, ToServer::Blob { sequence: 1 }, vec![]).is_empty(), "the next has begun");
    }

    #[test]
    fn the_first_reason_wins_and_all_but_the_dead_hear_it() {
        let mut job = job(4);
        let told = job.lost(2, "closed");
        assert_eq!(lines(&told), [100, 101, 103]);
        let detail = "pid 2 on node left without a goodbye (closed)".to_owned();
        assert_eq!(told[0].message, ToRank::Gone { rank: 2, detail });
        assert!(hear(&mut job, 1, ToServer::Abort { reason: "lost rank 2".into() }, vec![]).is_empty());
        assert!(job.lost(0, "closed").is_empty());
    }

    #[test]
    fn the_one_who_gives_up_is_told_too() {
        let mut job = job(2);
        let told = hear(&mut job, 1, ToServer::Abort { reason: "no".into() }, vec![]);
        assert_eq!(lines(&told), [100, 101]);
    }

    #[test]
    fn before_all_are_connected_the_missing_are_those_who_are_not() {
        let mut job = started(3);
        hear(&mut job, 1, ToServer::Ready, vec![]);
        let told = hear(&mut job, 1, ToServer::WhoIsMissing { sequence: 0 }, vec![]);
        assert_eq!(told, [Telling::plain(101, ToRank::Missing { sequence: 0, ranks: vec![0, 2] })]);
    }

    #[test]
    fn a_goodbye_is_no_death_unless_the_rank_is_still_needed() {
        let mut job = job(3);
        assert!(hear(&mut job, 1, ToServer::Goodbye, vec![]).is_empty());
        let told = hear(&mut job, 0, ToServer::Blob { sequence: 0 }, vec![]);
        let detail = "it said goodbye before exchange 0".to_owned();
        assert_eq!(told[0].message, ToRank::Gone { rank: 1, detail });
        assert_eq!(lines(&told), [100, 102]);
    }

    #[test]
    fn a_goodbye_ends_the_wait_of_those_who_had_come_before() {
        let mut job = job(2);
        assert!(hear(&mut job, 0, ToServer::Blob { sequence: 0 }, vec![]).is_empty());
        let told = hear(&mut job, 1, ToServer::Goodbye, vec![]);
        assert_eq!(lines(&told), [100]);
        assert!(!job.is_over());
        hear(&mut job, 0, ToServer::Goodbye, vec![]);
        assert!(job.is_over());
    }

    #[test]
    fn a_blob_out_of_turn_is_a_protocol_error_of_its_rank() {
        let mut job = job(2);
        let told = hear(&mut job, 1, ToServer::Blob { sequence: 5 }, vec![]);
        let reason = "protocol error: it came to exchange 5 when 0 was due".to_owned();
        assert_eq!(told[0].message, ToRank::Aborted { origin: 1, reason });
    }

    fn report(operation: u64, fingerprint: u8) -> Report {
        let words = vec![("collective".to_owned(), fingerprint.to_string())];
        let told = crate::call::Told { operation, fingerprint: [fingerprint; 16], words };
        Report { recent: vec![told], within: true, since_ms: 0, waits_for: vec![] }
    }

    #[test]
    fn a_stall_is_an_inquiry_and_the_silent_are_named_when_it_is_over() {
        let mut job = job(3);
        let now = Instant::now();
        assert_eq!(job.deadline(), None);
        let stalled = |sequence| ToServer::Stalled { sequence, report: report(7, 1) };
        let told = job.hear(0, stalled(4), vec![], now);
        assert_eq!((lines(&told), &told[0].message), (vec![101, 102], &ToRank::Inquire));
        assert!(job.hear(1, stalled(9), vec![], now).is_empty(), "it is under way");
        assert!(job.expire(now).is_empty(), "there is time left");
        let told = job.expire(job.deadline().unwrap());
        assert_eq!(lines(&told), [100, 101]);
        let ToRank::Explained { sequence: 9, ranks, detail } = &told[1].message else { panic!("{told:?}") };
        assert!(*ranks == [2] && detail.starts_with("rank 2 (pid 2 on node) does not answer"), "{detail}");
        assert_eq!(job.deadline(), None);
    }

    #[test]
    fn an_inquiry_that_all_have_answered_is_over_at_once_and_a_mismatch_is_told_to_all() {
        let mut job = job(3);
        hear(&mut job, 0, ToServer::Stalled { sequence: 0, report: report(7, 1) }, vec![]);
        assert!(hear(&mut job, 1, ToServer::Doing { report: report(7, 2) }, vec![]).is_empty());
        let told = hear(&mut job, 2, ToServer::Doing { report: report(7, 1) }, vec![]);
        assert_eq!(lines(&told), [100, 101, 102]);
        let ToRank::Mismatch { operation: 7, detail } = &told[0].message else { panic!("{told:?}") };
        assert!(
            detail.starts_with("rank 1 is in operation 7: 2; ranks 0, 2 are in operation 7: 1"),
            "{detail}"
        );
        assert!(hear(&mut job, 2, ToServer::Doing { report: report(7, 1) }, vec![]).is_empty(), "too late");
    }
}
