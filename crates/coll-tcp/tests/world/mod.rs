//! A job on this machine: every rank is a thread. The only place of these tests that knows how a job is put together.
#![allow(dead_code, reason = "each test file uses its part of it")]

use std::time::Duration;

use coll_exec::{Fault, Interest, Link, Transport};
use coll_tcp::{JoinOptions, Rendezvous, StartError, TcpTransport, join};

pub(crate) const TOKEN: &str = "sesame";

pub(crate) fn server() -> Rendezvous {
    Rendezvous::bind("127.0.0.1:0", TOKEN).unwrap()
}

/// Options of every rank of a world, each linked to all others on each of some channels.
pub(crate) fn mesh(server: &Rendezvous, world: u32, channels: u32) -> Vec<JoinOptions> {
    mesh_at(&server.address().to_string(), world, channels)
}

/// As [`mesh`], of a server at an address.
pub(crate) fn mesh_at(address: &str, world: u32, channels: u32) -> Vec<JoinOptions> {
    let others = |rank| (0..world).filter(move |&peer| peer != rank);
    let links = |rank| {
        others(rank).flat_map(|peer| (0..channels).map(move |channel| Link { peer, channel })).collect()
    };
    with_links(address, world, links)
}

/// Options of every rank of a world of three or more, each linked to the ranks before and after it.
pub(crate) fn ring(server: &Rendezvous, world: u32) -> Vec<JoinOptions> {
    let link = |peer| Link { peer: peer % world, channel: 0 };
    with_links(&server.address().to_string(), world, |rank| vec![link(rank + world - 1), link(rank + 1)])
}

/// Options of every rank of a world that joins without links.
pub(crate) fn bare(server: &Rendezvous, world: u32) -> Vec<JoinOptions> {
    with_links(&server.address().to_string(), world, |_| Vec::new())
}

fn with_links(address: &str, world: u32, links: impl Fn(u32) -> Vec<Link>) -> Vec<JoinOptions> {
    let options = |rank| {
        let mut options = JoinOptions::new(rank, world, address);
        options.token = TOKEN.into();
        options.links = links(rank);
        options.time_limit = Duration::from_secs(20);
        options
    };
    (0..world).map(options).collect()
}

/// Runs each rank on a thread of its own.
pub(crate) fn run<T: Send>(
    ranks: Vec<JoinOptions>,
    body: impl Fn(TcpTransport) -> T + Sync,
) -> Vec<Result<T, StartError>> {
    let body = &body;
    std::thread::scope(|scope| {
        let start = |options: JoinOptions| scope.spawn(move || join(options).map(body));
        let threads: Vec<_> = ranks.into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// As [`run`], for worlds that must start.
pub(crate) fn run_all<T: Send>(ranks: Vec<JoinOptions>, body: impl Fn(TcpTransport) -> T + Sync) -> Vec<T> {
    run(ranks, body).into_iter().map(|result| result.unwrap_or_else(|error| panic!("{error}"))).collect()
}

/// The error of every rank of a world that must not start.
pub(crate) fn errors(ranks: Vec<JoinOptions>) -> Vec<StartError> {
    run(ranks, |_| ()).into_iter().map(|result| result.expect_err("this world must not start")).collect()
}

/// Sleeps until the transport has a fault, reading what comes meanwhile.
pub(crate) fn await_fault(transport: &mut TcpTransport) -> Fault {
    let interests: Vec<Interest> = transport.links().map(Interest::readable).collect();
    let mut bytes = [0; 256];
    loop {
        if let Err(fault) = transport.wait(&interests) {
            return fault;
        }
        for interest in &interests {
            if let Err(fault) = transport.try_recv(interest.link, &mut bytes) {
                return fault;
            }
        }
    }
}

/// Waits until that is a fault: it may return early.
pub(crate) fn wait_long(transport: &mut TcpTransport, interests: &[Interest]) -> Fault {
    loop {
        if let Err(fault) = transport.wait(interests) {
            return fault;
        }
    }
}
