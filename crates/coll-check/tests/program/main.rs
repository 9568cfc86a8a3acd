//! What the judge says of programs that are right, and of programs with one known fault.

mod build;
mod random;
mod waste;

use build::{At, Build, OTHER_FILE, contract, in_place, sum_everywhere};
use coll_contract::{Blocks, BufferDecl, BufferRole, Contract, Leaf};
use coll_ir::Kind;
use expect_test::{Expect, expect};

fn check(build: &Build, expect: Expect) {
    expect.assert_eq(&build.told());
}

fn check_facts(build: &Build, expect: Expect) {
    assert!(build.prove().ok(), "{}", build.told());
    expect.assert_eq(&build.facts());
}

const REDUCE_SCATTER: &str = "send data[(r - s) % n] to (r + 1) % n reduce";
const ALL_GATHER: &str = "send data[(r + 1 - s) % n] to (r + 1) % n";

/// A ring all-reduce of which `twist` may change, double or leave out transfers of the given loop, step and rank.
fn ring(n: u32, twist: impl Fn(u32, u32, u32, u32) -> Vec<(Kind, u32)>) -> Build {
    let mut build = Build::new(sum_everywhere(n), n);
    for (text, phase) in [(REDUCE_SCATTER, 0), (ALL_GATHER, 1)] {
        for s in 0..n - 1 {
            build.step();
            for r in 0..n {
                let chunk = (r + phase + n - s) % n;
                for (kind, chunk) in twist(phase, s, r, chunk) {
                    let bindings = [("s", s as i64), ("r", r as i64)];
                    let to = (r + 1) % n;
                    build.some(text, &bindings, kind, (r, 0, 0), (to, 0, 0), chunk..chunk + 1);
                }
            }
        }
    }
    build
}

fn right(phase: u32, chunk: u32) -> Vec<(Kind, u32)> {
    vec![(if phase == 0 { Kind::Reduce } else { Kind::Move }, chunk)]
}

#[test]
fn a_ring_keeps_its_contract_at_the_least_cost_for_every_number_of_ranks() {
    for n in 1..=9 {
        let build = ring(n, |phase, _, _, chunk| right(phase, chunk));
        let proof = build.prove();
        assert_eq!(build.told(), "");
        let facts = proof.properties;
        assert_eq!((facts.steps, facts.messages_max), (2 * (n - 1), 2 * (n - 1)));
        assert_eq!(facts.sent_max, facts.bounds.sent_max);
        assert_eq!(facts.received_max, facts.bounds.received_max);
        assert_eq!((facts.same_reduction_tree, facts.equal_blocks_only), (true, None));
        assert_eq!(facts.ordered, n <= 1, "chunks of a ring start at different ranks");
    }
    check_facts(
        &ring(4, |phase, _, _, chunk| right(phase, chunk)),
        expect![
            "6 steps (least 2), sends 3/2 (least 3/2), receives 3/2 (least 3/2), 6 messages, scratch 0, same tree"
        ],
    );
}

#[test]
fn a_loop_that_stops_early_is_blamed_and_not_the_last_write() {
    let n = 4;
    let first =
        ring(n, |phase, s, _, chunk| if phase == 0 && s == n - 2 { vec![] } else { right(phase, chunk) });
    check(
        &first,
        expect![[r#"
        E0502: rank 0 ends with data[0] = x3: ranks 0, 1 and 2 are missing
          at `send data[(r - s) % n] to (r + 1) % n reduce`: x0 gets no further than this send, in step 1 (s = 1, r = 1), from rank 1 to rank 2
          and `send data[(r + 1 - s) % n] to (r + 1) % n`: what rank 2 has of it is replaced by this send, in step 5 (s = 2, r = 1), from rank 1 to rank 2
          expected: data[0] = x0 + x1 + x2 + x3
          found: data[0] = x3
          note: no rank holds x0 at the end
          note: xR is what data[0] of rank R holds at the start
          note: the same is true of 15 other places
          help: one more step of this kind, or another send, has to bring x0 to rank 0
    "#]],
    );
    let second =
        ring(n, |phase, s, _, chunk| if phase == 1 && s == n - 2 { vec![] } else { right(phase, chunk) });
    check(
        &second,
        expect![[r#"
        E0502: rank 0 ends with data[2] = x0 + x2 + x3: rank 1 is missing
          at `send data[(r + 1 - s) % n] to (r + 1) % n`: x1 gets no further than this send, in step 4 (s = 1, r = 2), from rank 2 to rank 3
          expected: data[2] = x0 + x1 + x2 + x3
          found: data[2] = x0 + x2 + x3
          note: ranks 1, 2 and 3 hold x1 at the end, in data[2]
          note: xR is what data[2] of rank R holds at the start
          note: the same is true of 3 other places
          help: one more step of this kind, or another send, has to bring x1 to rank 0
    "#]],
    );
}

#[test]
fn what_is_counted_twice_is_blamed_on_the_second_time() {
    let reduce_again =
        ring(
            4,
            |phase, s, r, chunk| {
                if (phase, s, r) == (1, 1, 0) { vec![(Kind::Reduce, chunk)] } else { right(phase, chunk) }
            },
        );
    check(
        &reduce_again,
        expect![[r#"
        E0503: rank 1 ends with data[0] = x0 + x0 + x1 + x1 + x2 + x3: rank 0 is counted twice
          at `send data[(r + 1 - s) % n] to (r + 1) % n`: the second time came with this send, in step 4 (s = 1, r = 0), from rank 0 to rank 1
          and `send data[(r - s) % n] to (r + 1) % n reduce`: the first time came with this send, in step 0 (s = 0, r = 0), from rank 0 to rank 1
          expected: data[0] = x0 + x1 + x2 + x3
          found: data[0] = x0 + x0 + x1 + x1 + x2 + x3
          note: xR is what data[0] of rank R holds at the start
          note: the same is true of 1 other place
          help: send what rank 0 is not in yet, or leave out `reduce` where what arrives is already complete
    "#]],
    );
    let doubled = ring(4, |phase, s, r, chunk| {
        if (phase, s, r) == (0, 1, 2) { vec![(Kind::Reduce, chunk); 2] } else { right(phase, chunk) }
    });
    check(
        &doubled,
        expect![[r#"
        E0503: rank 0 ends with data[1] = x0 + x1 + x1 + x2 + x2 + x3: rank 1 is counted twice
          at `send data[(r - s) % n] to (r + 1) % n reduce`: the second time came with this send, in step 1 (s = 1, r = 2), from rank 2 to rank 3
          and `send data[(r - s) % n] to (r + 1) % n reduce`: the first time came with this send, in step 1 (s = 1, r = 2), from rank 2 to rank 3
          expected: data[1] = x0 + x1 + x2 + x3
          found: data[1] = x0 + x1 + x1 + x2 + x2 + x3
          note: xR is what data[1] of rank R holds at the start
          note: the same is true of 3 other places
          help: send what rank 1 is not in yet, or leave out `reduce` where what arrives is already complete
    "#]],
    );
}

#[test]
fn a_reduce_that_was_forgotten_is_where_values_are_lost() {
    let build = ring(3, |_, _, _, chunk| vec![(Kind::Move, chunk)]);
    check(
        &build,
        expect![[r#"
        E0502: rank 0 ends with data[0] = x0: ranks 1 and 2 are missing
          at `send data[(r - s) % n] to (r + 1) % n reduce`: x2 is lost on rank 2 by this send, in step 1 (s = 1, r = 1), from rank 1 to rank 2
          expected: data[0] = x0 + x1 + x2
          found: data[0] = x0
          note: xR is what data[0] of rank R holds at the start
          note: the same is true of 8 other places
          help: add to it with `reduce`, or send x2 on before it is replaced
    "#]],
    );
}

#[test]
fn a_wrong_index_is_told_by_what_it_does() {
    let build = ring(4, |phase, s, r, chunk| {
        let wrong = (phase, s, r) == (0, 2, 1);
        right(phase, if wrong { (chunk + 1) % 4 } else { chunk })
    });
    check(
        &build,
        expect![[r#"
        E0502: rank 0 ends with data[3] = x2: ranks 0, 1 and 3 are missing
          at `send data[(r - s) % n] to (r + 1) % n reduce`: x0 gets no further than this send, in step 1 (s = 1, r = 0), from rank 0 to rank 1
          and `send data[(r + 1 - s) % n] to (r + 1) % n`: what rank 1 has of it is replaced by this send, in step 5 (s = 2, r = 0), from rank 0 to rank 1
          expected: data[3] = x0 + x1 + x2 + x3
          found: data[3] = x2
          note: no rank holds x0 at the end
          note: xR is what data[3] of rank R holds at the start
          note: the same is true of 3 other places
          help: one more step of this kind, or another send, has to bring x0 to rank 0
    "#]],
    );
}

#[test]
fn a_rank_that_never_sends_is_named() {
    let mut build = Build::new(in_place(4, 1, vec![(0, 0, (0..4).map(|q| (q, 0)).collect())]), 1);
    build.step();
    for r in [1, 2] {
        build.whole("send data from r to 0 reduce", &[("r", r as i64)], Kind::Reduce, (r, 0, 0), (0, 0, 0));
    }
    check(
        &build,
        expect![[r#"
        E0502: rank 0 ends with data = x0 + x1 + x2: rank 3 is missing
          at `send data from r to 0 reduce`: the last write is this send, in step 0 (r = 2), from rank 2 to rank 0
          expected: data = x0 + x1 + x2 + x3
          found: data = x0 + x1 + x2
          note: rank 3 never sends x3
          note: xR is what data of rank R holds at the start
          help: send x3 from rank 3 on its way to rank 0
    "#]],
    );
}

#[test]
fn transfers_of_a_step_read_what_was_there_as_it_began() {
    let swapped = in_place(2, 1, vec![(0, 0, vec![(1, 0)]), (1, 0, vec![(0, 0)])]);
    let mut build = Build::new(swapped, 1);
    build.step();
    build.whole("send data to 1 - r", &[("r", 0)], Kind::Move, (0, 0, 0), (1, 0, 0));
    build.whole("send data to 1 - r", &[("r", 1)], Kind::Move, (1, 0, 0), (0, 0, 0));
    check_facts(
        &build,
        expect![
            "1 steps (least 1), sends 1 (least 1), receives 1 (least 1), 1 messages, scratch 0, ordered, same tree"
        ],
    );
    let swapped = in_place(2, 1, vec![(0, 0, vec![(1, 0)]), (1, 0, vec![(0, 0)])]);
    let mut build = Build::new(swapped, 1);
    for r in 0..2 {
        build.step();
        build.whole("send data to 1 - r", &[("r", r)], Kind::Move, (r as u32, 0, 0), (1 - r as u32, 0, 0));
    }
    check(
        &build,
        expect![[r#"
        E0505: rank 0 ends with data = x0 and not x1
          at `send data to 1 - r`: put there by this send, in step 1 (r = 1), from rank 1 to rank 0
          and `send data to 1 - r`: what rank 1 has of it is replaced by this send, in step 0 (r = 0), from rank 0 to rank 1
          expected: data = x1
          found: data = x0
          note: no rank holds x1 at the end
          note: xR is what data of rank R holds at the start
          help: check what this transfer reads and where it writes
    "#]],
    );
}

fn scan(n: u32, kind: Kind) -> Build {
    let facts = (0..n).map(|r| (r, 0, (0..=r).map(|q| (q, 0)).collect())).collect();
    let mut build = Build::new(in_place(n, 1, facts), 1);
    for d in [1, 2, 4].into_iter().filter(|&d| d < n) {
        build.step();
        for r in 0..n - d {
            build.whole("send data to r + d reduce left", &[("r", r as i64)], kind, (r, 0, 0), (r + d, 0, 0));
        }
    }
    build
}

#[test]
fn a_scan_keeps_rank_order_only_if_what_arrives_goes_left() {
    check_facts(
        &scan(6, Kind::ReduceLeft),
        expect![
            "2 steps (least 3), sends 3 (least 1), receives 3 (least 1), 3 messages, scratch 0, ordered, same tree"
        ],
    );
    check_facts(
        &scan(6, Kind::Reduce),
        expect![
            "2 steps (least 3), sends 3 (least 1), receives 3 (least 1), 3 messages, scratch 0, same tree"
        ],
    );
}

#[test]
fn recursive_doubling_has_one_tree_up_to_commutation() {
    let mut build = Build::new(sum_everywhere(8), 1);
    for d in [1, 2, 4] {
        build.step();
        for r in 0..8u32 {
            let bindings = [("d", d as i64), ("r", r as i64)];
            build.whole("send data to r ^ d reduce", &bindings, Kind::Reduce, (r, 0, 0), (r ^ d, 0, 0));
        }
    }
    check_facts(
        &build,
        expect![
            "3 steps (least 3), sends 3 (least 7/4), receives 3 (least 7/4), 3 messages, scratch 0, same tree"
        ],
    );
}

#[test]
fn one_shot_in_place_has_a_tree_of_its_own_on_each_rank() {
    let mut build = Build::new(sum_everywhere(4), 1);
    build.step();
    for r in 0..4 {
        for q in (0..4).filter(|&q| q != r) {
            build.whole("send data to q reduce", &[("r", r as i64)], Kind::Reduce, (r, 0, 0), (q, 0, 0));
        }
    }
    check_facts(
        &build,
        expect!["1 steps (least 2), sends 3 (least 3/2), receives 3 (least 3/2), 3 messages, scratch 0"],
    );
}

fn barrier(n: u32, rounds: u32) -> Build {
    let mut none = contract(n, Vec::new(), Vec::new(), Vec::new());
    none.after = (0..n).flat_map(|r| (0..n).map(move |q| (r, q))).filter(|(r, q)| r != q).collect();
    let mut build = Build::new(none, 1);
    for k in 0..rounds {
        build.step();
        for r in 0..n {
            build.signal(
                "signal (r + (1 << k)) % n",
                &[("k", k as i64), ("r", r as i64)],
                r,
                (r + (1 << k)) % n,
            );
        }
    }
    build
}

#[test]
fn a_barrier_of_enough_rounds_holds_and_one_round_less_does_not() {
    for n in 1..=9u32 {
        let rounds = n.next_power_of_two().trailing_zeros();
        assert!(barrier(n, rounds).prove().ok());
        assert_eq!(barrier(n, rounds).prove().properties.steps, rounds);
        assert!(n == 1 || !barrier(n, rounds - 1).prove().ok());
    }
    check_facts(
        &barrier(5, 3),
        expect![
            "3 steps (least 3), sends 0 (least 0), receives 0 (least 0), 3 messages, scratch 0, ordered, same tree"
        ],
    );
    check(
        &barrier(5, 2),
        expect![[r#"
        E0506: rank 0 may leave before rank 1 has entered
          at `signal (r + (1 << k)) % n`: word of rank 1 gets no further than this signal, in step 1 (k = 1, r = 1), from rank 1 to rank 3
          expected: rank 0 hears, by signals, of rank 1
          found: rank 0 hears of ranks 2, 3 and 4
          note: the same is true of 4 other pairs of ranks
          help: one more step of this kind, or another signal, has to carry it to rank 0
    "#]],
    );
    check(
        &barrier(2, 0),
        expect![[r#"
            E0506: rank 0 may leave before rank 1 has entered
              at ``: with n = 2 it has no steps
              expected: rank 0 hears, by signals, of rank 1
              found: rank 0 hears of no rank
              note: rank 1 never signals
              note: the same is true of 1 other pair of ranks
              help: a signal of rank 1 has to reach rank 0, through others or by itself
        "#]],
    );
}

/// Rank 0's data to all, by a tree; rank 0 alone is given anything.
fn tree(n: u32, rounds: u32) -> Build {
    let mut broadcast = in_place(n, 1, (0..n).map(|r| (r, 0, vec![(0, 0)])).collect());
    broadcast.given = vec![Blocks::Listed(vec![(0, 0)])];
    let mut build = Build::new(broadcast, 1);
    for k in 0..rounds {
        build.step();
        let d = 1 << k;
        for v in (0..d).filter(|v| v + d < n) {
            build.whole(
                "send data to v + d",
                &[("k", k as i64), ("v", v as i64)],
                Kind::Move,
                (v, 0, 0),
                (v + d, 0, 0),
            );
        }
    }
    build
}

#[test]
fn a_broadcast_that_stops_early_leaves_ranks_with_nothing() {
    check_facts(
        &tree(6, 3),
        expect![
            "2 steps (least 3), sends 3 (least 1), receives 1 (least 1), 3 messages, scratch 0, ordered, same tree"
        ],
    );
    check(
        &tree(6, 2),
        expect![[r#"
        E0501: rank 4 ends with nothing in data
          at `send data to v + d`: 0.data gets no further than this send, in step 1 (k = 1, v = 0), from rank 0 to rank 2
          expected: data = 0.data
          found: data = nothing
          note: ranks 0, 1, 2 and 3 hold 0.data at the end, in data
          note: the same is true of 1 other place
          help: one more step of this kind, or another send, has to bring 0.data to rank 4
    "#]],
    );
}

#[test]
fn reading_what_holds_nothing_says_why_it_holds_nothing() {
    let mut never = tree(4, 0).scratch("tmp", &[2, 2]);
    never.step();
    never.whole("send tmp[1, 0] to r + 1 as data", &[("r", 0)], Kind::Move, (0, 1, 2), (1, 0, 0));
    never.step();
    never.whole("send data from 2 to 3 reduce", &[], Kind::Reduce, (2, 0, 0), (3, 0, 0));
    never.step();
    never.whole("send data to 2", &[], Kind::Move, (0, 0, 0), (2, 0, 0));
    check(
        &never,
        expect![[r#"
        E0450: rank 0 reads tmp[1, 0], which holds nothing
          at `send tmp[1, 0] to r + 1 as data`: read by this send, in step 0 (r = 0), from rank 0 to rank 1
          note: nothing is written into this slot before
          help: write it in an earlier step: within one, every transfer reads what was there as the step began

        E0450: rank 2 reads data, which holds nothing
          at `send data from 2 to 3 reduce`: read by this send, in step 1, from rank 2 to rank 3
          and `send data to 2`: it is first written by this send, in step 2, from rank 0 to rank 2
          note: the contract gives rank 2 nothing there, and nothing is written there before
          help: write it in an earlier step: within one, every transfer reads what was there as the step began

        E0451: rank 3 reduces into data, which holds nothing
          at `send data from 2 to 3 reduce`: reduced by this send, in step 1, from rank 2 to rank 3
          note: the contract gives rank 3 nothing there, and nothing is written there before
          help: the first to come is a plain write: leave out `reduce` there
    "#]],
    );
    let mut dropped = tree(2, 0);
    dropped.step();
    dropped.whole("scatter.binomial(data)", &[], Kind::Drop, (0, 0, 0), (0, 0, 0));
    dropped.step();
    dropped.whole("send data to 1", &[], Kind::Move, (0, 0, 0), (1, 0, 0));
    dropped.whole("send data to 0 reduce", &[], Kind::Reduce, (1, 0, 0), (0, 0, 0));
    check(
        &dropped,
        expect![[r#"
        E0450: rank 0 reads data, which holds nothing
          at `send data to 1`: read by this send, in step 1, from rank 0 to rank 1
          and `scatter.binomial(data)`: the contract of this call says nothing of it: it holds nothing afterwards
          help: read before the call, or only what the call's contract ensures

        E0450: rank 1 reads data, which holds nothing
          at `send data to 0 reduce`: read by this send, in step 1, from rank 1 to rank 0
          note: the contract gives rank 1 nothing there, and nothing is written there before
          help: write it in an earlier step: within one, every transfer reads what was there as the step began

        E0451: rank 0 reduces into data, which holds nothing
          at `send data to 0 reduce`: reduced by this send, in step 1, from rank 1 to rank 0
          and `scatter.binomial(data)`: the contract of this call says nothing of it: it holds nothing afterwards
          help: the first to come is a plain write: leave out `reduce` there
    "#]],
    );
}

fn exchange(n: u32) -> Contract {
    let buffer = |name: &str, role| BufferDecl { name: name.into(), role, blocks: n };
    let pairs = (0..n).flat_map(|r| (0..n).map(move |q| (r, q)));
    let facts = pairs.map(|(r, q)| ((r, 1, q), vec![Leaf { rank: q, buffer: 0, block: r }]));
    let classes = (0..n).flat_map(|r| (0..n).map(move |q| r * n + q).chain((0..n).map(move |q| q * n + r)));
    let buffers = vec![buffer("input", BufferRole::In), buffer("output", BufferRole::Out)];
    contract(n, buffers, facts.collect(), classes.collect())
}

fn direct(n: u32, twist: impl Fn(u32, u32) -> (At, At)) -> Build {
    let mut build = Build::new(exchange(n), 1);
    build.step();
    for r in 0..n {
        for q in 0..n {
            let (from, to) = twist(r, q);
            build.whole(
                "send input[q] to q as output[r]",
                &[("r", r as i64), ("q", q as i64)],
                Kind::Move,
                from,
                to,
            );
        }
    }
    build
}

#[test]
fn blocks_are_named_before_pieces_and_wrong_ones_are_told_apart() {
    check_facts(
        &direct(3, |r, q| ((r, 0, q), (q, 1, r))),
        expect![
            "1 steps (least 2), sends 2/3 (least 2/3), receives 2/3 (least 2/3), 2 messages, scratch 0, ordered, same tree"
        ],
    );
    let wrong = |r, q| if (r, q) == (1, 2) { ((1, 0, 0), (2, 1, 1)) } else { ((r, 0, q), (q, 1, r)) };
    check(
        &direct(3, wrong),
        expect![[r#"
        E0505: rank 2 ends with output[1] = 1.input[0] and not 1.input[2]
          at `send input[q] to q as output[r]`: put there by this send, in step 0 (r = 1, q = 2), from rank 1 to rank 2
          expected: output[1] = 1.input[2]
          found: output[1] = 1.input[0]
          note: rank 1 holds 1.input[2] at the end, in input[2]
          help: check what this transfer reads and where it writes
    "#]],
    );
    assert!(direct(3, wrong).prove().properties.equal_blocks_only.is_some());
}

#[test]
fn what_does_not_belong_is_blamed_on_what_brought_it() {
    let facts = (0..2).map(|r| (r, r, vec![(0, r), (1, r)])).collect();
    let mut build = Build::new(in_place(2, 2, facts), 1);
    build.step();
    build.whole("send data[0] to 1 as data[1] reduce", &[], Kind::Reduce, (0, 0, 0), (1, 0, 1));
    build.whole("send data[0] to 0 reduce", &[], Kind::Reduce, (1, 0, 0), (0, 0, 0));
    check(
        &build,
        expect![[r#"
        E0504: rank 1 ends with data[1] = 0.data[0] + 1.data[1]: 0.data[0] does not belong
          at `send data[0] to 1 as data[1] reduce`: 0.data[0] came with this send, in step 0, from rank 0 to rank 1
          expected: data[1] = 0.data[1] + 1.data[1]
          found: data[1] = 0.data[0] + 1.data[1]
          help: check the indices on both sides of this transfer: what it reduces belongs to another place
    "#]],
    );
}

#[test]
fn pieces_of_uneven_cuts_are_named_by_fractions() {
    let mut build = tree(2, 0).cuts(&[(0, 1), (1, 3), (1, 2), (1, 1)]);
    build.step();
    build.some("send data[0] to 1", &[], Kind::Move, (0, 0, 0), (1, 0, 0), 0..1);
    build.some("send data[2] to 1", &[], Kind::Move, (0, 0, 0), (1, 0, 0), 2..3);
    check(
        &build,
        expect![[r#"
        E0501: rank 1 ends with nothing in data 1/3..1/2
          at `send data[2] to 1`: the last step is this
          expected: data 1/3..1/2 = 0.data 1/3..1/2
          found: data 1/3..1/2 = nothing
          note: nothing is ever written there, and rank 0 never sends 0.data 1/3..1/2
          help: send 0.data 1/3..1/2 from rank 0 on its way to rank 1
    "#]],
    );
}

#[test]
fn a_program_without_transfers_is_judged_too() {
    check(
        &Build::new(sum_everywhere(2), 1),
        expect![[r#"
            E0502: rank 0 ends with data = x0: rank 1 is missing
              at ``: with n = 2 it has no steps
              expected: data = x0 + x1
              found: data = x0
              note: nothing is ever written there, and rank 1 never sends x1
              note: xR is what data of rank R holds at the start
              note: the same is true of 1 other place
              help: send x1 from rank 1 on its way to rank 0
        "#]],
    );
    assert!(Build::new(sum_everywhere(1), 1).prove().ok());
    assert!(Build::new(sum_everywhere(0), 1).prove().ok());
}

#[test]
fn many_faults_of_a_kind_are_one_message() {
    let build = ring(9, |phase, s, _, chunk| if phase == 1 && s > 3 { vec![] } else { right(phase, chunk) });
    let told = build.prove().diagnostics;
    assert_eq!(told.len(), 1);
    assert!(told[0].notes.iter().any(|note| note.contains("other places")), "{:?}", told[0].notes);
}
