//! Devices from outside: `run`, `bench`, `env` and `topo probe --gpus` with no driver, and over the stand-in.
#![allow(clippy::print_stdout)]

use std::path::Path;
use std::process::{Command, Output};

/// Runs collc where the loader looks into a folder first.
fn collc(args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collc"));
    let clean = command.args(args).env("LD_LIBRARY_PATH", folder).env_remove("COLLC_FAULT");
    clean.output().expect("collc starts")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn empty() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

/// A folder in which the loader finds the stand-in as the driver.
fn stand_in() -> tempfile::TempDir {
    let folder = empty();
    let library = cuda_stand_in::path().expect("it was built with this test");
    std::os::unix::fs::symlink(library, folder.path().join("libcuda.so")).expect("a link");
    folder
}

#[test]
fn without_a_driver_each_command_says_so() {
    let folder = empty();
    if text(&collc(&["env"], folder.path())).contains("driver for CUDA") {
        println!("SKIPPED: there is a driver here");
        return;
    }
    let topology = folder.path().join("t.toml");
    let topology = topology.to_str().expect("a path");
    for args in [
        &["run", "allreduce.ring", "--ranks", "2", "--transport", "cuda"][..],
        &["bench", "--transport", "cuda", "-e", "64"],
        &["topo", "probe", "--gpus", "-o", topology],
    ] {
        let output = collc(args, folder.path());
        let text = text(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains("no CUDA driver") && text.contains("libcuda.so"), "{args:?}: {text}");
        assert!(!text.contains("panicked"), "{args:?}: {text}");
    }
    assert!(!Path::new(topology).exists());
}

#[test]
fn runs_on_devices_are_verified() {
    let folder = stand_in();
    for args in [
        &["allreduce.ring", "--op", "avg", "--dtype", "i16", "--bytes", "1234"][..],
        &["alltoallv", "--counts", "1,2,0;0,0,5;9,0,0"],
        &["allreduce.two_shot", "--in-place", "--wire", "bf16", "--bytes", "4KiB"],
        &["broadcast", "--root", "1", "--bytes", "100"],
    ] {
        let mut all = vec!["run", args[0], "--ranks", "3", "--transport", "cuda", "--iters", "2"];
        all.extend(&args[1..]);
        let output = collc(&all, folder.path());
        let text = text(&output);
        assert!(output.status.success(), "{all:?}: {text}");
        assert!(
            text.contains("over cuda") && text.contains("every element on every rank is right"),
            "{text}"
        );
    }
}

/// On a topology each rank has the device that it stands on, if there are so many; where there are not, that is said.
#[test]
fn ranks_stand_on_the_devices_of_a_topology() {
    let folder = stand_in();
    let call = ["run", "allreduce.ring", "--transport", "cuda", "--bytes", "4KiB", "--iters", "1"];
    let said = |more: &[&str]| {
        let output = collc(&[&call[..], more].concat(), folder.path());
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    let placed = said(&["--topology", "nvswitch:2", "--place", "1,0"]);
    assert!(
        placed.contains("of the order 1 0, each on the CUDA device of that number, if there are so many"),
        "{placed}"
    );
    assert!(!placed.contains("note: "), "{placed}");
    let dealt = said(&["--topology", "nvswitch:4", "--place", "3,2,1,0"]);
    assert!(
        dealt.contains("more devices than the 2 that this machine has") && dealt.contains("0 0 1 1"),
        "{dealt}"
    );
    let apart = said(&["--topology", "nvswitch:4", "--place", "3,2,1,0", "--processes"]);
    assert_eq!(apart.matches("more devices than the 2 that this machine has").count(), 1, "{apart}");
}

#[test]
fn bench_measures_devices() {
    let folder = stand_in();
    let args = [
        "bench",
        "--transport",
        "cuda",
        "--ranks",
        "4",
        "--ops",
        "allreduce,allgather",
        "-b",
        "64",
        "-e",
        "1K",
    ];
    let args = [&args[..], &["-f", "4", "-n", "2", "-w", "1"]].concat();
    let output = collc(&args, folder.path());
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("Out of bounds values : 0") || text.contains("# "), "{text}");
    assert!(text.lines().filter(|line| line.trim_start().starts_with("1024 ")).count() >= 2, "{text}");
}

/// A process for each rank: they open each other's memory, and are verified as on any other transport.
#[test]
fn ranks_on_devices_may_be_processes() {
    let folder = stand_in();
    for args in [
        &["allreduce.ring", "--op", "avg", "--dtype", "i16", "--bytes", "1234"][..],
        &["alltoallv", "--counts", "1,2,0;0,0,5;9,0,0"],
        &["allreduce.two_shot", "--in-place", "--wire", "bf16", "--bytes", "4KiB"],
        &["broadcast", "--root", "1", "--bytes", "100", "--format", "json"],
    ] {
        let mut all =
            vec!["run", args[0], "--ranks", "3", "--transport", "cuda", "--processes", "--iters", "2"];
        all.extend(&args[1..]);
        let output = collc(&all, folder.path());
        let text = text(&output);
        assert!(output.status.success(), "{all:?}: {text}");
        let right = ["every element on every rank is right", "\"ok\": true"];
        assert!(right.iter().any(|words| text.contains(words)), "{text}");
    }
    let args = ["bench", "--transport", "cuda", "--processes", "--ranks", "2", "--ops", "allreduce,alltoall"];
    let args = [&args[..], &["-b", "64", "-e", "1K", "-f", "4", "-n", "2", "-w", "1"]].concat();
    let output = collc(&args, folder.path());
    let text = text(&output);
    assert!(output.status.success() && text.contains("Out of bounds values : 0"), "{text}");
    for (args, words) in [
        (&["run", "allreduce", "--ranks", "2", "--processes"][..], "for ranks on devices"),
        (&["bench", "--ranks", "2", "--transport", "shm", "--processes"], "for ranks on devices"),
        (&["run", "a.coll", "--ranks", "2", "--transport", "cuda", "--processes"], "a.coll"),
    ] {
        let output = collc(args, folder.path());
        let text = self::text(&output);
        assert!(output.status.code() == Some(2) && text.contains(words), "{args:?}: {text}");
    }
}

/// Ranks of machines that are pretended: devices that cannot reach each other, and need not.
#[test]
fn ranks_on_devices_of_several_machines() {
    let folder = stand_in();
    let on = |devices: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_collc"));
        command.args(["run", "--transport", "cuda", "--processes", "--iters", "3"]).args(more);
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        command.env("LD_LIBRARY_PATH", folder.path()).env("CUDA_STAND_IN", devices).env_remove("COLLC_FAULT");
        command.output().expect("collc starts")
    };
    let (each_alone, by_pairs) = ("devices=3 peers=0,0,0", "devices=4 peers=2,1,8,4");
    let by_fours = "devices=8 peers=14,13,11,7,224,208,176,112";
    for (devices, more) in [
        (each_alone, &["allreduce.ring", "--ranks", "3", "--bytes", "1MiB", "--ranks-per-host", "1"][..]),
        (
            each_alone,
            &["alltoallv", "--ranks", "3", "--counts", "1,2,0;0,0,5;9,0,0", "--ranks-per-host", "1"],
        ),
        (
            each_alone,
            &["allreduce", "--ranks", "3", "--wire", "bf16", "--bytes", "64KiB", "--ranks-per-host", "1"],
        ),
        (
            by_pairs,
            &["allreduce", "--ranks", "4", "--op", "avg", "--bytes", "64KiB", "--ranks-per-host", "2"],
        ),
        (by_pairs, &["broadcast", "--ranks", "4", "--root", "3", "--bytes", "3MiB", "--ranks-per-host", "2"]),
        (by_pairs, &["barrier", "--ranks", "4", "--ranks-per-host", "2"]),
        (by_fours, &["allgather", "--bytes", "64KiB", "--topology", "tests/place/two_by_four.toml"]),
    ] {
        let output = on(devices, more);
        let text = text(&output);
        assert!(output.status.success(), "{more:?}: {text}");
        assert!(text.contains("every element on every rank is right"), "{more:?}: {text}");
    }
    // As ranks of one machine they would have to reach each other.
    let output = on(each_alone, &["allreduce.ring", "--ranks", "3"]);
    assert!(!output.status.success() && text(&output).contains("rank"), "{}", text(&output));
}

/// Starts a rank on a device by itself.
fn one_rank(folder: &Path, rank: &str, port: u16, more: &[&str]) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collc"));
    command.args(["run", "allreduce.ring", "--transport", "cuda", "--rank", rank, "--world-size", "2"]);
    command.args(["--rendezvous", &format!("127.0.0.1:{port}")]).args(more);
    command.env("LD_LIBRARY_PATH", folder).env_remove("COLLC_FAULT").env_remove("COLLC_TOKEN");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.spawn().expect("collc starts")
}

fn free_port() -> u16 {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("it has an address").port()
}

#[test]
fn ranks_on_devices_are_started_one_by_one() {
    let folder = stand_in();
    let port = free_port();
    let ranks = ["0", "1"].map(|rank| one_rank(folder.path(), rank, port, &["--iters", "2"]));
    let [first, second] = ranks.map(|child| child.wait_with_output().expect("it ends"));
    assert!(first.status.success() && second.status.success(), "{}{}", text(&first), text(&second));
    assert!(text(&first).contains("every element on every rank is right"), "{}", text(&first));
    // Ranks that disagree say on what, and nothing runs.
    let port = free_port();
    let ranks = [("0", "1KiB"), ("1", "2KiB")];
    let ranks = ranks.map(|(rank, bytes)| one_rank(folder.path(), rank, port, &["--bytes", bytes]));
    for output in ranks.map(|child| child.wait_with_output().expect("it ends")) {
        let text = text(&output);
        assert!(!output.status.success() && text.contains("count"), "{text}");
    }
}

/// A rank that is killed while the others wait for its device: they say so long before their time is over.
#[test]
fn a_rank_on_a_device_that_dies_is_told() {
    let folder = stand_in();
    let port = free_port();
    let more = ["--iters", "1000000", "--timeout", "100"];
    let [mut first, mut second] = ["0", "1"].map(|rank| one_rank(folder.path(), rank, port, &more));
    std::thread::sleep(std::time::Duration::from_secs(2));
    let running = first.try_wait().expect("it is there").is_none();
    second.kill().expect("it is killed");
    let start = std::time::Instant::now();
    let output = first.wait_with_output().expect("it ends");
    let text = text(&output);
    second.wait().expect("it ended");
    assert!(running && !output.status.success() && text.contains("rank 1"), "{text}");
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{text}");
}

#[test]
fn devices_are_probed_into_a_topology() {
    let folder = stand_in();
    let file = folder.path().join("gpus.toml");
    let file = file.to_str().expect("a path");
    let output = collc(&["topo", "probe", "--gpus", "--bytes", "64KiB", "-o", file], folder.path());
    assert!(output.status.success(), "{}", text(&output));
    let output = collc(&["topo", "show", file], folder.path());
    let text = text(&output);
    assert!(output.status.success() && text.contains("devices 2"), "{text}");
}

/// Known fault B101: settings in a hidden place. Every variable is listed, with where its value comes from; secrets are
/// not shown.
#[test]
fn b101_env_shows_every_setting_and_its_source() {
    let folder = stand_in();
    let mut command = Command::new(env!("CARGO_BIN_EXE_collc"));
    command.args(["env", "--format", "json"]).env("LD_LIBRARY_PATH", folder.path());
    command.env("COLLC_JIT", "off").env("COLLC_TOKEN", "do-not-tell").env_remove("COLLC_TUNE");
    let output = command.output().expect("collc starts");
    let text = text(&output);
    assert!(output.status.success() && !text.contains("do-not-tell"), "{text}");
    let document: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let settings = document["settings"].as_array().expect("a list");
    let help = collc(&["--help"], folder.path());
    let help = self::text(&help);
    for setting in settings {
        assert!(help.contains(setting["name"].as_str().expect("a name")), "{setting}");
    }
    let find = |name: &str| settings.iter().find(|setting| setting["name"] == name).expect("it is listed");
    assert_eq!(
        (&find("COLLC_JIT")["value"], &find("COLLC_JIT")["source"]),
        (&"off".into(), &"environment".into())
    );
    assert_eq!(find("COLLC_TUNE")["source"], "default");
    assert_eq!(find("COLLC_TOKEN")["source"], "environment");
    assert!(document["machine"]["processors"].as_u64().is_some_and(|count| count > 0));
    assert_eq!(document["gpu"]["devices"].as_array().map(Vec::len), Some(2));
    assert_eq!(document["gpu"]["devices"][0]["reaches"][0], 1);
}

#[test]
fn what_devices_do_not_do_is_refused() {
    let folder = stand_in();
    for (args, words) in [
        (
            &["run", "allreduce", "--ranks", "2", "--transport", "cuda", "--ranks-per-host", "1"][..],
            "shares memory",
        ),
        (&["topo", "probe", "--ranks", "2", "--transport", "cuda"], "--gpus"),
        (&["tune", "--transport", "cuda"], "no constants"),
        (&["bench", "--transport", "cuda", "--memory", "alloc"], "--memory alloc"),
    ] {
        let output = collc(args, folder.path());
        let text = text(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(words), "{args:?}: {text}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_collc"));
    command.args(["run", "allreduce.ring", "--ranks", "2", "--transport", "cuda"]);
    let output =
        command.env("LD_LIBRARY_PATH", folder.path()).env("COLLC_FAULT", "rank1:step0:drop").output();
    let text = text(&output.expect("collc starts"));
    assert!(text.contains("COLLC_FAULT") && text.contains("streams of devices"), "{text}");
}
