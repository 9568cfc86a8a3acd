//! Plans in files, whole and cut: what they claim is proved again, operators come from other files, and slices run
//! together whether they were cut off the whole or made alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn collc(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_collc"));
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    command.args(arguments).current_dir(root).stdout(Stdio::piped()).stderr(Stdio::piped());
    for variable in ["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "COLLC_TOKEN"] {
        command.env_remove(variable);
    }
    command
}

fn run(arguments: &[&str]) -> Output {
    collc(arguments).output().expect("collc starts")
}

/// All that it says.
fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout))
}

fn works(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    said(&output)
}

fn refused(arguments: &[&str], code: i32, words: &[&str]) {
    let output = run(arguments);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?} does not say `{word}`: {said}");
    }
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).expect("it can be written");
        self.path(name)
    }

    fn compiled(&self, schedule: &str, name: &str, more: &[&str]) -> String {
        let path = self.path(name);
        works(&[&["compile", schedule, "-o", &path], more].concat());
        path
    }
}

/// Ranks that are started one by one, each with arguments of its own.
fn world(ranks: &[Vec<&str>]) -> Vec<Output> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    let count = ranks.len().to_string();
    let start = |(rank, arguments): (usize, &Vec<&str>)| {
        let rank = rank.to_string();
        let place = ["--rank", &rank, "--world-size", &count, "--rendezvous", &address, "--timeout", "60"];
        collc(&[&["run"], &arguments[..], &place[..]].concat()).spawn().expect("collc starts")
    };
    let started: Vec<_> = ranks.iter().enumerate().map(start).collect();
    started.into_iter().map(|child| child.wait_with_output().expect("it ends")).collect()
}

#[test]
fn a_plan_says_what_was_proved_of_it_in_every_form() {
    let files = Files::new();
    let document = |path: &str| -> serde_json::Value {
        let output = run(&["check", path, "--format", "json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&output)))
    };
    for (schedule, ordered) in [("allreduce.ring", false), ("allreduce.recursive_doubling", true)] {
        for more in [&[][..], &["--emit", "plan"], &["--emit", "json"]] {
            let path = files.compiled(schedule, "x.plan", &[&["--ranks", "4"], more].concat());
            let count = &document(&path)["schedules"][0]["ranks"][0];
            assert_eq!(count["same_reduction_tree"], true, "{schedule} {more:?}");
            assert_eq!(count["ordered"], ordered, "{schedule} {more:?}");
            assert_eq!(count["proved"], true);
        }
    }
}

#[test]
fn a_plan_that_claims_too_much_is_refused() {
    let files = Files::new();
    let text = works(&["compile", "allreduce.ring", "--ranks", "3", "--emit", "plan"]);
    let claimed =
        text.replace("\nclaim same_reduction_tree\n", "\nclaim ordered\nclaim same_reduction_tree\n");
    assert_ne!(claimed, text);
    let changed = files.write("changed.plan", &claimed);
    refused(&["run", &changed], 2, &["E0658", "`origin` and `proof`"]);
    let lines = claimed.lines().filter(|line| !line.starts_with("origin") && !line.starts_with("proof"));
    let bare = files.write("bare.plan", &lines.map(|line| format!("{line}\n")).collect::<String>());
    refused(&["run", &bare, "--bytes", "64"], 1, &["E0612", "`ordered`"]);
    refused(&["check", &bare], 1, &["E0612"]);
}

/// Known fault B031 among them: what does not commute is refused where the order is not kept.
#[test]
fn operators_of_other_files_serve_plans_and_schedules() {
    let files = Files::new();
    let operators =
        "operator ordered second(a, b) = b\n\noperator scaled(a, b; alpha) = a + b given x: alpha * x\n";
    let file = files.write("operators.coll", operators);
    let (second, scaled) = (format!("{file}:second"), format!("{file}:scaled"));
    let ordered = files.compiled("allreduce.recursive_doubling", "ordered.plan", &["--ranks", "4"]);
    let ring = files.compiled("allreduce.ring", "ring.plan", &["--ranks", "4"]);
    let run = |target: &str, op: &str, more: &[&str]| {
        works(&[&["run", target, "--op", op, "--bytes", "100", "--iters", "2"], more].concat())
    };
    assert!(run(&ordered, &second, &[]).contains("second"));
    assert!(run("allreduce.recursive_doubling", &second, &["--ranks", "4"]).contains("second"));
    assert!(run(&ring, &scaled, &["--set", "alpha=0.5"]).contains("scaled"));
    refused(&["run", &ring, "--op", &second], 2, &["does not commute", "claim ordered"]);
    refused(&["run", "allreduce.ring", "--ranks", "4", "--op", &second], 2, &["does not commute"]);
    refused(&["run", &ring, "--op", &scaled], 2, &["needs a value for `alpha`"]);
    refused(&["run", &ring, "--op", &format!("{file}:third")], 2, &["no operator `third`", "second, scaled"]);
    refused(&["run", &ring, "--op", "second"], 2, &["FILE.coll:NAME"]);
    refused(&["run", &ring, "--op", "no/such.coll:second"], 2, &["cannot read `no/such.coll`"]);
    let broken = files.write("broken.coll", "operator mean(a, b) = (a + b) / 2.0\n");
    refused(&["run", &ring, "--op", &format!("{broken}:mean")], 2, &["E0211"]);
}

/// Of 17 ranks some have slices that were made alone, some such that were cut off the whole, and one compiles the schedule
/// itself. They know that they run one plan, and do.
#[test]
fn slices_run_together_however_they_were_made() {
    let files = Files::new();
    let whole = works(&["compile", "allreduce.ring", "--ranks", "17", "--emit", "plan"]);
    let plan: coll_plan::Plan = coll_plan::from_text(&whole).expect("it reads");
    let slices: Vec<String> = (0..16)
        .map(|rank| match rank % 2 {
            0 => {
                let number = rank.to_string();
                let name = format!("alone{rank}.plan");
                files.compiled("allreduce.ring", &name, &["--ranks", "17", "--rank", &number])
            }
            _ => {
                let slice = plan.slice(rank).expect("it has every rank");
                files.write(&format!("cut{rank}.plan"), &coll_plan::to_text(&slice))
            }
        })
        .collect();
    let common = ["--bytes", "1000", "--iters", "2"];
    let mut ranks: Vec<Vec<&str>> =
        slices.iter().map(|path| [&[path.as_str()][..], &common].concat()).collect();
    ranks.push([&["allreduce.ring"][..], &common].concat());
    for output in world(&ranks) {
        assert!(output.status.success(), "{}", said(&output));
    }
    refused(&["run", &slices[3]], 2, &["part of rank 3 of 17", "--rank 3"]);
    let other = ["run", &slices[3], "--rank", "4", "--world-size", "17", "--rendezvous", "127.0.0.1:1"];
    refused(&other, 2, &["part of rank 3 of 17, and this is rank 4"]);
}

/// What a rank's own row of an all-to-all does not tell of the others' blocks is not guessed.
#[test]
fn a_slice_refuses_counts_that_it_cannot_know() {
    let files = Files::new();
    let slice = files.compiled("alltoall.linear", "x.plan", &["--ranks", "17", "--rank", "3"]);
    let place = ["--rank", "3", "--world-size", "17", "--rendezvous", "127.0.0.1:1", "--timeout", "1"];
    refused(
        &[&["run", &slice, "--bytes", "100"], &place[..]].concat(),
        2,
        &["does not tell", "divides by 17"],
    );
}

#[test]
fn slices_of_other_plans_do_not_run_together() {
    let files = Files::new();
    let whole = works(&["compile", "allreduce.ring", "--ranks", "2", "--emit", "plan"]);
    let path = files.write("whole.plan", &whole);
    // The same plan, but as it is: nothing says what it was compiled from.
    let lines = whole.lines().filter(|line| !line.starts_with("origin") && !line.starts_with("proof"));
    let bare = files.write("bare.plan", &lines.map(|line| format!("{line}\n")).collect::<String>());
    for output in world(&[vec![&path], vec![&bare]]) {
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("plan: ") && said.contains("compiled from"), "{said}");
    }
    let words = |arguments: [Vec<&str>; 3], due: &[&str]| {
        for output in world(&arguments) {
            let said = said(&output);
            assert_eq!(output.status.code(), Some(1), "{said}");
            assert!(due.iter().all(|word| said.contains(word)), "{due:?}: {said}");
        }
    };
    let broadcast = ["broadcast.chain", "--bytes", "64"];
    let with = |more: &[&'static str]| -> Vec<&str> { [&broadcast[..], more].concat() };
    let plain = || with(&[]);
    words([plain(), with(&["--root", "2"]), plain()], &["root: ", "rank 1 has 2", "0"]);
    words([plain(), with(&["--lanes", "2"]), plain()], &["lanes: ", "rank 1 has 2"]);
    words([plain(), with(&["--slices", "3"]), plain()], &["slices: ", "rank 1 has 3"]);
    let reduce =
        |more: &[&'static str]| [&["allreduce.ring", "--bytes", "64", "--dtype", "bf16"], more].concat();
    let wide = reduce(&["--accumulate", "f32"]);
    words([reduce(&[]), wide, reduce(&[])], &["accumulated in: ", "rank 1 has f32", "its own type"]);
    words(
        [plain(), with(&["--wire", "bf16"]), plain()],
        &["travel as: ", "rank 1 has bf16", "what they are"],
    );
    // Known fault B037: a count of its own. B039: an operation of its own.
    words([plain(), plain(), vec!["broadcast.chain", "--bytes", "32"]], &["count: ", "rank 2 has 8"]);
    // B038: an element type of its own.
    words([plain(), with(&["--dtype", "i32"]), plain()], &["dtype: ", "rank 1 has i32"]);
    let gather = || vec!["allgather.ring", "--bytes", "64"];
    words([plain(), plain(), gather()], &["schedule: ", "rank 2 has allgather.ring"]);
    let bruck = || vec!["alltoall.bruck", "--bytes", "64"];
    let of_three = vec!["alltoall.bruck", "--bytes", "64", "-D", "k=3"];
    words([bruck(), of_three, bruck()], &["parameters: ", "rank 1 has k = 3"]);
}

#[test]
fn damaged_numbers_of_a_plan_as_text_are_named_with_their_place() {
    let files = Files::new();
    let text = works(&["compile", "allreduce.ring", "--ranks", "2", "--emit", "plan"]);
    for (from, to, words) in [
        ("channels 1", "channels -1", &["line 3, column 10", "a number of channels", "`-1`"][..]),
        ("slots 0", "slots 0x1f", &["line 4, column 7", "a number of slots", "`0x1f`"]),
        ("cuts equal 2", "cuts equal 184467440737095516160", &["line 5, column 12", "below 2^64"]),
        ("channels 1", "channels 4294967296", &["line 3, column 10", "below 2^32", "4294967296"]),
    ] {
        assert!(text.contains(from));
        let path = files.write("x.plan", &text.replacen(from, to, 1));
        refused(&["check", &path], 1, words);
        refused(&["check", &path], 1, &["E0660", "mend the line"]);
    }
}

/// Nobody has compiled it, so nothing stands in it of where it comes from: its ranks compare what it is.
#[test]
fn plans_that_were_written_by_hand_run_over_every_transport() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/plan");
    let plans = std::fs::read_dir(folder).expect("tests/plan exists");
    let plans = plans.map(|entry| entry.expect("it can be read").path().display().to_string());
    let mut ran = 0;
    for plan in plans.filter(|path| path.ends_with(".plan") && !path.contains("/E0")) {
        for transport in ["tcp", "shm", "threads"] {
            let said = works(&["run", &plan, "--bytes", "4KiB", "--iters", "2", "--transport", transport]);
            assert!(said.contains("every element on every rank is right"), "{plan} over {transport}: {said}");
            ran += 1;
        }
        refused(
            &["run", &plan, "--wire", "bf16"],
            2,
            &["`--wire` is for schedules that are compiled", "is a plan"],
        );
    }
    assert!(ran > 0, "there is none to run");
}
