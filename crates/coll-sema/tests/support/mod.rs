//! The library on disk, and diagnostics and programs as text.
#![allow(dead_code, reason = "each test file uses a part of this")]

use coll_base::{Diagnostic, SourceMap};
use coll_ir::{Kind, Place, Program};
use coll_sema::{Instance, Library, Module, Refusal, load};
use std::fmt::Write;
use std::path::PathBuf;

/// The folder `schedules` of this repository.
pub(crate) struct Disk;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schedules"))
}

impl Library for Disk {
    fn schedule(&self, collective: &str, schedule: &str) -> Option<(String, String)> {
        let name = format!("{collective}/{schedule}.coll");
        let text = std::fs::read_to_string(folder().join(&name)).ok()?;
        Some((name, text))
    }

    fn collectives(&self) -> (String, String) {
        let text = std::fs::read_to_string(folder().join("collectives.coll")).expect("the prelude is there");
        ("collectives.coll".into(), text)
    }

    fn names(&self) -> Vec<(String, String)> {
        names()
    }
}

/// Every schedule of the library, sorted.
pub(crate) fn names() -> Vec<(String, String)> {
    let mut names = Vec::new();
    for collective in std::fs::read_dir(folder()).expect("the library is there").flatten() {
        let Ok(schedules) = std::fs::read_dir(collective.path()) else { continue };
        for schedule in schedules.flatten() {
            let collective = collective.file_name().into_string().expect("names are text");
            let file = schedule.file_name().into_string().expect("names are text");
            names.extend(file.strip_suffix(".coll").map(|schedule| (collective, schedule.to_string())));
        }
    }
    names.sort();
    names
}

pub(crate) fn load_text(text: &str) -> (SourceMap, Module, Vec<Diagnostic>) {
    let mut sources = SourceMap::new();
    let main = sources.add("main.coll", text);
    let (module, diagnostics) = load(&mut sources, main, &Disk);
    (sources, module, diagnostics)
}

pub(crate) fn load_library(collective: &str, schedule: &str) -> (SourceMap, Module, Vec<Diagnostic>) {
    let (_, text) = Disk.schedule(collective, schedule).expect("the schedule is in the library");
    load_text(&text)
}

/// The program of the first schedule of a text, which has no errors.
pub(crate) fn program(text: &str, ranks: u32, root: u32) -> Program {
    let (sources, module, diagnostics) = load_text(text);
    assert!(diagnostics.is_empty(), "{}", render(&sources, &diagnostics));
    match module.instantiate(0, &Instance { ranks, root, params: Vec::new() }) {
        Ok(made) => made.program,
        Err(Refusal::Errors(errors)) => panic!("{}", render(&sources, &errors)),
        Err(Refusal::DoesNotApply { reason, .. }) => panic!("does not apply: {reason}"),
    }
}

/// What a text is refused with, by `load` or for some ranks.
pub(crate) fn refusal(text: &str, ranks: u32) -> String {
    let (sources, module, mut diagnostics) = load_text(text);
    for at in 0..module.schedules().len() {
        match module.instantiate(at, &Instance { ranks, root: 0, params: Vec::new() }) {
            Ok(made) => diagnostics.extend(made.warnings),
            Err(Refusal::Errors(errors)) => diagnostics.extend(errors),
            Err(Refusal::DoesNotApply { reason, .. }) => return format!("does not apply: {reason}"),
        }
    }
    render(&sources, &diagnostics)
}

/// Diagnostics as plain text: the code, the place, the words.
pub(crate) fn render(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        writeln!(text, "{}: {}", diagnostic.code, diagnostic.message).unwrap();
        for label in diagnostic.primary.iter().chain(&diagnostic.secondary) {
            let at = sources.start_of(label.span);
            let source = sources.slice(label.span).split_whitespace().collect::<Vec<_>>().join(" ");
            let words = if label.text.is_empty() { String::new() } else { format!(" ({})", label.text) };
            writeln!(text, "  {}:{}:{} `{source}`{words}", sources.name(label.span.file), at.line, at.column)
                .unwrap();
        }
        diagnostic.notes.iter().for_each(|note| writeln!(text, "  note: {note}").unwrap());
        diagnostic.help.iter().for_each(|help| writeln!(text, "  help: {help}").unwrap());
    }
    text
}

/// Steps on a line each: `r0 data[1/4..1/2] > r1`, `+>` for a reduction, `>+` for one from the left.
pub(crate) fn steps(program: &Program) -> String {
    let mut text = String::new();
    for step in 0..program.steps.len() as u32 {
        let transfers: Vec<String> = program
            .transfers_of(step)
            .iter()
            .map(|t| {
                let (low, high) = (t.low as usize, t.high as usize);
                let arrow = match t.kind {
                    Kind::Move => ">",
                    Kind::Reduce => "+>",
                    Kind::ReduceLeft => ">+",
                    Kind::Signal => return format!("{} signals {}", t.source.rank, t.target.rank),
                    Kind::Drop => "drop",
                };
                let cut = |at: usize| program.cuts.0[at];
                let part = if (low, high as u32) == (0, program.cuts.pieces()) {
                    String::new()
                } else {
                    format!(" {}..{}", cut(low), cut(high))
                };
                let target = match t.source == (Place { rank: t.source.rank, ..t.target }) {
                    true => t.target.rank.to_string(),
                    false => place(program, t.target),
                };
                format!("{}{part} {arrow} {target}", place(program, t.source))
            })
            .collect();
        writeln!(text, "{step}: {}", transfers.join("; ")).unwrap();
    }
    text
}

/// `0.data[1]`; the block only where there are several.
fn place(program: &Program, place: Place) -> String {
    let blocks =
        if program.block_count(place.buffer) > 1 { format!("[{}]", place.block) } else { String::new() };
    format!("{}.{}{blocks}", place.rank, program.buffer_name(place.buffer))
}
