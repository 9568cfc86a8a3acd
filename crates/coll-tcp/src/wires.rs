//! A rank's sockets by link, found without a search: every message looks its link up several times.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use coll_exec::{Fault, Link};

use crate::session::Session;

/// How long a broken link waits for a better reason than its own.
pub(crate) const GRACE: Duration = Duration::from_millis(400);

/// All links of a rank. Links are added, never removed, so that a place stays good.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    wires: Vec<Wire>,
    /// By peer: its channels, ascending, and the places of their wires.
    by_peer: Vec<Vec<(u32, usize)>>,
    broken: usize,
}

/// A link and its socket.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) link: Link,
    pub(crate) socket: TcpStream,
    /// The state of TLS, if it is spoken on this link.
    pub(crate) session: Option<Box<Session>>,
    broken: Option<Break>,
}

#[derive(Debug)]
struct Break {
    since: Instant,
    detail: String,
}

impl Wires {
    /// Adds a link that is not there yet.
    pub(crate) fn add(&mut self, link: Link, socket: TcpStream, session: Option<Box<Session>>) {
        let peer = link.peer as usize;
        if self.by_peer.len() <= peer {
            self.by_peer.resize_with(peer + 1, Vec::new);
        }
        let channels = &mut self.by_peer[peer];
        if let Err(at) = channels.binary_search_by_key(&link.channel, |(channel, _)| *channel) {
            channels.insert(at, (link.channel, self.wires.len()));
            self.wires.push(Wire { link, socket, session, broken: None });
        }
    }

    /// A link's place. Plans number channels from 0, so most often the first guess is right.
    pub(crate) fn place(&self, link: Link) -> Result<usize, Fault> {
        let Link { peer, channel } = link;
        let channels = self.by_peer.get(peer as usize).map_or(&[][..], Vec::as_slice);
        match channels.get(channel as usize) {
            Some(&(found, place)) if found == channel => Ok(place),
            _ => match channels.binary_search_by_key(&channel, |(channel, _)| *channel) {
                Ok(at) => Ok(channels[at].1),
                Err(_) => Err(Fault::NoLink { peer, channel }),
            },
        }
    }

    pub(crate) fn has(&self, link: Link) -> bool {
        self.place(link).is_ok()
    }

    /// The socket at a place, unless it is broken.
    pub(crate) fn socket(&self, place: usize) -> Option<&TcpStream> {
        let wire = &self.wires[place];
        wire.broken.is_none().then_some(&wire.socket)
    }

    /// The link at a place, unless it is broken.
    pub(crate) fn wire(&mut self, place: usize) -> Option<&mut Wire> {
        let wire = &mut self.wires[place];
        wire.broken.is_none().then_some(wire)
    }

    /// Whether a link that is not broken may have bytes that have left its socket.
    pub(crate) fn holds(&self, place: usize) -> bool {
        let wire = &self.wires[place];
        wire.broken.is_none() && wire.session.as_ref().is_some_and(|session| session.holds())
    }

    /// Says on every link within TLS that its end is meant.
    pub(crate) fn part(&mut self) {
        for Wire { socket, session, .. } in &mut self.wires {
            if let Some(session) = session {
                session.part(socket);
            }
        }
    }

    /// All links, ascending.
    pub(crate) fn links(&self) -> impl Iterator<Item = Link> {
        self.by_peer.iter().flatten().map(|&(_, place)| self.wires[place].link)
    }

    pub(crate) fn sockets(&self) -> impl Iterator<Item = &TcpStream> {
        self.wires.iter().map(|wire| &wire.socket)
    }

    pub(crate) fn len(&self) -> usize {
        self.wires.len()
    }

    /// Sets a link aside: it broke.
    pub(crate) fn set_aside(&mut self, place: usize, detail: String) {
        let broken = &mut self.wires[place].broken;
        if broken.is_none() {
            self.broken += 1;
            *broken = Some(Break { since: Instant::now(), detail });
        }
    }

    /// How long the first broken link still waits for a reason; it is the fault if that is over.
    pub(crate) fn grace(&self) -> Result<Option<Duration>, Fault> {
        if self.broken == 0 {
            return Ok(None);
        }
        let breaks = self.wires.iter().filter_map(|wire| Some((wire.link, wire.broken.as_ref()?)));
        let Some((link, first)) = breaks.min_by_key(|(_, broken)| broken.since) else { return Ok(None) };
        let left = GRACE.saturating_sub(first.since.elapsed());
        if left.is_zero() {
            return Err(Fault::PeerLost { peer: link.peer, detail: first.detail.clone() });
        }
        Ok(Some(left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_is_found_and_no_other() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut wires = Wires::default();
        let mut added = Vec::new();
        for (peer, channel) in [(5, 0), (2, 7), (2, 0), (9, u32::MAX), (2, 1), (5, 0)] {
            let link = Link { peer, channel };
            wires.add(link, TcpStream::connect(listener.local_addr().unwrap()).unwrap(), None);
            added.push(link);
        }
        for &link in &added {
            assert_eq!(wires.wires[wires.place(link).unwrap()].link, link);
        }
        for (peer, channel) in [(2, 2), (2, 6), (4, 0), (10, 0), (u32::MAX, 0)] {
            assert_eq!(wires.place(Link { peer, channel }), Err(Fault::NoLink { peer, channel }));
        }
        added.sort_unstable();
        added.dedup();
        assert_eq!((wires.links().collect::<Vec<_>>(), wires.len()), (added, 5));
    }
}
