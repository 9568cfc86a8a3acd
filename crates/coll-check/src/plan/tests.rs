//! Plans written by hand: sound ones, and one for each thing that can be wrong.

mod claims;
mod large;
mod values;

use super::prove;
use coll_plan::from_text;
use expect_test::{Expect, expect};

/// Header and contract of an all-reduce, with what each rank does.
fn allreduce(ranks: u32, pieces: u32, slots: u32, body: &str) -> String {
    format!(
        "plan 2\nname \"allreduce.test\"\nslots {slots}\ncuts equal {pieces}\nline 0 \"test.coll\" 7\n\
         contract \"allreduce\"\nranks {ranks}\nbuffer inout data[1]\ngiven data all\nclasses 1\n\
         value 0 = reduce r0..{ranks}.data[0]\nensure r0..{ranks} data[0] = 0\n{}",
        steps(body)
    )
}

/// Two ranks swap their blocks: `out[0]` of each becomes the other's `in[0]`.
fn swap(slots: u32, body: &str) -> String {
    format!(
        "plan 2\nname \"swap.test\"\nslots {slots}\nline 0 \"test.coll\" 7\n\
         contract \"swap\"\nranks 2\nbuffer in input[1]\nbuffer out output[1]\ngiven input all\nclasses 1\n\
         value 0 = copy r1.input[0]\nvalue 1 = copy r0.input[0]\nensure r0 output[0] = 0\nensure r1 output[0] = 1\n{}",
        steps(body)
    )
}

/// Every operation stands in step 0, on line 0.
fn steps(body: &str) -> String {
    let lines = body.lines().map(|line| match line.trim() {
        op if op.starts_with("op") => format!("{op} ; step 0 line 0\n"),
        other => format!("{other}\n"),
    });
    lines.collect()
}

fn check(text: &str, expect: Expect) {
    let plan = from_text(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let proof = prove(&plan);
    let mut words = format!("slots {}, rendezvous {}\n", proof.min_slots, proof.rendezvous);
    for told in proof.diagnostics {
        words += &format!("{} {}\n", told.code, told.message);
        let parts = [("expected", &told.expected), ("found", &told.found), ("help", &told.help)];
        for note in &told.notes {
            words += &format!("  note: {note}\n");
        }
        for (name, part) in parts {
            words += &part.as_ref().map_or(String::new(), |part| format!("  {name}: {part}\n"));
        }
    }
    expect.assert_eq(&words);
}

const RING_OF_TWO: &str = "\
rank 0
  lane 0
    op0 send data.in[0:0..1] to r1 channel 0
    op1 send data.out[0:1..2] to r1 channel 0 along op2
  lane 1
    op2 recv_reduce data.out[0:1..2] from r1 channel 0 with data.in[0:1..2]
    op3 recv data.out[0:0..1] from r1 channel 0 after op0
rank 1
  lane 0
    op0 send data.in[0:1..2] to r0 channel 0
    op1 send data.out[0:0..1] to r0 channel 0 along op2
  lane 1
    op2 recv_reduce data.out[0:0..1] from r0 channel 0 with data.in[0:0..1]
    op3 recv data.out[0:1..2] from r0 channel 0 after op0
";

/// Both send all they have, and reduce what comes; what comes waits in a slot until the own value is sent.
const EXCHANGE: &str = "\
rank 0
  slot 0: c0[0..1]
  lane 0
    op0 send data.in[0:0..1] to r1 channel 0
  lane 1
    op1 recv slot0[c0:0..1] from r1 channel 0
    op2 reduce slot0[c0:0..1] into data.out[0:0..1] with data.in[0:0..1] after op0
rank 1
  slot 0: c0[0..1]
  lane 0
    op0 send data.in[0:0..1] to r0 channel 0
  lane 1
    op1 recv slot0[c0:0..1] from r0 channel 0
    op2 reduce slot0[c0:0..1] into data.out[0:0..1] with data.in[0:0..1] after op0
";

#[test]
fn sound_plans_are_proved() {
    check(
        &allreduce(2, 2, 0, RING_OF_TWO),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
    check(
        &allreduce(2, 1, 0, EXCHANGE),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
    let alone = "rank 0\nlane 0\nop0 copy data.in[0:0..3] to data.out[0:0..3]\n";
    check(
        &allreduce(1, 3, 0, alone),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
}

/// B036: each sends first and receives second, in one lane.
const SEND_FIRST: &str = "\
rank 0
  lane 0
    op0 send input.in[0:0..1] to r1 channel 0
    op1 recv output.out[0:0..1] from r1 channel 0
rank 1
  lane 0
    op0 send input.in[0:0..1] to r0 channel 0
    op1 recv output.out[0:0..1] from r0 channel 0
";

#[test]
fn two_that_send_first_need_a_slot() {
    check(
        &swap(0, SEND_FIRST),
        expect![[r#"
        slots 1, rendezvous false
        E0603 2 operations wait for each other and stop for ever
          note: rank 0, op 0: send input.in[0:0..1] to r1 channel 0 (test.coll:7) waits until rank 1, op 1 (behind op 0 in its lane) takes its message
          note: rank 1, op 0: send input.in[0:0..1] to r0 channel 0 (test.coll:7) waits until rank 0, op 1 (behind op 0 in its lane) takes its message
          expected: a plan that ends with 0 message slots for each connection
          found: a ring: rank 0, op 0; rank 1, op 0, and again rank 0, op 0
          help: it ends with `slots 1`; or put receives into a lane of their own
    "#]],
    );
    check(
        &swap(1, SEND_FIRST),
        expect![[r#"
        slots 1, rendezvous false
    "#]],
    );
    check(
        &swap(0, &SEND_FIRST.replace("    op1", "  lane 1\n    op1")),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
}

#[test]
fn two_that_receive_first_never_end() {
    let receive_first = "\
rank 0
  lane 0
    op0 recv output.out[0:0..1] from r1 channel 0
    op1 send input.in[0:0..1] to r1 channel 0
rank 1
  lane 0
    op0 recv output.out[0:0..1] from r0 channel 0
    op1 send input.in[0:0..1] to r0 channel 0
";
    check(
        &swap(9, receive_first),
        expect![[r#"
        slots 0, rendezvous false
        E0603 2 operations wait for each other and stop for ever
          note: rank 0, op 0: recv output.out[0:0..1] from r1 channel 0 (test.coll:7) waits for its message from rank 1, op 1 (behind op 0 in its lane)
          note: rank 1, op 0: recv output.out[0:0..1] from r0 channel 0 (test.coll:7) waits for its message from rank 0, op 1 (behind op 0 in its lane)
          expected: a plan that ends, if each connection has message slots enough
          found: a ring: rank 0, op 0; rank 1, op 0, and again rank 0, op 0
          help: take one wait of the ring away, or move a receive before the send that it stands behind
    "#]],
    );
}

#[test]
fn twelve_sends_before_the_first_receive_need_twelve_slots() {
    let mut body = String::new();
    for (rank, peer) in [(0, 1), (1, 0)] {
        body += &format!("rank {rank}\nlane 0\n");
        for i in 0..11 {
            body += &format!("op{i} send nothing to r{peer} channel 0\n");
        }
        body += &format!("op11 send input.in[0:0..1] to r{peer} channel 0\n");
        for i in 12..23 {
            body += &format!("op{i} recv nothing from r{peer} channel 0\n");
        }
        body += &format!("op23 recv output.out[0:0..1] from r{peer} channel 0\n");
    }
    check(
        &swap(12, &body),
        expect![[r#"
        slots 12, rendezvous false
    "#]],
    );
    check(
        &swap(11, &body),
        expect![[r#"
        slots 12, rendezvous false
        E0603 2 operations wait for each other and stop for ever
          note: rank 0, op 11: send input.in[0:0..1] to r1 channel 0 (test.coll:7) waits for a slot, until rank 1, op 12 (behind op 11 in its lane) has taken an earlier message
          note: rank 1, op 11: send input.in[0:0..1] to r0 channel 0 (test.coll:7) waits for a slot, until rank 0, op 12 (behind op 11 in its lane) has taken an earlier message
          expected: a plan that ends with 11 message slots for each connection
          found: a ring: rank 0, op 11; rank 1, op 11, and again rank 0, op 11
          help: it ends with `slots 12`; or put receives into a lane of their own
    "#]],
    );
}

/// A ring all-gather as one thread block per rank runs it: the forwarding step holds its outgoing slot before it
/// frees the incoming one, so one slot is too few.
#[test]
fn fused_forwarding_needs_two_slots() {
    let n = 4;
    let mut text = format!(
        "plan 2\nname \"allgather.ring\"\nslots 2\nline 0 \"a.xml\" 1\ncontract \"allgather\"\nranks {n}\n\
         buffer in input[1]\nbuffer out output[{n}]\ngiven input all\nclasses 1\nvalue 0..{n} = copy r0.input[0] next rank\n"
    );
    for r in 0..n {
        text += &format!("ensure r{r} output[0..{n}] = 0 step 1\n");
    }
    for r in 0..n {
        let (next, previous) = ((r + 1) % n, (r + n - 1) % n);
        let block = |hop: u32| (r + n - hop) % n;
        let mut body = format!("rank {r}\nlane 0\nop0 copy input.in[0:0..1] to output.out[{r}:0..1]\n");
        body += &format!("op1 send input.in[0:0..1] to r{next} channel 0\n");
        for hop in 1..n {
            let after = if hop == 1 { " after op1" } else { "" };
            let lane = if hop == 1 { "lane 1\n" } else { "" };
            body += &format!(
                "{lane}op{} recv output.out[{}:0..1] from r{previous} channel 0{after}\n",
                hop + 1,
                block(hop)
            );
        }
        for hop in 1..n - 1 {
            let lane = if hop == 1 { "lane 2\n" } else { "" };
            let id = n + hop;
            let own = if hop == 1 { "after op1, " } else { "" };
            body += &format!(
                "{lane}op{id} send output.out[{}:0..1] to r{next} channel 0 {own}along op{}\n",
                block(hop),
                hop + 1
            );
        }
        text += &steps(&body);
    }
    check(
        &text,
        expect![[r#"
        slots 2, rendezvous false
    "#]],
    );
}

#[test]
fn messages_that_do_not_pair_up() {
    let without = SEND_FIRST.replacen("    op1 recv output.out[0:0..1] from r1 channel 0\n", "", 1);
    check(
        &swap(1, &without),
        expect![[r#"
        slots 0, rendezvous false
        E0601 rank 1 sends a message for which rank 0 has no receive
          note: the first without its other side is rank 1, op 0: send input.in[0:0..1] to r0 channel 0 (test.coll:7)
          expected: as many sends of rank 1 to rank 0 on channel 0 as receives
          found: 1 sends and 0 receives
          help: give rank 0 the receive, or take this operation away
    "#]],
    );
    let other_pieces = RING_OF_TWO.replacen("send data.in[0:0..1]", "send data.in[0:0..2]", 1);
    check(
        &allreduce(2, 2, 0, &other_pieces),
        expect![[r#"
        slots 0, rendezvous false
        E0602 a message is stored as something else than was sent
          note: sent by rank 0, op 0: send data.in[0:0..2] to r1 channel 0 (test.coll:7)
          note: stored by rank 1, op 2: recv_reduce data.out[0:0..1] from r0 channel 0 with data.in[0:0..1] (test.coll:7)
          expected: what is sent: region 0 is of class 0, pieces 0..2
          found: what is stored: region 0 is of class 0, pieces 0..1
          help: let both sides list the same pieces of blocks of the same class, in the same order
    "#]],
    );
}

#[test]
fn accesses_left_to_chance() {
    // The reduction may overwrite, in place, what is still being sent.
    check(
        &allreduce(2, 1, 0, &EXCHANGE.replacen(" after op0", "", 1)),
        expect![[r#"
        slots 1, rendezvous true
        E0604 rank 0, op 2 writes data.out[0:0..1] while op 0 may be at it still
          note: rank 0, op 0: send data.in[0:0..1] to r1 channel 0 (test.coll:7)
          note: rank 0, op 2: reduce slot0[c0:0..1] into data.out[0:0..1] with data.in[0:0..1] (test.coll:7)
          note: in place, `.in`, `.out` and `.tmp` of a block are one memory, and a slot is one for all its shapes
          expected: op 2 to start only when op 0 is over
          found: no lane, wait or message orders them; op 0 reads this memory
          help: let op 2 wait `after op0`
    "#]],
    );
    // The last receive lands on the piece that is being sent, but byte by byte, and only after it went round.
    check(
        &allreduce(2, 2, 0, &RING_OF_TWO.replacen(" after op0", "", 1)),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
    // A send that follows nothing reads what may not have come.
    check(
        &allreduce(2, 2, 0, &RING_OF_TWO.replacen(" along op2", "", 1)),
        expect![[r#"
        slots 1, rendezvous true
        E0604 rank 0, op 2 writes data.out[0:1..2] while op 1 may be at it still
          note: rank 0, op 1: send data.out[0:1..2] to r1 channel 0 (test.coll:7)
          note: rank 0, op 2: recv_reduce data.out[0:1..2] from r1 channel 0 with data.in[0:1..2] (test.coll:7)
          note: in place, `.in`, `.out` and `.tmp` of a block are one memory, and a slot is one for all its shapes
          expected: op 2 to start only when op 1 is over
          found: no lane, wait or message orders them; op 1 reads this memory
          help: let op 2 wait `after op1`
    "#]],
    );
}

#[test]
fn messages_of_one_connection_in_two_lanes() {
    let two_lanes = "\
rank 0
  lane 0
    op0 send input.in[0:0..1] to r1 channel 0
  lane 1
    op1 send nothing to r1 channel 0
  lane 2
    op2 recv output.out[0:0..1] from r1 channel 0
rank 1
  lane 0
    op0 recv output.out[0:0..1] from r0 channel 0
    op1 recv nothing from r0 channel 0
  lane 1
    op2 send input.in[0:0..1] to r0 channel 0
";
    check(
        &swap(0, two_lanes),
        expect![[r#"
        slots 1, rendezvous true
        E0610 rank 0, op 0 and op 1 use one connection in no order
          note: rank 0, op 0: send input.in[0:0..1] to r1 channel 0 (test.coll:7)
          note: rank 0, op 1: send nothing to r1 channel 0 (test.coll:7)
          expected: messages of a connection one after the other, as messages pair up by their order
          found: two lanes, and no wait between them
          help: let op 1 wait `after op0`, or give it another channel
    "#]],
    );
    check(
        &swap(
            0,
            &two_lanes.replace("send nothing to r1 channel 0", "send nothing to r1 channel 0 after op0"),
        ),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
}

/// The order of two accesses may come from messages alone: here the answer cannot arrive before the question left.
#[test]
fn messages_order_accesses() {
    let body = "\
rank 0
  lane 0
    op0 send data.in[0:0..1] to r1 channel 0
  lane 1
    op1 recv data.out[0:0..1] from r1 channel 0
rank 1
  lane 0
    op0 recv_reduce data.out[0:0..1] from r0 channel 0 with data.in[0:0..1]
    op1 send data.out[0:0..1] to r0 channel 0
";
    check(
        &allreduce(2, 1, 0, body),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
    // Byte by byte as well, as it is the same bytes.
    let along = body.replace(
        "    op1 send data.out[0:0..1] to r0 channel 0",
        "  lane 1\n    op1 send data.out[0:0..1] to r0 channel 0 along op0",
    );
    check(
        &allreduce(2, 1, 0, &along),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
    // But not if a signal is all that comes back early.
    let early = body
        .replace("    op0 recv_reduce", "    op0 send nothing to r0 channel 0\n    op1 recv_reduce")
        .replace("    op1 send", "    op2 send");
    let early = early.replace("  lane 1\n    op1 recv", "  lane 1\n    op1 recv nothing from r1 channel 0\n    op2 reduce data.in[0:0..1] into data.out[0:0..1] with data.in[0:0..1]\n    op3 recv");
    check(
        &allreduce(2, 1, 0, &early),
        expect![[r#"
        slots 1, rendezvous true
        E0606 rank 0, op 0 reads data.in[0:0..1] after it is overwritten
          note: written by rank 0, op 2: reduce data.in[0:0..1] into data.out[0:0..1] with data.in[0:0..1] (test.coll:7)
          note: read by rank 0, op 0: send data.in[0:0..1] to r1 channel 0 (test.coll:7)
          expected: data.in[0:0..1] as it was given, also when the plan runs in place
          found: in place, `.in`, `.out` and `.tmp` of a block are one memory, and it was written before
          help: read it before it is written, or write the new value into a slot first
        E0604 rank 0, op 2 writes data.in[0:0..1] while op 0 may be at it still
          note: rank 0, op 0: send data.in[0:0..1] to r1 channel 0 (test.coll:7)
          note: rank 0, op 2: reduce data.in[0:0..1] into data.out[0:0..1] with data.in[0:0..1] (test.coll:7)
          note: in place, `.in`, `.out` and `.tmp` of a block are one memory, and a slot is one for all its shapes
          expected: op 2 to start only when op 0 is over
          found: no lane, wait or message orders them; op 0 reads this memory
          help: let op 2 wait `after op0`
    "#]],
    );
}

#[test]
fn barriers() {
    let text = |body: &str| {
        let head = "plan 2\nname \"barrier.test\"\nline 0 \"test.coll\" 7\ncontract \"barrier\"\nranks 3\n\
                    after r0: r1..3\nafter r1: r0 r2\nafter r2: r0..2\n";
        format!("{head}{}", steps(body))
    };
    let gather = "\
rank 0
  lane 0
    op0 recv nothing from r1 channel 0
    op1 recv nothing from r2 channel 0
    op2 send nothing to r1 channel 0
    op3 send nothing to r2 channel 0
rank 1
  lane 0
    op0 send nothing to r0 channel 0
    op1 recv nothing from r0 channel 0
rank 2
  lane 0
    op0 send nothing to r0 channel 0
    op1 recv nothing from r0 channel 0
";
    check(
        &text(gather),
        expect![[r#"
        slots 1, rendezvous true
    "#]],
    );
    let early = gather
        .replace("op1 recv nothing from r2", "op1 send nothing to r1")
        .replace("op2 send nothing to r1", "op2 recv nothing from r2");
    check(
        &text(&early),
        expect![[r#"
        slots 1, rendezvous true
        E0609 rank 1 may leave before rank 2 has entered
          expected: a chain of waits and messages from rank 2 to rank 1
          found: none
          help: let a signal of rank 2, or of a rank that has waited for it, reach rank 1
    "#]],
    );
}

#[test]
fn a_slice_is_not_proved() {
    let plan = from_text(&allreduce(2, 1, 0, EXCHANGE)).unwrap();
    check(
        &coll_plan::to_text(&plan.slice(1).unwrap()),
        expect![[r#"
        slots 0, rendezvous false
        E0611 a slice of a plan cannot be proved by itself
          expected: the parts of all ranks
          found: that of rank 1 alone
          help: prove the whole plan, and compare its hash with the slice's `proof`
    "#]],
    );
}
