//! What the collectives of the prelude mean for a few ranks, and which blocks they tie together.

mod support;

use coll_contract::{Blocks, Contract, Leaf, Value};
use expect_test::{Expect, expect};
use std::fmt::Write;
use support::program;

fn check(collective: &str, ranks: u32, root: u32, expected: Expect) {
    let program = program(&format!("schedule any: {collective} {{ }}"), ranks, root);
    expected.assert_eq(&shown(&program.contract));
}

/// Givens, promises, and a row of classes for each rank.
fn shown(contract: &Contract) -> String {
    let mut text = String::new();
    let block = |buffer: u32, block: u32| {
        let decl = &contract.buffers[buffer as usize];
        if decl.blocks == 1 { decl.name.clone() } else { format!("{}[{block}]", decl.name) }
    };
    for (buffer, given) in (0..).zip(&contract.given) {
        let name = &contract.buffers[buffer as usize].name;
        let listed = match given {
            Blocks::All => "all".to_string(),
            Blocks::None => "none".to_string(),
            Blocks::Listed(pairs) => {
                let pairs = pairs.iter().map(|&(rank, at)| format!("{rank}.{}", block(buffer, at)));
                pairs.collect::<Vec<_>>().join(" ")
            }
        };
        writeln!(text, "given {name}: {listed}").unwrap();
    }
    let leaf = |leaf: &Leaf| format!("{}.{}", leaf.rank, block(leaf.buffer, leaf.block));
    for ensure in &contract.ensures {
        let value = match &contract.values[ensure.value as usize] {
            Value::Copy(one) => leaf(one),
            Value::Reduce(all) => format!("reduce {}", all.iter().map(leaf).collect::<Vec<_>>().join(" ")),
        };
        writeln!(text, "{}.{} == {value}", ensure.rank, block(ensure.buffer, ensure.block)).unwrap();
    }
    for (r, q) in &contract.after {
        writeln!(text, "{r} after {q}").unwrap();
    }
    let width = contract.blocks_per_rank() as usize;
    if width > 0 {
        let rows = contract.classes.table.chunks(width).map(|row| format!("{row:?}"));
        writeln!(text, "classes: {}", rows.collect::<Vec<_>>().join(" ")).unwrap();
    }
    text
}

#[test]
fn one_buffer_of_one_block() {
    check(
        "allreduce",
        3,
        0,
        expect![[r#"
        given data: all
        0.data == reduce 0.data 1.data 2.data
        1.data == reduce 0.data 1.data 2.data
        2.data == reduce 0.data 1.data 2.data
        classes: [0] [0] [0]
    "#]],
    );
    check(
        "broadcast",
        3,
        1,
        expect![[r#"
        given data: 1.data
        0.data == 1.data
        1.data == 1.data
        2.data == 1.data
        classes: [0] [0] [0]
    "#]],
    );
    check(
        "reduce",
        3,
        2,
        expect![[r#"
        given data: all
        2.data == reduce 0.data 1.data 2.data
        classes: [0] [0] [0]
    "#]],
    );
    check(
        "scan",
        3,
        0,
        expect![[r#"
        given data: all
        0.data == reduce 0.data
        1.data == reduce 0.data 1.data
        2.data == reduce 0.data 1.data 2.data
        classes: [0] [0] [0]
    "#]],
    );
    check(
        "exscan",
        3,
        0,
        expect![[r#"
        given data: all
        1.data == reduce 0.data
        2.data == reduce 0.data 1.data
        classes: [0] [0] [0]
    "#]],
    );
}

#[test]
fn a_block_for_each_rank() {
    check(
        "allgather",
        2,
        0,
        expect![[r#"
        given data: 0.data[0] 1.data[1]
        0.data[0] == 0.data[0]
        0.data[1] == 1.data[1]
        1.data[0] == 0.data[0]
        1.data[1] == 1.data[1]
        classes: [0, 1] [0, 1]
    "#]],
    );
    check(
        "gather",
        3,
        1,
        expect![[r#"
        given data: 0.data[0] 1.data[1] 2.data[2]
        1.data[0] == 0.data[0]
        1.data[1] == 1.data[1]
        1.data[2] == 2.data[2]
        classes: [0, 1, 2] [0, 1, 2] [0, 1, 2]
    "#]],
    );
    check(
        "scatter",
        3,
        1,
        expect![[r#"
        given data: 1.data[0] 1.data[1] 1.data[2]
        0.data[0] == 1.data[0]
        1.data[1] == 1.data[1]
        2.data[2] == 1.data[2]
        classes: [0, 1, 2] [0, 1, 2] [0, 1, 2]
    "#]],
    );
    check(
        "reduce_scatter",
        2,
        0,
        expect![[r#"
        given data: all
        0.data[0] == reduce 0.data[0] 1.data[0]
        1.data[1] == reduce 0.data[1] 1.data[1]
        classes: [0, 1] [0, 1]
    "#]],
    );
    check(
        "alltoall",
        2,
        0,
        expect![[r#"
        given input: all
        given output: none
        0.output[0] == 0.input[0]
        0.output[1] == 1.input[0]
        1.output[0] == 0.input[1]
        1.output[1] == 1.input[1]
        classes: [0, 1, 0, 2] [2, 3, 1, 3]
    "#]],
    );
}

#[test]
fn no_buffer_at_all() {
    check(
        "barrier",
        2,
        0,
        expect![[r#"
        0 after 1
        1 after 0
    "#]],
    );
}

#[test]
fn a_users_collective_with_parameters_and_where() {
    let text = "schedule any: shift { }
        fn before(r) = (r + n - 1) % n
        collective shift(by) {
            in input[2]  out left[2]  inout work
            ensure each r where r != by: left == before(r) . input
            ensure each r in 1..2 at r + 1: left == before(r + 1) . input
            ensure each r where r == 0: work == reduce q where q < 2: q.work
        }";
    let (sources, module, diagnostics) = support::load_text(text);
    assert!(diagnostics.is_empty(), "{}", support::render(&sources, &diagnostics));
    assert_eq!(module.schedules()[0].params, [("by".to_string(), 0)]);
    let at = coll_sema::Instance { ranks: 3, root: 0, params: vec![("by".to_string(), 2)] };
    let made = module.instantiate(0, &at).unwrap();
    expect![[r#"
        given input: all
        given left: none
        given work: all
        0.left[0] == 2.input[0]
        0.left[1] == 2.input[1]
        0.work == reduce 0.work 1.work
        1.left[0] == 0.input[0]
        1.left[1] == 0.input[1]
        2.left[0] == 1.input[0]
        2.left[1] == 1.input[1]
        classes: [0, 1, 2, 3, 4] [5, 6, 0, 1, 4] [2, 3, 5, 6, 4]
    "#]]
    .assert_eq(&shown(&made.program.contract));
}
