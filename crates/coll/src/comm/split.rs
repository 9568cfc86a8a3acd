//! New communicators out of an old one.

use crate::comm::builder::{Settings, open};
use crate::comm::engine::Engine;
use crate::comm::wires::{Host, Meeting};
use crate::comm::{CommError, Communicator};
use coll_tcp::{Rendezvous, Token};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

/// What a rank says of itself when a communicator is split.
#[derive(Debug, Serialize, Deserialize)]
struct Wish {
    color: Option<u64>,
    key: i64,
    rank: u32,
    /// Of a call that lists ranks, the list.
    listed: Option<Listed>,
}

/// A list of ranks, short enough to be told to all of them.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Listed {
    words: String,
    /// What is shown of a long list is cut short; what is compared is not.
    hash: [u8; 16],
}

/// What the first rank of a new communicator offers the others of it.
#[derive(Debug, Serialize, Deserialize)]
enum Offer {
    /// It is the first of none.
    None,
    Here {
        address: String,
        token: String,
    },
    Failed(String),
}

impl Communicator {
    /// Splits the ranks by `color`: those with equal colours make a new communicator, in which they are numbered by `key`,
    /// and by their rank here where keys are equal. Without a colour a rank takes part in the call and gets none.
    ///
    /// A collective call of all ranks. The new communicators have connections of their own, and nothing to do with this one
    /// or each other: if one fails, the others go on, unless they lose a rank too.
    ///
    /// # Errors
    /// If a rank is lost in between, this communicator has ended. If the new one cannot be made, this one goes on.
    pub fn split(&mut self, color: Option<u64>, key: i64) -> Result<Option<Communicator>, CommError> {
        self.engine().split(color, key, None)
    }

    /// A communicator of the same ranks, with connections of its own: for a part of a program that shall not get between the
    /// calls of another. A collective call of all ranks.
    pub fn duplicate(&mut self) -> Result<Communicator, CommError> {
        let made = self.split(Some(0), self.rank().into())?;
        Ok(made.expect("invariant: a rank with a colour is in a new communicator"))
    }

    /// A communicator of some ranks, numbered as they are listed. A collective call of all ranks, with the same list on
    /// each; a rank that is not listed gets none.
    ///
    /// # Errors
    /// If ranks list others, or a rank makes another call here, all are told, and this communicator goes on.
    pub fn subgroup(&mut self, ranks: &[u32]) -> Result<Option<Communicator>, CommError> {
        let place = ranks.iter().position(|&listed| listed == self.rank);
        self.engine().split(place.map(|_| 0), place.map_or(0, |place| place as i64), Some(ranks))
    }
}

/// What is wrong with a list, as every rank finds that gives the same.
fn fault(ranks: &[u32], world: u32) -> Option<String> {
    if let Some(outside) = ranks.iter().find(|&&listed| listed >= world) {
        return Some(format!("rank {outside} is listed; ranks are 0..={}", world - 1));
    }
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1])?;
    Some(format!("rank {} is listed twice", twice[0]))
}

impl Listed {
    fn new(ranks: &[u32]) -> Listed {
        const SHOWN_MAX: usize = 16;
        let shown: Vec<String> = ranks.iter().take(SHOWN_MAX).map(ToString::to_string).collect();
        let more = if ranks.len() > SHOWN_MAX { ", …" } else { "" };
        let mut hasher = Sha256::new();
        ranks.iter().for_each(|rank| hasher.update(rank.to_le_bytes()));
        let digest = hasher.finalize();
        let words = format!("[{}{more}]", shown.join(", "));
        Listed { words, hash: std::array::from_fn(|at| digest[at]) }
    }
}

/// Why ranks that wish so get no communicator, if they do not agree on whose it is to be. The same on every rank.
fn disagreement(wishes: &[Wish]) -> Option<String> {
    let mut sides: Vec<(&Wish, Vec<u32>)> = Vec::new();
    for wish in wishes {
        match sides.iter_mut().find(|(first, _)| first.listed == wish.listed) {
            Some((_, ranks)) => ranks.push(wish.rank),
            None => sides.push((wish, vec![wish.rank])),
        }
    }
    let told = |(first, ranks): (&Wish, Vec<u32>)| match &first.listed {
        Some(listed) => format!("{}: {}", coll_tcp::RankList(ranks), listed.words),
        None => format!("{}: a split by colours", coll_tcp::RankList(ranks)),
    };
    let differ = sides.len() > 1;
    let sides: Vec<String> = sides.into_iter().take(8).map(told).collect();
    differ.then(|| format!("the calls differ: {}; every rank gives the same list", sides.join("; ")))
}

impl Engine {
    fn split(
        &mut self,
        color: Option<u64>,
        key: i64,
        ranks: Option<&[u32]>,
    ) -> Result<Option<Communicator>, CommError> {
        self.splits += 1;
        let what = format!("split {}", self.splits);
        let listed = ranks.map(Listed::new);
        let wishes: Vec<Wish> = self.share(&what, &Wish { color, key, rank: self.rank, listed })?;
        let wrong = disagreement(&wishes).or(ranks.and_then(|ranks| fault(ranks, self.world)));
        if let Some(reason) = wrong {
            let call = if ranks.is_some() { "subgroup" } else { "split" };
            return Err(CommError::Refused { rank: self.rank, call: call.to_string(), reason });
        }
        let mut mine: Vec<&Wish> =
            wishes.iter().filter(|wish| color.is_some() && wish.color == color).collect();
        mine.sort_by_key(|wish| (wish.key, wish.rank));
        let first = mine.first().map(|wish| wish.rank);
        let (host, offer) = match first == Some(self.rank) && mine.len() > 1 {
            false => (None, Offer::None),
            true => match self.host() {
                Ok((host, address, token)) => (Some(Host::new(host.into())), Offer::Here { address, token }),
                Err(reason) => (None, Offer::Failed(reason)),
            },
        };
        let mut offers: Vec<Offer> = self.share(&what, &offer)?;
        let Some(first) = first else { return Ok(None) };
        let rank = mine.iter().position(|wish| wish.rank == self.rank);
        let rank = rank.expect("invariant: a rank is among those of its own colour") as u32;
        let world = mine.len() as u32;
        let (address, token) = match offers.swap_remove(first as usize) {
            Offer::Here { address, token } => (address, token),
            Offer::None if world == 1 => (String::new(), String::new()),
            Offer::None => {
                let what = format!("{what}: rank {first} offers no place to meet");
                return Err(CommError::Setup { what });
            }
            Offer::Failed(reason) => {
                let what = format!("{what}: rank {first} can offer no place to meet: {reason}");
                return Err(CommError::Setup { what });
            }
        };
        let job = format!("{}/{}", self.wires.meeting().job, self.splits);
        let name = format!("{}/{}.{}", self.settings.name, self.splits, color.unwrap_or(0));
        let via = self.wires.meeting().via;
        let machine = self.wires.meeting().host.clone();
        let (checksums, tls) = (self.wires.meeting().checksums, self.wires.meeting().tls);
        let meeting = Meeting {
            rank,
            world,
            address,
            token,
            tls,
            job,
            time_limit: self.limit,
            via,
            host: machine,
            checksums,
            fingerprint: Vec::new(),
        };
        // Who is left stands where it stood.
        let ranks: Vec<u32> = mine.iter().map(|wish| wish.rank).collect();
        let chooser = self.settings.chooser.among(&ranks);
        let chooser = chooser.map_or_else(|| Arc::clone(&self.settings.chooser), Arc::new);
        open(meeting, host, None, Settings { name, chooser, ..self.settings.clone() }).map(Some)
    }

    /// A rendezvous for a new communicator, where the others can reach it.
    fn host(&self) -> Result<(Rendezvous, String, String), String> {
        let token = Token::random().map_err(|error| error.to_string())?.reveal().to_string();
        let ip = own_ip(&self.wires.meeting().address);
        let at = match ip.is_loopback() {
            true => format!("{ip}:0"),
            // Reachable by whatever way the others come.
            false if ip.is_ipv6() => "[::]:0".to_string(),
            false => "0.0.0.0:0".to_string(),
        };
        let bound = Rendezvous::bind_tls(&at, token.as_str(), self.wires.meeting().tls);
        let host = bound.map_err(|error| error.to_string())?;
        let address = std::net::SocketAddr::new(ip, host.address().port()).to_string();
        Ok((host, address, token))
    }

    /// Gives every rank a value and takes one of each.
    fn share<V: Serialize + for<'v> Deserialize<'v>>(
        &mut self,
        what: &str,
        value: &V,
    ) -> Result<Vec<V>, CommError> {
        let blob = serde_json::to_vec(value).expect("invariant: it is plain data");
        let blobs = self.exchange(what, blob)?;
        let read = |(rank, blob): (usize, &Vec<u8>)| {
            serde_json::from_slice(blob).map_err(|error| CommError::Setup {
                what: format!(
                    "{what}: rank {rank} says what cannot be read ({error}); is it in the same call?"
                ),
            })
        };
        blobs.iter().enumerate().map(read).collect()
    }
}

/// The address of this machine from which `address` is reached. No packet is sent to find it.
fn own_ip(address: &str) -> IpAddr {
    let of = |peer: std::net::SocketAddr| {
        let any = if peer.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any)?;
        socket.connect(peer)?;
        socket.local_addr().map(|address| address.ip())
    };
    let peers = address.to_socket_addrs().into_iter().flatten();
    peers.filter_map(|peer| of(peer).ok()).next().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}
