//! Machine code against the interpreter: random operators and those of the examples, every element type, every kind of
//! processor, lengths about the vectors', odd addresses, special values. Bits must be equal, those of a NaN aside.

#![allow(clippy::print_stdout)]

mod random;

use coll_base::{DType, FileId, SourceMap};
use coll_jit::{JitError, Machine, NODES_MAX, compile_for};
use coll_kernel::oracle::{self, Scalar};
use coll_kernel::{Binary, Expr, Reducer, UserOperator, sample_laws};
use random::Random;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn machines() -> [Machine; 3] {
    [Machine::this().unwrap(), Machine::older().unwrap(), Machine::oldest().unwrap()]
}

fn binary(op: Binary, x: Expr, y: Expr) -> Expr {
    Expr::Binary(op, x.into(), y.into())
}

fn operator(combine: Expr) -> UserOperator {
    UserOperator { name: "f".into(), commutative: true, params: vec![], combine, given: None, ensure: None }
}

/// The operator interpreted and as machine code, or neither.
fn both(
    machine: &Machine,
    operator: &UserOperator,
    dtype: DType,
    params: &[f64],
) -> Option<(Reducer, Reducer)> {
    let interpreted = Reducer::user(operator, dtype, params);
    let code = compile_for(machine, operator, dtype, params);
    match (interpreted, code) {
        (Ok(interpreted), Ok(code)) => {
            let native = Reducer::user_native(operator, dtype, params, Arc::new(code)).unwrap();
            assert!(native.is_native() && !interpreted.is_native());
            Some((interpreted, native))
        }
        (Err(_), Err(JitError::Expression { .. } | JitError::Type { .. })) => None,
        (Ok(_), Err(JitError::Type { .. })) => None,
        (Ok(_), Err(error)) => panic!("{dtype} {operator:?}: {error}"),
        (Err(refused), code) => panic!("{dtype} {operator:?}: {refused}, but {:?}", code.err()),
    }
}

/// Elements whose results differ, in words.
fn difference(dtype: DType, due: &[u8], found: &[u8]) -> Option<String> {
    let size = dtype.size_bytes() as usize;
    let is_nan =
        |element: &[u8]| matches!(oracle::read(dtype, element), Some(Scalar::Float(x)) if x.is_nan());
    let differs = |(due, found): &(&[u8], &[u8])| due != found && !(is_nan(due) && is_nan(found));
    let pairs = due.chunks(size).zip(found.chunks(size));
    let (at, (due, found)) = pairs.enumerate().find(|(_, pair)| differs(pair))?;
    let value = |element: &[u8]| oracle::read(dtype, element);
    Some(format!(
        "element {at} is {found:x?} = {:?}, and should be {due:x?} = {:?}",
        value(found),
        value(due)
    ))
}

/// Runs all that a reducer does on the same random elements both ways.
fn compare(random: &mut Random, (interpreted, native): &(Reducer, Reducer), what: &dyn Fn() -> String) {
    let dtype = native.dtype();
    let elements = random.below(70);
    let [mut target, operand, incoming] = [0; 3].map(|_: u8| random.elements(dtype, elements));
    for (operand, incoming_left) in
        [(None, false), (None, true), (Some(&operand), false), (Some(&operand), true)]
    {
        let operand = operand.map(|operand| operand.bytes());
        let mut due = target.clone();
        interpreted.combine_into(due.bytes_mut(), operand, incoming.bytes(), incoming_left);
        native.combine_into(target.bytes_mut(), operand, incoming.bytes(), incoming_left);
        if let Some(difference) = difference(dtype, due.bytes(), target.bytes()) {
            panic!("{} of {elements} elements, left {incoming_left}: {difference}", what());
        }
        assert_eq!(due.around(), target.around(), "{}: it writes beside its target", what());
    }
    let mut due = target.clone();
    interpreted.prepare(2, incoming.bytes(), due.bytes_mut());
    native.prepare(2, incoming.bytes(), target.bytes_mut());
    assert_eq!(difference(dtype, due.bytes(), target.bytes()), None, "{} given", what());
    interpreted.finish(2, 2, incoming.bytes(), due.bytes_mut());
    native.finish(2, 2, incoming.bytes(), target.bytes_mut());
    assert_eq!(difference(dtype, due.bytes(), target.bytes()), None, "{} ensure", what());
}

#[test]
fn machine_code_and_interpreter_agree_on_random_operators() {
    let mut random = Random::seeded();
    for machine in &machines() {
        for dtype in DType::ALL {
            let (mut compiled, mut refused) = (0, 0);
            for _ in 0..120 {
                let (operator, params) = random.operator(dtype);
                let Some(pair) = both(machine, &operator, dtype, &params) else {
                    refused += 1;
                    continue;
                };
                compiled += 1;
                for _ in 0..3 {
                    compare(&mut random, &pair, &|| format!("{dtype} {operator:?} {params:?}"));
                }
            }
            let known = compile_for(machine, &operator(Expr::Left), dtype, &[]).is_ok();
            assert!(
                !known || compiled > 60 && refused > 0,
                "{dtype}: {compiled} were compiled, {refused} refused"
            );
        }
    }
}

/// Narrow floats accumulated in `f32`: code is made anew for it, and computes what the interpreter does.
#[test]
fn accumulated_in_f32_it_is_machine_code_still() {
    let (mut random, machine, mut compiled) = (Random::seeded(), Machine::this().unwrap(), 0);
    for dtype in [DType::F16, DType::Bf16] {
        for _ in 0..100 {
            let (operator, params) = random.operator(dtype);
            let Some((interpreted, native)) = both(&machine, &operator, dtype, &params) else { continue };
            let pair = [interpreted, native].map(|reducer| reducer.in_f32().unwrap());
            assert_eq!(pair.each_ref().map(Reducer::is_native), [false, true]);
            let elements = random.below(70);
            let inputs = [0; 2].map(|_: u8| random.elements(dtype, elements));
            let [due, found] = pair.map(|reducer| {
                let [mut sum, incoming] = inputs.each_ref().map(|input| {
                    let mut working = vec![0; elements * 4];
                    reducer.prepare(2, input.bytes(), &mut working);
                    working
                });
                reducer.combine_into(&mut sum, None, &incoming, true);
                let mut output = vec![0; inputs[0].bytes().len()];
                reducer.finish(2, 2, &sum, &mut output);
                output
            });
            assert_eq!(difference(dtype, &due, &found), None, "{dtype} {operator:?} {params:?}");
            compiled += 1;
        }
    }
    assert!(compiled > 60, "only {compiled} were compiled");
}

#[test]
fn every_type_that_is_interpreted_is_compiled_but_the_8_bit_floats() {
    let machine = Machine::this().unwrap();
    for dtype in DType::ALL {
        let interpreted = Reducer::user(&operator(Expr::Left), dtype, &[]).is_ok();
        let compiled = compile_for(&machine, &operator(Expr::Left), dtype, &[]).is_ok();
        assert_eq!(compiled, interpreted && !dtype.name().starts_with("f8"), "{dtype}");
    }
}

#[test]
fn every_operator_agrees_alone_on_many_values() {
    use Binary::{Add, BitAnd, BitOr, BitXor, Div, Max, Min, Mod, Mul, Shl, Shr, Sub};
    let mut random = Random::seeded();
    for machine in &machines() {
        for dtype in DType::ALL {
            for op in [Add, Sub, Mul, Div, Mod, Min, Max, BitAnd, BitOr, BitXor, Shl, Shr] {
                let operator = operator(binary(op, Expr::Left, Expr::Right));
                let Some(pair) = both(machine, &operator, dtype, &[]) else { continue };
                for _ in 0..40 {
                    compare(&mut random, &pair, &|| format!("{dtype} {op:?}"));
                }
            }
        }
    }
}

#[test]
fn shifts_by_every_known_distance_agree() {
    let mut random = Random::seeded();
    let machine = Machine::this().unwrap();
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        for op in [Binary::Shl, Binary::Shr] {
            for distance in -1..=65 {
                let operator = operator(binary(op, Expr::Left, Expr::Int(distance)));
                let Some(pair) = both(&machine, &operator, dtype, &[]) else { continue };
                compare(&mut random, &pair, &|| format!("{dtype} {op:?} {distance}"));
            }
        }
    }
}

#[test]
fn divisions_by_every_known_number_agree() {
    let mut random = Random::seeded();
    let machine = Machine::this().unwrap();
    let near = |power: u32| [(1i64 << power) - 1, 1 << power, (1 << power) + 1];
    let small = (-20..=20).chain([100, 127, -128, 1000, 65537, i64::from(i32::MIN), i64::MIN, i64::MAX]);
    let all: Vec<i64> = small.chain((3..62).flat_map(near)).collect();
    for dtype in DType::ALL.into_iter().filter(|dtype| !dtype.is_float()) {
        for op in [Binary::Div, Binary::Mod] {
            for &divisor in &all {
                // As a constant, and as one that only the compiler finds to be one.
                let found = binary(Binary::BitXor, Expr::Int(divisor), Expr::Int(0));
                for known in [Expr::Int(divisor), found] {
                    let operator = operator(binary(op, Expr::Left, known));
                    let Some(pair) = both(&machine, &operator, dtype, &[]) else { continue };
                    compare(&mut random, &pair, &|| format!("{dtype} {op:?} {divisor}"));
                }
            }
        }
    }
}

/// Every narrow float goes in and comes out right, alone and after arithmetic that rounds.
#[test]
fn every_narrow_float_agrees() {
    let all: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
    let third = binary(Binary::Div, Expr::Left, Expr::Int(3));
    for machine in &machines() {
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_float() && dtype.size_bytes() == 2) {
            for (combine, shift) in [
                (Expr::Left, 0),
                (third.clone(), 0),
                (binary(Binary::Add, Expr::Left, Expr::Right), 7919 * 2),
            ] {
                let (interpreted, native) = both(machine, &operator(combine), dtype, &[]).unwrap();
                let mut other = all.clone();
                other.rotate_left(shift);
                let (mut due, mut found) = (all.clone(), all.clone());
                interpreted.combine_into(&mut due, None, &other, false);
                native.combine_into(&mut found, None, &other, false);
                assert_eq!(difference(dtype, &due, &found), None, "{dtype}");
            }
        }
    }
}

/// The operators of a text, whatever else is in it.
fn operators_of(text: String) -> Vec<UserOperator> {
    struct Empty;
    impl coll_sema::Library for Empty {
        fn schedule(&self, _: &str, _: &str) -> Option<(String, String)> {
            None
        }
        fn collectives(&self) -> (String, String) {
            ("collectives.coll".into(), String::new())
        }
        fn names(&self) -> Vec<(String, String)> {
            Vec::new()
        }
    }
    let mut map = SourceMap::new();
    let main: FileId = map.add("operators.coll", text);
    coll_sema::load(&mut map, main, &Empty).0.operators().to_vec()
}

#[test]
fn operators_of_examples_agree_and_keep_their_laws() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = vec![
        "operator scaled_sum(a, b; alpha) = a + b  given x: alpha * x".to_string(),
        "operator ordered second(a, b) = b".to_string(),
    ];
    for entry in std::fs::read_dir(root.join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "coll") {
            texts.push(std::fs::read_to_string(path).unwrap());
        }
    }
    let operators: Vec<UserOperator> = texts.into_iter().flat_map(operators_of).collect();
    assert!(operators.iter().any(|operator| operator.name == "absmax"), "{operators:?}");
    assert!(operators.len() >= 3, "{operators:?}");
    let mut random = Random::seeded();
    for operator in &operators {
        assert_eq!(sample_laws(operator), []);
        let params = vec![3.0; operator.params.len()];
        for dtype in DType::ALL {
            let Some(pair) = both(&Machine::this().unwrap(), operator, dtype, &params) else { continue };
            for _ in 0..20 {
                compare(&mut random, &pair, &|| format!("{dtype} {}", operator.name));
            }
            if dtype == DType::I64 && operator.commutative {
                commutes_and_regroups(&pair.1);
            }
        }
    }
}

/// The laws on machine code itself.
fn commutes_and_regroups(reducer: &Reducer) {
    let apply = |x: i64, y: i64| {
        let mut target = x.to_ne_bytes();
        reducer.combine_into(&mut target, None, &y.to_ne_bytes(), false);
        i64::from_ne_bytes(target)
    };
    for (a, b, c) in [(1, 2, 3), (-5, 5, 0), (7, -7, 7), (i64::MAX, 1, -1)] {
        assert_eq!(apply(a, b), apply(b, a));
        assert_eq!(apply(apply(a, b), c), apply(a, apply(b, c)));
    }
}

/// A sum of `leaves` operands, as flat as it can be.
fn wide_sum(leaves: usize) -> Expr {
    match leaves {
        1 => Expr::Left,
        _ => binary(Binary::Add, wide_sum(leaves / 2), wide_sum(leaves - leaves / 2)),
    }
}

#[test]
fn expressions_have_a_limit_and_up_to_it_are_compiled_soon() {
    let machine = Machine::this().unwrap();
    let start = Instant::now();
    for leaves in [NODES_MAX / 2 + 1, 100_000] {
        let large = operator(wide_sum(leaves));
        let error = compile_for(&machine, &large, DType::F32, &[]).err().expect("it is too large");
        assert!(matches!(error, JitError::Large { max: NODES_MAX }), "{error}");
    }
    let deep = (0..100).fold(Expr::Left, |x, _| binary(Binary::Add, x, Expr::Right));
    let error = compile_for(&machine, &operator(deep), DType::F32, &[]).err().expect("it is too deep");
    assert!(error.to_string().contains("nested more than 64 deep"), "{error}");
    let mut random = Random::seeded();
    for dtype in [DType::F16, DType::F32, DType::I32, DType::U8] {
        for op in [Binary::Add, Binary::Min, Binary::Mod] {
            let largest = random.expression_of(op, NODES_MAX);
            let pair = both(&machine, &operator(largest), dtype, &[]).unwrap();
            compare(&mut random, &pair, &|| format!("the largest {op:?} of {dtype}"));
        }
    }
    // Milliseconds each where the compiler is optimised; this is for a hang.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
