//! What the parser says of broken statements: ends, brackets, signs. Each case shows the whole list of diagnostics: one too many is a fault too.

mod support;

use expect_test::{Expect, expect};
use support::messages;

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&messages(text));
}

/// As `check`, for statements of a schedule.
fn check_body(body: &str, expected: Expect) {
    check(&format!("schedule s: c {{\n{body}\n}}\n"), expected);
}

#[test]
fn three_faults_give_three_messages() {
    check(
        "schedule ring allreduce {\n    chunks n\n}\nschedule two: allreduce {\n    for s in 0..n {\n        step each r {\n            send data[r to r + 1\n            send data to\n        }\n    }\n}\n",
        expect![[r#"
            E0001 1:15 `allreduce`: expected `:`, found the name `allreduce`
                expected `:`; found the name `allreduce`
                help: the form is `schedule NAME(PARAMETER = DEFAULT): COLLECTIVE { … }`
            E0003 7:22 `[`: this `[` is not closed
                7:25 `]` expected before this
                expected `]`, `..`, `,`, `for` or an operator; found the word `to`
                help: close it with `]`
            E0001 8:23 `to`: expected an expression after `to`, found `}`
                9:9 found here
                expected an expression; found `}`
                help: the form is `send VIEW [from RANK] to RANK [as VIEW] [reduce [left]]`
        "#]],
    );
}

#[test]
fn transfers() {
    check_body(
        "    step each r { send data }\n    chunks n",
        expect![[r#"
        E0018 2:19 `send data`: this `send` does not say to which rank
            expected `to`; found `}`
            help: the form is `send VIEW [from RANK] to RANK [as VIEW] [reduce [left]]`
    "#]],
    );
    check_body(
        "    step each r { send data t 3 }",
        expect![[r#"
        E0001 2:29 `t`: expected `from` or `to`, found the name `t`
            expected `from` or `to`; found the name `t`
            help: the form is `send VIEW [from RANK] to RANK [as VIEW] [reduce [left]]`
    "#]],
    );
    check_body(
        "    step { send data 3 to 4 }",
        expect![[r#"
        E0001 2:22 `3`: expected `from` or `to`, found the number `3`
            expected `from` or `to`; found the number `3`
            help: the form is `send VIEW [from RANK] to RANK [as VIEW] [reduce [left]]`
    "#]],
    );
    check_body(
        "    step { send data -> 4 }",
        expect![[r#"
        E0011 2:22 `->`: `->` is not an operator here
            expected `to`; found `->`
            help: write `send VIEW to RANK`
    "#]],
    );
    check_body(
        "    step { recv data to 4 }",
        expect![[r#"
        E0001 2:22 `to`: expected `from`, found the word `to`
            expected `from`; found the word `to`
            help: the form is `recv VIEW from RANK [to RANK] [as VIEW] [reduce [left]]`
    "#]],
    );
    check_body(
        "    step { copy data at 4 }",
        expect![[r#"
        E0001 2:22 `at`: expected `to`, found the word `at`
            expected `to`; found the word `at`
            help: the form is `copy VIEW to VIEW [at RANK]`
    "#]],
    );
    check_body(
        "    step { reduce tmp to data }",
        expect![[r#"
        E0001 2:23 `to`: expected `into`, found the word `to`
            expected `into`; found the word `to`
            help: the form is `reduce [left] VIEW into VIEW [at RANK]`
    "#]],
    );
    check_body(
        "    step { send to 3 }",
        expect![[r#"
            E0001 2:17 `to`: expected a buffer or scratch, found the word `to`
                expected a buffer or scratch; found the word `to`
                help: the form is `send VIEW [from RANK] to RANK [as VIEW] [reduce [left]]`
        "#]],
    );
    check_body(
        "    step { send data to 3 as }",
        expect![[r#"
            E0001 2:30 `}`: expected a buffer or scratch, found `}`
                expected a buffer or scratch; found `}`
                help: the form is `send VIEW [from RANK] to RANK [as VIEW] [reduce [left]]`
        "#]],
    );
    check_body(
        "    step { sned data to 3 }",
        expect![[r#"
        E0017 2:12 `sned`: no statement begins with `sned`
            expected a statement; found the name `sned`
            help: did you mean `send`?
    "#]],
    );
    check_body(
        "    step { send data to 3 reduce right }",
        expect![[r#"
            E0001 2:34 `right`: expected `left` or the next statement, found the name `right`
                expected `left` or the next statement; found the name `right`
                help: the form is `send VIEW [from RANK] to RANK [as VIEW] [reduce [left]]`
        "#]],
    );
}

#[test]
fn brackets() {
    check_body(
        "    send data[(r - s % n] to r\n    send data to 1",
        expect![[r#"
            E0001 2:25 `]`: expected `)` or an operator, found `]`
                2:15 this is still open
                expected `)` or an operator; found `]`
                help: close it with `)`
        "#]],
    );
    check_body(
        "    send data[r - s to r\n    send data to 1",
        expect![[r#"
            E0003 2:14 `[`: this `[` is not closed
                2:21 `]` expected before this
                expected `]`, `..`, `,`, `for` or an operator; found the word `to`
                help: close it with `]`
        "#]],
    );
    check_body(
        "    send data[r)] to r",
        expect![[r#"
            E0001 2:16 `)`: expected `]`, `..`, `,`, `for` or an operator, found `)`
                2:14 this is still open
                expected `]`, `..`, `,`, `for` or an operator; found `)`
                help: close it with `]`
        "#]],
    );
    check_body(
        "    send data] to r\n    }\n    chunks 3",
        expect![[r#"
        E0001 2:14 `]`: expected `from` or `to`, found `]`
            expected `from` or `to`; found `]`
            help: the form is `send VIEW [from RANK] to RANK [as VIEW] [reduce [left]]`
        E0017 4:5 `chunks`: no declaration begins with `chunks`
            expected a declaration; found the word `chunks`
            help: statements stand in a schedule; is there a `}` too many before it?
    "#]],
    );
    check_body(
        "    chunks f(a, b\n    let x = 3",
        expect![[r#"
            E0003 2:13 `(`: this `(` is not closed
                3:5 `)` expected before this
                expected `)`, `,` or an operator; found the word `let`
                help: close it with `)`
        "#]],
    );
    check(
        "schedule a: b {\n    for i in 0..n {\n        step {\n            send a to b\n        }\n    chunks 3\n}\n",
        expect![[r#"
        E0003 2:19 `{`: this `{` is not closed
            7:1 this `}` closes it, but stands as if it closed an outer one
            expected `}`; found the end of the file
            help: close it with `}`
    "#]],
    );
    check(
        "schedule a: b {\n    step {\n        send a to b\n}\n\nschedule c: d {\n    chunks a b\n}\n",
        expect![[r#"
        E0003 2:10 `{`: this `{` is not closed
            4:1 this `}` closes it, but stands as if it closed an outer one
            expected `}`; found the word `schedule`
            help: close it with `}`
        E0001 7:14 `b`: expected `,`, an operator or the next statement, found the name `b`
            expected `,`, an operator or the next statement; found the name `b`
            help: the form is `chunks A` or `chunks A, B`
    "#]],
    );
    check(
        "schedule a: b\n    chunks n\n    step { send a to b }\n}\nuse a.\n",
        expect![[r#"
            E0001 1:13 `b`: expected `{` after `b`, found the word `chunks`
                2:5 found here
                expected `{`; found the word `chunks`
                help: the form is `schedule NAME(PARAMETER = DEFAULT): COLLECTIVE { … }`
            E0001 5:6 `.`: expected a name after `.`, found the end of the file
                expected a name; found the end of the file
                help: the form is `use COLLECTIVE.SCHEDULE`
        "#]],
    );
    check(
        "collective a { inout data\n\ncollective b { }\n",
        expect![[r#"
        E0003 1:14 `{`: this `{` is not closed
            3:1 `}` expected before this
            expected `}`; found the word `collective`
            help: close it with `}`
    "#]],
    );
    check_body(
        "    for i in 0..n\n        step { send a to b }\n    }\n    let x = 3",
        expect![[r#"
            E0001 2:17 `n`: expected `{`, `where` or an operator after `n`, found the word `step`
                3:9 found here
                expected `{`, `where` or an operator; found the word `step`
                help: the form is `for NAME in A..B [where CONDITION] { … }`
        "#]],
    );
    check_body(
        "    send a to b { send c to d }",
        expect![[r#"
        E0021 2:17 `{`: this block belongs to no statement
            2:5 this statement takes no block
            expected a statement; found `{`
            help: put `step`, `stage NAME`, `for … in …` or `if …` before it, or remove its braces
    "#]],
    );
}

#[test]
fn operators_of_other_languages() {
    check_body(
        "    let x = a && b\n    let y = c || d\n    let z = if !a { 1 } else { 2 }",
        expect![[r#"
            E0011 2:15 `&&`: `&&` is not an operator here
                expected `and`; found `&&`
                help: write `a and b`
            E0011 3:15 `||`: `||` is not an operator here
                expected `or`; found `||`
                help: write `a or b`
            E0011 4:16 `!`: `!` is not an operator here
                expected `not`; found `!`
                help: write `not a`
        "#]],
    );
    check_body(
        "    let x = 2 ** k",
        expect![[r#"
        E0011 2:15 `**`: `**` is not an operator here
            expected `pow(a, b)`; found `**`
            help: write `pow(a, b)`; a power of two is `1 << k`
    "#]],
    );
    check_body(
        "    let x := 2",
        expect![[r#"
        E0011 2:11 `:=`: `:=` is not an operator here
            expected `=`; found `:=`
            help: write `let x = …`
    "#]],
    );
    check_body(
        "    step each r where r = 3 { send data to 1 }\n    require n = 3",
        expect![[r#"
        E0011 2:25 `=`: `=` is not an operator here
            expected `==`; found `=`
            help: compare with `==`
        E0011 3:15 `=`: `=` is not an operator here
            expected `==`; found `=`
            help: compare with `==`
    "#]],
    );
    check_body(
        "    x += 3\n    let y = 3 ≤ 4",
        expect![[r#"
        E0011 2:7 `+=`: `+=` is not an operator here
            expected `let`; found `+=`
            help: names do not change: give the new value a name of its own with `let`
        E0002 3:15 `≤`: `≤` (U+2264) means nothing here
            help: write `<=`
    "#]],
    );
    check_body(
        "    require 0 < r < n",
        expect![[r#"
        E0014 2:13 `0 < r < n`: comparisons are not chained
            expected one comparison, or several joined by `and`; found the result of one comparison compared again
            help: write `0 < r and r < n`
    "#]],
    );
    check_body(
        "    require (0 < r) == (r < n) and a == b != c",
        expect![[r#"
        E0014 2:36 `a == b != c`: comparisons are not chained
            expected one comparison, or several joined by `and`; found the result of one comparison compared again
            help: write `a == b and b != c`
    "#]],
    );
}

#[test]
fn punctuation_and_comments() {
    check_body(
        "    chunks n;\n    let x = 3;",
        expect![[r#"
            E0012 2:13 `;`: this `;` separates nothing
                expected no separator; found `;`
                help: remove the `;`: what follows begins with its own word
            E0012 3:14 `;`: this `;` separates nothing
                expected no separator; found `;`
                help: remove the `;`: what follows begins with its own word
        "#]],
    );
    check_body(
        "    chunks n,\n    let x = 3,\n    let y = f(3,)",
        expect![[r#"
            E0012 2:13 `,`: this `,` separates nothing
                expected no separator; found `,`
                help: remove the `,`: what follows begins with its own word
            E0012 3:14 `,`: this `,` separates nothing
                expected no separator; found `,`
                help: remove the `,`: what follows begins with its own word
            E0012 4:16 `,`: this `,` separates nothing
                expected no separator; found `,`
                help: remove the `,`: what follows begins with its own word
        "#]],
    );
    check_body(
        "    # a comment with send data to 3\n    chunks n # another",
        expect![[r#"
        E0013 2:5 `#`: `#` does not begin a comment here
            expected `//`; found `#`
            help: write `// …`; it reaches to the end of the line
        E0013 3:14 `#`: `#` does not begin a comment here
            expected `//`; found `#`
            help: write `// …`; it reaches to the end of the line
    "#]],
    );
    check_body(
        "    /* a comment */\n    chunks n",
        expect![[r#"
        E0013 2:5 `/*`: `/*` does not begin a comment here
            expected `//`; found `/*`
            help: write `// …`; it reaches to the end of the line
    "#]],
    );
    check_body(
        "    require n > 1, \"open\n    chunks n",
        expect![[r#"
        E0005 2:20 `"open`: this text does not end
            expected `"` on the same line; found the end of the line
            help: close it with `"`; a text cannot go on in the next line
    "#]],
    );
    check_body(
        "    require n > 1, 'why'",
        expect![[r#"
        E0002 2:20 `'`: `'` (U+0027) means nothing here
            help: texts stand in straight double quotes, `"`
    "#]],
    );
}
