//! In steady state nothing is allocated: counted, on every kind of operation there is.

#![allow(unsafe_code)]

mod plans;

use coll_base::{DType, RedOp};
use coll_exec::{Bound, BufferMemory, Fault, Interest, Link, Placement, Progress, RunOptions, Transport};
use coll_plan::Plan;
use plans::{Call, library};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: everything is passed on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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

/// A link of fixed size in one direction.
struct Pipe {
    bytes: Vec<u8>,
    start: usize,
    held: usize,
}

/// All links between n ranks, as one rank sees them.
struct Pipes {
    ranks: usize,
    rank: usize,
    pipes: Vec<Pipe>,
}

const PIPE_BYTES: usize = 1000;

impl Pipes {
    fn new(ranks: usize) -> Pipes {
        let pipe = |_| Pipe { bytes: vec![0; PIPE_BYTES], start: 0, held: 0 };
        Pipes { ranks, rank: 0, pipes: (0..ranks * ranks).map(pipe).collect() }
    }
}

impl Transport for Pipes {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        let pipe = &mut self.pipes[self.rank * self.ranks + link.peer as usize];
        let before = pipe.held;
        for &byte in parts.iter().copied().flatten().take(PIPE_BYTES - before) {
            pipe.bytes[(pipe.start + pipe.held) % PIPE_BYTES] = byte;
            pipe.held += 1;
        }
        Ok(pipe.held - before)
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        let pipe = &mut self.pipes[link.peer as usize * self.ranks + self.rank];
        let got = into.len().min(pipe.held);
        for byte in &mut into[..got] {
            *byte = pipe.bytes[pipe.start];
            pipe.start = (pipe.start + 1) % PIPE_BYTES;
        }
        pipe.held -= got;
        Ok(got)
    }

    fn wait(&mut self, _: &[Interest]) -> Result<(), Fault> {
        Ok(())
    }
}

/// Allocations of some rounds after a first one. Buffers are zero: values are other tests' business.
fn allocations(plan: &Plan, dtype: DType, op: RedOp, in_place: bool) -> u64 {
    let call = Call { plan, dtype, op, counts: &[1000], in_place };
    let ranks = plan.world() as usize;
    let mut bounds: Vec<Bound> = (0..plan.world()).map(|rank| call.bind(rank)).collect();
    let size = |bound: &Bound| bound.buffer_bytes(0).unwrap().map(|bytes| vec![0u8; bytes as usize]);
    let mut memory: Vec<[Vec<u8>; 2]> = bounds.iter().map(size).collect();
    let mut pipes = Pipes::new(ranks);
    let mut buffers: Vec<[BufferMemory<'_>; 1]> = memory
        .iter_mut()
        .map(|[input, output]| match call.placement(0) {
            Placement::InPlace => [BufferMemory::InPlace(output)],
            Placement::Separate => [BufferMemory::Separate { input, output }],
        })
        .collect();
    let mut before = 0;
    for operation in 0..4 {
        if operation == 1 {
            before = ALLOCATIONS.load(Ordering::Relaxed);
        }
        let options = RunOptions { operation, ..RunOptions::default() };
        // At most four ranks, so that the array of runs needs no heap.
        let mut pairs = bounds.iter_mut().zip(&mut buffers);
        let mut runs: [_; 4] = std::array::from_fn(|_| {
            pairs.next().map(|(bound, buffers)| bound.begin(buffers, options).unwrap())
        });
        let mut done = [false; 4];
        while done[..ranks].contains(&false) {
            for rank in 0..ranks {
                pipes.rank = rank;
                let run = runs[rank].as_mut().unwrap();
                done[rank] = done[rank] || run.advance(&mut pipes).unwrap() == Progress::Done;
            }
        }
    }
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn running_again_allocates_nothing() {
    let plans = [
        library::ring(4),
        library::exchange(),
        library::chain(4, 3),
        library::reduce_chain(3),
        library::eager(3),
    ];
    for plan in plans {
        for (dtype, op) in [(DType::F32, RedOp::Sum), (DType::I32, RedOp::Avg), (DType::F16, RedOp::Max)] {
            for in_place in [false, true] {
                assert_eq!(allocations(&plan, dtype, op, in_place), 0, "{} {op} of {dtype}", plan.name);
            }
        }
    }
}
