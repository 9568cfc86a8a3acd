//! The bounds of the well-known collectives, and of some that nobody has named.

use coll_base::Fraction;
use coll_contract::{Blocks, BufferDecl, BufferRole, Classes, Contract, Ensure, Leaf, Value, bounds};

/// Rank, buffer, block, and the leaves `(rank, buffer, block)` that are reduced there.
type Fact = (u32, u32, u32, Vec<(u32, u32, u32)>);

/// A contract from its facts.
fn contract(ranks: u32, blocks: &[u32], facts: Vec<Fact>) -> Contract {
    let mut values: Vec<Value> = Vec::new();
    let mut ids = std::collections::HashMap::new();
    let mut ensures: Vec<Ensure> = Vec::new();
    for (rank, buffer, block, leaves) in facts {
        let leaf = |&(rank, buffer, block): &(u32, u32, u32)| Leaf { rank, buffer, block };
        let value = Value::Reduce(leaves.iter().map(leaf).collect());
        let value = *ids.entry(value.clone()).or_insert_with(|| {
            values.push(value);
            values.len() as u32 - 1
        });
        ensures.push(Ensure { rank, buffer, block, value });
    }
    ensures.sort_by_key(|e| (e.rank, e.buffer, e.block));
    let decl = |&blocks: &u32| BufferDecl { name: "data".into(), role: BufferRole::InOut, blocks };
    let width: u32 = blocks.iter().sum();
    Contract {
        collective: "test".into(),
        ranks,
        only: None,
        buffers: blocks.iter().map(decl).collect(),
        given: blocks.iter().map(|_| Blocks::All).collect(),
        ensures,
        values,
        after: Vec::new(),
        classes: Classes { count: 1, table: vec![0; (width * ranks) as usize] },
    }
}

fn every(n: u32) -> Vec<(u32, u32, u32)> {
    (0..n).map(|q| (q, 0, 0)).collect()
}

fn pairs(n: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..n).flat_map(move |r| (0..n).map(move |q| (r, q)))
}

#[track_caller]
fn check(contract: &Contract, sent: (u32, u32), received: (u32, u32), rounds: u32) {
    let found = bounds(contract);
    let fraction = |(top, bottom): (u32, u32)| Fraction::new(top as u64, bottom as u64);
    assert_eq!(found.sent_max, fraction(sent), "sent");
    assert_eq!(found.received_max, fraction(received), "received");
    assert_eq!(found.rounds_one_port, rounds, "rounds");
}

fn ceil_log2(n: u32) -> u32 {
    n.next_power_of_two().trailing_zeros()
}

#[test]
fn the_well_known_ones_are_exact() {
    for n in 1..=17 {
        let rounds = ceil_log2(n);
        let one = if n > 1 { 1 } else { 0 };
        let all = (0..n).map(|r| (r, 0, 0, every(n))).collect();
        check(&contract(n, &[1], all), (2 * (n - 1), n), (2 * (n - 1), n), rounds);
        let gathered = pairs(n).map(|(r, q)| (r, 0, q, vec![(q, 0, q)])).collect();
        check(&contract(n, &[n], gathered), (n - 1, n), (n - 1, n), rounds);
        let scattered = (0..n).map(|r| (r, 0, r, (0..n).map(|q| (q, 0, r)).collect())).collect();
        check(&contract(n, &[n], scattered), (n - 1, n), (n - 1, n), rounds);
        let exchanged = pairs(n).map(|(r, q)| (r, 1, q, vec![(q, 0, r)])).collect();
        check(&contract(n, &[n, n], exchanged), (n - 1, n), (n - 1, n), rounds);
        let root = n / 2;
        let broadcast = (0..n).map(|r| (r, 0, 0, vec![(root, 0, 0)])).collect();
        check(&contract(n, &[1], broadcast), (one, 1), (one, 1), rounds);
        check(&contract(n, &[1], vec![(root, 0, 0, every(n))]), (one, 1), (one, 1), rounds);
        let scatter = (0..n).map(|r| (r, 0, r, vec![(root, 0, r)])).collect();
        check(&contract(n, &[n], scatter), (n - 1, n), (one, n), rounds);
        let gather = (0..n).map(|q| (root, 0, q, vec![(q, 0, q)])).collect();
        check(&contract(n, &[n], gather), (one, n), (n - 1, n), rounds);
    }
}

#[test]
fn a_scan_needs_what_its_last_rank_needs() {
    for n in 2..=9 {
        let scan = (0..n).map(|r| (r, 0, 0, every(r + 1))).collect();
        check(&contract(n, &[1], scan), (1, 1), (1, 1), ceil_log2(n));
    }
}

#[test]
fn a_shift_is_one_message_each_and_a_reversal_in_place_is_free_for_the_middle() {
    let shift = (0..6).map(|r| (r, 0, 0, vec![((r + 1) % 6, 0, 0)])).collect();
    check(&contract(6, &[1], shift), (1, 1), (1, 1), 1);
    let one_to_itself = vec![(1, 0, 0, vec![(1, 0, 0)])];
    check(&contract(3, &[1], one_to_itself), (0, 1), (0, 1), 0);
}

#[test]
fn values_that_share_leaves_may_share_messages() {
    // Rank 2 wants x0 + x1 and also x0 + x1 + x2: one message serves both.
    let both = vec![(2, 0, 0, vec![(0, 0, 0), (1, 0, 0)]), (2, 0, 1, vec![(0, 0, 0), (1, 0, 0), (2, 0, 0)])];
    check(&contract(3, &[2], both), (1, 2), (1, 2), 2);
    // It wants x0, and x1, and x0 + x1: two messages, and the sum is made at home.
    let three =
        vec![(2, 0, 0, vec![(0, 0, 0)]), (2, 0, 1, vec![(1, 0, 0)]), (2, 0, 2, vec![(0, 0, 0), (1, 0, 0)])];
    check(&contract(3, &[3], three), (1, 3), (2, 3), 2);
}

#[test]
fn entries_count_as_rounds_and_nothing_else() {
    for n in 1..=9 {
        let mut barrier = contract(n, &[], Vec::new());
        barrier.after = pairs(n).filter(|(r, q)| r != q).collect();
        check(&barrier, (0, 1), (0, 1), ceil_log2(n));
    }
}

#[test]
fn contracts_without_facts_ask_nothing() {
    check(&contract(4, &[1], Vec::new()), (0, 1), (0, 1), 0);
    check(&contract(0, &[1], Vec::new()), (0, 1), (0, 1), 0);
}
