//! Schedules run in one process over a seeded world of ranks that delivers bytes in any order and amount: every
//! element against a serial oracle, with inputs that differ by rank and index. Real sockets are `cli.rs`'s.

mod support;

use coll::Source;
use coll::trial::Operator;
use coll_base::{DType, RedOp};
use support::{Case, library_plan, run_world, seed};

/// The counts of the known faults: none, fewer than ranks, remainders, more than a vector.
const ELEMENTS: [u64; 7] = [0, 1, 2, 7, 57, 100, 1001];

fn check(plan: &coll_plan::Plan, case: Case) {
    if let Err(message) = run_world(plan, &case) {
        panic!("{}, {case:?}: {message}", plan.name);
    }
}

#[test]
fn every_schedule_at_every_count_in_and_out_of_place() {
    let seed = seed();
    for entry in coll::library::entries() {
        for ranks in [1, 2, 3, 5, 8] {
            let root = ranks - 1;
            let Some(plan) = library_plan(&entry, ranks, root) else { continue };
            for (at, elements) in ELEMENTS.into_iter().enumerate() {
                for in_place in [false, true] {
                    let seed = seed + at as u64;
                    check(&plan, Case { elements, in_place, seed, ..Case::new(RedOp::Sum, DType::I32) });
                }
            }
        }
    }
}

#[test]
fn every_operator_on_every_type() {
    let seed = seed();
    for name in ["ring", "recursive_doubling", "two_shot"] {
        let entry = coll::library::entry("allreduce", name).expect("it is in the library");
        let plan = library_plan(&entry, 4, 0).expect("it applies");
        for op in RedOp::ALL {
            for dtype in DType::ALL {
                let works = Case::new(op, dtype).operator.reducer(dtype).is_ok();
                for in_place in [false, true].into_iter().filter(|_| works) {
                    check(&plan, Case { elements: 57, in_place, seed, ..Case::new(op, dtype) });
                }
            }
        }
    }
}

/// B073.
#[test]
fn links_of_one_byte_do_not_stop_a_plan() {
    let seed = seed();
    for entry in coll::library::entries() {
        let Some(plan) = library_plan(&entry, 4, 1) else { continue };
        check(&plan, Case { elements: 13, link_bytes: 1, seed, ..Case::new(RedOp::Sum, DType::U8) });
    }
}

/// Known fault B001: a count that divides by neither ranks nor vectors.
#[test]
fn b001_odd_counts_over_eight_ranks() {
    let seed = seed();
    for entry in coll::library::entries().filter(|entry| entry.collective == "allreduce") {
        let Some(plan) = library_plan(&entry, 8, 0) else { continue };
        check(&plan, Case { elements: 10_587, seed, ..Case::new(RedOp::Sum, DType::F32) });
    }
}

/// Known fault B003: 57 elements over 2 ranks are 29 and 28, and nothing is lost between a scatter and a gather.
#[test]
fn b003_shares_of_a_reduce_scatter() {
    let entry = coll::library::entry("reduce_scatter", "ring").expect("it is in the library");
    let plan = library_plan(&entry, 2, 0).expect("it applies");
    assert_eq!(plan.contract.counts(57).expect("it divides"), [29, 28]);
    for ranks in 2..=9 {
        let plan = library_plan(&entry, ranks, 0).expect("it applies");
        for elements in 1..=100 {
            assert_eq!(plan.contract.counts(elements).expect("it divides").iter().sum::<u64>(), elements);
        }
    }
}

/// Known faults B006 and B007: sizes beyond 32 bits, in plans alone.
#[test]
fn b006_b007_sizes_beyond_32_bits() {
    let entry = coll::library::entry("reduce_scatter", "ring").expect("it is in the library");
    let plan = library_plan(&entry, 4, 0).expect("it applies");
    let counts = plan.contract.counts(3_200_000_000).expect("it divides");
    assert_eq!(counts, [800_000_000; 4]);
    assert_eq!(counts[..3].iter().sum::<u64>() * 4, 9_600_000_000);
    let entry = coll::library::entry("alltoall", "pairwise").expect("it is in the library");
    let plan = library_plan(&entry, 64, 0).expect("it applies");
    let counts = plan.contract.counts(64 * (64 << 20)).expect("it divides");
    assert_eq!(
        (0..63).map(|block| counts[plan.contract.class(0, 0, block) as usize]).sum::<u64>(),
        4_227_858_432
    );
}

/// Known faults B015 and B016: gather and scatter in place with every root, all-gather in place.
#[test]
fn b015_b016_in_place_with_every_root() {
    let seed = seed();
    for (op, algorithms) in [("gather", ["linear", "binomial"]), ("scatter", ["linear", "binomial"])] {
        for algorithm in algorithms {
            let entry = coll::library::entry(op, algorithm).expect("it is in the library");
            for root in 0..5 {
                let plan = library_plan(&entry, 5, root).expect("it applies");
                check(
                    &plan,
                    Case { elements: 23, in_place: true, seed, ..Case::new(RedOp::Sum, DType::F64) },
                );
            }
        }
    }
}

/// Known fault B020: ranks other than the root keep their input.
#[test]
fn b020_a_reduce_leaves_inputs_alone() {
    let seed = seed();
    for entry in coll::library::entries().filter(|entry| entry.collective == "reduce") {
        for ranks in [2, 5] {
            let Some(plan) = library_plan(&entry, ranks, 0) else { continue };
            check(
                &plan,
                Case { elements: 40, check_inputs: true, seed, ..Case::new(RedOp::Sum, DType::I64) },
            );
        }
    }
}

/// Known fault B026: cancellation gives any of several sums, and all ranks have the same bits.
#[test]
fn b026_ranks_agree_bit_for_bit_where_the_tree_is_the_same() {
    let seed = seed();
    for name in ["ring", "recursive_doubling", "rabenseifner", "reduce_broadcast", "double_tree", "two_shot"]
    {
        let entry = coll::library::entry("allreduce", name).expect("it is in the library");
        let plan = library_plan(&entry, 6, 0).expect("it applies");
        check(&plan, Case { elements: 301, same_bits: true, seed, ..Case::new(RedOp::Sum, DType::F32) });
    }
}

/// Known fault B031: operators that do not commute keep rank order.
#[test]
fn b031_an_ordered_operator_keeps_rank_order() {
    let text = "operator ordered second(a, b) = b\n";
    let source = Source::from_text("second.coll", format!("{text}\nschedule s: barrier {{}}\n"));
    let operator = Operator::User(source.module.operators()[0].clone(), Vec::new());
    let seed = seed();
    for (collective, name) in
        [("scan", "doubling"), ("scan", "chain"), ("exscan", "doubling"), ("exscan", "chain")]
    {
        let entry = coll::library::entry(collective, name).expect("it is in the library");
        for ranks in [2, 5, 8] {
            let plan = library_plan(&entry, ranks, 0).expect("it applies");
            let case = Case { elements: 9, seed, ..Case::new(RedOp::Sum, DType::I32) };
            check(&plan, Case { operator: operator.clone(), ..case });
        }
    }
}

/// The plan's own proof knows the order of operands: each reduction turned round is seen.
#[test]
fn a_plan_with_operands_turned_round_is_not_ordered() {
    use coll_plan::Action;
    let entry = coll::library::entry("scan", "doubling").expect("it is in the library");
    let plan = library_plan(&entry, 5, 0).expect("it applies");
    assert!(plan.claims.ordered && coll_check::plan::prove(&plan).claims.ordered);
    let mut turned_round = 0;
    for rank in 0..5 {
        for op in 0..plan.ranks[rank].ops.len() {
            let mut turned = plan.clone();
            match &mut turned.ranks[rank].ops[op].action {
                Action::RecvReduce { left, .. } | Action::Reduce { left } => *left = !*left,
                _ => continue,
            }
            let proof = coll_check::plan::prove(&turned);
            assert_eq!(
                proof.diagnostics.first().map(|told| told.code.0),
                Some("E0612"),
                "rank {rank}, op {op}"
            );
            turned.claims.ordered = false;
            let proof = coll_check::plan::prove(&turned);
            assert!(proof.diagnostics.is_empty() && !proof.claims.ordered, "rank {rank}, op {op}");
            turned_round += 1;
        }
    }
    assert!(turned_round > 4);
}

/// Known fault B034: one rank alone.
#[test]
fn b034_one_rank_alone() {
    let seed = seed();
    for entry in coll::library::entries() {
        let Some(plan) = library_plan(&entry, 1, 0) else { continue };
        for op in [RedOp::Sum, RedOp::Avg] {
            for in_place in [false, true] {
                check(&plan, Case { elements: 11, in_place, seed, ..Case::new(op, DType::I32) });
            }
        }
    }
}

/// Known fault B055: rank counts that are no powers of two.
#[test]
fn b055_two_to_seventeen_ranks() {
    let seed = seed();
    for (collective, name) in [
        ("barrier", "dissemination"),
        ("allreduce", "recursive_doubling"),
        ("allreduce", "rabenseifner"),
        ("broadcast", "binomial"),
    ] {
        let entry = coll::library::entry(collective, name).expect("it is in the library");
        for ranks in 2..=17 {
            let plan = library_plan(&entry, ranks, ranks / 2).expect("it applies");
            check(&plan, Case { elements: 35, seed, ..Case::new(RedOp::Sum, DType::I32) });
        }
    }
}

/// Known fault B111: nothing that one operation leaves behind spoils the next.
#[test]
fn b111_operations_follow_each_other() {
    let seed = seed();
    for entry in coll::library::entries() {
        let Some(plan) = library_plan(&entry, 4, 0) else { continue };
        check(&plan, Case { elements: 57, operations: 3, seed, ..Case::new(RedOp::Sum, DType::I32) });
    }
}

/// Known fault B056: rank counts beyond a byte. What is proved holds for every element.
#[test]
fn b056_more_ranks_than_a_byte_counts() {
    let entry = coll::library::entry("allgather", "bruck").expect("it is in the library");
    for ranks in [255, 256, 257] {
        let plan = library_plan(&entry, ranks, 0).expect("it applies");
        assert_eq!(plan.contract.ensures_of(ranks - 1).len(), ranks as usize);
    }
}

/// Known fault B002: a two-level all-reduce of 8 elements over nodes of 6 ranks.
#[test]
fn b002_two_levels_and_fewer_elements_than_pieces() {
    let source = Source::builtin("allreduce", "two_level").expect("it is in the library");
    let instance = coll::Instance { ranks: 12, root: 0, params: vec![("local".into(), 6)] };
    let coll::Outcome::Right(proved) = coll::prove(&source, 0, &instance, &coll::Options::default()) else {
        panic!("two_level keeps its contract on 2 nodes of 6");
    };
    let seed = seed();
    for in_place in [false, true] {
        check(&proved.plan, Case { elements: 8, in_place, seed, ..Case::new(RedOp::Sum, DType::F32) });
    }
}

/// Known faults B017 and B018: every all-reduce in place, a sum and a minimum.
#[test]
fn b017_b018_every_allreduce_in_place() {
    let seed = seed();
    for entry in coll::library::entries().filter(|entry| entry.collective == "allreduce") {
        let Some(plan) = library_plan(&entry, 4, 0) else { continue };
        for op in [RedOp::Sum, RedOp::Min] {
            check(&plan, Case { elements: 33, in_place: true, seed, ..Case::new(op, DType::F64) });
        }
    }
}

/// Known fault B112: the first call is a large one.
#[test]
fn b112_the_first_call_is_large() {
    let seed = seed();
    for entry in coll::library::entries().filter(|entry| entry.collective == "alltoall") {
        let Some(plan) = library_plan(&entry, 4, 0) else { continue };
        check(
            &plan,
            Case { elements: 1 << 17, link_bytes: 1 << 16, seed, ..Case::new(RedOp::Sum, DType::I32) },
        );
    }
}
