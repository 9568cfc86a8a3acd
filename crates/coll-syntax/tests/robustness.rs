//! No text makes the parser or the formatter panic, hang or overflow; what parses is formatted without a change.

// A failing case prints its seed and text.
#![allow(clippy::print_stdout)]

mod support;

use coll_base::FileId;
use coll_syntax::{codes, format};
use std::time::{Duration, Instant};
use support::{Chance, GOOD, cuts, read, tree};

/// Parses, and if nothing is wrong formats: the promises that hold for every text.
fn holds(text: &str) {
    let parsed = read(text);
    assert!(parsed.diagnostics.len() <= 21);
    for diagnostic in &parsed.diagnostics {
        assert!(codes::ALL.iter().any(|(code, _)| *code == diagnostic.code), "{}", diagnostic.code);
        let labels = diagnostic.primary.iter().chain(&diagnostic.secondary);
        for span in labels.map(|label| label.span) {
            let inside = text.get(span.start as usize..span.end as usize);
            assert!(inside.is_some(), "a label must lie on characters: {span:?} in {text:?}");
        }
    }
    match format(FileId(0), text) {
        Ok(once) => {
            assert_eq!(format(FileId(0), &once).as_ref(), Ok(&once), "formatting twice changes\n{text}");
            assert_eq!(tree(text), tree(&once), "formatting changes the tree of\n{text}\ninto\n{once}");
        }
        Err(diagnostics) => assert_eq!(diagnostics, parsed.diagnostics),
    }
}

#[test]
fn truncated_at_every_byte() {
    for (_, text) in GOOD {
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let parsed = read(&text[..end]);
            assert!(parsed.diagnostics.len() <= 21);
        }
    }
}

#[test]
fn every_token_left_out_or_doubled() {
    for (_, text) in GOOD {
        let cuts = cuts(text);
        for pair in cuts.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            holds(&format!("{}{}", &text[..start], &text[end..]));
            holds(&format!("{}{}", &text[..end], &text[start..]));
        }
    }
}

#[test]
fn token_soup() {
    const WORDS: [&str; 72] = [
        "use",
        "fn",
        "collective",
        "schedule",
        "operator",
        "ordered",
        "inout",
        "in",
        "out",
        "given",
        "ensure",
        "each",
        "where",
        "at",
        "after",
        "chunks",
        "scratch",
        "let",
        "for",
        "if",
        "else",
        "require",
        "stage",
        "step",
        "tune",
        "send",
        "recv",
        "copy",
        "reduce",
        "left",
        "into",
        "signal",
        "from",
        "to",
        "as",
        "on",
        "group",
        "and",
        "or",
        "not",
        "true",
        "data",
        "r",
        "n",
        "ring",
        "f",
        "0",
        "17",
        "2.5",
        "9223372036854775808",
        "\"why\"",
        "\"open",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        ";",
        ".",
        "..",
        "..=",
        "=",
        "==",
        "<",
        "+",
        "-",
        "*",
        "//! c\n",
        "é",
    ];
    for seed in 0..1500 {
        let mut chance = Chance(seed);
        let mut text = if chance.below(2) == 0 { String::new() } else { "schedule s: c {\n".into() };
        for _ in 0..chance.below(120) {
            text += WORDS[chance.below(WORDS.len())];
            text += [" ", " ", "\n", ""][chance.below(4)];
        }
        println!("seed {seed}:\n{text}");
        holds(&text);
    }
}

#[test]
fn good_files_mixed_up() {
    for seed in 0..400 {
        let mut chance = Chance(seed);
        let (_, text) = GOOD[chance.below(GOOD.len())];
        let (_, other) = GOOD[chance.below(GOOD.len())];
        let (cuts, other_cuts) = (cuts(text), cuts(other));
        let (a, b) = (cuts[chance.below(cuts.len())], cuts[chance.below(cuts.len())]);
        let c = other_cuts[chance.below(other_cuts.len())];
        println!("seed {seed}");
        holds(&format!("{}{}{}", &text[..a], &other[c..], &text[b..]));
    }
}

/// Deep and long texts. Run on a thread with the stack of any other: nothing here may count on more.
#[test]
fn deep_and_long_texts_end_soon() {
    let body = |text: &str| format!("schedule s: c {{ {text} }}");
    let deep = |open: &str, middle: &str, close: &str, levels: usize| {
        body(&format!("{}{middle}{}", open.repeat(levels), close.repeat(levels)))
    };
    let texts = [
        deep("let x = (", "a", ")", 1).replace('(', &"(".repeat(198)).replace(')', &")".repeat(198)),
        body(&format!("let x = {}a{}", "(".repeat(198), ")".repeat(198))),
        body(&format!("let x = {}a", "(".repeat(198))),
        body(&format!("let x = {}a{}", "f(1, ".repeat(198), ")".repeat(198))),
        body(&format!("let x = {}a{}", "if a { 1 } else { ".repeat(198), "}".repeat(198))),
        body(&format!("let x = {}", "if a {".repeat(198))),
        body(&format!("send {}", "x[f(".repeat(99))),
        deep("for i in 0..n { ", "", "}", 198),
        deep("for i in 0..n { ", "", "", 198),
        deep("for i in 0 { ", "", "}", 198),
        deep("if a { let x = if ", "", "", 99),
        "{".repeat(200),
        "(".repeat(1_000_000),
        body(&format!("let x = {}a", "-".repeat(200_000))),
        body(&format!("let x = {}a", "not ".repeat(200_000))),
        body(&format!("let x = {}a", "a + ".repeat(200_000))),
        body(&format!("let x = {}a", "a < ".repeat(100_000))),
        body(&format!("let x = if a {{ 1 }} {} else {{ 2 }}", "else if a { 1 } ".repeat(50_000))),
        body(&format!("if a {{}} {}", "else if a {} ".repeat(50_000))),
        body(&"= if ".repeat(50_000)),
        body(&"send data 3 ".repeat(50_000)),
        body(&"send data to 3; ".repeat(50_000)),
        "\"".repeat(500_000),
        "foo ".repeat(100_000),
        "a".repeat(2_000_000),
        format!("//{}", "a".repeat(2_000_000)),
    ];
    for text in texts {
        let start = Instant::now();
        let parsed = read(&text);
        let formatted = format(FileId(0), &text);
        assert_eq!(formatted.is_err(), !parsed.diagnostics.is_empty());
        let shown: String = text.chars().take(60).collect();
        assert!(start.elapsed() < Duration::from_secs(60), "{shown}… took {:?}", start.elapsed());
    }
}

#[test]
fn a_line_of_ten_megabytes() {
    let text = format!("schedule s: c {{ {}}}", "send data[r] to r + 1 reduce ".repeat(10_000_000 / 29));
    let start = Instant::now();
    let parsed = read(&text);
    assert!(parsed.diagnostics.is_empty());
    assert!(start.elapsed() < Duration::from_secs(120), "took {:?}", start.elapsed());
    let more = format!("schedule s: c {{ let x = {}1 }}", "1 + ".repeat(2_500_000));
    let codes: Vec<_> = read(&more).diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, [codes::TOO_MUCH]);
}
