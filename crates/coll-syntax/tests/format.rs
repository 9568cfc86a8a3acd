//! The formatter: idempotent, true to the tree, and every comment in its place.

mod support;

use coll_base::FileId;
use coll_syntax::format;
use expect_test::{Expect, expect};
use support::{GOOD, cuts, read, tree};

fn formatted(text: &str) -> String {
    format(FileId(0), text).unwrap_or_else(|diagnostics| panic!("{diagnostics:#?}\n{text}"))
}

fn check(text: &str, expected: Expect) {
    let once = formatted(text);
    expected.assert_eq(&once);
    assert_eq!(formatted(&once), once);
    assert_eq!(tree(text), tree(&once));
}

#[test]
fn good_files_keep_their_tree_and_settle_at_once() {
    for (name, text) in GOOD {
        let once = formatted(text);
        assert_eq!(formatted(&once), once, "{name}");
        assert_eq!(tree(text), tree(&once), "{name}");
        assert!(
            once.lines().all(|line| line.trim_start().starts_with("//") || line.chars().count() < 160),
            "{name}"
        );
    }
}

#[test]
fn the_example_of_the_manual_is_as_it_should_be() {
    let (_, text) = GOOD[4];
    assert_eq!(formatted(text), text);
}

#[test]
fn any_blanks_give_the_same_layout() {
    let (_, text) = GOOD[4];
    let spread = text.lines().map(|line| format!("  {line}  \r\n")).collect::<String>();
    assert_eq!(formatted(&spread), text);
}

/// A comment between any two words stays, and moves nothing.
#[test]
fn a_comment_may_stand_anywhere() {
    for (name, text) in GOOD {
        let comments = [" // here\n", "\n// here\n", "\n\n// here\n\n"];
        for (cut, comment) in cuts(text).into_iter().zip(comments.into_iter().cycle()) {
            let with = format!("{}{comment}{}", &text[..cut], &text[cut..]);
            // Within a comment or a text in quotes it is none, and between the dots of `..` it is an error.
            if !read(&with).diagnostics.is_empty() {
                continue;
            }
            let once = formatted(&with);
            assert_eq!(formatted(&once), once, "{name} with a comment at {cut}");
            assert_eq!(tree(&with), tree(&once), "{name} with a comment at {cut}");
            let count = |text: &str| text.matches("// here").count();
            assert_eq!(count(&once), count(&with), "{name} at {cut}:\n{once}");
        }
    }
}

#[test]
fn comments_keep_their_places() {
    check(
        "// first\n\n\n\n// second\nschedule s: c { // opens\n// own line\n  chunks n // counts\n\n\n\n  // before the end\n\n} // closes\n// last\n",
        expect![[r#"
            // first

            // second
            schedule s: c {  // opens
                // own line
                chunks n  // counts

                // before the end
            }  // closes
            // last
        "#]],
    );
    check(
        "schedule s: c {\nsend data // what\n to 3 // where\n // how\n reduce\n}",
        expect![[r#"
        schedule s: c {
            send data  // what
                    to 3  // where
                    // how
                    reduce
        }
    "#]],
    );
    check(
        "schedule s: c { if a { chunks 1 } // one\n else // two\n { chunks 2 } }",
        expect![[r#"
        schedule s: c {
            if a {
                chunks 1
            }  // one
            else  // two
            {
                chunks 2
            }
        }
    "#]],
    );
}

#[test]
fn long_lines_break_at_clauses_commas_and_operators() {
    check(
        "schedule s(alpha = 1, beta = 2): c { step each rank in group(k * local + position for k in 0..number_of_nodes where k != mine) where rank != root { send data[(rank + 1 + something_long) % number, other] to (rank + something_long) % number as scratch_space[rank, other] reduce left } }",
        expect![[r#"
            schedule s(alpha = 1, beta = 2): c {
                step each rank in group(k * local + position for k in 0..number_of_nodes where k != mine)
                        where rank != root {
                    send data[(rank + 1 + something_long) % number, other] to (rank + something_long) % number
                            as scratch_space[rank, other] reduce left
                }
            }
        "#]],
    );
    check(
        "fn f(a) = if a == 1 and something_rather_long(a, a + 1) or another_thing_that_is_long(a) and last_thing(a, a, a) { 1 } else { 2 }",
        expect![[r#"
            fn f(a) = if a == 1 and something_rather_long(a, a + 1) or another_thing_that_is_long(a)
                    and last_thing(a, a, a) { 1 } else { 2 }
        "#]],
    );
    check(
        "schedule s: c { for i in 0..n { copy data[some_long_name(i, i + 1), another_long_name(i, i - 1)] to output[some_long_name(i, i)] } }",
        expect![[r#"
            schedule s: c {
                for i in 0..n {
                    copy data[some_long_name(i, i + 1),
                            another_long_name(i, i - 1)] to output[some_long_name(i, i)]
                }
            }
        "#]],
    );
}

#[test]
fn operators_stay_tight_unless_they_mislead() {
    check(
        "fn f(a) = k*local+a",
        expect![[r#"
        fn f(a) = k*local+a
    "#]],
    );
    check(
        "fn f(a) = a+b * c - - d",
        expect![[r#"
        fn f(a) = a + b * c - -d
    "#]],
    );
    check(
        "fn f(a) = (a+1)<<2|a - 1==3 and not b",
        expect![[r#"
        fn f(a) = (a+1) << 2 | a - 1 == 3 and not b
    "#]],
    );
    check(
        "fn f(a) = -a*-b",
        expect![[r#"
        fn f(a) = -a*-b
    "#]],
    );
}

#[test]
fn bodies() {
    check(
        "schedule s: c { }\nschedule t: c {\n}\nschedule u: c { chunks n let x = 3\n}\n",
        expect![[r#"
        schedule s: c {}
        schedule t: c {}
        schedule u: c {
            chunks n
            let x = 3
        }
    "#]],
    );
    check(
        "schedule s: c { step each r { for k in 0..n { for l in 0..n {\nsend data to r\nsend data to l } } } }",
        expect![[r#"
            schedule s: c {
                step each r { for k in 0..n { for l in 0..n {
                    send data to r
                    send data to l
                } } }
            }
        "#]],
    );
    check(
        "schedule s: c { tune { lanes 2\nslices 3 } if a {chunks 1} else if b {chunks 2} else {\nchunks 3} }",
        expect![[r#"
            schedule s: c {
                tune {
                    lanes 2
                    slices 3
                }
                if a {
                    chunks 1
                } else if b {
                    chunks 2
                } else {
                    chunks 3
                }
            }
        "#]],
    );
}

#[test]
fn a_file_with_errors_is_left_alone() {
    assert!(format(FileId(0), "schedule s c { }").is_err());
}
