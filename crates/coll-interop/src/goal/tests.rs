//! What reads, and what is said of what does not.

use super::{Edge, Goal, GoalKind};

const PAIR: &str = "num_ranks 2
rank 0 { // sends
l1: calc 100 cpu 1
l2: send 8b to 1 tag 5 cpu 1 nic 2
l2 requires l1 /* first
this */ l2 irequires l1
}
rank 1 {
cpu: recv 8b from -1 tag -1
calc 7
}
";

#[test]
fn all_forms_of_statements_are_read() {
    let goal = Goal::from_text("pair.goal", PAIR).unwrap();
    let [sender, receiver] = &goal.ranks[..] else { panic!("two ranks") };
    assert_eq!(sender.ops[0].kind, GoalKind::Calc { ns: 100 });
    assert_eq!(sender.ops[1].kind, GoalKind::Send { to: 1, bytes: 8, tag: 5 });
    assert_eq!((sender.ops[1].cpu, sender.ops[1].nic, sender.ops[1].line), (1, 2, 4));
    assert_eq!(sender.edges, [Edge { op: 1, on: 0, start: false }, Edge { op: 1, on: 0, start: true }]);
    assert_eq!(receiver.ops[0].kind, GoalKind::Recv { from: None, bytes: 8, tag: None });
    assert_eq!((receiver.ops[0].label.as_str(), receiver.ops[1].label.as_str()), ("cpu", ""));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let one = |body: &str| format!("num_ranks 2\nrank 0 {{\n{body}\n}}\nrank 1 {{\n}}\n");
    let cases = [
        (String::new(), "1:1: expected `num_ranks`, found the end of the file"),
        ("ranks 2".into(), "1:1: expected `num_ranks`, found `ranks`"),
        ("num_ranks 0".into(), "1:11: `0` is no number of ranks from 1 to 1048576"),
        ("num_ranks 2\nrank 0 {\n}\n".into(), "1:11: `num_ranks 2` is said here, and there is no `rank 1`"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n".into(), "4:6: rank 0 is here again, after line 2"),
        ("num_ranks 1\nrank 1 {\n}\n".into(), "2:6: rank 1 is none of 0..=0"),
        ("num_ranks 2\nrank 0 {\nl1: calc 5\nrank 1 {\n}\n".into(), "2:1: rank 0 has no closing `}`"),
        ("num_ranks 1\nrank 0 {\nl1: calc 5\n".into(), "2:1: rank 0 has no closing `}`"),
        ("num_ranks 1\nrank 0 l1: calc 5\n".into(), "2:8: expected `{`, found `l1`"),
        ("num_ranks 1 /* and\nso on".into(), "1:13: a comment is opened here and never closed"),
        (one("l1: calc 5\nl1: calc 6"), "4:1: label `l1` is taken in rank 0 by line 3"),
        (one("l1: calc 5\nl1 requires l2"), "4:13: rank 0 has no operation `l2`"),
        (one("l1: calc 5\nl9 requires l1"), "4:1: rank 0 has no operation `l9`"),
        (one("l1: calc 5\nl1 requires l1"), "4:1: `l1` waits for itself"),
        (one("l1: send 8b to 0"), "3:16: rank 0 sends to itself"),
        (one("l1: recv 8b from 0"), "3:18: rank 0 receives from itself"),
        (one("l1: send 8b to 2"), "3:16: rank 2 is none of 0..=1"),
        (one("l1: send 8 to 1"), "3:10: `8` is no size; write bytes as `8b`"),
        (one("l1: send 99999999999999999999b to 1"), "3:10: `99999999999999999999b` is no size"),
        (one("l1: send 8b from 1"), "3:13: expected `to`, found `from`"),
        (one("l1: calc -4"), "3:10: `-4` is no number of nanoseconds from 0 on"),
        (one("l1: calc 4 tag 3"), "3:12: a computation has no tag"),
        (one("l1: send 8b to 1 tag x"), "3:22: `x` is no tag"),
        (one("l1: send 8b to 1 tag -1"), "3:22: `-1` is no tag"),
        (one("l1: jump"), "3:5: expected `send`, `recv` or `calc`, found `jump`"),
        (
            one("l1 needs l2"),
            "3:1: expected `LABEL: send|recv|calc …`, `LABEL requires LABEL` or `}`, found `l1`",
        ),
    ];
    for (text, expected) in cases {
        let error = Goal::from_text("x.goal", &text).expect_err(&text).to_string();
        assert!(error.starts_with(&format!("x.goal:{expected}")), "{text}\n{error}\n{expected}");
    }
}

#[test]
fn a_label_that_is_nearly_right_is_suggested() {
    let text = "num_ranks 1\nrank 0 {\nl1: calc 5\nl3: calc 6\nl3 requires l2\n}\n";
    let error = Goal::from_text("x.goal", text).unwrap_err();
    assert_eq!(error.help.as_deref(), Some("there is `l1`"));
}
