//! Buffers that peers read in place: right results for every operation, alone and beside ordinary ones, for threads and
//! processes and across machines; what becomes of them when they are dropped, and when a rank is lost.

#[path = "comm/operations.rs"]
mod operations;
#[path = "comm/world.rs"]
mod ranks;

use coll::{CommError, Communicator, RedOp};
use operations::{Memory, all_at};
use ranks::{badly, world, world_of};
use std::time::Duration;

/// A buffer for peers to read.
fn shared(comm: &mut Communicator, len: usize) -> Memory {
    let memory = comm.alloc::<i64>(len).expect("there is memory");
    assert!(len == 0 || memory.is_shared(), "this system has such memory");
    Box::new(memory)
}

fn all_well(results: Vec<Result<(), CommError>>) {
    results.into_iter().for_each(|result| result.unwrap_or_else(|error| panic!("{error}")));
}

/// The sizes of blocks: of nothing, of little that is never read in place, of what always is.
const SIZES: [usize; 3] = [0, 7, 100_003];

#[test]
fn every_operation_on_shared_buffers() {
    for n in [1, 2, 3, 5] {
        all_well(world(n, |comm| SIZES.iter().try_for_each(|&len| all_at(comm, len, &mut shared))));
    }
}

#[test]
fn shared_buffers_beside_ordinary_ones() {
    for n in [2, 4] {
        // Every third buffer is ordinary, and not the same ones on all ranks.
        all_well(world(n, |comm| {
            let mut count = comm.rank();
            let mut make = |comm: &mut Communicator, len: usize| {
                count += 1;
                if count.is_multiple_of(3) { Box::new(vec![0i64; len]) as Memory } else { shared(comm, len) }
            };
            SIZES.iter().try_for_each(|&len| all_at(comm, len, &mut make))
        }));
    }
}

/// Ranks that are threads read large messages in place out of memory like any other.
#[test]
fn every_operation_on_large_ordinary_buffers_between_threads() {
    let ordinary = |_: &mut Communicator, len: usize| Box::new(vec![0i64; len]) as Memory;
    for n in [2, 3] {
        all_well(world(n, move |comm| all_at(comm, 450_001, &mut { ordinary })));
    }
}

/// The sender's buffer goes as its call fails; the receiver comes later, and finds no trace of it.
#[test]
fn ordinary_buffers_of_a_thread_that_has_failed_are_not_read() {
    let messages = badly(2, |comm| {
        let mut data = vec![comm.rank() as u8; 4 << 20];
        comm.set_time_limit(Duration::from_millis(300));
        if comm.rank() == 1 {
            std::thread::sleep(Duration::from_millis(900));
        }
        comm.broadcast(&mut data, 0)
    });
    assert!(messages[0].contains("rank 1"), "{messages:?}");
}

#[test]
fn shared_buffers_across_machines() {
    let builder = Communicator::builder().ranks_per_host(2);
    all_well(world_of(builder, 5, |comm| all_at(comm, 100_003, &mut shared)));
}

#[test]
fn parts_of_buffers_and_other_communicators() {
    all_well(world(4, |comm| {
        let mut memory = comm.alloc::<i32>(400_000)?;
        memory.fill(1);
        // From the middle of a page, and of no whole number of elements of any other type.
        comm.all_reduce_in_place(&mut memory[1001..300_000], RedOp::Sum)?;
        assert_eq!((memory[1000], memory[1001], memory[299_999], memory[300_000]), (1, 4, 4, 1));
        let mut part = comm.split(Some(u64::from(comm.rank() % 2)), 0)?.expect("each has a colour");
        let mut twin = comm.duplicate()?;
        for _ in 0..3 {
            memory.fill(1);
            part.all_reduce_in_place(&mut memory, RedOp::Sum)?;
            twin.all_reduce_in_place(&mut memory, RedOp::Sum)?;
            assert!(memory.iter().all(|&element| element == 8));
        }
        let pending = twin.start_all_reduce(memory, RedOp::Max)?;
        assert!(pending.wait()?.iter().all(|&element| element == 8));
        Ok(())
    }));
}

/// Memory comes and goes between calls, and a new piece may lie where an old one lay.
#[test]
fn buffers_that_are_dropped_and_made_anew() {
    all_well(world(3, |comm| {
        for round in 0..60 {
            let len = 20_000 + 5_000 * (round % 4);
            let mut memory = comm.alloc::<i64>(len)?;
            memory.fill(i64::from(comm.rank()) + round as i64);
            comm.all_reduce_in_place(&mut memory, RedOp::Sum)?;
            assert!(memory.iter().all(|&element| element == 3 + 3 * round as i64));
            drop(memory);
            let mut ordinary = vec![1i64; len];
            comm.all_reduce_in_place(&mut ordinary, RedOp::Sum)?;
            assert!(ordinary.iter().all(|&element| element == 3));
        }
        let maps = std::fs::read_to_string("/proc/self/maps").expect("there is /proc");
        let arenas = maps.lines().filter(|line| line.contains("coll-arena")).count();
        assert!(arenas < 60, "{arenas} mappings are left of 180 buffers");
        let read = maps.lines().filter(|line| line.contains("coll-arena") && line.contains(" r--s ")).count();
        assert!(read > 0, "the other ranks' memory is mapped, to be read");
        Ok(())
    }));
}

/// What is overwritten right after a call was read before it: each round's sums would show it if not.
#[test]
fn buffers_are_overwritten_as_soon_as_a_call_returns() {
    all_well(world(4, |comm| {
        let mut memory = comm.alloc::<i64>(60_000)?;
        let mut all = comm.alloc::<i64>(240_000)?;
        for round in 0..40 {
            memory.fill(round * 10 + i64::from(comm.rank()));
            comm.all_gather(&memory, &mut all)?;
            memory.fill(-1);
            for (rank, block) in all.chunks(60_000).enumerate() {
                assert!(block.iter().all(|&element| element == round * 10 + rank as i64), "round {round}");
            }
            all.fill(round);
            comm.reduce_scatter(&all, &mut memory, RedOp::Sum)?;
            all.fill(-1);
            assert!(memory.iter().all(|&element| element == 4 * round), "round {round}");
            memory.fill(round);
            comm.broadcast(&mut memory, 1)?;
            memory.fill(-1);
        }
        Ok(())
    }));
}

#[test]
fn a_rank_that_never_reads_ends_the_call_in_time() {
    let messages = badly(3, |comm| {
        comm.barrier()?;
        comm.set_time_limit(Duration::from_secs(1));
        let mut memory = comm.alloc::<i64>(500_000)?;
        if comm.rank() == 1 {
            std::thread::sleep(Duration::from_millis(2500));
            return comm.barrier();
        }
        comm.all_reduce_in_place(&mut memory, RedOp::Sum)
    });
    assert!(messages.iter().all(|message| message.contains("rank 1")), "{messages:?}");
}

#[test]
fn too_much_memory_is_refused_and_concerns_nobody_else() {
    all_well(world(2, |comm| {
        let refused = comm.alloc::<f64>(usize::MAX / 4).unwrap_err().to_string();
        assert!(refused.contains("no memory for") && refused.contains("elements of f64"), "{refused}");
        comm.barrier()
    }));
}
