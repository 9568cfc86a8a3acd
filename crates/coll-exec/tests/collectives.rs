//! Hand-made plans in worlds: right values whatever the seed, the counts, the type, the operator and the placement.

mod plans;

use coll_base::{DType, RedOp};
use coll_exec::world::World;
use coll_plan::Plan;
use plans::{Call, library};

const COUNTS: [u64; 6] = [0, 1, 2, 3, 7, 100];

/// In place and out of place, in a tight world and in a roomy one.
fn check(plan: &Plan, dtype: DType, op: RedOp, counts: &[u64], seed: u64) {
    for in_place in [false, true] {
        let call = Call { plan, dtype, op, counts, in_place };
        call.check(World::new(seed).link_bytes(1), 1);
        call.check(World::new(seed).link_bytes(97).piece_bytes_max(13), 1);
        call.check(World::new(seed), 1);
    }
}

#[test]
fn ring_all_reduce_of_every_count() {
    for n in 1..=5 {
        for count in COUNTS {
            check(&library::ring(n), DType::F32, RedOp::Sum, &[count], u64::from(n) * 1000 + count);
        }
    }
}

#[test]
fn ring_all_reduce_of_every_type_and_operator() {
    for dtype in DType::ALL {
        for op in RedOp::ALL.into_iter().filter(|&op| plans::works(op, dtype)) {
            check(&library::ring(3), dtype, op, &[7], 3);
        }
    }
}

#[test]
fn an_exchange_is_staged_in_a_slot() {
    for count in COUNTS {
        for op in RedOp::ALL.into_iter().filter(|&op| plans::works(op, DType::I32)) {
            check(&library::exchange(), DType::I32, op, &[count], count);
        }
    }
}

#[test]
fn a_chain_passes_on_what_has_come_so_far() {
    for n in 1..=5 {
        for pieces in [1, 3, 16] {
            for count in [0, 1, 7, 100] {
                check(&library::chain(n, pieces), DType::I64, RedOp::Sum, &[count], count);
            }
        }
    }
}

#[test]
fn a_reduce_keeps_its_partial_sums_in_memory_of_its_own() {
    for n in 1..=4 {
        for count in COUNTS {
            for op in [RedOp::Sum, RedOp::Avg, RedOp::Max] {
                check(&library::reduce_chain(n), DType::F64, op, &[count], count);
                check(&library::reduce_chain(n), DType::U8, op, &[count], count);
            }
        }
    }
}

#[test]
fn blocks_of_unequal_counts() {
    check(&library::all_gather(3), DType::I32, RedOp::Sum, &[3, 0, 7], 1);
    check(&library::all_gather(4), DType::U8, RedOp::Sum, &[1, 2, 3, 100], 2);
    let counts: Vec<u64> = (0..9).map(|pair| [0, 5, 1][pair % 3] * pair as u64).collect();
    check(&library::all_to_all(3), DType::F16, RedOp::Sum, &counts, 3);
}

#[test]
fn averages_of_prefixes_divide_by_the_length_of_each() {
    for dtype in DType::ALL {
        for op in [RedOp::Avg, RedOp::Sum, RedOp::Land, RedOp::Maxloc] {
            if plans::works(op, dtype) {
                check(&library::scan_chain(4), dtype, op, &[7], 5);
            }
        }
    }
}

#[test]
fn barriers_have_no_data_at_all() {
    for n in 1..=5 {
        check(&library::barrier(n), DType::U8, RedOp::Sum, &[], n.into());
    }
}

#[test]
fn operations_follow_each_other_without_a_barrier() {
    let plan = library::ring(4);
    for seed in 0..20 {
        let call = Call { plan: &plan, dtype: DType::I32, op: RedOp::Sum, counts: &[37], in_place: false };
        call.check(World::new(seed).link_bytes(64), 10);
    }
}

#[test]
fn message_slots_let_both_send_first() {
    let plan = library::eager(3);
    for seed in 0..10 {
        for count in [0, 2, 100] {
            for rounds in [1, 4] {
                let call = Call {
                    plan: &plan,
                    dtype: DType::I32,
                    op: RedOp::Sum,
                    counts: &[count],
                    in_place: false,
                };
                call.check(World::new(seed).link_bytes(1), rounds);
                call.check(World::new(seed).link_bytes(50).piece_bytes_max(7), rounds);
            }
        }
    }
}

/// Ranks read in each other's memory, in reductions, copies, chains and with elements that are cut anywhere.
#[test]
fn messages_that_are_lent() {
    let exchanged: Vec<u64> = (0..9).map(|pair| [0, 3000, 1101][pair % 3] * pair as u64).collect();
    let cases: [(Plan, Vec<u64>); 7] = [
        (library::ring(3), vec![9000]),
        (library::exchange(), vec![5000]),
        (library::chain(3, 2), vec![5000]),
        (library::reduce_chain(4), vec![2100]),
        (library::scan_chain(3), vec![3001]),
        (library::all_gather(3), vec![3000, 0, 2222]),
        (library::all_to_all(3), exchanged),
    ];
    for (plan, counts) in &cases {
        for seed in 0..6 {
            for in_place in [false, true] {
                let call = Call { plan, dtype: DType::F64, op: RedOp::Sum, counts, in_place };
                let world = || World::new(seed).lend_bytes(1 + 7000 * (seed % 3));
                let rounds = if in_place { 1 } else { 3 };
                call.check(world().link_bytes(20), rounds);
                call.check(world(), rounds);
            }
        }
    }
}

/// What goes to several peers is written once: from a rank's own block, and from one that is still coming.
#[test]
fn messages_that_several_peers_read() {
    let cases: [(Plan, Vec<u64>); 3] = [
        (library::all_gather(6), vec![3000, 0, 2222, 1, 9000, 1100]),
        (library::fan(6), vec![10_001]),
        (library::fan(4), vec![17_000]),
    ];
    for (plan, counts) in &cases {
        let shares = |part| coll_plan::shared_sends(part).iter().any(Option::is_some);
        assert!(plan.ranks.iter().any(shares), "{}", plan.name);
        for seed in 0..4 {
            for in_place in [false, true] {
                let call = Call { plan, dtype: DType::F64, op: RedOp::Sum, counts, in_place };
                let world = || World::new(seed).lend_bytes(1 + 9000 * (seed % 2)).ordinary_memory();
                let rounds = if in_place { 1 } else { 3 };
                // Of other machines none reads a stage; of five peers two or four are near.
                for ranks_per_host in [3, 5, 6] {
                    call.check(world().ranks_per_host(ranks_per_host).link_bytes(300), rounds);
                    call.check(world().ranks_per_host(ranks_per_host), rounds);
                }
            }
        }
    }
}

/// Payloads with checksums, cut anywhere, with message slots and without.
#[test]
fn messages_with_checksums() {
    for count in [0, 1, 7, 3000] {
        let plans = [library::ring(3), library::chain(3, 2), library::scan_chain(3), library::eager(3)];
        for (plan, dtype) in plans.iter().zip([DType::F16, DType::I64, DType::F64, DType::I32]) {
            for in_place in [false, true] {
                let rounds = if in_place { 1 } else { 2 };
                let call = Call { plan, dtype, op: RedOp::Sum, counts: &[count], in_place };
                call.check(World::new(count).checksums().link_bytes(3), rounds);
                call.check(World::new(count).checksums(), rounds);
            }
        }
    }
}

#[test]
fn large_messages_take_many_turns() {
    let plan = library::ring(3);
    let call = Call { plan: &plan, dtype: DType::F32, op: RedOp::Sum, counts: &[1_000_003], in_place: true };
    call.check(World::new(7).link_bytes(1 << 20).piece_bytes_max(1 << 20), 1);
    let plan = library::chain(3, 2);
    let call = Call { plan: &plan, dtype: DType::F64, op: RedOp::Sum, counts: &[400_001], in_place: false };
    call.check(World::new(7).link_bytes(1 << 20).piece_bytes_max(1 << 20), 1);
}
