//! The gathering of a job's ranks, until they are all there or it is known why they will not be.
//!
//! Pure: registrations and times go in, a verdict comes out. Every rank that came gets the same verdict, so that an
//! error is seen on all of them and not only where it was made.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::error::{Disagreement, Opinion, RankList, Refusal};
use crate::handshake::on;
use crate::wire::Particulars;

/// Names a control connection within the server.
pub(crate) type LineId = u64;

/// A rank that has come.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub(crate) version: u32,
    /// Whether TLS is on for it.
    pub(crate) tls: bool,
    pub(crate) rank: u32,
    pub(crate) world: u32,
    pub(crate) patience: Duration,
    /// None of a rank with another protocol version, or that differs from the server in TLS: it says no more that can be
    /// understood.
    pub(crate) particulars: Option<Particulars>,
    pub(crate) observed_ip: IpAddr,
    pub(crate) beside_server: bool,
}

impl Registration {
    /// Process and host, for messages.
    pub(crate) fn whence(&self) -> String {
        match &self.particulars {
            Some(particulars) => particulars.contact.host.to_string(),
            None => format!("at {}", self.observed_ip),
        }
    }
}

/// A job's ranks so far.
#[derive(Debug)]
pub(crate) struct Roster {
    members: BTreeMap<LineId, Registration>,
    left: BTreeSet<u32>,
    began: Instant,
    deadline: Instant,
}

impl Roster {
    pub(crate) fn new(now: Instant) -> Roster {
        Roster { members: BTreeMap::new(), left: BTreeSet::new(), began: now, deadline: far_from(now) }
    }

    /// Adds a rank. The least patient rank sets the deadline for all: once it is gone, the job cannot start.
    pub(crate) fn enter(&mut self, line: LineId, registration: Registration, now: Instant) {
        let patience_ends = now.checked_add(registration.patience).unwrap_or_else(|| far_from(now));
        self.deadline = self.deadline.min(patience_ends);
        self.left.remove(&registration.rank);
        self.members.insert(line, registration);
    }

    /// Takes a rank out whose connection closed. One that has said no particulars has closed because of that, and must
    /// stay to be told of.
    pub(crate) fn leave(&mut self, line: LineId) {
        if self.members.get(&line).is_some_and(|member| member.particulars.is_none()) {
            return;
        }
        if let Some(member) = self.members.remove(&line) {
            self.left.insert(member.rank);
        }
    }

    /// Whether nobody is here that can still be told anything.
    pub(crate) fn is_deserted(&self) -> bool {
        self.members.values().all(|member| member.particulars.is_none())
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = LineId> {
        self.members.keys().copied()
    }

    pub(crate) fn into_members(self) -> BTreeMap<LineId, Registration> {
        self.members
    }

    /// Whether as many have come as should: those that are wrong count, or the right ones would wait for nothing.
    pub(crate) fn is_full(&self) -> bool {
        self.members.len() as u64 >= u64::from(self.world())
    }

    /// Why these ranks make no job, if so. Of a roster that is not full, what is known already.
    pub(crate) fn judge(&self) -> Result<(), Refusal> {
        self.agree("the protocol version", |member| member.version.to_string())?;
        self.agree("TLS (`--tls`, COLLC_TLS)", |member| on(member.tls).to_owned())?;
        self.agree("the number of ranks", |member| member.world.to_string())?;
        self.ranks_in_range()?;
        self.ranks_differ()?;
        for field in self.fields() {
            self.agree(&field, |member| value_of(member, &field))?;
        }
        self.addresses_differ()?;
        if self.is_full() { self.links_meet() } else { Ok(()) }
    }

    /// What to say when the deadline has passed.
    pub(crate) fn overdue(&self, now: Instant) -> Refusal {
        if let Err(refusal) = self.judge() {
            return refusal;
        }
        let world = self.world();
        let present: BTreeSet<u32> = self.members.values().map(|member| member.rank).collect();
        let missing: Vec<u32> = (0..world).filter(|rank| !present.contains(rank)).collect();
        Refusal::Missing {
            left: RankList(missing.iter().copied().filter(|rank| self.left.contains(rank)).collect()),
            missing: RankList(missing),
            present: u32::try_from(present.len()).unwrap_or(u32::MAX),
            world,
            waited_s: now.duration_since(self.began).as_secs_f64(),
        }
    }

    /// The size of the world by most members' word; the larger of two that are as common.
    fn world(&self) -> u32 {
        let mut votes: BTreeMap<u32, usize> = BTreeMap::new();
        for member in self.members.values() {
            *votes.entry(member.world).or_default() += 1;
        }
        votes.into_iter().max_by_key(|&(world, votes)| (votes, world)).map_or(0, |(world, _)| world)
    }

    fn by_rank(&self) -> Vec<&Registration> {
        let mut members: Vec<&Registration> = self.members.values().collect();
        members.sort_by_key(|member| member.rank);
        members
    }

    /// All members have the same value of a field, or the error says who has which.
    fn agree(&self, field: &str, value: impl Fn(&Registration) -> String) -> Result<(), Refusal> {
        let mut holders: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for member in self.by_rank() {
            holders.entry(value(member)).or_default().push(member.rank);
        }
        if holders.len() <= 1 {
            return Ok(());
        }
        let mut opinions: Vec<Opinion> =
            holders.into_iter().map(|(value, ranks)| Opinion { value, ranks: RankList(ranks) }).collect();
        // The most common first; of two as common, the one that the lowest rank has.
        opinions
            .sort_by_key(|opinion| (usize::MAX - opinion.ranks.0.len(), opinion.ranks.0.first().copied()));
        Err(Refusal::Disagreement(Disagreement { field: field.to_owned(), opinions }))
    }

    fn ranks_in_range(&self) -> Result<(), Refusal> {
        let world = self.world();
        match self.by_rank().into_iter().find(|member| member.rank >= world) {
            Some(member) => Err(Refusal::RankOutOfRange { rank: member.rank, world, from: member.whence() }),
            None => Ok(()),
        }
    }

    fn ranks_differ(&self) -> Result<(), Refusal> {
        let members = self.by_rank();
        match members.chunk_by(|a, b| a.rank == b.rank).find(|same| same.len() > 1) {
            Some(same) => Err(Refusal::RankTwice {
                rank: same[0].rank,
                from: same.iter().map(|member| member.whence()).collect(),
            }),
            None => Ok(()),
        }
    }

    /// Names of the fingerprint's fields, in the lowest rank's order, then those that only others have.
    fn fields(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for member in self.by_rank() {
            for (name, _) in member.particulars.iter().flat_map(|particulars| &particulars.fingerprint) {
                if seen.insert(name.as_str()) {
                    names.push(name.clone());
                }
            }
        }
        names
    }

    /// An address that was chosen leads to one machine only.
    fn addresses_differ(&self) -> Result<(), Refusal> {
        let mut homes: BTreeMap<IpAddr, BTreeMap<&str, u32>> = BTreeMap::new();
        for member in self.by_rank() {
            let Some(particulars) = &member.particulars else { continue };
            for &address in particulars.contact.chosen.iter().filter(|address| !address.is_loopback()) {
                let home = particulars.contact.host.loopback_id.as_str();
                homes.entry(address).or_default().entry(home).or_insert(member.rank);
            }
        }
        // Machines that cannot be told apart may be one.
        let shared =
            homes.into_iter().find(|(_, homes)| homes.keys().filter(|home| !home.is_empty()).count() > 1);
        match shared {
            Some((address, homes)) => {
                let mut ranks: Vec<u32> = homes.into_values().collect();
                ranks.sort_unstable();
                Err(Refusal::AddressTwice { address, ranks: RankList(ranks) })
            }
            None => Ok(()),
        }
    }

    fn links_meet(&self) -> Result<(), Refusal> {
        let mut ends = BTreeSet::new();
        for member in self.members.values() {
            for &(peer, channel) in member.particulars.iter().flat_map(|particulars| &particulars.links) {
                ends.insert((member.rank, peer, channel));
            }
        }
        match ends.iter().find(|&&(from, to, channel)| !ends.contains(&(to, from, channel))) {
            Some(&(from, to, channel)) => Err(Refusal::OneSidedLink { from, to, channel }),
            None => Ok(()),
        }
    }
}

/// Every value that the member gives to the field, as text.
fn value_of(member: &Registration, field: &str) -> String {
    let given: Vec<&str> = member
        .particulars
        .iter()
        .flat_map(|particulars| &particulars.fingerprint)
        .filter(|(name, _)| name == field)
        .map(|(_, value)| value.as_str())
        .collect();
    if given.is_empty() { "no such field".to_owned() } else { given.join(", ") }
}

/// A time that does not come: a year away, as clocks have no end to name.
fn far_from(now: Instant) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    now.checked_add(YEAR).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::wire::Contact;
    use crate::wire::PROTOCOL_VERSION;
    use expect_test::{Expect, expect};

    struct Member {
        rank: u32,
        world: u32,
        version: u32,
        fingerprint: Vec<(&'static str, &'static str)>,
        links: Vec<(u32, u32)>,
    }

    fn member(rank: u32, world: u32) -> Member {
        Member { rank, world, version: PROTOCOL_VERSION, fingerprint: vec![], links: vec![] }
    }

    fn roster(members: Vec<Member>, now: Instant) -> Roster {
        let mut roster = Roster::new(now);
        for (line, member) in members.into_iter().enumerate() {
            let particulars = Particulars {
                fingerprint: member
                    .fingerprint
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v.to_owned()))
                    .collect(),
                links: member.links,
                contact: Contact {
                    listen: "0.0.0.0:1".parse().unwrap(),
                    advertise: vec![],
                    control_ip: "127.0.0.1".parse().unwrap(),
                    host: Host { name: "node".into(), loopback_id: "x".into(), pid: 100 + line as u32 },
                    chosen: vec![],
                },
            };
            let registration = Registration {
                version: member.version,
                tls: false,
                rank: member.rank,
                world: member.world,
                patience: Duration::from_secs(5),
                particulars: (member.version == PROTOCOL_VERSION).then_some(particulars),
                observed_ip: "127.0.0.1".parse().unwrap(),
                beside_server: true,
            };
            roster.enter(line as LineId, registration, now);
        }
        roster
    }

    fn check(members: Vec<Member>, expect: Expect) {
        let now = Instant::now();
        let roster = roster(members, now);
        assert!(roster.is_full(), "the roster of a test that judges is full");
        let text = match roster.judge() {
            Ok(()) => "ok".to_owned(),
            Err(refusal) => refusal.into_error("host:1").to_string(),
        };
        expect.assert_eq(text.lines().next().unwrap());
    }

    #[test]
    fn ranks_that_agree_make_a_job() {
        let mut members = vec![member(1, 2), member(0, 2)];
        for member in &mut members {
            member.fingerprint = vec![("plan", "ab12"), ("count", "4")];
            member.links = vec![(1 - member.rank, 0), (1 - member.rank, 3)];
        }
        check(members, expect!["ok"]);
    }

    #[test]
    fn the_odd_rank_is_named_with_the_field_and_both_values() {
        let mut members: Vec<Member> = (0..4).map(|rank| member(rank, 4)).collect();
        for member in &mut members {
            let count = if member.rank == 0 { "8" } else { "4" };
            member.fingerprint = vec![("plan", "ab12"), ("count", count)];
        }
        check(members, expect!["the ranks disagree on count: rank 0 has 8, ranks 1-3 have 4"]);
    }

    #[test]
    fn a_field_that_one_rank_lacks_is_a_disagreement() {
        let mut members = vec![member(0, 2), member(1, 2)];
        members[1].fingerprint = vec![("root", "1")];
        check(members, expect!["the ranks disagree on root: rank 1 has 1, rank 0 has no such field"]);
    }

    #[test]
    fn worlds_of_different_sizes_are_concluded_at_the_size_of_the_most() {
        check(
            vec![member(0, 3), member(1, 8), member(2, 3)],
            expect!["the ranks disagree on the number of ranks: rank 1 has 8, ranks 0, 2 have 3"],
        );
    }

    #[test]
    fn another_version_is_named() {
        let mut members = vec![member(0, 2), member(1, 2)];
        members[1].version = 9;
        check(members, expect!["the ranks disagree on the protocol version: rank 1 has 9, rank 0 has 2"]);
    }

    #[test]
    fn ranks_that_cannot_be_are_refused() {
        check(
            vec![member(0, 3), member(1, 3), member(1, 3)],
            expect!["rank 1 came 2 times: pid 101 on node, pid 102 on node"],
        );
        check(
            vec![member(0, 2), member(2, 2)],
            expect!["rank 2 (pid 101 on node) is outside a world of 2 ranks"],
        );
    }

    #[test]
    fn a_link_with_one_end_is_refused() {
        let mut members = vec![member(0, 2), member(1, 2)];
        members[0].links = vec![(1, 0)];
        members[1].links = vec![(0, 0), (0, 1)];
        check(members, expect!["rank 1 has a link to rank 0 on channel 1, but rank 0 has none to rank 1"]);
    }

    #[test]
    fn when_time_is_up_the_missing_are_named_and_who_left() {
        let now = Instant::now();
        let mut roster = roster(vec![member(0, 5), member(3, 5), member(1, 5)], now);
        assert!(!roster.is_full());
        roster.leave(2);
        assert_eq!(roster.deadline(), now + Duration::from_secs(5));
        let Refusal::Missing { missing, left, present, .. } = roster.overdue(now + Duration::from_secs(6))
        else {
            panic!("ranks are missing");
        };
        assert_eq!((missing.0, left.0, present), (vec![1, 2, 4], vec![1], 2));
    }
}
