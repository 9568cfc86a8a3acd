//! Many at once, many in a row, and strangers among them.

mod world;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use coll_exec::{Interest, Link, Transport};
use coll_tcp::{JoinOptions, Rendezvous};

/// B065 and, with `COLL_TEST_CROWD=1000`, B069.
#[test]
fn three_hundred_ranks_join_at_once() {
    let ranks = std::env::var("COLL_TEST_CROWD").map_or(300, |ranks| ranks.parse().unwrap());
    let server = world::server();
    let began = Instant::now();
    let mut ring = world::ring(&server, ranks);
    for rank in &mut ring {
        rank.time_limit = Duration::from_secs(60);
    }
    let sums = world::run_all(ring, |mut transport| {
        let blobs = transport.exchange(transport.rank().to_le_bytes().to_vec()).unwrap();
        transport.shutdown();
        blobs.iter().map(|blob| u32::from_le_bytes(blob[..].try_into().unwrap())).sum::<u32>()
    });
    assert_eq!(sums, vec![ranks * (ranks - 1) / 2; ranks as usize]);
    assert!(began.elapsed() < Duration::from_secs(60));
}

/// B064.
#[test]
fn fifty_jobs_start_at_once_each_with_a_server_of_its_own() {
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..50)
            .map(|_| {
                scope.spawn(|| {
                    let server = world::server();
                    world::run_all(world::mesh(&server, 2, 1), |transport| transport.shutdown());
                    assert!(server.finish(Duration::from_secs(10)));
                })
            })
            .collect();
        for job in jobs {
            job.join().unwrap();
        }
    });
}

#[test]
fn a_server_serves_job_after_job_and_jobs_side_by_side() {
    let server = world::server();
    for _ in 0..3 {
        world::run_all(world::mesh(&server, 3, 1), |transport| transport.shutdown());
    }
    let named = |name: &str| {
        let mut ranks = world::mesh(&server, 3, 1);
        for rank in &mut ranks {
            rank.job = name.to_owned();
        }
        ranks
    };
    let both: Vec<JoinOptions> = named("one").into_iter().chain(named("two")).collect();
    world::run_all(both, |mut transport| {
        transport.exchange(vec![]).unwrap();
        transport.shutdown();
    });
}

#[test]
fn a_port_serves_again_as_soon_as_its_server_has_ended() {
    let first = world::server();
    let address = first.address().to_string();
    world::run_all(world::mesh(&first, 2, 1), |transport| transport.shutdown());
    assert!(first.finish(Duration::from_secs(5)));
    let second = Rendezvous::bind(&address, world::TOKEN).unwrap();
    world::run_all(world::mesh(&second, 2, 1), |transport| transport.shutdown());
}

/// B070.
#[test]
fn a_rank_that_died_while_waiting_does_not_haunt_the_next_job() {
    let server = world::server();
    let mut ghost = world::mesh(&server, 2, 1).remove(0);
    ghost.fingerprint = vec![("count".into(), "another".into())];
    ghost.time_limit = Duration::from_millis(300);
    assert_eq!(world::errors(vec![ghost]).len(), 1);
    world::run_all(world::mesh(&server, 2, 1), |transport| transport.shutdown());
}

/// What strangers say: another protocol, a frame of 2^32 bytes, half a frame, nothing.
fn pester(address: SocketAddr) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for words in
        [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"coll\xff\xff\xff\xff\xff\xff\xff\xff", b"coll\x10", b""]
    {
        let Ok(mut stream) = TcpStream::connect(address) else { continue };
        let _ = stream.write_all(words);
        held.push(stream);
    }
    held
}

/// B085.
#[test]
fn strangers_at_the_rendezvous_change_nothing() {
    let server = world::server();
    let mut held = pester(server.address());
    world::run_all(world::mesh(&server, 3, 1), |transport| transport.shutdown());
    // Those that made no sense were cut off; the one that says nothing has a while left to make sense.
    let mut garbage = held.remove(1);
    garbage.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut answer = Vec::new();
    let ended = garbage.read_to_end(&mut answer);
    assert!(ended.is_ok() || ended.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
}

#[test]
fn strangers_at_a_rank_change_nothing() {
    let server = world::server();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut ranks = world::mesh(&server, 2, 2);
    ranks[0].listen = Some(free);
    let late = ranks.pop().unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| world::run_all(ranks, greet));
        // Rank 0 listens from when it has reached the server on.
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut held = Vec::new();
        while held.len() < 4 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
            held = pester(free);
        }
        assert_eq!(held.len(), 4);
        world::run_all(vec![late], greet);
        first.join().unwrap();
    });
}

/// Sends a byte to each link and takes the one that its peer sends.
fn greet(mut transport: coll_tcp::TcpTransport) {
    let links: Vec<Link> = transport.links().collect();
    for &link in &links {
        assert_eq!(transport.try_send(link, &[&[link.channel as u8]]), Ok(1));
    }
    for link in links {
        let mut byte = [99];
        while transport.try_recv(link, &mut byte).unwrap() == 0 {
            transport.wait(&[Interest::readable(link)]).unwrap();
        }
        assert_eq!(u32::from(byte[0]), link.channel);
    }
    transport.exchange(vec![]).unwrap();
    transport.shutdown();
}
