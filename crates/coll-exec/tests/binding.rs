//! What cannot be bound is refused with names and numbers, and large counts are exact.

mod plans;

use coll_base::{DType, RedOp};
use coll_exec::{BindError, Binding, Bound, Placement};
use coll_kernel::{Binary, Expr, Reducer, UserOperator};
use coll_plan::{Action, Plan, Store};
use plans::{Part, library, plan, region};

fn binding<'a>(plan: &'a Plan, counts: &'a [u64], reducer: Option<&'a Reducer>) -> Binding<'a> {
    let placements = &[Placement::Separate; 2][..plan.contract.buffers.len()];
    Binding { plan, rank: 0, counts, element_size_bytes: 4, reducer, placements }
}

fn refusal(binding: Binding<'_>) -> String {
    Bound::new(binding).unwrap_err().to_string()
}

fn sum(dtype: DType) -> Reducer {
    Reducer::builtin(RedOp::Sum, dtype).unwrap()
}

#[test]
fn tables_that_do_not_fit_the_plan() {
    let (ring, reducer) = (library::ring(3), sum(DType::F32));
    let right = binding(&ring, &[10], Some(&reducer));
    assert_eq!(
        refusal(Binding { counts: &[1, 2], ..right }),
        "2 counts are given, and the plan has 1 count classes"
    );
    assert_eq!(
        refusal(Binding { placements: &[], ..right }),
        "0 placements are given, and the plan has 1 buffers"
    );
    assert_eq!(refusal(Binding { rank: 3, ..right }), "the plan has no part for rank 3: it is for 3 ranks");
    let slice = ring.slice(1).unwrap();
    assert_eq!(
        refusal(Binding { plan: &slice, ..right }),
        "the plan has no part for rank 0: it is for rank 1 alone"
    );
}

#[test]
fn operators_that_do_not_fit_the_plan() {
    let (ring, reducer) = (library::ring(3), sum(DType::F64));
    assert_eq!(
        refusal(binding(&ring, &[10], None)),
        "the plan reduces in operation 0, and no operator is given"
    );
    assert_eq!(
        refusal(binding(&ring, &[10], Some(&reducer))),
        "elements of 4 B are bound, and `sum` on f64 works on elements of 8 B"
    );
    // A plan that does not reduce does not mind.
    assert!(Bound::new(binding(&library::chain(3, 1), &[10], Some(&reducer))).is_ok());
}

#[test]
fn copies_beside_reductions_mind_an_operator_that_changes_what_is_put_in() {
    let mut mixed = library::ring(2);
    mixed.contract.values.push(coll_contract::Value::Copy(plans::leaf(0, 0, 0)));
    mixed.contract.ensures[0].value = 1;
    let average = Reducer::builtin(RedOp::Avg, DType::F32).unwrap();
    assert_eq!(
        refusal(binding(&mixed, &[10], Some(&average))),
        "allreduce promises copies beside reductions: `avg` on f32 changes what ranks put in, and the copies with it"
    );
    assert!(Bound::new(binding(&mixed, &[10], Some(&sum(DType::F32)))).is_ok());
}

#[test]
fn counts_that_fit_no_address() {
    let (ring, reducer) = (library::ring(2), sum(DType::F32));
    let huge = u64::MAX / 4 + 1;
    assert_eq!(
        refusal(binding(&ring, &[huge], Some(&reducer))),
        "a block of class 0 does not fit this machine's addresses: its counts are too large"
    );
    // What fits an address and no memory: the slot of the exchange.
    let counts = [u64::MAX / 16];
    let error = Bound::new(binding(&library::exchange(), &counts, Some(&reducer))).unwrap_err();
    assert!(matches!(error, BindError::Memory { .. }), "{error}");
}

#[test]
fn sums_of_counts_above_32_bits_are_exact() {
    let gather = library::all_gather(4);
    let bound = Bound::new(binding(&gather, &[800_000_000; 4], None)).unwrap();
    assert_eq!(bound.buffer_bytes(0), Some([3_200_000_000, 12_800_000_000]));
    let exchange = library::all_to_all(8);
    let counts = vec![64 << 20; exchange.contract.classes.count as usize];
    let bound = Bound::new(Binding { rank: 7, ..binding(&exchange, &counts, None) }).unwrap();
    assert_eq!(bound.buffer_bytes(0), Some([8 * (256 << 20), 0]));
    assert_eq!(bound.scratch_bytes(), 0, "the caller's buffers are all there is");
}

#[test]
fn a_copy_that_swaps_two_blocks_is_refused() {
    let parts = (0..2).map(|rank| {
        let mut part = Part::new(rank);
        let blocks = |first| [first, 1 - first].map(|block| region(Store::Out(0), block, 0..3, 0));
        part.lane().op(Action::Copy, [&blocks(0), &[], &blocks(1)], &[]);
        part
    });
    let swap = plan("allgather.swap", library::eager(0).contract, 3, parts.collect());
    let error = refusal(binding(&swap, &[10], None));
    assert_eq!(
        error,
        "the plan is damaged: rank 0, op 0 of allgather.swap: it reads and writes pieces that overlap and are not the same"
    );
}

#[test]
fn a_plan_that_does_not_verify_is_refused() {
    let mut ring = library::ring(3);
    ring.ranks[0].ops[0].target.end = 1000;
    let error = refusal(binding(&ring, &[10], Some(&sum(DType::F32))));
    assert!(error.starts_with("the plan is damaged: ") && error.contains("1000"), "{error}");
}

#[test]
fn elements_that_an_operator_prepares_lie_in_scratch() {
    let half = Expr::Binary(Binary::Mul, Expr::Float(0.5).into(), Expr::Input.into());
    let operator = UserOperator {
        name: "half_sum".into(),
        commutative: true,
        params: vec![],
        combine: Expr::Binary(Binary::Add, Expr::Left.into(), Expr::Right.into()),
        given: Some(half),
        ensure: None,
    };
    let reducer = Reducer::user(&operator, DType::F32, &[]).unwrap();
    let ring = library::ring(2);
    assert_eq!(Bound::new(binding(&ring, &[10], Some(&reducer))).unwrap().scratch_bytes(), 40);
    let average = Reducer::builtin(RedOp::Avg, DType::I32).unwrap();
    assert_eq!(Bound::new(binding(&ring, &[10], Some(&average))).unwrap().scratch_bytes(), 80);
}
