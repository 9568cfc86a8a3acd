//! When a rank dies, gives up or stands still, every other rank knows it soon, with its number and the first reason.

mod world;

use std::time::{Duration, Instant};

use coll_exec::{Fault, Interest, Link, Transport};
use coll_tcp::TcpTransport;

/// Runs a ring in which one rank does something else than wait, and returns the others' faults and how long after it
/// they came.
fn ring_without(world: u32, odd: u32, act: impl Fn(TcpTransport) + Sync) -> Vec<(u32, Fault, Duration)> {
    let server = world::server();
    let told = world::run_all(world::ring(&server, world), |mut transport| {
        let rank = transport.rank();
        transport.exchange(vec![]).unwrap();
        let began = Instant::now();
        if rank == odd {
            act(transport);
            return None;
        }
        let fault = world::await_fault(&mut transport);
        Some((rank, fault, began.elapsed()))
    });
    told.into_iter().flatten().collect()
}

#[test]
fn the_death_of_a_rank_is_known_to_all_others() {
    let told = ring_without(6, 4, drop);
    assert_eq!(told.len(), 5);
    for (rank, fault, after) in told {
        let Fault::PeerLost { peer, detail } = &fault else { panic!("rank {rank}: {fault}") };
        assert_eq!(*peer, 4, "rank {rank}: {fault}");
        assert!(detail.contains("without a goodbye") && detail.contains("pid"), "{detail}");
        assert!(after < Duration::from_secs(2), "rank {rank} knew after {after:?}");
    }
}

#[test]
fn a_rank_that_gives_up_is_known_to_all_others_with_its_reason() {
    let told = ring_without(6, 1, |mut transport| {
        assert_eq!(transport.abort("disk full"), None);
        // Dropped at once: its word must not be lost on the way.
    });
    for (rank, fault, after) in told {
        assert_eq!(fault, Fault::Aborted { origin: 1, reason: "disk full".into() }, "rank {rank}");
        assert!(after < Duration::from_secs(2), "rank {rank} knew after {after:?}");
    }
}

#[test]
fn the_first_reason_is_everyones() {
    let server = world::server();
    let faults = world::run_all(world::ring(&server, 5), |mut transport| {
        transport.exchange(vec![]).unwrap();
        if transport.rank() == 2 {
            transport.abort("first");
            return Fault::Aborted { origin: 2, reason: "first".into() };
        }
        let fault = world::await_fault(&mut transport);
        // As an executor does that met a fault: whatever it met was told already.
        let earlier = transport.abort(&format!("rank {} met {fault}", transport.rank()));
        assert_eq!(earlier.as_ref(), Some(&fault));
        world::await_fault(&mut transport)
    });
    assert_eq!(faults, vec![Fault::Aborted { origin: 2, reason: "first".into() }; 5]);
}

#[test]
fn a_rank_that_stands_still_is_a_timeout_of_those_who_wait() {
    let server = world::server();
    world::run_all(world::mesh(&server, 2, 1), |mut transport| {
        transport.exchange(vec![]).unwrap();
        if transport.rank() == 0 {
            std::thread::sleep(Duration::from_millis(900));
            return transport.shutdown();
        }
        let began = Instant::now();
        transport.begin(Duration::from_millis(300));
        let link = Link { peer: 0, channel: 0 };
        let fault = world::wait_long(&mut transport, &[Interest::readable(link)]);
        assert_eq!(fault, Fault::TimedOut { limit_s: 0.3 });
        assert!(
            began.elapsed() >= Duration::from_millis(300) && began.elapsed() < Duration::from_millis(800)
        );
        transport.begin(Duration::from_millis(100));
        assert_eq!(transport.wait(&[Interest::writable(link)]), Ok(()), "a new operation has its own time");
        transport.shutdown();
    });
}

#[test]
fn time_between_operations_and_while_bytes_move_does_not_count() {
    let server = world::server();
    world::run_all(world::mesh(&server, 2, 1), |mut transport| {
        let link = Link { peer: 1 - transport.rank(), channel: 0 };
        transport.begin(Duration::from_millis(500));
        if transport.rank() == 0 {
            for byte in 0..6 {
                std::thread::sleep(Duration::from_millis(200));
                assert_eq!(transport.try_send(link, &[&[byte]]), Ok(1));
            }
        } else {
            let mut byte = [0];
            for _ in 0..6 {
                while transport.try_recv(link, &mut byte).unwrap() == 0 {
                    transport.wait(&[Interest::readable(link)]).unwrap();
                }
            }
        }
        transport.shutdown();
    });
}

#[test]
fn an_exchange_names_who_does_not_come() {
    let server = world::server();
    world::run_all(world::ring(&server, 4), |mut transport| {
        transport.begin(Duration::from_millis(400));
        if transport.rank() == 2 {
            std::thread::sleep(Duration::from_millis(1500));
            return transport.shutdown();
        }
        match transport.exchange(vec![1]).unwrap_err() {
            Fault::PeerLost { peer: 2, detail } => {
                assert_eq!(detail, "rank 2 did not come to exchange 0 within 0.4 s");
            }
            // Another one that waited was a moment faster.
            fault => assert!(fault.to_string().ends_with("gave up: rank 2 did not come"), "{fault}"),
        }
        transport.abort("rank 2 did not come");
    });
}

#[test]
fn a_rank_that_left_is_named_to_those_who_still_need_it() {
    let told = ring_without(4, 3, TcpTransport::shutdown);
    // Ranks 0 and 2 wait for bytes of rank 3 and see the end of them; rank 1 hears of it when they die of it.
    for (rank, fault, after) in told {
        let named = match &fault {
            Fault::PeerLost { peer, .. } => *peer,
            other => panic!("rank {rank}: {other}"),
        };
        assert!(if rank == 1 { named == 0 || named == 2 } else { named != 1 }, "rank {rank}: {fault}");
        assert!(after < Duration::from_secs(3), "rank {rank} knew after {after:?}");
    }
}

#[test]
fn a_goodbye_is_no_fault_of_those_who_need_nothing_more() {
    let server = world::server();
    world::run_all(world::ring(&server, 4), |mut transport| {
        transport.exchange(vec![]).unwrap();
        if transport.rank() != 0 {
            return transport.shutdown();
        }
        transport.begin(Duration::from_millis(600));
        assert_eq!(transport.wait(&[]), Err(Fault::TimedOut { limit_s: 0.6 }));
        let Err(Fault::PeerLost { peer: 1, detail }) = transport.exchange(vec![]) else {
            panic!("the others have left")
        };
        assert_eq!(detail, "it said goodbye before exchange 1");
    });
}

#[test]
fn a_server_that_ends_in_good_order_leaves_the_links_alone() {
    let server = std::sync::Mutex::new(Some(world::server()));
    let ranks = world::mesh(server.lock().unwrap().as_ref().unwrap(), 2, 1);
    world::run_all(ranks, |mut transport| {
        transport.exchange(vec![]).unwrap();
        drop(server.lock().unwrap().take());
        std::thread::sleep(Duration::from_millis(200));
        let link = Link { peer: 1 - transport.rank(), channel: 0 };
        assert_eq!(transport.try_send(link, &[b"x"]), Ok(1));
        let mut byte = [0];
        while transport.try_recv(link, &mut byte).unwrap() == 0 {
            transport.wait(&[Interest::readable(link)]).unwrap();
        }
        let fault = transport.exchange(vec![]).unwrap_err();
        assert!(fault.to_string().contains("the rendezvous has ended"), "{fault}");
        transport.shutdown();
    });
}

#[test]
fn a_blob_that_is_too_large_is_refused_on_every_rank() {
    let server = world::server();
    let faults = world::run_all(world::ring(&server, 3), |mut transport| {
        let bytes = if transport.rank() == 1 { coll_tcp::BLOB_LIMIT_BYTES + 1 } else { 1 };
        transport.exchange(vec![0; bytes]).unwrap_err()
    });
    let reason = "a blob of 16777217 bytes for an exchange, of 16777216 allowed".to_owned();
    assert_eq!(faults, vec![Fault::Aborted { origin: 1, reason }; 3]);
}
