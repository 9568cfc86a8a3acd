//! Communicators within TLS: every operation over TCP and across machines, parts of them, and what has to be alike.

#[path = "comm/operations.rs"]
mod operations;
#[path = "comm/port.rs"]
mod port;
#[path = "comm/world.rs"]
mod ranks;

use coll::{Builder, CommError, Communicator, RedOp, Via};
use ranks::world_of;
use std::thread;
use std::time::{Duration, Instant};

/// Ranks that all meet over TCP, and such as share memory two by two.
fn builders() -> [Builder; 2] {
    [Communicator::builder().via(Via::Tcp), Communicator::builder().ranks_per_host(2)]
}

#[test]
fn every_operation_is_right_within_tls() {
    for builder in builders() {
        for ranks in [2, 3, 5] {
            let results = world_of(builder.clone().tls(true), ranks, |comm| {
                let mut make = |_: &mut Communicator, len| Box::new(vec![0i64; len]) as operations::Memory;
                for len in [0, 7, 3_001, 100_003] {
                    operations::all_at(comm, len, &mut make)?;
                }
                Ok::<(), CommError>(())
            });
            for result in results {
                result.unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
            }
        }
    }
}

#[test]
fn parts_of_a_communicator_are_within_tls_as_it_is() {
    let results = world_of(Communicator::builder().via(Via::Tcp).tls(true).checksums(true), 4, |comm| {
        let mut part = comm.split(Some((comm.rank() % 2).into()), 0)?.expect("each has a colour");
        let mut sum = vec![1i32; 50_000];
        part.all_reduce_in_place(&mut sum, RedOp::Sum)?;
        assert!(sum.iter().all(|&sum| sum == 2));
        Ok::<(), CommError>(())
    });
    results.into_iter().for_each(|result| result.unwrap_or_else(|error| panic!("{error}")));
}

#[test]
fn ranks_that_do_not_have_tls_alike_are_told_soon() {
    for with in [0, 1] {
        let address = format!("127.0.0.1:{}", port::free_port());
        let began = Instant::now();
        let threads = [0, 1].map(|rank| {
            let builder = Communicator::builder().rank(rank, 2).rendezvous(&address).via(Via::Tcp);
            let builder = builder.token("sesame").tls(rank == with);
            thread::spawn(move || builder.build().map(drop).expect_err("they differ").to_string())
        });
        for thread in threads {
            let error = thread.join().expect("no rank panics");
            assert!(error.contains("TLS") && error.contains("COLLC_TLS"), "{error}");
        }
        assert!(began.elapsed() < Duration::from_secs(3));
    }
}

#[test]
fn tls_without_a_token_is_refused() {
    for world in [1, 2] {
        let builder = Communicator::builder().rank(0, world).rendezvous("127.0.0.1:0").tls(true);
        let error = builder.build().map(drop).expect_err("there is no token").to_string();
        assert!(error.contains("no token") && error.contains("COLLC_TOKEN"), "{error}");
    }
}
