//! Every schedule of the library, every operator on every type, and one's own operators.

use crate::support::{Call, Case, check, devices, group, is_stand_in, library, plan, seed, spreads};
use coll::trial::Operator;
use coll::{Options, Source};
use coll_base::{DType, RedOp};

/// Elements of a block: an odd number, few, and enough for many thread blocks.
const ELEMENTS: [u64; 3] = [61, 1, 5000];

const PAIRS: [(RedOp, DType); 6] = [
    (RedOp::Sum, DType::F32),
    (RedOp::Max, DType::I64),
    (RedOp::Avg, DType::Bf16),
    (RedOp::Prod, DType::F64),
    (RedOp::PremulSum, DType::F16),
    (RedOp::Min, DType::U8),
];

/// The stand-in takes its time, and the tests without a device have it run every call: of these it gets some.
fn step() -> usize {
    if is_stand_in() { 17 } else { 1 }
}

#[test]
fn every_schedule() {
    let Some(found) = devices() else { return };
    let seed = seed();
    let mut calls = 0;
    for ranks in [2, 4, 8] {
        for devices in spreads(&found) {
            let group = group(ranks, devices);
            for (number, plan) in library(ranks, ranks / 2).iter().enumerate() {
                // What only moves bytes is the same for all operators.
                let pairs = if plan.reduces { &PAIRS[..] } else { &PAIRS[..2] };
                for (at, &(op, dtype)) in pairs
                    .iter()
                    .enumerate()
                    .skip(if is_stand_in() { number % pairs.len() } else { 0 })
                    .step_by(step())
                {
                    let (elements, in_place) = (ELEMENTS[(number + at) % 3], at % 2 == 0);
                    let case = Case { elements, in_place, seed, ..Case::new(op, dtype) };
                    check(&group, &Call::new(plan, &case));
                    calls += 1;
                }
            }
        }
    }
    println!("{calls} calls gave the CPU's bits");
    assert!(calls > 100, "only {calls} calls were tried");
}

#[test]
fn every_operator_on_every_type() {
    let Some(found) = devices() else { return };
    let seed = seed();
    let options = [
        Options::default(),
        Options { accumulate: Some(DType::F32), ..Options::default() },
        Options { wire: Some(DType::F16), ..Options::default() },
    ];
    for devices in spreads(&found) {
        let group = group(4, devices);
        for options in &options {
            let plan = plan("allreduce", "two_shot", 4, 0, options).expect("it applies");
            let pairs = RedOp::ALL.into_iter().flat_map(|op| DType::ALL.map(|dtype| Case::of(op, dtype)));
            for (number, case) in pairs.flatten().enumerate().step_by(step()) {
                let elements = ELEMENTS[number % 3];
                check(&group, &Call::new(&plan, &Case { seed, elements, in_place: number % 2 == 0, ..case }));
            }
        }
    }
}

const OPERATORS: &str = "operator clamped(a, b) = min(a + b, 100)
operator halves(a, b) = a + b given x: x / 2 ensure x: x * 3
";

#[test]
fn operators_of_ones_own() {
    let Some(found) = devices() else { return };
    if is_stand_in() {
        println!("SKIPPED: the stand-in does not run what NVRTC makes");
        return;
    }
    if let Err(names) = &found.nvrtc {
        println!("SKIPPED: no NVRTC, which was looked for as {}", names.join(", "));
        return;
    }
    let seed = seed();
    let source = Source::from_text("mine.coll", OPERATORS);
    assert!(source.diagnostics.is_empty(), "{:?}", source.diagnostics);
    for accumulate in [None, Some(DType::F32)] {
        let plan = plan("allreduce", "ring", 4, 0, &Options { accumulate, ..Options::default() });
        let plan = plan.expect("it applies");
        for operator in source.module.operators() {
            let operator = Operator::User(operator.clone(), Vec::new());
            let dtype = if accumulate.is_some() { DType::Bf16 } else { DType::F64 };
            let case = Case { operator, dtype, elements: 61, in_place: false, seed };
            for devices in spreads(&found) {
                check(&group(4, devices), &Call::new(&plan, &case));
            }
        }
    }
}
