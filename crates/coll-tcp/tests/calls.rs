//! Ranks that make different calls, or that do not come to one, are named with what they do instead.

mod world;

use std::sync::Arc;
use std::time::{Duration, Instant};

use coll_exec::{Fault, Interest, Link};
use coll_tcp::{Call, TcpTransport};
use expect_test::expect;

fn call(fields: &[(&str, &str)]) -> Arc<Call> {
    let words: Vec<(String, String)> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mut fingerprint = [0; 16];
    for (place, byte) in words.iter().flat_map(|(_, value)| value.bytes()).enumerate() {
        fingerprint[place % 16] ^= byte.wrapping_add(place as u8);
    }
    Arc::new(Call { fingerprint, words })
}

fn allreduce() -> Arc<Call> {
    call(&[("collective", "allreduce"), ("count", "1024"), ("dtype", "f32"), ("operator", "sum")])
}

/// Waits for the rank before this one, which sends nothing.
fn wait_in_ring(transport: &mut TcpTransport) -> Fault {
    let peer = (transport.rank() + transport.world() - 1) % transport.world();
    let interest = Interest::readable(Link { peer, channel: 0 });
    world::wait_long(transport, &[interest])
}

#[test]
fn different_calls_end_the_job_on_every_rank_long_before_the_time_limit() {
    let server = world::server();
    let began = Instant::now();
    let faults = world::run_all(world::ring(&server, 4), |mut transport| {
        let broadcast =
            call(&[("collective", "broadcast"), ("count", "1024"), ("dtype", "f32"), ("root", "0")]);
        let call = if transport.rank() == 1 { broadcast } else { allreduce() };
        transport.begin_call(Duration::from_secs(20), 7, &call);
        wait_in_ring(&mut transport)
    });
    assert!(began.elapsed() < Duration::from_secs(3));
    for fault in faults {
        let Fault::UnlikeCalls { operation: 7, detail } = fault else { panic!("{fault}") };
        expect!["rank 1 is in operation 7: broadcast, count 1024, dtype f32, root 0; ranks 0, 2-3 are in operation 7: allreduce, count 1024, dtype f32, operator sum; they differ in collective, root, operator"].assert_eq(&detail);
    }
}

#[test]
fn a_rank_that_has_gone_on_to_the_next_call_is_compared_all_the_same() {
    let server = world::server();
    let faults = world::run_all(world::ring(&server, 3), |mut transport| {
        let limit = Duration::from_secs(20);
        // Rank 2 thinks that operation 3 was another one, and is done with it.
        let other = call(&[("collective", "barrier")]);
        if transport.rank() == 2 {
            transport.begin_call(limit, 3, &other);
            transport.end_call();
            transport.begin_call(limit, 4, &allreduce());
        } else {
            transport.begin_call(limit, 3, &allreduce());
        }
        wait_in_ring(&mut transport)
    });
    for fault in faults {
        let Fault::UnlikeCalls { operation: 3, detail } = &fault else { panic!("{fault}") };
        assert!(detail.starts_with("rank 2 is in operation 3: barrier; ranks 0-1"), "{detail}");
    }
}

#[test]
fn who_sees_a_strange_frame_asks_and_is_told_at_once() {
    let server = world::server();
    world::run_all(world::ring(&server, 3), |mut transport| {
        let count = if transport.rank() == 0 { "8" } else { "4" };
        transport.begin_call(Duration::from_secs(20), 1, &call(&[("collective", "scan"), ("count", count)]));
        if transport.rank() != 2 {
            let Fault::UnlikeCalls { .. } = wait_in_ring(&mut transport) else { panic!("calls differ") };
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        let Some(Fault::UnlikeCalls { operation: 1, detail }) = transport.explain_mismatch(0) else {
            panic!("calls differ")
        };
        assert!(detail.ends_with("they differ in count"), "{detail}");
        assert!(began.elapsed() < Duration::from_millis(500), "it took {:?}", began.elapsed());
    });
}

#[test]
fn ranks_that_agree_are_no_mismatch() {
    let server = world::server();
    world::run_all(world::ring(&server, 3), |mut transport| {
        transport.begin_call(Duration::from_secs(20), 1, &allreduce());
        transport.exchange(vec![]).unwrap();
        if transport.rank() == 1 {
            assert_eq!(transport.explain_mismatch(0), None);
        }
        transport.exchange(vec![]).unwrap();
        transport.shutdown();
    });
}

#[test]
fn a_rank_that_has_not_come_is_named_with_what_it_did_last() {
    let server = world::server();
    let faults = world::run_all(world::ring(&server, 4), |mut transport| {
        transport.begin_call(Duration::from_millis(1200), 6, &allreduce());
        transport.end_call();
        transport.exchange(vec![]).unwrap();
        if transport.rank() == 3 {
            // Busy elsewhere, until the others have given up.
            std::thread::sleep(Duration::from_millis(2500));
            return None;
        }
        transport.begin_call(Duration::from_millis(1200), 7, &allreduce());
        let began = Instant::now();
        let fault = wait_in_ring(&mut transport);
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        // Until all know by themselves.
        std::thread::sleep(Duration::from_millis(600));
        Some(fault)
    });
    for fault in faults.into_iter().flatten() {
        let Fault::Late { limit_s: 1.2, ranks, detail } = &fault else { panic!("{fault}") };
        assert_eq!(*ranks, [3], "{detail}");
        assert!(detail.starts_with("rank 3 has not begun operation 7: operation 6 ended"), "{detail}");
        assert!(
            fault.to_string().starts_with("nothing moved for the time limit of 1.2 s: rank 3"),
            "{fault}"
        );
    }
}

#[test]
fn a_watch_tells_of_the_failure_without_the_transport() {
    let server = world::server();
    world::run_all(world::ring(&server, 3), |mut transport| {
        transport.exchange(vec![]).unwrap();
        let watch = transport.watch();
        if transport.rank() == 1 {
            transport.abort("disk full");
        }
        let began = Instant::now();
        while !watch.has_failed() {
            assert!(began.elapsed() < Duration::from_secs(2));
            std::thread::yield_now();
        }
        assert_eq!(watch.fault(), Some(Fault::Aborted { origin: 1, reason: "disk full".into() }));
    });
}
