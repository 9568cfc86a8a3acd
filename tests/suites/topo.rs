//! `collc topo` from outside: what it says of topologies right and wrong, what it writes, and what it measures.
//!
//! `tests/topo/E0801_….toml` and the like are fixtures, one at least for each code: what `collc topo check` prints of each,
//! standard output first, is in the file of that name with `.stderr` behind it. With `UPDATE_EXPECT=1` these are written anew.

mod program;

use program::{command, good, root, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// It ends with exit code 2 and says that word, without a panic.
#[track_caller]
fn refused(arguments: &[&str], word: &str) {
    program::refused(arguments, 2, word);
}

/// A file that is removed with its folder.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("collc-topo-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        Scratch(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn fixtures_are_told_word_for_word() {
    let entries = fs::read_dir(root().join("tests/topo")).expect("it is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| {
        let name = path.file_name().expect("a name").to_string_lossy();
        name.starts_with(['E', 'W']) && !name.ends_with(".stderr")
    });
    paths.sort();
    assert!(paths.len() >= 8, "only {} fixtures", paths.len());
    for path in paths {
        let shown = path.strip_prefix(root()).expect("it lies in it").to_string_lossy().into_owned();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let output = run(&["topo", "check", &shown]);
        let code = output.status.code().expect("it ends by itself");
        let found = format!(
            "{}{}exit code {code}\n",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        let wanted = &name[..5];
        assert!(found.contains(&format!("[{wanted}]")), "{name} does not provoke {wanted}:\n{found}");
        assert_eq!(code, if wanted.starts_with('E') { 2 } else { 0 }, "{name}");
        let expected = path.with_file_name(name.clone() + ".stderr");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(&expected, &found).expect("it can be written");
        }
        assert_eq!(found, fs::read_to_string(&expected).unwrap_or_default(), "{name}");
    }
}

#[test]
fn a_topology_is_shown() {
    let text = good(&["topo", "show", "dgx-h100:4"]);
    assert!(
        text.starts_with(
            "dgx-h100:4: a generator\nmachines 4, devices 32, NICs 32, switches 13, links 104\n"
        ),
        "{text}"
    );
    assert!(text.contains("machines by size: 4 of 8 devices"), "{text}");
    let ways: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.contains(" to "))
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(
        ways[0],
        "within a machine 2 450GB/s 0.6us 224 node0.gpu0 to node0.gpu1".split(' ').collect::<Vec<_>>()
    );
    assert_eq!(
        ways[1],
        "between machines 4 50GB/s 2.7us 96 node0.gpu0 to node1.gpu0".split(' ').collect::<Vec<_>>()
    );
    assert!(text.contains("bisection 800GB/s"), "{text}");
    assert_eq!(text, good(&["topo", "show", "dgx-h100:4"]), "the same each time");
    assert!(
        good(&["topo", "show", "torus:100x100"])
            .contains("of the first 128 devices and 128 at equal distances")
    );
    assert!(good(&["topo", "show", "ring:1"]).contains("no two halves"));
    assert!(good(&["topo", "show", "tests/topo/smi/dgx-h100.txt"]).contains("nvidia-smi"));
}

#[test]
fn a_check_is_a_document_for_tools() {
    let document = |arguments: &[&str], code: i32| -> serde_json::Value {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let right = document(&["topo", "check", "dgx-h100:2", "--format", "json"], 0);
    let expected = serde_json::json!({
        "ok": true, "devices": 16, "nics": 16, "switches": 11, "nodes": 2, "links": 56, "diagnostics": [],
    });
    assert_eq!(right, expected);
    let wrong = document(&["topo", "check", "tests/topo/E0802_key.toml", "--format", "json"], 2);
    assert_eq!(wrong["ok"], false);
    let mut keys: Vec<&String> = wrong.as_object().expect("an object").keys().collect();
    keys.sort();
    assert_eq!(keys, ["devices", "diagnostics", "links", "nics", "nodes", "ok", "switches"]);
    let told = &wrong["diagnostics"][0];
    assert_eq!(
        (&told["code"], &told["severity"], &told["line"], &told["column"]),
        (&"E0802".into(), &"error".into(), &8.into(), &1.into())
    );
    assert_eq!(told["help"], "did you mean `bandwidth`?");
    let absent = document(&["topo", "check", "no/such/file.toml", "--format", "json"], 2);
    assert_eq!(absent["ok"], false);
    assert_eq!(
        absent["diagnostics"][0].as_object().map(|told| told.len()),
        told.as_object().map(|told| told.len())
    );
    assert!(absent["diagnostics"][0]["message"].as_str().expect("text").contains("no/such/file.toml"));
    let warned = document(&["topo", "check", "tests/topo/W0850_class.xml", "--format", "json"], 0);
    assert_eq!((&warned["ok"], &warned["diagnostics"][0]["severity"]), (&true.into(), &"warning".into()));
    let text = good(&["topo", "check", "ring:8"]);
    assert_eq!(text, "ring:8 is right: a generator; machines 8, devices 8, NICs 0, switches 0, links 8\n");
}

#[test]
fn anything_is_imported_as_a_file() {
    let scratch = Scratch::new("import");
    for (from, says) in [
        ("fat-tree:k=4", "everything was used"),
        ("tests/topo/smi/dgx-1v.txt", "one warning"),
        ("tests/topo/W0850_class.xml", "tell what was not used"),
    ] {
        let out = scratch.path("out.toml");
        let text = good(&["topo", "import", from, "-o", &out]);
        assert!(text.contains("written to") && text.contains(says), "{text}");
        let counts = |name: &str| {
            let text = good(&["topo", "check", name, "--format", "json"]);
            let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            document["diagnostics"] = serde_json::Value::Null;
            document
        };
        assert_eq!(counts(&out), counts(from), "{from}");
        let head = fs::read_to_string(&out).expect("it was written");
        assert!(head.starts_with(&format!("# Imported from {from}")), "{head}");
    }
    let out = scratch.path("cluster.toml");
    let text = good(&["topo", "import", "tests/topo/smi/dgx-h100.txt", "--machines", "3", "-o", &out]);
    assert!(text.contains("24 devices, 24 NICs"), "{text}");
    assert!(good(&["topo", "show", &out]).contains("between machines"));
    refused(
        &["topo", "import", "tests/topo/smi/two-gpus.txt", "--machines", "2"],
        "without NICs there is nothing",
    );
    refused(&["topo", "import", "ring:8", "--machines", "2"], "does not apply to a generator");
    let before = fs::read_to_string(scratch.path("out.toml")).expect("it was written");
    refused(
        &["topo", "import", "tests/topo/E0806_graph.xml", "-o", &scratch.path("out.toml")],
        "an NCCL graph file",
    );
    assert_eq!(
        fs::read_to_string(scratch.path("out.toml")).expect("there"),
        before,
        "nothing is written of what is refused"
    );
    refused(&["topo", "import", "ring:4", "-o", "no/such/folder/out.toml"], "cannot write");
    assert!(good(&["topo", "import", "ring:4"]).contains("[[device]]"));
}

#[test]
fn a_topology_is_drawn() {
    let scratch = Scratch::new("draw");
    for (name, start) in [("out.svg", "<svg "), ("out.dot", "graph ")] {
        let path = scratch.path(name);
        good(&["topo", "draw", "dgx-h100:2", "-o", &path]);
        let text = fs::read_to_string(&path).expect("it was written");
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("gpu7") && text.contains("spine"));
    }
    refused(&["topo", "draw", "ring:4", "-o", &scratch.path("out.png")], "name it `.svg`");
    refused(&["topo", "draw", "torus:100x100", "-o", &scratch.path("large.svg")], "10000 nodes");
    refused(&["topo", "draw", "ring:0", "-o", &scratch.path("none.svg")], "leaves nothing");
    assert!(!Path::new(&scratch.path("none.svg")).exists());
}

#[test]
fn bad_words_are_refused() {
    refused(&["topo", "show", "rign:8"], "did you mean `ring:…`?");
    refused(&["topo", "show", "ring:8,bw=0GB/s"], "more than 0");
    refused(&["topo", "show", "no-such-file.toml"], "no-such-file.toml");
    refused(&["topo", "show", "tests"], "is a directory");
    refused(&["topo", "show", "tests/topo/real.tar.gz"], "real.tar.gz");
    refused(&["topo", "show", "README.md"], "E0801");
    refused(&["topo", "probe"], "which ranks are probed?");
    refused(&["topo", "probe", "--ranks", "1"], "2..=64");
    refused(&["topo", "probe", "--ranks", "2", "--transport", "threads"], "not probed");
    refused(&["topo", "probe", "--ranks", "2", "--bytes", "0"], "not measured");
    refused(&["topo", "probe", "--rank", "0"], "no world size");
    refused(
        &["topo", "probe", "--rank", "2", "--world-size", "2", "--rendezvous", "127.0.0.1:1"],
        "none of the 2 ranks",
    );
}

#[test]
fn ranks_of_a_job_are_measured() {
    let scratch = Scratch::new("probe");
    for transport in ["tcp", "shm"] {
        let path = scratch.path("here.toml");
        let text =
            good(&["topo", "probe", "--ranks", "3", "--bytes", "64K", "--transport", transport, "-o", &path]);
        assert!(text.contains(": 3 ranks") && text.contains("1 - 2"), "{text}");
        let counts = good(&["topo", "check", &path, "--format", "json"]);
        let counts: serde_json::Value = serde_json::from_str(&counts).expect("JSON");
        assert_eq!((&counts["devices"], &counts["nodes"]), (&3.into(), &1.into()));
        // One for each pair, or two where it measured unlike directions.
        assert!((3..=6).contains(&counts["links"].as_u64().expect("a number")), "{counts}");
        // One pair at a time is all that three ranks can have.
        assert!(!fs::read_to_string(&path).expect("there").contains("at once"));
    }
}

#[test]
fn pairs_that_are_measured_at_once_tell_what_they_share() {
    let scratch = Scratch::new("together");
    let path = scratch.path("two.toml");
    // Two machines of two ranks, pretended: one set of two pairs, between them.
    let two = ["topo", "probe", "--ranks", "4", "--ranks-per-host", "2", "--bytes", "64K", "-o", &path];
    let text = good(&two);
    assert!(text.contains("-0: 2 ranks") && text.contains("-1: 2 ranks"), "{text}");
    let lines = |text: &str, word: &str| text.lines().filter(|line| line.contains(word)).count();
    assert_eq!(lines(&text, "at once, 0 - 2, 1 - 3 get "), 1, "{text}");
    assert_eq!(lines(&text, "at once"), 1, "{text}");
    let file = fs::read_to_string(&path).expect("there");
    assert_eq!(lines(&file, "at once"), 1, "{file}");
    let counts = good(&["topo", "check", &path, "--format", "json"]);
    let counts: serde_json::Value = serde_json::from_str(&counts).expect("JSON");
    // What they share, if this machine has them share something, are the NICs of both and a network.
    let is_shared = text.contains("they share a way between the machines");
    assert_eq!((&counts["devices"], &counts["nodes"]), (&4.into(), &2.into()));
    let nics = if is_shared { 2 } else { 0 };
    assert_eq!(
        (&counts["nics"], &counts["switches"]),
        (&nics.into(), &u32::from(is_shared).into()),
        "{file}"
    );
}

#[test]
fn ranks_that_are_started_one_by_one_are_measured() {
    let scratch = Scratch::new("join");
    let port =
        std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
    let path = scratch.path("joined.toml");
    let rendezvous = format!("127.0.0.1:{port}");
    let start = |rank: &str| {
        let arguments = [
            "topo",
            "probe",
            "--rank",
            rank,
            "--world-size",
            "2",
            "--rendezvous",
            &rendezvous,
            "--bytes",
            "4K",
            "-o",
            &path,
        ];
        command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("collc starts")
    };
    let ranks = [start("0"), start("1")].map(|rank| rank.wait_with_output().expect("it ends"));
    for rank in &ranks {
        assert!(rank.status.success(), "{}", String::from_utf8_lossy(&rank.stderr));
    }
    assert!(String::from_utf8_lossy(&ranks[0].stdout).contains("written to"));
    assert!(ranks[1].stdout.is_empty(), "rank 0 alone tells");
    assert!(Path::new(&path).exists());
}
