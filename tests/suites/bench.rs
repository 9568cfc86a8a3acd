//! `explain-choice`, `bench` and `tune` from outside: what they print and write, and bad input of every kind.

mod program;

use program::{command, is_refused, said, stdout};
use std::fs;
use std::process::Output;

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    command(arguments).envs(variables.iter().copied()).output().expect("collc starts")
}

/// What it prints when all is well.
#[track_caller]
fn printed(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = run(arguments, variables);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
    stdout(&output)
}

/// It ends with that code and says that word, without a panic.
#[track_caller]
fn refused(arguments: &[&str], variables: &[(&str, &str)], code: i32, word: &str) {
    is_refused(arguments, &run(arguments, variables), code, word);
}

const ASK: [&str; 6] = ["explain-choice", "allreduce", "1MiB", "--ranks", "8", "--cores"];

fn ask<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ASK.iter().copied().chain(["8"]).chain(more.iter().copied()).collect()
}

#[test]
fn a_choice_is_explained() {
    let text = printed(&ask(&[]), &[]);
    let again = printed(&ask(&[]), &[]);
    assert_eq!(text, again, "the same question has the same answer");
    assert!(text.starts_with("allreduce of 1 MiB (f32) on 8 ranks over tcp, 8 cores: allreduce."), "{text}");
    for schedule in ["ring", "rabenseifner", "butterfly", "one_shot"] {
        assert_eq!(text.matches(&format!("\nallreduce.{schedule}")).count(), 1, "{schedule}: {text}");
    }
    assert!(text.contains("times as long") && text.contains("  taken"), "{text}");
    assert!(printed(&ask(&["--all"]), &[]).lines().count() > text.lines().count());
    assert!(printed(&ask(&["--sizes"]), &[]).contains("from size"));
    let ordered = printed(&ask(&["--ordered"]), &[]);
    assert!(ordered.contains("does not keep operands in rank order"), "{ordered}");
    let document: serde_json::Value =
        serde_json::from_str(&printed(&ask(&["--format", "json"]), &[])).expect("JSON");
    assert_eq!(document["candidates"][0]["why"], "taken");
    assert_eq!(document["candidates"][0]["schedule"], document["taken"]);
}

#[test]
fn a_schedule_is_insisted_on_from_outside() {
    let ring = [("COLLC_SCHEDULE", "allreduce.ring")];
    let text = printed(&ask(&[]), &ring);
    assert!(text.contains("taken, as COLLC_SCHEDULE has it"), "{text}");
    let run = ["run", "allreduce", "--ranks", "2", "--bytes", "64"];
    assert!(printed(&run, &ring).contains("taking the library's allreduce.ring"));
    refused(&ask(&["--ordered"]), &ring, 2, "allreduce.ring is to be taken, and cannot serve");
    refused(
        &["run", "allreduce", "--ranks", "3"],
        &[("COLLC_SCHEDULE", "allreduce.butterfly")],
        2,
        "does not serve 3",
    );
    refused(&run, &[("COLLC_SCHEDULE", "allreduce.rink")], 2, "it has butterfly");
    refused(&run, &[("COLLC_SCHEDULE", "ring")], 2, "write `allreduce.ring`");
}

#[test]
fn what_determinism_costs_is_told() {
    let large = ["explain-choice", "allreduce", "64MiB", "--ranks", "8", "--cores", "8"];
    let text = printed(&[&large[..], &["--deterministic"]].concat(), &[]);
    assert!(text.contains("reduces in an order that depends on an element's place"), "{text}");
    let price = text.lines().find(|line| line.starts_with("deterministic: ")).expect("it is told");
    assert!(price.ends_with("times as long"), "{price}");
    let json = printed(&[&large[..], &["--deterministic", "--format", "json"]].concat(), &[]);
    let document: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let price = &document["price"];
    assert!(price["deterministic_us"].as_f64() >= price["plain_us"].as_f64(), "{price}");
    let plain: serde_json::Value =
        serde_json::from_str(&printed(&[&large[..], &["--format", "json"]].concat(), &[])).expect("JSON");
    assert_eq!((&price["plain"], &plain["price"]), (&plain["taken"], &serde_json::Value::Null));
    // One schedule for all sizes, by option or by environment.
    let taken = |bytes: &str, more: &[&str], variables: &[(&str, &str)]| {
        let run = ["run", "allreduce", "--ranks", "4", "--iters", "1", "--bytes", bytes];
        let text = printed(&[&run[..], more].concat(), variables);
        let name = text.split("taking the library's ").nth(1).expect("it says which");
        name.split(';').next().expect("a name").to_string()
    };
    let by_option = taken("8", &["--deterministic"], &[]);
    assert_eq!(taken("4MiB", &["--deterministic"], &[]), by_option);
    assert_eq!(taken("4MiB", &["--transport", "shm"], &[("COLLC_DETERMINISTIC", "1")]), by_option);
    refused(&["run", "allreduce.ring", "--ranks", "4", "--deterministic"], &[], 2, "an element's place");
    refused(
        &["run", "allreduce", "--ranks", "2"],
        &[("COLLC_DETERMINISTIC", "so")],
        2,
        "COLLC_DETERMINISTIC is `so`",
    );
}

#[test]
fn what_cannot_be_explained_is_refused() {
    refused(&["explain-choice", "allredux", "8", "--ranks", "4"], &[], 2, "there are broadcast");
    refused(&["explain-choice", "allreduce", "8 apples", "--ranks", "4"], &[], 2, "is no size");
    refused(&["explain-choice", "allreduce", "8", "--ranks", "2,4"], &[], 2, "one rank count");
    refused(&["explain-choice", "reduce", "8", "--ranks", "4", "--root", "4"], &[], 2, "no rank among 4");
    refused(&ask(&["--constants", "no/such/file"]), &[], 2, "--constants: cannot read");
    refused(&ask(&[]), &[("COLLC_TUNE", "README.md")], 2, "COLLC_TUNE: `README.md`: it holds no constants");
    let named = ["run", "allreduce.ring", "--ranks", "2", "--constants", "README.md"];
    refused(&named, &[], 2, "one is named");
}

#[test]
fn the_table_is_that_of_nccl_tests() {
    let arguments = [
        "bench",
        "--ops",
        "allreduce,alltoall,barrier",
        "--ranks",
        "2",
        "-b",
        "8",
        "-e",
        "4K",
        "-f",
        "8",
        "-n",
        "3",
        "-w",
        "1",
    ];
    for transport in ["tcp", "shm", "threads"] {
        let text = printed(&[&arguments[..], &["--transport", transport]].concat(), &[]);
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 4 + 4 + 1, "{text}");
        assert!(rows.iter().all(|row| row.len() == 13), "{text}");
        let sizes: Vec<&str> = rows[..4].iter().map(|row| row[0]).collect();
        assert_eq!(sizes, ["8", "64", "512", "4096"]);
        assert_eq!(rows[0][1..5], ["2", "f32", "sum", "-1"]);
        assert!(rows[..4].iter().all(|row| row[8] == "0" && row[12] == "0"), "nothing is wrong: {text}");
        assert!(rows[4..].iter().all(|row| row[9] == "N/A"), "neither is in place: {text}");
        assert_eq!(text.matches("# Out of bounds values : 0 OK").count(), 3, "{text}");
    }
}

#[test]
fn lines_are_those_that_peers_py_reads() {
    let arguments = [
        "bench",
        "--format",
        "jsonl",
        "--ranks",
        "3",
        "--ops",
        "allreduce,reducescatter,broadcast,gather,scan,barrier",
        "--sizes",
        "8,4096",
        "--round",
        "7",
        "--target",
        "0.01",
        "--min-small",
        "5",
    ];
    for more in [
        &["--transport", "tcp"][..],
        &["--transport", "shm"],
        &["--transport", "threads", "--deterministic"],
        &["--through", "plans"],
        &["--through", "plans", "--transport", "threads", "--deterministic"],
    ] {
        let text = printed(&[&arguments[..], more].concat(), &[]);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        assert_eq!(lines.len(), 5 * 2 + 1, "{text}");
        for line in &lines {
            for field in ["median_us", "min_us", "p99_us", "busbw_GBps", "b2b_us", "other_cores", "pp_us"] {
                assert!(line[field].is_number(), "{field}: {line}");
            }
            assert_eq!(
                (&line["peer"], &line["bad"], &line["round"]),
                (&"collc".into(), &0.into(), &7.into())
            );
            assert_eq!(line["ranks"], 3);
            assert!(
                line["iters"].as_u64().expect("a count") >= 5
                    && line["min_us"].as_f64() <= line["median_us"].as_f64()
            );
        }
        // A block has an element at least.
        let scattered = lines.iter().find(|line| line["op"] == "reducescatter").expect("it is measured");
        assert_eq!((&scattered["bytes"], &scattered["actual_bytes"]), (&8.into(), &12.into()));
    }
}

/// A rank's slice knows no lengths of blocks that pass through it.
#[test]
fn blocks_that_pass_through_are_as_long_as_they_are() {
    for schedule in
        ["alltoall.bruck(k=4)", "alltoall.two_step", "allgather.bruck", "gather.binomial", "scatter.binomial"]
    {
        let operation = schedule.split_once('.').map_or(schedule, |(operation, _)| operation);
        let arguments = ["bench", "--format", "jsonl", "--through", "plans", "--transport", "threads"];
        let cell = ["--ranks", "6", "--ops", operation, "--sizes", "1000", "-n", "1"];
        let text = printed(&[&arguments[..], &cell].concat(), &[("COLLC_SCHEDULE", schedule)]);
        let line: serde_json::Value = serde_json::from_str(&text).expect("a line of JSON");
        assert_eq!((&line["bad"], &line["ranks"]), (&0.into(), &6.into()), "{schedule}");
    }
}

#[test]
fn what_cannot_be_measured_is_refused() {
    refused(&["bench", "--ops", "allredux"], &[], 2, "there are broadcast");
    refused(&["bench", "-b", "1M", "-e", "1K"], &[], 2, "no size is from");
    refused(&["bench", "-b", "8", "-e", "1G", "-i", "8"], &[], 2, "sizes");
    refused(&["bench", "--ranks", "2", "--root", "2", "--ops", "reduce"], &[], 2, "no rank among 2");
    refused(&["bench", "-o", "band", "-d", "f32"], &[], 2, "does not work on f32");
    refused(&["bench", "--ranks", "0"], &[], 2, "0 ranks");
    refused(
        &["bench", "--ranks", "3", "--sizes", "8"],
        &[("COLLC_SCHEDULE", "allreduce.butterfly")],
        2,
        "butterfly",
    );
    refused(
        &["bench", "--through", "plans", "--ranks", "3", "--sizes", "8"],
        &[("COLLC_SCHEDULE", "allreduce.butterfly")],
        2,
        "",
    );
}

#[test]
fn constants_are_measured_written_and_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mine.json");
    let file = path.display().to_string();
    let tune = [
        "tune",
        "--transport",
        "shm",
        "--ranks",
        "2",
        "--target",
        "0.005",
        "--answers",
        "2..=4",
        "-o",
        &file,
    ];
    let text = printed(&tune, &[]);
    assert!(text.contains("predictions are off by a factor of") && text.contains("written to"), "{text}");
    let asked = printed(&ask(&["--transport", "shm", "--constants", &file]), &[]);
    assert!(asked.contains("constants: measured, "), "{asked}");
    assert!(fs::read_to_string(&path).expect("it is there").contains("\"answers\": \""));
    let other = printed(&ask(&["--transport", "tcp"]), &[("COLLC_TUNE", &file)]);
    assert!(other.contains("has none for tcp"), "{other}");
    let damaged = fs::read_to_string(&path).expect("it is there").replace("switch_us", "swich_us");
    fs::write(&path, damaged).expect("it can be written");
    refused(&ask(&["--constants", &file]), &[], 2, "swich_us");
    refused(&tune, &[], 2, "it would be replaced");
    fs::remove_file(&path).expect("it is there");
    refused(&["tune", "--answers", "2..=65", "-o", &file], &[], 2, "and not for 65");
    let both = [
        &[
            "tune",
            "--transport",
            "shm,threads",
            "--ranks",
            "2",
            "--target",
            "0.003",
            "--check",
            "--no-answers",
        ],
        &["-o", &file][..],
    ]
    .concat();
    let text = printed(&both, &[]);
    assert!(text.contains("\nthreads: a message costs") && text.contains("\nshm: a message costs"), "{text}");
    // Ten operations at five sizes, and a barrier, twice.
    assert!(text.contains("shm and threads: the median error of 102 predictions is "), "{text}");
    assert!(text.contains("\nallreduce.") && text.contains("\nbarrier."), "{text}");
    refused(&["tune", "--ranks", "1", "-o", &format!("{file}.new")], &[], 2, "two ranks at least");
}

#[test]
fn buffers_that_ranks_read_in_place_are_measured_and_checked() {
    let cell =
        ["bench", "--ops", "allreduce,alltoall", "--ranks", "2", "--sizes", "1M", "-n", "3", "-w", "1"];
    let memory = ["--transport", "shm", "--memory", "alloc", "--format", "jsonl"];
    for through in ["communicator", "plans"] {
        let text = printed(&[&cell[..], &memory, &["--through", through]].concat(), &[]);
        assert_eq!(text.lines().count(), 2, "{text}");
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("a document");
            assert_eq!((&line["memory"], &line["config"]), (&"alloc".into(), &"collc-shm-alloc".into()));
            assert_eq!((&line["bad"], &line["checked"]), (&0.into(), &true.into()), "{line}");
        }
    }
    let table = printed(&[&cell[..], &["--transport", "shm", "--memory", "alloc"]].concat(), &[]);
    assert!(table.contains("bench over shm, memory: alloc"), "{table}");
}

/// Of operations that reduce and of such as do not, by plans and by a communicator, by options and by variables.
#[test]
fn types_of_messages_and_of_sums_are_measured_and_checked() {
    let cell =
        ["bench", "--ops", "allreduce,alltoall,broadcast,scan", "--ranks", "3", "--sizes", "40K", "-n", "2"];
    let lines = ["-w", "1", "--transport", "threads", "--format", "jsonl"];
    let looked_at = |more: &[&str], variables: &[(&str, &str)], expected: [serde_json::Value; 2]| {
        let text = printed(&[&cell[..], &lines, more].concat(), variables);
        assert_eq!(text.lines().count(), 4, "{text}");
        for line in text.lines() {
            let line: serde_json::Value = serde_json::from_str(line).expect("a document");
            assert_eq!((&line["bad"], &line["checked"]), (&0.into(), &true.into()), "{line}");
            assert_eq!([&line["accumulate"], &line["wire"]], [&expected[0], &expected[1]], "{line}");
        }
    };
    let none = serde_json::Value::Null;
    for through in ["communicator", "plans"] {
        let through = ["--through", through];
        looked_at(&[&through[..], &["--wire", "bf16"]].concat(), &[], [none.clone(), "bf16".into()]);
        let narrow = ["--dtype", "f16", "--accumulate", "f32", "--wire", "bf16"];
        looked_at(&[&through[..], &narrow].concat(), &[], ["f32".into(), "bf16".into()]);
        let variables = [("COLLC_ACCUMULATE", "f32"), ("COLLC_WIRE", "f16")];
        looked_at(&[&through[..], &["--dtype", "f64"]].concat(), &variables, ["f32".into(), "f16".into()]);
    }
    let table = printed(&[&cell[..], &["--transport", "threads", "--wire", "bf16"]].concat(), &[]);
    assert!(table.contains("# travelling as bf16\n"), "{table}");
    refused(
        &[&cell[..], &["--deterministic", "--wire", "bf16"]].concat(),
        &[],
        2,
        "`--deterministic` or `--wire`",
    );
    refused(&cell, &[("COLLC_WIRE", "i8")], 2, "COLLC_WIRE is `i8`: nothing can travel as i8");
    let run = ["run", "allreduce", "--ranks", "3", "--bytes", "4K", "--iters", "1", "--transport", "threads"];
    let text = printed(&run, &[("COLLC_WIRE", "bf16"), ("COLLC_ACCUMULATE", "f32")]);
    assert!(text.contains("f32 travelled as bf16"), "{text}");
    // The variables are for what the library chooses, and say nothing of what does not reduce.
    let moved =
        ["run", "broadcast", "--ranks", "2", "--bytes", "4K", "--iters", "1", "--transport", "threads"];
    printed(&moved, &[("COLLC_ACCUMULATE", "f32")]);
}

#[test]
fn plans_without_a_communicator_have_no_checksums() {
    let cell = ["bench", "--sizes", "8", "-n", "1", "--through", "plans"];
    refused(&cell, &[("COLLC_CHECKSUM", "1")], 2, "no checksums");
    printed(&cell[..5], &[("COLLC_CHECKSUM", "1")]);
}
