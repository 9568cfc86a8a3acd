//! GOAL files as plans of messages: every file that Schedgen wrote, and files that are wrong in one thing each.

mod support;

use coll_base::{Code, Diagnostic, SourceMap};
use coll_interop::codes::{RING, SYNTAX, TAGS, UNMATCHED, UNSUPPORTED};
use coll_interop::{Foreign, Form, Imported};
use coll_plan::Action;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/goal")
}

fn import(name: &str, text: &str) -> Result<Imported, Vec<Diagnostic>> {
    let mut map = SourceMap::new();
    let file = map.add(name, text);
    assert_eq!(Form::of(text.as_bytes()), Some(Form::Goal), "{name}");
    Foreign::read(Form::Goal, file, &map)?.import(None, None, &map)
}

/// Every file is a plan that is proved: each message arrives, at its size.
#[test]
fn every_file_becomes_a_proved_plan() {
    let mut files: Vec<PathBuf> = vec![folder().join("binary_tree_32.goal")];
    let entries = std::fs::read_dir(folder().join("schedgen")).expect("it can be listed");
    files.extend(entries.map(|entry| entry.expect("it can be listed").path()));
    files.retain(|path| path.extension().is_some_and(|ending| ending == "goal"));
    files.sort();
    assert_eq!(files.len(), 49);
    for path in files {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("it is text");
        let imported = import(&name, &text).unwrap_or_else(|told| panic!("{name}: {told:#?}"));
        assert_eq!((imported.races, imported.unordered.len()), (0, 0), "{name}");
        let mut plan = imported.plan;
        plan.slots = u32::MAX;
        let proof = coll_check::plan::prove(&plan);
        assert!(proof.diagnostics.is_empty() && proof.min_slots > 0, "{name}: {:#?}", proof.diagnostics);
        let lines = |word: &str| text.lines().filter(|line| line.contains(word)).count();
        let ops = |sends: bool| {
            let ops = plan.ranks.iter().flat_map(|part| &part.ops);
            ops.filter(|op| matches!(op.action, Action::Send { .. }) == sends).count()
        };
        assert_eq!((ops(true), ops(false)), (lines(": send "), lines(": recv ")), "{name}");
        assert_eq!(plan.contract.ensures.len(), lines(": send "), "{name}");
        // Sizes are those of the file, each once, and those of messages that meet are alike.
        let mut sizes: Vec<u64> = text
            .lines()
            .filter_map(|line| line.split(": send ").nth(1)?.split_once('b'))
            .map(|(bytes, _)| bytes.parse().expect("bytes"))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        assert_eq!(imported.sizes_bytes, Some(sizes), "{name}");
    }
}

/// What an operation requires comes before it, through computations too; who waits for a start waits for what that waits for.
#[test]
fn requirements_hold_through_computations() {
    let text = "num_ranks 2\nrank 0 {\nl1: recv 8b from 1\nl2: calc 5\nl2 requires l1\nl3: send 8b to 1\nl3 requires l2\n\
                l4: send 8b to 1 tag 1\nl4 irequires l3\n}\nrank 1 {\nl1: send 8b to 0\nl2: recv 8b from 0\nl3: recv 8b from 0 tag 1\n}\n";
    let plan = import("x.goal", text).expect("it is right").plan;
    let part = &plan.ranks[0];
    let receive = part.ops.iter().position(|op| op.action.receives_from().is_some()).expect("it receives");
    let sends: Vec<_> = part.ops.iter().filter(|op| op.action.sends_to().is_some()).collect();
    assert_eq!(sends.len(), 2);
    for send in sends {
        let waits: Vec<u32> = part.waits(send).iter().map(|wait| wait.op).collect();
        assert_eq!(waits, [receive as u32]);
    }
}

fn told(text: &str) -> Vec<Diagnostic> {
    match import("x.goal", text) {
        Ok(imported) => imported.unordered,
        Err(told) => told,
    }
}

/// One thing wrong in each: the code, words of the message, and the line where it is told.
#[test]
fn what_is_wrong_is_told_at_its_line() {
    let two = |a: &str, b: &str| format!("num_ranks 2\nrank 0 {{\n{a}\n}}\nrank 1 {{\n{b}\n}}\n");
    let cases: Vec<(String, Code, &str, u32)> = vec![
        ("num_ranks 2\nrank 0 {\nl1: send 8b to 2\n}\nrank 1 { }\n".into(), SYNTAX, "rank 2 is none of", 3),
        (two("l1: send 8b to 1", ""), UNMATCHED, "never receives", 3),
        (two("", "l1: recv 8b from 0"), UNMATCHED, "never sends", 6),
        (two("l1: send 8b to 1 tag 1", "l1: recv 8b from 0 tag 2"), UNMATCHED, "never", 3),
        (two("l1: send 8b to 1", "l1: recv 9b from 0"), UNMATCHED, "another size", 6),
        (two("l1: send 8b to 1", "l1: recv 8b from -1"), UNSUPPORTED, "any rank or any tag", 6),
        (two("l1: send 8b to 1", "l1: recv 8b from 0 tag -1"), UNSUPPORTED, "any rank or any tag", 6),
        (
            two("l1: calc 1\nl2: calc 1\nl1 requires l2\nl2 requires l1", ""),
            RING,
            "2 operations of rank 0",
            3,
        ),
        (
            two(
                "l1: recv 8b from 1\nl2: send 8b to 1\nl2 requires l1",
                "l1: recv 8b from 0\nl2: send 8b to 0\nl2 requires l1",
            ),
            RING,
            "4 operations wait for each other",
            3,
        ),
        (
            two(
                "l1: send 8b to 1\nl2: send 9b to 1",
                "l1: recv 8b from 0\nl2: recv 9b from 0\nl2 requires l1",
            ),
            TAGS,
            "left to chance",
            4,
        ),
    ];
    for (text, code, words, line) in cases {
        let told = told(&text);
        let first = told.first().unwrap_or_else(|| panic!("nothing is told of\n{text}"));
        assert_eq!(first.code, code, "{text}{first:#?}");
        assert!(first.message.contains(words), "{text}{first:#?}");
        let mut map = SourceMap::new();
        map.add("x.goal", text.as_str());
        let span = first.primary.as_ref().expect("it has a place").span;
        assert_eq!(map.line_of(span), line, "{text}{first:#?}");
    }
    // Of one size, or in an order, messages of one tag are told apart.
    for (a, b) in [
        ("l1: send 8b to 1\nl2: send 8b to 1", "l1: recv 8b from 0\nl2: recv 8b from 0"),
        (
            "l1: send 8b to 1\nl2: send 9b to 1\nl2 requires l1",
            "l1: recv 8b from 0\nl2: recv 9b from 0\nl2 requires l1",
        ),
    ] {
        assert_eq!(told(&two(a, b)), [], "{a}");
    }
}
