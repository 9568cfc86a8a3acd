//! Built-in operators against the serial oracle: every operator, every element type, every shape of call.

use coll_base::{DType, RedOp};
use coll_kernel::oracle::{self, Expected, Scalar};
use coll_kernel::{Reducer, Unsupported};

/// Values that differ by rank and element, of both signs where the type has them.
fn leaf(dtype: DType, rank: usize, element: usize) -> Scalar {
    let mixed = (rank * 7919 + element * 104_729 + 13) % 251;
    let (whole, float) = (mixed as i128, (mixed as f64 - 125.0) / 16.0);
    match dtype {
        DType::Bool => Scalar::Int(whole % 2),
        DType::C64 | DType::C128 => Scalar::Complex(float, 3.0 - float / 2.0),
        // Few values, so that many are equal, and indices in no order.
        DType::I32I32 | DType::I64I64 => Scalar::IntAt(whole % 5 - 2, (mixed * 97 % 251) as i64),
        DType::F32I32 | DType::F64I64 => Scalar::FloatAt(float.round(), (mixed * 97 % 251) as i64),
        _ if dtype.is_float() => Scalar::Float(float),
        _ if element % 4 == 3 && mixed.is_multiple_of(3) => Scalar::Int(0),
        _ => Scalar::Int((whole - 125) * 70_000_000_000_000_003),
    }
}

const FACTOR: f64 = 3.0;

/// Every pair that is not refused.
fn pairs() -> impl Iterator<Item = (RedOp, DType)> {
    let all = RedOp::ALL.into_iter().flat_map(|op| DType::ALL.map(|dtype| (op, dtype)));
    all.filter(|&(op, dtype)| reducer(op, dtype).is_ok())
}

fn params(op: RedOp) -> &'static [f64] {
    if op == RedOp::PremulSum { &[FACTOR] } else { &[] }
}

fn reducer(op: RedOp, dtype: DType) -> Result<Reducer, Unsupported> {
    Reducer::builtin_with(op, dtype, params(op))
}

fn column(dtype: DType, rank: usize, elements: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..elements).for_each(|element| oracle::write(dtype, leaf(dtype, rank, element), &mut bytes));
    bytes
}

/// How ranks are combined.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    InPlace,
    Apart,
    AtOnce,
}

/// Reduces rank by rank, or all at once, and returns the finished elements. Everything lies one byte off any alignment.
fn reduce(reducer: &Reducer, ranks: usize, elements: usize, way: Way) -> Vec<u8> {
    let dtype = reducer.dtype();
    let working: Vec<Vec<u8>> = (0..ranks)
        .map(|rank| {
            let mut bytes = vec![0; 1 + elements * reducer.working_size_bytes() as usize];
            reducer.prepare(ranks as u64, &column(dtype, rank, elements), &mut bytes[1..]);
            bytes
        })
        .collect();
    let mut sum = working[0].clone();
    if way == Way::AtOnce {
        let operands: Vec<&[u8]> = working.iter().map(|bytes| &bytes[1..]).collect();
        sum.fill(0xaa);
        reducer.combine_many(&mut sum[1..], &operands);
    }
    for (rank, incoming) in working.iter().enumerate().skip(1) {
        match way {
            Way::InPlace => reducer.combine_into(&mut sum[1..], None, &incoming[1..], rank % 2 == 0),
            Way::Apart => {
                let operand = std::mem::replace(&mut sum, vec![0xaa; incoming.len()]);
                reducer.combine_into(&mut sum[1..], Some(&operand[1..]), &incoming[1..], rank % 2 == 0);
            }
            Way::AtOnce => {}
        }
    }
    let mut output = vec![0; elements * dtype.size_bytes() as usize];
    reducer.finish(ranks as u64, ranks as u64, &sum[1..], &mut output);
    output
}

fn check(op: RedOp, dtype: DType, ranks: usize, elements: usize) {
    check_reducer(&reducer(op, dtype).unwrap(), op, ranks, elements);
}

fn check_reducer(reducer: &Reducer, op: RedOp, ranks: usize, elements: usize) {
    let dtype = reducer.dtype();
    let expected = if reducer.is_in_f32() { oracle::expected_in_f32 } else { oracle::expected_with };
    let output = reduce(reducer, ranks, elements, Way::Apart);
    assert_eq!(output, reduce(reducer, ranks, elements, Way::InPlace), "{op} of {dtype}: in place differs");
    assert_eq!(output, reduce(reducer, ranks, elements, Way::AtOnce), "{op} of {dtype}: at once differs");
    for (element, bytes) in output.chunks(dtype.size_bytes() as usize).enumerate() {
        let mut held = Vec::new();
        (0..ranks).for_each(|rank| oracle::write(dtype, leaf(dtype, rank, element), &mut held));
        let leaves: Vec<Scalar> =
            held.chunks(bytes.len()).map(|leaf| oracle::read(dtype, leaf).unwrap()).collect();
        let due = expected(dtype, op, params(op), &leaves).unwrap();
        let found = oracle::read(dtype, bytes).unwrap();
        assert!(
            due.accepts(found),
            "{op} of {dtype}, {ranks} ranks, element {element}: {found:?}, due {due:?} of {leaves:?}"
        );
    }
}

#[test]
fn every_operator_on_every_type_agrees_with_the_oracle() {
    for (op, dtype) in pairs() {
        for ranks in 1..=5 {
            for elements in [0, 1, 7, 33, 1100] {
                check(op, dtype, ranks, elements);
            }
        }
    }
}

/// Narrow floats accumulated in `f32`: every operator that rounds, and no other.
#[test]
fn in_f32_a_result_is_rounded_once() {
    for (op, dtype) in pairs() {
        let wide = reducer(op, dtype).unwrap().in_f32();
        let rounds = matches!(op, RedOp::Sum | RedOp::Prod | RedOp::Avg | RedOp::PremulSum);
        let is_summed_so = op == RedOp::Avg && dtype.size_bytes() == 1;
        assert_eq!(wide.is_some(), dtype.is_narrow_float() && rounds && !is_summed_so, "{op} of {dtype}");
        let Some(wide) = wide else { continue };
        assert_eq!((wide.dtype(), wide.working_size_bytes(), wide.name()), (dtype, 4, op.name()));
        assert!(wide.in_f32().is_none() && wide.params() == params(op));
        for ranks in [1, 2, 5, 8] {
            [0, 1, 7, 33, 1024, 2049].iter().for_each(|&elements| check_reducer(&wide, op, ranks, elements));
        }
    }
}

/// Known fault B025: in bf16 itself each one is rounded away.
#[test]
fn b025_256_and_seven_ones_are_264_in_f32() {
    let wide = reducer(RedOp::Sum, DType::Bf16).unwrap().in_f32().unwrap();
    let element = |value: f64| {
        let mut bytes = Vec::new();
        oracle::write(DType::Bf16, Scalar::Float(value), &mut bytes);
        let mut working = vec![0; 4];
        wide.prepare(8, &bytes, &mut working);
        working
    };
    let mut sum = element(256.0);
    (0..7).for_each(|_| wide.combine_into(&mut sum, None, &element(1.0), false));
    let mut output = vec![0; 2];
    wide.finish(8, 8, &sum, &mut output);
    // 263 lies between 262 and 264, and goes to the even one.
    assert_eq!(oracle::read(DType::Bf16, &output), Some(Scalar::Float(264.0)));
}

/// What is not reduced comes out as it went in.
#[test]
fn in_f32_single_values_are_kept() {
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_narrow_float()) {
        let wide = reducer(RedOp::Sum, dtype).unwrap().in_f32().unwrap();
        assert!(wide.keeps_single_values());
        for bits in 0..=u16::MAX {
            let input = &bits.to_ne_bytes()[..dtype.size_bytes() as usize];
            let (mut working, mut output) = ([0; 4], [0; 2]);
            wide.prepare(1, input, &mut working);
            wide.finish(1, 1, &working, &mut output[..input.len()]);
            let is_nan = matches!(oracle::read(dtype, input), Some(Scalar::Float(x)) if x.is_nan());
            let both = [input, &output[..input.len()]].map(|bytes| oracle::read(dtype, bytes));
            let stays_nan = is_nan && matches!(both[1], Some(Scalar::Float(x)) if x.is_nan());
            assert!(input == &output[..input.len()] || stays_nan, "{dtype}: {bits:#x} became {both:?}");
        }
    }
    let wide = reducer(RedOp::Avg, DType::Bf16).unwrap().in_f32().unwrap();
    assert!(!wide.keeps_single_values(), "a fraction is put in");
}

#[test]
fn every_length_agrees_with_the_oracle() {
    for (op, dtype) in pairs() {
        (0..=130).for_each(|elements| check(op, dtype, 3, elements));
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_way_out() {
    let refused = |op: RedOp, dtype| Reducer::builtin(op, dtype).unwrap_err().to_string();
    assert_eq!(
        refused(RedOp::Band, DType::F32),
        "operator `band` does not work on f32: it needs an integer type, such as the unsigned one of the same width"
    );
    assert_eq!(
        refused(RedOp::Min, DType::C64),
        "operator `min` does not work on c64: complex numbers have no order"
    );
    assert!(refused(RedOp::Minloc, DType::F32).contains("f32i32"));
    assert!(refused(RedOp::Sum, DType::I32I32).contains("minloc"));
    assert!(refused(RedOp::Avg, DType::Bool).contains("no mean"));
    assert!(refused(RedOp::Bxor, DType::Bool).contains("lxor"));
    assert!(
        refused(RedOp::PremulSum, DType::F32)
            .ends_with("it has 1 parameter, `factor`, and 0 values are given")
    );
    let with = |op, dtype, params: &[f64]| Reducer::builtin_with(op, dtype, params).unwrap_err().reason;
    assert_eq!(
        with(RedOp::PremulSum, DType::I32, &[0.5]),
        "its parameter factor = 0.5 is no value of the type"
    );
    assert_eq!(
        with(RedOp::PremulSum, DType::U8, &[-1.0]),
        "its parameter factor = -1 is no value of the type"
    );
    assert_eq!(
        with(RedOp::PremulSum, DType::F16, &[1e39]),
        "its parameter factor = 1e39 is no value of the type".replace("1e39", &1e39f64.to_string())
    );
    assert!(with(RedOp::PremulSum, DType::F64, &[f64::NAN]).contains("NaN"));
    assert_eq!(with(RedOp::Sum, DType::F32, &[1.0]), "it has no parameters, and 1 values are given");
    // What the oracle has no answer for is what is refused, and nothing else.
    for op in RedOp::ALL {
        for dtype in DType::ALL {
            let leaves = [leaf(dtype, 0, 0), leaf(dtype, 1, 0)];
            let known = oracle::expected_with(dtype, op, params(op), &leaves).is_some();
            assert_eq!(reducer(op, dtype).is_ok(), known, "{op} of {dtype}");
        }
    }
}

fn of<const K: usize>(dtype: DType, op: RedOp, leaves: [Scalar; K]) -> Scalar {
    let reducer = reducer(op, dtype).unwrap();
    let working = leaves.map(|leaf| {
        let (mut bytes, mut working) = (Vec::new(), vec![0; reducer.working_size_bytes() as usize]);
        oracle::write(dtype, leaf, &mut bytes);
        reducer.prepare(K as u64, &bytes, &mut working);
        working
    });
    let mut sum = working[0].clone();
    working[1..].iter().for_each(|incoming| reducer.combine_into(&mut sum, None, incoming, false));
    let mut output = vec![0; dtype.size_bytes() as usize];
    reducer.finish(K as u64, K as u64, &sum, &mut output);
    oracle::read(dtype, &output).unwrap()
}

#[test]
fn integers_wrap_and_averages_do_not() {
    use Scalar::Int;
    assert_eq!(of(DType::U8, RedOp::Sum, [Int(120), Int(100)]), Int(220));
    assert_eq!(of(DType::U8, RedOp::Sum, [Int(200), Int(100)]), Int(44));
    assert_eq!(of(DType::I32, RedOp::Sum, [Int(i32::MAX.into()), Int(1)]), Int(i32::MIN.into()));
    assert_eq!(of(DType::I8, RedOp::Sum, [Int(127), Int(1)]), Int(-128));
    assert_eq!(of(DType::U16, RedOp::Prod, [Int(256), Int(257)]), Int(256));
    assert_eq!(of(DType::U64, RedOp::Sum, [Int(u64::MAX.into()), Int(2)]), Int(1));
    assert_eq!(of(DType::I8, RedOp::PremulSum, [Int(50), Int(1)]), Int(-103));
    assert_eq!(of(DType::I8, RedOp::Avg, [Int(-128); 5]), Int(-128));
    assert_eq!(of(DType::I16, RedOp::Avg, [Int(-32768), Int(-32767)]), Int(-32767));
    assert_eq!(of(DType::U16, RedOp::Avg, [Int(65535); 7]), Int(65535));
    assert_eq!(of(DType::U32, RedOp::Avg, [Int(u32::MAX.into()); 3]), Int(u32::MAX.into()));
    assert_eq!(of(DType::U64, RedOp::Avg, [Int(u64::MAX.into()); 4]), Int(u64::MAX.into()));
    assert_eq!(of(DType::U64, RedOp::Avg, [Int(u64::MAX.into()); 7]), Int(u64::MAX.into()));
    assert_eq!(of(DType::I64, RedOp::Avg, [Int(i64::MIN.into()), Int(-1), Int(0), Int(0)]), Int(-(1 << 61)));
    assert_eq!(of(DType::U8, RedOp::Avg, [Int(255), Int(255), Int(254)]), Int(254));
    assert_eq!(of(DType::I32, RedOp::Avg, [Int(i32::MAX.into()); 3]), Int(i32::MAX.into()));
    assert_eq!(of(DType::I64, RedOp::Avg, [Int(i64::MIN.into()); 3]), Int(i64::MIN.into()));
    // Toward zero, from both sides.
    assert_eq!(of(DType::I32, RedOp::Avg, [Int(-3), Int(-4)]), Int(-3));
    assert_eq!(of(DType::I64, RedOp::Avg, [Int(3), Int(4)]), Int(3));
}

#[test]
fn float_averages_do_not_overflow_where_the_mean_does_not() {
    use Scalar::Float;
    let largest = f64::from(f32::MAX);
    assert_eq!(of(DType::F32, RedOp::Avg, [Float(largest); 4]), Float(largest));
    assert_eq!(of(DType::F16, RedOp::Avg, [Float(65504.0); 8]), Float(65504.0));
    assert_eq!(of(DType::F64, RedOp::Avg, [Float(f64::MAX); 2]), Float(f64::MAX));
    assert_eq!(of(DType::F8E4M3, RedOp::Avg, [Float(448.0); 100]), Float(448.0));
    assert_eq!(of(DType::F8E5M2, RedOp::Avg, [Float(57344.0); 3]), Float(57344.0));
    assert_eq!(of(DType::F8E4M3, RedOp::Avg, [Float(2f64.powi(-9)); 8]), Float(2f64.powi(-9)));
}

#[test]
fn an_average_of_fewer_leaves_than_ranks_is_that_of_the_leaves() {
    for (dtype, value) in [(DType::F32, 6.0), (DType::F16, 6.0), (DType::F64, 6.0), (DType::Bf16, 6.0)] {
        let reducer = Reducer::builtin(RedOp::Avg, dtype).unwrap();
        let size = dtype.size_bytes() as usize;
        let (mut leaf, mut a, mut output) = (Vec::new(), vec![0; size], vec![0; size]);
        oracle::write(dtype, Scalar::Float(value), &mut leaf);
        reducer.prepare(8, &leaf, &mut a);
        let b = a.clone();
        reducer.combine_into(&mut a, None, &b, false);
        reducer.finish(8, 2, &a, &mut output);
        assert_eq!(oracle::read(dtype, &output), Some(Scalar::Float(value)), "{dtype}");
    }
}

#[test]
fn narrow_floats_round_at_each_combination_and_nan_stays() {
    use Scalar::Float;
    let eight = [256.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0].map(Float);
    assert_eq!(of(DType::Bf16, RedOp::Sum, eight), Float(256.0), "256 + 1 ties to even, seven times");
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_float()) {
        for op in [RedOp::Sum, RedOp::Prod, RedOp::Min, RedOp::Max, RedOp::Avg, RedOp::PremulSum] {
            for at in 0..3 {
                let mut leaves = [1.0, 2.0, 3.0].map(Float);
                leaves[at] = Float(f64::NAN);
                let found = of(dtype, op, leaves);
                assert!(matches!(found, Float(x) if x.is_nan()), "{op} of {dtype}: {found:?}");
            }
        }
        let zeros = of(dtype, RedOp::Max, [Float(-0.0), Float(0.0)]);
        assert!(matches!(zeros, Float(x) if x.is_sign_positive()), "{dtype}");
    }
}

#[test]
fn eight_bit_floats_saturate_and_keep_infinity() {
    use Scalar::Float;
    assert_eq!(of(DType::F8E4M3, RedOp::Sum, [Float(400.0), Float(400.0)]), Float(448.0));
    assert_eq!(of(DType::F8E4M3, RedOp::Prod, [Float(-448.0), Float(448.0)]), Float(-448.0));
    assert_eq!(of(DType::F8E5M2, RedOp::Sum, [Float(57344.0), Float(57344.0)]), Float(57344.0));
    let infinite = [Float(f64::NEG_INFINITY), Float(1.0)];
    for op in [RedOp::Sum, RedOp::Min, RedOp::Prod, RedOp::Avg] {
        assert_eq!(of(DType::F8E5M2, op, infinite), Float(f64::NEG_INFINITY), "{op}");
    }
    assert_eq!(of(DType::F8E5M2, RedOp::Max, infinite), Float(1.0));
    let scaled = Reducer::builtin_with(RedOp::PremulSum, DType::F8E5M2, &[-1e38]).unwrap();
    let (mut found, mut input) = ([0; 3], Vec::new());
    [1e4, 0.0, f64::INFINITY].iter().for_each(|x| oracle::write(DType::F8E5M2, Float(*x), &mut input));
    scaled.prepare(2, &input, &mut found);
    assert_eq!(
        found.map(|x| oracle::read(DType::F8E5M2, &[x]).unwrap()),
        [-57344.0, -0.0, f64::NEG_INFINITY].map(Float)
    );
    // 1 + 1/16 is a tie in E4M3, and goes to the even 1.
    assert_eq!(of(DType::F8E4M3, RedOp::Sum, [Float(1.0), Float(0.0625)]), Float(1.0));
    assert_eq!(of(DType::F8E4M3, RedOp::Sum, [Float(1.125), Float(0.0625)]), Float(1.25));
}

#[test]
fn subnormals_are_computed_and_not_taken_for_zero() {
    use Scalar::Float;
    for (dtype, smallest) in [
        (DType::F8E4M3, 2f64.powi(-9)),
        (DType::F8E5M2, 2f64.powi(-16)),
        (DType::F16, 2f64.powi(-24)),
        (DType::Bf16, 2f64.powi(-133)),
        (DType::F32, 2f64.powi(-149)),
        (DType::F64, f64::from_bits(1)),
    ] {
        assert_eq!(of(dtype, RedOp::Sum, [Float(smallest); 3]), Float(3.0 * smallest), "{dtype}");
        assert_eq!(of(dtype, RedOp::Max, [Float(-smallest), Float(0.0)]), Float(0.0), "{dtype}");
        assert_eq!(
            of(dtype, RedOp::Min, [Float(smallest), Float(2.0 * smallest)]),
            Float(smallest),
            "{dtype}"
        );
        // In vectors too, where an instruction might flush them.
        let (reducer, mut bytes) = (Reducer::builtin(RedOp::Sum, dtype).unwrap(), Vec::new());
        (0..100).for_each(|_| oracle::write(dtype, Float(smallest), &mut bytes));
        let mut sum = bytes.clone();
        reducer.combine_into(&mut sum, None, &bytes, false);
        for element in sum.chunks(dtype.size_bytes() as usize) {
            assert_eq!(oracle::read(dtype, element), Some(Float(2.0 * smallest)), "{dtype}");
        }
    }
}

#[test]
fn truth_values_are_any_byte_and_become_zero_or_one() {
    for (op, due) in [
        (RedOp::Sum, [0, 1, 1, 1]),
        (RedOp::Max, [0, 1, 1, 1]),
        (RedOp::Lor, [0, 1, 1, 1]),
        (RedOp::Prod, [0, 0, 0, 1]),
        (RedOp::Min, [0, 0, 0, 1]),
        (RedOp::Land, [0, 0, 0, 1]),
        (RedOp::Lxor, [0, 1, 1, 0]),
    ] {
        let mut target = [0, 0, 200, 2];
        Reducer::builtin(op, DType::Bool).unwrap().combine_into(&mut target, None, &[0, 255, 0, 4], false);
        assert_eq!(target, due, "{op}");
    }
    let mut words: Vec<u8> = [256i32, 0, -1].iter().flat_map(|x| x.to_ne_bytes()).collect();
    let other: Vec<u8> = [1i32, 0, 0].iter().flat_map(|x| x.to_ne_bytes()).collect();
    Reducer::builtin(RedOp::Land, DType::I32).unwrap().combine_into(&mut words, None, &other, false);
    assert_eq!(words, [1i32, 0, 0].iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>());
}

#[test]
fn of_equal_values_the_lower_index_wins() {
    use Scalar::{FloatAt, IntAt};
    let nan = f64::NAN;
    assert_eq!(of(DType::I32I32, RedOp::Minloc, [IntAt(3, 9), IntAt(3, 4), IntAt(5, 0)]), IntAt(3, 4));
    assert_eq!(
        of(DType::I64I64, RedOp::Maxloc, [IntAt(i64::MAX.into(), 1), IntAt(0, 0)]),
        IntAt(i64::MAX.into(), 1)
    );
    for (op, leaves, due) in [
        (RedOp::Minloc, [FloatAt(0.0, 5), FloatAt(-0.0, 7)], 5),
        (RedOp::Maxloc, [FloatAt(-0.0, 2), FloatAt(0.0, 7)], 2),
        (RedOp::Minloc, [FloatAt(nan, 5), FloatAt(f64::NEG_INFINITY, 1)], 5),
        (RedOp::Maxloc, [FloatAt(nan, 5), FloatAt(nan, 3)], 3),
        (RedOp::Maxloc, [FloatAt(2.0, -4), FloatAt(2.0, -3)], -4),
    ] {
        for dtype in [DType::F32I32, DType::F64I64] {
            for leaves in [leaves, [leaves[1], leaves[0]]] {
                let found = of(dtype, op, leaves);
                assert!(matches!(found, FloatAt(_, at) if at == due), "{op} of {leaves:?}: {found:?}");
                assert!(oracle::expected(dtype, op, &leaves).unwrap().accepts(found));
            }
        }
    }
    // Where nothing else tells them apart, the bits are the same whichever way round they come.
    for (op, sign) in [(RedOp::Minloc, true), (RedOp::Maxloc, false)] {
        for leaves in [[FloatAt(0.0, 5), FloatAt(-0.0, 5)], [FloatAt(-0.0, 5), FloatAt(0.0, 5)]] {
            let found = of(DType::F32I32, op, leaves);
            assert!(matches!(found, FloatAt(x, 5) if x.is_sign_negative() == sign), "{op}: {found:?}");
        }
    }
}

#[test]
fn the_oracle_bounds_what_rounding_explains_and_no_more() {
    let leaves: Vec<Scalar> = [1e8, 1.0, -1e8, 1.0].map(Scalar::Float).to_vec();
    let due = oracle::expected(DType::F32, RedOp::Sum, &leaves).unwrap();
    for found in [0.0, 1.0, 2.0] {
        assert!(due.accepts(Scalar::Float(found)), "any order's result is legal: {found}");
    }
    assert!(!due.accepts(Scalar::Float(1000.0)), "{due:?}");
    assert_eq!(oracle::expected(DType::I32, RedOp::Sum, &[]), None);
    assert_eq!(oracle::expected(DType::I32, RedOp::Sum, &leaves), None, "floats are no integers");
    let huge = [Scalar::Float(3e38), Scalar::Float(3e38), Scalar::Float(-3e38)];
    let Some(Expected::Float { bound, .. }) = oracle::expected(DType::F32, RedOp::Sum, &huge) else {
        panic!()
    };
    assert_eq!(bound, f64::INFINITY, "a partial sum may overflow");
}
