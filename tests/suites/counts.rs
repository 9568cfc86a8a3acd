//! `--counts`: blocks of any lengths on real processes, every element verified; counts that cannot be, refused.

mod program;

use program::{command, said};
use std::fs;
use std::process::Stdio;

/// Runs, with every element right. Gives the count that is shown: of the largest buffer of any rank.
fn count(operation: &str, ranks: &str, counts: &str, more: &[&str]) -> u64 {
    let arguments =
        ["run", operation, "--ranks", ranks, "--counts", counts, "--iters", "2", "--format", "json"];
    let output = command(&[&arguments, more].concat()).output().expect("collc starts");
    assert!(output.status.success(), "{operation} {counts}: {}", said(&output));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!((&document["ok"], &document["wrong"]), (&true.into(), &0.into()));
    // A schedule's name and the operation's lead to the same; that of a file's own collective is its own.
    let known = ["allgather", "gather", "scatter", "reduce_scatter", "alltoall"];
    let schedule = document["schedule"].as_str().expect("it has a name");
    if let Some(known) = known.iter().find(|known| schedule.starts_with(&format!("{known}."))) {
        assert_eq!(document["op"], format!("{known}v"), "{operation}");
    }
    document["count"].as_u64().expect("a number")
}

fn refused(arguments: &[&str], word: &str) {
    let output = command(arguments).output().expect("collc starts");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(said.contains(word) && !said.contains("panicked"), "{arguments:?} does not say `{word}`: {said}");
}

#[test]
fn every_operation_with_blocks_of_any_lengths() {
    assert_eq!(count("allgatherv", "3", "3,0,7", &[]), 10);
    assert_eq!(count("all-gather-v", "3", "0,0,0", &["--in-place"]), 0);
    assert_eq!(count("gatherv", "3", "3,0,7", &["--root", "1"]), 10);
    assert_eq!(count("scatterv", "3", "3,0,7", &["--root", "2"]), 10);
    assert_eq!(count("reduce_scatterv", "3", "3,0,7", &["--op", "max", "--dtype", "bf16"]), 10);
    assert_eq!(count("reduce_scatter", "2", "1000,1", &["--op", "avg"]), 1001);
}

#[test]
fn an_all_to_all_takes_a_list_or_a_matrix() {
    // Every rank gives rank 0 three elements: rank 2 gets 7 of each, 21 in all.
    assert_eq!(count("alltoallv", "3", "3,0,7", &[]), 21);
    assert_eq!(count("alltoallv", "3", "1,2,0;0,0,5;9,0,0", &["--dtype", "i64"]), 10);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("counts");
    fs::write(&path, "1 2\n0 1_000\n").expect("it can be written");
    assert_eq!(count("alltoall.linear", "2", path.to_str().expect("its name is text"), &[]), 1002);
}

#[test]
fn counts_that_cannot_be_are_refused() {
    refused(&["run", "alltoallv", "--ranks", "3"], "how many elements has each?");
    refused(&["run", "allgatherv", "--ranks", "3", "--counts", "3,7"], "has 3 blocks on 3 ranks");
    refused(&["run", "allgatherv", "--ranks", "3", "--counts", "3,x,7"], "row 1: `x`");
    refused(&["run", "allgatherv", "--ranks", "3", "--counts", "3,-1,7"], "row 1: `-1`");
    refused(&["run", "alltoallv", "--ranks", "2", "--counts", "1,2;3"], "row 2 has 1 counts");
    refused(
        &["run", "alltoallv", "--ranks", "3", "--counts", "1,2,3;1,2,3"],
        "2 rows, and there are 3 ranks",
    );
    refused(&["run", "allgatherv", "--ranks", "2", "--counts", "1,2;2,2"], "as long as one of 1");
    refused(&["run", "barrier", "--ranks", "2", "--counts", "1,2"], "moves no data");
    refused(&["run", "allgatherv", "--ranks", "2", "--counts", "1,2", "--bytes", "8"], "cannot be used with");
    let most = u64::MAX.to_string();
    refused(&["run", "allgatherv", "--ranks", "2", "--counts", &format!("{most},{most}")], "elements");
    refused(&["run", "allgatherv", "--ranks", "2", "--counts", "no/such/file"], "`no/such/file`");
}

#[test]
fn a_schedule_for_equal_blocks_refuses_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("turn.coll");
    let text = "collective turn {\n    inout data[ranks]\n    ensure each r, q: data[(q + 1) % n] == r.data[q]\n}\n\
                schedule s: turn {\n    step each r { for q in 0..n { copy data[q] to data[(q + 1) % n] } }\n}\n";
    fs::write(&path, text).expect("it can be written");
    let path = path.to_str().expect("its name is text");
    refused(&["run", path, "--ranks", "3", "--counts", "1,2,3"], "make");
    assert_eq!(count(path, "3", "2,2,2", &[]), 6);
}

#[test]
fn ranks_that_are_given_other_counts_say_so() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let address = port.expect("a port").to_string();
    let start = |rank: &str, counts: &str| {
        command(&["run", "allgatherv", "--counts", counts, "--rank", rank, "--world-size", "2"])
            .args(["--rendezvous", &address, "--timeout", "20"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("collc starts")
    };
    for output in [start("0", "3,4"), start("1", "4,3")].map(|rank| rank.wait_with_output().expect("it ends"))
    {
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains("counts of blocks"), "{}", said(&output));
    }
}
