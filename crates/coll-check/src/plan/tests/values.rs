//! What is read and what is there at the end.

use super::{EXCHANGE, RING_OF_TWO, SEND_FIRST, allreduce, check, steps, swap};
use expect_test::expect;

#[test]
fn reading_what_is_not_there() {
    // B105: reducing with scratch that was never written.
    let empty =
        EXCHANGE.replacen("    op1 recv slot0[c0:0..1] from r1", "    op1 recv data.out[0:0..1] from r1", 1);
    check(
        &allreduce(2, 1, 0, &empty),
        expect![[r#"
        slots 1, rendezvous true
        E0605 rank 0, op 2 reads slot0[c0:0..1], which holds nothing
          note: read by rank 0, op 2: reduce slot0[c0:0..1] into data.out[0:0..1] with data.in[0:0..1] (test.coll:7)
          expected: a write of slot0[c0:0..1] before
          found: slot 0 holds nothing
          help: write it first, or read the block's given value from `.in`
        E0606 rank 0, op 2 reads data.in[0:0..1] after it is overwritten
          note: written by rank 0, op 1: recv data.out[0:0..1] from r1 channel 0 (test.coll:7)
          note: read by rank 0, op 2: reduce slot0[c0:0..1] into data.out[0:0..1] with data.in[0:0..1] (test.coll:7)
          expected: data.in[0:0..1] as it was given, also when the plan runs in place
          found: in place, `.in`, `.out` and `.tmp` of a block are one memory, and it was written before
          help: read it before it is written, or write the new value into a slot first
        E0604 rank 0, op 1 writes data.out[0:0..1] while op 0 may be at it still
          note: rank 0, op 0: send data.in[0:0..1] to r1 channel 0 (test.coll:7)
          note: rank 0, op 1: recv data.out[0:0..1] from r1 channel 0 (test.coll:7)
          note: in place, `.in`, `.out` and `.tmp` of a block are one memory, and a slot is one for all its shapes
          expected: op 1 to start only when op 0 is over
          found: no lane, wait or message orders them; op 0 reads this memory
          help: let op 1 wait `after op0`
    "#]],
    );
    let late = "\
rank 0
  slot 0: c0[0..1]
  lane 0
    op0 recv slot0[c0:0..1] from r1 channel 0
    op1 reduce slot0[c0:0..1] into data.out[0:0..1] with data.in[0:0..1]
    op2 send data.in[0:0..1] to r1 channel 0
";
    let other = EXCHANGE.split_once("rank 1").map_or("", |halves| halves.1);
    check(
        &allreduce(2, 1, 0, &format!("{late}rank 1{other}")),
        expect![[r#"
        slots 1, rendezvous true
        E0606 rank 0, op 2 reads data.in[0:0..1] after it is overwritten
          note: written by rank 0, op 1: reduce slot0[c0:0..1] into data.out[0:0..1] with data.in[0:0..1] (test.coll:7)
          note: read by rank 0, op 2: send data.in[0:0..1] to r1 channel 0 (test.coll:7)
          expected: data.in[0:0..1] as it was given, also when the plan runs in place
          found: in place, `.in`, `.out` and `.tmp` of a block are one memory, and it was written before
          help: read it before it is written, or write the new value into a slot first
    "#]],
    );
}

/// Out of place the own block is copied while it is sent; in place there is nothing to copy.
#[test]
fn a_copy_onto_itself_is_no_access() {
    let text = |body: &str| {
        let head = "plan 2\nname \"broadcast.test\"\nline 0 \"test.coll\" 7\ncontract \"broadcast\"\nranks 2\n\
                    buffer inout data[1]\ngiven data r0[0]\nclasses 1\nvalue 0 = copy r0.data[0]\nensure r0..2 data[0] = 0\n";
        format!("{head}{}", steps(body))
    };
    let body = "\
rank 0
  lane 0
    op0 send data.in[0:0..1] to r1 channel 0
  lane 1
    op1 copy data.in[0:0..1] to data.out[0:0..1]
rank 1
  lane 0
    op0 recv data.out[0:0..1] from r0 channel 0
";
    check(
        &text(body),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
    // But what reads the copy must wait for it.
    check(
        &text(&body.replace("send data.in", "send data.out")),
        expect![[r#"
        slots 1, rendezvous true
        E0604 rank 0, op 1 writes data.out[0:0..1] while op 0 may be at it still
          note: rank 0, op 0: send data.out[0:0..1] to r1 channel 0 (test.coll:7)
          note: rank 0, op 1: copy data.in[0:0..1] to data.out[0:0..1] (test.coll:7)
          note: in place, `.in`, `.out` and `.tmp` of a block are one memory, and a slot is one for all its shapes
          expected: op 1 to start only when op 0 is over
          found: no lane, wait or message orders them; op 0 reads this memory
          help: let op 1 wait `after op0`
    "#]],
    );
}

#[test]
fn wrong_ends() {
    let other_piece = RING_OF_TWO
        .replace("recv data.out[0:0..1] from r1 channel 0 after op0", "recv nothing from r1 channel 0");
    let other_piece = other_piece
        .replace("send data.out[0:0..1] to r0 channel 0 along op2", "send nothing to r0 channel 0");
    check(
        &allreduce(2, 2, 0, &other_piece),
        expect![[r#"
        slots 1, rendezvous true
        E0607 rank 0 ends with nothing in data.out[0:0..1]
          expected: r0.data[0] + r1.data[0]
          found: no operation writes it; out of place it holds nothing, in place what it held before
          help: copy or receive the value into it
    "#]],
    );
    let own = EXCHANGE.replacen(
        "reduce slot0[c0:0..1] into data.out[0:0..1] with data.in[0:0..1]",
        "copy slot0[c0:0..1] to data.out[0:0..1]",
        1,
    );
    check(
        &allreduce(2, 1, 0, &own),
        expect![[r#"
        slots 1, rendezvous true
        E0607 rank 0 ends without r0.data[0] in data.out[0:0..1]
          note: written last by rank 0, op 2: copy slot0[c0:0..1] to data.out[0:0..1] (test.coll:7)
          expected: r0.data[0] + r1.data[0]
          found: r1.data[0]
          help: let the missing contribution arrive before the end
    "#]],
    );
    let twice = format!("{}    op3 reduce slot0[c0:0..1] into data.out[0:0..1]\n", EXCHANGE);
    check(
        &allreduce(2, 1, 0, &twice),
        expect![[r#"
        slots 1, rendezvous true
        E0608 rank 1 ends with r0.data[0] counted 2 times in data.out[0:0..1]
          note: r0.data[0] came in again with rank 1, op 3: reduce slot0[c0:0..1] into data.out[0:0..1] (test.coll:7)
          note: written last by rank 1, op 3: reduce slot0[c0:0..1] into data.out[0:0..1] (test.coll:7)
          expected: r0.data[0] + r1.data[0]
          found: 2·r0.data[0] + r1.data[0]
          help: leave out the operation that adds it again
    "#]],
    );
    let swapped = SEND_FIRST.replacen(
        "    op0 send",
        "    op0 copy input.in[0:0..1] to output.out[0:0..1]\n    op1 send",
        1,
    );
    let swapped = swapped.replacen("    op1 recv output.out[0:0..1]", "    op2 recv nothing", 1);
    let swapped = swapped.replacen(
        "lane 0\n    op0 send input.in[0:0..1] to r0",
        "lane 0\n    op0 send nothing to r0",
        1,
    );
    check(
        &swap(1, &swapped),
        expect![[r#"
        slots 1, rendezvous false
        E0607 rank 0 ends with r0.input[0] in output.out[0:0..1], which was not promised
          note: written last by rank 0, op 0: copy input.in[0:0..1] to output.out[0:0..1] (test.coll:7)
          expected: r1.input[0]
          found: r0.input[0]
          help: let another value arrive there, or send this one elsewhere
    "#]],
    );
}
