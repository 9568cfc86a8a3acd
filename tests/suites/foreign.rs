//! Schedules of other tools. The files of `tests/foreign` are imported, proved and run in seeded worlds, and so are mutants of
//! them, unless they are refused. Library schedules are written in other forms and read back. `tests/foreign/broken` holds
//! files that are wrong in one thing: each gives the code in its name.

mod support;

use coll::foreign::{Examined, Form, examine};
use coll::library;
use coll_base::{DType, RedOp};
use coll_interop::{codes, goal, msccl, mscclpp};
use coll_plan::{Action, Plan};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use support::{Case, library_plan, run_world, seed};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/foreign")
}

/// Files below a folder that end so, sorted, named from there.
fn files(below: &str, ending: &str) -> Vec<String> {
    let root = folder();
    let (mut found, mut open) = (Vec::new(), vec![root.join(below)]);
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).expect("the folder can be listed") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                open.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path.strip_prefix(&root).expect("it is below").to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

fn text_of(name: &str) -> String {
    let file = std::fs::File::open(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    text
}

fn examined(name: &str, text: &str) -> Examined {
    let form = Form::of(text.as_bytes()).expect("it is of a known form");
    examine(form, name, text.to_string(), None)
}

/// All files that are imported: MSCCL's, and MSCCL++'s without switch channels.
fn imported() -> impl Iterator<Item = (String, String)> {
    let names = files("msccl-xml", ".xml.gz").into_iter().chain(files("mscclpp-json", ".json.gz"));
    names
        .map(|name| (text_of(&name), name))
        .filter(|(text, _)| !text.contains("\"switch\""))
        .map(|(t, n)| (n, t))
}

/// More operations than this are run once.
const LARGE_OPS: usize = 3000;

/// Runs a plan in some orders of events, in place and out of place.
fn runs_right(plan: &Plan, runs: u64, seed: u64) -> Result<(), String> {
    let ops: usize = plan.ranks.iter().map(|part| part.ops.len()).sum();
    // Large plans take long, and are much of one kind.
    let runs = if ops > LARGE_OPS { 1 } else { runs };
    for run in 0..runs {
        let blocks = plan.contract.buffers.first().map_or(1, |decl| decl.blocks);
        let pieces = u64::from(plan.pieces()) * u64::from(blocks);
        // Counts that do not divide, unless they have to.
        let rest = if plan.contract.classes.count == 1 && blocks > 1 { 0 } else { 3 };
        let case = Case {
            elements: pieces * (1 + run % 2) + rest,
            in_place: run % 2 == 0,
            seed: seed + run,
            link_bytes: [4096, 300, 1024][run as usize % 3],
            check_inputs: run % 2 == 1,
            ..Case::new(RedOp::Sum, DType::I32)
        };
        run_world(plan, &case)?;
    }
    Ok(())
}

/// B090, B093: every file runs with the right result, in place and out of place, whatever it says it is for.
#[test]
fn every_imported_file_runs_right() {
    let seed = seed();
    let mut count = 0;
    for (name, text) in imported() {
        let examined = examined(&name, &text);
        let schedule =
            examined.schedule.as_ref().unwrap_or_else(|| panic!("{name}: {:#?}", examined.diagnostics));
        assert!(schedule.verdict.ok, "{name}: {:#?}", examined.diagnostics);
        runs_right(&schedule.plan, 2, seed).unwrap_or_else(|message| panic!("{name}: {message}"));
        count += 1;
    }
    assert_eq!(count, 67);
}

/// B019: a file for calls in place alone serves others through copies that are told; its input stays as it is.
#[test]
fn b019_a_plan_for_calls_in_place_alone() {
    let name = "msccl-xml/msccl-tools-generated/allgather_ring_p8.xml.gz";
    let schedule = examined(name, &text_of(name)).schedule.expect("it is imported");
    assert_eq!((schedule.copies, schedule.limits.out_of_place), (8, false));
    let reasons = schedule.limits.exclude(1024, 4, false);
    assert_eq!(reasons, ["`outofplace` is 0, and the call is out of place"]);
    let case = Case { elements: 83, check_inputs: true, ..Case::new(RedOp::Sum, DType::I32) };
    run_world(&schedule.plan, &case).expect("out of place");
}

/// B091, B092: what excludes a call is told by its name.
#[test]
fn b091_b092_limits_are_told() {
    let name = "msccl-xml/rccl/alltoall-8n-190kb-512kb.xml.gz";
    let schedule = examined(name, &text_of(name)).schedule.expect("it is imported");
    let reasons = schedule.limits.exclude(16, 4, true).join("; ");
    for word in ["`minBytes` 194561", "`inplace` is 0"] {
        assert!(reasons.contains(word), "{reasons}");
    }
    let uneven = schedule.limits.uneven(16, 4).expect("16 elements are no 32 chunks");
    assert!(uneven.contains("`nchunksperloop` 32"), "{uneven}");
    let never = "msccl-xml/msccl-tools-generated/allreduce_ring_p5.xml.gz";
    let told = examined(never, &text_of(never)).diagnostics;
    assert!(told.iter().any(|d| d.code == codes::NEVER_TAKEN), "{told:#?}");
}

#[test]
fn each_broken_file_gives_the_code_in_its_name() {
    for name in files("broken", "").iter().filter(|name| !name.ends_with(".md")) {
        let text = std::fs::read_to_string(folder().join(name)).expect("it is text");
        let stem = Path::new(name).file_stem().expect("a name").to_string_lossy().into_owned();
        let code = stem.split('_').next().expect("a code");
        let told = match name.ends_with(".plan") {
            false => examined(name, &text).diagnostics,
            true => {
                let plan = coll::read_plan_text(&text).unwrap_or_else(|error| panic!("{error:?}")).plan;
                msccl::write(&plan, &Default::default()).err().map(|told| *told).into_iter().collect()
            }
        };
        assert!(told.iter().any(|d| d.code.0 == code), "{name}: {told:#?}");
    }
}

/// Chunks of a grid that each rank sends to each other, as shares of a block: what a conversion may not lose (B116).
fn traffic(plan: &Plan) -> BTreeMap<(u32, u32), u64> {
    let mut traffic = BTreeMap::new();
    for part in &plan.ranks {
        for op in &part.ops {
            if let Action::Send { peer, .. } = op.action {
                let share = |region: &coll_plan::Region| {
                    let all = plan.cuts[region.high as usize].minus(plan.cuts[region.low as usize]);
                    // A common denominator of all library schedules at these counts.
                    (all.expect("cuts ascend").to_f64() * 720_720.0).round() as u64
                };
                let sent: u64 = part.regions(op.source).iter().map(share).sum();
                *traffic.entry((part.rank, peer)).or_default() += sent;
            }
        }
    }
    traffic.retain(|_, &mut sent| sent > 0);
    traffic
}

/// B116: a plan that is written and read back does the same.
fn comes_back(what: &str, plan: &Plan, form: Form, text: &str) -> Plan {
    let again = examine(form, what, text.to_string(), plan.root);
    let Some(schedule) = again.schedule.as_ref().filter(|schedule| schedule.verdict.ok) else {
        panic!("{what}: {:#?}\n{text:.4000}", again.diagnostics);
    };
    let found = &schedule.plan;
    assert_eq!(found.contract.collective, plan.contract.collective, "{what}");
    assert_eq!(found.claims.same_reduction_tree, plan.claims.same_reduction_tree, "{what}");
    assert_eq!(traffic(found), traffic(plan), "{what}");
    assert_eq!(found.root, plan.root, "{what}");
    found.clone()
}

/// What MSCCL has no name for.
const UNNAMED: [&str; 3] = ["barrier", "scan", "exscan"];

#[test]
fn library_schedules_round_trip_through_msccl_xml() {
    let seed = seed();
    let mut written = 0;
    for entry in library::entries() {
        for ranks in [2, 3, 4, 5, 8] {
            let Some(plan) = library_plan(&entry, ranks, ranks - 1) else { continue };
            let what = format!("{}.{} at {ranks}", entry.collective, entry.schedule);
            match msccl::write(&plan, &Default::default()) {
                Err(told) => {
                    assert_eq!(told.code, codes::INEXPRESSIBLE);
                    assert!(UNNAMED.contains(&entry.collective), "{what}: {told:#?}");
                }
                Ok(file) => {
                    let found = comes_back(&what, &plan, Form::MscclXml, &file.text);
                    assert!(found.slots <= 8, "{what} needs {} slots", found.slots);
                    assert!(
                        file.text
                            .lines()
                            .all(|line| line.trim().starts_with('<') && line.trim().ends_with('>'))
                    );
                    assert!(!file.text.contains('\t') && !file.text.starts_with("<?xml"), "{what}");
                    if ranks == 5 {
                        runs_right(&found, 1, seed).unwrap_or_else(|message| panic!("{what}: {message}"));
                    }
                    written += 1;
                }
            }
        }
    }
    assert!(written > 120, "only {written} were written");
}

/// The runtimes' count of a gather or a scatter is that of one block, which they cut into `nchunksperloop` chunks; of other collectives
/// it is multiplied by the ranks, or there is one block.
#[test]
fn chunks_of_a_gather_are_those_of_one_block() {
    let value = |line: &str, name: &str| value(line, name).to_string();
    for entry in library::entries() {
        let Some(plan) = library_plan(&entry, 4, 1) else { continue };
        let Ok(file) = msccl::write(&plan, &Default::default()) else { continue };
        let mut lines = file.text.lines();
        let (algo, gpu) = (lines.next().expect("an algorithm"), lines.next().expect("a rank"));
        let chunks = ["i_chunks", "o_chunks"].map(|name| value(gpu, name).parse::<u32>().expect("a number"));
        let due = match entry.collective {
            "gather" | "scatter" => chunks[0].min(chunks[1]),
            _ => chunks[0].max(chunks[1]),
        };
        assert_eq!(value(algo, "nchunksperloop"), due.to_string(), "{}.{}", entry.collective, entry.schedule);
        if entry.collective == "gather" {
            let limits = examined("gather.xml", &file.text).schedule.expect("it is right").limits;
            assert_eq!((limits.blocks, limits.divisor()), (4, 4 * u64::from(due)));
        }
    }
}

#[test]
fn library_schedules_round_trip_through_mscclpp_json() {
    let (mut written, mut refused) = (0, Vec::new());
    for entry in library::entries() {
        for ranks in [2, 4, 5] {
            let Some(plan) = library_plan(&entry, ranks, 0) else { continue };
            let what = format!("{}.{} at {ranks}", entry.collective, entry.schedule);
            match mscclpp::write(&plan) {
                Err(told) => {
                    assert_eq!(told.code, codes::INEXPRESSIBLE);
                    if !UNNAMED.contains(&entry.collective) {
                        refused.push(format!("{what}: {:?}", told.found));
                    }
                }
                Ok(file) => {
                    comes_back(&what, &plan, Form::MscclppJson, &file.text);
                    written += 1;
                }
            }
        }
    }
    assert!(written > 60, "only {written} were written; refused:\n{}", refused.join("\n"));
}

/// Library schedules as GOAL come back as plans of the same messages, each proved to arrive.
#[test]
fn library_schedules_round_trip_through_goal() {
    let mut written = 0;
    for entry in library::entries() {
        for ranks in [2, 4, 5] {
            let Some(plan) = library_plan(&entry, ranks, 0) else { continue };
            let what = format!("{}.{} at {ranks}", entry.collective, entry.schedule);
            // Lengths that every schedule divides.
            let counts = plan.contract.counts(720_720).unwrap_or_else(|error| panic!("{what}: {error}"));
            let sizes = coll_interop::Sizes { counts, element_size_bytes: 4 };
            let text = goal::write(&plan, &sizes).expect("it is whole");
            let again = examine(Form::Goal, "back.goal", text, None);
            let schedule = again.schedule.as_ref().filter(|schedule| schedule.verdict.ok);
            let found = &schedule.unwrap_or_else(|| panic!("{what}: {:#?}", again.diagnostics)).plan;
            let sends = |plan: &Plan| -> BTreeMap<(u32, u32), u32> {
                let mut sends = BTreeMap::new();
                for part in &plan.ranks {
                    for (peer, _) in part.ops.iter().filter_map(|op| op.action.sends_to()) {
                        *sends.entry((part.rank, peer)).or_default() += 1;
                    }
                }
                sends
            };
            assert_eq!(sends(found), sends(&plan), "{what}");
            written += 1;
        }
    }
    assert!(written > 100, "only {written} were written");
}

/// Foreign files that were imported are written again, and are what they were.
#[test]
fn foreign_files_round_trip_through_msccl_xml() {
    for (name, text) in imported() {
        let Some(schedule) = examined(&name, &text).schedule else { panic!("{name}") };
        match msccl::write(&schedule.plan, &Default::default()) {
            Ok(file) => {
                comes_back(&name, &schedule.plan, Form::MscclXml, &file.text);
            }
            Err(told) => {
                assert_eq!(told.code, codes::INEXPRESSIBLE, "{name}");
                let has_signals = name.starts_with("mscclpp");
                assert!(has_signals || schedule.verdict.postcondition.is_none(), "{name}: {told:#?}");
            }
        }
    }
}

/// One step's worth of change to a file's lines.
fn mutants(text: &str, seed: u64, count: usize) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let ranks = lines.iter().filter(|line| line.trim_start().starts_with("<gpu")).count() as u64;
    let steps: Vec<usize> = (0..lines.len()).filter(|&at| lines[at].contains("<step")).collect();
    let mut state = seed | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below.max(1)
    };
    let mut all = Vec::new();
    while all.len() < count {
        let at = steps[random(steps.len() as u64) as usize];
        let mut changed: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
        let line = changed[at].clone();
        let kind = random(7);
        match kind {
            0 if !line.contains("depid=\"-1\"") && !line.contains("\"nop\"") => {
                changed[at] = set(&set(&line, "depid", -1), "deps", -1);
            }
            1 => {
                let tb = (0..at).rev().find(|&at| lines[at].contains("<tb")).expect("a step is in one");
                let peer = value(&changed[tb], "send");
                if peer >= 0 {
                    changed[tb] = set(&changed[tb].clone(), "send", (peer + 1) % ranks as i64);
                }
            }
            2 if line.contains("type=\"r") => {
                changed.remove(at);
                renumber(&mut changed, at);
            }
            3 if changed.get(at + 1).is_some_and(|next| next.contains("<step")) => {
                changed.swap(at, at + 1);
                let first = value(lines[at], "s");
                changed[at] = set(&changed[at].clone(), "s", first);
                changed[at + 1] = set(&changed[at + 1].clone(), "s", first + 1);
            }
            4 => changed[at] = set(&line, "cnt", value(&line, "cnt") + 1),
            5 => changed[at] = set(&line, "srcoff", value(&line, "srcoff") + 1),
            6 => changed[at] = set(&line, "dstoff", value(&line, "dstoff") + 1),
            _ => continue,
        }
        if changed != lines {
            all.push((format!("change {kind} of line {}: {}", at + 1, line.trim()), changed.join("\n")));
        }
    }
    all
}

fn value(line: &str, name: &str) -> i64 {
    let rest = line.split(&format!(" {name}=\"")).nth(1).unwrap_or("-1\"");
    rest.split('"').next().and_then(|text| text.parse().ok()).unwrap_or(-1)
}

fn set(line: &str, name: &str, to: i64) -> String {
    line.replacen(&format!(" {name}=\"{}\"", value(line, name)), &format!(" {name}=\"{to}\""), 1)
}

/// Steps behind one that was taken out move up.
fn renumber(lines: &mut [String], from: usize) {
    for line in lines[from..].iter_mut().take_while(|line| line.contains("<step")) {
        *line = set(line, "s", value(line, "s") - 1);
    }
}

/// Files with a dependency dropped, a send redirected, a receive taken out, steps that change places, another count or another
/// chunk are refused with a reason, or right all the same in several orders of events.
#[test]
fn mutants_are_refused_or_right() {
    let seed = seed();
    let (mut refused, mut equivalent) = (0, 0);
    for name in files("msccl-xml", ".xml.gz") {
        let text = text_of(&name);
        let count = if text.len() > 400_000 { 2 } else { 8 };
        for (change, mutant) in mutants(&text, seed, count) {
            let examined = examined(&name, &mutant);
            if !examined.ok() {
                let errors = examined.diagnostics.iter().filter(|d| d.is_error());
                assert!(errors.clone().count() > 0, "{name}, {change}: refused without a reason");
                refused += 1;
                continue;
            }
            let plan = &examined.schedule.as_ref().expect("it is right").plan;
            runs_right(plan, 3, seed)
                .unwrap_or_else(|message| panic!("{name}, {change}: accepted, and {message}"));
            equivalent += 1;
        }
    }
    // Many a change is of a side that its step does not use, such as the target of a send.
    assert!(refused > equivalent, "{refused} were refused, and {equivalent} accepted");
}
