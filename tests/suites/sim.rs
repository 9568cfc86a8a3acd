//! `collc sim`, `collc compare` and pictures from outside: documents for tools, what follows from the network, bad input.

mod program;

use program::{good, json, refused};
use std::fs;

fn sim(target: &str, topology: &str, ranks: &str, bytes: &str) -> serde_json::Value {
    json(&["sim", target, "--topology", topology, "--ranks", ranks, "--bytes", bytes])
}

fn time(document: &serde_json::Value) -> f64 {
    document["time_us"].as_f64().expect("a time")
}

const PLAIN: &str = "full:8,bw=1GB/s,lat=5us";

#[test]
fn the_document_has_what_tools_need_and_nothing_else() {
    let document = sim("allreduce.ring", PLAIN, "8", "1MiB");
    let keys: Vec<&str> = document.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut expected = ["schedule", "ranks", "bytes", "time_us", "bound_us", "critical_path", "links"];
    expected.sort_unstable();
    let mut keys = keys;
    keys.sort_unstable();
    assert_eq!(keys, expected);
    assert_eq!(document["schedule"], "allreduce.ring");
    assert_eq!((document["ranks"].as_u64(), document["bytes"].as_u64()), (Some(8), Some(1 << 20)));
    assert!(document["bound_us"].as_f64().expect("a bound") <= time(&document));
    let path = document["critical_path"].as_array().expect("a path");
    assert_eq!(path.len(), 28, "a send and a receive in each of 14 steps");
    let last = path.last().expect("it is not empty");
    assert_eq!((last["line"].as_u64(), last["step"].as_u64()), (Some(19), Some(13)));
    assert_eq!(last["file"], "schedules/allreduce/ring.coll");
    assert!(last["rank"].as_u64().is_some_and(|rank| rank < 8));
    let links = document["links"].as_array().expect("links");
    assert_eq!(links.len(), 8);
    for link in links {
        assert_eq!(link["bytes"].as_u64(), Some((1 << 20) / 8 * 14));
        let busy = link["busy_fraction"].as_f64().expect("a share");
        assert!(busy > 0.9 && busy < 1.0, "{busy}");
        assert!(link["name"].as_str().is_some_and(|name| !name.is_empty()));
    }
}

/// B114: the time follows bandwidth and latency as the closed form has it.
#[test]
fn b114_times_follow_the_network() {
    let at =
        |bw: &str, lat: &str| time(&sim("allreduce.ring", &format!("full:8,bw={bw},lat={lat}"), "8", "1MiB"));
    // What latencies cost, and what is the devices' own, is the same at any bandwidth.
    let [slow, fast, faster] = ["1GB/s", "10GB/s", "1000GB/s"].map(|bw| at(bw, "5us"));
    let ratio = (slow - faster) / (fast - faster);
    assert!((ratio / ((1.0 - 0.001) / (0.1 - 0.001)) - 1.0).abs() < 0.05, "{ratio}");
    let bytes_us = 14.0 / 8.0 * f64::from(1 << 20) / 1000.0;
    assert!(((slow - faster) / (bytes_us * 0.999) - 1.0).abs() < 1e-6, "{slow} {faster}");
    let latency = at("1GB/s", "15us") - slow;
    assert!((latency - 140.0).abs() < 1e-6, "{latency}");
}

#[test]
fn a_schedule_its_plan_and_the_name_of_it_take_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("ring.plan").display().to_string();
    good(&["compile", "allreduce.ring", "--ranks", "8", "-o", &plan]);
    let by_name = sim("allreduce.ring", PLAIN, "8", "64KiB");
    assert_eq!(by_name, sim(&plan, PLAIN, "8", "64KiB"));
    let by_file = sim("schedules/allreduce/ring.coll", PLAIN, "8", "64KiB");
    assert_eq!(time(&by_name), time(&by_file));
    // Without `--ranks`, a plan has its own and a schedule takes all devices.
    assert_eq!(by_name, json(&["sim", &plan, "--topology", PLAIN, "--bytes", "64KiB"]));
    assert_eq!(by_name, json(&["sim", "allreduce.ring", "--topology", PLAIN, "--bytes", "64KiB"]));
}

#[test]
fn the_text_tells_what_bounds_the_time_in_source_terms() {
    let shown = good(&["sim", "allreduce.ring", "--topology", PLAIN, "--bytes", "1MiB"]);
    assert!(shown.starts_with("allreduce.ring of 1 MiB on 8 ranks of "), "{shown}");
    assert!(shown.contains("schedules/allreduce/ring.coll:19, s = 6, rank "), "{shown}");
    assert!(shown.contains("bounds the time in step 13"), "{shown}");
}

#[test]
fn a_trace_is_written_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    let shown = path.display().to_string();
    good(&["sim", "broadcast.binomial", "--topology", PLAIN, "--trace", &shown]);
    let trace: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).expect("it is there")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    assert_eq!(events.iter().filter(|event| event["ph"] == "s").count(), 7);
    let missing = folder.path().join("no").join("trace.json").display().to_string();
    refused(&["sim", "broadcast.binomial", "--topology", PLAIN, "--trace", &missing], 2, "cannot write");
}

#[test]
fn goal_files_run_in_the_loggops_model() {
    let file = "tests/goal/schedgen/binomialtreereduce-p8-b1024.goal";
    let constants = "L=2500,o=1500,g=1000,G=6,O=0,S=65535";
    let document = json(&["sim", file, "--model", "loggops", "--params", constants]);
    let expected = serde_json::json!({ "finish_ns": [34914, 24776, 13138, 13138, 1500, 1500, 1500, 1500] });
    assert_eq!(document, expected);
    assert_eq!(json(&["sim", file]), expected, "these are the model's own constants");
    assert!(good(&["sim", file]).contains("the last is over after 34914 ns"));
    refused(&["sim", file, "--params", "L=x"], 2, "no whole number");
    refused(&["sim", file, "--topology", PLAIN], 2, "`--topology` does not go with");
    refused(&["sim", file, "--model", "flow", "--topology", PLAIN], 2, "GOAL file");
    refused(&["sim", "allreduce.ring", "--topology", PLAIN, "--params", constants], 2, "`--params`");
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = folder.path().join("wrong.goal").display().to_string();
    fs::write(&wrong, "num_ranks 2\nrank 0 {\nl1: send 8b to 5\n}\nrank 1 {\n}\n").expect("it is written");
    refused(&["sim", &wrong], 2, "wrong.goal:3:16: rank 5 is none of 0..=1");
    fs::write(&wrong, "num_ranks 2\nrank 0 {\nl1: recv 8b from 1\n}\nrank 1 {\n}\n").expect("it is written");
    refused(&["sim", &wrong], 1, "rank 0 l1 (line 3): `recv 8b from 1 tag 0` waits for a message");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_a_way_out() {
    let sim = |rest: &[&str], code, word| {
        let mut arguments = vec!["sim", "allreduce.ring"];
        arguments.extend(rest);
        refused(&arguments, code, word);
    };
    sim(&[], 2, "--topology");
    sim(&["--topology", "full:3,bw=1GB/s,lat=1us", "--ranks", "4"], 2, "3 devices to 4 ranks");
    sim(&["--topology", "no/such/file.toml"], 2, "cannot read");
    sim(&["--topology", PLAIN, "--ranks", "2..=4"], 2, "one rank count");
    sim(&["--topology", PLAIN, "--place", "0,1,9", "--ranks", "3"], 2, "has no device `9`");
    sim(&["--topology", PLAIN, "--place", "0,1,1", "--ranks", "3"], 2, "two ranks are placed on");
    sim(&["--topology", PLAIN, "--root", "8"], 2, "root 8 is no rank");
    sim(&["--topology", PLAIN, "--bytes", "1.5M"], 2, "no size");
    sim(&["--topology", PLAIN, "-D", "x=1"], 2, "no parameter `x`");
    sim(&["--topology", PLAIN, "--skip", "x"], 2, "no pass `x`");
    refused(&["sim", "allreduce.butterfly", "--topology", PLAIN, "--ranks", "6"], 1, "does not apply");
    refused(&["sim", "no.such", "--topology", PLAIN], 2, "no operation");
}

#[test]
fn comparisons_show_where_one_overtakes_another() {
    let schedules = ["allreduce.recursive_doubling", "allreduce.rabenseifner", "allreduce.ring"];
    let mut arguments = vec!["compare"];
    arguments.extend(schedules);
    arguments.extend(["--topology", PLAIN, "--sizes", "64..16MiB"]);
    let document = json(&arguments);
    let rows = document["schedules"].as_array().expect("rows");
    let steps: Vec<u64> = rows.iter().map(|row| row["steps"].as_u64().expect("a number")).collect();
    assert_eq!(steps, [3, 6, 14]);
    for row in rows {
        assert_eq!(row["times"].as_array().map(Vec::len), Some(19));
        assert_eq!(row["links"].as_array().map(Vec::len), Some(1), "all links are of one kind");
    }
    // 3 (α + m β) against 6 α + 14/8 m β, where no other cost is in the way.
    let crossovers = document["crossovers"].as_array().expect("crossovers");
    assert_eq!(crossovers.len(), 1, "{crossovers:?}");
    assert_eq!(
        (crossovers[0]["from"].as_str(), crossovers[0]["to"].as_str()),
        (Some(schedules[0]), Some(schedules[1]))
    );
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("plot.svg");
    let shown = picture.display().to_string();
    arguments.extend(["-o", &shown]);
    let table = good(&arguments);
    assert!(table.contains("allreduce.rabenseifner takes less than allreduce.recursive_doubling"), "{table}");
    let svg = fs::read_to_string(&picture).expect("it is there");
    assert_eq!(svg.matches("<polyline").count(), 4, "three schedules and the bound");
    refused(&["compare", "allreduce.ring", "--topology", PLAIN, "--sizes", "8..4"], 2, "holds no sizes");
    refused(&["compare", "--topology", PLAIN], 2, "required");
}

#[test]
fn plans_are_drawn() {
    let picture = good(&["compile", "allreduce.ring", "--ranks", "4", "--emit", "svg"]);
    assert!(picture.starts_with("<svg ") && picture.matches("marker-end").count() == 24, "{picture}");
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("ring.plan").display().to_string();
    let placed =
        ["compile", "allreduce.ring", "--topology", "ring:4", "--place", "3,2,1,0", "--skip", "pipeline"];
    good(&[&placed[..], &["-o", &plan]].concat());
    let graph = good(&["compile", &plan, "--emit", "dot"]);
    assert!(graph.starts_with("digraph plan {") && graph.contains("rank 0, device 3"), "{graph}");
    assert_eq!(graph.matches("color = blue").count(), 24);
    refused(&["compile", &plan, "--emit", "program"], 2, "is taken as a plan");
    refused(&["compile", &plan, "--emit", "dot", "--ranks", "4", "--rank", "1"], 2, "a picture shows all");
    refused(&["compile", "alltoall.linear", "--ranks", "200", "--emit", "svg"], 2, "at most 20000 are drawn");
    refused(
        &["compile", "allreduce.ring", "--ranks", "4", "--rank", "1", "--emit", "svg"],
        2,
        "shows all ranks",
    );
}

#[test]
fn what_travels_narrower_takes_less() {
    let time = |more: &[&str]| {
        let mut arguments =
            vec!["sim", "allreduce.ring", "--topology", "full:8,bw=1GB/s,lat=0us", "--bytes", "16MiB"];
        arguments.extend(more);
        json(&arguments)["links"][0]["bytes"].as_u64().expect("bytes")
    };
    assert_eq!(time(&["--wire", "bf16"]) * 2, time(&[]));
    assert_eq!(time(&["--wire", "bf16", "--dtype", "i32"]), time(&[]));
    assert_eq!(time(&["--accumulate", "f32", "--dtype", "f16"]), 2 * time(&["--dtype", "f16"]));
}

/// A contract that is too large to be written down whole is simulated rank by rank.
#[test]
fn ten_thousand_ranks_of_few_steps() {
    let document = sim("broadcast.binomial", "switch:10000,bw=10GB/s,lat=1us", "10000", "8");
    assert!(time(&document) >= 13.0 && document["ranks"].as_u64() == Some(10_000));
}
