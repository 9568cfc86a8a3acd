//! MSCCL++ plans that are wrong in one thing each, made from a real one.

mod support;

use coll_base::{Code, Diagnostic, SourceMap};
use coll_check::plan::codes::{COUNTED_TWICE, RACE, WRONG_END};
use coll_interop::codes::{
    CHUNKS, MISSING, NO_NOP, NUMBERING, RING, SHAPE, SYNTAX, UNMATCHED, UNSUPPORTED, VALUE,
};
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

/// Members that may be left out: what makes no difference to a plan, and what has a default or is empty then.
const OPTIONAL: [&str; 16] = [
    "name",
    "protocol",
    "reuse_resources",
    "use_double_scratch_buffer",
    "num_threads_per_block",
    "buffer_alignment",
    "min_message_size",
    "max_message_size",
    "access_channel_types",
    "reduce_op",
    "semaphores",
    "channel_type",
    "channels",
    "remote_buffers",
    "remote_buffer_refs",
    "buffer_id",
];

/// The first place of each kind of member, as JSON pointers: the parent, and the name.
fn members(value: &Value, at: &str, found: &mut std::collections::BTreeMap<String, (String, String)>) {
    match value {
        Value::Object(members_here) => {
            for (name, inner) in members_here {
                let path = format!("{at}/{name}");
                let kind: Vec<&str> = path
                    .split('/')
                    .map(|part| if part.parse::<u32>().is_ok() { "#" } else { part })
                    .collect();
                found.entry(kind.join("/")).or_insert_with(|| (at.to_string(), name.clone()));
                members(inner, &path, found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| members(item, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// Each member missing, and of another type, in turn: told by its name and at a place, or taken as the documentation says.
#[test]
fn every_member_missing_or_wrong_in_turn() {
    let document = document();
    let mut all = std::collections::BTreeMap::new();
    members(&document, "", &mut all);
    assert!(all.len() > 40, "{all:?}");
    for (parent, name) in all.values() {
        let changed = |to: Option<Value>| {
            let mut changed = document.clone();
            let object = match parent.as_str() {
                "" => changed.as_object_mut(),
                at => changed.pointer_mut(at).and_then(Value::as_object_mut),
            };
            let object = object.expect("an object");
            match to {
                Some(value) => drop(object.insert(name.clone(), value)),
                None => drop(object.remove(name)),
            }
            told(&serde_json::to_string_pretty(&changed).expect("plain data"))
        };
        let missing = if name == "gpus" { Vec::new() } else { changed(None) };
        // Without its ranks it is no such file at all.
        if !OPTIONAL.contains(&name.as_str()) && name != "gpus" {
            let first =
                missing.first().unwrap_or_else(|| panic!("{parent}/{name} is missing, and nothing is told"));
            assert!(first.message.contains(&format!("`{name}`")), "{parent}/{name}: {first:#?}");
            assert!(first.code == MISSING && first.primary.is_some(), "{parent}/{name}: {first:#?}");
        }
        for value in [serde_json::json!({}), Value::Null, serde_json::json!(-1.5)] {
            let found = changed(Some(value.clone()));
            let first = found.first();
            let first = first.unwrap_or_else(|| panic!("{parent}/{name} is {value}, and nothing is told"));
            assert!(first.message.contains(&format!("`{name}`")), "{parent}/{name} {value}: {first:#?}");
            assert!(first.code == VALUE && first.primary.is_some(), "{parent}/{name} {value}: {first:#?}");
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

/// Files without switch channels.
const PLANS: [&str; 17] = [
    "allreduce",
    "allreduce_packet",
    "dsl-generated/allgather_pkt_p2",
    "dsl-generated/allgather_pkt_p4",
    "dsl-generated/allreduce_p2",
    "dsl-generated/allreduce_p4",
    "dsl-generated/allreduce_pkt_p2",
    "dsl-generated/allreduce_pkt_p4",
    "dsl-generated/alltoall_p2",
    "dsl-generated/alltoall_p4",
    "dsl-generated/alltoall_pipeline_p2",
    "executor-tests/reduce",
    "executor-tests/reduce_pack",
    "executor-tests/reduce_pack_tbg",
    "executor-tests/reduce_tbg",
    "executor-tests/transfer_pack",
    "executor-tests/transfer_pack_tbg",
];

/// All operations of a thread block, those of pipelines too.
fn ops_of(block: &mut Value, visit: &mut dyn FnMut(&mut Vec<Value>)) {
    if let Some(list) = block.get_mut("ops").and_then(Value::as_array_mut) {
        list.iter_mut().for_each(|op| ops_of(op, visit));
        visit(list);
    }
}

/// The document without some of its `nop`s: those that `takes` says, of each by its number.
fn without_nops(document: &Value, takes: impl Fn(usize) -> bool) -> (Value, usize) {
    let mut changed = document.clone();
    let mut count = 0;
    for gpu in changed["gpus"].as_array_mut().expect("ranks") {
        for block in gpu["threadblocks"].as_array_mut().expect("thread blocks") {
            ops_of(block, &mut |list| {
                list.retain(|op| {
                    let is_nop = op["name"] == "nop";
                    count += usize::from(is_nop);
                    !is_nop || !takes(count - 1)
                });
            });
        }
    }
    (changed, count)
}

/// Without any of its `nop`s a plan that has some and moves more than packets is refused; each one alone is missed, or was
/// not needed: then no two operations that need it are left to chance.
#[test]
fn missing_nops_are_found() {
    let (mut missed, mut spare) = (0, 0);
    for name in PLANS {
        let text = text_of(&format!("mscclpp-json/{name}.json.gz"));
        let document: Value = serde_json::from_str(&text).expect("it is JSON");
        assert!(told(&text).is_empty(), "{name}: {:#?}", told(&text));
        let (none, count) = without_nops(&document, |_| true);
        let found = told(&none.to_string());
        if count > 0 {
            assert!(found.iter().any(|d| d.code == NO_NOP), "{name} without its {count} nops: {found:#?}");
        }
        for at in 0..count.min(60) {
            let (one, _) = without_nops(&document, |number| number == at);
            let found = told(&one.to_string());
            assert!(found.iter().all(|d| d.code == NO_NOP), "{name} without nop {at}: {found:#?}");
            assert!(found.iter().all(|d| d.primary.is_some() && d.help.is_some()), "{name}: {found:#?}");
            missed += usize::from(!found.is_empty());
            spare += usize::from(found.is_empty());
        }
    }
    assert!(missed > 30, "{missed} were missed, and {spare} were not");
}

/// What each kind of missing `nop` is told as, in a plan of two ranks that swap a chunk by way of scratch: put, signal, wait, copy.
#[test]
fn each_kind_of_missing_nop_is_told() {
    let name = "dsl-generated/alltoall_p2";
    let document: Value =
        serde_json::from_str(&text_of(&format!("mscclpp-json/{name}.json.gz"))).expect("it is JSON");
    let names: Vec<String> = document["gpus"][0]["threadblocks"][0]["ops"]
        .as_array()
        .expect("operations")
        .iter()
        .map(|op| op["name"].as_str().expect("a name").to_string())
        .collect();
    let due = ["nop", "rlxsignal", "nop", "rlxwait", "nop", "put", "nop", "signal", "wait", "nop", "copy"];
    assert_eq!(names, due);
    let told_without = |at: usize| {
        let mut changed = document.clone();
        let pointer = "/gpus/0/threadblocks/0/ops";
        changed.pointer_mut(pointer).and_then(Value::as_array_mut).expect("a list").remove(at);
        told(&changed.to_string())
    };
    // Between the put and its signal: the other rank copies what may not be there yet.
    let signal = told_without(6);
    assert!(signal.iter().any(|d| d.message.contains("of rank 1 reads what")), "{signal:#?}");
    // Between the wait and the copy: of this rank's threads only one has waited.
    let wait = told_without(9);
    assert!(wait.iter().any(|d| d.message.contains("of rank 0 reads what")), "{wait:#?}");
}
