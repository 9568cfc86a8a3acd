//! Why a rank could not start: what was tried, what was found, and a way out.
//!
//! A [`Refusal`] is what the server decides and every rank is told; it becomes the [`StartError`] of each. Faults of
//! a job that has started are [`coll_exec::Fault`].

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use coll_exec::Link;
use serde::{Deserialize, Serialize};

use crate::handshake::on;

/// Why [`join`](crate::join()) or [`Rendezvous::bind`](crate::Rendezvous::bind) failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The options contradict themselves.
    #[error("these options cannot be: {detail}")]
    Options {
        /// Which, and why.
        detail: String,
    },
    /// An address to listen at is in use.
    #[error(
        "port {} is taken: another process listens at {address}\nhelp: choose another port, or port 0 for any free one; `ss -ltnp` shows who has it",
        address.port()
    )]
    PortTaken {
        /// The address.
        address: SocketAddr,
    },
    /// An address to listen at is not to be had for another reason.
    #[error(
        "cannot listen at {address}: {detail}\nhelp: use an address of this machine, or 0.0.0.0 for all of them"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        detail: String,
    },
    /// A host name does not resolve, or the text is no `host:port`.
    #[error(
        "cannot resolve {address:?}: {detail}\nhelp: write host:port; `getent hosts NAME` shows what a name stands for"
    )]
    Resolve {
        /// As it was given.
        address: String,
        /// What the resolver said.
        detail: String,
    },
    /// Nobody answers at the rendezvous.
    #[error(
        "no rendezvous at {address}: {last}, {tries} {} in {waited_s:.1} s\nhelp: is its host (the launcher, or rank 0) running, and the port open to this machine?",
        if *tries == 1 { "try" } else { "tries" }
    )]
    Unreachable {
        /// As it was given.
        address: String,
        /// How often it was tried.
        tries: u32,
        /// For how long, in seconds.
        waited_s: f64,
        /// What the system said last.
        last: String,
    },
    /// Something else answers at the rendezvous.
    #[error("what answers at {address} is no rendezvous: {detail}\nhelp: is another service at this port?")]
    NotARendezvous {
        /// As it was given.
        address: String,
        /// What it did.
        detail: String,
    },
    /// The rendezvous connected, then said nothing more.
    #[error(
        "the rendezvous at {address} has not answered within the time limit of {limit_s} s\nhelp: is its process stopped?"
    )]
    Silent {
        /// As it was given.
        address: String,
        /// The limit, in seconds.
        limit_s: f64,
    },
    /// The server does not accept this rank's token.
    #[error(
        "the rendezvous at {address} refused this rank's token\nhelp: every rank needs the token that the job's launcher made; this may be another job's rendezvous"
    )]
    TokenRefused {
        /// As it was given.
        address: String,
    },
    /// The server does not know the token itself.
    #[error(
        "the rendezvous at {address} cannot prove that it knows the job's token\nhelp: this may be another job's rendezvous, or an impostor"
    )]
    ServerUnproven {
        /// As it was given.
        address: String,
    },
    /// TLS is on for this rank and off for the server, or the other way round.
    #[error(
        "TLS is {} for this rank and {} for the rendezvous at {address}\nhelp: give every rank the same, and whoever hosts the rendezvous: `--tls`, or COLLC_TLS=1, turns it on (`Builder::tls` in Rust)",
        on(!*theirs),
        on(*theirs)
    )]
    TlsUnlike {
        /// As it was given.
        address: String,
        /// Whether the server has it on.
        theirs: bool,
    },
    /// There is nothing that a key could be made from.
    #[error(
        "TLS is on, and there is no token to make its key from\nhelp: give every rank the job's token: set COLLC_TOKEN to one secret on all of them (`Builder::token` in Rust)"
    )]
    TlsWithoutToken,
    /// This rank and the server speak different protocols.
    #[error(
        "protocol version: this rank has {ours}, the rendezvous at {address} has {theirs}\nhelp: run the same version of collc everywhere"
    )]
    Version {
        /// As it was given.
        address: String,
        /// This rank's.
        ours: u32,
        /// The server's.
        theirs: u32,
    },
    /// Ranks never came.
    #[error(
        "{missing} never came: {present} of {world} ranks were there after {waited_s:.1} s{}\nhelp: look at the output of the missing ranks; raise the time limit if they start slowly",
        came_and_left(left)
    )]
    Missing {
        /// Who never came, or left.
        missing: RankList,
        /// Those of them that came and left.
        left: RankList,
        /// How many were there.
        present: u32,
        /// How many should have been.
        world: u32,
        /// For how long the first of them waited, in seconds.
        waited_s: f64,
    },
    /// Ranks are about to do different things.
    #[error(
        "the ranks disagree on {0}\nhelp: start every rank with the same program, arguments and environment"
    )]
    Disagreement(Disagreement),
    /// A rank came twice.
    #[error("rank {rank} came {} times: {}\nhelp: give each process its own rank; is an earlier run still alive?", from.len(), from.join(", "))]
    RankTwice {
        /// The rank.
        rank: u32,
        /// Process and host of each.
        from: Vec<String>,
    },
    /// A rank is none of the world's.
    #[error("rank {rank} ({from}) is outside a world of {world} ranks\nhelp: ranks count from 0 to {}", world.saturating_sub(1))]
    RankOutOfRange {
        /// The rank.
        rank: u32,
        /// The world's size.
        world: u32,
        /// Process and host.
        from: String,
    },
    /// One rank's plan has a link that its peer's lacks.
    #[error(
        "rank {from} has a link to rank {to} on channel {channel}, but rank {to} has none to rank {from}\nhelp: give every rank its part of the same plan"
    )]
    OneSidedLink {
        /// Who has it.
        from: u32,
        /// Who has not.
        to: u32,
        /// The channel.
        channel: u32,
    },
    /// No interface of this machine is among those that were asked for.
    #[error(
        "no interface of this machine is one of {wanted:?}; it has {}\nhelp: name one of these, the start of its name, or its network (10.0.0.0/8)",
        seen.join(", ")
    )]
    NoInterface {
        /// What was asked for.
        wanted: String,
        /// Name and address of each that there is.
        seen: Vec<String>,
    },
    /// Ranks on different machines chose the same address.
    #[error(
        "address {address} belongs to {ranks}, which are on different machines\nhelp: choose an interface on which each machine has an address of its own; a container's bridge has the same on all"
    )]
    AddressTwice {
        /// The address.
        address: IpAddr,
        /// The lowest rank on each machine that has it.
        ranks: RankList,
    },
    /// Peers could not be connected.
    #[error(
        "rank {rank} could not connect to its peers within {limit_s} s:\n{}help: open these addresses between the machines, or name better ones (advertise)",
        table(failures)
    )]
    Links {
        /// This rank.
        rank: u32,
        /// The limit, in seconds.
        limit_s: f64,
        /// Which links, and what was tried.
        failures: Vec<LinkFailure>,
    },
    /// This rank is connected, but others are not.
    #[error(
        "{ranks} {} not connected to all peers within {limit_s} s\nhelp: look at the output there; is a process stopped?",
        if ranks.0.len() == 1 { "is" } else { "are" }
    )]
    NotConnected {
        /// The others.
        ranks: RankList,
        /// The limit, in seconds.
        limit_s: f64,
    },
    /// Too few file descriptors.
    #[error(
        "{need} file descriptors are needed ({links} connections and what is open already), the limit is {limit}\nhelp: raise it (`ulimit -Hn`), or use a schedule with fewer peers or channels"
    )]
    Descriptors {
        /// How many connections the plan uses.
        links: u64,
        /// How many descriptors that makes in all.
        need: u64,
        /// The process may not have more than this.
        limit: u64,
    },
    /// A rank died while the job started.
    #[error("rank {rank} was lost while the job started: {detail}\nhelp: look at that rank's output")]
    PeerLost {
        /// The rank.
        rank: u32,
        /// What is known of it.
        detail: String,
    },
    /// Another rank could not start, and said why.
    #[error("rank {origin} could not start: {reason}")]
    GaveUp {
        /// The rank.
        origin: u32,
        /// Its reason.
        reason: String,
    },
    /// The server ended.
    #[error(
        "the rendezvous at {address} ended before the job had started: {detail}\nhelp: look at the output of its host (the launcher, or rank 0)"
    )]
    ServerGone {
        /// As it was given.
        address: String,
        /// What is known of it.
        detail: String,
    },
    /// The system refused something ordinary.
    #[error("cannot {what}: {detail}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        detail: String,
    },
}

/// Why links could not be made while the job ran.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// They could not be connected.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The job failed meanwhile, or the peers have not come to the operation that needs them.
    #[error(transparent)]
    Fault(#[from] coll_exec::Fault),
}

/// Why the server turns a job's ranks away.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Refusal {
    Missing { missing: RankList, left: RankList, present: u32, world: u32, waited_s: f64 },
    Disagreement(Disagreement),
    RankTwice { rank: u32, from: Vec<String> },
    RankOutOfRange { rank: u32, world: u32, from: String },
    OneSidedLink { from: u32, to: u32, channel: u32 },
    AddressTwice { address: IpAddr, ranks: RankList },
    Closing,
}

impl Refusal {
    /// The error of a rank that was told so by the server at `address`.
    pub(crate) fn into_error(self, address: &str) -> StartError {
        match self {
            Refusal::Missing { missing, left, present, world, waited_s } => {
                StartError::Missing { missing, left, present, world, waited_s }
            }
            Refusal::Disagreement(disagreement) => StartError::Disagreement(disagreement),
            Refusal::RankTwice { rank, from } => StartError::RankTwice { rank, from },
            Refusal::RankOutOfRange { rank, world, from } => StartError::RankOutOfRange { rank, world, from },
            Refusal::OneSidedLink { from, to, channel } => StartError::OneSidedLink { from, to, channel },
            Refusal::AddressTwice { address, ranks } => StartError::AddressTwice { address, ranks },
            Refusal::Closing => {
                StartError::ServerGone { address: address.to_owned(), detail: "it was stopped".into() }
            }
        }
    }
}

/// A field on which ranks disagree. The most common value comes first, the odd ones after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disagreement {
    /// The field's name.
    pub field: String,
    /// Who has which value.
    pub opinions: Vec<Opinion>,
}

/// A value of a field, and the ranks that have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opinion {
    /// The value.
    pub value: String,
    /// The ranks, ascending.
    pub ranks: RankList,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.field)?;
        let (usual, odd) =
            self.opinions.split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
        for opinion in odd {
            write!(f, "{opinion}, ")?;
        }
        usual.map_or(Ok(()), |opinion| write!(f, "{opinion}"))
    }
}

impl fmt::Display for Opinion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.ranks.0.len() == 1 { "has" } else { "have" };
        write!(f, "{} {verb} {}", self.ranks, self.value)
    }
}

/// Some ranks, which print as `rank 3` or `ranks 0-2, 5`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RankList(pub Vec<u32>);

impl fmt::Display for RankList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.len() == 1 { "rank " } else { "ranks " })?;
        let runs = self.0.chunk_by(|a, b| a.checked_add(1) == Some(*b));
        for (place, run) in runs.enumerate() {
            let comma = if place == 0 { "" } else { ", " };
            match run {
                [one] => write!(f, "{comma}{one}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

/// A link that could not be connected, and what was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkFailure {
    /// The link.
    pub link: Link,
    /// Whether this rank connects to the peer (it is the higher one), or waits for it.
    pub dialed: bool,
    /// One for each address that was tried.
    pub attempts: Vec<Attempt>,
}

/// An address that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The address.
    pub address: SocketAddr,
    /// The interface by which this machine would reach it; none if no route leads there.
    pub interface: Option<String>,
    /// How often.
    pub tries: u32,
    /// What happened last.
    pub result: String,
}

fn came_and_left(left: &RankList) -> String {
    if left.0.is_empty() { String::new() } else { format!(" ({left} came and left)") }
}

fn table(failures: &[LinkFailure]) -> String {
    let mut lines = String::new();
    for LinkFailure { link, dialed, attempts } in failures {
        let to = format!("  rank {:<5} channel {:<3}", link.peer, link.channel);
        if !dialed {
            lines += &format!("{to} it never connected to this rank\n");
        } else if attempts.is_empty() {
            lines += &format!("{to} no address was tried to its end\n");
        }
        for attempt in attempts {
            let Attempt { address, interface, tries, result } = attempt;
            let by = interface.as_deref().map_or("no route".to_owned(), |name| format!("by {name}"));
            lines += &format!("{to} {address:<24} {by:<12} tried {tries:>3}x: {result}\n");
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(error: StartError, expect: Expect) {
        expect.assert_eq(&error.to_string());
    }

    #[test]
    fn ranks_print_as_runs() {
        let print = |ranks: &[u32]| RankList(ranks.to_vec()).to_string();
        assert_eq!(print(&[3]), "rank 3");
        assert_eq!(print(&[0, 1, 2, 5, 7, 8]), "ranks 0-2, 5, 7-8");
        assert_eq!(print(&[u32::MAX]), "rank 4294967295");
    }

    #[test]
    fn a_disagreement_names_the_odd_rank_first() {
        let opinion =
            |value: &str, ranks: &[u32]| Opinion { value: value.into(), ranks: RankList(ranks.to_vec()) };
        check(
            StartError::Disagreement(Disagreement {
                field: "count".into(),
                opinions: vec![opinion("4", &[0, 1, 3]), opinion("8", &[2])],
            }),
            expect![[r#"
                the ranks disagree on count: rank 2 has 8, ranks 0-1, 3 have 4
                help: start every rank with the same program, arguments and environment"#]],
        );
    }

    #[test]
    fn failed_links_print_as_a_table() {
        let attempt = |address: &str, tries, result: &str| Attempt {
            address: address.parse().unwrap(),
            interface: (tries > 3).then(|| "lo".to_owned()),
            tries,
            result: result.into(),
        };
        check(
            StartError::Links {
                rank: 5,
                limit_s: 2.0,
                failures: vec![
                    LinkFailure {
                        link: Link { peer: 0, channel: 1 },
                        dialed: true,
                        attempts: vec![
                            attempt("10.0.0.1:4000", 3, "timed out"),
                            attempt("127.0.0.1:4000", 12, "connection refused"),
                        ],
                    },
                    LinkFailure { link: Link { peer: 7, channel: 0 }, dialed: false, attempts: vec![] },
                ],
            },
            expect![[r#"
                rank 5 could not connect to its peers within 2 s:
                  rank 0     channel 1   10.0.0.1:4000            no route     tried   3x: timed out
                  rank 0     channel 1   127.0.0.1:4000           by lo        tried  12x: connection refused
                  rank 7     channel 0   it never connected to this rank
                help: open these addresses between the machines, or name better ones (advertise)"#]],
        );
    }

    #[test]
    fn missing_ranks_are_named() {
        check(
            StartError::Missing {
                missing: RankList(vec![1, 2, 6]),
                left: RankList(vec![6]),
                present: 5,
                world: 8,
                waited_s: 5.04,
            },
            expect![[r#"
                ranks 1-2, 6 never came: 5 of 8 ranks were there after 5.0 s (rank 6 came and left)
                help: look at the output of the missing ranks; raise the time limit if they start slowly"#]],
        );
    }
}
