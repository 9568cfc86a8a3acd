//! Runs over every transport, and failures on purpose: each ends on every rank, within the time limit, with a message
//! that says who and where.

mod program;

use program::{command, said};
use std::process::Output;
use std::time::{Duration, Instant};

fn collc(transport: &str, fault: Option<&str>, arguments: &[&str]) -> Output {
    collc_with(transport, fault, &[], arguments)
}

fn collc_with(
    transport: &str,
    fault: Option<&str>,
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> Output {
    let mut command = command(&["run", "--transport", transport]);
    command.args(arguments).envs(fault.map(|fault| ("COLLC_FAULT", fault))).envs(variables.iter().copied());
    command.output().expect("collc starts")
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

/// Two machines are pretended on one: ranks 0 and 1 share memory, and so do ranks 2 and 3 or rank 2 alone.
#[test]
fn every_operation_across_machines() {
    for transport in ["auto", "threads"] {
        for (operation, ranks) in coll::OPERATIONS.into_iter().zip(["3", "4", "5"].into_iter().cycle()) {
            let sizes = ["--bytes", "200K", "--iters", "2", "--format", "json", "--ranks-per-host", "2"];
            let output = collc(transport, None, &[&[operation, "--ranks", ranks], &sizes[..]].concat());
            assert_eq!(output.status.code(), Some(0), "{operation} over {transport}: {}", said(&output));
            let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
            assert_eq!(told["wrong"], 0, "{operation} over {transport}");
        }
    }
}

/// In a ring of 2 and 2, each rank has a near and a far neighbour: both hear of what befalls it.
#[test]
fn failures_on_both_kinds_of_link() {
    for rank in 1..3 {
        let ended = format!("rank {rank} ended without a word: killed by signal 9");
        fails_with("auto", &format!("rank{rank}:step1:kill"), &["--ranks-per-host", "2"], &[&ended]);
        let next = format!("rank {}", rank + 1);
        fails_with("auto", &format!("rank{rank}:step1:drop"), &["--ranks-per-host", "2"], &[&next]);
    }
}

#[test]
fn the_log_says_which_link_goes_which_way() {
    let mut command = command(&["run", "allreduce", "--ranks", "4", "--bytes", "28", "--iters", "1"]);
    command.args(["--transport", "auto", "--ranks-per-host", "3"]).env("COLLC_LOG", "coll=info");
    let said = said(&command.output().expect("collc starts"));
    for line in [
        "rank 0 of 4: shared memory with ranks 1-2, TCP with rank 3",
        "rank 1 of 4: shared memory with ranks 0, 2, TCP with rank 3",
        "rank 3 of 4: TCP with ranks 0-2",
    ] {
        assert!(said.contains(line), "no `{line}`: {said}");
    }
}

#[test]
fn who_shares_memory_is_no_question_where_all_go_by_one_way() {
    for transport in ["tcp", "shm"] {
        let output = collc(transport, None, &["allreduce", "--ranks", "4", "--ranks-per-host", "2"]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("take `--transport auto`"), "{}", said(&output));
    }
}

/// Ends with 1 in time, and says all of `words`.
fn fails(transport: &str, fault: &str, words: &[&str]) {
    fails_with(transport, fault, &[], words);
}

/// The same with more options.
fn fails_with(transport: &str, fault: &str, more: &[&str], words: &[&str]) {
    let began = Instant::now();
    let arguments =
        ["schedules/allreduce/ring.coll", "--ranks", "4", "--bytes", "64K", "--iters", "2", "--timeout", "2"];
    let output = collc(transport, Some(fault), &[&arguments[..], more].concat());
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

/// B075.
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
fn runs_within_tls() {
    let run = ["--ranks", "3", "--bytes", "200K", "--iters", "2", "--format", "json"];
    for (operation, transport) in coll::OPERATIONS.into_iter().zip(["tcp", "auto"].into_iter().cycle()) {
        let apart = ["--tls", "--ranks-per-host", "2"];
        let more = if transport == "auto" { &apart[..] } else { &apart[..1] };
        let output = collc(transport, None, &[&[operation], &run[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{operation} over {transport}: {}", said(&output));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(told["wrong"], 0, "{operation} over {transport}");
    }
    let arguments = ["allreduce", "--ranks", "3", "--bytes", "1K"];
    let output = collc_with("tcp", None, &[("COLLC_TLS", "1")], &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let output = collc_with("tcp", None, &[("COLLC_TLS", "yes")], &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("COLLC_TLS is `yes`"), "{}", said(&output));
    // A rank that dies is told as it is without.
    let output =
        collc("tcp", Some("rank2:step1:kill"), &[&["allreduce.ring", "--tls"], &arguments[1..]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("rank 2"), "{}", said(&output));
}

/// Ranks that are started one by one: TLS needs their token, and all of them.
#[test]
fn tls_is_had_by_all_ranks_with_a_token_or_by_none() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let place = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    let rank = |rank: &'static str, tls: bool, token: &'static str| {
        let place = place.clone();
        std::thread::spawn(move || {
            let run =
                ["allreduce", "--world-size", "2", "--rendezvous", &place, "--rank", rank, "--timeout", "20"];
            let run = [&run[..], if tls { &["--tls"] } else { &[] }].concat();
            collc_with("tcp", None, &[("COLLC_TOKEN", token)], &run)
        })
    };
    let output = rank("0", true, "").join().expect("no thread panics");
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("COLLC_TOKEN"), "{}", said(&output));
    for tls in [[true, true], [true, false], [false, true]] {
        let began = Instant::now();
        let ranks = [rank("0", tls[0], "sesame"), rank("1", tls[1], "sesame")];
        for output in ranks.map(|rank| rank.join().expect("no thread panics")) {
            let said = said(&output);
            match tls {
                [true, true] => assert_eq!(output.status.code(), Some(0), "{said}"),
                _ => assert!(output.status.code() == Some(1) && said.contains("COLLC_TLS"), "{said}"),
            }
        }
        assert!(began.elapsed() < Duration::from_secs(10), "nobody waits for the time limit");
    }
}

/// With checksums damage is told by who receives it, before any result is judged.
#[test]
fn damage_on_the_way_is_told_by_checksums() {
    for (transport, more) in [("tcp", &[][..]), ("auto", &["--ranks-per-host", "1"])] {
        let arguments =
            ["allreduce.ring", "--ranks", "4", "--bytes", "64K", "--iters", "2", "--timeout", "2"];
        let arguments = [&arguments[..], more].concat();
        let output =
            collc_with(transport, Some("rank2:step1:corrupt"), &[("COLLC_CHECKSUM", "1")], &arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        for word in ["rank 3", "step 1", "rank 2 sent a payload of 16,384 B whose checksum is"] {
            assert!(said.contains(word), "no `{word}` over {transport}: {said}");
        }
    }
    let on = [("COLLC_CHECKSUM", "1")];
    let output =
        collc_with("tcp", None, &on, &["alltoall", "--ranks", "3", "--bytes", "100K", "--iters", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let wrong = [("COLLC_CHECKSUM", "yes")];
    let output = collc_with("tcp", None, &wrong, &["allreduce", "--ranks", "2"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("COLLC_CHECKSUM is `yes`"), "{}", said(&output));
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
fn what_measures_says_that_it_rehearses_nothing() {
    let mut command = command(&["bench", "--ranks", "2", "--sizes", "8", "-n", "2"]);
    let output = command.env("COLLC_FAULT", "rank1:step0:drop").output().expect("collc starts");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("COLLC_FAULT is for `collc run`"), "{}", said(&output));
}

#[test]
fn a_variable_that_means_nothing_is_told_with_the_one_that_was_meant() {
    let output = command(&["list"]).env("COLLC_FAULTS", "x").output().expect("collc starts");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        said(&output).contains("COLLC_FAULTS means nothing to collc; did you mean COLLC_FAULT?"),
        "{}",
        said(&output)
    );
}
