//! What goes wrong is told in time, by every rank, with names and numbers.

mod plans;

use coll_base::{DType, RedOp};
use coll_exec::world::World;
use coll_exec::{Bound, BufferMemory, Fault, FrameFault, RunError, RunOptions};
use coll_plan::Plan;
use plans::{Call, Part, after, library, plan};

fn call<'a>(plan: &'a Plan, counts: &'static [u64]) -> Call<'a> {
    Call { plan, dtype: DType::F32, op: RedOp::Sum, counts, in_place: false }
}

/// Runs bounds that need not fit each other, on zeroed buffers.
fn run(bounds: &mut [Bound], mut world: World) -> Vec<Result<(), RunError>> {
    let size = |bound: &Bound| bound.buffer_bytes(0).unwrap().map(|bytes| vec![0u8; bytes as usize]);
    let mut memory: Vec<[Vec<u8>; 2]> = bounds.iter().map(size).collect();
    let mut buffers: Vec<Vec<BufferMemory<'_>>> = memory
        .iter_mut()
        .map(|[input, output]| vec![BufferMemory::Separate { input: &*input, output: &mut *output }])
        .collect();
    world.run(bounds, &mut buffers, 7..8)
}

#[test]
fn a_rank_that_dies_is_named_by_every_rank_that_waits() {
    let plan = library::ring(4);
    for seed in 0..30 {
        for messages in 0..6 {
            let world = World::new(seed).link_bytes(16).drop_rank(2, messages);
            for (rank, result) in call(&plan, &[100]).ends(world).into_iter().enumerate() {
                match result {
                    Err(error) => {
                        let named = error.to_string().contains("rank 2");
                        assert!(named, "seed {seed}, {messages} messages, rank {rank}: {error}");
                    }
                    // Rank 3 needs all six messages of rank 2, and everybody needs the first three.
                    Ok(()) => assert!(messages >= 3 && rank != 2 && rank != 3, "rank {rank} cannot finish"),
                }
            }
        }
    }
}

/// Whoever waits until what it has lent is given back, or for more of what is lent to it, hears of a death too.
#[test]
fn a_rank_that_dies_is_named_where_messages_are_lent() {
    let plan = library::ring(4);
    for seed in 0..20 {
        for messages in 0..6 {
            let world = World::new(seed).link_bytes(40).lend_bytes(1).drop_rank(2, messages);
            let ends = call(&plan, &[8000]).ends(world);
            for (rank, end) in ends.iter().enumerate().filter(|(_, end)| end.is_err()) {
                let error = end.as_ref().unwrap_err();
                assert!(error.to_string().contains("rank 2"), "seed {seed}, rank {rank}: {error}");
            }
            assert!(ends[2].is_err() && ends[3].is_err(), "seed {seed}, {messages} messages");
        }
    }
}

#[test]
fn the_same_seed_ends_in_the_same_words() {
    let plan = library::ring(4);
    let ends = |seed| {
        let world = World::new(seed).link_bytes(16).drop_rank(1, 3);
        call(&plan, &[100]).ends(world).into_iter().map(|end| format!("{end:?}")).collect::<Vec<_>>()
    };
    assert_eq!(ends(11), ends(11));
}

#[test]
fn counts_that_differ_are_told_with_both_sides() {
    let plan = library::exchange();
    let mut bounds = [call(&plan, &[409_600]).bind(0), call(&plan, &[409_598]).bind(1)];
    let ends = run(&mut bounds, World::new(1).link_bytes(1 << 16).piece_bytes_max(1 << 16));
    let shown: Vec<String> = ends.into_iter().map(|end| end.unwrap_err().to_string()).collect();
    let first = shown.iter().find(|shown| shown.contains(" sent ")).unwrap();
    let told = [
        "rank 0, operation 7 (allreduce.exchange), step 0 (hand.coll:1), op 1, receive from rank 1: \
         rank 1 sent 1,638,392 B where 1,638,400 B are due: counts differ?",
        "rank 1, operation 7 (allreduce.exchange), step 0 (hand.coll:1), op 1, receive from rank 0: \
         rank 0 sent 1,638,400 B where 1,638,392 B are due: counts differ?",
    ];
    assert!(told.contains(&first.as_str()), "{first}");
    let other = shown.iter().find(|shown| *shown != first).unwrap();
    assert!(other.contains("gave up") || told.contains(&other.as_str()), "{other}");
}

#[test]
fn a_pair_of_which_one_side_expects_nothing_is_named() {
    // Rank 1 sends no element to rank 0, which expects 1,024 (and the other way round nothing is wrong).
    let plan = library::all_to_all(2);
    let sides: [&'static [u64]; 2] = [&[0, 5, 1024, 0], &[0, 5, 0, 0]];
    // Classes are numbered by first appearance: own block, to the peer, from the peer, the peer's own.
    let mut bounds = [call(&plan, sides[0]).bind(0), call(&plan, sides[1]).bind(1)];
    let mut memory: Vec<[Vec<u8>; 2]> = bounds
        .iter()
        .map(|bound| {
            let bytes =
                |buffer: usize, side: usize| vec![0; bound.buffer_bytes(buffer).unwrap()[side] as usize];
            [bytes(0, 0), bytes(1, 1)]
        })
        .collect();
    let mut buffers: Vec<Vec<BufferMemory<'_>>> = memory
        .iter_mut()
        .map(|[input, output]| vec![BufferMemory::input(input), BufferMemory::output(output)])
        .collect();
    let ends = World::new(3).run(&mut bounds, &mut buffers, 0..1);
    let error = ends[0].as_ref().unwrap_err().to_string();
    assert!(error.ends_with("rank 1 sent 0 B where 4,096 B are due: counts differ?"), "{error}");
}

#[test]
fn different_operators_of_one_size_are_told_apart() {
    let plan = library::exchange();
    let average = Call { op: RedOp::Avg, ..call(&plan, &[100]) };
    let mut bounds = [average.bind(0), call(&plan, &[100]).bind(1)];
    let ends = run(&mut bounds, World::new(1));
    assert!(ends.iter().any(|end| matches!(
        end,
        Err(RunError { fault: Fault::Frame { fault: FrameFault::Field { .. }, .. }, .. })
    )));
}

#[test]
fn another_call_is_told_by_its_fingerprint_and_before_anything_that_follows_from_it() {
    let theirs = *b"broadcast of i32";
    for seed in 0..30 {
        // Rank 1 has a count of its own, too: that follows from its being another call.
        let plan = library::ring(3);
        let mut bounds = [0, 1, 2].map(|rank| call(&plan, if rank == 1 { &[99] } else { &[100] }).bind(rank));
        let ends = run(&mut bounds, World::new(seed).link_bytes(40).fingerprint(1, theirs));
        let faults = || ends.iter().filter_map(|end| end.as_ref().err()).map(|error| &error.fault);
        assert!(!faults().any(|fault| matches!(fault, Fault::Frame { .. })), "seed {seed}: {ends:?}");
        let zeros = [0; 16];
        for fault in faults() {
            match fault {
                Fault::Mismatch { peer: 1, ours, theirs: told } => {
                    assert_eq!((*ours, *told), (zeros, theirs))
                }
                Fault::Mismatch { ours, theirs: told, .. } => assert_eq!((*ours, *told), (theirs, zeros)),
                Fault::Aborted { reason, .. } => assert!(reason.contains("runs another call"), "{reason}"),
                other => panic!("seed {seed}: {other}"),
            }
        }
        assert!(faults().any(|fault| matches!(fault, Fault::Mismatch { .. })), "seed {seed}");
    }
}

#[test]
fn sends_that_wait_for_each_other_in_a_ring_end_with_who_waits_for_what() {
    let plan = library::eager(0);
    for end in call(&plan, &[100]).ends(World::new(5).link_bytes(10)) {
        let error = end.unwrap_err();
        let Fault::Stuck { waits } = &error.fault else { panic!("{error}") };
        assert_eq!(
            waits,
            "rank 0 waits in step 0 (hand.coll:1), op 0, send to rank 1; \
             rank 1 waits in step 0 (hand.coll:1), op 0, send to rank 0"
        );
    }
}

#[test]
fn lanes_that_wait_for_each_other_over_a_link_end_with_where_they_stand() {
    // The first message of the link waits for the second one.
    let parts = (0..2).map(|rank| {
        let mut part = Part::new(rank);
        for message in 0..2 {
            match rank {
                0 => part.lane().send(1, &[], &[after(1)][message..]),
                _ => part.lane().recv(0, &[], &[]),
            };
        }
        part
    });
    let plan = plan("barrier.tangled", library::barrier(2).contract, 1, parts.collect());
    let error = call(&plan, &[]).ends(World::new(1))[0].clone().unwrap_err().to_string();
    assert_eq!(
        error,
        "rank 0, operation 0 (barrier.tangled): nothing can go on: every lane waits for another one; lanes stand at \
         step 0 (hand.coll:1), op 0, send to rank 1; step 0 (hand.coll:1), op 1, send to rank 1"
    );
}

#[test]
fn buffers_of_another_length_or_kind_are_refused_before_anything_moves() {
    let plan = library::ring(1);
    let mut bound = call(&plan, &[10]).bind(0);
    let (short, mut whole) = (vec![0; 36], vec![0; 40]);
    let mut refuse = |buffers: &mut [BufferMemory<'_>]| {
        bound.begin(buffers, RunOptions::default()).unwrap_err().to_string()
    };
    assert_eq!(
        refuse(&mut [BufferMemory::Separate { input: &short, output: &mut whole }]),
        "rank 0, operation 0 (allreduce.ring): the input of buffer `data` has 36 B where its counts need 40 B"
    );
    assert_eq!(
        refuse(&mut [BufferMemory::InPlace(&mut whole)]),
        "rank 0, operation 0 (allreduce.ring): one memory where separate input and output of buffer `data` was bound"
    );
    assert_eq!(refuse(&mut []), "rank 0, operation 0 (allreduce.ring): 0 buffers where 1 buffers was bound");
}
