//! Built-in operators against the serial oracle: every operator, every element type, every shape of call.

use coll_base::{DType, RedOp};
use coll_kernel::Reducer;
use coll_kernel::oracle::{self, Expected, Scalar};

/// Values that differ by rank and element, of both signs where the type has them.
fn leaf(dtype: DType, rank: usize, element: usize) -> Scalar {
    let mixed = (rank * 7919 + element * 104_729 + 13) % 251;
    match dtype {
        DType::U8 => Scalar::Int(mixed as i128),
        DType::I32 => Scalar::Int((mixed as i128 - 125) * 17_000_001),
        DType::I64 => Scalar::Int((mixed as i128 - 125) * 70_000_000_000_000_003),
        _ => Scalar::Float((mixed as f64 - 125.0) / 16.0),
    }
}

fn column(dtype: DType, rank: usize, elements: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..elements).for_each(|element| oracle::write(dtype, leaf(dtype, rank, element), &mut bytes));
    bytes
}

/// Reduces rank by rank and returns the finished elements. Everything lies one byte off any alignment.
fn reduce(reducer: &Reducer, ranks: usize, elements: usize, in_place: bool) -> Vec<u8> {
    let dtype = reducer.dtype();
    let working = |rank| {
        let mut bytes = vec![0; 1 + elements * reducer.working_size_bytes() as usize];
        reducer.prepare(ranks as u64, &column(dtype, rank, elements), &mut bytes[1..]);
        bytes
    };
    let mut sum = working(0);
    for rank in 1..ranks {
        let incoming = working(rank);
        if in_place {
            reducer.combine_into(&mut sum[1..], None, &incoming[1..], rank % 2 == 0);
        } else {
            let operand = std::mem::replace(&mut sum, vec![0xaa; incoming.len()]);
            reducer.combine_into(&mut sum[1..], Some(&operand[1..]), &incoming[1..], rank % 2 == 0);
        }
    }
    let mut output = vec![0; elements * dtype.size_bytes() as usize];
    reducer.finish(ranks as u64, ranks as u64, &sum[1..], &mut output);
    output
}

fn check(dtype: DType, op: RedOp, ranks: usize, elements: usize) {
    let reducer = Reducer::builtin(op, dtype).unwrap();
    let output = reduce(&reducer, ranks, elements, false);
    assert_eq!(output, reduce(&reducer, ranks, elements, true), "{op} of {dtype}: in place differs");
    for (element, bytes) in output.chunks(dtype.size_bytes() as usize).enumerate() {
        let mut held = Vec::new();
        (0..ranks).for_each(|rank| oracle::write(dtype, leaf(dtype, rank, element), &mut held));
        let leaves: Vec<Scalar> =
            held.chunks(bytes.len()).map(|leaf| oracle::read(dtype, leaf).unwrap()).collect();
        let due = oracle::expected(dtype, op, &leaves).unwrap();
        let found = oracle::read(dtype, bytes).unwrap();
        assert!(
            due.accepts(found),
            "{op} of {dtype}, {ranks} ranks, element {element}: {found:?}, due {due:?}"
        );
    }
}

#[test]
fn every_operator_on_every_type_agrees_with_the_oracle() {
    for dtype in DType::ALL {
        for op in RedOp::ALL {
            for ranks in 1..=5 {
                for elements in [0, 1, 2, 3, 7, 100, 1000] {
                    check(dtype, op, ranks, elements);
                }
            }
        }
    }
}

fn of<const K: usize>(dtype: DType, op: RedOp, leaves: [Scalar; K]) -> Scalar {
    let reducer = Reducer::builtin(op, dtype).unwrap();
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
    for dtype in [DType::F16, DType::Bf16, DType::F32, DType::F64] {
        for op in RedOp::ALL {
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
