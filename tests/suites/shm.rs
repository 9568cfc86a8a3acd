//! Library schedules between threads, through shared memory: every element against the serial oracle. Rings are small,
//! so that large messages go round them often.

mod support;

use coll_base::{DType, RedOp};
use coll_exec::{Bound, BufferMemory, RunError, RunOptions};
use coll_plan::Plan;
use coll_shm::{Memory, Options, ShmTransport, threads};
use std::time::Duration;
use support::{Call, Case, library_plan, seed};

/// Operations in a row, without a barrier between them.
const OPERATIONS: u64 = 2;

/// Every rank on a thread of its own.
fn run(
    world: &mut [ShmTransport],
    bounds: &mut [Bound],
    buffers: &mut [Vec<BufferMemory<'_>>],
    operations: u64,
) -> Vec<Result<(), RunError>> {
    std::thread::scope(|scope| {
        let ranks = world.iter_mut().zip(bounds).zip(buffers);
        let running: Vec<_> = ranks
            .map(|((transport, bound), buffers)| {
                scope.spawn(move || {
                    transport.begin(Duration::from_secs(60));
                    transport.connect(bound.links().collect::<Vec<_>>()).expect("threads reach each other");
                    (0..operations).try_for_each(|operation| {
                        bound.run(transport, buffers, RunOptions { operation, ..RunOptions::default() })
                    })
                })
            })
            .collect();
        running.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

/// The same out of memory that ranks read in place: what they are given is put there, and what comes out is taken from it.
fn run_in_place(
    world: &mut [ShmTransport],
    bounds: &mut [Bound],
    buffers: &mut [Vec<BufferMemory<'_>>],
    operations: u64,
) -> Vec<Result<(), RunError>> {
    // Nothing lies at the same place on two ranks.
    let skip = |rank: usize| 8 * rank;
    let shared = |rank: usize, bytes: &[u8]| {
        let mut memory = Memory::new(skip(rank) + bytes.len()).expect("there is memory");
        memory[skip(rank)..].copy_from_slice(bytes);
        memory
    };
    let mut memories: Vec<Vec<[Memory; 2]>> = Vec::new();
    for (rank, buffers) in buffers.iter().enumerate() {
        let both = |buffer: &BufferMemory<'_>| match buffer {
            BufferMemory::Separate { input, output } => [shared(rank, input), shared(rank, output)],
            BufferMemory::InPlace(all) => [shared(rank, &[]), shared(rank, all)],
        };
        memories.push(buffers.iter().map(both).collect());
    }
    let lent = memories.iter_mut().zip(&*buffers).enumerate().map(|(rank, (memories, buffers))| {
        let pairs = memories.iter_mut().zip(buffers);
        pairs
            .map(|([input, output], buffer)| match buffer {
                BufferMemory::Separate { .. } => {
                    BufferMemory::Separate { input: &input[skip(rank)..], output: &mut output[skip(rank)..] }
                }
                BufferMemory::InPlace(_) => BufferMemory::InPlace(&mut output[skip(rank)..]),
            })
            .collect()
    });
    let ends = run(world, bounds, &mut lent.collect::<Vec<_>>(), operations);
    for (rank, (memories, buffers)) in memories.iter().zip(buffers).enumerate() {
        for ([_, from], to) in memories.iter().zip(buffers) {
            let (BufferMemory::Separate { output, .. } | BufferMemory::InPlace(output)) = to;
            output.copy_from_slice(&from[skip(rank)..]);
        }
    }
    ends
}

/// B106: as small a message as any is lent, and no two ranks have theirs at the same offset.
#[test]
fn b106_every_schedule_out_of_memory_that_ranks_read_in_place() {
    let seed = seed();
    let options = Options { ring_bytes: Some(16 << 10), lend_bytes: Some(1), ..Options::default() };
    for ranks in [2, 3, 5, 8] {
        let mut world = threads::world_with(ranks, &options).expect("there is memory");
        for entry in coll::library::entries() {
            let Some(plan) = library_plan(&entry, ranks, ranks - 1) else { continue };
            for in_place in [true, false] {
                let case = Case::new(RedOp::Sum, DType::F32);
                let case = Case { elements: 40_003, in_place, seed, ..case };
                let operations = if in_place { 1 } else { OPERATIONS };
                let mut call = Call::new(&plan, &case).expect("it can be bound");
                let ran =
                    call.run_by(|bounds, buffers| run_in_place(&mut world, bounds, buffers, operations));
                ran.unwrap_or_else(|message| panic!("{}, {case:?}: {message}", plan.name));
            }
        }
    }
}

/// Threads see all memory of their process: as small a message as any is read in place, out of memory like any other.
#[test]
fn every_schedule_between_threads_that_show_each_other_their_memory() {
    let seed = seed();
    let options = Options {
        ring_bytes: Some(16 << 10),
        lend_bytes: Some(1),
        show_bytes: Some(1),
        ..Options::default()
    };
    for ranks in [2, 3, 5, 8] {
        let mut world = threads::world_with(ranks, &options).expect("there is memory");
        for entry in coll::library::entries() {
            let Some(plan) = library_plan(&entry, ranks, ranks - 1) else { continue };
            for (dtype, in_place) in [(DType::F32, false), (DType::I64, true), (DType::Bf16, false)] {
                let op = if dtype == DType::Bf16 { RedOp::Avg } else { RedOp::Sum };
                let case = Case {
                    elements: 10_007,
                    in_place,
                    seed,
                    check_inputs: !in_place,
                    ..Case::new(op, dtype)
                };
                check(&mut world, &plan, case);
            }
        }
    }
}

/// Its run has failed, and its memory is the caller's again: nobody reads it any more, and who was to do so is told.
#[test]
fn what_a_thread_has_shown_is_not_read_after_its_run() {
    let plan = library_plan(&coll::library::entry("broadcast", "linear").expect("it is there"), 2, 0);
    let plan = plan.expect("it applies");
    let options = Options { lend_bytes: Some(1), show_bytes: Some(1), ..Options::default() };
    let mut world = threads::world_with(2, &options).expect("there is memory");
    let case = Case { elements: 100_003, in_place: true, ..Case::new(RedOp::Sum, DType::F32) };
    let mut call = Call::new(&plan, &case).expect("it can be bound");
    let ran = call.run_by(|bounds, buffers| {
        let mut ranks = world.iter_mut().zip(bounds).zip(buffers);
        let mut one = |limit: Duration| {
            let ((transport, bound), buffers) = ranks.next().expect("there are two");
            transport.begin(limit);
            transport.connect(bound.links().collect::<Vec<_>>()).expect("threads reach each other");
            bound.run(transport, buffers, RunOptions::default())
        };
        // One after the other, so that the first has ended before the second looks.
        vec![one(Duration::from_millis(100)), one(Duration::from_secs(10))]
    });
    let said = ran.expect_err("nobody was there to receive");
    assert!(
        said.contains("gave up while its memory was being read") || said.contains("nothing moved"),
        "{said}"
    );
}

fn check(world: &mut [ShmTransport], plan: &Plan, case: Case) {
    let operations = if case.in_place { 1 } else { OPERATIONS };
    let mut call = Call::new(plan, &case).expect("it can be bound");
    if let Err(message) = call.run_by(|bounds, buffers| run(world, bounds, buffers, operations)) {
        panic!("{}, {case:?}: {message}", plan.name);
    }
}

#[test]
fn every_schedule_between_threads() {
    let seed = seed();
    let options = Options { ring_bytes: Some(16 << 10), ..Options::default() };
    for ranks in 2..=8 {
        // One world for all: what one operation leaves in the rings would spoil the next.
        let mut world = threads::world_with(ranks, &options).expect("there is memory");
        for entry in coll::library::entries() {
            let Some(plan) = library_plan(&entry, ranks, ranks - 1) else { continue };
            for (elements, dtype, in_place) in [(57, DType::U8, true), (40_003, DType::F32, false)] {
                let case = Case::new(RedOp::Sum, dtype);
                check(&mut world, &plan, Case { elements, in_place, seed, check_inputs: !in_place, ..case });
            }
        }
    }
}
