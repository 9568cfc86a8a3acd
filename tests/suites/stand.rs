//! Runs on a topology, from outside: what is chosen, placed and fitted is what runs, on every transport, and is told.

mod program;

use program::{command, good, json, refused, run, text};
use std::fs;

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

/// What is chosen for a topology, placed on it and fitted to it is what runs, and is told.
#[test]
fn runs_are_chosen_for_a_topology_and_stand_on_it() {
    let folder = folder();
    let quick = ["--bytes", "64KiB", "--iters", "2", "--transport", "auto"];
    let on = ["--topology", TWO_BY_FOUR];
    let said = |arguments: &[&str]| {
        let output = run(&[&["run"], arguments, &quick[..]].concat());
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success() && said.contains("every element on every rank is right"), "{said}");
        said
    };
    // An operation takes what `explain-choice` has first, on a rank for each device.
    let taken = json(&[&["explain-choice", "allreduce", "64KiB", "--ranks", "8"], &on[..]].concat());
    let taken = taken["taken"].as_str().expect("a name").to_string();
    let chosen = said(&[&["allreduce"], &on[..]].concat());
    assert!(chosen.contains(&format!("taking the library's {taken}; ")), "{chosen}");
    assert!(chosen.contains("on 8 ranks over auto") && chosen.contains("in 2 machines"), "{chosen}");
    // A schedule is shaped and placed, unless passes are left out.
    let ring = file(&folder, "strides.coll");
    fs::write(&ring, STRIDES).expect("it can be written");
    let placed = said(&[&[ring.as_str()], &on[..]].concat());
    let order = |said: &str| {
        let rest = said.split("stands on device r of the order ").nth(1).expect("it says where").to_string();
        rest.split(',').next().map(str::to_string).expect("an order")
    };
    assert_ne!(order(&placed), "0 1 2 3 4 5 6 7");
    let listed = said(&[&[ring.as_str(), "--skip", "place"], &on[..]].concat());
    assert_eq!(order(&listed), "0 1 2 3 4 5 6 7");
    // A plan goes by its own order, and by another if it is told.
    let plan = file(&folder, "strides.plan");
    good(&[&["compile", ring.as_str(), "-o", &plan], &on[..]].concat());
    assert_eq!(order(&said(&[&[plan.as_str()], &on[..]].concat())), order(&placed));
    let other = said(&[&[plan.as_str(), "--place", "7,6,5,4,3,2,1,0"], &on[..]].concat());
    assert_eq!(order(&other), "7 6 5 4 3 2 1 0");
    // So does a schedule of another tool.
    let foreign = file(&folder, "ring.xml");
    good(&["export", "allreduce.ring", "--ranks", "8", "--to", "msccl-xml", "-o", &foreign]);
    let other = said(&[&[foreign.as_str(), "--place", "0,4,1,5,2,6,3,7"], &on[..]].concat());
    assert_eq!(order(&other), "0 4 1 5 2 6 3 7");
    // The environment says it as well.
    let output = command(&[&["run", "allreduce.ring", "--ranks", "4"], &quick[..]].concat())
        .env("COLLC_TOPOLOGY", TWO_BY_FOUR)
        .env("COLLC_DEVICES", "0,4,1,5")
        .output()
        .expect("collc starts");
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && order(&said) == "0 4 1 5", "{said}");

    let with = |more: &[&'static str]| [&["run", "allreduce", "--ranks", "4"], more].concat();
    refused(&with(&["--place", "best"]), 2, "--topology");
    refused(&with(&["--topology", "ring:2"]), 2, "2 devices to 4 ranks");
    refused(&with(&["--topology", "rang:4"]), 2, "did you mean `ring:…`");
    refused(
        &with(&["--topology", "ring:4", "--ranks-per-host", "2", "--transport", "auto"]),
        2,
        "leave one of them out",
    );
    refused(&with(&["--topology", "ring:4", "--place", "0,0,1,2"]), 2, "two ranks are placed on");
}

#[test]
fn a_placed_plan_runs_and_says_who_places_its_ranks() {
    let folder = folder();
    let plan = file(&folder, "ring.plan");
    good(&["compile", "allreduce.ring", "--topology", "ring:2", "--place", "1,0", "-o", &plan]);
    let output =
        run(&["run", &plan, "--ranks", "2", "--bytes", "1000", "--iters", "1", "--transport", "threads"]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("placed on `ring:2`") && said.contains("order 1 0"), "{said}");
    assert!(said.contains("every element on every rank is right"), "{said}");
}

/// Ranks of one machine share memory, and those of another are reached over TCP, wherever a transport has both.
#[test]
fn ranks_of_unlike_machines_are_apart() {
    // Ranks 0, 2, 4 and 6 are in one machine, the others in the other.
    let call = ["run", "allreduce.ring", "--ranks", "8", "--bytes", "64KiB", "--iters", "2"];
    let on = ["--topology", TWO_BY_FOUR, "--place", "0,4,1,5,2,6,3,7", "--transport"];
    let said = |transport: &str| {
        let output = command(&[&call[..], &on[..], &[transport]].concat())
            .env("COLLC_LOG", "coll=info")
            .output()
            .expect("collc starts");
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        (output.status.code(), said)
    };
    for transport in ["auto", "threads"] {
        let (code, said) = said(transport);
        assert!(code == Some(0) && said.contains("every element on every rank is right"), "{said}");
        assert!(said.contains("in 2 machines: ranks of one share memory, and others go over TCP"), "{said}");
        let ways = said.lines().find(|line| line.contains("rank 2 of 8: ")).expect("it says which way");
        let (near, far) = ways.split_once(", TCP with ").unwrap_or_else(|| panic!("{ways}"));
        assert!(near.contains("0, 4, 6") && far.contains("1, 3, 5, 7"), "{transport}: {ways}");
    }
    let (code, tcp) = said("tcp");
    assert!(code == Some(0) && tcp.contains("in 2 machines; all go over TCP"), "{tcp}");
    // What is to share memory, and cannot, is refused.
    let (code, shm) = said("shm");
    assert!(
        code == Some(2) && shm.contains("rank 1 stands on `node1.cpu0`, in another machine than rank 0"),
        "{shm}"
    );
}

/// Where the environment says where ranks stand, a plan goes by that and not by its own order, as with `--place`.
#[test]
fn the_environment_places_plans_too() {
    let folder = folder();
    let plan = file(&folder, "ring.plan");
    let on = ["--topology", TWO_BY_FOUR, "--ranks", "4"];
    good(&[&["compile", "allreduce.ring", "--place", "0,1,2,3", "-o", &plan], &on[..]].concat());
    let output = command(&["run", &plan, "--bytes", "4KiB", "--iters", "1", "--transport", "threads"])
        .env("COLLC_TOPOLOGY", TWO_BY_FOUR)
        .env("COLLC_DEVICES", "0,4,1,5")
        .output()
        .expect("collc starts");
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && said.contains("of the order 0 4 1 5, in 2 machines"), "{said}");
}
