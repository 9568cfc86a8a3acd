//! Runs over every transport, and failures on purpose: each ends on every rank, within the time limit, with a message
//! that says who and where.

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn collc(transport: &str, fault: Option<&str>, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collc"));
    command.args(["run", "--transport", transport]).args(arguments);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    for variable in ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "COLLC_FAULT", "COLLC_SCHEDULE"] {
        command.env_remove(variable);
    }
    if let Some(fault) = fault {
        command.env("COLLC_FAULT", fault);
    }
    command.output().expect("collc starts")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const PROCESSES: [&str; 3] = ["tcp", "shm", "auto"];

#[test]
fn every_operation_over_every_transport() {
    for transport in PROCESSES.into_iter().chain(["threads"]) {
        for operation in coll::OPERATIONS {
            let output = collc(
                transport,
                None,
                &[operation, "--ranks", "3", "--bytes", "28", "--iters", "3", "--format", "json"],
            );
            assert_eq!(output.status.code(), Some(0), "{operation} over {transport}: {}", said(&output));
            let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
            assert_eq!(told["transport"], transport);
            assert_eq!(told["wrong"], 0, "{operation} over {transport}");
            assert!(told["schedule"].is_string());
        }
    }
}

/// Ends with 1 in time, and says all of `words`.
fn fails(transport: &str, fault: &str, words: &[&str]) {
    let began = Instant::now();
    let arguments =
        ["schedules/allreduce/ring.coll", "--ranks", "4", "--bytes", "64K", "--iters", "2", "--timeout", "2"];
    let output = collc(transport, Some(fault), &arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{fault} over {transport}: {said}");
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "{fault} over {transport} took {:?}: {said}",
        began.elapsed()
    );
    for word in words {
        assert!(said.contains(word), "{fault} over {transport} does not say `{word}`: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn a_message_that_is_lost_ends_the_run() {
    for transport in PROCESSES.into_iter().chain(["threads"]) {
        fails(transport, "rank2:step1:drop", &["rank 3", "operation 0"]);
    }
}

#[test]
fn a_rank_that_is_killed_is_named() {
    for transport in PROCESSES {
        fails(transport, "rank2:step1:kill", &["rank 2 ended without a word: killed by signal 9"]);
    }
}

#[test]
fn damage_is_found_by_judging() {
    for transport in PROCESSES.into_iter().chain(["threads"]) {
        fails(transport, "rank1:step2:corrupt", &["wrong"]);
    }
}

#[test]
fn a_message_that_is_late_within_the_limit_does_no_harm() {
    for transport in PROCESSES.into_iter().chain(["threads"]) {
        let arguments = ["allreduce.ring", "--ranks", "3", "--bytes", "4K", "--iters", "1", "--timeout", "3"];
        let output = collc(transport, Some("rank0:step0:delay"), &arguments);
        assert_eq!(output.status.code(), Some(0), "{transport}: {}", said(&output));
    }
}

#[test]
fn what_cannot_be_rehearsed_is_said_before_anything_starts() {
    let arguments = ["allreduce", "--ranks", "3", "--bytes", "28"];
    let refused = |transport: &str, fault: &str, word: &str| {
        let output = collc(transport, Some(fault), &arguments);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(word), "{}", said(&output));
    };
    refused("tcp", "rank2:step5:lose", "rank2:step5:drop");
    refused("tcp", "rank3:step0:drop", "rank 3 is none of the 3 ranks");
    refused("threads", "rank1:step0:kill", "cannot be killed");
    let output = collc("tcp", Some("rank1:step900:drop"), &arguments);
    assert_eq!(output.status.code(), Some(0));
    assert!(said(&output).contains("never came"), "{}", said(&output));
}

#[test]
fn a_variable_that_means_nothing_is_told_with_the_one_that_was_meant() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collc"));
    let output = command.arg("list").env("COLLC_FAULTS", "x").output().expect("collc starts");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        said(&output).contains("COLLC_FAULTS means nothing to collc; did you mean COLLC_FAULT?"),
        "{}",
        said(&output)
    );
}
