//! What plans may claim of their reductions: the order of operands, and one tree on all ranks.

use super::{EXCHANGE, RING_OF_TWO, allreduce};
use crate::plan::codes::UNFOUNDED;
use crate::plan::prove;
use coll_plan::{Claims, from_text};

fn found(text: &str) -> Claims {
    let proof = prove(&from_text(text).unwrap_or_else(|error| panic!("{error}\n{text}")));
    assert_eq!(proof.diagnostics, []);
    proof.claims
}

const NEITHER: Claims = Claims { ordered: false, same_reduction_tree: false };
const SAME: Claims = Claims { ordered: false, same_reduction_tree: true };
const BOTH: Claims = Claims { ordered: true, same_reduction_tree: true };

/// Each rank sends its value to all others and reduces, for rank r, in the order that `orders[r]` says: each entry is a
/// sender, or the rank itself for its own value. The value so far is the left operand.
fn one_shot(orders: &[[u32; 3]; 3]) -> String {
    let mut body = String::new();
    for rank in 0..3u32 {
        let others: Vec<u32> = (0..3).filter(|&other| other != rank).collect();
        // In place the first reduction overwrites the own value, so that is kept in a slot like the others.
        let slot = |from: u32| {
            let at = others.iter().position(|&other| other == from).unwrap_or(2);
            format!("slot{at}[c0:0..1]")
        };
        body += &format!("rank {rank}\n  slot 0: c0[0..1]\n  slot 1: c0[0..1]\n  slot 2: c0[0..1]\n");
        for (i, other) in others.iter().enumerate() {
            body += &format!("  lane {i}\n    op{i} send data.in[0:0..1] to r{other} channel 0\n");
        }
        for (i, other) in others.iter().enumerate() {
            let op = 2 + i;
            body += &format!("  lane {op}\n    op{op} recv {} from r{other} channel 0\n", slot(*other));
        }
        let [a, b, c] = orders[rank as usize].map(slot);
        body += "  lane 4\n    op4 copy data.in[0:0..1] to slot2[c0:0..1]\n";
        body += &format!("    op5 reduce {b} into data.out[0:0..1] with {a}");
        body += " after op0, after op1, after op2, after op3\n";
        body += &format!("    op6 reduce {c} into data.out[0:0..1]\n");
    }
    allreduce(3, 1, 0, &body)
}

#[test]
fn sides_of_an_operand_matter_for_the_order_alone() {
    assert_eq!(found(&allreduce(2, 1, 0, EXCHANGE)), SAME);
    assert_eq!(found(&allreduce(2, 2, 0, RING_OF_TWO)), SAME);
    let (head, last) = EXCHANGE.rsplit_once("reduce slot0").unwrap();
    assert_eq!(found(&allreduce(2, 1, 0, &format!("{head}reduce_left slot0{last}"))), BOTH);
}

#[test]
fn trees_are_compared_on_all_ranks() {
    assert_eq!(found(&one_shot(&[[0, 1, 2]; 3])), BOTH);
    assert_eq!(found(&one_shot(&[[1, 0, 2], [0, 1, 2], [1, 0, 2]])), SAME);
    assert_eq!(found(&one_shot(&[[2, 1, 0]; 3])), SAME);
    // (a + b) + c, and (b + c) + a: other bits in floating point.
    assert_eq!(found(&one_shot(&[[0, 1, 2], [0, 1, 2], [1, 2, 0]])), NEITHER);
    assert_eq!(found(&one_shot(&[[0, 1, 2], [1, 2, 0], [2, 0, 1]])), NEITHER);
}

/// Pieces of one value may have trees of their own, as long as each is the same on all ranks.
#[test]
fn pieces_are_compared_each_for_itself() {
    let per_piece = RING_OF_TWO.replacen(
        "recv_reduce data.out[0:1..2] from r1 channel 0 with data.in[0:1..2]",
        "recv_reduce_left data.out[0:1..2] from r1 channel 0 with data.in[0:1..2]",
        1,
    );
    assert_eq!(found(&allreduce(2, 2, 0, &per_piece)), SAME);
}

#[test]
fn a_claim_that_does_not_hold_is_refused_and_one_left_out_is_not() {
    let claimed = |orders: &[[u32; 3]; 3], claims| {
        let mut plan = from_text(&one_shot(orders)).unwrap();
        plan.claims = claims;
        let proof = prove(&plan);
        proof.diagnostics.iter().filter(|told| told.code == UNFOUNDED).count()
    };
    let turned = [[0, 1, 2], [0, 1, 2], [1, 2, 0]];
    assert_eq!(claimed(&[[0, 1, 2]; 3], BOTH), 0);
    assert_eq!(claimed(&[[0, 1, 2]; 3], NEITHER), 0);
    assert_eq!(claimed(&turned, NEITHER), 0);
    assert_eq!(claimed(&turned, SAME), 1);
    assert_eq!(claimed(&turned, BOTH), 2);
    assert_eq!(claimed(&[[2, 1, 0]; 3], BOTH), 1);
}
