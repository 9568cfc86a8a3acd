//! Groups that do not fit together: every rank is told, by name of the call that differs, wherever in the group it is; and
//! what one rank alone gets wrong in one of them.

#[path = "comm/world.rs"]
mod ranks;

use coll::{Builder, CommError, Communicator, RedOp, Request, Via};
use ranks::world_of;
use std::time::{Duration, Instant};

/// The reductions that a rank makes as one: lengths, in order.
fn sums(comm: &mut Communicator, lens: &[usize]) -> Result<(), CommError> {
    let inputs: Vec<Vec<f32>> = lens.iter().map(|&len| vec![1.0; len]).collect();
    let mut outputs = inputs.clone();
    comm.group(|group| {
        for (input, output) in inputs.iter().zip(&mut outputs) {
            group.all_reduce(input, output, RedOp::Sum);
        }
    })
}

/// Runs a group on each of three ranks, of which rank 1 makes another, by every way. All ranks must fail in time and one of
/// them at least must say all of `words`.
fn fails(usual: &'static [usize], other: &'static [usize], words: &[&str]) {
    for builder in
        [Builder::default(), Builder::default().via(Via::Tcp), Builder::default().ranks_per_host(2)]
    {
        let began = Instant::now();
        let results = world_of(builder.clone(), 3, move |comm| {
            comm.set_time_limit(Duration::from_secs(3));
            sums(comm, &[5; 3])?;
            sums(comm, if comm.rank() == 1 { other } else { usual })?;
            comm.barrier()
        });
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let errors: Vec<String> = results
            .into_iter()
            .enumerate()
            .map(|(rank, result)| {
                result.expect_err(&format!("rank {rank} of {usual:?}, {other:?}")).to_string()
            })
            .collect();
        let all = errors.join("\n");
        assert!(words.iter().all(|word| all.contains(word)), "{usual:?}, {other:?}, {builder:?}:\n{all}");
    }
}

#[test]
fn the_first_the_middle_and_the_last_of_a_group() {
    fails(&[4, 5, 6], &[3, 5, 6], &["elements 4,", "elements 3,"]);
    fails(&[4, 5, 6], &[4, 7, 6], &["elements 5,", "elements 7,"]);
    fails(&[4, 5, 6], &[4, 5, 9], &["elements 6,", "elements 9,"]);
}

#[test]
fn another_order_within_a_group() {
    fails(&[4, 5, 6], &[6, 5, 4], &["elements 4,", "elements 6,"]);
}

#[test]
fn groups_of_other_sizes() {
    fails(&[4, 5, 6], &[4, 5], &["rank 1"]);
    fails(&[4, 5], &[4, 5, 6], &["rank 1"]);
    fails(&[4, 5, 6], &[], &["rank 1"]);
}

/// More calls than a rank remembers of itself.
#[test]
fn the_first_of_very_many() {
    const USUAL: [usize; 40] = [8; 40];
    const OTHER: [usize; 40] = {
        let mut lens = USUAL;
        lens[0] = 9;
        lens
    };
    fails(&USUAL, &OTHER, &["elements 8", "elements 9"]);
}

/// What only one rank can know of one call: nothing of the group is sent, and all are told.
#[test]
fn one_call_that_is_wrong_on_one_rank() {
    for via in [Via::Fastest, Via::Tcp] {
        let results = world_of(Builder::default().via(via), 3, |comm| {
            comm.set_time_limit(Duration::from_secs(3));
            let (input, mut sum, mut all) =
                ([1u8; 2], [7u8; 2], vec![7u8; if comm.rank() == 2 { 5 } else { 6 }]);
            let result = comm.group(|group| {
                group.all_reduce(&input, &mut sum, RedOp::Sum).add(Request::all_gather(&input, &mut all));
            });
            (result.expect_err("it is wrong").to_string(), sum)
        });
        for (error, _) in &results {
            assert!(error.contains("the output has 5 elements, and must have 6"), "{error}");
        }
        assert_eq!(results[2].1, [7; 2], "nothing was done");
    }
}

/// What every rank finds wrong is refused, and the communicator goes on.
#[test]
fn one_call_that_no_rank_can_carry_out() {
    ranks::well(2, |comm| {
        let (mut sum, mut data) = ([7u8; 2], [1u8; 2]);
        let error = comm.group(|group| {
            group.all_reduce(&[1, 1], &mut sum, RedOp::Sum).broadcast(&mut data, 5);
        });
        let error = error.expect_err("there is no rank 5");
        assert!(!error.is_fatal() && error.to_string().contains("root 5 is no rank"), "{error}");
        assert_eq!(sum, [7; 2], "nothing was done");
        sums(comm, &[1, 2])
    });
}

/// Messages alone, nothing at all, and messages of which one side is missing.
#[test]
fn groups_of_messages() {
    ranks::well(3, |comm| {
        let (rank, n) = (comm.rank(), comm.world());
        comm.group(|_| {})?;
        let (mine, mut all) = ([rank; 3], vec![[9u32; 3]; 3]);
        comm.group(|group| {
            for (peer, theirs) in (0..n).zip(&mut all).filter(|(peer, _)| *peer != rank) {
                group.receive(theirs, peer).send(&mine, peer);
            }
        })?;
        for peer in (0..n).filter(|&peer| peer != rank) {
            assert_eq!(all[peer as usize], [peer; 3]);
        }
        comm.barrier()
    });
    for via in [Via::Fastest, Via::Tcp] {
        let began = Instant::now();
        let results = world_of(Builder::default().via(via), 2, |comm| {
            comm.set_time_limit(Duration::from_millis(1500));
            let (rank, mine, mut theirs, mut more) = (comm.rank(), [comm.rank(); 3], [9; 3], [9; 3]);
            comm.group(|group| match rank {
                0 => {
                    group.send(&mine, 1);
                }
                _ => {
                    group.receive(&mut theirs, 0).receive(&mut more, 0);
                }
            })
        });
        assert!(began.elapsed() < Duration::from_secs(8), "{via:?}: {:?}", began.elapsed());
        let error = results[1].as_ref().expect_err("rank 0 sends once").to_string();
        assert!(error.contains("rank 0") && error.contains("receive of 3"), "{error}");
    }
}
