//! MSCCL++ plans that are wrong in one thing each, made from a real one.

mod support;

use coll_base::{Code, Diagnostic, SourceMap};
use coll_check::plan::codes::{COUNTED_TWICE, RACE, WRONG_END};
use coll_interop::codes::{CHUNKS, MISSING, NUMBERING, RING, SHAPE, SYNTAX, UNMATCHED, UNSUPPORTED, VALUE};
use serde_json::Value;
use support::{examine, text_of};

const NAME: &str = "mscclpp-json/allreduce.json.gz";

fn document() -> Value {
    serde_json::from_str(&text_of(NAME)).expect("it is JSON")
}

fn told(text: &str) -> Vec<Diagnostic> {
    match examine("plan.json", text) {
        Ok(found) => found.errors,
        Err(told) => told,
    }
}

/// Where each change is made, by JSON pointer; what is put there, or nothing to take it out; the code that it gives.
#[test]
fn each_fault_has_its_code_and_its_place() {
    let op = |at: &str| format!("/gpus/0/threadblocks/0/ops/{at}");
    let cases: Vec<(String, Option<Value>, Code)> = vec![
        ("/collective".into(), None, MISSING),
        ("/inplace".into(), None, MISSING),
        ("/inplace".into(), Some(1.into()), VALUE),
        ("/gpus".into(), Some(Value::Array(Vec::new())), VALUE),
        ("/gpus/1/id".into(), Some(0.into()), NUMBERING),
        ("/gpus/0/input_chunks".into(), None, MISSING),
        ("/gpus/0/input_chunks".into(), Some((-1).into()), VALUE),
        ("/gpus/0/input_chunks".into(), Some(8.into()), SHAPE),
        ("/gpus/0/channels/0/connected_to/0".into(), Some(0.into()), VALUE),
        ("/gpus/0/channels/0/connected_to/0".into(), Some(2.into()), VALUE),
        ("/gpus/0/channels/0/channel_type".into(), Some("switch".into()), UNSUPPORTED),
        ("/gpus/0/channels/0/channel_type".into(), Some("wire".into()), VALUE),
        ("/gpus/0/remote_buffers/0/type".into(), Some("x".into()), VALUE),
        ("/gpus/0/threadblocks/0/channels/0/channel_ids/0".into(), Some(8.into()), VALUE),
        (op("0/name"), Some("gsend".into()), VALUE),
        (op("0/name"), None, MISSING),
        (op("3/name"), Some("glres".into()), UNSUPPORTED),
        (op("3/reduce_op"), Some("max".into()), UNSUPPORTED),
        (op("3/src_buff/0/index"), Some(16.into()), CHUNKS),
        (op("3/src_buff/0/size"), Some(2.into()), CHUNKS),
        (op("3/src_buff/0/size"), Some(0.into()), VALUE),
        (op("3/src_buff/1/buffer_id"), Some(1.into()), VALUE),
        (op("3/src_buff/1/index"), Some(16.into()), CHUNKS),
        (op("5/channel_ids/0"), Some(7.into()), VALUE),
        // What the whole tells.
        (op("5"), None, RING),
        (op("6"), None, UNMATCHED),
        (op("1"), None, UNMATCHED),
        (op("3/src_buff/1/index"), Some(1.into()), WRONG_END),
        (op("3/dst_buff/1/index"), Some(1.into()), RACE),
        (op("3"), None, WRONG_END),
    ];
    for (pointer, value, code) in cases {
        let mut changed = document();
        let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
        let parent = changed.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        match (parent, value.clone()) {
            (Value::Object(members), None) => drop(members.remove(last)),
            (Value::Array(items), None) => drop(items.remove(last.parse().expect("an index"))),
            (parent, Some(value)) => match parent {
                Value::Object(members) => drop(members.insert(last.into(), value)),
                parent => parent[last.parse::<usize>().expect("an index")] = value,
            },
            (other, None) => panic!("{pointer}: {other}"),
        }
        let text = serde_json::to_string_pretty(&changed).expect("plain data");
        let found = told(&text);
        let fits = found.iter().find(|told| told.code == code);
        let fits = fits.unwrap_or_else(|| panic!("{pointer} {value:?}: expected {code}, found {found:#?}"));
        if code.0.starts_with("E09") {
            let mut map = SourceMap::new();
            map.add("plan.json", text.as_str());
            let span = fits.primary.as_ref().expect("it has a place").span;
            assert!((span.end as usize) <= text.len() && map.line_of(span) >= 1, "{pointer}");
        }
    }
}

/// Twice what should be there once, and ranks that each wait before they signal.
#[test]
fn what_the_tools_own_checks_let_pass() {
    let mut twice = document();
    let ops = twice.pointer_mut("/gpus/0/threadblocks/0/ops").and_then(Value::as_array_mut).expect("a list");
    ops.insert(4, ops[3].clone());
    assert!(told(&twice.to_string()).iter().any(|d| d.code == COUNTED_TWICE));
    let mut late = document();
    for rank in 0..2 {
        let pointer = format!("/gpus/{rank}/threadblocks/0/ops");
        late.pointer_mut(&pointer).and_then(Value::as_array_mut).expect("a list").swap(0, 1);
    }
    let found = told(&late.to_string());
    assert_eq!(found.iter().map(|d| d.code).collect::<Vec<_>>(), [RING], "{found:#?}");
    assert!(found[0].notes.iter().any(|note| note.contains("waits for a signal")));
}

#[test]
fn what_is_no_json_is_told_with_its_place() {
    let text = text_of(NAME);
    for end in (10..text.len() - 2).step_by(997) {
        if let Some(form) = coll_interop::Form::of(&text.as_bytes()[..end]) {
            let mut map = SourceMap::new();
            let file = map.add("plan.json", &text[..end]);
            let told = coll_interop::Foreign::read(form, file, &map).expect_err("it is cut off");
            assert_eq!(told[0].code, SYNTAX, "cut at {end}");
        }
    }
}
