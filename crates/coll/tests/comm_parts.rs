//! Communicators that are made of others: who is in which, by which number, what ranks that disagree on it are told, and that
//! what befalls one is nothing to the others. Known faults B048, B049 and B050.

#[path = "comm/world.rs"]
mod ranks;

use coll::{Builder, CommError, Communicator, RedOp, Via};
use ranks::{well, world_by, world_of};
use std::time::{Duration, Instant};

#[test]
fn b048_keys_are_an_order_and_no_numbers() {
    well(3, |comm| {
        let rank = comm.rank();
        let part = comm.split(Some(7), [30, 10, 20][rank as usize])?.expect("all have one colour");
        assert_eq!((part.rank(), part.world()), ([2, 0, 1][rank as usize], 3));
        let part = comm.split(Some(7), 4)?.expect("all have one colour");
        assert_eq!(part.rank(), rank, "equal keys keep the order");
        let part = comm.split(Some(u64::MAX), if rank == 0 { i64::MAX } else { i64::MIN })?;
        assert_eq!(part.map(|part| part.rank()), Some([2, 0, 1][rank as usize]));
        Ok(())
    });
}

#[test]
fn b049_a_rank_without_a_colour_is_in_none() {
    well(4, |comm| {
        let colour = (comm.rank() != 2).then_some(1);
        match comm.split(colour, 0)? {
            None => assert_eq!(comm.rank(), 2),
            Some(mut part) => {
                let mut sum = [0];
                part.all_reduce(&[comm.rank()], &mut sum, RedOp::Sum)?;
                assert_eq!((sum, part.world()), ([4], 3));
            }
        }
        assert!(comm.split(None, 0)?.is_none(), "all may stay out");
        comm.barrier()
    });
}

#[test]
fn b050_roots_and_peers_are_numbered_as_the_part_has_them() {
    well(4, |comm| {
        let rank = comm.rank();
        let Some(mut part) = comm.subgroup(&[1, 3])? else { return Ok(()) };
        let (mine, mut data) = ([rank], [rank]);
        part.broadcast(&mut data, 1)?;
        assert_eq!(data, [3]);
        let error = part.broadcast(&mut data, 2).expect_err("there is no such rank").to_string();
        assert!(error.contains("root 2 is no rank; ranks are 0..=1"), "{error}");
        let peer = 1 - part.rank();
        part.group(|group| {
            group.send(&mine, peer).receive(&mut data, peer);
        })?;
        assert_eq!(data, [4 - rank]);
        Ok(())
    });
}

/// Ranks that list others, or make another call to the same end, are told so: none gets a communicator that is not what it
/// asked for.
#[test]
fn ranks_that_list_others_are_told() {
    let lists: [[&[u32]; 3]; 4] = [
        [&[0, 1], &[1, 0], &[0, 1]],
        [&[0, 1], &[0, 1], &[1, 2]],
        [&[0, 1, 2], &[0, 1, 2], &[0, 1]],
        [&[0], &[1], &[2]],
    ];
    for via in [Via::Fastest, Via::Tcp] {
        for lists in lists {
            world_by(via, 3, move |comm| {
                let list = lists[comm.rank() as usize];
                let error = comm.subgroup(list).expect_err("the lists differ").to_string();
                let told = lists.map(|list| error.contains(&format!(": {list:?}")));
                assert!(error.contains("the calls differ") && told == [true; 3], "{lists:?}: {error}");
                comm.barrier().expect("the communicator goes on");
            });
        }
        world_by(via, 2, |comm| {
            let error = match comm.rank() {
                0 => comm.subgroup(&[0, 1]).map(|_| ()),
                _ => comm.split(Some(0), 1).map(|_| ()),
            };
            let error = error.expect_err("one splits, and one lists").to_string();
            assert!(error.contains("rank 0: [0, 1]; rank 1: a split by colours"), "{error}");
            comm.barrier().expect("the communicator goes on");
        });
    }
}

/// One rank splits, and the other is in an operation.
#[test]
fn a_split_beside_another_call_ends_in_time() {
    for via in [Via::Fastest, Via::Tcp] {
        let began = Instant::now();
        let results = world_by(via, 3, |comm| {
            comm.set_time_limit(Duration::from_millis(1500));
            comm.barrier()?;
            match comm.rank() {
                1 => comm.barrier(),
                _ => comm.duplicate().map(|_| ()),
            }
        });
        assert!(began.elapsed() < Duration::from_secs(8), "{via:?}: {:?}", began.elapsed());
        for (rank, result) in results.into_iter().enumerate() {
            let error = result.expect_err("they do not go together");
            assert!(error.is_fatal(), "rank {rank}: {error}");
            let words = error.to_string();
            assert!(
                words.contains("rank 1") || words.contains("ranks 0, 2"),
                "{via:?}, rank {rank}: {words}"
            );
        }
    }
}

fn sum(comm: &mut Communicator) -> Result<u32, CommError> {
    let mut sum = [0];
    comm.all_reduce(&[comm.rank() + 1], &mut sum, RedOp::Sum)?;
    Ok(sum[0])
}

/// A part that has ended, by misuse, by giving up, or by the loss of a rank of it, is nothing to the whole or to its siblings.
#[test]
fn what_ends_one_is_nothing_to_the_others() {
    for builder in
        [Builder::default(), Builder::default().via(Via::Tcp), Builder::default().ranks_per_host(2)]
    {
        world_of(builder, 4, |comm| {
            let mut first = comm.duplicate().expect("all is well");
            let mut second = first.duplicate().expect("all is well");
            let mut pair =
                comm.split(Some(u64::from(comm.rank() / 2)), 0).expect("all is well").expect("a colour");
            if comm.rank() == 2 {
                let error = first.all_gather(&[1u8; 2], &mut [0; 3]).expect_err("the lengths are wrong");
                assert!(error.is_fatal());
            }
            let error = sum(&mut first).expect_err("rank 2 has misused it").to_string();
            assert!(error.contains("the output has 3 elements"), "{error}");
            assert_eq!(sum(&mut second).expect("it is another"), 10);
            if comm.rank() == 3 {
                drop(std::mem::replace(&mut pair, Communicator::alone().expect("it needs nobody")));
            } else if comm.rank() == 2 {
                pair.set_time_limit(Duration::from_secs(2));
                let error = sum(&mut pair).expect_err("its peer has left").to_string();
                assert!(error.contains("rank 1"), "{error}");
            } else {
                assert_eq!(sum(&mut pair).expect("it is another"), 3);
            }
            assert_eq!(sum(comm).expect("it is another"), 10);
            assert_eq!(sum(&mut second).expect("it is another"), 10);
            // New ones can still be made.
            let mut again = comm.subgroup(&[3, 2, 1, 0]).expect("all is well").expect("all are in it");
            assert_eq!(sum(&mut again).expect("all is well"), 10);
        });
    }
}
