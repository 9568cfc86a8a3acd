//! What trees come of what texts: how operators bind, and words that are words only in their place.

mod support;

use coll_syntax::ast::{Expr, ExprKind, Item, Stmt, StmtKind, Transfer, Write};
use coll_syntax::codes;
use expect_test::{Expect, expect};
use support::{GOOD, read};

/// An expression with all its parentheses.
fn shown(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Int(value) => value.to_string(),
        ExprKind::Float(value) => format!("{value:?}"),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Ranks => "RANKS".into(),
        ExprKind::Unary(op, inner) => format!("({op:?} {})", shown(inner)),
        ExprKind::Binary(op, left, right) => format!("({} {} {})", shown(left), op.symbol(), shown(right)),
        ExprKind::Call(name, args) => {
            format!("{}({})", name.text, args.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        ExprKind::If(condition, then, otherwise) => {
            format!("if {} {{ {} }} else {{ {} }}", shown(condition), shown(then), shown(otherwise))
        }
        ExprKind::Error => "ERROR".into(),
    }
}

fn check_expr(text: &str, expected: Expect) {
    let parsed = read(&format!("fn f(x) = {text}"));
    assert_eq!(parsed.diagnostics, [], "{text}");
    let [Item::Fn(def)] = parsed.file.items.as_slice() else { panic!("one fn") };
    expected.assert_eq(&shown(&def.body));
}

fn body(text: &str) -> Vec<Stmt> {
    let parsed = read(&format!("schedule s: c {{\n{text}\n}}"));
    assert_eq!(parsed.diagnostics, [], "{text}");
    let [Item::Schedule(schedule)] = <[Item; 1]>::try_from(parsed.file.items).expect("one item") else {
        panic!("a schedule")
    };
    schedule.body
}

/// The kinds of statement that a body is read as.
fn check_kinds(text: &str, expected: Expect) {
    let kinds = body(text).iter().map(|stmt| kind(&stmt.kind)).collect::<Vec<_>>().join(", ");
    expected.assert_eq(&kinds);
}

fn kind(kind: &StmtKind) -> String {
    let landing = |write: &Write| format!("{write:?}").to_lowercase();
    match kind {
        StmtKind::Call(call) => format!("call {}.{}", call.path.collective.text, call.path.schedule.text),
        StmtKind::Transfer(Transfer::Send { write, .. }) => format!("send {}", landing(write)),
        StmtKind::Transfer(Transfer::Recv { write, .. }) => format!("recv {}", landing(write)),
        StmtKind::Transfer(Transfer::Reduce { write, source, .. }) => {
            format!("reduce {} from {}", landing(write), source.buffer.text)
        }
        StmtKind::Let(name, value) => format!("let {} = {}", name.text, shown(value)),
        StmtKind::For(loops) => format!(
            "for {} in {}..{} where {}",
            loops.var.text,
            shown(&loops.range.low),
            shown(&loops.range.high),
            loops.condition.as_ref().map_or("-".into(), shown)
        ),
        StmtKind::If(condition, then, otherwise) => {
            format!("if {} [{}] [{}]", shown(condition), then.len(), otherwise.len())
        }
        other => format!("{other:?}").split(['(', ' ']).next().unwrap_or_default().to_owned(),
    }
}

#[test]
fn good_files_are_read_without_a_word() {
    for (name, text) in GOOD {
        assert_eq!(read(text).diagnostics, [], "{name}");
    }
}

#[test]
fn operators_bind_as_the_manual_says() {
    check_expr("-x * y % z + a", expect!["((((Neg x) * y) % z) + a)"]);
    check_expr("peer / d * d", expect!["((peer / d) * d)"]);
    check_expr("i & m != 0", expect!["((i & m) != 0)"]);
    check_expr("a << b + c & d ^ e | f", expect!["((((a << (b + c)) & d) ^ e) | f)"]);
    check_expr("not a == b and c or not not d", expect!["(((Not (a == b)) and c) or (Not (Not d)))"]);
    check_expr("a == not b or c", expect!["((a == (Not b)) or c)"]);
    check_expr("a - b - c - -d", expect!["(((a - b) - c) - (Neg d))"]);
    check_expr("(p ^ low(p)) | (low(p) << 1)", expect!["((p ^ low(p)) | (low(p) << 1))"]);
    check_expr(
        "if a { 1 } else if b { 2 } else { 3 } + 4",
        expect!["(if a { 1 } else { if b { 2 } else { 3 } } + 4)"],
    );
    check_expr("1_000 + 0.5 + 1e3 + f() + g(a, b)", expect!["((((1000 + 0.5) + 1000.0) + f()) + g(a, b))"]);
    check_expr("-9223372036854775808 + 1", expect!["(-9223372036854775808 + 1)"]);
    check_expr("ranks + left + after", expect!["((ranks + left) + after)"]);
}

#[test]
fn a_brace_after_a_head_opens_the_body() {
    check_kinds(
        "for i in 0..if a { 1 } else { 2 } where b { }",
        expect!["for i in 0..if a { 1 } else { 2 } where b"],
    );
    check_kinds(
        "for i in 0..n-1 where if a { b } else { c } { chunks 1 }",
        expect!["for i in 0..(n - 1) where if a { b } else { c }"],
    );
    check_kinds(
        "if if a { b } else { c } { chunks 1 chunks 2 } else { chunks 3 }",
        expect!["if if a { b } else { c } [2] [1]"],
    );
    check_kinds("if a { } else if b { } else { chunks 3 chunks 4 }", expect!["if a [0] [1]"]);
}

#[test]
fn a_reduce_goes_to_whom_it_belongs() {
    check_kinds("send data to 3 reduce reduce tmp into data", expect!["send reduce, reduce reduce from tmp"]);
    check_kinds("send data to 3 reduce tmp into data", expect!["send plain, reduce reduce from tmp"]);
    check_kinds(
        "send data to 3 reduce left reduce left tmp into data",
        expect!["send reduceleft, reduce reduceleft from tmp"],
    );
    check_kinds(
        "send data to 3 reduce left tmp into data",
        expect!["send plain, reduce reduceleft from tmp"],
    );
    check_kinds(
        "send data to 3 reduce left into data reduce left[0] into data",
        expect!["send plain, reduce reduce from left, reduce reduce from left"],
    );
    check_kinds(
        "send data to 3 reduce.binomial(data) recv data from 2 reduce left left.ring(data)",
        expect!["send plain, call reduce.binomial, recv reduceleft, call left.ring"],
    );
    check_kinds(
        "let x = a step.ring(data) send.to_all()",
        expect!["let x = a, call step.ring, call send.to_all"],
    );
}

#[test]
fn spans_end_with_the_last_word() {
    let text = "send data to 3   // a comment\n\n   chunks n  \n";
    let source = format!("schedule s: c {{\n{text}\n}}");
    let stmts = body(text);
    let slices: Vec<&str> =
        stmts.iter().map(|stmt| &source[stmt.span.start as usize..stmt.span.end as usize]).collect();
    assert_eq!(slices, ["send data to 3", "chunks n"]);
}

#[test]
fn docs_belong_to_file_and_schedule() {
    let parsed = read(
        "//! File.\n//!\n//!  More.\n// no\n\n/// One.\n//// no\n/// Two.\n///Three.\nschedule s: c { }",
    );
    assert_eq!(parsed.file.docs, ["File.", "", " More."]);
    let [Item::Schedule(schedule)] = parsed.file.items.as_slice() else { panic!("a schedule") };
    assert_eq!(schedule.docs, ["Two.", "Three."]);
}

#[test]
fn ranks_is_a_word_in_a_buffer_alone() {
    let parsed = read("collective c(ranks) { in a[2 * ranks]  out b  ensure each r: b == ranks.a }");
    let [Item::Collective(collective)] = parsed.file.items.as_slice() else { panic!("a collective") };
    assert_eq!(collective.buffers[0].blocks.as_ref().map(shown).as_deref(), Some("(2 * RANKS)"));
    assert!(parsed.diagnostics.is_empty());
}

#[test]
fn no_reserved_word_is_a_name() {
    let reserved = "use fn collective schedule operator inout into in out given ensure each where at chunks scratch let \
                    for if else require stage step tune send recv copy reduce signal from to as on group and or not true false";
    for word in reserved.split_whitespace() {
        let diagnostics = read(&format!("schedule s: c {{ let {word} = 3 }}")).diagnostics;
        let codes: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        assert_eq!(codes, [codes::RESERVED], "{word}");
    }
    for word in ["left", "after", "ranks", "ordered", "root", "n", "input", "forward", "step_", "inner"] {
        assert_eq!(read(&format!("schedule s: c {{ let {word} = 3 }}")).diagnostics, [], "{word}");
    }
}
