//! What MSCCL++'s executor guarantees and what it does not, on small plans made here: pipelines whose turns follow each other without
//! waiting, proxies that read their sources until they are flushed, and lists of places.

mod support;

use coll_base::{Code, Diagnostic};
use coll_interop::codes::{CHUNKS, MISSING, NO_NOP, RING, UNMATCHED, UNSUPPORTED, VALUE};
use serde_json::{Value, json};
use support::{examine, text_of};

fn told(document: &Value) -> Vec<Diagnostic> {
    match examine("plan.json", &document.to_string()) {
        Ok(found) => found.errors,
        Err(told) => told,
    }
}

fn codes(document: &Value) -> Vec<Code> {
    let mut codes: Vec<Code> = told(document).iter().map(|told| told.code).collect();
    codes.dedup();
    codes
}

/// A place of the rank itself.
fn at(letter: &str, index: u32, size: u32) -> Value {
    json!({ "type": letter, "index": index, "size": size })
}

/// A place of the other rank, which has its buffers `i`, `o` and `s` in this order.
fn afar(letter: &str, index: u32, size: u32) -> Value {
    let id = ["i", "o", "s"].iter().position(|&known| known == letter);
    json!({ "buffer_id": id, "index": index, "size": size })
}

fn moves(name: &str, from: Value, to: Value) -> Value {
    json!({ "name": name, "src_buff": [from], "dst_buff": [to], "channel_type": "memory" })
}

fn copy(from: Value, to: Value) -> Value {
    moves("copy", from, to)
}

/// Over the port channel of the two ranks.
fn by_port(name: &str, from: Value, to: Value) -> Value {
    json!({ "name": name, "src_buff": [from], "dst_buff": [to], "channel_ids": [0], "channel_type": "port" })
}

fn turn(name: &str, kind: &str) -> Value {
    json!({ "name": name, "channel_ids": [0], "channel_type": kind })
}

fn nop() -> Value {
    json!({ "name": "nop" })
}

fn pipeline(chunks: u32, ops: &[Value]) -> Value {
    json!({ "name": "pipeline", "iter_context": { "unit_size": 1024, "num_chunks": chunks }, "ops": ops })
}

/// A plan of two ranks of so many chunks in each buffer, a memory and a port channel between them for each thread block.
fn two(collective: &str, chunks: [u32; 3], ranks: [&[&[Value]]; 2]) -> Value {
    let gpu = |rank: usize| {
        let (peer, blocks) = (1 - rank, ranks[rank]);
        let most = ranks[0].len().max(ranks[1].len());
        let peers = vec![peer; most];
        let kinds = ["memory", "port"];
        let buffer = |letter: &str| json!({ "rank": peer, "type": letter, "access_channel_types": kinds });
        let block = |(id, ops): (usize, &&[Value])| {
            json!({
                "id": id,
                "channels": kinds.map(|kind| json!({ "channel_type": kind, "channel_ids": [id] })),
                "remote_buffer_refs":
                    kinds.map(|kind| json!({ "access_channel_type": kind, "remote_buffer_ids": [0, 1, 2] })),
                "ops": ops,
            })
        };
        let buffers = ["i", "o", "s"].map(buffer);
        json!({
            "id": rank,
            "input_chunks": chunks[0], "output_chunks": chunks[1], "scratch_chunks": chunks[2],
            "channels": kinds.map(|kind| json!({ "channel_type": kind, "connected_to": peers })),
            "remote_buffers": buffers,
            "semaphores": [],
            "threadblocks": blocks.iter().enumerate().map(block).collect::<Vec<_>>(),
        })
    };
    json!({ "name": "made", "collective": collective, "protocol": "Simple", "inplace": true, "gpus": [gpu(0), gpu(1)] })
}

/// A plan in which rank 0 alone does something.
fn alone(chunks: [u32; 3], blocks: &[&[Value]]) -> Value {
    two("custom", chunks, [blocks, &[&[]]])
}

/// Turn 1 reads what turn 0 writes: a `nop` at the end of the body keeps them apart.
#[test]
fn a_nop_that_is_missing_between_two_turns_of_a_pipeline_is_found() {
    let body = [copy(at("i", 0, 2), at("s", 0, 2)), nop(), copy(at("s", 0, 2), at("i", 1, 2)), nop()];
    assert_eq!(told(&alone([3, 3, 2], &[&[pipeline(2, &body)]])), []);
    let found = told(&alone([3, 3, 2], &[&[pipeline(2, &body[..3])]]));
    assert!(
        found.iter().any(|told| told.code == NO_NOP && told.message.contains("operation 0")),
        "{found:#?}"
    );
    // The same operations once need none.
    assert_eq!(told(&alone([3, 3, 2], &[&body[..3]])), []);
}

/// What is signalled in each turn is waited for in each turn.
#[test]
fn signals_of_all_turns_are_counted() {
    let name = "mscclpp-json/dsl-generated/alltoall_pipeline_p2.json.gz";
    let document: Value = serde_json::from_str(&text_of(name)).expect("it is JSON");
    assert_eq!(told(&document), []);
    // A wait that stands before its pipeline waits for one turn.
    let mut once = document.clone();
    for rank in 0..2 {
        let ops = once.pointer_mut(&format!("/gpus/{rank}/threadblocks/2/ops")).and_then(Value::as_array_mut);
        let ops = ops.expect("operations");
        let body = ops[0]["ops"].as_array_mut().expect("a body");
        let wait = body.iter().position(|op| op["name"] == "wait").expect("a wait");
        let wait = body.remove(wait);
        ops.insert(0, wait);
    }
    assert_eq!(codes(&once), [UNMATCHED]);
    // Two waits before it are as many as two turns have, and no other number.
    let mut twice = once.clone();
    for rank in 0..2 {
        let ops =
            twice.pointer_mut(&format!("/gpus/{rank}/threadblocks/2/ops")).and_then(Value::as_array_mut);
        let ops = ops.expect("operations");
        ops.insert(0, ops[0].clone());
    }
    assert_eq!(codes(&twice), [RING]);
}

#[test]
fn a_pipeline_takes_operations_of_its_own_length_and_no_packets() {
    let whole = [copy(at("i", 0, 2), at("o", 0, 2))];
    assert_eq!(told(&alone([2, 2, 2], &[&[pipeline(2, &whole)]])), []);
    for chunks in [1, 3] {
        assert_eq!(codes(&alone([2, 2, 2], &[&[pipeline(chunks, &whole)]])), [CHUNKS], "{chunks}");
    }
    let packets = [moves("cpkt", at("i", 0, 2), at("s", 0, 2))];
    assert_eq!(codes(&alone([2, 2, 2], &[&[pipeline(2, &packets)]])), [UNSUPPORTED]);
    assert_eq!(codes(&alone([2, 2, 2], &[&[pipeline(2, &[pipeline(2, &whole)])]])), [UNSUPPORTED]);
    let mut bare = pipeline(2, &whole);
    bare.as_object_mut().expect("an object").remove("iter_context");
    assert_eq!(codes(&alone([2, 2, 2], &[&[bare]])), [MISSING]);
}

/// Rank 0 sends two chunks by way of one of its scratch, over a port channel. `between` stands between put and signal of the first, and
/// the copy that overwrites its source; `answers` are what rank 1 does behind its first wait.
fn by_way_of_scratch(first: &str, between: &[Value], answers: &[Value]) -> Value {
    let mut ops =
        vec![copy(at("i", 0, 1), at("s", 0, 1)), nop(), by_port(first, at("s", 0, 1), afar("o", 0, 1))];
    if first == "put" {
        ops.push(turn("signal", "port"));
    }
    ops.extend_from_slice(between);
    ops.extend([copy(at("i", 1, 1), at("s", 0, 1)), nop(), by_port("pws", at("s", 0, 1), afar("o", 1, 1))]);
    let mut other = vec![turn("wait", "port"), nop()];
    other.extend_from_slice(answers);
    other.extend([turn("wait", "port"), nop(), copy(at("o", 0, 2), at("s", 0, 2))]);
    two("custom", [2, 2, 2], [&[&ops], &[&other]])
}

/// The proxy of a port channel reads what it is to put until it is flushed, or the other rank answers.
#[test]
fn a_missing_flush_is_found() {
    let flush = || turn("flush", "port");
    for between in [&[][..], &[nop()], &[flush()]] {
        let found = told(&by_way_of_scratch("put", between, &[]));
        let message = &found.first().unwrap_or_else(|| panic!("{between:?} will do")).message;
        assert!(message.contains("no `flush` makes sure"), "{message}");
        assert!(found.iter().all(|told| told.code == NO_NOP), "{found:#?}");
    }
    assert_eq!(told(&by_way_of_scratch("put", &[flush(), nop()], &[])), []);
    assert_eq!(told(&by_way_of_scratch("pwsf", &[nop()], &[])), []);
    assert_eq!(codes(&by_way_of_scratch("pws", &[nop()], &[])), [NO_NOP]);
    // What rank 1 says after it has heard of the put.
    let answer = [turn("signal", "memory")];
    assert_eq!(told(&by_way_of_scratch("put", &[turn("wait", "memory"), nop()], &answer)), []);
    assert_eq!(codes(&by_way_of_scratch("put", &[turn("wait", "memory")], &answer)), [NO_NOP]);
}

/// A signal of the threads tells nothing of what a proxy is about; one of the channel does, without a `nop`.
#[test]
fn signals_of_another_channel_do_not_tell_of_a_proxys_puts() {
    let plan = |signal: &[Value], kind: &str| {
        let ops = [&[by_port("put", at("i", 0, 1), afar("o", 0, 1))], signal].concat();
        let other = [turn("wait", kind), nop(), copy(at("o", 0, 1), at("s", 0, 1))];
        two("custom", [1, 1, 1], [&[&ops], &[&other]])
    };
    assert_eq!(told(&plan(&[turn("signal", "port")], "port")), []);
    assert_eq!(codes(&plan(&[nop(), turn("signal", "memory")], "memory")), [NO_NOP]);
    let flushed = [turn("flush", "port"), nop(), turn("signal", "memory")];
    assert_eq!(told(&plan(&flushed, "memory")), []);
    // Channels of two types are two channels.
    assert_eq!(codes(&plan(&[turn("signal", "port")], "memory")), [RING]);
}

/// Fused puts are pairs of places; every other list is as long, and its places where, as the executor takes them.
#[test]
fn lists_of_places_are_as_the_executor_takes_them() {
    let put = |rank: u32| {
        let chunks = [2 * rank, 2 * rank + 1];
        json!({
            "name": "put", "channel_type": "memory",
            "src_buff": chunks.map(|chunk| at("o", chunk, 1)), "dst_buff": chunks.map(|chunk| afar("o", chunk, 1)),
        })
    };
    let ops = |rank| vec![put(rank), nop(), turn("signal", "memory"), turn("wait", "memory")];
    let (zero, one) = (ops(0), ops(1));
    let good = two("allgather", [2, 4, 0], [&[&zero], &[&one]]);
    assert_eq!(told(&good), []);
    let wrong = [
        (json!([at("o", 0, 1)]), json!([afar("o", 0, 1), afar("o", 1, 1)])),
        (json!([at("o", 0, 1), at("o", 1, 1)]), json!([afar("o", 0, 1)])),
        (json!([at("o", 0, 1)]), json!([at("o", 1, 1)])),
        (json!([at("o", 0, 1), at("i", 1, 1)]), json!([afar("o", 0, 1), afar("o", 1, 1)])),
    ];
    for (sources, targets) in wrong {
        let mut changed = good.clone();
        let op = changed.pointer_mut("/gpus/0/threadblocks/0/ops/0").expect("a put");
        (op["src_buff"], op["dst_buff"]) = (sources, targets);
        let found = told(&changed);
        assert!(found[0].code == VALUE && found[0].primary.is_some(), "{found:#?}");
    }
    let many = json!({
        "name": "copy", "src_buff": [at("i", 0, 1)], "dst_buff": [at("o", 0, 1), at("o", 1, 1)],
    });
    assert_eq!(codes(&alone([2, 2, 0], &[&[many]])), [VALUE]);
    for (name, kind) in [("pws", "memory"), ("get", "port")] {
        let (from, to) =
            if name == "get" { (afar("i", 0, 1), at("o", 0, 1)) } else { (at("i", 0, 1), afar("o", 0, 1)) };
        let op = json!({ "name": name, "src_buff": [from], "dst_buff": [to], "channel_ids": [0], "channel_type": kind });
        let found = told(&alone([2, 2, 0], &[&[op]]));
        assert!(found[0].code == VALUE && found[0].message.contains("channel_type"), "{name}: {found:#?}");
    }
    assert_eq!(codes(&alone([2, 2, 0], &[&[turn("flush", "memory")]])), [VALUE]);
}
