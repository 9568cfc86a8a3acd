//! What callers get wrong, or may get wrong: arguments that are of no use on a rank, calls of no elements that do not fit
//! together, prepared calls that do not, and time limits at both ends.

#[path = "comm/world.rs"]
mod ranks;

use coll::{Builder, CommError, Communicator, RedOp, Via};
use ranks::{badly_by, well, world_by};
use std::time::{Duration, Instant};

/// A rank that is not the root may give what only the root need give, as programs do that call alike on all ranks; whatever
/// it says there, nothing is read or written.
#[test]
fn what_is_for_the_root_alone_is_not_looked_at_elsewhere() {
    const WRONG: [&[usize]; 4] = [&[], &[9, 9, 9], &[1], &[usize::MAX, usize::MAX, 1, 1]];
    for wrong in WRONG {
        well(3, move |comm| {
            let (rank, right) = (comm.rank(), [2, 0, 1]);
            let own = right[rank as usize];
            let counts = if rank == 1 { &right[..] } else { wrong };
            let (mine, mut all) = (vec![rank + 1; own], [77; 3]);
            comm.gather_v(&mine, Some((&mut all[..], counts)), 1)?;
            assert_eq!(all, if rank == 1 { [1, 1, 3] } else { [77; 3] });
            let (all, mut mine) = ([4u32, 5, 6], vec![0; own]);
            comm.scatter_v(Some((&all[..], counts)), &mut mine, 1)?;
            assert_eq!(mine, [vec![4, 5], vec![], vec![6]][rank as usize]);
            // The same, where blocks are alike: buffers of any length.
            let mut any = vec![77u32; if rank == 1 { 3 } else { 5 }];
            comm.gather(&[rank], Some(&mut any[..]), 1)?;
            assert_eq!(any, if rank == 1 { vec![0, 1, 2] } else { vec![77; 5] });
            let mut one = [0];
            comm.scatter(Some(&any[..]), &mut one, 1)?;
            assert_eq!(one, [rank]);
            let mut sum = vec![77u32; if rank == 1 { 1 } else { 4 }];
            comm.reduce(&[rank], Some(&mut sum[..]), RedOp::Sum, 1)?;
            assert_eq!(sum, if rank == 1 { vec![3] } else { vec![77; 4] });
            comm.barrier()
        });
    }
}

type Call = fn(&mut Communicator) -> Result<(), CommError>;

/// Rank 1 makes the second call and the others the first.
fn differ(usual: Call, other: Call, words: [&str; 2]) {
    for via in [Via::Fastest, Via::Tcp] {
        let messages = badly_by(via, 3, move |comm| {
            comm.barrier()?;
            if comm.rank() == 1 { other(comm) } else { usual(comm) }?;
            comm.barrier()
        });
        let all = messages.join("\n");
        assert!(words.iter().all(|word| all.contains(word)), "{via:?}, {words:?}:\n{all}");
    }
}

fn sum<T: coll::Element>(comm: &mut Communicator, len: usize) -> Result<(), CommError> {
    comm.all_reduce(&vec![T::zeroed(); len], &mut vec![T::zeroed(); len], RedOp::Sum)
}

#[test]
fn calls_of_no_elements_are_compared_too() {
    differ(|comm| sum::<f32>(comm, 0), |comm| sum::<i32>(comm, 0), ["type f32", "type i32"]);
    differ(|comm| sum::<f32>(comm, 0), |comm| sum::<f32>(comm, 1), ["elements 0,", "elements 1,"]);
    differ(|comm| sum::<u8>(comm, 0), |comm| comm.barrier(), ["allreduce", "barrier"]);
    differ(
        |comm| comm.broadcast(&mut [0u8; 0], 0),
        |comm| comm.broadcast(&mut [0u8; 0], 2),
        ["root 0", "root 2"],
    );
    differ(
        |comm| comm.all_gather(&[0u8; 0], &mut [0; 0]),
        |comm| comm.all_to_all(&[0u8; 0], &mut [0; 0]),
        ["allgather", "alltoall"],
    );
    differ(
        |comm| comm.all_gather_v(&[0u8; 0], &mut [0; 0], &[0; 3]),
        |comm| comm.all_gather(&[0u8; 0], &mut [0; 0]),
        ["elements [0, 0, 0]", "elements 0"],
    );
}

#[test]
fn operators_and_factors_are_compared() {
    differ(
        |comm| comm.all_reduce(&[1f32], &mut [0.0], coll::Op::premul_sum(0.5)),
        |comm| comm.all_reduce(&[1f32], &mut [0.0], coll::Op::premul_sum(0.25)),
        ["factor = 0.5", "factor = 0.25"],
    );
    differ(
        |comm| comm.scan(&[1f32], &mut [0.0], RedOp::Sum),
        |comm| comm.exscan(&[1f32], &mut [0.0], RedOp::Sum),
        ["operation 1: scan", "operation 1: exscan"],
    );
    differ(
        |comm| comm.reduce_scatter(&[1f32; 3], &mut [0.0], RedOp::Sum),
        |comm| comm.reduce_scatter(&[1f32; 3], &mut [0.0], RedOp::Avg),
        ["operator sum", "operator avg"],
    );
    differ(
        |comm| comm.gather(&[1u8], Some(&mut [0u8; 3]), 0),
        |comm| comm.gather(&[1u8], Some(&mut [0u8; 3]), 1),
        ["root 0", "root 1"],
    );
}

#[test]
fn prepared_calls_that_differ_between_ranks() {
    for via in [Via::Fastest, Via::Tcp] {
        let began = Instant::now();
        let results = world_by(via, 3, |comm| {
            comm.set_time_limit(Duration::from_secs(2));
            let len = if comm.rank() == 1 { 3 } else { 4 };
            let sum = comm.prepare_all_reduce::<f32>(len, RedOp::Sum)?;
            let mut output = vec![0f32; len];
            sum.run(comm, &vec![1f32; len], &mut output)?;
            comm.barrier()
        });
        let all: Vec<String> =
            results.into_iter().map(|result| result.expect_err("they differ").to_string()).collect();
        assert!(
            all.iter().any(|text| text.contains("elements 3") && text.contains("elements 4")),
            "{all:#?}"
        );
        // To prepare is not to run: the rank that prepares is one call behind.
        let results = world_by(via, 3, |comm| {
            comm.set_time_limit(Duration::from_secs(2));
            match comm.rank() {
                1 => comm.prepare_all_to_all::<f32>(100_000).map(|_| ())?,
                _ => comm.barrier()?,
            }
            comm.barrier()
        });
        for rank in [0, 2] {
            let text = results[rank].as_ref().expect_err("rank 1 is one call behind").to_string();
            assert!(text.contains("rank 1"), "{via:?}: {text}");
        }
        assert!(began.elapsed() < Duration::from_secs(15), "{via:?}: {:?}", began.elapsed());
    }
}

/// No limit is too long or too short: the longest there is is as good as a year, and with none every wait is an error.
#[test]
fn time_limits_at_both_ends() {
    for via in [Via::Fastest, Via::Tcp] {
        for builder in [Builder::default().via(via), Builder::default().via(via).ranks_per_host(1)] {
            let builder = if via == Via::Tcp { builder.ranks_per_host(1) } else { builder };
            let results = ranks::world_of(builder.time_limit(Duration::MAX), 2, |comm| {
                comm.set_time_limit(Duration::MAX);
                sum::<f32>(comm, 10)?;
                sum::<f32>(comm, 1_000_000)?;
                let mut part = comm.duplicate()?;
                sum::<f32>(&mut part, 10)?;
                let peer = 1 - comm.rank();
                let mut theirs = [0u8; 4];
                comm.group(|group| {
                    group.send(&[1u8; 4], peer).receive(&mut theirs, peer);
                })?;
                // Long enough to be asked about.
                if comm.rank() == 0 {
                    std::thread::sleep(Duration::from_millis(1800));
                }
                comm.barrier()
            });
            for result in results {
                result.unwrap_or_else(|error| panic!("{error}"));
            }
        }
        let began = Instant::now();
        let results = world_by(via, 2, |comm| {
            comm.barrier()?;
            comm.set_time_limit(Duration::ZERO);
            if comm.rank() == 0 {
                std::thread::sleep(Duration::from_millis(300));
            }
            (0..10).try_for_each(|_| sum::<f32>(comm, 100_000))
        });
        assert!(results.iter().any(Result::is_err), "{via:?}: there is no time at all");
        assert!(began.elapsed() < Duration::from_secs(8), "{via:?}: {:?}", began.elapsed());
    }
}
