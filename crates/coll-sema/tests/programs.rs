//! What schedules mean: the transfers that they make, step by step, checked by hand against the language.

mod support;

use expect_test::{Expect, expect};
use support::{program, steps};

fn check(text: &str, ranks: u32, expected: Expect) {
    expected.assert_eq(&steps(&program(text, ranks, 0)));
}

#[test]
fn a_ring_sends_each_chunk_round() {
    let ring = "schedule ring: allreduce {
        chunks n
        for s in 0..n-1 { step each r { send data[(r - s) % n] to (r + 1) % n reduce } }
        for s in 0..n-1 { step each r { send data[(r + 1 - s) % n] to (r + 1) % n } }
    }";
    check(ring, 1, expect![[""]]);
    check(
        ring,
        2,
        expect![[r#"
        0: 0.data 0..1/2 +> 1; 1.data 1/2..1 +> 0
        1: 0.data 1/2..1 > 1; 1.data 0..1/2 > 0
    "#]],
    );
    check(
        ring,
        4,
        expect![[r#"
        0: 0.data 0..1/4 +> 1; 1.data 1/4..1/2 +> 2; 2.data 1/2..3/4 +> 3; 3.data 3/4..1 +> 0
        1: 0.data 3/4..1 +> 1; 1.data 0..1/4 +> 2; 2.data 1/4..1/2 +> 3; 3.data 1/2..3/4 +> 0
        2: 0.data 1/2..3/4 +> 1; 1.data 3/4..1 +> 2; 2.data 0..1/4 +> 3; 3.data 1/4..1/2 +> 0
        3: 0.data 1/4..1/2 > 1; 1.data 1/2..3/4 > 2; 2.data 3/4..1 > 3; 3.data 0..1/4 > 0
        4: 0.data 0..1/4 > 1; 1.data 1/4..1/2 > 2; 2.data 1/2..3/4 > 3; 3.data 3/4..1 > 0
        5: 0.data 3/4..1 > 1; 1.data 0..1/4 > 2; 2.data 1/4..1/2 > 3; 3.data 1/2..3/4 > 0
    "#]],
    );
}

#[test]
fn bruck_turns_sends_by_bits_and_turns_back() {
    let bruck = "schedule bruck: alltoall {
        scratch tmp[n]
        step each r { for i in 0..n { copy input[(r + i) % n] to tmp[i] } }
        for k in 0..ceil_log2(n) {
            step each r { for i in 0..n where i & (1 << k) != 0 { send tmp[i] to (r + (1 << k)) % n } }
        }
        step each r { for i in 0..n { copy tmp[i] to output[(r - i) % n] } }
    }";
    check(
        bruck,
        1,
        expect![[r#"
        0: 0.input > 0.tmp
        1: 0.tmp > 0.output
    "#]],
    );
    check(
        bruck,
        5,
        expect![[r#"
        0: 0.input[0] > 0.tmp[0]; 0.input[1] > 0.tmp[1]; 0.input[2] > 0.tmp[2]; 0.input[3] > 0.tmp[3]; 0.input[4] > 0.tmp[4]; 1.input[1] > 1.tmp[0]; 1.input[2] > 1.tmp[1]; 1.input[3] > 1.tmp[2]; 1.input[4] > 1.tmp[3]; 1.input[0] > 1.tmp[4]; 2.input[2] > 2.tmp[0]; 2.input[3] > 2.tmp[1]; 2.input[4] > 2.tmp[2]; 2.input[0] > 2.tmp[3]; 2.input[1] > 2.tmp[4]; 3.input[3] > 3.tmp[0]; 3.input[4] > 3.tmp[1]; 3.input[0] > 3.tmp[2]; 3.input[1] > 3.tmp[3]; 3.input[2] > 3.tmp[4]; 4.input[4] > 4.tmp[0]; 4.input[0] > 4.tmp[1]; 4.input[1] > 4.tmp[2]; 4.input[2] > 4.tmp[3]; 4.input[3] > 4.tmp[4]
        1: 0.tmp[1] > 1; 0.tmp[3] > 1; 1.tmp[1] > 2; 1.tmp[3] > 2; 2.tmp[1] > 3; 2.tmp[3] > 3; 3.tmp[1] > 4; 3.tmp[3] > 4; 4.tmp[1] > 0; 4.tmp[3] > 0
        2: 0.tmp[2] > 2; 0.tmp[3] > 2; 1.tmp[2] > 3; 1.tmp[3] > 3; 2.tmp[2] > 4; 2.tmp[3] > 4; 3.tmp[2] > 0; 3.tmp[3] > 0; 4.tmp[2] > 1; 4.tmp[3] > 1
        3: 0.tmp[4] > 4; 1.tmp[4] > 0; 2.tmp[4] > 1; 3.tmp[4] > 2; 4.tmp[4] > 3
        4: 0.tmp[0] > 0.output[0]; 0.tmp[1] > 0.output[4]; 0.tmp[2] > 0.output[3]; 0.tmp[3] > 0.output[2]; 0.tmp[4] > 0.output[1]; 1.tmp[0] > 1.output[1]; 1.tmp[1] > 1.output[0]; 1.tmp[2] > 1.output[4]; 1.tmp[3] > 1.output[3]; 1.tmp[4] > 1.output[2]; 2.tmp[0] > 2.output[2]; 2.tmp[1] > 2.output[1]; 2.tmp[2] > 2.output[0]; 2.tmp[3] > 2.output[4]; 2.tmp[4] > 2.output[3]; 3.tmp[0] > 3.output[3]; 3.tmp[1] > 3.output[2]; 3.tmp[2] > 3.output[1]; 3.tmp[3] > 3.output[0]; 3.tmp[4] > 3.output[4]; 4.tmp[0] > 4.output[4]; 4.tmp[1] > 4.output[3]; 4.tmp[2] > 4.output[2]; 4.tmp[3] > 4.output[1]; 4.tmp[4] > 4.output[0]
    "#]],
    );
}

#[test]
fn a_double_tree_sends_half_down_each_of_two_trees() {
    let tree = "schedule double_tree(c = 1): broadcast {
        chunks 2, c
        fn low(p) = p & -p
        fn up(p) = (p ^ low(p)) | (low(p) << 1)
        fn parent(p) = if up(p) < n { up(p) } else { p ^ low(p) }
        fn twin(v) = v % (n - 1) + 1
        fn rank(p) = if p == 0 { 0 } else { (p - 2) % (n - 1) + 1 }
        let h = ceil_log2(n)
        for k in 0..h {
            let d = 1 << (h - 1 - k)
            step each v in 1..n where low(v) == d       { recv data[0] from parent(v) }
            step each v in 1..n where low(twin(v)) == d { recv data[1] from rank(parent(twin(v))) }
        }
    }";
    check(
        tree,
        7,
        expect![[r#"
        0: 0.data 0..1/2 > 4
        1: 0.data 1/2..1 > 3
        2: 4.data 0..1/2 > 2; 4.data 0..1/2 > 6
        3: 3.data 1/2..1 > 1; 3.data 1/2..1 > 5
        4: 2.data 0..1/2 > 1; 2.data 0..1/2 > 3; 6.data 0..1/2 > 5
        5: 1.data 1/2..1 > 2; 1.data 1/2..1 > 6; 5.data 1/2..1 > 4
    "#]],
    );
}

#[test]
fn a_schedule_that_names_no_root_is_turned_to_serve_each() {
    let binomial = "schedule binomial: broadcast {
        for k in 0..ceil_log2(n) {
            let d = 1 << k
            step each v where v < d and v + d < n { send data to v + d }
        }
    }";
    expect![[r#"
        0: 3.data > 4
        1: 3.data > 0; 4.data > 1
        2: 3.data > 2
    "#]]
    .assert_eq(&steps(&program(binomial, 5, 3)));
    let linear = "schedule linear: scatter { step each r in 1..n { recv data[r] from 0 } }";
    expect![[r#"
        0: 2.data[0] > 0; 2.data[1] > 1
    "#]]
    .assert_eq(&steps(&program(linear, 3, 2)));
    let named = "schedule linear: scatter { step each r where r != root { recv data[r] from root } }";
    expect![[r#"
        0: 2.data[0] > 0; 2.data[1] > 1
    "#]]
    .assert_eq(&steps(&program(named, 3, 2)));
}

#[test]
fn a_call_cuts_one_part_and_deals_out_several() {
    let two_level = "use reduce_scatter.ring
        use allgather.ring
        use allreduce.ring
        schedule two_level(local = 2): allreduce {
            let nodes = n / local
            chunks local, nodes
            for k in 0..nodes { reduce_scatter.ring(data) on group(k*local + l for l in 0..local) }
            for l in 0..local { allreduce.ring(data[l])   on group(k*local + l for k in 0..nodes) }
            for k in 0..nodes { allgather.ring(data)      on group(k*local + l for l in 0..local) }
        }";
    check(
        two_level,
        4,
        expect![[r#"
        0: 0.data 1/2..1 +> 1; 1.data 0..1/2 +> 0
        1: 2.data 1/2..1 +> 3; 3.data 0..1/2 +> 2
        2: 0.data 0..1/4 +> 2; 2.data 1/4..1/2 +> 0
        3: 0.data 1/4..1/2 > 2; 2.data 0..1/4 > 0
        4: 1.data 1/2..3/4 +> 3; 3.data 3/4..1 +> 1
        5: 1.data 3/4..1 > 3; 3.data 1/2..3/4 > 1
        6: 0.data 0..1/2 > 1; 1.data 1/2..1 > 0
        7: 2.data 0..1/2 > 3; 3.data 1/2..1 > 2
    "#]],
    );
    let columns = "schedule columns: allgather {
            for l in 0..2 { allgather.direct(data[2*k + l for k in 0..2]) on group(2*k + l for k in 0..2) }
            for k in 0..2 { allgather.direct(data) on group(2*k + l for l in 0..2) }
        }
        schedule direct: allgather { step each r { for q in 0..n where q != r { send data[r] to q } } }";
    check(
        columns,
        4,
        expect![[r#"
        0: 0.data[0] > 2; 2.data[2] > 0
        1: 1.data[1] > 3; 3.data[3] > 1
        2: 0.data[0] > 1; 0.data[1] > 1; 1.data[2] > 0; 1.data[3] > 0
        3: 2.data[0] > 3; 2.data[1] > 3; 3.data[2] > 2; 3.data[3] > 2
    "#]],
    );
}

#[test]
fn blocks_given_to_a_plain_buffer_are_cut_each_alike() {
    let text = "schedule all: allgather {
            step { send data[1] from 1 to 0 }
            broadcast.halves(data)
        }
        schedule halves: broadcast { chunks 2 scratch tmp
            step { send data[0] from 0 to 1 as tmp }
            step { copy tmp to data[0] at 1 send data[1] from 0 to 1 } }";
    check(
        text,
        2,
        expect![[r#"
        0: 1.data[1] > 0
        1: 0.data[0] 0..1/2 > 1.tmp[0]; 0.data[1] 0..1/2 > 1.tmp[1]
        2: 0.data[0] 1/2..1 > 1; 0.data[1] 1/2..1 > 1; 1.tmp[0] 0..1/2 > 1.data[0]; 1.tmp[1] 0..1/2 > 1.data[1]
    "#]],
    );
}

#[test]
fn a_single_slot_takes_a_view_whole_and_many_take_a_chunk_each() {
    let text = "schedule staged: broadcast { chunks 4 scratch one scratch four[2, 2]
        step { send data[1..3] from 0 to 1 as one }
        step { copy one to data[1..3] at 1 }
        step { send data from 0 to 1 as four }
        step { copy four[1] to data[2..4] at 1 copy four[0, 1] to data[1] at 1 }
    }";
    check(
        text,
        2,
        expect![[r#"
        0: 0.data 1/4..3/4 > 1.one
        1: 1.one 1/4..3/4 > 1.data
        2: 0.data 0..1/4 > 1.four[0]; 0.data 1/4..1/2 > 1.four[1]; 0.data 1/2..3/4 > 1.four[2]; 0.data 3/4..1 > 1.four[3]
        3: 1.four[2] 1/2..3/4 > 1.data; 1.four[3] 3/4..1 > 1.data; 1.four[1] 1/4..1/2 > 1.data
    "#]],
    );
}

#[test]
fn a_step_is_in_order_of_the_senders_position() {
    let text = "schedule pull: reduce {
        step { for q in 0..n-1 { let s = n - 1 - q  recv data from s to 0 reduce } }
    }";
    check(
        text,
        4,
        expect![[r#"
        0: 1.data +> 0; 2.data +> 0; 3.data +> 0
    "#]],
    );
    // Turned by the root, position 1 is rank 3.
    expect![[r#"
        0: 3.data +> 2; 0.data +> 2; 1.data +> 2
    "#]]
    .assert_eq(&steps(&program(text, 4, 2)));
}

#[test]
fn what_a_call_does_not_promise_is_dropped_if_it_is_read() {
    let callee = "schedule linear: reduce { step each r where r != 0 { send data to 0 reduce } }";
    let right = format!(
        "schedule up_down: allreduce {{
            reduce.linear(data)
            step {{ for q in 1..n {{ send data from 0 to q }} }}
        }} {callee}"
    );
    check(
        &right,
        3,
        expect![[r#"
        0: 1.data +> 0; 2.data +> 0
        1: 0.data > 1; 0.data > 2
    "#]],
    );
    let wrong = format!(
        "schedule up_down: allreduce {{
            reduce.linear(data)
            step {{ send data from 1 to 0 }}
        }} {callee}"
    );
    check(
        &wrong,
        3,
        expect![[r#"
        0: 1.data +> 0; 2.data +> 0
        1: 1.data drop 1; 2.data drop 2
        2: 1.data > 0
    "#]],
    );
}

#[test]
fn groups_of_none_and_of_one_do_nothing() {
    let text = "use allreduce.ring
        schedule idle: allreduce {
            allreduce.ring(data) on group(i for i in 0..0)
            for i in 0..n { allreduce.ring(data) on group(i) }
        }";
    check(text, 3, expect![[""]]);
}

#[test]
fn signals_and_left_reductions_keep_their_kind() {
    let text = "schedule s: barrier { step each r { signal (r + 1) % n } }";
    check(
        text,
        2,
        expect![[r#"
        0: 0 signals 1; 1 signals 0
    "#]],
    );
    let text = "schedule d: scan { step each r where r + 1 < n { send data to r + 1 reduce left } }";
    check(
        text,
        3,
        expect![[r#"
        0: 0.data >+ 1; 1.data >+ 2
    "#]],
    );
}

#[test]
fn origins_carry_the_loop_variables_of_callers_and_callees() {
    let text = "use allreduce.ring
        schedule outer: allreduce { for g in 0..2 { if n > 1 { allreduce.ring(data) } } }";
    let program = program(text, 2, 0);
    let origins = &program.origins;
    let one = |origin| {
        let calls: Vec<String> = origins.calls_of(origin).into_iter().map(|call| call.text).collect();
        format!("{} in {}", origins.describe(origin), calls.join("; "))
    };
    let told: Vec<String> = program.transfers.iter().map(|t| one(t.origin)).collect();
    expect![[r#"
        s = 0, r = 0 in g = 0
        s = 0, r = 1 in g = 0
        s = 0, r = 0 in g = 0
        s = 0, r = 1 in g = 0
        s = 0, r = 0 in g = 1
        s = 0, r = 1 in g = 1
        s = 0, r = 0 in g = 1
        s = 0, r = 1 in g = 1"#]]
    .assert_eq(&told.join("\n"));
    let stages: Vec<String> =
        program.stages.iter().map(|s| format!("{} {}..{}", s.name, s.start, s.end)).collect();
    expect!["reduce_scatter 0..1, allgather 1..2, reduce_scatter 2..3, allgather 3..4"]
        .assert_eq(&stages.join(", "));
}
