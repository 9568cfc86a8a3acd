//! Real files of other tools, imported and proved: what an interpreter written apart from this project found of each is
//! what the proof finds.

mod support;

use coll_interop::codes::UNSUPPORTED;
use support::{corpus, examine, text_of};

/// A row of `expected.csv`.
struct Row {
    file: String,
    cells: Vec<String>,
}

fn rows() -> (Vec<String>, Vec<Row>) {
    let text = std::fs::read_to_string(corpus("msccl-xml/expected.csv")).expect("it can be read");
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_string).collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let rows = lines.map(|cells| Row { file: cells[0].clone(), cells }).collect();
    (head, rows)
}

#[test]
fn every_msccl_file_has_the_expected_verdict() {
    let (head, rows) = rows();
    let cell = |row: &Row, name: &str| row.cells[head.iter().position(|n| n == name).expect(name)].clone();
    let mut wrong = Vec::new();
    assert_eq!(rows.len(), 50);
    for row in &rows {
        let text = text_of(&format!("msccl-xml/{}.gz", row.file));
        let found = match examine(&row.file, &text) {
            Ok(found) => found,
            Err(told) => {
                wrong.push(format!("{}: {told:#?}", row.file));
                continue;
            }
        };
        let mut expect = |name: &str, found: String| {
            let due = cell(row, name);
            if due != found {
                wrong.push(format!("{}: {name} should be {due} and is {found}", row.file));
            }
        };
        expect("coll", found.collective.clone());
        expect("ranks", found.plan.world().to_string());
        expect("inplace", u8::from(found.limits.in_place).to_string());
        let yes = |holds: bool| if holds { "yes" } else { "no" }.to_string();
        let knows = !found.plan.contract.ensures.is_empty();
        expect("nchunksperloop", found.limits.chunks.to_string());
        expect("nchannels", found.plan.channels.to_string());
        expect("total_steps", found.steps.to_string());
        expect("postcondition_holds", if knows { yes(found.errors.is_empty()) } else { "n/a".into() });
        expect("min_fifo_slots", found.min_slots.to_string());
        let tree = if found.plan.reduces { yes(found.same_tree) } else { "n/a".into() };
        expect("same_reduction_tree_on_all_ranks", tree);
        expect("data_races", found.races.to_string());
        if !found.errors.is_empty() {
            wrong.push(format!("{}: {:?}", row.file, found.errors));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every file without switch channels is imported and proved; the others are refused by name.
#[test]
fn mscclpp_plans_are_proved_unless_they_use_switches() {
    let mut names = Vec::new();
    for folder in ["", "executor-tests/", "dsl-generated/"] {
        let entries = std::fs::read_dir(corpus(&format!("mscclpp-json/{folder}"))).expect("it can be listed");
        let files = entries.map(|entry| entry.expect("it can be listed").file_name());
        let files =
            files.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.ends_with(".gz"));
        names.extend(files.map(|name| format!("mscclpp-json/{folder}{name}")));
    }
    names.sort();
    let (mut proved, mut refused, mut wrong) = (0, 0, Vec::new());
    for name in &names {
        match examine(name, &text_of(name)) {
            Ok(found) if found.errors.is_empty() => proved += 1,
            Ok(found) => wrong.push(format!("{name}: {:#?}", found.errors)),
            Err(told) if told[0].code == UNSUPPORTED && told[0].message.contains("switch") => refused += 1,
            Err(told) => wrong.push(format!("{name}: {told:#?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((proved, refused), (17, 4));
}
