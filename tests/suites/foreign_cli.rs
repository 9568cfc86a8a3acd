//! Schedules of other tools on the command line: what `check`, `import`, `compile`, `sim`, `run` and `export` do with them, and
//! what they say of files and calls that do not fit.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

fn text_of(name: &str) -> String {
    let path = tests().join("foreign").join(name);
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    text
}

/// A file on disk, as users have it.
fn unpacked(folder: &Path, name: &str) -> String {
    let path = folder.join(Path::new(name).file_stem().expect("a name"));
    std::fs::write(&path, text_of(name)).expect("it can be written");
    path.to_string_lossy().into_owned()
}

fn collc(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_collc")).args(arguments).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("it ends by itself"), text(&output.stdout), text(&output.stderr))
}

/// What a command prints, which ends well.
fn good(arguments: &[&str]) -> (String, String) {
    let (code, out, err) = collc(arguments);
    assert_eq!(code, 0, "{arguments:?}: {out}{err}");
    (out, err)
}

/// A command that is refused with an exit code, and all these words.
fn refused(arguments: &[&str], due: i32, words: &[&str]) {
    let (code, out, err) = collc(arguments);
    assert_eq!(code, due, "{arguments:?}: {out}{err}");
    for word in words {
        assert!(err.contains(word), "{arguments:?} lacks `{word}`: {err}");
    }
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("collc-foreign-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("it can be made");
    folder
}

fn at(folder: &Path, name: &str) -> String {
    folder.join(name).to_string_lossy().into_owned()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Runs something over threads, which are quick to start, and sees that every element is right.
fn runs(arguments: &[&str]) -> String {
    let more = ["--transport", "threads", "--iters", "2", "--format", "json"];
    let (out, err) = good(&[&["run"], arguments, &more].concat());
    let report = json(&out);
    assert_eq!((&report["wrong"], &report["ok"]), (&0.into(), &true.into()), "{arguments:?}: {out}");
    err
}

const RING: &str = "msccl-xml/msccl-tools-generated/allreduce_ring_p5.xml.gz";

#[test]
fn a_report_has_what_was_found() {
    let folder = scratch("report");
    let xml = unpacked(&folder, RING);
    let (out, _) = good(&["check", &xml, "--format", "json"]);
    let report = json(&out);
    let count = &report["schedules"][0]["ranks"][0];
    let due: [(&str, serde_json::Value); 6] = [
        ("n", 5.into()),
        ("ok", true.into()),
        ("postcondition", true.into()),
        ("min_slots", 2.into()),
        ("same_reduction_tree", true.into()),
        ("races", 0.into()),
    ];
    for (name, due) in due {
        assert_eq!(count[name], due, "{name}: {out}");
    }
    // A collective that is not known here.
    let next = unpacked(&folder, "msccl-xml/msccl-tools-generated/alltonext_forward_2x8.xml.gz");
    let (out, _) = good(&["check", &next, "--format", "json"]);
    let count = &json(&out)["schedules"][0]["ranks"][0];
    assert_eq!((&count["ok"], &count["postcondition"]), (&true.into(), &serde_json::Value::Null), "{out}");
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

/// Every race is counted, not those alone that are told.
#[test]
fn more_races_are_counted_than_are_told() {
    let folder = scratch("races");
    let name = "msccl-xml/msccl-tools-generated/allreduce_allpairs_v2_p8.xml.gz";
    let text = text_of(name);
    let mut dropped = 0;
    let drop = |line: &str| match line.contains("depid=\"-1\"") || !line.contains("type=\"re\"") {
        true => line.to_string() + "\n",
        false => {
            dropped += 1;
            let (before, rest) = line.split_once(" depid=\"").expect("it depends");
            let rest = rest.split_once(" hasdep").expect("it says whether others wait").1;
            format!("{before} depid=\"-1\" deps=\"-1\" hasdep{rest}\n")
        }
    };
    let mutant: String = text.lines().map(drop).collect();
    assert!(dropped > 6, "{dropped}");
    let path = at(&folder, "mutant.xml");
    std::fs::write(&path, mutant).expect("it can be written");
    let (code, out, _) = collc(&["check", &path, "--format", "json"]);
    let report = json(&out);
    let count = &report["schedules"][0]["ranks"][0];
    let races = count["races"].as_u64().expect("a number");
    assert!(code == 1 && races >= dropped, "{races} races, and {dropped} dependencies were dropped");
    assert_eq!(count["ok"], false);
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

/// Of each form one file: imported, and what was imported checked, simulated, drawn, printed, run and written again.
#[test]
fn what_is_imported_is_like_any_plan() {
    let folder = scratch("imported");
    let files = [
        (unpacked(&folder, RING), "5"),
        (unpacked(&folder, "mscclpp-json/dsl-generated/allreduce_p4.json.gz"), "4"),
        (tests().join("goal/schedgen/dissemination-p8-b1024.goal").to_string_lossy().into_owned(), "8"),
    ];
    for (file, ranks) in &files {
        let plan = at(&folder, "imported.plan");
        let (out, _) = good(&["import", file, "-o", &plan]);
        assert!(out.contains(&format!("for {ranks} ranks")) && out.contains("wrote "), "{out}");
        good(&["check", &plan]);
        good(&["check", file]);
        let topology = format!("full:{ranks},bw=25GB/s,lat=1us");
        let (out, _) = good(&["sim", &plan, "--topology", &topology, "--bytes", "96KiB"]);
        assert!(out.contains(" µs"), "{out}");
        for what in [file, &plan] {
            let (out, _) = good(&["compile", what, "--emit", "svg"]);
            assert!(out.starts_with("<svg ") && out.trim_end().ends_with("</svg>"), "{what}");
            let (out, _) = good(&["compile", what, "--emit", "plan"]);
            assert!(out.starts_with("plan "), "{what}");
        }
        let (out, _) = good(&["import", file]);
        assert!(out.starts_with("plan "), "{out}");
        // A plan of messages takes sizes that its blocks divide.
        runs(&[&plan, "--bytes", "96KiB"]);
        for form in ["goal", "chakra"] {
            good(&["export", &plan, "--to", form, "--bytes", "96KiB", "-o", &at(&folder, form)]);
        }
    }
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

/// Files of other tools are simulated as they are.
#[test]
fn files_are_simulated() {
    let folder = scratch("sim");
    let xml = unpacked(&folder, RING);
    let (out, _) = good(&["sim", &xml, "--topology", "full:5,bw=25GB/s,lat=1us", "--format", "json"]);
    assert!(json(&out)["time_us"].as_f64().expect("a time") > 0.0, "{out}");
    let (out, _) = good(&[
        "compare",
        &xml,
        "allreduce.ring",
        "--topology",
        "full:5,bw=25GB/s,lat=1us",
        "--sizes",
        "1MiB",
    ]);
    assert!(out.contains("allreduce.ring"), "{out}");
    refused(&["sim", &xml, "--topology", "full:4"], 2, &["5 ranks", "4 devices"]);
    let goal = tests().join("goal/schedgen/gather-p8-b1024.goal").to_string_lossy().into_owned();
    let (out, _) = good(&["sim", &goal]);
    assert!(out.contains("finish ns"), "{out}");
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn files_run_on_every_transport() {
    let folder = scratch("run");
    let xml = unpacked(&folder, RING);
    for transport in ["tcp", "shm", "threads"] {
        let (out, err) = good(&[
            "run",
            &xml,
            "--bytes",
            "1MiB",
            "--transport",
            transport,
            "--iters",
            "2",
            "--format",
            "json",
        ]);
        let report = json(&out);
        assert_eq!((&report["wrong"], &report["ok"]), (&0.into(), &true.into()), "{transport}");
        assert!(err.contains("`outofplace` is 0"), "{err}");
    }
    runs(&[&unpacked(&folder, "mscclpp-json/dsl-generated/allreduce_p4.json.gz"), "--bytes", "1MiB"]);
    runs(&[&unpacked(&folder, "mscclpp-json/executor-tests/reduce_pack_tbg.json.gz"), "--bytes", "100"]);
    // GOAL runs at its own sizes: every block arrives as it was sent.
    for name in ["linear_alltoall-p8-b1024", "binomialtreereduce-p8-b131072", "pipelinedring-p8-b1024"] {
        let goal = tests().join(format!("goal/schedgen/{name}.goal")).to_string_lossy().into_owned();
        runs(&[&goal, "--dtype", "u8"]);
    }
    let goal = tests().join("goal/binary_tree_32.goal").to_string_lossy().into_owned();
    let err = runs(&[&goal]);
    assert!(err.contains("rounded up to whole elements of f32"), "{err}");
    refused(&["run", &goal, "--bytes", "1MiB"], 2, &["`--bytes` is not for", "says what is sent"]);
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

/// B091, B092: what a file's limits exclude is told by the limit's name: a size is run, other ranks and places are refused with
/// what would do.
#[test]
fn limits_are_told_by_name_where_a_call_is_asked_for() {
    let folder = scratch("limits");
    let xml = unpacked(&folder, "msccl-xml/rccl/alltoall-8n-9kb-190kb.xml.gz");
    let run = |more: &[&str]| {
        [&["run", &xml], more].concat().iter().map(|word| word.to_string()).collect::<Vec<_>>()
    };
    let refuse = |more: &[&str], words: &[&str]| {
        let arguments = run(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        refused(&arguments, 2, words);
    };
    let told = runs(&[&xml, "--bytes", "1MiB"]);
    assert!(told.contains("not for this call: 1048576 B are more than `maxBytes` 194560"), "{told}");
    let told = runs(&[&xml, "--bytes", "64"]);
    assert!(told.contains("not for this call: 64 B are fewer than `minBytes` 9217"), "{told}");
    refuse(&["--bytes", "64KiB", "--in-place"], &["`inplace` is 0", "out of place alone"]);
    refuse(&["--bytes", "64KiB", "--ranks", "4"], &["8 ranks, not 4"]);
    let quiet = runs(&[&xml, "--bytes", "64KiB"]);
    assert!(!quiet.contains("is not for this call"), "{quiet}");
    let told = runs(&[&xml, "--bytes", "64KiB", "--in-place", "--ignore-limits"]);
    assert!(told.contains("`inplace` is 0") && told.contains("as `--ignore-limits` says"), "{told}");
    // Without a size it takes one that the file is for.
    let told = runs(&[&xml]);
    assert!(told.contains("194560 B, as "), "{told}");
    // A count that does not divide is told, and served.
    let told = runs(&[&xml, "--bytes", "9220"]);
    assert!(told.contains("`nchunksperloop` 16"), "{told}");
    // One for calls in place alone runs so, unless its limits are to be ignored.
    let ring = unpacked(&folder, RING);
    let told = runs(&[&ring, "--bytes", "20KB"]);
    assert!(told.contains("so it runs in place") && !told.contains("is not for this call"), "{told}");
    let told = runs(&[&ring, "--bytes", "20KB", "--ignore-limits"]);
    assert!(told.contains("the call is out of place; it runs"), "{told}");
    refused(
        &["run", "allreduce.ring", "--ranks", "2", "--ignore-limits"],
        2,
        &["is for files of other tools"],
    );
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

/// Library schedules, schedule files, plans and files of other tools in each form; forms that are read are read back.
#[test]
fn every_form_is_written() {
    let folder = scratch("forms");
    let coll = at(&folder, "star.coll");
    std::fs::write(&coll, "schedule star: allreduce {\n    step each r in 1..n { send data to 0 reduce }\n    step each r in 1..n { recv data from 0 }\n}\n")
        .expect("it can be written");
    let plan = at(&folder, "ring.plan");
    good(&["compile", "allreduce.ring", "--ranks", "4", "-o", &plan]);
    let xml = unpacked(&folder, RING);
    let subjects: [&[&str]; 4] =
        [&["allreduce.ring", "--ranks", "4"], &[&coll, "--ranks", "3"], &[&plan], &[&xml]];
    for (at_subject, subject) in subjects.into_iter().enumerate() {
        for (form, ending) in
            [("msccl-xml", "xml"), ("mscclpp-json", "json"), ("goal", "goal"), ("chakra", "et")]
        {
            let out = at(&folder, &format!("out.{ending}"));
            if at_subject == 3 && form == "mscclpp-json" {
                // What is received and sent on at once needs slots, which that form has not.
                refused(
                    &[&["export"], subject, &["--to", form, "-o", &out]].concat(),
                    1,
                    &["E0913", "2 message slots"],
                );
                continue;
            }
            good(&[&["export"], subject, &["--to", form, "-o", &out]].concat());
            match form {
                "chakra" => assert!(Path::new(&format!("{out}.0.et")).exists(), "{subject:?}"),
                _ => drop(good(&["check", &out])),
            }
            if ending == "xml" || ending == "json" {
                runs(&[&out, "--bytes", "1000"]);
            }
        }
    }
    refused(
        &[
            "export",
            "barrier.dissemination",
            "--ranks",
            "4",
            "--to",
            "msccl-xml",
            "-o",
            &at(&folder, "b.xml"),
        ],
        1,
        &["E0913"],
    );
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

/// Traces of all ranks are named by any of them: checked, imported, run at their sizes and written again. One that is missing, cut off or
/// says nothing of how it is done is told with its file and node.
#[test]
fn chakra_traces_are_read_back() {
    let folder = scratch("traces");
    let out = at(&folder, "ring");
    good(&["export", "allreduce.ring", "--ranks", "4", "--to", "chakra", "--bytes", "1000", "-o", &out]);
    let (first, last) = (format!("{out}.0.et"), format!("{out}.3.et"));
    let (report, _) = good(&["check", &last, "--format", "json"]);
    let count = &json(&report)["schedules"][0]["ranks"][0];
    let due = serde_json::json!([4, true, null, 0]);
    assert_eq!(
        serde_json::json!([count["n"], count["ok"], count["postcondition"], count["races"]]),
        due,
        "{report}"
    );
    let plan = at(&folder, "ring.plan");
    let (told, _) = good(&["import", &first, "-o", &plan]);
    assert!(told.contains("goal.ring for 4 ranks") && told.contains("every message arrives"), "{told}");
    runs(&[&first, "--dtype", "u8"]);
    runs(&[&plan, "--bytes", "96KiB"]);
    good(&["export", &first, "--to", "goal", "--dtype", "u8", "-o", &at(&folder, "again.goal")]);
    let bytes = std::fs::read(&first).expect("it was written");
    for end in [3, 40, bytes.len() - 1] {
        std::fs::write(&first, &bytes[..end]).expect("it can be written");
        let (_, _, told) = collc(&["check", &last]);
        assert!(told.contains("E0901") && told.contains("ring.0.et"), "cut at {end}: {told}");
    }
    std::fs::remove_file(&first).expect("it is there");
    refused(&["import", &last], 2, &["there is no `", "ring.0.et`"]);
    refused(&["check", &at(&folder, "no.0.et")], 2, &["no.0.et"]);
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

/// What a runtime could not load is refused by the limit's name and not written, unless the user insists.
#[test]
fn exports_beyond_a_runtimes_limits_are_refused() {
    let folder = scratch("beyond");
    let out = at(&folder, "ring40.xml");
    let export = ["export", "allreduce.ring", "--ranks", "40", "--to", "msccl-xml", "-o", &out];
    refused(&export, 1, &["E0913", "79 steps in a thread block", "takes 64", "--ignore-limits"]);
    assert!(!Path::new(&out).exists());
    let (_, told) = good(&[&export[..], &["--ignore-limits"]].concat());
    assert!(told.contains("79 steps in a thread block"), "{told}");
    good(&["check", &out]);
    let json = at(&folder, "alltoall.json");
    let export = ["export", "allreduce.ring", "--ranks", "40", "--to", "mscclpp-json", "-o", &json];
    refused(&export, 1, &["E0913", "operations in a thread block, where MSCCL++'s executor takes 64"]);
    let bad = ["export", "allreduce.ring", "--ranks", "4", "--to", "msccl-xml", "-o", &out];
    refused(&[&bad[..], &["--min-bytes", "2", "--max-bytes", "1"]].concat(), 2, &["`--max-bytes` 1 is less"]);
    refused(
        &["export", "allreduce.ring", "--ranks", "4", "--to", "goal", "-o", &out, "--ignore-limits"],
        2,
        &["have no limits"],
    );
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

/// B095: a file of eight ranks on two machines of four: it is imported, and what goes between them is said; on fewer devices it
/// is refused.
#[test]
fn b095_a_file_for_one_machine_is_imported_for_two_with_a_warning() {
    let folder = scratch("shape");
    let xml = unpacked(&folder, "msccl-xml/rccl/allreduce-allpairs-8n-ll-32tb.xml.gz");
    let plan = at(&folder, "out.plan");
    let two = tests().join("place/two_by_four.toml").to_string_lossy().into_owned();
    let (_, told) = good(&["import", &xml, "-o", &plan, "--topology", &two]);
    assert!(told.contains("warning: ") && told.contains("connections go between these"), "{told}");
    let (_, told) = good(&["sim", &xml, "--topology", &two]);
    assert!(told.contains("warning: "), "{told}");
    let (_, told) = good(&["import", &xml, "-o", &plan, "--topology", "nvswitch:8"]);
    assert!(!told.contains("warning: "), "{told}");
    refused(&["import", &xml, "-o", &plan, "--topology", "nvswitch:4"], 2, &["8 ranks", "4 devices"]);
    std::fs::remove_dir_all(folder).expect("it can be removed");
}

#[test]
fn bad_files_have_a_place_and_an_exit_code() {
    let folder = scratch("bad");
    let bad = at(&folder, "bad.xml");
    std::fs::write(&bad, text_of(RING).replacen(" chan=\"0\"", "", 1)).expect("it can be written");
    for arguments in
        [&["check", &bad][..], &["import", &bad], &["run", &bad], &["compile", &bad, "--emit", "plan"]]
    {
        let (code, out, err) = collc(arguments);
        assert!(code == 1 || code == 2, "{arguments:?}: {code}");
        assert!(out.is_empty(), "{arguments:?}: {out}");
        assert!(
            err.contains("`tb` has no attribute `chan`") && err.contains("bad.xml:3"),
            "{arguments:?}: {err}"
        );
    }
    let (code, out, _) = collc(&["check", &bad, "--format", "json"]);
    let report = json(&out);
    assert_eq!((code, &report["ok"], &report["diagnostics"][0]["line"]), (1, &false.into(), &3.into()));
    let goal = at(&folder, "two.goal");
    std::fs::write(&goal, "num_ranks 2\nrank 0 { send 8b to 1 }\nrank 1 { recv 9b from 0 }\n")
        .expect("it can be written");
    refused(&["import", &goal], 2, &["two.goal:3", "another size"]);
    let (code, _, err) =
        collc(&["compile", &unpacked(&folder, RING), "--ranks", "5", "--rank", "2", "--emit", "svg"]);
    assert!(code == 2 && err.contains("a picture shows all"), "{err}");
    std::fs::remove_dir_all(folder).expect("it can be removed");
}
