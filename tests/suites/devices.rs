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
        (
            &[
                "run",
                "allreduce.ring",
                "--rank",
                "0",
                "--world-size",
                "2",
                "--rendezvous",
                "127.0.0.1:1",
                "--transport",
                "cuda",
            ],
            "one by one",
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
