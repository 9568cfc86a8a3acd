//! Where there is no driver, or none that serves: one message that says what was looked for, and no panic. Each case is a
//! process of its own, for the loader remembers.

use coll_gpu::probe;
use std::path::Path;
use std::process::Command;

/// The child: what the door says.
#[test]
#[ignore = "it is run by the tests of this file, each time with another library path"]
fn child() {
    match probe() {
        Ok(found) => println!("FOUND {} devices", found.devices.len()),
        Err(error) => println!("DOOR {error}"),
    }
}

/// What the door says with this folder before all others.
fn said(folder: &Path) -> String {
    let program = std::env::current_exe().expect("this test is a program");
    let mut command = Command::new(program);
    command.args(["--exact", "door::child", "--ignored", "--nocapture"]).env("LD_LIBRARY_PATH", folder);
    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("panicked"), "{text}{errors}");
    let line = text.lines().find(|line| line.contains("DOOR ") || line.contains("FOUND "));
    line.unwrap_or_else(|| panic!("{text}{errors}")).to_string()
}

#[test]
fn no_library_is_told_with_the_names_that_were_tried() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = said(folder.path());
    if said.contains("FOUND") {
        println!("SKIPPED: there is a driver here");
        return;
    }
    for word in ["no CUDA driver", "libcuda.so", "LD_LIBRARY_PATH"] {
        assert!(said.contains(word), "{said}");
    }
}

/// A library of the driver's name with these functions. None where there is no C compiler.
fn library(functions: &str) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("driver.c");
    std::fs::write(&source, functions).expect("it is written");
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-Wl,-soname,libcuda.so", "-o"]);
    let output = command.arg(folder.path().join("libcuda.so")).arg(&source).output();
    match output {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(folder)
        }
        Err(_) => {
            println!("SKIPPED: no cc on PATH");
            None
        }
    }
}

fn version(number: u32) -> String {
    format!(
        "int cuDriverGetVersion(int* v) {{ *v = {number}; return 0; }}
         int cuGetErrorName(int e, const char** t) {{ *t = \"E\"; return 0; }}
         int cuGetErrorString(int e, const char** t) {{ *t = \"e\"; return 0; }}"
    )
}

#[test]
fn a_driver_that_is_too_old_is_told_with_both_versions() {
    let Some(folder) = library(&version(11040)) else { return };
    let said = said(folder.path());
    assert!(said.contains("version 11.4") && said.contains("12.0 is needed"), "{said}");
}

#[test]
fn a_missing_function_is_named() {
    let Some(folder) = library(&version(12080)) else { return };
    let said = said(folder.path());
    assert!(said.contains("no function `cuCtxEnablePeerAccess`"), "{said}");
    let Some(folder) = library("int cuInit(int f) { return 0; }") else { return };
    assert!(self::said(folder.path()).contains("no function `cuDriverGetVersion`"));
}
