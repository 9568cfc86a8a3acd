//! What the text form promises: it reads back, it names lines, and nothing in it can bring the reader down.

use crate::samples::{PAIR, pair};
use crate::{from_text, normal_form, to_text, verify};
use expect_test::{Expect, expect};

fn check(text: &str, expect: Expect) {
    let answer = match from_text(text) {
        Ok(plan) => to_text(&plan),
        Err(error) => error.to_string(),
    };
    expect.assert_eq(&answer);
}

fn refused(from: &str, to: &str, expect: Expect) {
    assert!(PAIR.contains(from), "`{from}` is in the sample");
    check(&PAIR.replacen(from, to, 1), expect);
}

#[test]
fn the_sample_prints_as_it_is_written() {
    assert_eq!(verify(&pair()), Ok(()));
    assert_eq!(to_text(&pair()), PAIR);
}

#[test]
fn tables_of_a_hundred_ranks_take_a_line_each() {
    let text = r#"plan 3
name "allgather.none"
channels 1
slots 0
cuts 0 1/3 1
contract "allgather"
ranks 100
buffer inout data[100]
given data r0[0] r1[1..3] r7[0]
classes 100
class r0..100 data[0..100] = 0 step 1
value 0..100 = copy r0.data[0] next rank block
value 100 = reduce r0..50.data[1] r9.data[3]
value 101..103 = copy r3.data[5] next block
ensure r0..99 data[0..100] = 0 step 1
ensure r99 data[0..3] = 5 step -2
after r0: r1..100
after r1: r0 r5..7
rank 0
"#;
    let plan = from_text(text).unwrap();
    assert_eq!((plan.contract.ensures.len(), plan.contract.values.len()), (9903, 103));
    let strip = |text: &str| text.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    assert_eq!(strip(&to_text(&plan)), strip(text));
}

#[test]
fn a_placement_reads_back() {
    let placed = PAIR.replacen("plan 3", "plan 4", 1);
    let placed = placed.replacen("line 0", "placement \"two \\\"boxes\\\"\" order 5 2\nline 0", 1);
    let plan = from_text(&placed).unwrap();
    assert_eq!(verify(&plan), Ok(()));
    assert_eq!(
        plan.placement.as_ref().map(|p| (p.topology.as_str(), &p.order[..])),
        Some(("two \"boxes\"", &[5, 2][..]))
    );
    assert_eq!(to_text(&plan), placed);
    let slice = plan.slice(1).unwrap();
    assert_eq!((verify(&slice), from_text(&to_text(&slice)).unwrap()), (Ok(()), slice));
    for order in ["", "5", "5 5", "1 2 3"] {
        let wrong = placed.replacen("order 5 2", &format!("order {order}"), 1);
        let error = verify(&from_text(&wrong).unwrap()).unwrap_err();
        assert!(error.to_string().contains("placement"), "{order}: {error}");
    }
}

#[test]
fn a_slice_reads_back() {
    let slice = pair().slice(1).unwrap();
    assert_eq!(verify(&slice), Ok(()));
    let read = from_text(&to_text(&slice)).unwrap();
    assert_eq!(read, slice);
}

#[test]
fn errors_name_the_line_and_what_was_due() {
    refused("plan 3", "plan 5", expect!["line 1, column 6: expected `plan 4`, found version 5 [E0660]"]);
    refused(
        "op4 copy",
        "op5 copy",
        expect![
            "line 28, column 5: expected `op4`, as operations are numbered in order, found `op5` [E0660]"
        ],
    );
    refused(
        "data.in[0:0..1] to",
        "date.in[0:0..1] to",
        expect!["line 23, column 14: expected a buffer of the contract: `data`, found `date` [E0660]"],
    );
    refused("to r1", "to 1", expect!["line 23, column 33: expected a rank such as `r0`, found `1` [E0660]"]);
    refused(
        "; step 0 line 0",
        "",
        expect!["line 23, column 46: expected `;`, found the end of the line [E0660]"],
    );
    refused(
        "cuts equal 2",
        "cuts equal 99999999999999999999",
        expect![
            "line 7, column 12: expected a number of pieces below 2^64, found `99999999999999999999` [E0660]"
        ],
    );
    refused(
        "\"pair.coll\" 3",
        "\"pair.coll 3",
        expect!["line 8, column 8: expected a string that ends on its line, found one that does not [E0660]"],
    );
    refused(
        "ranks 2",
        "ranks 4294967295",
        expect!["line 16, column 23: expected at most 67108864 entries, found 4294967295 [E0660]"],
    );
    check("", expect!["line 1, column 1: expected `plan 4`, found the end of the text [E0660]"]);
}

#[test]
fn a_few_words_cannot_stand_for_gigabytes() {
    refused(
        "ensure r0..2 data[0] = 0",
        "ensure r0..4294967295 data[0..4294967295] = 0",
        expect!["line 18, column 45: expected at most 67108864 entries, found 4294967295 [E0660]"],
    );
    refused(
        "class r0..2 data[0] = 0",
        "class r0..4294967295 data[0] = 0",
        expect!["line 16, column 32: expected a rank that the contract speaks of, found 2 [E0660]"],
    );
}

#[test]
fn every_token_changed_is_an_error_or_a_plan_that_reads_back() {
    let words: Vec<&str> = PAIR.split_inclusive([' ', '[', '.', ':', ']', '\n']).collect();
    let others = [
        "",
        "0",
        "4294967295",
        "18446744073709551615",
        "-1",
        "op9",
        "along",
        "[",
        "nothing",
        "r1",
        "\"",
        "\u{e9}",
    ];
    let (mut refused, mut sound) = (0, 0);
    for at in 0..words.len() {
        for other in others {
            let mut changed = words.clone();
            let tail = &words[at][words[at].len() - 1..];
            let word = format!("{other}{tail}");
            changed[at] = &word;
            match from_text(&changed.concat()).map(|plan| (verify(&plan), plan)) {
                Ok((Ok(()), plan)) => {
                    assert_eq!(from_text(&to_text(&plan)).as_ref(), Ok(&plan));
                    assert_eq!(*normal_form(&plan), plan);
                    sound += 1;
                }
                Ok((Err(_), _)) | Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 1000 && sound > 20, "{refused} refused, {sound} sound");
}
