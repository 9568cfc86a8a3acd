//! The text of every built-in kernel, compiled by a host's C++ compiler, against `coll-kernel`: special values beside special
//! values, random ones, all pairs of bytes; odd counts, addresses apart, targets that are sources; every arity.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod native;
#[path = "../../coll-jit/tests/random/mod.rs"]
#[allow(dead_code)]
mod random;
mod stage;
mod values;

use coll_base::{DType, RedOp};
use coll_cuda::{ARITIES, COPY, Kernels, Shape, builtin_entries, builtin_source, cast};
use coll_kernel::{Cast, Reducer};
use native::{Argument, HostModule};
use random::Random;
use stage::Stage;
use std::collections::BTreeSet;
use std::sync::OnceLock;
use values::{Nan, difference, elements, parts, special_bits, special_pairs};

fn module() -> Option<&'static HostModule> {
    static MODULE: OnceLock<Option<HostModule>> = OnceLock::new();
    MODULE.get_or_init(|| HostModule::compile(&builtin_source())).as_ref()
}

fn factors(op: RedOp, dtype: DType) -> Vec<Vec<f64>> {
    if op.params().is_empty() {
        return vec![vec![]];
    }
    let all =
        [1.0, 0.0, -1.0, 3.0, 127.0, -128.0, 0.1, -2.5, 1e9, 3e38, 1e300, 1e-40, 18446744073709549568.0];
    let accepted = |factor: &f64| Reducer::builtin_with(op, dtype, &[*factor]).is_ok();
    all.into_iter().filter(accepted).map(|factor| vec![factor]).collect()
}

/// Every reducer of a built-in operator, as elements are and accumulated in `f32`.
fn reducers() -> Vec<Reducer> {
    let mut all = Vec::new();
    for op in RedOp::ALL {
        for dtype in DType::ALL {
            for params in factors(op, dtype) {
                let Ok(reducer) = Reducer::builtin_with(op, dtype, &params) else { continue };
                all.extend(reducer.in_f32());
                all.push(reducer);
            }
        }
    }
    all
}

/// Parts of working elements.
fn working_parts(reducer: &Reducer) -> Vec<DType> {
    match (reducer.working_dtype(), reducer.working_size_bytes()) {
        (Some(dtype), _) => parts(dtype),
        (None, 4) => vec![DType::U32],
        (None, 8) => vec![DType::U64],
        (None, _) => vec![DType::U64; 2],
    }
}

fn nan_of(op: RedOp) -> Nan {
    match op {
        RedOp::Min | RedOp::Max | RedOp::Minloc | RedOp::Maxloc => Nan::Bits,
        _ => Nan::Any,
    }
}

/// What a rank puts in keeps its NaN where it is widened and no more.
fn nan_prepared(reducer: &Reducer) -> Nan {
    match reducer.builtin_op() {
        Some(RedOp::Avg) if reducer.dtype().size_bytes() == 1 => Nan::Bits,
        Some(RedOp::Avg | RedOp::PremulSum) => Nan::Any,
        _ => Nan::Bits,
    }
}

/// A result keeps its NaN where it is narrowed at most.
fn nan_finished(reducer: &Reducer, ranks: u64, leaves: u64) -> Nan {
    match reducer.builtin_op() {
        Some(RedOp::Avg) if ranks != leaves || reducer.dtype().size_bytes() == 1 => Nan::Any,
        _ => Nan::Bits,
    }
}

fn told(reducer: &Reducer) -> String {
    let wide = if reducer.is_in_f32() { " in f32" } else { "" };
    format!("{reducer:?}{wide} {:?}", reducer.params())
}

#[test]
fn every_combination_gives_the_bits_of_the_cpu() {
    let Some(module) = module() else { return };
    let mut random = Random::seeded();
    for reducer in reducers() {
        let kernels = Kernels::of(&reducer).unwrap();
        let (parts, nan) = (working_parts(&reducer), nan_of(reducer.builtin_op().unwrap()));
        for sources in ARITIES {
            let name = kernels.combine(sources).unwrap();
            for round in 0..24 {
                let count = [0, 1, 2, 3, 15, 16, 17, 33, 70, 129][random.below(10)] + random.below(3);
                let columns: Vec<Vec<u8>> =
                    (0..sources).map(|_| elements(&mut random, &parts, count)).collect();
                let mut stage = Stage::new(&mut random, &parts);
                let operands: Vec<usize> = columns.iter().map(|column| stage.input(column)).collect();
                // The target is each of the sources in turn, or none of them.
                let target = match operands.get(round % (sources + 1)) {
                    Some(&source) => source,
                    None => stage.output(columns[0].len()),
                };
                let (arguments, output) = stage.combine(target, &operands, count);
                let mut due = columns[0].clone();
                let all: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
                reducer.combine_many(&mut due, &all);
                let found = stage.launch(module, name, &arguments, output);
                let differs = difference(&parts, nan, &due, &found);
                assert_eq!(differs, None, "{name}, {} on {count}: {arguments:?}", told(&reducer));
            }
        }
    }
}

#[test]
fn special_values_beside_special_values() {
    let Some(module) = module() else { return };
    for reducer in reducers().iter().filter(|reducer| reducer.params().is_empty()) {
        let (parts, kernels) = (working_parts(reducer), Kernels::of(reducer).unwrap());
        let [part] = parts[..] else { continue };
        let [a, b] = if part.size_bytes() == 1 { all_pairs_of_bytes() } else { special_pairs(part) };
        let count = a.len() / part.size_bytes() as usize;
        let mut due = a.clone();
        reducer.combine_into(&mut due, None, &b, false);
        let name = kernels.combine(2).unwrap();
        // In vectors, and as single elements.
        for apart in [false, true] {
            let mut stage = Stage::aligned(&parts, apart);
            let operands = [stage.input(&a), stage.input(&b)];
            let (arguments, output) = stage.combine(operands[0], &operands, count);
            let found = stage.launch(module, name, &arguments, output);
            let differs = difference(&parts, nan_of(reducer.builtin_op().unwrap()), &due, &found);
            assert_eq!(differs, None, "{name}, {}", told(reducer));
        }
    }
}

fn all_pairs_of_bytes() -> [Vec<u8>; 2] {
    let all = 0..=u16::MAX;
    [all.clone().map(|pair| (pair >> 8) as u8).collect(), all.map(|pair| pair as u8).collect()]
}

#[test]
fn what_is_put_in_and_what_is_made_of_the_result() {
    let Some(module) = module() else { return };
    let mut random = Random::seeded();
    for reducer in reducers() {
        let kernels = Kernels::of(&reducer).unwrap();
        assert_eq!(kernels.prepare().is_some(), !reducer.is_direct(), "{}", told(&reducer));
        let (Some(prepare), Some(finish)) = (kernels.prepare(), kernels.finish()) else { continue };
        let (memory, working) = (parts(reducer.dtype()), working_parts(&reducer));
        let factor = Argument::Real(reducer.params().first().copied().unwrap_or(1.0));
        for ranks in [1, 2, 3, 7, 8, 1000, 65_536, 65_537, (1 << 40) + 1] {
            for trial in 0..3 {
                let count = if trial == 0 { 300 } else { random.below(40) };
                let input = match (trial, reducer.dtype().size_bytes()) {
                    (0, size @ ..=2) => special_column(&memory, 1 << (8 * size)),
                    _ => elements(&mut random, &memory, count),
                };
                let rest = [Argument::Count(ranks), factor.clone()];
                let (due, found) =
                    mapped(&mut random, module, prepare, (&memory, &working), &input, &rest, |to| {
                        reducer.prepare(ranks, &input, to);
                    });
                assert_eq!(
                    difference(&working, nan_prepared(&reducer), &due, &found),
                    None,
                    "{prepare} of {}",
                    told(&reducer)
                );
            }
            for leaves in [1, 2, 3, ranks - 1, ranks, 65_536, 65_537, 1 << 24, 1 << 32, u64::MAX] {
                if leaves == 0 || leaves > reducer.leaves_max(ranks) {
                    continue;
                }
                let count = random.below(60);
                let sums = sums(&mut random, &reducer, &working, count, leaves);
                let rest = [Argument::Count(ranks), Argument::Count(leaves)];
                let (due, found) =
                    mapped(&mut random, module, finish, (&working, &memory), &sums, &rest, |to| {
                        reducer.finish(ranks, leaves, &sums, to);
                    });
                let differs = difference(&memory, nan_finished(&reducer, ranks, leaves), &due, &found);
                assert_eq!(differs, None, "{finish} of {}, {ranks} ranks, {leaves} leaves", told(&reducer));
            }
        }
    }
}

/// Every bit pattern of one-part elements.
fn special_column(parts: &[DType], patterns: u32) -> Vec<u8> {
    let size = parts[0].size_bytes() as usize;
    (0..patterns).flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect()
}

/// Working elements as they come of `leaves` values: of integers sums whose mean the type holds, near where it changes.
fn sums(random: &mut Random, reducer: &Reducer, working: &[DType], count: usize, leaves: u64) -> Vec<u8> {
    let dtype = reducer.dtype();
    if !(dtype.is_integer() && reducer.builtin_op() == Some(RedOp::Avg)) {
        return elements(random, working, count);
    }
    let size = reducer.working_size_bytes() as usize;
    let mut bytes = Vec::new();
    for _ in 0..count {
        let element = elements(random, &[dtype], 1);
        let Some(coll_kernel::oracle::Scalar::Int(mean)) = coll_kernel::oracle::read(dtype, &element) else {
            unreachable!("integers are read as such");
        };
        let beyond = [0, 1, leaves - 1, leaves / 2][random.below(4)].min(leaves - 1);
        let sign = if mean < 0 { -1 } else { 1 };
        let sum = mean.wrapping_mul(i128::from(leaves)).wrapping_add(sign * i128::from(beyond));
        bytes.extend(&sum.to_le_bytes()[..size]);
    }
    bytes
}

/// What the CPU makes of an input and what a kernel does.
fn mapped(
    random: &mut Random,
    module: &HostModule,
    name: &str,
    (from, to): (&[DType], &[DType]),
    input: &[u8],
    rest: &[Argument],
    cpu: impl FnOnce(&mut [u8]),
) -> (Vec<u8>, Vec<u8>) {
    let size = |parts: &[DType]| parts.iter().map(|part| part.size_bytes() as usize).sum::<usize>();
    let count = input.len() / size(from);
    let mut due = vec![0; count * size(to)];
    cpu(&mut due);
    let widest = if size(from) > size(to) { from } else { to };
    let mut stage = Stage::new(random, widest);
    let source = stage.input(input);
    let target = stage.output(due.len());
    let (arguments, output) = stage.map(target, due.len(), source, input.len(), count, rest);
    let found = stage.launch(module, name, &arguments, output);
    (due, found)
}

#[test]
fn casts_give_the_bits_of_the_cpu_nan_included() {
    let Some(module) = module() else { return };
    let mut random = Random::seeded();
    let mut cast_pairs = 0;
    for memory in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
        for wire in DType::WIRE {
            let Some(cpu) = Cast::narrowing(memory, wire) else {
                assert_eq!(cast(memory, wire).is_some(), Cast::narrowing(wire, memory).is_some());
                continue;
            };
            cast_pairs += 1;
            for (from, to) in [(memory, wire), (wire, memory)] {
                let size = from.size_bytes() as usize;
                let mut input = match size {
                    ..=2 => special_column(&[from], 1 << (8 * size)),
                    _ => {
                        let special = special_bits(8 * size as u32);
                        special.iter().flat_map(|bits| bits.to_le_bytes()[..size].to_vec()).collect()
                    }
                };
                input.extend(elements(&mut random, &[from], 5000));
                let name = cast(from, to).unwrap();
                let (due, found) = mapped(&mut random, module, &name, (&[from], &[to]), &input, &[], |out| {
                    if from == memory { cpu.narrow(&input, out) } else { cpu.widen(&input, out) }
                });
                assert_eq!(difference(&[to], Nan::Bits, &due, &found), None, "{name}");
            }
        }
    }
    assert_eq!(cast_pairs, 13);
    assert_eq!((cast(DType::C64, DType::F16), cast(DType::F16, DType::Bf16)), (None, None));
}

#[test]
fn copies_of_any_length_between_any_addresses() {
    let Some(module) = module() else { return };
    let mut random = Random::seeded();
    for _ in 0..400 {
        let bytes = random.below(200);
        let input = elements(&mut random, &[DType::U8], bytes);
        let (due, found) =
            mapped(&mut random, module, COPY, (&[DType::U8], &[DType::U8]), &input, &[], |to| {
                to.copy_from_slice(&input);
            });
        assert_eq!(due, found);
    }
}

#[test]
fn entries_are_those_that_reducers_need() {
    let entries = builtin_entries();
    let names: BTreeSet<&str> = entries.iter().map(|entry| entry.name()).collect();
    assert_eq!(names.len(), entries.len(), "two entries have one name");
    let source = builtin_source();
    assert!(entries.iter().all(|entry| source.contains(&format!("COLLC_ENTRY({}, ", entry.name()))));
    let mut needed = BTreeSet::from([COPY.to_string()]);
    for reducer in reducers() {
        let kernels = Kernels::of(&reducer).unwrap();
        assert_eq!(kernels.working_size_bytes(), reducer.working_size_bytes());
        assert!(kernels.source().is_none() && kernels.combine(5).is_none());
        needed.extend(kernels.entries().into_iter().map(String::from));
    }
    for from in DType::ALL {
        needed.extend(DType::ALL.into_iter().filter_map(|to| cast(from, to)));
    }
    assert_eq!(needed.iter().map(String::as_str).collect::<BTreeSet<_>>(), names);
    let shape = |name: &str| entries.iter().find(|entry| entry.name() == name).unwrap().shape();
    assert_eq!(shape("collc_combine3_sum_i128"), Shape::Combine { sources: 3 });
    assert_eq!(shape("collc_prepare_avg_c64"), Shape::Prepare);
    assert_eq!(shape("collc_finish_premul_sum_bf16_in_f32"), Shape::Finish);
    assert_eq!(shape("collc_cast_f64_f8e5m2"), Shape::Map);
}

/// A GPU's sums and products of halves are rounded once, the CPU's by way of `f32`: here they are rounded once from the exact
/// result, and are the same.
#[test]
fn halves_rounded_once_are_what_they_are_by_way_of_f32() {
    let mut random = Random::seeded();
    let [mut a, mut b] = special_pairs(DType::F16);
    for side in [&mut a, &mut b] {
        side.extend(elements(&mut random, &[DType::F16], 200_000));
    }
    let halves = |bytes: &[u8]| -> Vec<u16> {
        bytes.chunks(2).map(|half| u16::from_le_bytes([half[0], half[1]])).collect()
    };
    for op in [RedOp::Sum, RedOp::Prod] {
        let mut found = a.clone();
        Reducer::builtin(op, DType::F16).unwrap().combine_into(&mut found, None, &b, false);
        let mut compared = 0;
        for ((x, y), found) in halves(&a).into_iter().zip(halves(&b)).zip(halves(&found)) {
            let (Some(m), Some(n)) = (units(x), units(y)) else { continue };
            // Units of 2^-24 for a sum, of 2^-48 for a product; of a zero the sign is not compared.
            let exact = if op == RedOp::Sum { (m + n) << 24 } else { m * n };
            let due = half_of(exact.unsigned_abs()) | if exact < 0 { 0x8000 } else { 0 };
            assert!(
                due == found || exact == 0 && found & 0x7fff == 0,
                "{op} of {x:#x} and {y:#x}: {found:#x}, {due:#x}"
            );
            compared += 1;
        }
        assert!(compared > 100_000);
    }
}

/// A finite half in units of 2^-24.
fn units(half: u16) -> Option<i128> {
    let (exponent, mantissa) = (i32::from(half >> 10 & 31), i128::from(half & 0x3ff));
    let size = if exponent == 0 { mantissa } else { (mantissa | 0x400) << (exponent - 1) };
    (exponent < 31).then_some(if half & 0x8000 == 0 { size } else { -size })
}

/// The nearest half of a magnitude in units of 2^-48, ties to even.
fn half_of(exact: u128) -> u16 {
    // The last bit of a half with this magnitude is worth 2^dropped units.
    let dropped = (128 - exact.leading_zeros()).saturating_sub(11).max(24);
    let (kept, rest) = (exact >> dropped, exact & ((1 << dropped) - 1));
    let middle = 1u128 << (dropped - 1);
    let kept = kept + u128::from(rest > middle || rest == middle && kept & 1 == 1);
    // A carry out of the mantissa goes into the exponent, as it should; beyond the largest lies infinity.
    let bits = kept + (u128::from(dropped - 24) << 10);
    bits.min(0x7c00) as u16
}
