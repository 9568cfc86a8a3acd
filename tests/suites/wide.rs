//! `accumulate f32`: narrow floats are reduced as `f32` and rounded once, on every path that elements take.

mod support;

use coll::{Instance, Options, Outcome, Source, library};
use coll_base::{DType, RedOp};
use coll_exec::world::World;
use coll_exec::{Binding, Bound, BufferMemory, Placement, RunOptions};
use coll_kernel::Reducer;
use coll_kernel::oracle::{self, Scalar};
use coll_plan::Plan;
use coll_shm::threads;
use std::time::Duration;
use support::{Call, Case, run_world, seed, world};

/// A library schedule's plan that accumulates in `f32`, or nothing if a `require` excludes the rank count.
fn wide_plan(entry: &library::Entry, ranks: u32, root: u32) -> Option<Plan> {
    let source = Source::from_text(entry.file_name(), entry.text);
    let schedule =
        source.schedules().iter().position(|info| info.name == entry.schedule).expect("it is there");
    let root = if source.schedules()[schedule].rooted { root } else { 0 };
    let instance = Instance { ranks, root, params: Vec::new() };
    let options = Options { accumulate: Some(DType::F32), ..Options::default() };
    match coll::prove(&source, schedule, &instance, &options) {
        Outcome::Right(proved) => Some(proved.plan),
        Outcome::DoesNotApply { .. } => None,
        Outcome::Wrong(diagnostics) => panic!("{diagnostics:#?}"),
    }
}

fn narrow() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_narrow_float())
}

fn check(plan: &Plan, case: Case) {
    if let Err(message) = run_world(plan, &case) {
        panic!("{}, {case:?}: {message}", plan.name);
    }
}

#[test]
fn every_schedule_that_reduces_rounds_once() {
    let seed = seed();
    for entry in library::entries() {
        for ranks in [1, 2, 5, 8] {
            let Some(plan) = wide_plan(&entry, ranks, ranks - 1).filter(|plan| plan.reduces) else {
                continue;
            };
            for (dtype, elements) in narrow().zip([57, 1001, 7, 100]) {
                for in_place in [false, true] {
                    check(&plan, Case { elements, in_place, seed, ..Case::new(RedOp::Sum, dtype) });
                }
            }
        }
    }
}

#[test]
fn every_operator_on_every_type() {
    let entry = library::entry("allreduce", "ring").expect("it is in the library");
    let plan = wide_plan(&entry, 4, 0).expect("it applies");
    for op in RedOp::ALL {
        for dtype in DType::ALL {
            let case = Case { elements: 57, link_bytes: 33, same_bits: true, ..Case::new(op, dtype) };
            if case.operator.reducer(dtype).is_ok() {
                check(&plan, case);
            }
        }
    }
}

/// A rank's all-reduce of `values`, as bytes.
fn all_reduce(plan: &Plan, dtype: DType, values: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let reducer = Reducer::builtin(RedOp::Sum, dtype).expect("it is there");
    let elements = values[0].len() as u64 / dtype.size_bytes();
    let counts = plan.contract.counts(elements).expect("it divides");
    let bind = |rank| {
        Bound::new(Binding {
            plan,
            rank,
            counts: &counts,
            element_size_bytes: dtype.size_bytes(),
            reducer: Some(&reducer),
            placements: &[Placement::InPlace],
        })
        .expect("it is bound")
    };
    let mut bounds: Vec<Bound> = (0..plan.world()).map(bind).collect();
    let mut memory = values.to_vec();
    let mut buffers: Vec<_> =
        memory.iter_mut().map(|bytes| vec![BufferMemory::InPlace(bytes.as_mut_slice())]).collect();
    for ended in World::new(7).run(&mut bounds, &mut buffers, 0..1) {
        ended.expect("it runs");
    }
    drop(buffers);
    memory
}

fn elements(dtype: DType, values: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.iter().for_each(|&value| oracle::write(dtype, Scalar::Float(value), &mut bytes));
    bytes
}

/// Known fault B025, on eight ranks: 256 and seven ones are 264 wherever the 256 lies, for 263 is nearest to it.
#[test]
fn b025_256_and_seven_ones_over_eight_ranks() {
    for entry in library::entries().filter(|entry| entry.collective == "allreduce") {
        let Some(plan) = wide_plan(&entry, 8, 0) else { continue };
        for large in 0..8 {
            let put_in = |rank| if rank == large { 256.0 } else { 1.0 };
            let values: Vec<_> = (0..8).map(|rank| elements(DType::Bf16, &[put_in(rank); 9])).collect();
            let due = elements(DType::Bf16, &[264.0; 9]);
            assert_eq!(all_reduce(&plan, DType::Bf16, &values), vec![due; 8], "{}", plan.name);
        }
    }
}

/// In f16 the sum of two large values is infinite on its way, and here it is not.
#[test]
fn what_leaves_the_narrow_range_on_its_way_comes_back() {
    let entry = library::entry("allreduce", "reduce_broadcast").expect("it is in the library");
    let plan = wide_plan(&entry, 4, 0).expect("it applies");
    let values = [60_000.0, 60_000.0, -60_000.0, -59_968.0].map(|value| elements(DType::F16, &[value]));
    assert_eq!(all_reduce(&plan, DType::F16, &values), vec![elements(DType::F16, &[32.0]); 4]);
}

/// What it means nothing to is as it was, to the bit, and in messages as long.
#[test]
fn other_types_and_operators_are_as_without_it() {
    let entry = library::entry("allreduce", "ring").expect("it is in the library");
    let (plain, wide) = (support::library_plan(&entry, 3, 0), wide_plan(&entry, 3, 0));
    let plans = [plain.expect("it applies"), wide.expect("it applies")];
    assert_ne!(coll_plan::hash(&plans[0]), coll_plan::hash(&plans[1]));
    let cases = [(RedOp::Sum, DType::F32), (RedOp::Prod, DType::I16), (RedOp::Max, DType::Bf16)];
    for (op, dtype) in cases.into_iter().chain([(RedOp::Avg, DType::F8E4M3), (RedOp::Avg, DType::I8)]) {
        let case = Case { elements: 1001, ..Case::new(op, dtype) };
        let results = plans.each_ref().map(|plan| {
            let mut call = Call::new(plan, &case).expect("it is bound");
            call.run(&mut world(&case), 0..1).expect("it runs");
            call.results()
        });
        assert_eq!(results[0], results[1], "{op} of {dtype}");
    }
}

/// The same bits in a world that delivers as a seed has it, and between threads.
#[test]
fn bits_do_not_depend_on_the_transport() {
    for name in ["ring", "rabenseifner", "double_tree"] {
        let entry = library::entry("allreduce", name).expect("it is in the library");
        let plan = wide_plan(&entry, 4, 0).expect("it applies");
        for dtype in narrow() {
            let case = Case { elements: 4099, same_bits: true, ..Case::new(RedOp::Sum, dtype) };
            let mut seeded = Call::new(&plan, &case).expect("it is bound");
            seeded.run(&mut world(&case), 0..1).expect("it runs");
            let mut threaded = Call::new(&plan, &case).expect("it is bound");
            threaded.run_by(between_threads).expect("it runs");
            assert_eq!(seeded.results(), threaded.results(), "{name}, {dtype}");
        }
    }
}

fn between_threads(
    bounds: &mut [Bound],
    buffers: &mut [Vec<BufferMemory<'_>>],
) -> Vec<Result<(), coll_exec::RunError>> {
    let mut transports = threads::world(bounds.len() as u32).expect("there is memory");
    std::thread::scope(|scope| {
        let ranks = transports.iter_mut().zip(bounds).zip(buffers);
        let running: Vec<_> = ranks
            .map(|((transport, bound), buffers)| {
                scope.spawn(move || {
                    transport.begin(Duration::from_secs(60));
                    transport.connect(bound.links().collect::<Vec<_>>()).expect("threads reach each other");
                    bound.run(transport, buffers, RunOptions::default())
                })
            })
            .collect();
        running.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}
