//! Library schedules between threads, through shared memory: every element against the serial oracle. Rings are small,
//! so that large messages go round them often.

mod support;

use coll_base::{DType, RedOp};
use coll_exec::{Bound, BufferMemory, RunError, RunOptions};
use coll_plan::Plan;
use coll_shm::{Options, ShmTransport, threads};
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
