//! Shared by suites: collc from outside, as a user has it, with no setting that a job or a person left in the environment.
#![allow(dead_code, unreachable_pub)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

pub const COLLC: &str = env!("CARGO_BIN_EXE_collc");

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program that starts at the project's root.
pub fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.current_dir(root());
    for variable in ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"] {
        command.env_remove(variable);
    }
    for (variable, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("COLLC_")) {
        command.env_remove(variable);
    }
    command
}

pub fn command(arguments: &[&str]) -> Command {
    let mut command = program(COLLC);
    command.args(arguments);
    command
}

pub fn run(arguments: &[&str]) -> Output {
    command(arguments).output().expect("collc starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn stdout(output: &Output) -> String {
    text(&output.stdout)
}

pub fn stderr(output: &Output) -> String {
    text(&output.stderr)
}

/// All that it printed, complaints first.
pub fn said(output: &Output) -> String {
    text(&output.stderr) + &text(&output.stdout)
}

/// What it prints when all is well.
#[track_caller]
pub fn good(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    text(&output.stdout)
}

/// What it prints for tools.
#[track_caller]
pub fn json(arguments: &[&str]) -> serde_json::Value {
    let printed = good(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
}

/// What it printed for tools.
#[track_caller]
pub fn document(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// It ends with that code and says that word, without a panic.
#[track_caller]
pub fn refused(arguments: &[&str], code: i32, word: &str) {
    is_refused(arguments, &run(arguments), code, word);
}

/// That it ended so.
#[track_caller]
pub fn is_refused(arguments: &[&str], output: &Output, code: i32, word: &str) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    assert!(said.contains(word), "{arguments:?} does not say `{word}`: {said}");
    assert!(!said.contains("panicked"), "{arguments:?}: {said}");
}

/// Processes whose parent is `parent`.
pub fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task");
    let Ok(tasks) = fs::read_dir(path) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// Whether a process runs, or is stopped.
pub fn alive(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}
