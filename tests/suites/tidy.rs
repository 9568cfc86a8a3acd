//! What can be checked of the project itself is a test: layers, file sizes, pages and fixtures of diagnostics,
//! leftovers.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files below a folder with an extension, sorted, build output left out.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be listed") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() && !path.is_symlink() && !path.ends_with("target") {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names under `[dependencies]` of every crate.
fn dependencies() -> BTreeMap<String, Vec<String>> {
    let manifests = files("crates", "toml");
    let of = |path: &PathBuf| {
        let text = read(path);
        let section = text.split("[dependencies]").nth(1).unwrap_or("");
        let section = section.split("\n[").next().unwrap_or("");
        let names = section.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        let names = names.filter(|name| !name.is_empty()).map(str::to_string).collect();
        let folder = path.parent().expect("it lies in a folder");
        (folder.file_name().expect("it has a name").to_string_lossy().into_owned(), names)
    };
    manifests.iter().map(of).collect()
}

#[test]
fn running_never_depends_on_compiling() {
    let dependencies = dependencies();
    for runs in
        ["coll-exec", "coll-shm", "coll-tcp", "coll-gpu", "coll-kernel", "coll-jit", "coll-cuda", "coll-plan"]
    {
        for compiles in ["coll-ir", "coll-sema", "coll-syntax", "coll-compile", "coll-check"] {
            assert!(!dependencies[runs].iter().any(|d| d == compiles), "{runs} depends on {compiles}");
        }
    }
}

#[test]
fn the_judge_shares_no_code_with_the_accused() {
    let dependencies = dependencies();
    assert!(!dependencies["coll-check"].iter().any(|d| d == "coll-compile"));
    assert!(!dependencies["coll-compile"].iter().any(|d| d == "coll-check"));
    for path in files("crates/coll-check/src/plan", "rs") {
        assert!(
            !read(&path).contains("crate::program"),
            "{}: the two proofs are independent",
            path.display()
        );
    }
    for path in files("crates/coll-check/src/program", "rs") {
        assert!(!read(&path).contains("crate::plan"), "{}: the two proofs are independent", path.display());
    }
}

#[test]
fn named_packages_stand_in_one_manifest_each() {
    let dependencies = dependencies();
    for (package, home) in [
        ("pest", "coll-syntax"),
        ("petgraph", "coll-ir"),
        ("tokio", "coll-tcp"),
        ("rustls", "coll-tcp"),
        ("tokio-rustls", "coll-tcp"),
        ("clap", "collc"),
        ("toml", "coll-topo"),
        ("memmap2", "collc"),
        ("roxmltree", "coll-interop"),
        ("cranelift-codegen", "coll-jit"),
        ("cranelift-frontend", "coll-jit"),
        ("cranelift-jit", "coll-jit"),
        ("cranelift-module", "coll-jit"),
        ("cranelift-native", "coll-jit"),
        ("cudarc", "coll-gpu"),
    ] {
        let users: Vec<&String> = dependencies
            .iter()
            .filter(|(_, names)| names.iter().any(|n| n == package))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(users, [home], "{package}");
    }
}

/// The stand-in for a GPU's driver serves tests. As no crate runs on it, no program holds it.
#[test]
fn the_stand_in_is_shipped_with_nothing() {
    let dependencies = dependencies();
    assert!(dependencies.contains_key("cuda-stand-in"));
    for (name, names) in dependencies {
        assert!(!names.iter().any(|n| n == "cuda-stand-in"), "{name} depends on the stand-in");
    }
}

#[test]
fn no_library_prints_reads_the_environment_or_ends_the_process() {
    for path in files("crates", "rs") {
        let shown = path.display().to_string();
        if shown.contains("/collc/")
            || shown.contains("/tests/")
            || shown.ends_with("build.rs")
            || shown.contains("/examples/")
            || shown.contains("/benches/")
        {
            continue;
        }
        let text = read(&path);
        let code = text.split("#[cfg(test)]").next().unwrap_or("");
        for banned in ["println!(", "eprintln!(", "env::var(", "process::exit(", "process::abort("] {
            // A communicator's builder has one method, `from_env`, that is asked to read it.
            if banned == "env::var(" && path.ends_with("coll/src/comm/builder.rs") {
                assert_eq!(code.matches(banned).count(), 1, "{shown}: {banned}");
                continue;
            }
            // Nor can who starts a program over the stand-in for a driver tell it otherwise what to be.
            if banned == "env::var(" && path.ends_with("cuda-stand-in/src/config.rs") {
                assert_eq!(code.matches(banned).count(), 1, "{shown}: {banned}");
                continue;
            }
            assert!(!code.contains(banned), "{shown}: {banned}");
        }
    }
}

#[test]
fn contracts_are_data() {
    for folder in
        ["crates/coll-check/src", "crates/coll-compile/src", "crates/coll-ir/src", "crates/coll-exec/src"]
    {
        for path in files(folder, "rs") {
            if path.display().to_string().contains("/tests") {
                continue;
            }
            let text = read(&path);
            let code = text.split("#[cfg(test)]").next().unwrap_or("");
            let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            for word in ["\"allreduce", "\"allgather", "\"broadcast", "\"reduce_scatter", "\"alltoall"] {
                assert!(!code.clone().any(|line| line.contains(word)), "{}: {word}\"", path.display());
            }
        }
    }
}

#[test]
fn every_file_is_one_idea() {
    for path in files("crates", "rs").into_iter().chain(files("tests/suites", "rs")) {
        let text = read(&path);
        let lines = text.lines().count();
        assert!(lines <= 600, "{}: {lines} lines; 600 is the wall", path.display());
        assert!(text.starts_with("//!"), "{}: it does not say what it is", path.display());
        for word in
            ["todo!(", "unimplemented!(", "FIXME", "dbg!("].iter().filter(|_| !path.ends_with("tidy.rs"))
        {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
    }
}

#[test]
fn every_code_has_a_page_and_a_fixture() {
    let tables = [
        coll_syntax::codes::ALL,
        coll_sema::codes::ALL,
        coll_check::codes::ALL,
        coll_check::plan::codes::ALL,
        coll_plan::codes::ALL,
        coll_compile::codes::ALL,
        coll_topo::codes::ALL,
        coll_interop::codes::ALL,
    ];
    let mut codes = BTreeMap::new();
    for &(code, title) in tables.into_iter().flatten() {
        assert!(codes.insert(code.0, title).is_none(), "{code} is declared twice");
    }
    assert!(codes.len() > 30, "only {} codes were found", codes.len());
    let fixtures: Vec<String> = files("tests/ui", "coll")
        .iter()
        .chain(&files("tests/plan", "plan"))
        .chain(&files("tests/foreign/broken", "xml"))
        .chain(&files("tests/foreign/broken", "plan"))
        .chain(["json", "goal"].map(|ending| files("tests/foreign/broken", ending)).iter().flatten())
        .chain(["toml", "xml", "txt"].map(|ending| files("tests/topo", ending)).iter().flatten())
        .map(|path| path.file_name().expect("it has a name").to_string_lossy().into_owned())
        .collect();
    for (code, title) in &codes {
        let page = root().join(format!("docs/errors/{code}.md"));
        let text = fs::read_to_string(&page).unwrap_or_default();
        assert!(
            text.starts_with(&format!("# {code}: {title}\n")),
            "{code}: no page {} of its title",
            page.display()
        );
        assert!(text.contains(&format!("fails={code}")), "{code}: its page has no example");
        assert!(fixtures.iter().any(|name| name.starts_with(code)), "{code} has no fixture");
    }
    for page in files("docs/errors", "md") {
        let code = page.file_stem().expect("it has a name").to_string_lossy().into_owned();
        assert!(
            codes.contains_key(code.as_str()),
            "docs/errors/{code}.md explains a code that does not exist"
        );
    }
}

#[test]
fn unsafe_code_is_denied_everywhere() {
    for manifest in files("crates", "toml") {
        let text = read(&manifest);
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{}: it does not take the lints",
            manifest.display()
        );
    }
    assert!(read(&root().join("Cargo.toml")).contains("unsafe_code = \"deny\""));
}

/// The files that may allow unsafe code, for themselves and the modules below. Each says in its head why it needs it.
const UNSAFE: [&str; 20] = [
    "crates/coll/src/comm/clock.rs",
    "crates/coll/tests/comm_allocations.rs",
    "crates/coll-exec/src/sight.rs",
    "crates/coll-cuda/tests/native/mod.rs",
    "crates/coll-exec/tests/allocations.rs",
    "crates/coll-gpu/src/driver.rs",
    "crates/coll-gpu/tests/gpu/capture.rs",
    "crates/coll-jit/src/code.rs",
    "crates/coll-jit/tests/refused.rs",
    "crates/coll-kernel/src/simd.rs",
    "crates/coll-shm/src/arena.rs",
    "crates/coll-shm/src/memory.rs",
    "crates/coll-shm/src/protocol/model.rs",
    "crates/coll-shm/src/ring.rs",
    "crates/collc/src/cmd/bench/control.rs",
    "crates/cuda-stand-in/src/control.rs",
    "crates/cuda-stand-in/src/entry.rs",
    "crates/cuda-stand-in/src/image.rs",
    "crates/cuda-stand-in/src/space.rs",
    "crates/cuda-stand-in/tests/driver/main.rs",
];

#[test]
fn unsafe_code_stands_in_few_files_and_says_why_it_is_safe() {
    let allowed: Vec<PathBuf> = UNSAFE.iter().map(|path| root().join(path)).collect();
    for path in &allowed {
        assert!(read(path).contains("#![allow(unsafe_code)]"), "{}: it needs no place here", path.display());
    }
    let all = files("crates", "rs").into_iter().chain(files("tests/suites", "rs"));
    for path in all.filter(|path| !path.ends_with("tidy.rs")) {
        let text = read(&path);
        let allows = text.contains("allow(unsafe_code") || text.contains("expect(unsafe_code");
        assert!(!allows || allowed.contains(&path), "{}: it allows unsafe code", path.display());
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.contains("unsafe {")) {
            // The comment is above the statement, of which this may be a later line.
            let starts = |line: &&&str| line.starts_with("//") || line.ends_with([';', '{', '}', ',']);
            let above = lines[..at].iter().rev().skip_while(|line| !starts(line));
            let mut above = above.take_while(|above| above.starts_with("//") || above.starts_with("#["));
            let told = above.any(|above| above.contains("SAFETY: "));
            assert!(told, "{}:{}: `{line}` without `SAFETY: …`", path.display(), at + 1);
        }
    }
}

/// What the table of known faults says is tested in a suite is there under its number.
#[test]
fn the_table_of_known_faults_is_true() {
    let text = read(&root().join("docs/testing.md"));
    let rows = text.lines().filter(|line| line.starts_with("| B"));
    let mut looked_up = 0;
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for suite in cells[3].split('`').filter(|word| word.ends_with(".rs") && !word.contains("claims")) {
            let folders =
                ["tests/suites", "crates/coll/tests", "crates/coll-tcp/tests", "crates/coll-shm/tests"]
                    .map(|folder| root().join(folder).join(suite));
            let path = folders.iter().find(|path| path.exists()).unwrap_or(&folders[0]);
            let code = read(path).to_ascii_lowercase();
            for number in cells[1].split(", ").map(str::to_ascii_lowercase) {
                assert!(code.contains(&number), "{number} is not in {suite}");
                looked_up += 1;
            }
        }
    }
    assert!(looked_up > 80, "only {looked_up} rows were looked up");
}
