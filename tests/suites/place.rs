//! Plans on topologies, from outside: `collc compile --topology`, `sim --place`, `explain-choice --topology`, and the study in
//! `docs/study.md`, whose figures are made anew and compared. With `UPDATE_EXPECT=1` they are written.

mod program;

use program::{command, good, json, refused, root, run, text};
use std::fs;
use std::path::Path;

/// What a simulation takes, in microseconds.
#[track_caller]
fn time_us(arguments: &[&str]) -> f64 {
    json(&[&["sim"], arguments].concat())["time_us"].as_f64().expect("a time")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn file(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Two machines of four devices, 1 GB/s between them; all else is a thousand times as fast.
const TWO_BY_FOUR: &str = "tests/place/two_by_four.toml";

/// A ring that goes round in threes: on eight ranks, three of four ranks of a machine send out of it.
const STRIDES: &str = "
schedule strides: allreduce {
    require n == 8, \"ranks three apart follow each other\"
    chunks n

    for s in 0..n-1 { step each r { send data[(3*r - s) % n] to (r + 3) % n reduce } }
    for s in 0..n-1 { step each r { send data[(3*r + 1 - s) % n] to (r + 3) % n } }
}
";

#[test]
fn a_placement_lowers_a_scrambled_rings_time_by_the_closed_form() {
    let folder = folder();
    let (ring, plan) = (file(&folder, "strides.coll"), file(&folder, "strides.plan"));
    fs::write(&ring, STRIDES).expect("it can be written");
    let on = ["--topology", TWO_BY_FOUR, "--bytes", "1MiB"];
    let at = |place: &str| time_us(&[&[ring.as_str(), "--place", place], &on[..]].concat());
    // What one message takes on an uplink; 14 of them follow each other on each connection.
    let one_us = f64::from(1 << 20) / 8.0 / 1000.0;
    let near = |found: f64, messages: f64| {
        let due = messages * one_us;
        // Latencies, and the fast links: a thousandth for each of 14 steps.
        assert!(found >= due && found <= due + 14.0 * (0.002 * one_us + 0.02), "{found} is not {due}");
    };
    // Ring 0 3 6 1 4 7 2 5, placed so that all neighbours are apart: four share an uplink, all in step.
    near(at("0,5,3,4,2,7,1,6"), 14.0 * 4.0);
    let best = at("best");
    near(best, 14.0);
    // As listed, three connections share each uplink, which is never idle for long.
    let listed = at("none");
    assert!(listed >= 14.0 * 3.0 * one_us && listed - best >= 14.0 * 2.0 * one_us * 0.98, "{listed} {best}");

    // The plan has that order, and is simulated in it; all its forms are.
    let compile = [&["compile", ring.as_str(), "--ranks", "8"], &on[..]].concat();
    let log = good(&[&compile[..], &["--skip", "pipeline", "-o", &plan]].concat());
    assert!(
        log.contains("place: order ")
            && log.contains("(exact by links, then ")
            && log.contains("exchanges by time: the busiest link needs "),
        "{log}"
    );
    assert_eq!(time_us(&[&[plan.as_str()], &on[..]].concat()), best);
    assert_eq!(time_us(&[&[plan.as_str(), "--place", "none"], &on[..]].concat()), listed);
    let said = good(&[&["sim", plan.as_str()], &on[..]].concat());
    assert!(said.contains("(as the plan says, placed on `two by four`)"), "{said}");
    for (form, name) in [("plan", "strides.txt"), ("json", "strides.json")] {
        let written = good(&[&compile[..], &["--skip", "pipeline", "--emit", form]].concat());
        let name = file(&folder, name);
        fs::write(&name, &written).expect("it can be written");
        assert_eq!(time_us(&[&[name.as_str()], &on[..]].concat()), best, "{form}");
        assert!(good(&["check", &name]).contains("8"), "{form}");
    }
    let words = fs::read_to_string(file(&folder, "strides.txt")).expect("it was written");
    assert!(words.starts_with("plan 4\n") && words.contains("\nplacement \"two by four\" order "), "{words}");
    let picture = good(&[&compile[..], &["--emit", "svg"]].concat());
    assert!(picture.contains("placed on two by four") && picture.contains(">device 7<"), "{picture}");
}

#[test]
fn passes_are_left_out_by_name_and_all_at_once() {
    let two_level = ["compile", "allreduce.two_level", "--topology", TWO_BY_FOUR, "--emit", "plan"];
    let with = |more: &[&str]| good(&[&two_level[..], more].concat());
    let listed = "\nplacement \"two by four\" order 0 1 2 3 4 5 6 7\n";
    let has = |text: &str, words: &[&str]| words.iter().all(|word| text.contains(word));
    // Nodes have four ranks, as the default has it; eight devices make one of eight.
    assert!(has(&with(&["--skip", "place", "--skip", "pipeline"]), &[listed, "param \"local\" 4"]));
    let one_node = ["compile", "allreduce.two_level", "--topology", "nvswitch:8", "--emit", "plan"];
    assert!(good(&one_node).contains("param \"local\" 8"));
    assert!(good(&[&one_node[..], &["--skip", "shape"]].concat()).contains("param \"local\" 4"));
    assert!(good(&[&one_node[..], &["-D", "local=2"]].concat()).contains("param \"local\" 2"));
    // Without optimisation: as if there were no topology, but for the order that is told.
    let plain = good(&["compile", "allreduce.two_level", "--ranks", "8", "--no-opt", "--emit", "plan"]);
    let ops = |text: &str| text.split_once("\ncontract").map(|(_, ops)| ops.to_string());
    let bare = with(&["--no-opt"]);
    assert!(bare.contains(listed) && ops(&bare).is_some() && ops(&bare) == ops(&plain));
    let all_but = ["drop_dead", "merge", "slice", "fuse", "prune", "shape", "place", "pipeline"];
    let skips: Vec<&str> = all_but.iter().flat_map(|name| ["--skip", name]).collect();
    assert_eq!(with(&skips), bare);

    refused(
        &[&two_level[..], &["--skip", "places"]].concat(),
        2,
        "there are drop_dead, merge, slice, fuse, prune, shape, place, pipeline",
    );
    refused(
        &[&two_level[..], &["--skip", "place", "--place", "best"]].concat(),
        2,
        "the pass `place` is left out",
    );
    refused(&[&two_level[..], &["--skip", "place", "--no-opt"]].concat(), 2, "cannot be used with");
    refused(&["compile", "allreduce.ring", "--ranks", "4", "--skip", "place"], 2, "no pass `place`");
    refused(&["compile", "allreduce.ring", "--ranks", "4", "--place", "best"], 2, "--topology");
    let tree = ["compile", "allreduce.ring", "--topology", "ring:4", "--emit"];
    refused(&[&tree[..], &["ast"]].concat(), 2, "`--topology` changes nothing of the syntax tree");
    refused(&[&tree[..], &["dot", "--place", "best"]].concat(), 2, "`--place` changes nothing of a program");
    refused(
        &["compile", "allreduce.ring", "--ranks", "9", "--topology", TWO_BY_FOUR],
        2,
        "8 devices to 9 ranks",
    );
    refused(
        &["compile", "allreduce.ring", "--topology", TWO_BY_FOUR, "--place", "0,0,1"],
        2,
        "3 devices to 8 ranks",
    );
    refused(&["sim", "allreduce.ring", "--topology", TWO_BY_FOUR, "--place", "shuffled:x"], 2, "no seed");
    refused(&["sim", "allreduce.ring", "--topology", TWO_BY_FOUR, "--place", "better"], 2, "`best`, `none`");
}

#[test]
fn uneven_nodes_get_groups_that_no_node_cuts() {
    let folder = folder();
    let uneven = file(&folder, "uneven.toml");
    let machine = |name: &str, devices: u32| {
        format!(
            "[[machine]]\nname = \"{name}\"\n[[machine.device]]\nname = \"gpu\"\ncount = {devices}\n[[machine.switch]]\nname = \"bus\"\n\
             [[machine.link]]\nbetween = [\"gpu*\", \"bus\"]\nbandwidth = \"100GB/s\"\n[[link]]\nbetween = [\"{name}.bus\", \"leaf\"]\n\
             bandwidth = \"1GB/s\"\n"
        )
    };
    let toml = format!("{}{}[[switch]]\nname = \"leaf\"\n", machine("large", 4), machine("small", 2));
    fs::write(&uneven, toml).expect("it can be written");
    let log =
        good(&["compile", "allreduce.two_level", "--topology", &uneven, "-o", &file(&folder, "a.plan")]);
    assert!(log.contains("shape: local = 4, 2, the ranks in each node in turn"), "{log}");
    // A schedule that takes a smaller last node keeps the size of the others.
    let leaders = ["compile", "examples/leaders.coll", "--topology", &uneven];
    let taken = good(&[&leaders[..], &["-o", &file(&folder, "b.plan")]].concat());
    assert!(taken.contains("shape: local = 4, the ranks in each node but the last, which has 2"), "{taken}");
    // Between nodes goes what two leaders tell each other; with groups of two, three would.
    let at = |local: &str| time_us(&["examples/leaders.coll", "--topology", &uneven, "-D", local]);
    let shaped = time_us(&["examples/leaders.coll", "--topology", &uneven, "--place", "best"]);
    assert!(shaped <= at("local=4") && shaped < at("local=2"), "{shaped}");
    assert!(log.contains("allreduce.two_level for 6 ranks: proved, compiled, proved again"), "{log}");
    // One number that both nodes cannot have is the largest that divides them.
    let halves = file(&folder, "halves.coll");
    fs::write(&halves, HALVES).expect("it can be written");
    let log = good(&["compile", &halves, "--topology", &uneven, "-o", &file(&folder, "c.plan")]);
    assert!(log.contains("shape: local = 2; nodes have 2 or 4 ranks"), "{log}");
}

/// Three machines of 8, 8 and 4 devices: the library goes by nodes there, is proved, and beats what knows none.
#[test]
fn nodes_of_unlike_sizes_have_a_hierarchy_that_beats_flat_ones() {
    let on = ["--topology", "tests/place/uneven.toml"];
    let at = |name: &str, bytes: &str, more: &[&str]| {
        time_us(&[&[name, "--bytes", bytes], more, &on[..]].concat())
    };
    for (name, flat, bytes) in [
        ("allreduce.two_level", &["ring", "rabenseifner", "one_shot", "double_tree"][..], "16MiB"),
        ("alltoall.two_step", &["pairwise", "linear"], "20KiB"),
    ] {
        let us = at(name, bytes, &["--place", "best"]);
        for other in flat {
            let other = format!("{}.{other}", name.split('.').next().expect("an operation"));
            let flat = at(&other, bytes, &["--place", "best"]);
            assert!(us < flat, "{name} takes {us}, {other} {flat}");
        }
        let checked = good(&["check", name, "--ranks", "20", "-D", "local=8,8,4"]);
        assert!(checked.contains("keeps its contract for n = 20"), "{checked}");
    }
    // By nodes as they are is better than by the largest number that divides them.
    let two_level = |local: &str| at("allreduce.two_level", "16MiB", &["-D", local]);
    assert!(two_level("local=8,8,4") < 0.95 * two_level("local=4"));
    let taken = json(&[&["explain-choice", "allreduce", "16MiB", "--ranks", "20"], &on[..]].concat());
    assert_eq!(taken["taken"], "allreduce.two_level(local=8,8,4)");
    refused(
        &["check", "allreduce.two_level", "--ranks", "8", "-D", "local=4,x"],
        2,
        "`x` is no 64-bit whole number",
    );
    refused(&["check", "broadcast.chain", "--ranks", "8", "-D", "c=4,8"], 2, "parameter `c` is set twice");
    refused(&["check", "allreduce.two_level", "--ranks", "8", "-D", "local=0"], 1, "ranks in each node");
}

#[test]
fn comparisons_take_parameters() {
    let on = ["--topology", "full:8,bw=1GB/s,lat=1us", "--sizes", "1MiB"];
    let pair = ["compare", "broadcast.chain", "broadcast.binomial"];
    let at = |more: &[&str]| {
        let document = json(&[&pair[..], &on[..], more].concat());
        let time = |row: usize| document["schedules"][row]["times"][0]["time_us"].as_f64().expect("a time");
        (time(0), time(1))
    };
    let (plain, set) = (at(&[]), at(&["-D", "c=1"]));
    assert!(set.0 > 1.5 * plain.0 && set.1 == plain.1, "{plain:?} {set:?}");
    refused(&[&pair[..], &on[..], &["-D", "k=2"]].concat(), 2, "none of these schedules has a parameter `k`");
}

/// A topology whose nodes are not alike, one number to say so.
const HALVES: &str = "
use allreduce.two_level

schedule halves(local = 4): allreduce {
    require n % local == 0, \"nodes are alike\"
    allreduce.two_level(data, local = local)
}
";

#[test]
fn what_slices_and_lanes_are_taken_for_is_what_a_simulation_takes() {
    let folder = folder();
    let plan = file(&folder, "chain.plan");
    let on = ["--topology", "full:4,bw=1GB/s,lat=1us", "--bytes", "1MiB"];
    // A chain of whole messages gains by slices.
    let chain = ["compile", "broadcast.chain", "-D", "c=1"];
    let log = good(&[&chain[..], &on[..], &["-o", &plan]].concat());
    let line = log.lines().find(|line| line.contains("pipeline: ")).expect("it says what it did");
    assert!(line.contains("slices = 8, "), "{line}");
    let told =
        log.lines().find_map(|line| line.split("takes ").nth(1)?.strip_suffix(" µs")?.parse::<f64>().ok());
    let found = time_us(&[&[plan.as_str()], &on[..]].concat());
    assert!((found - told.expect("it says what a run takes")).abs() < 0.01, "{log} {found}");
    let plain = file(&folder, "plain.plan");
    good(&[&chain[..], &on[..], &["--skip", "pipeline", "-o", &plain]].concat());
    assert!(time_us(&[&[plain.as_str()], &on[..]].concat()) > found * 1.5);
    // What the user settles stays.
    let set = good(&[&chain[..], &on[..], &["--slices", "2", "--lanes", "1", "--emit", "plan"]].concat());
    assert!(set.contains("\nslices 2\n") && set.contains("\nchannels 1\n"), "{set}");
}

/// B099: what is planned in eight processes is one plan, to the last byte.
#[test]
fn b099_eight_processes_make_one_plan() {
    let folder = folder();
    let plans: Vec<String> = (0..8).map(|at| file(&folder, &format!("{at}.plan"))).collect();
    let start = |plan: &String| {
        let arguments = ["compile", "allreduce.ring", "--ranks", "6", "--topology", "dgx-h100:2", "-o", plan];
        command(&arguments).stdout(std::process::Stdio::null()).spawn().expect("collc starts")
    };
    let children: Vec<_> = plans.iter().map(start).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    let bytes: Vec<Vec<u8>> = plans.iter().map(|plan| fs::read(plan).expect("it was written")).collect();
    assert!(!bytes[0].is_empty() && bytes.iter().all(|one| *one == bytes[0]));
    // A rank's slice, made in a process of its own, is of that plan and no other.
    let origin = |arguments: &[&str]| {
        let words =
            good(&[&["compile", "allreduce.ring", "--ranks", "6", "--emit", "plan"], arguments].concat());
        words.lines().find(|line| line.starts_with("origin ")).expect("it has one").to_string()
    };
    let on = ["--topology", "dgx-h100:2"];
    let whole = origin(&on);
    assert_eq!(whole, origin(&[&on[..], &["--rank", "3"]].concat()));
    assert_ne!(whole, origin(&[&on[..], &["--place", "5,4,3,2,1,0"]].concat()));
    assert_ne!(whole, origin(&[]));
}

/// B095: a plan of eight ranks that was made for one machine, on two of four: it runs there, and what that costs is said.
#[test]
fn b095_a_plan_for_another_shape_is_simulated_with_a_warning() {
    let folder = folder();
    let plan = file(&folder, "one.plan");
    good(&["compile", "allreduce.one_shot", "--topology", "nvswitch:8", "-o", &plan]);
    let output = run(&["sim", &plan, "--topology", TWO_BY_FOUR]);
    let (said, noted) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.contains("order "), "{said}{noted}");
    assert!(noted.contains("placed on `nvswitch:8`, and this is `two by four`"), "{noted}");
    let quiet = run(&["sim", &plan, "--topology", TWO_BY_FOUR, "--place", "best"]);
    assert!(quiet.status.success() && quiet.stderr.is_empty(), "{}", text(&quiet.stderr));
    // On a smaller one it is refused.
    refused(&["sim", &plan, "--topology", "nvswitch:4"], 2, "there are devices 0 to 3");
}

/// B101: a plan for four in a job of three, constants of a file that is not there, a topology for fewer: each error names the
/// file, and where it was named.
#[test]
fn b101_what_a_setting_points_at_is_named_when_it_does_not_fit() {
    let folder = folder();
    let plan = file(&folder, "four.plan");
    good(&["compile", "allreduce.ring", "--topology", "ring:4", "-o", &plan]);
    refused(&["run", &plan, "--ranks", "3"], 2, &format!("`{plan}` is a plan for 4 ranks, not 3"));
    refused(
        &["sim", &plan, "--ranks", "3", "--topology", "ring:4"],
        2,
        &format!("`{plan}` is a plan for 4 ranks, not 3"),
    );
    refused(
        &["compile", "allreduce.ring", "--ranks", "5", "--topology", "ring:4"],
        2,
        "`ring:4` gives 4 devices to 5 ranks",
    );
    let missing = file(&folder, "tune.json");
    let output =
        command(&["explain-choice", "allreduce", "--ranks", "4"]).env("COLLC_TUNE", &missing).output();
    let output = output.expect("collc starts");
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("COLLC_TUNE") && said.contains(&missing),
        "{said}"
    );
    // What is set, and by whom, can be asked for; a secret is not shown.
    let output = command(&["env", "--format", "json"])
        .env("COLLC_TUNE", &missing)
        .env("COLLC_TOKEN", "of ours")
        .output();
    let said = text(&output.expect("collc starts").stdout);
    let settings: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    let of = |name: &str| {
        settings["settings"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|one| one["name"] == name)
            .expect(name)
            .clone()
    };
    assert_eq!(
        (&of("COLLC_TUNE")["value"], &of("COLLC_TUNE")["source"]),
        (&missing.clone().into(), &"environment".into())
    );
    assert_eq!(
        (&of("COLLC_TOPOLOGY")["value"], &of("COLLC_TOPOLOGY")["source"]),
        (&serde_json::Value::Null, &"default".into())
    );
    assert!(!said.contains("of ours"), "{said}");
    let output = command(&["env"]).env("COLLC_TUNE", &missing).output().expect("collc starts");
    assert!(text(&output.stdout).contains(&format!("`{missing}`, from the environment")));
}

/// B092, B108: what the user insists on and cannot be had is an error that says why, on a topology too.
#[test]
fn b092_a_schedule_that_cannot_serve_is_not_passed_over_in_silence() {
    let arguments = ["explain-choice", "allreduce", "--ranks", "6", "--topology", "full:6"];
    for (forced, why) in
        [("allreduce.two_level(local=0)", "ranks in each node"), ("allreduce.butterfly", "by their bits")]
    {
        let output = command(&arguments).env("COLLC_SCHEDULE", forced).output().expect("collc starts");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(forced) && said.contains(why), "{said}");
    }
}

/// B091: every candidate is listed, with what it takes or why it is passed over.
#[test]
fn b091_choices_on_a_topology_are_what_simulations_take() {
    let on = ["--topology", TWO_BY_FOUR];
    let document = json(&[&["explain-choice", "allreduce", "1MiB", "--ranks", "8"], &on[..]].concat());
    let rows = document["candidates"].as_array().expect("candidates");
    assert_eq!(document["taken"], rows[0]["schedule"]);
    assert!(rows[0]["why"].as_str().is_some_and(|why| why.starts_with("taken; ")), "{}", rows[0]);
    let names = |row: &serde_json::Value| row["schedule"].as_str().map(str::to_string).expect("a name");
    for name in ["ring", "two_level", "rabenseifner", "recursive_doubling", "one_shot"] {
        assert!(
            rows.iter().any(|row| names(row).starts_with(&format!("allreduce.{name}"))),
            "{name} is not listed"
        );
    }
    let times: Vec<f64> = rows.iter().filter_map(|row| row["predicted_us"].as_f64()).collect();
    assert!(times.len() > 5 && times.is_sorted(), "{times:?}");
    let ring = rows.iter().find(|row| row["schedule"] == "allreduce.ring").expect("a ring");
    let alone = time_us(&[&["allreduce.ring", "--place", "best", "--bytes", "1MiB"], &on[..]].concat());
    assert!((ring["predicted_us"].as_f64().expect("a time") - alone).abs() < 1e-6);
    // So it is with more ranks than candidates are compiled for by constants.
    let many = ["explain-choice", "broadcast", "64KiB", "--ranks", "72", "--topology", "dgx-h100:9"];
    let many = json(&many);
    assert_eq!(many["taken"], many["candidates"][0]["schedule"]);
    assert!(many["candidates"].as_array().is_some_and(|rows| rows.len() >= 6), "{many}");
    // Another network, another choice: 16 bytes go in few steps.
    let small = json(
        &[&["explain-choice", "allreduce", "16", "--ranks", "8"], &["--topology", "full:8,lat=50us"][..]]
            .concat(),
    );
    assert_ne!(small["taken"], document["taken"]);
    refused(
        &["explain-choice", "allreduce", "--ranks", "257", "--topology", "full:257"],
        2,
        "at most 256 ranks",
    );
    refused(
        &["explain-choice", "allreduce", "--ranks", "9", "--topology", "full:8"],
        2,
        "8 devices to 9 ranks",
    );
    refused(
        &["explain-choice", "allreduce", "--ranks", "8", "--topology", "full:8", "--cores", "2"],
        2,
        "cannot be used",
    );
}

/// B046: four chunks in a pipeline, one or two messages under way, ways of unlike lengths: every run ends.
#[test]
fn b046_few_messages_under_way_end_a_pipeline_on_a_torus() {
    let folder = folder();
    let plan = file(&folder, "chain.plan");
    let on = ["--topology", "torus:2x4,lat=20us"];
    good(&[&["compile", "broadcast.chain", "-D", "c=4", "-o", &plan], &on[..]].concat());
    for slots in ["0", "1", "2"] {
        for order in ["none", "best", "shuffled:1", "shuffled:2"] {
            assert!(time_us(&[&[plan.as_str(), "--slots", slots, "--place", order], &on[..]].concat()) > 0.0);
        }
    }
}

/// The figures of the study are those that its commands print, and its plot is the one that is drawn.
#[test]
fn the_study_is_reproduced_by_its_commands() {
    let folder = folder();
    let path = root().join("docs/study.md");
    let page = fs::read_to_string(&path).expect("the study is there");
    let drawn = file(&folder, "plot.svg");
    let mut made = String::new();
    let mut rest = page.as_str();
    let mut commands = 0;
    while let Some(at) = rest.find("$ collc compare ") {
        let (before, from) = rest.split_at(at);
        let command = from.lines().next().expect("it has a line");
        let arguments: Vec<&str> = command.split_whitespace().skip(3).collect();
        let elsewhere = |word: &&str| if word.ends_with(".svg") { drawn.clone() } else { word.to_string() };
        let arguments: Vec<String> = arguments.iter().map(elsewhere).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let printed = good(&[&["compare"], &arguments[..]].concat());
        let (between, table) = from.split_once("```text\n").expect("a table follows");
        made += &format!("{before}{between}```text\n{printed}");
        rest = &table[table.find("```").expect("the table ends")..];
        commands += 1;
    }
    made += rest;
    assert_eq!(commands, 2, "each is one line that begins with `$ collc compare`");
    let plot = root().join("docs/study/allreduce.svg");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, made).expect("it can be written");
        fs::copy(&drawn, &plot).expect("it can be written");
        return;
    }
    assert_eq!(made, page, "UPDATE_EXPECT=1 writes it anew; read what is said to follow from it, too");
    let read = |path: &Path| fs::read_to_string(path).expect("it is there");
    assert!(read(Path::new(&drawn)) == read(&plot), "docs/study/allreduce.svg is another plot");
}
