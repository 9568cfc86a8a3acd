//! What an operation costs besides waiting: two ranks of a plan run on one thread by turns, so that every byte is there
//! when it is looked for and no line goes from core to core.
//!
//! ```console
//! $ cargo run --release -p coll-shm --example executor_cost -- recursive_doubling2.plan
//! ```

#![allow(clippy::print_stdout)]

use coll_base::{DType, RedOp};
use coll_exec::{Binding, Bound, BufferMemory, Placement, Progress, RunOptions};
use coll_kernel::Reducer;
use coll_shm::threads;
use std::time::Instant;

fn main() {
    let file = std::env::args().nth(1).expect("usage: executor_cost PLAN");
    let plan = coll_plan::from_text(&std::fs::read_to_string(file).expect("the plan can be read"));
    let plan = plan.expect("it is a plan");
    let reducer = Reducer::builtin(RedOp::Sum, DType::F32).expect("it is supported");
    let mut world = threads::world(2).expect("there is memory");
    let bind = |rank| {
        let binding = Binding {
            plan: &plan,
            rank,
            counts: &[2],
            element_size_bytes: 4,
            reducer: Some(&reducer),
            placements: &[Placement::Separate],
        };
        Bound::new(binding).expect("it can be bound")
    };
    let mut bounds = [bind(0), bind(1)];
    for (transport, bound) in world.iter_mut().zip(&bounds) {
        transport.connect(bound.links().collect::<Vec<_>>()).expect("there is memory");
    }
    let [zero, one] = &mut bounds;
    let (mut outputs, inputs) = ([[0u8; 8]; 2], [[1u8; 8]; 2]);
    let rounds = 2_000_000;
    let start = Instant::now();
    for operation in 0..rounds {
        let options = RunOptions { operation, ..RunOptions::default() };
        let [first, second] = &mut outputs;
        let mut buffers = [BufferMemory::Separate { input: &inputs[0], output: first }];
        let mut others = [BufferMemory::Separate { input: &inputs[1], output: second }];
        let mut running = zero.begin(&mut buffers, options).expect("it begins");
        assert_eq!(running.advance(&mut world[0]).expect("it runs"), Progress::Blocked);
        let mut other = one.begin(&mut others, options).expect("it begins");
        assert_eq!(other.advance(&mut world[1]).expect("it runs"), Progress::Done);
        assert_eq!(running.advance(&mut world[0]).expect("it runs"), Progress::Done);
    }
    let each_ns = start.elapsed().as_nanos() as f64 / (2 * rounds) as f64;
    println!("{each_ns:.1} ns for each rank's operation of 8 B ({})", plan.name);
}
