//! Links that are made while the job runs, when one side first needs them.

mod world;

use std::time::{Duration, Instant};

use coll_exec::{Fault, Interest, Link, Transport};
use coll_tcp::{ConnectError, StartError, TcpTransport};

fn link(peer: u32, channel: u32) -> Link {
    Link { peer, channel }
}

/// Sends a byte on each link and takes the one that its peer sends.
fn greet(transport: &mut TcpTransport, links: &[Link]) {
    let rank = transport.rank();
    for &link in links {
        assert_eq!(transport.try_send(link, &[&[rank as u8, link.channel as u8]]), Ok(2));
    }
    for &link in links {
        let mut bytes = Vec::new();
        while bytes.len() < 2 {
            let mut rest = [0; 2];
            let count = transport.try_recv(link, &mut rest[bytes.len()..]).unwrap();
            bytes.extend_from_slice(&rest[bytes.len()..][..count]);
            if count == 0 {
                transport.wait(&[Interest::readable(link)]).unwrap();
            }
        }
        assert_eq!(bytes, [link.peer as u8, link.channel as u8]);
    }
}

fn ring(rank: u32, world: u32) -> Vec<Link> {
    vec![link((rank + 1) % world, 0), link((rank + world - 1) % world, 0)]
}

#[test]
fn plan_after_plan_gets_its_links_and_keeps_those_it_has() {
    let server = world::server();
    let joined = world::bare(&server, 5);
    let counts = world::run_all(joined, |mut transport| {
        let (rank, world) = (transport.rank(), transport.world());
        assert_eq!(transport.links().count(), 0);
        transport.connect(&ring(rank, world)).unwrap();
        greet(&mut transport, &ring(rank, world));
        // A second plan, on two channels to all: the ring's links are among them.
        let mesh: Vec<Link> =
            (0..world).filter(|&peer| peer != rank).flat_map(|peer| [link(peer, 0), link(peer, 1)]).collect();
        transport.connect(&mesh).unwrap();
        transport.connect(&mesh).unwrap();
        greet(&mut transport, &mesh);
        greet(&mut transport, &ring(rank, world));
        transport.exchange(vec![]).unwrap();
        let count = transport.links().count();
        transport.shutdown();
        count
    });
    assert_eq!(counts, [8; 5]);
    assert!(server.finish(Duration::from_secs(5)));
}

#[test]
fn whoever_connects_goes_on_before_whoever_accepts_has_come() {
    let server = world::server();
    world::run_all(world::bare(&server, 2), |mut transport| {
        let peer = 1 - transport.rank();
        if transport.rank() == 0 {
            std::thread::sleep(Duration::from_millis(600));
        }
        let began = Instant::now();
        transport.connect(&[link(peer, 3)]).unwrap();
        assert!(began.elapsed() < Duration::from_millis(300), "it took {:?}", began.elapsed());
        greet(&mut transport, &[link(peer, 3)]);
        transport.exchange(vec![]).unwrap();
        transport.shutdown();
    });
}

#[test]
fn a_peer_that_never_comes_is_an_error_in_time_that_all_hear_of() {
    let server = world::server();
    let faults = world::run_all(world::bare(&server, 3), |mut transport| {
        if transport.rank() != 0 {
            return world::wait_long(&mut transport, &[]).to_string();
        }
        transport.begin(Duration::from_millis(500));
        let began = Instant::now();
        let error = transport.connect(&[link(2, 1)]).unwrap_err();
        assert!(began.elapsed() < Duration::from_millis(1500));
        let ConnectError::Start(StartError::Links { rank: 0, failures, .. }) = &error else {
            panic!("{error}")
        };
        assert_eq!((failures[0].link, failures[0].dialed), (link(2, 1), false));
        error.to_string()
    });
    for fault in &faults[1..] {
        assert!(fault.starts_with("rank 0 gave up: rank 0 could not connect"), "{fault}");
    }
    assert!(faults[0].contains("rank 2     channel 1   it never connected to this rank"), "{}", faults[0]);
}

#[test]
fn a_rank_that_dies_while_others_connect_is_named() {
    let server = world::server();
    world::run_all(world::bare(&server, 3), |mut transport| match transport.rank() {
        2 => {
            std::thread::sleep(Duration::from_millis(100));
            drop(transport);
        }
        rank => {
            let began = Instant::now();
            let error = transport.connect(&[link(2, rank)]).unwrap_err();
            let ConnectError::Fault(Fault::PeerLost { peer: 2, .. }) = error else { panic!("{error}") };
            assert!(began.elapsed() < Duration::from_secs(2));
        }
    });
}

#[test]
fn links_that_cannot_be_are_refused_on_the_spot() {
    let server = world::server();
    world::run_all(world::bare(&server, 1), |mut transport| {
        let error = transport.connect(&[link(1, 0)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "these options cannot be: rank 0 of 1 asks for a link to rank 1, on channel 0"
        );
    });
    world::run(world::bare(&server, 2), |mut transport| {
        let own = transport.rank();
        assert!(transport.connect(&[link(own, 0)]).is_err());
    });
}

#[test]
fn sixty_four_ranks_are_ready_in_two_seconds() {
    let server = world::server();
    let began = Instant::now();
    world::run_all(world::bare(&server, 64), |mut transport| {
        let links = ring(transport.rank(), transport.world());
        transport.connect(&links).unwrap();
        greet(&mut transport, &links);
        transport.exchange(vec![]).unwrap();
        transport.shutdown();
    });
    assert!(began.elapsed() < Duration::from_secs(2), "it took {:?}", began.elapsed());
}
