//! `wire`: wider floats travel as narrower ones. Results are right up to rounding, on every path that elements take;
//! everything else is as without it.

mod support;

use coll::{Instance, Options, Outcome, Source, library};
use coll_base::{DType, RedOp};
use coll_exec::{
    BindError, Binding, Bound, BufferMemory, Fault, Interest, Link, RunError, RunOptions, Transport,
};
use coll_kernel::oracle::{self, Scalar};
use coll_plan::Plan;
use coll_shm::{ShmTransport, threads};
use std::time::Duration;
use support::{Call, Case, library_plan, run_world, seed, world};

/// A library schedule's plan with these options, or nothing if a `require` excludes the rank count.
fn plan_with(entry: &library::Entry, ranks: u32, root: u32, options: &Options) -> Option<Plan> {
    let source = Source::from_text(entry.file_name(), entry.text);
    let schedule =
        source.schedules().iter().position(|info| info.name == entry.schedule).expect("it is there");
    let root = if source.schedules()[schedule].rooted { root } else { 0 };
    match coll::prove(&source, schedule, &Instance { ranks, root, params: Vec::new() }, options) {
        Outcome::Right(proved) => Some(proved.plan),
        Outcome::DoesNotApply { .. } => None,
        Outcome::Wrong(diagnostics) => panic!("{diagnostics:#?}"),
    }
}

fn wire(dtype: DType) -> Options {
    Options { wire: Some(dtype), ..Options::default() }
}

fn plan(name: &str, ranks: u32, options: &Options) -> Plan {
    let (collective, schedule) = name.split_once('.').expect("a full name");
    let entry = library::entry(collective, schedule).expect("it is in the library");
    plan_with(&entry, ranks, 0, options).expect("it applies")
}

fn check(plan: &Plan, case: Case) {
    if let Err(message) = run_world(plan, &case) {
        panic!("{}, {case:?}: {message}", plan.name);
    }
}

#[test]
fn every_schedule_is_right_up_to_rounding() {
    let seed = seed();
    for entry in library::entries() {
        for ranks in [2, 5, 8] {
            let Some(plan) = plan_with(&entry, ranks, ranks - 1, &wire(DType::Bf16)) else { continue };
            assert!(!plan.claims.same_reduction_tree, "ranks may differ in bits");
            for (dtype, elements, link_bytes) in [(DType::F32, 1001, 4096), (DType::C128, 57, 31)] {
                for in_place in [false, true] {
                    let case = Case { elements, in_place, link_bytes, seed, ..Case::new(RedOp::Sum, dtype) };
                    check(&plan, case);
                }
            }
        }
    }
}

/// Every wire type under every type and operator, with links that cut elements anywhere.
#[test]
fn every_operator_on_every_type_over_every_wire() {
    for narrow in DType::WIRE {
        for accumulate in [None, Some(DType::F32)] {
            let options = Options { accumulate, ..wire(narrow) };
            let plan = plan("allreduce.ring", 3, &options);
            for op in RedOp::ALL {
                for dtype in DType::ALL {
                    let case = Case { elements: 57, link_bytes: 5, ..Case::new(op, dtype) };
                    if case.operator.reducer(dtype).is_ok() {
                        check(&plan, case);
                    }
                }
            }
        }
    }
}

/// Integers, truth values, pairs and floats that are no wider: the same bits, in messages as long.
#[test]
fn what_is_no_wider_float_travels_as_it_is() {
    let plans = [&Options::default(), &wire(DType::F16)].map(|options| plan("allreduce.ring", 3, options));
    let cases = [(RedOp::Sum, DType::I32), (RedOp::Lor, DType::Bool), (RedOp::Maxloc, DType::F32I32)];
    for (op, dtype) in cases.into_iter().chain([(RedOp::Sum, DType::Bf16), (RedOp::Avg, DType::I16)]) {
        let case = Case { elements: 1001, ..Case::new(op, dtype) };
        let results = plans.each_ref().map(|plan| {
            let mut call = Call::new(plan, &case).expect("it is bound");
            call.run(&mut world(&case), 0..1).expect("it runs");
            call.results()
        });
        assert_eq!(results[0], results[1], "{op} of {dtype}");
    }
}

/// A broadcast of two values, one of which bf16 holds: who has them keeps them, and who hears of them hears them rounded.
#[test]
fn what_travels_is_rounded_and_what_stays_is_not() {
    let plan = plan("broadcast.chain", 3, &wire(DType::Bf16));
    let bytes = |values: &[f64]| {
        let mut bytes = Vec::new();
        values.iter().for_each(|&value| oracle::write(DType::F32, Scalar::Float(value), &mut bytes));
        bytes
    };
    let sent = bytes(&[1.0 + 1.0 / 4096.0, 3.0]);
    let mut memory = vec![sent.clone(), vec![0; 8], vec![0; 8]];
    let mut bounds: Vec<Bound> =
        (0..3).map(|rank| bind(&plan, rank, Some(DType::F32)).expect("it is bound")).collect();
    let mut buffers: Vec<_> = memory.iter_mut().map(|bytes| vec![BufferMemory::InPlace(bytes)]).collect();
    for ended in coll_exec::world::World::new(3).run(&mut bounds, &mut buffers, 0..1) {
        ended.expect("it runs");
    }
    drop(buffers);
    assert_eq!(memory, [sent, bytes(&[1.0, 3.0]), bytes(&[1.0, 3.0])]);
}

fn bind(plan: &Plan, rank: u32, dtype: Option<DType>) -> Result<Bound, BindError> {
    let counts = plan.contract.counts(2).expect("it divides");
    let placements = &coll::trial::placements(&plan.contract, true);
    let binding = Binding { plan, rank, counts: &counts, element_size_bytes: 4, reducer: None, placements };
    match dtype {
        Some(dtype) => Bound::typed(binding, dtype),
        None => Bound::new(binding),
    }
}

#[test]
fn elements_of_unknown_type_are_not_sent_as_another() {
    let error = bind(&plan("broadcast.chain", 3, &wire(DType::F16)), 0, None).expect_err("it has no type");
    assert!(error.to_string().contains("sends elements as f16"), "{error}");
}

/// Plans of other tools may have messages come before their receives are ready.
#[test]
fn messages_wait_in_slots() {
    for name in ["allreduce.ring", "allgather.ring", "alltoall.bruck"] {
        let plan = Plan { slots: 2, ..plan(name, 4, &wire(DType::F8E5M2)) };
        for link_bytes in [3, 4096] {
            check(&plan, Case { elements: 103, link_bytes, ..Case::new(RedOp::Sum, DType::F64) });
        }
    }
}

/// Counts what it sends.
struct Counted(ShmTransport, u64);

impl Transport for Counted {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        let taken = self.0.try_send(link, parts)?;
        self.1 += taken as u64;
        Ok(taken)
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        self.0.try_recv(link, into)
    }

    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        self.0.peek(link)
    }

    fn consume(&mut self, link: Link, bytes: usize) {
        self.0.consume(link, bytes);
    }

    fn flush(&mut self) {
        self.0.flush();
    }

    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        self.0.wait(interests)
    }
}

/// Runs every rank on a thread and says how many bytes they sent together.
fn between_threads(
    bounds: &mut [Bound],
    buffers: &mut [Vec<BufferMemory<'_>>],
    sent_bytes: &mut u64,
) -> Vec<Result<(), RunError>> {
    let transports = threads::world(bounds.len() as u32).expect("there is memory");
    // They outlive all ranks: one that is dropped is one that is lost.
    let mut transports: Vec<Counted> =
        transports.into_iter().map(|transport| Counted(transport, 0)).collect();
    let ended = std::thread::scope(|scope| {
        let ranks = transports.iter_mut().zip(bounds).zip(buffers);
        let running: Vec<_> = ranks
            .map(|((counted, bound), buffers)| {
                scope.spawn(move || {
                    counted.0.begin(Duration::from_secs(60));
                    counted.0.connect(bound.links().collect::<Vec<_>>()).expect("threads reach each other");
                    bound.run(counted, buffers, RunOptions::default())
                })
            })
            .collect();
        running.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    });
    *sent_bytes = transports.iter().map(|counted| counted.1).sum();
    ended
}

/// The same bits in a seeded world and between threads, and messages of half the length, or twice the length.
#[test]
fn bits_do_not_depend_on_the_transport_and_lengths_are_those_of_the_type() {
    let wide = Options { accumulate: Some(DType::F32), ..Options::default() };
    for (options, dtype, part, of) in [
        (wire(DType::Bf16), DType::F32, 1, 2),
        (wide, DType::Bf16, 2, 1),
        (wire(DType::F8E4M3), DType::F32, 1, 4),
    ] {
        let elements = 40_000;
        let case = Case { elements, ..Case::new(RedOp::Sum, dtype) };
        let mut sent_bytes = [0; 2];
        let plans = [plan("allreduce.ring", 4, &Options::default()), plan("allreduce.ring", 4, &options)];
        for (plan, sent_bytes) in plans.iter().zip(&mut sent_bytes) {
            let mut seeded = Call::new(plan, &case).expect("it is bound");
            seeded.run(&mut world(&case), 0..1).expect("it runs");
            let mut threaded = Call::new(plan, &case).expect("it is bound");
            let run = threaded.run_by(|bounds, buffers| between_threads(bounds, buffers, sent_bytes));
            run.expect("it runs");
            assert_eq!(seeded.results(), threaded.results(), "{dtype}");
        }
        // Four ranks send six quarters of the buffer each; what is more is headers.
        let plain = 4 * 6 * elements / 4 * dtype.size_bytes();
        let headers = sent_bytes[0] - plain;
        assert!(headers < 10_000, "{headers}");
        assert_eq!(sent_bytes[1] - headers, plain * part / of, "{dtype}");
    }
}

/// Trees are alike on every rank, and bits are not: a plan with a wire type may not claim otherwise.
#[test]
fn a_wire_type_takes_the_claim_of_equal_bits_away() {
    let entry = library::entry("allreduce", "ring").expect("it is in the library");
    assert!(library_plan(&entry, 4, 0).expect("it applies").claims.same_reduction_tree);
    let mut narrow = plan("allreduce.ring", 4, &wire(DType::Bf16));
    narrow.claims.same_reduction_tree = true;
    let told = coll_check::plan::prove(&narrow).diagnostics;
    assert_eq!(told.iter().map(|diagnostic| diagnostic.code.0).collect::<Vec<_>>(), ["E0612"]);
}
