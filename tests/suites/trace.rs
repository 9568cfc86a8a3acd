//! `collc run --trace` from outside: what ran has the numbers of the plan, in an order that the plan allows, and is told like a
//! simulation's.

mod program;

use program::{run, said};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The events of a trace that a command writes into a folder.
#[track_caller]
fn events(folder: &tempfile::TempDir, arguments: &[&str]) -> Vec<Value> {
    let path = folder.path().join("trace.json").display().to_string();
    let output = run(&[arguments, &["--trace", &path]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    let trace: Value = serde_json::from_slice(&fs::read(&path).expect("it was written")).expect("JSON");
    trace["traceEvents"].as_array().expect("events").clone()
}

fn of<'e>(events: &'e [Value], phase: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["ph"] == phase).collect()
}

/// What an event says of its operation, without its time.
fn told(event: &Value) -> String {
    format!("{} {} {}", event["name"], event["cat"], event["args"])
}

fn begin_and_end(event: &Value) -> (f64, f64) {
    let [begin, took] = ["ts", "dur"].map(|key| event[key].as_f64().expect("a number"));
    (begin, begin + took)
}

/// An operation's number, and when it began and ended.
type Timed = (u64, (f64, f64));

/// Sums of times as they are written may be off by a digit.
const NEAR_US: f64 = 1e-3;

#[test]
fn a_run_is_told_with_the_numbers_of_its_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    for (schedule, ranks) in
        [("allreduce.ring", "4"), ("allreduce.double_tree", "5"), ("alltoall.bruck", "3")]
    {
        let on = format!("full:{ranks}");
        let simulated = events(&folder, &["sim", schedule, "--topology", &on, "--bytes", "60000"]);
        let mut due: Vec<String> = of(&simulated, "X").into_iter().map(told).collect();
        due.sort();
        for transport in ["tcp", "shm", "threads", "auto"] {
            let call = ["run", schedule, "--ranks", ranks, "--bytes", "60000", "--iters", "2"];
            let found = events(&folder, &[&call[..], &["--transport", transport]].concat());
            let mut said: Vec<String> = of(&found, "X").into_iter().map(told).collect();
            said.sort();
            assert_eq!(said, due, "{schedule} over {transport}");
            check_order(&found, &format!("{schedule} over {transport}"));
            assert_eq!(of(&found, "s").len(), of(&simulated, "s").len());
            let least = of(&found, "X").into_iter().map(|event| begin_and_end(event).0);
            assert_eq!(least.fold(f64::INFINITY, f64::min), 0.0, "times count from the first operation");
        }
    }
}

/// B118: what a lane does comes one after the other, and no message is there before it was sent.
fn check_order(events: &[Value], what: &str) {
    let mut lanes: BTreeMap<(u64, u64), Vec<Timed>> = BTreeMap::new();
    for event in of(events, "X") {
        let [rank, lane, op] =
            ["rank", "lane", "op"].map(|key| event["args"][key].as_u64().expect("a number"));
        assert_eq!((event["pid"].as_u64(), event["tid"].as_u64()), (Some(rank), Some(lane)));
        lanes.entry((rank, lane)).or_default().push((op, begin_and_end(event)));
    }
    for ((rank, lane), mut ops) in lanes {
        ops.sort_by_key(|&(op, _)| op);
        assert!(ops.iter().all(|&(_, (begin, end))| begin <= end), "{what}: {ops:?}");
        let in_order = ops.windows(2).all(|two| two[1].1.0 >= two[0].1.1 - NEAR_US);
        assert!(in_order, "{what}, rank {rank}, lane {lane}: {ops:?}");
    }
    let ends = |phase| -> BTreeMap<u64, f64> {
        let end = |event: &Value| Some((event["id"].as_u64()?, event["ts"].as_f64()?));
        of(events, phase).into_iter().filter_map(end).collect()
    };
    let (sent, received) = (ends("s"), ends("f"));
    assert!(!sent.is_empty() && sent.keys().eq(received.keys()), "{what}: {sent:?} {received:?}");
    for (id, at) in &sent {
        // Processes' clocks are set by the system's, each by itself.
        assert!(received[id] >= at - 50.0, "{what}: message {id} left at {at} and came at {}", received[id]);
    }
}

/// On a topology each rank is told with its device, as it was placed.
#[test]
fn a_placed_run_names_its_devices() {
    let folder = tempfile::tempdir().expect("a folder");
    let placed =
        ["run", "allreduce.ring", "--topology", "tests/place/two_by_four.toml", "--place", "7,6,5,4,3,2,1,0"];
    for transport in ["auto", "threads"] {
        let found = events(&folder, &[&placed[..], &["--iters", "1", "--transport", transport]].concat());
        let names: Vec<&str> = of(&found, "M")
            .into_iter()
            .filter(|event| event["name"] == "process_name")
            .filter_map(|event| event["args"]["name"].as_str())
            .collect();
        assert_eq!(names.len(), 8);
        assert_eq!((names[0], names[7]), ("rank 0 on node1.cpu3", "rank 7 on node0.cpu0"));
    }
}

#[test]
fn what_cannot_be_traced_is_refused_before_it_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (trace, part) = (path("trace.json"), path("part.plan"));
    let refused = |arguments: &[&str], word: &str| {
        let output = run(&[&["run"], arguments, &["--trace", &trace]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(word), "{}", said(&output));
        assert!(!Path::new(&trace).exists());
    };
    refused(
        &["allreduce.ring", "--ranks", "2", "--transport", "cuda"],
        "do not tell when each operation begins",
    );
    let sliced = run(&["compile", "allreduce.ring", "--ranks", "2", "--rank", "0", "-o", &part]);
    assert!(sliced.status.success(), "{}", said(&sliced));
    let join = ["--rank", "0", "--world-size", "2", "--rendezvous", "127.0.0.1:1"];
    refused(&[&[part.as_str()], &join[..]].concat(), "is one rank's part, and a trace shows all");
    let nowhere = path("no/such/folder/trace.json");
    let output = run(&["run", "allreduce.ring", "--ranks", "2", "--iters", "1", "--trace", &nowhere]);
    assert!(output.status.code() == Some(2) && said(&output).contains("cannot write"), "{}", said(&output));
}
