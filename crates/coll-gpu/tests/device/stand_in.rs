//! This program once more, on the driver without a device: what waits for a device is known to work.

use cuda_stand_in::{Config, control};
use std::process::Command;

#[test]
fn all_of_it_runs_on_the_stand_in() {
    if crate::support::is_stand_in() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report");
    let config = Config { devices: 2, device_bytes: 64 << 20, patience_ms: 120_000, ..Config::default() };
    let environment = control::environment(&config, Some(&report)).expect("the stand-in is there");
    let program = std::env::current_exe().expect("this test is a program");
    let mut command = Command::new(program);
    command.args(["--test-threads=1", "--include-ignored", "--nocapture"]).envs(environment);
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains("calls gave the CPU's bits"), "no device was found: {text}{errors}");
    assert!(text.contains("graph replay"), "nothing was measured: {text}{errors}");
    let found = std::fs::read_to_string(&report).unwrap_or_default();
    assert!(found.is_empty(), "left to chance: {found}");
}
