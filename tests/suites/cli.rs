//! The command line from outside: exit codes, bad input of every kind, documents for tools.

mod program;

use program::{command, document, refused, root, run, stderr, stdout};
use std::fs;
use std::process::Stdio;

fn file(folder: &tempfile::TempDir, name: &str, bytes: &[u8]) -> String {
    let path = folder.path().join(name);
    fs::write(&path, bytes).expect("the file can be written");
    path.display().to_string()
}

const RING: &str = "examples/ring_allreduce.coll";

#[test]
fn files_that_are_no_schedules() {
    let folder = tempfile::tempdir().expect("a folder");
    let deep = format!("schedule s: barrier {{ let x = {}1{} }}", "(".repeat(100_000), ")".repeat(100_000));
    let cases: [(&str, Vec<u8>, &str); 6] = [
        ("empty.coll", b"".to_vec(), "empty"),
        ("blank.coll", b" \n\t\n".to_vec(), "empty"),
        ("binary.coll", vec![0xff, 0xfe, 0, 1, 2, 3], "UTF-8"),
        ("nul.coll", b"schedule\0".to_vec(), "UTF-8"),
        ("long.coll", vec![b'x'; 10 << 20], "expected"),
        ("deep.coll", deep.into_bytes(), "deep"),
    ];
    for (name, bytes, word) in cases {
        let path = file(&folder, name, &bytes);
        for command in ["check", "compile"] {
            refused(&[command, &path, "--ranks", "4"], 2, word);
        }
        refused(&["run", &path, "--ranks", "2", "--bytes", "64"], 2, word);
    }
    refused(&["check", "no/such/file.coll"], 2, "cannot read");
    refused(&["check", "schedules/"], 2, "directory");
}

#[test]
fn line_ends_and_byte_order_marks_are_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let ring = fs::read_to_string(root().join(RING)).expect("the example is there");
    let dressed = format!("\u{feff}{}", ring.replace('\n', "\r\n"));
    let path = file(&folder, "dressed.coll", dressed.as_bytes());
    assert!(run(&["check", &path, "--ranks", "4"]).status.success());
}

#[test]
fn options_that_cannot_be() {
    for ranks in ["0", "1000000000", "-1", "x", "4..2", ""] {
        refused(&["check", RING, "--ranks", ranks], 2, "ranks");
    }
    for bytes in ["-1", "x", "1.5M", "99999999999999999999"] {
        refused(&["run", RING, "--ranks", "2", "--bytes", bytes], 2, "bytes");
    }
    refused(&["run", RING, "--ranks", "2", "--bytes", "9000000000GiB"], 2, "bytes of buffers");
    refused(&["check", RING, "--frobnicate"], 2, "--frobnicate");
    refused(&["check", RING, "-D", "k=3"], 2, "no parameter `k`");
    refused(&["check", "allreduce.nosuch"], 2, "no schedule `nosuch`");
    refused(&["run", "allfoo", "--ranks", "2"], 2, "allfoo");
    refused(&["run", RING, "--ranks", "2", "--dtype", "f33"], 2, "f33");
    refused(&["run", RING, "--ranks", "2", "--op", "mean"], 2, "mean");
    refused(&["run", RING, "--ranks", "2", "--timeout", "0"], 2, "time limit");
    refused(&["run", RING], 2, "ranks");
    refused(&["run", "broadcast", "--ranks", "4", "--root", "4"], 2, "root 4");
    refused(&["compile", RING, "--ranks", "2,4"], 2, "one rank count");
    refused(&["compile", RING, "--skip", "nosuch", "--ranks", "2"], 2, "no pass `nosuch`");
    refused(&["explain", "E9999"], 2, "E9999");
    refused(&["nosuchcommand"], 2, "nosuchcommand");
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = tempfile::tempdir().expect("a folder");
    refused(&["compile", RING, "--ranks", "2", "-o", "/dev/full"], 2, "cannot write");
    refused(&["compile", RING, "--ranks", "2", "-o", "/no/such/folder/x.plan"], 2, "cannot write");
    let taken = folder.path().display().to_string();
    refused(&["compile", RING, "--ranks", "2", "-o", &taken], 2, "cannot write");
    assert_eq!(
        fs::read_dir(folder.path()).expect("it can be listed").count(),
        0,
        "something was left behind"
    );
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("the device is there");
    let output = command(&["list"]).stdout(full).output().expect("collc starts");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write to standard output"), "{}", stderr(&output));
}

#[test]
fn a_file_that_cannot_be_written_is_named_as_the_user_named_it() {
    let output = run(&["compile", RING, "--ranks", "2", "-o", "/nowhere/mine.plan"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("`/nowhere/mine.plan`: No such file or directory") && !said.contains(".collc-"),
        "{said}"
    );
}

/// Two schedules of which one is wrong, one that reduces nothing, and an operator with two parameters.
const SEVERAL: &str = "operator scaled(a, b; alpha, beta) = a + b  given x: alpha * beta * x
schedule wrong: allreduce { step each r { send dat to 0 reduce } }
schedule half: allreduce { step each r in 1..n { send data to 0 reduce } step each r in 1..n { recv data from 0 } }
schedule right: allreduce { allreduce.half(data) }
schedule flat: broadcast { step each r in 1..n { recv data from 0 } }
";

#[test]
fn an_operator_is_for_what_reduces_and_its_values_for_its_parameters() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = file(&folder, "several.coll", SEVERAL.as_bytes());
    let run = |more: &[&str], word| {
        refused(&[&["run", &file, "--ranks", "2", "--schedule"], more].concat(), 2, word);
    };
    run(&["flat", "--op", "max"], "`--op max` is for collectives that reduce, and broadcast.flat does not");
    run(&["flat", "--set", "alpha=1"], "`--set alpha=1` is for collectives that reduce");
    run(&["right", "--set", "gamma=1"], "no parameter `gamma`\n  help: it has alpha, beta");
    run(&["right", "--set", "beta=1"], "needs a value for `alpha`");
    run(&["right", "--set", "alpha=1", "--set", "alpha=2"], "`--set alpha=…` is given twice");
    refused(&["run", "broadcast", "--ranks", "2", "--op", "sum"], 2, "collectives that reduce");
    refused(&["check", &file, "--schedule", "flat", "--op", "max"], 2, "--op");
}

#[test]
fn the_factor_of_a_pre_multiplied_sum_is_given_once_and_fits_the_type() {
    let start = ["run", "allreduce", "--ranks", "2", "--bytes", "640", "--iters", "1", "--op", "premul_sum"];
    let ends = |more: &[&str], code, word| refused(&[&start, more].concat(), code, word);
    ends(&["--set", "factor=0.5"], 0, "allreduce");
    ends(&[], 2, "needs a value for `factor`\n  help: give it one with `--set factor=VALUE`");
    ends(&["--set", "alpha=1"], 2, "no parameter `alpha`");
    ends(&["--set", "factor=1", "--set", "factor=2"], 2, "`--set factor=…` is given twice");
    ends(&["--set", "factor=0.5", "--dtype", "i32"], 2, "factor = 0.5 is no value of the type");
}

#[test]
fn only_the_chosen_schedule_and_what_it_needs_matter() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = file(&folder, "several.coll", SEVERAL.as_bytes());
    let check = |more: &[&str]| run(&[&["check", &file, "--ranks", "4"], more].concat());
    for (schedule, code) in [("right", 0), ("flat", 0), ("wrong", 1)] {
        let output = check(&["--schedule", schedule]);
        assert_eq!(output.status.code(), Some(code), "{schedule}: {}", stderr(&output));
        assert_eq!(stderr(&output).contains("E0103"), schedule == "wrong", "{}", stderr(&output));
    }
    assert!(stderr(&check(&[])).contains("E0103"), "without a choice all is told");
    let values = ["--set", "alpha=1", "--set", "beta=1", "--bytes", "64", "--iters", "1"];
    let right = run(&[&["run", &file, "--ranks", "2", "--schedule", "right"], &values[..]].concat());
    assert_eq!(right.status.code(), Some(0), "{}", stderr(&right));
    refused(&["run", &file, "--ranks", "2", "--schedule", "wrong"], 1, "has 1 error");
    let bundle = folder.path().join("flat.bundle").display().to_string();
    refused(&["compile", &file, "--schedule", "flat", "-o", &bundle], 0, "keeps its contract");
    refused(&["run", &bundle, "--ranks", "2", "--bytes", "64", "--iters", "1"], 0, "broadcast.flat");
}

#[test]
fn the_document_names_the_calls_that_led_to_a_fault() {
    let output = run(&["check", "tests/ui/E0302_two_calls_deep.coll", "--ranks", "2", "--format", "json"]);
    let document = document(&output);
    let calls = document["diagnostics"][0]["calls"].as_array().expect("there are calls");
    let shown: Vec<String> =
        calls.iter().map(|c| format!("{}:{}:{}", c["line"], c["column"], c["with"])).collect();
    assert_eq!(shown, ["7:21:\"j = 0\"", "10:21:\"k = 1\""]);
    assert_eq!(calls[0]["file"], "tests/ui/E0302_two_calls_deep.coll");
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let mut child =
        command(&["list"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("collc starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("collc ends");
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
}

#[test]
fn check_gives_tools_one_document() {
    let output = run(&["check", RING, "--ranks", "4", "--format", "json"]);
    let document = document(&output);
    assert_eq!(document["ok"], true);
    assert_eq!(document["diagnostics"], serde_json::json!([]));
    let schedule = &document["schedules"][0];
    assert_eq!((&schedule["name"], &schedule["collective"]), (&"ring".into(), &"allreduce".into()));
    let count = &schedule["ranks"][0];
    assert_eq!(count["n"], 4);
    assert_eq!(count["steps"], 6);
    assert_eq!(count["bytes_sent_max"], "3/2");
    assert_eq!(count["bytes_sent_bound"], "3/2");
    assert_eq!(count["same_reduction_tree"], true);
    assert_eq!(count["min_slots"], 1);
}

#[test]
fn counts_that_a_require_excludes_are_no_failures() {
    let output = run(&["check", "allgather.doubling", "--ranks", "2..=5", "--format", "json"]);
    assert!(output.status.success());
    let document = document(&output);
    let applies: Vec<bool> = document["schedules"][0]["ranks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|count| count["applies"].as_bool().expect("a truth value"))
        .collect();
    assert_eq!(applies, [true, false, true, false]);
    refused(&["check", "allgather.doubling", "--ranks", "3,5"], 1, "none of the rank counts applies");
}

#[test]
fn a_broken_schedule_is_found_wrong_and_named_by_count() {
    let output = run(&["check", "examples/broken_ring.coll", "--ranks", "4", "--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let document = document(&output);
    assert_eq!(document["ok"], false);
    let diagnostic = &document["diagnostics"][0];
    assert!(diagnostic["code"].as_str().expect("a code").starts_with("E05"), "{diagnostic}");
    assert!(diagnostic["line"].as_u64().is_some() && diagnostic["column"].as_u64().is_some());
    assert_eq!(document["schedules"][0]["ranks"][0]["ok"], false);
    for command in ["check", "compile"] {
        let output = run(&[command, "gather.binomial", "--ranks", "10000"]);
        let told = stdout(&output) + &stderr(&output);
        assert!(told.contains("is too large for") && !told.contains("wrong"), "{told}");
    }
}

#[test]
fn compile_as_the_readme_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let ring = root().join(RING).display().to_string();
    let output = command(&["compile", &ring]).current_dir(folder.path()).output().expect("collc starts");
    assert!(output.status.success(), "{}", stderr(&output));
    let bundle = folder.path().join("ring_allreduce.bundle").display().to_string();
    let output = run(&["run", &bundle, "--ranks", "3", "--bytes", "28", "--format", "json"]);
    assert_eq!(document(&output)["ok"], true, "{}", stderr(&output));

    assert!(run(&["check", &bundle, "--ranks", "5"]).status.success());

    let plan = folder.path().join("x.plan").display().to_string();
    assert!(run(&["compile", RING, "--ranks", "3", "-o", &plan]).status.success());
    let output = run(&["run", &plan, "--bytes", "1000", "--format", "json"]);
    assert_eq!((&document(&output)["ok"], &document(&output)["ranks"]), (&true.into(), &3.into()));
    refused(&["run", &plan, "--ranks", "4"], 2, "a plan for 3 ranks");

    let mut bytes = fs::read(&plan).expect("the plan is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let damaged = file(&folder, "damaged.plan", &bytes);
    refused(&["run", &damaged], 2, "damaged");
    bytes[middle] ^= 1;
    bytes[8] = 99;
    let foreign = file(&folder, "foreign.plan", &bytes);
    refused(&["run", &foreign], 2, "version");
}

#[test]
fn one_ranks_own_part_is_the_slice_of_the_whole() {
    let part = stdout(&run(&["compile", RING, "--ranks", "33", "--rank", "17", "--emit", "plan"]));
    let whole = stdout(&run(&["compile", RING, "--ranks", "33", "--emit", "plan"]));
    let own = |text: &str| {
        text.split("\nrank 17\n").nth(1).map(|own| own.split("\nrank ").next().map(str::to_string))
    };
    assert!(own(&part).is_some(), "{part}");
    assert_eq!(own(&part), own(&whole));
    refused(&["compile", RING, "--ranks", "4", "--rank", "4"], 2, "rank 4");
}

#[test]
fn a_schedule_for_equal_blocks_refuses_unequal_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "collective turn {\n    inout data[ranks]\n    ensure each r, q: data[(q + 1) % n] == r.data[q]\n}\n\
                schedule s: turn {\n    step each r { for q in 0..n { copy data[q] to data[(q + 1) % n] } }\n}\n";
    let path = file(&folder, "turn.coll", text.as_bytes());
    refused(&["run", &path, "--ranks", "3", "--bytes", "28"], 2, "equal blocks");
    assert!(run(&["run", &path, "--ranks", "3", "--bytes", "24"]).status.success());
}

#[test]
fn a_schedule_is_not_overwritten_by_its_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read(root().join(RING)).expect("the example is there");
    let path = file(&folder, "mine.coll", &text);
    refused(&["compile", &path, "--ranks", "2", "-o", &path], 2, "overwrite");
    assert_eq!(fs::read(&path).expect("it is there"), text);
}

#[test]
fn plans_are_checked_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    for (emit, name) in [("plan", "x.txt"), ("json", "x.json")] {
        let path = folder.path().join(name).display().to_string();
        assert!(run(&["compile", RING, "--ranks", "3", "--emit", emit, "-o", &path]).status.success());
        let output = run(&["check", &path, "--format", "json"]);
        assert_eq!(document(&output)["ok"], true, "{emit}: {}", stderr(&output));
    }
    let damaged = file(&folder, "y.json", b"{\"name\": 3}");
    refused(&["check", &damaged], 2, "y.json");
    refused(&["run", &damaged], 2, "y.json");
}

#[test]
fn every_stage_can_be_printed() {
    for (stage, word) in [
        ("ast", "Schedule"),
        ("program", "step"),
        ("graph", "t0"),
        ("plan", "rank 0"),
        ("json", "{"),
        ("dot", "digraph"),
    ] {
        let output = run(&["compile", RING, "--ranks", "3", "--emit", stage]);
        assert!(output.status.success(), "{stage}: {}", stderr(&output));
        assert!(stdout(&output).contains(word), "{stage}: {}", stdout(&output));
    }
}

#[test]
fn formatting_is_idempotent_and_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, "loose.coll", b"schedule   s:barrier{step each r{signal (r+1)%n}}\n");
    refused(&["fmt", "--check", &path], 1, "not formatted");
    assert!(run(&["fmt", &path]).status.success());
    assert!(run(&["fmt", "--check", &path]).status.success());
    let broken = file(&folder, "broken.coll", b"schedule s barrier { }");
    let before = fs::read(&broken).expect("it is there");
    refused(&["fmt", &broken], 1, "E00");
    assert_eq!(fs::read(&broken).expect("it is there"), before, "a file that does not parse is left alone");
}

#[test]
fn explain_shows_every_page() {
    let listed = stdout(&run(&["explain"]));
    for line in listed.lines() {
        let code = line.split(':').next().expect("a code");
        let output = run(&["explain", code]);
        assert!(output.status.success() && stdout(&output).contains("mend"), "{code}");
    }
}

#[test]
fn list_names_costs() {
    let output = stdout(&run(&["list"]));
    assert!(output.contains("allreduce.ring") && output.contains("2 (n-1) α"), "{output}");
    assert!(!stdout(&run(&["list", "reducescatter"])).contains("allreduce.ring"));
}

#[test]
fn a_users_operator_runs_as_machine_code_unless_asked_otherwise() {
    let arguments = [
        "run",
        "examples/absmax.coll",
        "--ranks",
        "2",
        "--bytes",
        "4100",
        "--iters",
        "1",
        "--format",
        "json",
    ];
    let with = |jit: &str| command(&arguments).env("COLLC_JIT", jit).output().expect("collc starts");
    for (output, code, reason) in [
        (run(&arguments), "native", None),
        (with("on"), "native", None),
        (with("off"), "interpreted", Some("asked")),
    ] {
        let row = document(&output);
        assert_eq!((&row["ok"], &row["operator_code"]), (&true.into(), &code.into()), "{row}");
        let told = row["operator_code_reason"].as_str();
        assert_eq!(told.is_some(), reason.is_some(), "{row}");
        assert!(told.unwrap_or_default().contains(reason.unwrap_or_default()), "{row}");
    }
    let text = stdout(&command(&arguments[..8]).env("COLLC_JIT", "off").output().expect("collc starts"));
    assert!(text.contains("\noperator absmax was interpreted: it was asked for\n"), "{text}");
    let row =
        document(&run(&["run", RING, "--ranks", "2", "--bytes", "64", "--iters", "1", "--format", "json"]));
    assert!(row["operator_code"].is_null(), "{row}");

    let output = with("maybe");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the environment's COLLC_JIT is `maybe`"), "{}", stderr(&output));
}

#[test]
fn the_readme_shows_what_is_printed() {
    let output = run(&["check", "examples/broken_ring.coll", "--ranks", "4"]);
    let readme = fs::read_to_string(root().join("README.md")).expect("it is there");
    assert!(readme.contains(stderr(&output).trim_end()), "README.md should show:\n{}", stderr(&output));
}

#[test]
fn examples_hold_but_for_the_broken_one() {
    for entry in fs::read_dir(root().join("examples")).expect("it is there") {
        let path = entry.expect("it can be listed").path();
        if path.extension().is_some_and(|extension| extension == "coll")
            && !path.ends_with("broken_ring.coll")
        {
            let output = run(&["check", &path.display().to_string(), "--ranks", "1..=9"]);
            assert!(output.status.success(), "{}: {}", path.display(), stderr(&output));
        }
    }
}
