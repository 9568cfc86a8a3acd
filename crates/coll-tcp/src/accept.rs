//! The accepting side of links: a listener that stays open as long as the rank runs, and a stash of connections that
//! have proved whose they are and that nobody here has asked for yet.
//!
//! Ranks come to a plan at different times: a peer that is ahead connects before this rank knows that it will need it.
//! Such a connection waits in the stash, so that the peer can go on. What a peer may leave there is bounded; beyond
//! that it is told to come again. Each connection is heard out on its own, so that a stranger holds up nobody.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coll_exec::Link;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};

use crate::handshake::challenge;
use crate::host;
use crate::links::Ground;
use crate::socket;
use crate::stream::Stream;
use crate::wire::LinkClaim;

/// How many connections of one peer wait at most.
const OF_A_PEER: usize = 64;

/// How many connections are heard out at a time: the others wait in the system's queue.
const HEARD_AT_A_TIME: usize = 512;

/// Connections that peers have made.
#[derive(Clone, Debug)]
pub(crate) struct Stash(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    waiting: Mutex<BTreeMap<Link, Stream>>,
    /// Something was put in.
    news: Notify,
}

impl Stash {
    pub(crate) fn new() -> Stash {
        Stash(Arc::new(Inner { waiting: Mutex::default(), news: Notify::new() }))
    }

    /// Takes a link that has come, or that will come.
    pub(crate) async fn take(&self, link: Link) -> Stream {
        loop {
            // From here on, news are not missed.
            let news = self.0.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            if let Some(stream) = self.waiting().remove(&link) {
                return stream;
            }
            news.await;
        }
    }

    /// A second connection for a link replaces the first: the peer has given that up.
    fn put(&self, link: Link, stream: Stream) {
        self.waiting().insert(link, stream);
        self.0.news.notify_waiters();
    }

    /// Whether there is room for one more of a peer's.
    fn has_room(&self, link: Link) -> bool {
        let waiting = self.waiting();
        let of_peer = Link { peer: link.peer, channel: 0 }..=Link { peer: link.peer, channel: u32::MAX };
        waiting.contains_key(&link) || waiting.range(of_peer).count() < OF_A_PEER
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Link, Stream>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts for as long as it is polled.
pub(crate) async fn attend(listener: TcpListener, ground: Ground, stash: Stash) {
    let turns = Arc::new(Semaphore::new(HEARD_AT_A_TIME));
    loop {
        // The semaphore is never closed.
        let Ok(turn) = turns.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (ground, stash) = (ground.clone(), stash.clone());
                tokio::spawn(async move {
                    if let Some((link, stream)) = hear_out(stream, &ground, &stash).await {
                        stash.put(link, stream);
                    }
                    drop(turn);
                });
            }
            Err(_) => {
                // Out of descriptors, most likely: there may be more to have, or strangers' may close.
                host::raise_descriptor_limit();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Hears one connection out: a peer's link, or nothing.
async fn hear_out(stream: TcpStream, ground: &Ground, stash: &Stash) -> Option<(Link, Stream)> {
    socket::prepare(&stream).ok()?;
    if let Some(size_bytes) = ground.socket_buffer_bytes {
        socket::set_buffers(&stream, size_bytes).ok()?;
    }
    let (stream, claim) = challenge(stream, &ground.keys, |claim| fits(claim, ground, stash)).await?;
    let link = Link { peer: claim.what.from, channel: claim.what.channel };
    claim.is_like(&ground.keys).then_some((link, stream))
}

fn fits(claim: &LinkClaim, ground: &Ground, stash: &Stash) -> Result<(), String> {
    let rank = ground.rank;
    if claim.generation != ground.generation {
        return Err("this port is another job's now".to_owned());
    }
    if claim.to != rank {
        return Err(format!("this is rank {rank}, not rank {}", claim.to));
    }
    if claim.from <= rank || claim.from >= ground.world {
        return Err(format!("rank {rank} awaits no connection from rank {}", claim.from));
    }
    if !stash.has_room(Link { peer: claim.from, channel: claim.channel }) {
        let from = claim.from;
        return Err(format!("rank {rank} has not asked for {OF_A_PEER} connections of rank {from} yet"));
    }
    Ok(())
}

/// The port's address, for the tests of both sides.
#[cfg(test)]
pub(crate) async fn listening(ground: &Ground) -> (std::net::SocketAddr, Stash) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stash = Stash::new();
    tokio::spawn(attend(listener, ground.clone(), stash.clone()));
    (address, stash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::Keys;
    use crate::links::dial_once;
    use crate::token::Token;
    use expect_test::expect;

    fn ground(rank: u32) -> Ground {
        let keys = Keys::new(Token::from("sesame"), false).unwrap();
        Ground { rank, world: 4, generation: 9, keys, socket_buffer_bytes: None }
    }

    #[tokio::test]
    async fn who_is_not_for_here_is_told_why_and_turned_away() {
        let (address, _stash) = listening(&ground(1)).await;
        let mut answers = Vec::new();
        for (generation, from, to, channel) in
            [(9, 3, 1, 0), (8, 3, 1, 0), (9, 3, 2, 0), (9, 0, 1, 0), (9, 4, 1, 1)]
        {
            let dialer = Ground { generation, ..ground(from) };
            let dialed = dial_once(&dialer, Link { peer: to, channel }, address).await;
            answers.push(dialed.map_or_else(|why| why, |_| "welcome".to_owned()));
        }
        expect![[r#"
            welcome
            this port is another job's now
            this is rank 1, not rank 2
            rank 1 awaits no connection from rank 0
            rank 1 awaits no connection from rank 4"#]]
        .assert_eq(&answers.join("\n"));
    }

    #[tokio::test]
    async fn what_waits_is_bounded_and_taken_when_asked_for() {
        let (address, stash) = listening(&ground(1)).await;
        let link = |channel| Link { peer: 1, channel };
        let mut held = Vec::new();
        for channel in 0..OF_A_PEER as u32 {
            held.push(dial_once(&ground(3), link(channel), address).await.unwrap());
        }
        let refused = dial_once(&ground(3), link(99), address).await.unwrap_err();
        assert_eq!(refused, "rank 1 has not asked for 64 connections of rank 3 yet");
        held.push(dial_once(&ground(2), link(99), address).await.unwrap());
        let theirs = stash.take(Link { peer: 3, channel: 5 }).await;
        assert_eq!(theirs.socket().peer_addr().unwrap(), held[5].socket().local_addr().unwrap());
        dial_once(&ground(3), link(99), address).await.unwrap();
        // A link that comes twice: the later one counts.
        let again = dial_once(&ground(3), link(7), address).await.unwrap();
        tokio::task::yield_now().await;
        let theirs = stash.take(Link { peer: 3, channel: 7 }).await;
        assert_eq!(theirs.socket().peer_addr().unwrap(), again.socket().local_addr().unwrap());
    }
}
