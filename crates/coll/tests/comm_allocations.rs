//! After the first call of its kind a call allocates nothing, prepared or not: counted on each rank's thread.

#![allow(unsafe_code)]

use coll::{CommError, Communicator, RedOp, Via};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promises are the system allocator's demands.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// One call after the other, of kinds that alternate, so that the last one is never the next.
fn calls(
    comm: &mut Communicator,
    large: &mut [f32],
    all: &mut [i64],
    made: &mut [u64; 6],
) -> Result<(), CommError> {
    let mut small = [0f64];
    let mut before = allocations();
    let mut count = |call: usize| {
        let now = allocations();
        made[call] += now - before;
        before = now;
    };
    comm.all_reduce(&[1f64], &mut small, RedOp::Sum)?;
    count(0);
    comm.all_reduce_in_place(large, RedOp::Max)?;
    count(1);
    comm.all_reduce_in_place(large, RedOp::Avg)?;
    count(2);
    comm.all_gather(&[1i64, 2], all)?;
    count(3);
    comm.broadcast(&mut small, 1)?;
    count(4);
    comm.barrier()?;
    count(5);
    Ok(())
}

/// Large calls out of memory that peers read in place.
fn steady_in_place() {
    let threads: Vec<_> = Communicator::local(3)
        .unwrap()
        .into_iter()
        .map(|mut comm| {
            std::thread::spawn(move || {
                let mut memory = comm.alloc::<f32>(300_000).unwrap();
                assert!(memory.is_shared());
                let mut calls = |comm: &mut Communicator, rounds: usize| {
                    for _ in 0..rounds {
                        comm.all_reduce_in_place(&mut memory, RedOp::Max).unwrap();
                        comm.broadcast(&mut memory, 1).unwrap();
                    }
                };
                // The record is full, and forgets.
                calls(&mut comm, 200);
                let before = allocations();
                calls(&mut comm, 20);
                assert_eq!(allocations() - before, 0);
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn steady(via: Via) {
    let threads: Vec<_> = Communicator::builder()
        .via(via)
        .local(3)
        .unwrap()
        .into_iter()
        .map(|mut comm| {
            std::thread::spawn(move || {
                let (mut large, mut all) = (vec![1f32; 50_000], vec![0i64; 6]);
                let sum = comm.prepare_all_reduce::<f32>(10, RedOp::Sum).unwrap();
                let (mut output, mut made) = ([0f32; 10], [0; 6]);
                for _ in 0..3 {
                    calls(&mut comm, &mut large, &mut all, &mut made).unwrap();
                    sum.run(&mut comm, &[1f32; 10], &mut output).unwrap();
                }
                // The record is full, and forgets.
                (0..300).for_each(|_| comm.barrier().unwrap());
                made = [0; 6];
                let before = allocations();
                for _ in 0..30 {
                    calls(&mut comm, &mut large, &mut all, &mut made).unwrap();
                    sum.run(&mut comm, &[1f32; 10], &mut output).unwrap();
                }
                let after = allocations();
                assert_eq!(output, [3f32; 10]);
                assert_eq!(made, [0; 6], "{via:?}, rank {}: by kind of call", comm.rank());
                assert_eq!(after - before, 0, "{via:?}: prepared");
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn calls_through_shared_memory_allocate_nothing() {
    steady(Via::Fastest);
}

#[test]
fn calls_out_of_memory_that_peers_read_allocate_nothing() {
    steady_in_place();
}

#[test]
fn calls_over_tcp_allocate_nothing() {
    steady(Via::Tcp);
}

#[test]
fn the_counter_counts() {
    let before = allocations();
    drop(std::hint::black_box(vec![1u8; 100]));
    assert!(allocations() > before);
}
