//! What is refused, and in which words; what else `load` and `instantiate` answer.

mod support;

use coll_sema::{Instance, Refusal};
use expect_test::{Expect, expect};
use support::{load_text, refusal, render};

fn check(text: &str, ranks: u32, expected: Expect) {
    expected.assert_eq(&refusal(text, ranks));
}

#[test]
fn errors_of_several_schedules_come_out_of_one_run_and_the_sound_one_goes_on() {
    let text = "schedule a: allreduce { step each r { send dat to peer reduce } let x = n + true }
        schedule b: allreduce { allreduce.a(data) }
        schedule c: broadcast { step { for q in 1..n { send data from 0 to q } } }
        schedule d: broadcast { step { sned data from 0 to 1 } }";
    let (sources, module, diagnostics) = load_text(text);
    expect![[r#"
        E0017: no statement begins with `sned`
          main.coll:4:40 `sned`
          help: did you mean `send`?
        E0103: unknown buffer `dat`
          main.coll:1:44 `dat`
          help: did you mean `data`?
        E0101: unknown name `peer`
          main.coll:1:51 `peer`
          help: declare it above: `let peer = …`
        E0201: a truth value where a number is due
          main.coll:1:77 `true`
          help: choose a number by it: `if c { 1 } else { 0 }`
    "#]]
    .assert_eq(&render(&sources, &diagnostics));
    let broken: Vec<(&str, bool)> = module.schedules().iter().map(|s| (s.name.as_str(), s.broken)).collect();
    assert_eq!(broken, [("a", true), ("b", true), ("c", false), ("d", true)]);
    let at = Instance { ranks: 3, root: 0, params: Vec::new() };
    assert!(matches!(module.instantiate(0, &at), Err(Refusal::Errors(errors)) if errors.is_empty()));
    assert_eq!(module.instantiate(2, &at).unwrap().program.transfers.len(), 2);
}

#[test]
fn a_fault_in_a_call_shows_the_calls_around_it() {
    let text = "schedule outer: broadcast { for i in 0..1 { broadcast.inner(data) } }
        schedule inner: broadcast { chunks 2 step each r { send data[r] to r + 1 } }";
    check(
        text,
        4,
        expect![[r#"
            E0302: index out of range: data[2] of 2 chunks
              main.coll:2:70 `r` (r = 2)
              main.coll:1:45 `broadcast.inner(data)` (in this call, with i = 0)
            E0301: rank 4 is not among the ranks 0..4
              main.coll:2:76 `r + 1` (r = 3)
              main.coll:1:45 `broadcast.inner(data)` (in this call, with i = 0)
              help: to leave a transfer out, write `where`; to go round, write `% n`
            E0302: index out of range: data[2] of 2 chunks
              main.coll:2:70 `r` (r = 2)
            E0301: rank 4 is not among the ranks 0..4
              main.coll:2:76 `r + 1` (r = 3)
              help: to leave a transfer out, write `where`; to go round, write `% n`
        "#]],
    );
    let text = "use reduce_scatter.halving use allgather.ring
        schedule outer: allreduce { reduce_scatter.halving(data) on 0..n-1 allgather.ring(data) }";
    check(
        text,
        4,
        expect![[r#"
        E0406: `reduce_scatter.halving` is not for n = 3: recursive halving pairs ranks by their bits
          main.coll:2:37 `reduce_scatter.halving(data) on 0..n-1`
          reduce_scatter/halving.coll:11:13 `is_pow2(n)` (this does not hold)
          help: state the same `require` in the schedule that calls it, or call it on a group that it serves
    "#]],
    );
}

#[test]
fn a_function_sees_no_let_and_a_root_needs_a_collective_with_one() {
    let text = "schedule a: allreduce {
            let d = 2
            fn up(p) = p + d
            if root == 0 { }
        }";
    check(
        text,
        2,
        expect![[r#"
            E0101: unknown name `d`
              main.coll:3:28 `d`
              main.coll:2:17 `d` (declared here)
              note: a `fn` sees `n`, `root`, parameters and the functions above it, nothing else
              help: give it as an argument: a parameter `d` of the function
            E0101: unknown name `root`
              main.coll:4:16 `root`
              note: this collective has no root
              help: name a rank of your own: `let root = 0`
        "#]],
    );
}

#[test]
fn two_writes_are_found_where_chunks_only_overlap() {
    let text = "schedule inner: broadcast { chunks 3 step { send data[1] from 0 to 1 } }
        schedule outer: broadcast {
            chunks 2
            step { send data[0] from 0 to 1 send data from 0 to 1 }
        }
        schedule slots: broadcast { chunks 2 scratch tmp
            step { send data[0] from 0 to 1 as tmp send data[1] from 0 to 1 as tmp } }";
    check(
        text,
        2,
        expect![[r#"
        E0401: two writes to data[0] of 2 chunks of rank 1 in one step
          main.coll:4:45 `send data from 0 to 1` (the second)
          main.coll:4:20 `send data[0] from 0 to 1` (the first)
          note: the transfers of a step happen at once: which write would stay is not said
          help: put them into steps that follow one another, or let both `reduce`
        E0401: two writes to tmp of rank 1 in one step
          main.coll:7:52 `send data[1] from 0 to 1 as tmp` (the second)
          main.coll:7:20 `send data[0] from 0 to 1 as tmp` (the first)
          note: the transfers of a step happen at once: which write would stay is not said
          help: put them into steps that follow one another, or let both `reduce`
    "#]],
    );
}

#[test]
fn pieces_of_a_cut_view_are_unequal() {
    let text = "use alltoall.linear
        collective shuffle { in a out b ensure each r: b == r.a }
        schedule cut: shuffle { alltoall.linear(a, b) }";
    check(
        text,
        2,
        expect![[r#"
            E0306: input[1, 0] onto output[0, 0]: they are different parts of a block
              main.coll:3:33 `alltoall.linear(a, b)` (in this call)
              alltoall/linear.coll:11:25 `send input[q] to q as output[r]` (r = 0, q = 1)
              note: chunks of one block may differ by an element, so chunk i fits only chunk i
              note: and once more for other values
              help: move it onto itself, or give the collective a buffer with a block for each, as in `data[ranks]`
        "#]],
    );
}

#[test]
fn recursion_ends() {
    let text = "schedule down: broadcast { if n > 1 { broadcast.down(data) on 0..n-1 } }";
    check(text, 20, expect![[""]]);
    check(
        text,
        60,
        expect![[r#"
        E0314: calls nest deeper than 48
          main.coll:1:39 `broadcast.down(data) on 0..n-1`
          help: call it on a part of the group, at most half to nest few times
    "#]],
    );
    let text = "schedule a: broadcast { broadcast.b(data) }
        schedule b: broadcast { broadcast.a(data) }";
    check(
        text,
        2,
        expect![[r#"
            E0314: `broadcast.a` on 2 ranks calls itself on 2: this never ends
              main.coll:2:33 `broadcast.a(data)`
              main.coll:1:25 `broadcast.b(data)` (in this call)
              help: call it on a part of the group, at most half to nest few times
            E0314: `broadcast.b` on 2 ranks calls itself on 2: this never ends
              main.coll:1:25 `broadcast.b(data)`
              main.coll:2:33 `broadcast.a(data)` (in this call)
              help: call it on a part of the group, at most half to nest few times
        "#]],
    );
    let deep = (0..150)
        .fold("broadcast.down(data) on 0..n-1".to_string(), |body, _| format!("if n > 1 {{ {body} }}"));
    let text = format!("schedule down: broadcast {{ {deep} }}");
    check(
        &text,
        40,
        expect![[r#"
        E0314: calls and blocks nest deeper than 400
          main.coll:1:1678 `broadcast.down(data) on 0..n-1`
    "#]],
    );
}

#[test]
fn work_is_bounded() {
    let doubled = (1..64).map(|i| format!("fn f{i}(x) = f{0}(x) + f{0}(x)\n", i - 1)).collect::<String>();
    let text = format!("fn f0(x) = x % 2 \n{doubled} schedule wide: broadcast {{ let y = f63(0) }}");
    check(
        &text,
        2,
        expect![[r#"
            E0313: more than 100000000 rounds of loops and calls
              main.coll:5:20 `f3(x)` (still going here)
              help: bound the loop by the values that it needs, rather than by a `where`
        "#]],
    );
    let text = (1..1100)
        .fold("fn f0(x) = x\n".to_string(), |text, i| text + &format!("fn f{i}(x) = f{}(x)\n", i - 1));
    check(
        &text,
        2,
        expect![[r#"
        E0313: functions that call functions nest deeper than 1000 here
          main.coll:1001:4 `f1000`
          help: give names to parts with `let`, where they are used
    "#]],
    );
}

#[test]
fn a_failed_require_says_what_the_schedule_is_not_for() {
    let text = "schedule a: allreduce { require is_pow2(n), \"ranks pair by their bits\" }";
    check(text, 3, expect!["does not apply: ranks pair by their bits"]);
    let text = "schedule a(k = 2): allreduce { require n %
        k == 0 }";
    check(text, 3, expect!["does not apply: it requires `n % k == 0`"]);
}

#[test]
fn instances_are_checked() {
    let text = "schedule a(fan = 2): broadcast { }";
    let (sources, module, _) = load_text(text);
    let said = |ranks, root, params: &[(&str, i64)]| {
        let params = params.iter().map(|&(name, value)| (name.to_string(), value)).collect();
        match module.instantiate(0, &Instance { ranks, root, params }) {
            Ok(made) => format!("{:?}", made.program.params),
            Err(Refusal::Errors(errors)) => render(&sources, &errors),
            Err(Refusal::DoesNotApply { reason, .. }) => reason,
        }
    };
    expect![[r#"
        E0312: a schedule needs at least one rank
          main.coll:1:10 `a`
    "#]]
    .assert_eq(&said(0, 0, &[]));
    expect![[r#"
        E0313: 70000 ranks are more than 65536
          main.coll:1:10 `a`
    "#]]
    .assert_eq(&said(70_000, 0, &[]));
    expect![[r#"
        E0301: root 2 is not among the ranks 0..2
          main.coll:1:10 `a`
    "#]]
    .assert_eq(&said(2, 2, &[]));
    expect![[r#"
        E0108: `broadcast.a` has no parameter `fann`
          main.coll:1:10 `a`
          note: it has fan
          help: did you mean `fan`?
    "#]]
    .assert_eq(&said(2, 0, &[("fann", 3)]));
    expect![[r#"[("fan", 3)]"#]].assert_eq(&said(2, 0, &[("fan", 3)]));
    assert!(matches!(
        module.instantiate(1, &Instance { ranks: 2, root: 0, params: Vec::new() }),
        Err(Refusal::Errors(errors)) if errors.len() == 1
    ));
}

#[test]
fn statements_stand_where_they_may() {
    let text = "schedule a: broadcast {
            step { step { } chunks 2 broadcast.a(data) stage x { } require n > 1 }
            chunks 2
            if n > 1 { scratch tmp tune { lanes 2 } }
            tune { slices 2000 lanes many }
        }";
    check(
        text,
        2,
        expect![[r#"
            E0402: a step cannot stand in a step
              main.coll:2:20 `step { }`
              help: end the outer step first: steps follow one another
            E0402: a declaration cannot stand in a step
              main.coll:2:29 `chunks 2`
              help: put it at the top of the schedule
            E0402: a call cannot stand in a step
              main.coll:2:38 `broadcast.a(data)`
              help: put the call before or after the step: it has steps of its own
            E0402: a stage cannot stand in a step
              main.coll:2:56 `stage x { }`
              help: put the step into the stage
            E0402: `require` cannot stand in a step
              main.coll:2:68 `require n > 1`
              help: put it above the step
            E0402: `chunks` comes after a step or a call
              main.coll:3:13 `chunks 2`
              main.coll:2:13 `step` (the first step)
              help: move it above the first step
            E0402: `scratch` stands inside another statement
              main.coll:4:24 `scratch tmp`
              help: declare it at the top of the schedule
            E0402: `tune` stands inside another statement
              main.coll:4:36 `tune { lanes 2 }`
              help: tuning is of the whole schedule: put it at the top
            E0102: `lanes` is declared twice
              main.coll:5:32 `lanes` (again here)
              main.coll:4:43 `lanes` (first here)
              help: choose another name: within a schedule, no name hides another
            E0209: `lanes` takes a number, not `many`
              main.coll:5:38 `many`
        "#]],
    );
}

#[test]
fn operators_are_lowered_and_their_faults_found() {
    let text =
        "operator absmax(a, b) = if abs(a) == abs(b) { max(a, b) } else if abs(a) > abs(b) { a } else { b }
        operator ordered scaled(a, b; alpha) = a + b given x: alpha * x ensure y: y / 2.0
        operator bad(a, b) = a and c
        operator bad(a, b) = max(a)";
    let (sources, module, diagnostics) = load_text(text);
    expect![[r#"
        E0201: a number where a truth value is due
          main.coll:3:30 `a`
        E0101: unknown name `c`
          main.coll:3:36 `c`
          help: declare it as a parameter: `operator f(a, b; c) = …`
        E0201: a truth value where a number is due
          main.coll:3:30 `a and c`
        E0102: `bad` is declared twice
          main.coll:4:18 `bad` (again here)
          main.coll:3:18 `bad` (first here)
          help: choose another name: within a schedule, no name hides another
    "#]]
    .assert_eq(&render(&sources, &diagnostics));
    let shown = module.operators().iter().map(|operator| format!("{operator:?}\n")).collect::<String>();
    expect![[r#"
        UserOperator { name: "absmax", commutative: true, params: [], combine: If(Binary(Eq, Unary(Abs, Left), Unary(Abs, Right)), Binary(Max, Left, Right), If(Binary(Gt, Unary(Abs, Left), Unary(Abs, Right)), Left, Right)), given: None, ensure: None }
        UserOperator { name: "scaled", commutative: false, params: ["alpha"], combine: Binary(Add, Left, Right), given: Some(Binary(Mul, Param(0), Input)), ensure: Some(Binary(Div, Input, Float(2.0))) }
    "#]].assert_eq(&shown);
}
