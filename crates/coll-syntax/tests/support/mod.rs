//! What several of this crate's test files need: the good files, trees without places, and a source of chance.

#![allow(dead_code, missing_docs, unreachable_pub)]

use coll_base::{FileId, SourceMap};
use coll_syntax::{Parsed, parse};

/// Files without a fault: every block of the language's design, and one of odd cases.
pub const GOOD: [(&str, &str); 6] = [
    ("collectives", include_str!("../good/collectives.coll")),
    ("library", include_str!("../good/library.coll")),
    ("operators", include_str!("../good/operators.coll")),
    ("ring_by_composition", include_str!("../good/ring_by_composition.coll")),
    ("ring_by_steps", include_str!("../good/ring_by_steps.coll")),
    ("words_in_their_place", include_str!("../good/words_in_their_place.coll")),
];

pub fn read(text: &str) -> Parsed {
    parse(FileId(0), text)
}

/// The whole tree as text, without places.
pub fn tree(text: &str) -> String {
    let debug = format!("{:?}", read(text).file);
    let mut out = String::new();
    let mut rest = debug.as_str();
    while let Some(at) = rest.find("Span {") {
        out += &rest[..at];
        // A span's own text has one brace pair and no more: `Span { file: FileId(0), start: 1, end: 2 }`.
        rest = rest[at..].split_once('}').map_or("", |(_, after)| after);
    }
    out + rest
}

/// A small generator (Steele, Lea and Flood's SplitMix64): the same seed, the same texts.
pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// Places where a text may be cut: between runs of letters, runs of blanks, and other characters.
pub fn cuts(text: &str) -> Vec<usize> {
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            0
        } else if c.is_whitespace() {
            1
        } else {
            2
        }
    };
    let mut cuts = vec![0];
    let mut last = None;
    for (at, c) in text.char_indices() {
        if last.is_some_and(|last| last != class(c) || class(c) == 2) {
            cuts.push(at);
        }
        last = Some(class(c));
    }
    cuts.push(text.len());
    cuts
}

/// All diagnostics of a text, as a reader would want them in a snapshot.
pub fn messages(text: &str) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("t.coll", text);
    let mut out = String::new();
    for diagnostic in coll_syntax::parse(FileId(0), text).diagnostics {
        assert!(coll_syntax::codes::ALL.iter().any(|(code, _)| *code == diagnostic.code));
        let place = diagnostic.primary.as_ref().map(|label| {
            assert_eq!(label.span.file, file);
            let at = sources.start_of(label.span);
            format!(" {}:{} `{}`", at.line, at.column, sources.slice(label.span))
        });
        out += &format!("{}{}: {}\n", diagnostic.code, place.unwrap_or_default(), diagnostic.message);
        for label in &diagnostic.secondary {
            let at = sources.start_of(label.span);
            out += &format!("    {}:{} {}\n", at.line, at.column, label.text);
        }
        if let (Some(expected), Some(found)) = (&diagnostic.expected, &diagnostic.found) {
            out += &format!("    expected {expected}; found {found}\n");
        }
        if let Some(help) = &diagnostic.help {
            out += &format!("    help: {help}\n");
        }
    }
    out
}
