//! After the first call of its kind a call allocates nothing, prepared or not: counted on each rank's thread.

#![allow(unsafe_code)]

use coll::{Buffer, CommError, Communicator, Prepared, RedOp, Request, Source, Via};
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

/// Prepared calls of every kind, each with what it runs on.
struct AllPrepared {
    calls: Vec<(&'static str, Prepared)>,
    mine: Vec<i64>,
    all: Vec<i64>,
    out: Vec<i64>,
    spare: Vec<i64>,
}

/// Elements of a block.
const LEN: usize = 40;
const RANKS: usize = 3;

impl AllPrepared {
    fn new(comm: &mut Communicator) -> Result<AllPrepared, CommError> {
        let (mine, mut all, mut out) = (vec![1i64; LEN], vec![1i64; LEN * RANKS], vec![0i64; LEN]);
        let (counts, at) = ([LEN; RANKS], [2 * LEN, 0, LEN]);
        let wide = all.clone();
        let root = comm.rank() == 1;
        let sum = RedOp::Sum;
        let calls = vec![
            ("barrier", comm.prepare_barrier()?),
            ("broadcast", comm.prepare_broadcast::<i64>(LEN, 1)?),
            ("reduce", comm.prepare_reduce::<i64>(LEN, sum, 1)?),
            ("all_reduce", comm.prepare_all_reduce::<i64>(LEN, sum)?),
            ("all_reduce in place", comm.prepare_all_reduce_in_place::<i64>(LEN, RedOp::Max)?),
            ("gather", comm.prepare_gather::<i64>(LEN, 1)?),
            ("scatter", comm.prepare_scatter::<i64>(LEN, 1)?),
            ("all_gather", comm.prepare_all_gather::<i64>(LEN)?),
            ("all_gather in place", comm.prepare_all_gather_in_place::<i64>(LEN)?),
            ("reduce_scatter", comm.prepare_reduce_scatter::<i64>(LEN, sum)?),
            ("reduce_scatter in place", comm.prepare_reduce_scatter_in_place::<i64>(LEN, RedOp::Max)?),
            ("all_to_all", comm.prepare_all_to_all::<i64>(LEN)?),
            ("scan", comm.prepare_scan::<i64>(LEN, sum)?),
            ("exscan", comm.prepare_exscan::<i64>(LEN, sum)?),
            ("all_gather_v", comm.prepare(Request::all_gather_v(&mine, &mut all, &counts))?),
            ("all_gather_v at", comm.prepare(Request::all_gather_v(&mine, &mut all, &counts).at(&at))?),
            ("reduce_scatter_v", comm.prepare(Request::reduce_scatter_v(&wide, &mut out, sum, &counts))?),
            ("gather_v", {
                let at_root = root.then_some((&mut all[..], &counts[..]));
                comm.prepare(Request::gather_v(&mine, at_root, 1))?
            }),
            ("scatter_v", {
                let at_root = root.then_some((&wide[..], &counts[..]));
                comm.prepare(Request::scatter_v(at_root, &mut out, 1))?
            }),
            ("all_to_all_v", comm.prepare(Request::all_to_all_v(&wide, &counts, &mut all, &counts))?),
            ("all_to_all_v at", {
                let call = Request::all_to_all_v(&wide, &counts, &mut all, &counts).at_both(&at, &at);
                comm.prepare(call)?
            }),
        ];
        let spare = all.clone();
        Ok(AllPrepared { calls, mine, all, out, spare })
    }

    /// Runs each, and looks at a result. Gives allocations by call.
    fn run(&mut self, comm: &mut Communicator, made: &mut [u64]) -> Result<(), CommError> {
        let AllPrepared { calls, mine, all, out, spare } = self;
        for ((name, call), made) in calls.iter().zip(made) {
            out.fill(1);
            all.fill(1);
            let before = allocations();
            match *name {
                "barrier" => call.run_barrier(comm)?,
                "broadcast" | "all_reduce in place" => call.run_in_place(comm, &mut out[..])?,
                "all_gather in place" | "reduce_scatter in place" => call.run_in_place(comm, &mut all[..])?,
                "scatter" | "scatter_v" | "reduce_scatter" | "reduce_scatter_v" => {
                    call.run(comm, &all[..], &mut out[..])?;
                }
                "all_gather" | "gather" | "all_gather_v" | "all_gather_v at" | "gather_v" => {
                    call.run(comm, &mine[..], &mut all[..])?;
                }
                "all_to_all" | "all_to_all_v" | "all_to_all_v at" => {
                    // What was summed before.
                    let wide = std::mem::take(all);
                    let mut received = std::mem::take(spare);
                    call.run(comm, &wide[..], &mut received[..])?;
                    *all = received;
                    *spare = wide;
                }
                _ => call.run(comm, &mine[..], &mut out[..])?,
            }
            *made += allocations() - before;
            let rank = i64::from(comm.rank());
            let due = match *name {
                "reduce" if rank != 1 => 1,
                "reduce" | "all_reduce" | "reduce_scatter" | "reduce_scatter_v" => RANKS as i64,
                "scan" => rank + 1,
                "exscan" => rank.max(1),
                _ => 1,
            };
            assert!(out.iter().all(|&found| found == due), "{name} on rank {rank}: {}, not {due}", out[0]);
            assert!(all.iter().all(|&found| found == 1), "{name} on rank {rank}");
        }
        Ok(())
    }
}

fn steady(via: Via) {
    let threads: Vec<_> = Communicator::builder()
        .via(via)
        .local(RANKS as u32)
        .unwrap()
        .into_iter()
        .map(|mut comm| {
            std::thread::spawn(move || {
                let (mut large, mut all) = (vec![1f32; 50_000], vec![0i64; 6]);
                let mut prepared = AllPrepared::new(&mut comm).unwrap();
                let mut made = [0; 6];
                let mut by_prepared = vec![0; prepared.calls.len()];
                for _ in 0..3 {
                    calls(&mut comm, &mut large, &mut all, &mut made).unwrap();
                    prepared.run(&mut comm, &mut by_prepared).unwrap();
                }
                // The record is full, and forgets.
                (0..300).for_each(|_| comm.barrier().unwrap());
                made = [0; 6];
                by_prepared.fill(0);
                for _ in 0..30 {
                    calls(&mut comm, &mut large, &mut all, &mut made).unwrap();
                    prepared.run(&mut comm, &mut by_prepared).unwrap();
                }
                assert_eq!(made, [0; 6], "{via:?}, rank {}: by kind of call", comm.rank());
                let names = prepared.calls.iter().map(|(name, _)| *name).zip(&by_prepared);
                let allocating: Vec<_> = names.filter(|(_, made)| **made > 0).collect();
                assert!(allocating.is_empty(), "{via:?}, rank {}: {allocating:?}", comm.rank());
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Messages and collectives of one's own, prepared.
fn steady_others(via: Via) {
    let threads = Communicator::builder().via(via).local(2).unwrap().into_iter().map(|mut comm| {
        std::thread::spawn(move || {
            let (mine, mut sum, mut theirs) = ([1i64; LEN], [0i64; LEN], [0i64; LEN]);
            let ring = Source::builtin("allreduce", "ring").expect("the library has it");
            let ring = comm.load(&ring, None, &[], 0).unwrap();
            let counts = ring.counts(LEN as u64).unwrap();
            let buffers = vec![Buffer::separate(&mine, &mut sum)];
            let op = Some(RedOp::Sum.into());
            let own = comm.prepare(Request::custom(&ring, &counts, buffers, op)).unwrap();
            let message = match comm.rank() {
                0 => comm.prepare(Request::send(&mine, 1)).unwrap(),
                _ => comm.prepare(Request::receive(&mut theirs, 0)).unwrap(),
            };
            let mut calls = |comm: &mut Communicator| {
                own.run(comm, &mine, &mut sum).unwrap();
                match comm.rank() {
                    0 => message.run(comm, &sum, &mut [0i64; 0]).unwrap(),
                    _ => message.run(comm, &[0i64; 0], &mut theirs).unwrap(),
                }
                assert!(sum == [2; LEN] && theirs == [2 * i64::from(comm.rank()); LEN]);
            };
            // The record is full, and forgets.
            (0..200).for_each(|_| calls(&mut comm));
            let before = allocations();
            (0..50).for_each(|_| calls(&mut comm));
            assert_eq!(allocations() - before, 0, "{via:?}, rank {}", comm.rank());
            comm.barrier().unwrap();
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn messages_and_collectives_of_ones_own_allocate_nothing() {
    steady_others(Via::Fastest);
    steady_others(Via::Tcp);
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
