//! The server's desk: which connection belongs to which gathering or job, and who is told what.
//!
//! Connections report what happens on them as [`Event`]s, one at a time; the desk decides and tells through each
//! connection's queue. It owns no socket. Dropping a connection's queue closes the connection once it is empty.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::UnboundedSender;

use crate::error::Refusal;
use crate::job::{Job, Member, Telling};
use crate::roster::{LineId, Registration, Roster};
use crate::wire::{Entry, ToRank, ToServer};

/// A message to a rank, and its body.
pub(crate) type Letter = (ToRank, Arc<Vec<u8>>);

/// What happens on a connection.
#[derive(Debug)]
pub(crate) enum Event {
    /// A rank has registered.
    Came { line: LineId, job: String, registration: Box<Registration>, letters: UnboundedSender<Letter> },
    /// It said something.
    Said { line: LineId, message: ToServer, body: Vec<u8> },
    /// It closed, or broke the protocol.
    Closed { line: LineId, detail: String },
}

/// The state of all gatherings and jobs of a server.
#[derive(Debug)]
pub(crate) struct Desk {
    rosters: BTreeMap<String, Roster>,
    jobs: BTreeMap<u64, Job>,
    seats: BTreeMap<LineId, Seat>,
    letters: BTreeMap<LineId, UnboundedSender<Letter>>,
    next_generation: u64,
    host: crate::host::Host,
}

/// Where a connection belongs.
#[derive(Clone, Debug)]
enum Seat {
    Roster(String),
    Job { generation: u64, rank: u32 },
}

impl Desk {
    /// Generations count from one that is drawn, so that a server's are not those of the server before it.
    pub(crate) fn new(first_generation: u64, host: crate::host::Host) -> Desk {
        Desk {
            rosters: BTreeMap::new(),
            jobs: BTreeMap::new(),
            seats: BTreeMap::new(),
            letters: BTreeMap::new(),
            next_generation: first_generation,
            host,
        }
    }

    /// Whether no rank is here.
    pub(crate) fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// When a gathering will be given up, or a job has something to do by itself.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let rosters = self.rosters.values().map(Roster::deadline);
        rosters.chain(self.jobs.values().filter_map(Job::deadline)).min()
    }

    pub(crate) fn handle(&mut self, event: Event, now: Instant) {
        match event {
            Event::Came { line, job, registration, letters } => {
                self.came(line, job, *registration, letters, now)
            }
            Event::Said { line, message, body } => self.said(line, message, body, now),
            Event::Closed { line, detail } => self.closed(line, &detail),
        }
    }

    /// Gives up the gatherings whose time is up, and lets jobs do what is due.
    pub(crate) fn expire(&mut self, now: Instant) {
        let tellings: Vec<Telling> = self.jobs.values_mut().flat_map(|job| job.expire(now)).collect();
        for telling in tellings {
            self.tell(telling);
        }
        let due: Vec<String> = self
            .rosters
            .iter()
            .filter(|(_, roster)| roster.deadline() <= now)
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            if let Some(roster) = self.rosters.remove(&name) {
                let refusal = roster.overdue(now);
                self.turn_away(roster, &refusal);
            }
        }
    }

    /// Tells everyone that the server ends.
    pub(crate) fn close(&mut self) {
        for roster in std::mem::take(&mut self.rosters).into_values() {
            self.turn_away(roster, &Refusal::Closing);
        }
        for job in std::mem::take(&mut self.jobs).into_values() {
            for line in job.lines() {
                self.tell(Telling::plain(line, ToRank::Closing));
            }
        }
        self.seats.clear();
        self.letters.clear();
    }

    fn came(
        &mut self,
        line: LineId,
        job: String,
        registration: Registration,
        letters: UnboundedSender<Letter>,
        now: Instant,
    ) {
        self.letters.insert(line, letters);
        self.seats.insert(line, Seat::Roster(job.clone()));
        let roster = self.rosters.entry(job.clone()).or_insert_with(|| Roster::new(now));
        roster.enter(line, registration, now);
        if !roster.is_full() {
            return;
        }
        if roster.is_deserted() {
            // All of them speak otherwise than the server, and have been told by its challenge.
            let lines: Vec<LineId> = roster.lines().collect();
            self.rosters.remove(&job);
            return lines.into_iter().for_each(|line| self.forget(line));
        }
        let verdict = roster.judge();
        if let Some(roster) = self.rosters.remove(&job) {
            match verdict {
                Ok(()) => self.start(roster.into_members()),
                Err(refusal) => self.turn_away(roster, &refusal),
            }
        }
    }

    fn start(&mut self, members: BTreeMap<LineId, Registration>) {
        let generation = self.next_generation;
        self.next_generation = self.next_generation.wrapping_add(1);
        let entries: BTreeMap<u32, Entry> =
            members.values().filter_map(|member| Some((member.rank, entry(member)?))).collect();
        let mut here = entries.values().filter(|entry| entry.contact.host.is_same_process_as(&self.host));
        // Where several ranks share the server's process, none of them is its host more than the others.
        let host_rank = match (here.next(), here.next()) {
            (Some(only), None) => Some(only.rank),
            _ => None,
        };
        let mut seats = BTreeMap::new();
        for (line, member) in members {
            let links = member.particulars.iter().flat_map(|particulars| &particulars.links);
            let peers: BTreeMap<u32, Entry> =
                links.filter_map(|(peer, _)| Some((*peer, entries.get(peer)?.clone()))).collect();
            let peers = peers.into_values().collect();
            self.tell(Telling::plain(line, ToRank::Start { generation, host_rank, peers }));
            self.seats.insert(line, Seat::Job { generation, rank: member.rank });
            let entry = entries.get(&member.rank).cloned();
            seats.insert(member.rank, Member { line, whence: member.whence(), entry });
        }
        self.jobs.insert(generation, Job::new(seats));
    }

    fn turn_away(&mut self, roster: Roster, refusal: &Refusal) {
        for line in roster.lines() {
            self.tell(Telling::plain(line, ToRank::Refused(refusal.clone())));
            self.forget(line);
        }
    }

    fn said(&mut self, line: LineId, message: ToServer, body: Vec<u8>, now: Instant) {
        let leaves = matches!(message, ToServer::Goodbye);
        match self.seats.get(&line).cloned() {
            Some(Seat::Job { generation, rank }) => {
                self.in_job(generation, |job| job.hear(rank, message, body, now))
            }
            // A rank that waits for the others has nothing to say but that it leaves, whatever its words.
            Some(Seat::Roster(_)) => self.closed(line, "it spoke before the job had started"),
            None => {}
        }
        if leaves {
            self.forget(line);
        }
    }

    fn closed(&mut self, line: LineId, detail: &str) {
        match self.seats.get(&line).cloned() {
            Some(Seat::Job { generation, rank }) => self.in_job(generation, |job| job.lost(rank, detail)),
            Some(Seat::Roster(name)) => {
                if let Some(roster) = self.rosters.get_mut(&name) {
                    roster.leave(line);
                    if roster.is_deserted() {
                        self.rosters.remove(&name);
                    }
                }
            }
            None => {}
        }
        self.forget(line);
    }

    fn in_job(&mut self, generation: u64, act: impl FnOnce(&mut Job) -> Vec<Telling>) {
        let Some(job) = self.jobs.get_mut(&generation) else { return };
        let tellings = act(job);
        if job.is_over() {
            self.jobs.remove(&generation);
        }
        for telling in tellings {
            self.tell(telling);
        }
    }

    fn tell(&self, telling: Telling) {
        if let Some(letters) = self.letters.get(&telling.line) {
            // A connection that is closing has nobody to tell; its own event says so.
            let _ = letters.send((telling.message, telling.body));
        }
    }

    fn forget(&mut self, line: LineId) {
        self.seats.remove(&line);
        self.letters.remove(&line);
    }
}

fn entry(member: &Registration) -> Option<Entry> {
    Some(Entry {
        rank: member.rank,
        contact: member.particulars.as_ref()?.contact.clone(),
        observed_ip: member.observed_ip,
        beside_server: member.beside_server,
    })
}
