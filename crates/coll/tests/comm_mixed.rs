//! Ranks of several machines in one communicator, pretended on one: shared memory within each, TCP between them.

#[path = "comm/operations.rs"]
mod operations;
#[path = "comm/world.rs"]
mod ranks;

use coll::{CommError, Communicator, RedOp, Via};
use ranks::{LIMIT, world_of};
use std::time::{Duration, Instant};

/// Ranks, and how many of them share memory: machines are 2+2, 3+1, 2+2+2, 4+2 and 5+1 ranks large.
const MACHINES: [(u32, u32); 5] = [(4, 2), (4, 3), (6, 2), (6, 4), (6, 5)];

fn apart(ranks_per_host: u32) -> coll::Builder {
    Communicator::builder().ranks_per_host(ranks_per_host)
}

#[test]
fn every_operation_is_right_across_machines() {
    for (ranks, together) in MACHINES {
        let results = world_of(apart(together), ranks, |comm| {
            let mut make = |_: &mut Communicator, len| Box::new(vec![0i64; len]) as operations::Memory;
            for len in [0, 7, 100_003] {
                operations::all_at(comm, len, &mut make)?;
            }
            Ok::<(), CommError>(())
        });
        for result in results {
            result.unwrap_or_else(|error| panic!("{ranks} ranks, {together} on each machine: {error}"));
        }
    }
}

#[test]
fn parts_of_a_communicator_stay_apart_as_their_ranks_are() {
    let results = world_of(apart(2), 6, |comm| {
        // One rank of each machine, and all of two machines.
        for color in [comm.rank() % 2, comm.rank() / 4] {
            let mut part = comm.split(Some(color.into()), 0)?.expect("each has a colour");
            let mut all = vec![0; part.world() as usize];
            part.all_gather(&[comm.rank()], &mut all)?;
            assert!(all.contains(&comm.rank()) && all.is_sorted(), "{all:?}");
            let mut sum = vec![1i32; 50_000];
            part.all_reduce_in_place(&mut sum, RedOp::Sum)?;
            assert!(sum.iter().all(|&sum| sum == part.world() as i32));
        }
        Ok::<(), CommError>(())
    });
    results.into_iter().for_each(|result| result.unwrap_or_else(|error| panic!("{error}")));
}

/// B072: shared memory is insisted on, and some ranks share none.
#[test]
fn ranks_that_cannot_share_memory_say_so_where_it_is_insisted_on() {
    let error = apart(2).via(Via::Shm).local(3).expect_err("rank 2 is on a machine of its own").to_string();
    assert!(error.contains("shares no memory with rank"), "{error}");
    let ranks = apart(3).via(Via::Shm).local(3).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(ranks.len(), 3);
}

/// What moves on links of one kind makes nobody late on the other: rank 0 hears every now and then of one peer, and of the
/// other only after more than the time limit.
#[test]
fn the_time_limit_counts_what_moves_on_either_kind_of_link() {
    const SHORT: Duration = Duration::from_millis(800);
    const ROUNDS: usize = 8;
    for (chatty, silent) in [(1, 2), (2, 1)] {
        let results = world_of(apart(2), 4, move |comm| {
            // A first message makes the link that it goes by.
            match comm.rank() {
                0 => (comm.receive(&mut [0u8], 1)?, comm.receive(&mut [0u8], 2)?),
                3 => ((), ()),
                _ => (comm.send(&[1u8], 0)?, ()),
            };
            match comm.rank() {
                0 => {
                    comm.set_time_limit(SHORT);
                    let (mut news, mut last) = ([[0u8; 1]; ROUNDS], [0u8; 1]);
                    let began = Instant::now();
                    comm.group(|group| {
                        for one in &mut news {
                            group.receive(one, chatty);
                        }
                        group.receive(&mut last, silent);
                    })?;
                    assert!(began.elapsed() > SHORT, "it took longer than the limit in all");
                    assert_eq!((news, last), ([[7]; ROUNDS], [8]));
                }
                rank if rank == chatty => {
                    for _ in 0..ROUNDS {
                        std::thread::sleep(SHORT / 4);
                        comm.send(&[7u8], 0)?;
                    }
                }
                rank if rank == silent => {
                    std::thread::sleep(SHORT / 4 * ROUNDS as u32);
                    comm.send(&[8u8], 0)?;
                }
                _ => {}
            }
            Ok::<(), CommError>(())
        });
        results.into_iter().for_each(|result| result.unwrap_or_else(|error| panic!("{error}")));
    }
}

/// A rank that never comes is missed by near and far peers alike, and in time.
#[test]
fn a_late_rank_is_told_on_both_kinds_of_link() {
    for late in [0, 3] {
        let began = Instant::now();
        let results = world_of(apart(2), 4, move |comm| {
            comm.barrier()?;
            comm.set_time_limit(Duration::from_secs(2));
            if comm.rank() == late {
                std::thread::sleep(Duration::from_millis(3500));
            }
            comm.all_reduce_in_place(&mut [1i32; 1000], RedOp::Sum)
        });
        assert!(began.elapsed() < LIMIT + Duration::from_secs(10), "{:?}", began.elapsed());
        // The late rank itself may find all that it needs.
        for (rank, result) in (0..).zip(results).filter(|&(rank, _)| rank != late) {
            let error: CommError = result.expect_err("one rank did not come");
            let text = error.to_string();
            assert!(text.contains(&format!("rank {late}")), "rank {rank}: {text}");
        }
    }
}
