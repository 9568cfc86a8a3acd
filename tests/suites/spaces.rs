//! Runs where the machine lacks something: networks but loopback, room in `/dev/shm`, file descriptors; and what crashed runs
//! leave behind. Known faults B057, B081, B082 and B083. What needs a name space of its own is skipped, with a line that says
//! so, where none can be made.

#![allow(clippy::print_stderr, reason = "what is skipped says so")]

mod program;

use program::{COLLC, alive, children, program, said};
use std::fs;
use std::process::{Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A name space, and what makes it poor.
struct Space {
    flags: &'static [&'static str],
    poor: &'static str,
}

/// No network but loopback.
const LOOPBACK: Space = Space { flags: &["-n"], poor: "ip link set lo up" };

/// Not even that.
const NOTHING: Space = Space { flags: &["-n"], poor: "true" };

/// Room for 16 pages.
const LITTLE: Space = Space { flags: &["-m"], poor: "mount -t tmpfs -o size=64k tmpfs /dev/shm" };

impl Space {
    /// Runs collc there; nothing, and a line that says so, where such a space cannot be made.
    fn run(&self, arguments: &str) -> Option<Output> {
        let tried = self.shell(self.poor);
        if !tried.as_ref().is_ok_and(|output| output.status.success()) {
            let why = tried.map_or_else(|error| error.to_string(), |output| said(&output));
            eprintln!("skipped, as no such name space can be made here: {}", why.trim());
            return None;
        }
        let script = format!("{} && exec {COLLC} {arguments}", self.poor);
        Some(self.shell(&script).expect("it could be made a moment ago"))
    }

    fn shell(&self, script: &str) -> std::io::Result<Output> {
        program("unshare").args(self.flags).args(["sh", "-c", script]).output()
    }

    fn ends_well(&self, arguments: &str) {
        let Some(output) = self.run(&format!("{arguments} --format json --timeout 20")) else { return };
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", said(&output));
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(told["wrong"], 0, "{arguments}");
    }
}

#[test]
fn b057_loopback_is_network_enough() {
    for transport in ["tcp", "shm", "auto", "threads"] {
        LOOPBACK.ends_well(&format!("run allreduce --ranks 4 --bytes 4K --iters 2 --transport {transport}"));
    }
    LOOPBACK.ends_well("run alltoall --ranks 4 --bytes 4K --iters 2 --transport auto --ranks-per-host 2");
}

#[test]
fn no_network_at_all_is_an_error_in_time() {
    let began = Instant::now();
    let Some(output) = NOTHING.run("run allreduce --ranks 2 --bytes 4K --timeout 3") else { return };
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("127.0.0.1"), "{}", said(&output));
}

#[test]
fn b081_nothing_needs_room_in_dev_shm() {
    for transport in ["shm", "auto"] {
        let sizes = "--ranks 8 --bytes 4MiB --iters 2";
        LITTLE.ends_well(&format!("run allreduce {sizes} --transport {transport}"));
        LITTLE.ends_well(&format!("run alltoall {sizes} --transport {transport}"));
    }
}

#[test]
fn b082_runs_that_are_killed_leave_nothing() {
    let files = || fs::read_dir("/dev/shm").map_or(0, Iterator::count);
    let before = files();
    for round in 0..5 {
        let mut launcher = program(COLLC)
            .args([
                "run",
                "allreduce",
                "--ranks",
                "3",
                "--bytes",
                "1MiB",
                "--iters",
                "100000",
                "--transport",
                "shm",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("collc starts");
        let began = Instant::now();
        let ranks = loop {
            let ranks = children(launcher.id());
            if ranks.len() == 3 {
                break ranks;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "only {ranks:?} were started");
            thread::sleep(Duration::from_millis(20));
        };
        thread::sleep(Duration::from_millis(100 * round));
        launcher.kill().expect("it runs");
        launcher.wait().expect("it has ended");
        let began = Instant::now();
        while ranks.iter().any(|rank| alive(*rank)) {
            assert!(began.elapsed() < Duration::from_secs(5), "a rank outlives its launcher");
            thread::sleep(Duration::from_millis(20));
        }
    }
    assert!(files() <= before, "something is left in /dev/shm");
}

/// Descriptors that do not suffice are told with limit and need, or fewer are used; what is asked of the system in vain never
/// becomes a wrong reason.
#[test]
fn b083_few_descriptors_are_enough_or_named() {
    for transport in ["tcp", "shm", "auto"] {
        // The launcher's limit may be raised, its own is enough for the ranks.
        let script = format!(
            "ulimit -Sn 64; exec {COLLC} run alltoall --ranks 16 --bytes 64K --iters 1 --transport {transport} --timeout 30"
        );
        let output = program("bash").args(["-c", &script]).output().expect("a shell");
        assert_eq!(output.status.code(), Some(0), "{transport}: {}", said(&output));
        // Ranks that are started one by one with a limit of their own.
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
        let address = port.expect("a port").to_string();
        let ranks: Vec<_> = (0..16)
            .map(|rank| {
                let script = format!(
                    "ulimit -n {}; exec {COLLC} run alltoall --rank {rank} --world-size 16 --rendezvous {address} --bytes 64K \
                     --iters 1 --transport {transport} --timeout 10",
                    if rank == 3 { 24 } else { 256 }
                );
                let shell = program("bash").args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
                shell.expect("a shell")
            })
            .collect();
        let outputs: Vec<Output> =
            ranks.into_iter().map(|rank| rank.wait_with_output().expect("it ends")).collect();
        if outputs.iter().all(|output| output.status.success()) {
            continue;
        }
        for (rank, output) in outputs.iter().enumerate() {
            let said = said(output);
            assert_eq!(output.status.code(), Some(1), "{transport}, rank {rank}: {said}");
            assert!(said.contains("descriptors") && said.contains("24"), "{transport}, rank {rank}: {said}");
        }
    }
}
