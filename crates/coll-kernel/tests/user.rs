//! User operators: the block interpreter against a plain walk of the tree, what is refused, and the laws.

use coll_base::DType;
use coll_kernel::{Binary, Expr, Law, Reducer, Unary, UserOperator, sample_laws};
use proptest::prelude::*;

fn operator(combine: Expr) -> UserOperator {
    UserOperator { name: "f".into(), commutative: true, params: vec![], combine, given: None, ensure: None }
}

fn binary(op: Binary, x: Expr, y: Expr) -> Expr {
    Expr::Binary(op, x.into(), y.into())
}

fn unary(op: Unary, x: Expr) -> Expr {
    Expr::Unary(op, x.into())
}

fn choose(c: Expr, x: Expr, y: Expr) -> Expr {
    Expr::If(c.into(), x.into(), y.into())
}

/// `if abs(a) == abs(b) { max(a, b) } else if abs(a) > abs(b) { a } else { b }`
fn absmax() -> Expr {
    let abs = |x| unary(Unary::Abs, x);
    let larger = choose(binary(Binary::Gt, abs(Expr::Left), abs(Expr::Right)), Expr::Left, Expr::Right);
    choose(
        binary(Binary::Eq, abs(Expr::Left), abs(Expr::Right)),
        binary(Binary::Max, Expr::Left, Expr::Right),
        larger,
    )
}

fn f64s(bytes: &[u8]) -> Vec<f64> {
    bytes.chunks(8).map(|chunk| f64::from_ne_bytes(chunk.try_into().unwrap())).collect()
}

fn bytes_of(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

#[test]
fn a_users_operator_runs_on_blocks_and_their_remainders() {
    let reducer = Reducer::user(&operator(absmax()), DType::F64, &[]).unwrap();
    for elements in [0, 1, 511, 512, 513, 1500] {
        let a: Vec<f64> = (0..elements).map(|i| (i % 11) as f64 - 5.0).collect();
        let b: Vec<f64> = (0..elements).map(|i| (i % 7) as f64 - 3.0).collect();
        let mut target = bytes_of(&a);
        reducer.combine_into(&mut target, None, &bytes_of(&b), false);
        let due: Vec<f64> = a.iter().zip(&b).map(|(a, b)| tree(&absmax(), *a, *b)).collect();
        assert_eq!(f64s(&target), due);
    }
}

#[test]
fn the_left_operand_is_the_left_one_whichever_side_comes_in() {
    let reducer =
        Reducer::user(&operator(binary(Binary::Sub, Expr::Left, Expr::Right)), DType::F64, &[]).unwrap();
    let (ten, three) = (bytes_of(&[10.0]), bytes_of(&[3.0]));
    for (left, due) in [(false, 7.0), (true, -7.0)] {
        let mut target = ten.clone();
        reducer.combine_into(&mut target, None, &three, left);
        assert_eq!(f64s(&target), [due]);
        let mut apart = bytes_of(&[99.0]);
        reducer.combine_into(&mut apart, Some(&ten), &three, left);
        assert_eq!(f64s(&apart), [due]);
    }
}

#[test]
fn what_is_put_in_and_what_is_made_of_the_result() {
    let scaled = UserOperator {
        params: vec!["alpha".into()],
        given: Some(binary(Binary::Mul, Expr::Param(0), Expr::Input)),
        ensure: Some(unary(Unary::Neg, Expr::Input)),
        ..operator(binary(Binary::Add, Expr::Left, Expr::Right))
    };
    let reducer = Reducer::user(&scaled, DType::F64, &[2.5]).unwrap();
    assert!(!reducer.is_direct());
    let (mut a, mut b) = (vec![0; 8], vec![0; 8]);
    reducer.prepare(2, &bytes_of(&[4.0]), &mut a);
    reducer.prepare(2, &bytes_of(&[2.0]), &mut b);
    reducer.combine_into(&mut a, None, &b, false);
    reducer.finish(2, 2, &a, &mut b);
    assert_eq!(f64s(&b), [-15.0]);
}

fn refusal(expr: Expr, dtype: DType, params: &[f64]) -> String {
    let operator = UserOperator { params: vec!["k".into(); params.len()], ..operator(expr) };
    Reducer::user(&operator, dtype, params).unwrap_err().to_string()
}

#[test]
fn what_a_type_does_not_have_is_refused_with_the_reason() {
    let check = |expr, dtype, params: &[f64], due: &str| {
        assert_eq!(refusal(expr, dtype, params), format!("operator `f` does not work on {dtype}: {due}"));
    };
    let half = binary(Binary::Mul, Expr::Left, Expr::Float(0.5));
    check(half, DType::I32, &[], "the constant 0.5 needs a float type");
    check(Expr::Float(2.0), DType::I64, &[], "the constant 2.0 needs a float type");
    check(Expr::Int(300), DType::U8, &[], "the constant 300 does not fit");
    check(Expr::Param(0), DType::I32, &[1.5], "its parameter k = 1.5 is no value of the type");
    check(unary(Unary::Sqrt, Expr::Left), DType::I64, &[], "`sqrt` needs a float type");
    check(binary(Binary::BitXor, Expr::Left, Expr::Right), DType::F16, &[], "`^` needs an integer type");
    check(Expr::Bool(true), DType::F32, &[], "its value is a truth value, where a number is due");
    let sum = binary(Binary::Add, Expr::Left, Expr::Bool(true));
    check(sum, DType::F32, &[], "`+` is a truth value, where a number is due");
    check(Expr::Input, DType::F32, &[], "the input has no meaning in this part of an operator");
    check(Expr::Param(7), DType::F32, &[1.0], "it has no parameter 7");
    let deep = (0..100).fold(Expr::Left, |x, _| unary(Unary::Neg, x));
    check(deep, DType::F32, &[], "its expression is nested more than 64 deep");
}

#[test]
fn the_number_of_parameters_must_agree() {
    let with_one = UserOperator { params: vec!["k".into()], ..operator(Expr::Left) };
    let error = Reducer::user(&with_one, DType::F32, &[]).unwrap_err();
    assert_eq!(error.reason, "it has 1 parameters, and 0 values are given");
}

#[test]
fn laws_are_kept_or_shown_broken() {
    assert_eq!(sample_laws(&operator(absmax())), []);
    let hypot = unary(
        Unary::Sqrt,
        binary(
            Binary::Add,
            binary(Binary::Mul, Expr::Left, Expr::Left),
            binary(Binary::Mul, Expr::Right, Expr::Right),
        ),
    );
    assert_eq!(sample_laws(&operator(hypot)), [], "rounding is no break");
    assert_eq!(sample_laws(&operator(binary(Binary::BitXor, Expr::Left, Expr::Right))), []);

    let difference = sample_laws(&operator(binary(Binary::Sub, Expr::Left, Expr::Right)));
    let shown: Vec<String> = difference.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["f(f(1, 1), 1) = -1, but f(1, f(1, 1)) = 1", "f(1, 2) = -1, but f(2, 1) = 1"]);

    let left = operator(Expr::Left);
    assert_eq!(sample_laws(&left).iter().map(|found| found.law).collect::<Vec<_>>(), [Law::Commutative]);
    assert_eq!(sample_laws(&UserOperator { commutative: false, ..left }), []);
}

/// The plainest possible meaning of an expression.
fn tree(expr: &Expr, a: f64, b: f64) -> f64 {
    let truth = |expr: &Expr| match expr {
        Expr::Bool(value) => *value,
        Expr::Unary(Unary::Not, x) => tree_truth(x, a, b) ^ true,
        other => tree_truth(other, a, b),
    };
    match expr {
        Expr::Left => a,
        Expr::Right => b,
        Expr::Int(x) => *x as f64,
        Expr::Float(x) => *x,
        Expr::Unary(Unary::Neg, x) => -tree(x, a, b),
        Expr::Unary(Unary::Abs, x) => tree(x, a, b).abs(),
        Expr::Unary(_, x) => tree(x, a, b).sqrt(),
        Expr::If(c, x, y) => {
            if truth(c) {
                tree(x, a, b)
            } else {
                tree(y, a, b)
            }
        }
        Expr::Binary(op, x, y) => {
            let (x, y) = (tree(x, a, b), tree(y, a, b));
            match op {
                Binary::Add => x + y,
                Binary::Sub => x - y,
                Binary::Mul => x * y,
                Binary::Div => x / y,
                Binary::Min if x.is_nan() || y.is_nan() => f64::NAN,
                Binary::Max if x.is_nan() || y.is_nan() => f64::NAN,
                Binary::Min => x.min(y),
                _ => x.max(y),
            }
        }
        other => panic!("{other:?} is not generated"),
    }
}

fn tree_truth(expr: &Expr, a: f64, b: f64) -> bool {
    match expr {
        Expr::Bool(value) => *value,
        Expr::Unary(_, x) => !tree_truth(x, a, b),
        Expr::Binary(Binary::And, x, y) => tree_truth(x, a, b) && tree_truth(y, a, b),
        Expr::Binary(Binary::Or, x, y) => tree_truth(x, a, b) || tree_truth(y, a, b),
        Expr::Binary(op, x, y) => {
            let (x, y) = (tree(x, a, b), tree(y, a, b));
            match op {
                Binary::Eq => x == y,
                Binary::Ne => x != y,
                Binary::Lt => x < y,
                Binary::Le => x <= y,
                Binary::Gt => x > y,
                _ => x >= y,
            }
        }
        other => panic!("{other:?} is no truth value"),
    }
}

fn expression() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        Just(Expr::Left),
        Just(Expr::Right),
        (-3i64..4).prop_map(Expr::Int),
        (-2.0..2.0).prop_map(Expr::Float)
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        use Binary::*;
        let arithmetic = prop::sample::select(vec![Add, Sub, Mul, Div, Min, Max]);
        let comparison = prop::sample::select(vec![Eq, Ne, Lt, Le, Gt, Ge]);
        let test = (comparison, inner.clone(), inner.clone()).prop_map(|(op, x, y)| binary(op, x, y));
        let logic = (prop::sample::select(vec![And, Or]), test.clone(), test.clone(), any::<bool>())
            .prop_map(|(op, x, y, not)| {
                let both = binary(op, x, y);
                if not { unary(Unary::Not, both) } else { both }
            });
        prop_oneof![
            (arithmetic, inner.clone(), inner.clone()).prop_map(|(op, x, y)| binary(op, x, y)),
            (prop::sample::select(vec![Unary::Neg, Unary::Abs, Unary::Sqrt]), inner.clone())
                .prop_map(|(op, x)| unary(op, x)),
            (prop_oneof![test, logic], inner.clone(), inner).prop_map(|(c, x, y)| choose(c, x, y)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn blocks_compute_what_the_tree_says(expr in expression(), a in -9.0..9.0f64, b in -9.0..9.0f64) {
        let reducer = Reducer::user(&operator(expr.clone()), DType::F64, &[]).unwrap();
        let mut target = bytes_of(&[a, b, a]);
        reducer.combine_into(&mut target, None, &bytes_of(&[b, a, a]), false);
        for (found, (a, b)) in f64s(&target).into_iter().zip([(a, b), (b, a), (a, a)]) {
            let due = tree(&expr, a, b);
            prop_assert!(found == due || found.is_nan() && due.is_nan(), "{found} where {due} is due");
        }
    }
}
