//! Ranks that are processes, from outside: started one by one or by collc, late, killed, interrupted, in disagreement; and what they lack.

mod program;

use program::{COLLC, alive, children, command, document, refused, root, run, stderr};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const RING: &str = "examples/ring_allreduce.coll";

#[test]
fn ranks_started_one_by_one_meet() {
    let port = free_port();
    let start = |rank: &str| {
        command(&["run", "allreduce", "--bytes", "4096", "--format", "json"])
            .env("RANK", rank)
            .env("WORLD_SIZE", "2")
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", &port)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("collc starts")
    };
    let ranks = [start("0"), start("1")];
    let [zero, one] = ranks.map(|rank| rank.wait_with_output().expect("it ends"));
    assert!(zero.status.success() && one.status.success(), "{}{}", stderr(&zero), stderr(&one));
    assert_eq!(document(&zero)["ok"], true);
}

#[test]
fn ranks_that_disagree_say_so_on_every_rank() {
    let port = free_port();
    let start = |rank: &str, dtype: &str| {
        let address = format!("127.0.0.1:{port}");
        command(&["run", "allreduce.ring", "--bytes", "4096", "--dtype", dtype])
            .args(["--rank", rank, "--world-size", "3", "--rendezvous", &address, "--timeout", "20"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("collc starts")
    };
    let ranks = [start("0", "bf16"), start("1", "f32"), start("2", "f32")];
    for output in ranks.map(|rank| rank.wait_with_output().expect("it ends")) {
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("bf16") && said.contains("f32") && said.contains("rank 0"), "{said}");
    }
}

/// B045.
#[test]
fn a_rank_that_never_comes_is_named_within_the_limit() {
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let start = Instant::now();
    let output = run(&[
        "run",
        "barrier",
        "--rank",
        "0",
        "--world-size",
        "2",
        "--rendezvous",
        &address,
        "--timeout",
        "2",
    ]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains('1'), "{}", stderr(&output));
    assert!(start.elapsed() < Duration::from_secs(12));
}

#[test]
fn a_killed_rank_is_named_and_no_process_stays() {
    let child = command(&["run", RING, "--ranks", "3", "--bytes", "4MiB", "--iters", "100000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("collc starts");
    let launcher = child.id();
    let ranks = wait_for_children(launcher, 3);
    thread::sleep(Duration::from_millis(500));
    signal(ranks[1], "KILL");
    let start = Instant::now();
    let output = child.wait_with_output().expect("it ends");
    assert!(start.elapsed() < Duration::from_secs(10), "it took {:?}", start.elapsed());
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("killed by signal 9") && said.contains("rank 1"), "{said}");
    assert!(ranks.iter().all(|&rank| !alive(rank)), "a rank was left behind");
}

/// Also where a hangup is ignored, as under `nohup`.
#[test]
fn an_interrupt_leaves_no_process() {
    for ignored in [&[][..], &["--ignore-signal=HUP"]] {
        // Tests that run in the background inherit that signals are ignored, and so would `collc`.
        let child = Command::new("env")
            .arg("--default-signal")
            .args(ignored)
            .args([COLLC, "run", "--iters", "100000"])
            .args([&root().join(RING).display().to_string(), "--ranks", "3", "--bytes", "1MiB"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("env starts");
        let ranks = wait_for_children(child.id(), 3);
        if !ignored.is_empty() {
            signal(child.id(), "HUP");
        }
        signal(child.id(), "INT");
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
        assert!(ranks.iter().all(|&rank| !alive(rank)), "a rank was left behind");
    }
}

/// B064.
#[test]
fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let port = address.rsplit(':').next().expect("a port");
    refused(
        &["run", "barrier", "--rank", "0", "--world-size", "2", "--rendezvous", &address, "--timeout", "3"],
        2,
        port,
    );
}

/// B083.
#[test]
fn too_few_descriptors_are_told_before_anything_starts() {
    let shell = format!("ulimit -n 64; exec {} run barrier --ranks 60", COLLC);
    let output = Command::new("bash").args(["-c", &shell]).output().expect("a shell");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("file descriptors"), "{}", stderr(&output));
}

fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it is bound").port().to_string()
}

/// Processes whose parent is `parent`, once there are `wanted` of them.
fn wait_for_children(parent: u32, wanted: usize) -> Vec<u32> {
    let start = Instant::now();
    loop {
        let children = children(parent);
        if children.len() == wanted {
            return children;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "only {children:?} were started");
        thread::sleep(Duration::from_millis(20));
    }
}

fn signal(process: u32, name: &str) {
    let sent =
        Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().expect("kill runs");
    assert!(sent.success());
}
