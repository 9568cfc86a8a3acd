//! Calls that do not fit together, ranks that go, mistakes of one rank: an error on every rank, in time, that says what.

#[path = "comm/world.rs"]
mod ranks;

use coll::{Buffer, CommError, Communicator, RedOp, Source, Via};
use ranks::{LIMIT, badly, badly_by, well, world};
use std::time::{Duration, Instant};

/// Rank 1 makes another call than the others.
fn odd_one_out(
    usual: fn(&mut Communicator) -> Result<(), CommError>,
    other: fn(&mut Communicator) -> Result<(), CommError>,
    both: [&str; 2],
) {
    for (n, via) in [(2, Via::Fastest), (3, Via::Fastest), (5, Via::Fastest), (3, Via::Tcp)] {
        let messages = badly_by(via, n, move |comm| {
            // All links are warm, and the calls before are right.
            comm.barrier()?;
            let first = if comm.rank() == 1 { other(comm) } else { usual(comm) };
            // A call that needs nothing more of the others may be through before the mismatch is found; the next one is not.
            first?;
            comm.barrier()
        });
        let all = messages.join("\n");
        assert!(both.iter().all(|call| all.contains(call)), "{n} ranks, {both:?}:\n{all}");
    }
}

fn sum<T: coll::Element>(comm: &mut Communicator, len: usize, op: RedOp) -> Result<(), CommError> {
    let (input, mut output) = (vec![T::zeroed(); len], vec![T::zeroed(); len]);
    comm.all_reduce(&input, &mut output, op)
}

#[test]
fn another_operation_count_type_operator_or_root() {
    let usual = |comm: &mut Communicator| sum::<f32>(comm, 64, RedOp::Sum);
    let words = "allreduce, element type f32, elements 64, operator sum";
    let other = "allreduce, element type f32, elements 65, operator sum";
    odd_one_out(usual, |comm| sum::<f32>(comm, 65, RedOp::Sum), [words, other]);
    let other = "allreduce, element type i32, elements 64, operator sum";
    odd_one_out(usual, |comm| sum::<i32>(comm, 64, RedOp::Sum), [words, other]);
    let other = "allreduce, element type f32, elements 64, operator max";
    odd_one_out(usual, |comm| sum::<f32>(comm, 64, RedOp::Max), [words, other]);
    let other = "broadcast, element type f32, elements 64, root 0";
    odd_one_out(usual, |comm| comm.broadcast(&mut [0f32; 64], 0), [words, other]);
    odd_one_out(usual, |comm| comm.barrier(), [words, "is in operation 1: barrier"]);
    let from_0 = |comm: &mut Communicator| comm.broadcast(&mut [0u8; 4], 0);
    odd_one_out(
        from_0,
        |comm| comm.broadcast(&mut [0u8; 4], 1),
        ["broadcast, element type u8, elements 4, root 0", "broadcast, element type u8, elements 4, root 1"],
    );
}

#[test]
fn another_order() {
    let usual = |comm: &mut Communicator| {
        comm.broadcast(&mut [0u8; 4], 0)?;
        sum::<u8>(comm, 4, RedOp::Sum)
    };
    let other = |comm: &mut Communicator| {
        sum::<u8>(comm, 4, RedOp::Sum)?;
        comm.broadcast(&mut [0u8; 4], 0)
    };
    odd_one_out(
        usual,
        other,
        ["operation 1: broadcast, element type u8", "operation 1: allreduce, element type u8"],
    );
}

/// B040.
#[test]
fn counts_that_disagree_between_two_ranks() {
    let messages = badly(3, |comm| {
        let r = comm.rank() as usize;
        // Rank 2 thinks that rank 0 sends it 2 elements.
        let (send, mut receive) = ([1; 3], [1; 3]);
        if r == 2 {
            receive[0] = 2;
        }
        let mut output = vec![0u8; receive.iter().sum()];
        comm.all_to_all_v(&[0u8; 3], &send, &mut output, &receive)?;
        comm.barrier()
    });
    assert!(messages.iter().any(|message| message.contains("B are due")), "{messages:#?}");
    let messages = badly(3, |comm| {
        let mut all = [0i32; 3];
        let at_root = (comm.rank() == 0).then_some((&mut all[..], &[1, 1, 1][..]));
        let mine = vec![1; if comm.rank() == 2 { 2 } else { 1 }];
        comm.gather_v(&mine, at_root, 0)?;
        comm.barrier()
    });
    assert!(messages.iter().any(|message| message.contains("8 B where 4 B are due")), "{messages:#?}");
    let messages = badly(3, |comm| {
        let counts = if comm.rank() == 1 { [2, 1, 1] } else { [1, 1, 2] };
        let mine = vec![0u8; counts[comm.rank() as usize]];
        comm.all_gather_v(&mine, &mut [0; 4], &counts)?;
        comm.barrier()
    });
    for message in messages {
        assert!(
            message.contains("elements [1, 1, 2]") && message.contains("elements [2, 1, 1]"),
            "{message}"
        );
    }
}

#[test]
fn what_one_rank_gets_wrong_ends_it_for_all() {
    let messages = badly(3, |comm| {
        let mut output = vec![0f32; if comm.rank() == 2 { 3 } else { 4 }];
        comm.all_reduce(&[0f32; 4], &mut output, RedOp::Sum)
    });
    let due = "allreduce of 4 f32, sum: the output has 3 elements, and must have 4: as many as the input";
    assert_eq!(messages[2], format!("rank 2, {due}"));
    for (rank, message) in messages[..2].iter().enumerate() {
        assert!(message.starts_with(&format!("rank {rank}, operation 0 (allreduce")), "{message}");
        assert!(message.contains("rank 2 gave up: rank 2, allreduce of 4 f32"), "{message}");
    }
}

#[test]
fn every_wrong_length_is_named() {
    let check = |call: fn(&mut Communicator) -> Result<(), CommError>, due: &str| {
        let mut comm = Communicator::local(1).unwrap().remove(0);
        let error = call(&mut comm).unwrap_err();
        assert!(error.is_fatal());
        assert!(error.to_string().contains(due), "{error}");
        let again = comm.barrier().unwrap_err().to_string();
        assert!(again.starts_with("the communicator has ended: ") && again.contains(due), "{again}");
    };
    check(|comm| comm.all_gather(&[1u8; 2], &mut [0; 3]), "the output has 3 elements, and must have 2");
    check(|comm| comm.gather(&[1u8; 2], None, 0), "the output is not given");
    check(|comm| comm.scatter(Some(&[1u8; 2]), &mut [0; 3], 0), "the input has 2 elements, and must have 3");
    check(|comm| comm.all_to_all(&[1u8; 2], &mut [0; 3]), "the output has 3 elements, and must have 2");
    check(|comm| comm.all_gather_v(&[1u8], &mut [0; 1], &[1, 1]), "2 counts are given for 1 ranks");
    check(|comm| comm.all_gather_v(&[1u8], &mut [0; 2], &[1]), "the output has 2 elements, and must have 1");
    check(|comm| comm.all_gather_v(&[1u8], &mut [0; 2], &[2]), "this rank's block has 1 elements, and must");
    check(|comm| comm.all_to_all_v(&[1u8], &[1], &mut [0; 2], &[2]), "sends itself 1 elements");
    check(
        |comm| {
            let (bytes, mut out) = ([0; 7], [0; 8]);
            let input = coll::View::new(coll::DType::F32, &bytes);
            let output = coll::ViewMut::new(coll::DType::F32, &mut out);
            comm.run(coll::Request::all_reduce(input, output, RedOp::Sum))
        },
        "7 bytes, which are no whole number of f32",
    );
    check(
        |comm| {
            let mut out = [0i64; 2];
            comm.run(coll::Request::all_reduce(&[0f64; 2], &mut out, RedOp::Sum))
        },
        "buffers of f64 and of i64",
    );
}

#[test]
fn what_all_ranks_see_is_refused_and_the_communicator_goes_on() {
    well(2, |comm| {
        let error = comm.broadcast(&mut [0u8; 1], 2).unwrap_err();
        assert!(!error.is_fatal());
        assert_eq!(
            error.to_string(),
            format!("rank {}, broadcast of 1 u8, root 2: root 2 is no rank; ranks are 0..=1", comm.rank())
        );
        let itself = comm.send(&[1u8], comm.rank()).unwrap_err();
        assert!(itself.to_string().contains("neither sends to nor receives from itself"), "{itself}");
        let source = Source::from_text("last.coll", "operator ordered last(a, b) = b\n");
        let last = coll::Op::from_source(&source, "last", &[])?;
        let mut kept = [0];
        comm.all_reduce(&[comm.rank() as i32], &mut kept, &last)?;
        assert_eq!(kept, [1], "an ordered operator gets an ordered schedule");
        let ring = Source::builtin("allreduce", "ring").expect("the library has it");
        let ring = comm.load(&ring, None, &[], 0)?;
        let counts = ring.counts(4)?;
        let mut out = [0i32; 4];
        let refused = comm.run_custom(&ring, &counts, vec![Buffer::separate(&[0; 4], &mut out)], Some(last));
        assert!(refused.unwrap_err().to_string().contains("does not keep the operands in rank order"));
        comm.barrier()
    });
}

#[test]
fn a_rank_that_panics_is_lost_to_all() {
    let ranks = Communicator::local(4).unwrap();
    let threads: Vec<_> = ranks
        .into_iter()
        .map(|mut comm| {
            std::thread::spawn(move || {
                comm.barrier().unwrap();
                if comm.rank() == 2 {
                    // Unwinds without the noise of a panic.
                    std::panic::resume_unwind(Box::new("gone"));
                }
                let began = Instant::now();
                let error = sum::<f32>(&mut comm, 100_000, RedOp::Sum).unwrap_err();
                assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
                error.to_string()
            })
        })
        .collect();
    for (rank, thread) in threads.into_iter().enumerate() {
        match thread.join() {
            Ok(message) => assert!(message.contains("rank 2"), "rank {rank}: {message}"),
            Err(_) => assert_eq!(rank, 2),
        }
    }
}

#[test]
fn a_rank_that_never_comes_is_told_of_within_the_limit() {
    let began = Instant::now();
    let results = world(3, |comm| {
        comm.set_time_limit(Duration::from_millis(400));
        if comm.rank() == 1 {
            std::thread::sleep(Duration::from_millis(1500));
            return Ok(());
        }
        comm.barrier()
    });
    assert!(began.elapsed() < LIMIT);
    for rank in [0, 2] {
        let message = results[rank].as_ref().unwrap_err().to_string();
        assert!(message.contains("operation 0 (barrier"), "{message}");
        assert!(message.contains("0.4 s") || message.contains("gave up"), "{message}");
    }
}

#[test]
fn giving_up_is_heard_everywhere() {
    let messages = badly(3, |comm| {
        if comm.rank() == 1 {
            comm.abort("the disk is full");
        }
        comm.barrier()
    });
    for message in messages {
        assert!(message.contains("the disk is full"), "{message}");
    }
}

#[test]
fn a_member_that_fails_ends_a_group() {
    let messages = badly(2, |comm| {
        let (mut theirs, mut sum) = ([0u8; 4], [0u8; 2]);
        let peer = 1 - comm.rank();
        let mine = vec![0u8; if comm.rank() == 0 { 4 } else { 5 }];
        comm.group(|group| {
            group.all_reduce(&[1, 1], &mut sum, RedOp::Sum).send(&mine, peer).receive(&mut theirs, peer);
        })?;
        comm.barrier()
    });
    assert!(messages[0].contains("receive of 4 u8 from rank 1"), "{messages:#?}");
}
