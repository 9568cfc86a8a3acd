//! Known faults of this field by number, as `docs/testing.md` lists them: those that are about counts, memory in place,
//! reductions, the order of operations, and plans. `run.rs` has those that were among the first.

mod support;

use coll::select::{Chooser, Question};
use coll::trial::Operator;
use coll::{Instance, Outcome, Source, library};
use coll_base::{DType, RedOp};
use coll_cost::Tuning;
use coll_exec::{Binding, Bound};
use coll_kernel::Reducer;
use coll_kernel::oracle::{self, Scalar};
use coll_plan::{Action, Plan};
use support::{Call, Case, library_plan, run_world, seed, world};

fn check(plan: &Plan, case: Case) {
    if let Err(message) = run_world(plan, &case) {
        panic!("{}, {case:?}: {message}", plan.name);
    }
}

fn plans(ranks: u32) -> Vec<Plan> {
    library::entries().filter_map(|entry| library_plan(&entry, ranks, ranks - 1)).collect()
}

fn plan(name: &str, ranks: u32) -> Plan {
    let (collective, schedule) = name.split_once('.').expect("a full name");
    let entry = library::entry(collective, schedule).expect("it is in the library");
    library_plan(&entry, ranks, 0).expect("it applies")
}

/// B004: odd counts over an odd number of ranks, for every element type. There is no packed type that could not.
#[test]
fn b004_seven_elements_over_three_ranks_of_every_type() {
    let seed = seed();
    for plan in plans(3) {
        for dtype in DType::ALL {
            let op = if dtype.is_pair() { RedOp::Minloc } else { RedOp::Sum };
            check(&plan, Case { elements: 7, seed, ..Case::new(op, dtype) });
        }
    }
}

/// B008: 3.6 GB on a rank. Nothing is allocated for a ring's buffers when it is bound, and no number wraps.
#[test]
fn b008_buffers_beyond_32_bits_are_bound() {
    let plan = plan("allreduce.ring", 4);
    let counts = plan.contract.counts(452_984_832).expect("it divides");
    let reducer = Reducer::builtin(RedOp::Sum, DType::F64).expect("it is there");
    let placements = coll::trial::placements(&plan.contract, false);
    for rank in 0..4 {
        let (plan, counts, placements) = (&plan, &counts[..], &placements[..]);
        let binding =
            Binding { plan, rank, counts, element_size_bytes: 8, reducer: Some(&reducer), placements };
        let bound = Bound::new(binding).expect("it is bound");
        assert_eq!(bound.buffer_bytes(0), Some([3_623_878_656; 2]));
    }
}

/// B010 and B011: no elements at all, on every schedule, and then some on the same links. Who sends and who receives is in
/// the plan, and not told from the buffers.
#[test]
fn b010_b011_nothing_and_then_something_on_the_same_links() {
    let seed = seed();
    for ranks in 1..=8 {
        for plan in plans(ranks) {
            for in_place in [false, true] {
                let case = Case { in_place, seed, ..Case::new(RedOp::Sum, DType::I32) };
                let mut world = world(&case);
                for (elements, operation) in [(0, 0), (4 * u64::from(ranks), 1), (0, 2), (1, 3)] {
                    let mut call = Call::new(&plan, &Case { elements, ..case.clone() }).expect("it is bound");
                    let ran = call.run(&mut world, operation..operation + 1);
                    ran.unwrap_or_else(|error| panic!("{} on {ranks}, {elements}: {error}", plan.name));
                }
            }
        }
    }
}

/// B013: some blocks are empty, and the memory of some ranks with them.
#[test]
fn b013_empty_blocks_beside_full_ones() {
    let seed = seed();
    for plan in plans(3) {
        for elements in [1, 2] {
            for in_place in [false, true] {
                check(&plan, Case { elements, in_place, seed, ..Case::new(RedOp::Sum, DType::F64) });
            }
        }
    }
}

/// B019: no plan is for calls in place alone: out of place the result is right, and inputs are left alone.
#[test]
fn b019_every_plan_runs_out_of_place_and_leaves_inputs_alone() {
    let seed = seed();
    for plan in plans(4) {
        check(&plan, Case { elements: 37, check_inputs: true, seed, ..Case::new(RedOp::Sum, DType::I32) });
    }
}

fn bytes(dtype: DType, values: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &value in values {
        let scalar = if dtype.is_float() { Scalar::Float(value) } else { Scalar::Int(value as i128) };
        oracle::write(dtype, scalar, &mut bytes);
    }
    bytes
}

fn values(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let width = dtype.size_bytes() as usize;
    let number = |element: &[u8]| match oracle::read(dtype, element).expect("a whole element") {
        Scalar::Float(value) => value,
        Scalar::Int(value) => value as f64,
        other => panic!("{other:?} is no plain number"),
    };
    bytes.chunks(width).map(number).collect()
}

/// `a ⊕ b`, element by element.
fn combined(reducer: &Reducer, dtype: DType, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut total = bytes(dtype, a);
    reducer.combine_into(&mut total, None, &bytes(dtype, b), false);
    values(dtype, &total)
}

/// B023: `min` and `max` with NaN are NaN, whichever side it is on, in the kernels and in the interpreter. There is one
/// reduction code for all transports.
#[test]
fn b023_one_rule_for_nan_everywhere() {
    let text = "operator low(a, b) = min(a, b)\noperator high(a, b) = max(a, b)\nschedule s: barrier {}\n";
    let source = Source::from_text("rules.coll", text);
    let own = |at: usize| Operator::User(source.module.operators()[at].clone(), Vec::new());
    let (a, b) = ([f64::NAN, 1.0, f64::NAN, 2.0], [1.0, f64::NAN, f64::NAN, 3.0]);
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
        for (operator, last) in [
            (Operator::Builtin(RedOp::Min), 2.0),
            (Operator::Builtin(RedOp::Max), 3.0),
            (own(0), 2.0),
            (own(1), 3.0),
        ] {
            let found = combined(&operator.reducer(dtype).expect("it is there"), dtype, &a, &b);
            assert!(found[..3].iter().all(|x| x.is_nan()), "{} on {dtype}: {found:?}", operator.name());
            assert_eq!(found[3], last, "{} on {dtype}", operator.name());
        }
    }
}

/// B025: a sum of bf16 is rounded to bf16 after each operand, so 256 and seven ones are 256; the reference says so.
#[test]
fn b025_sums_of_bf16_round_each_time_as_the_reference_says() {
    let reducer = Reducer::builtin(RedOp::Sum, DType::Bf16).expect("it is there");
    let total = (0..7).fold(vec![256.0], |sum, _| combined(&reducer, DType::Bf16, &sum, &[1.0]));
    assert_eq!(total, [256.0]);
    assert!(
        reference().contains("256 and seven ones may be 256"),
        "docs/language.md keeps that from its reader"
    );
}

fn reference() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/language.md");
    std::fs::read_to_string(path).expect("it is there")
}

/// B027: one plan on one input gives one result, whatever happens when; what is cut otherwise may be reduced in another
/// order, and the reference says so.
#[test]
fn b027_one_plan_gives_one_result_and_other_cuts_may_give_another() {
    let case = Case { elements: 4097, ..Case::new(RedOp::Sum, DType::F32) };
    for plan in plans(6).iter().filter(|plan| plan.reduces) {
        let result = |events: u64| {
            let mut call = Call::new(plan, &case).expect("it is bound");
            call.run(&mut world(&Case { seed: events, ..case.clone() }), 0..1).expect("it runs");
            call.results()
        };
        let first = result(1);
        assert!((2..12).all(|events| result(events) == first), "{}", plan.name);
    }
    assert!(reference().contains("another number of elements may be reduced in another order"));
}

/// B028: integers wrap, in every build.
#[test]
fn b028_integers_wrap() {
    let sum = |dtype, a, b| {
        let reducer = Reducer::builtin(RedOp::Sum, dtype).expect("it is there");
        combined(&reducer, dtype, &[a], &[b])[0]
    };
    assert_eq!(sum(DType::I8, 120.0, 100.0), -36.0);
    assert_eq!(sum(DType::U8, 120.0, 100.0), 220.0);
    assert_eq!(sum(DType::U8, 200.0, 100.0), 44.0);
    assert_eq!(sum(DType::I32, f64::from(i32::MAX), 1.0), f64::from(i32::MIN));
}

/// B030: truth values are no bytes: a sum of true and true is true, which is 1, and there is no average.
#[test]
fn b030_truth_values_are_no_bytes() {
    let of_three = |op| {
        let reducer = Reducer::builtin(op, DType::Bool).expect("it is there");
        let two = combined(&reducer, DType::Bool, &[1.0], &[1.0]);
        combined(&reducer, DType::Bool, &two, &[0.0])[0]
    };
    assert_eq!((of_three(RedOp::Sum), of_three(RedOp::Prod)), (1.0, 0.0));
    assert!(Reducer::builtin(RedOp::Avg, DType::Bool).is_err());
}

/// B033: an exclusive scan leaves the own term out, also when it is called again and again.
#[test]
fn b033_an_exclusive_scan_counts_no_own_term() {
    let seed = seed();
    for entry in library::entries().filter(|entry| entry.collective == "exscan") {
        let plan = library_plan(&entry, 4, 0).expect("it applies");
        let sum_of = |rank: u32| {
            let value = plan.contract.ensured(rank, 0, 0).expect("it is promised");
            value.leaves().iter().map(|leaf| 100 + leaf.rank).sum::<u32>()
        };
        assert_eq!([1, 2, 3].map(sum_of), [100, 201, 303], "{}", plan.name);
        check(&plan, Case { operations: 3, seed, ..Case::new(RedOp::Sum, DType::I32) });
    }
}

/// B042: ranks that are threads of one process and start when they like, 200 operations in a row over real sockets.
#[test]
fn b042_ranks_as_threads_of_one_process() {
    use coll::trial::{Settings, Summary, run_rank};
    let plan = plan("alltoall.pairwise", 4);
    let token = "b042";
    let server = coll_tcp::Rendezvous::bind("127.0.0.1:0", coll_tcp::Token::from(token.to_string()));
    let server = server.expect("it listens");
    let mut delays = seed();
    let settings = Settings {
        rank: 0,
        rendezvous: server.address().to_string(),
        token: token.into(),
        via: coll::Via::Tcp,
        plan_hash: coll::proof_hash(&plan),
        elements: 100,
        counts: plan.contract.counts(100).expect("it divides"),
        dtype: DType::I32,
        operator: Operator::Builtin(RedOp::Sum),
        native: true,
        reduces: plan.reduces,
        warmup: 0,
        iters: 200,
        in_place: false,
        seed: 1,
        time_limit_s: 30.0,
        judging_s: 10.0,
        timeline: false,
        ranks_per_host: None,
        machines: Vec::new(),
        checksums: false,
        tls: false,
        mishaps: Vec::new(),
    };
    let threads: Vec<_> = (0..4)
        .map(|rank| {
            let settings = Settings { rank, ..settings.clone() };
            let slice = plan.slice(rank).expect("it has every rank");
            delays = delays.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let delay = std::time::Duration::from_millis(delays >> 57);
            std::thread::spawn(move || {
                std::thread::sleep(delay);
                run_rank(&settings, &slice, &mut |_| {})
            })
        })
        .collect();
    for thread in threads {
        let reports = thread.join().expect("no panic").expect("it runs");
        assert_eq!((Summary::of(&reports).wrong, reports[0].times_us.len()), (0, 200));
    }
}

/// B046: deep pipelines on links that hold a byte or two: a plan that needs no slots needs no window either.
#[test]
fn b046_pipelines_deeper_than_links() {
    let seed = seed();
    for (name, ranks) in [("broadcast.chain", 8), ("allreduce.two_level", 8), ("allreduce.ring", 8)] {
        let (collective, schedule) = name.split_once('.').expect("a full name");
        let source = Source::builtin(collective, schedule).expect("it is in the library");
        let at = source.schedules().iter().position(|info| info.name == schedule).expect("it is declared");
        let options = coll::Options { slices: Some(4), ..Default::default() };
        let instance = Instance { ranks, root: 0, params: Vec::new() };
        let Outcome::Right(proved) = coll::prove(&source, at, &instance, &options) else {
            panic!("{name} keeps its contract");
        };
        assert_eq!((proved.min_slots, proved.plan.slots, proved.plan.slices), (1, 0, 4));
        for link_bytes in [1, 2, 7] {
            let case = Case { elements: 61, link_bytes, seed, ..Case::new(RedOp::Sum, DType::U8) };
            check(&proved.plan, case);
        }
    }
}

/// B105: four mistakes, four codes, each with its line.
#[test]
fn b105_four_mistakes_are_four_errors() {
    let head = "schedule s: allreduce {\n    chunks n\n    scratch t\n";
    for (body, code) in [
        ("    step each r { reduce t into data[r] }\n", "E0307"),
        ("    step each r { send data[r - n] to (r + 1) % n }\n", "E0302"),
        ("    step each r { send data[n] to (r + 1) % n }\n", "E0302"),
        ("    step each r { send data[0] to 0 }\n", "E0401"),
    ] {
        let source = Source::from_text("wrong.coll", format!("{head}{body}}}\n"));
        let instance = Instance { ranks: 4, root: 0, params: Vec::new() };
        let Outcome::Wrong(told) = coll::prove(&source, 0, &instance, &Default::default()) else {
            panic!("it is right: {body}");
        };
        let first = &told[0];
        assert_eq!(first.code.0, code, "{body}: {told:#?}");
        let span = first.primary.as_ref().expect("it has a place").span;
        assert_eq!(source.map.line_of(span), 4, "{body}");
    }
}

/// B108: what is taken for an operation by default applies to every rank count and root.
#[test]
fn b108_a_default_applies_wherever_it_is_taken() {
    let chooser = Chooser::new(Tuning::default());
    for operation in coll::OPERATIONS {
        for ranks in [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 33, 64] {
            for root in [0, ranks - 1] {
                let question = Question { root, ..Question::new(operation, ranks, 1 << 20) };
                let chosen = chooser.choose(&question).expect("there is one").candidate;
                let source = chosen.source();
                let at = source
                    .schedules()
                    .iter()
                    .position(|info| info.name == chosen.schedule)
                    .expect("declared");
                let instance = Instance { ranks, root, params: chosen.params.clone() };
                assert!(source.module.instantiate(at, &instance).is_ok(), "{chosen} on {ranks} ranks");
            }
        }
    }
}

/// B110: every reducing schedule with every operator and element type is right, or refused before anything runs; the
/// reference names them all.
#[test]
fn b110_every_combination_is_right_or_refused() {
    let seed = seed();
    for plan in plans(4).iter().filter(|plan| plan.reduces) {
        for op in RedOp::ALL {
            for dtype in DType::ALL {
                match Reducer::builtin(op, dtype) {
                    Ok(_) => check(plan, Case { elements: 13, seed, ..Case::new(op, dtype) }),
                    Err(unsupported) => assert!(unsupported.to_string().contains(op.name())),
                }
            }
        }
    }
    let reference = reference();
    for name in RedOp::ALL.map(RedOp::name).into_iter().chain(DType::ALL.map(DType::name)) {
        assert!(reference.contains(&format!("`{name}`")), "docs/language.md does not name `{name}`");
    }
}

/// B111: every ordered pair of collectives on the same links, small after large and large after small, and 200 rows of ten
/// drawn at random.
#[test]
fn b111_every_collective_after_every_other() {
    let (seed, chooser) = (seed(), Chooser::new(Tuning::default()));
    let plans: Vec<Plan> = coll::OPERATIONS
        .iter()
        .map(|&operation| {
            let chosen = chooser.choose(&Question::new(operation, 4, 1 << 10)).expect("there is one");
            plan(&chosen.candidate.name(), 4)
        })
        .collect();
    let run = |row: &[(usize, u64)], seed: u64| {
        let case = Case { seed, ..Case::new(RedOp::Sum, DType::I32) };
        let mut world = world(&case);
        for (operation, &(at, elements)) in (0..).zip(row) {
            let mut call = Call::new(&plans[at], &Case { elements, ..case.clone() }).expect("it is bound");
            call.run(&mut world, operation..operation + 1)
                .unwrap_or_else(|error| panic!("{row:?}, {}: {error}", plans[at].name));
        }
    };
    for first in 0..plans.len() {
        for second in 0..plans.len() {
            run(&[(first, 5), (second, 3000)], seed);
            run(&[(first, 3000), (second, 5)], seed);
        }
    }
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for _ in 0..200 {
        let row: Vec<(usize, u64)> = (0..10)
            .map(|_| (draw(plans.len() as u64) as usize, [0, 1, 5, 64, 3000][draw(5) as usize]))
            .collect();
        run(&row, seed);
    }
}

/// B116: nothing is lost on the way through any form, and each transfer of the program is in the plan.
#[test]
fn b116_no_operation_is_lost_in_conversion() {
    for ranks in [4, 5] {
        for entry in library::entries() {
            let Some(plan) = library_plan(&entry, ranks, 1) else { continue };
            let read = [
                coll_plan::from_text(&coll_plan::to_text(&plan)).map_err(|error| error.to_string()),
                coll_plan::from_json(&coll_plan::to_json(&plan)).map_err(|error| error.to_string()),
                coll_plan::from_bytes(&coll_plan::to_bytes(&plan)).map_err(|error| error.to_string()),
            ];
            for read in read {
                assert_eq!(read.as_ref(), Ok(&*coll_plan::normal_form(&plan)), "{}", plan.name);
            }
        }
    }
    // Unmerged and unsliced, each transfer between two ranks is one message.
    let options = coll::Options { skip: vec!["merge".into(), "slice".into()], ..Default::default() };
    for entry in library::entries() {
        let source = Source::builtin(entry.collective, entry.schedule).expect("it is in the library");
        let at = source.schedules().len() - 1;
        let instance = Instance { ranks: 4, root: 0, params: Vec::new() };
        let Ok(instantiated) = source.module.instantiate(at, &instance) else { continue };
        let Outcome::Right(proved) = coll::prove(&source, at, &instance, &options) else { continue };
        let transfers = instantiated.program.transfers.iter();
        let due =
            transfers.filter(|t| t.kind != coll_ir::Kind::Drop && t.source.rank != t.target.rank).count();
        let sends = |part: &coll_plan::RankPlan| {
            part.ops.iter().filter(|op| matches!(op.action, Action::Send { .. })).count()
        };
        assert_eq!(proved.plan.ranks.iter().map(sends).sum::<usize>(), due, "{}", proved.plan.name);
    }
}
