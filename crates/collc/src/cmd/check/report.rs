//! What `check` prints.

use super::sweep::{Count, Figures, Sweep, Verdict};
use crate::args::Format;
use crate::cmd::target;
use crate::failure::Failure;
use crate::output;
use crate::render::JsonDiagnostic;
use coll::Source;
use coll_base::{DType, Diagnostic};
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Report {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    diagnostics: Vec<JsonDiagnostic>,
    schedules: Vec<JsonSchedule>,
}

#[derive(Serialize)]
struct JsonSchedule {
    name: String,
    collective: String,
    ranks: Vec<JsonCount>,
}

#[derive(Serialize)]
struct JsonCount {
    n: u32,
    ok: bool,
    applies: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failing_root: Option<u32>,
    #[serde(flatten)]
    figures: Option<JsonFigures>,
}

#[derive(Serialize)]
struct JsonFigures {
    steps: u32,
    bytes_sent_max: String,
    bytes_sent_bound: String,
    bytes_received_max: String,
    bytes_received_bound: String,
    scratch_max: String,
    rounds_bound_one_port: u32,
    same_reduction_tree: bool,
    ordered: bool,
    unequal_blocks: bool,
    roots: u32,
    min_slots: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    accumulate: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wire: Option<&'static str>,
}

/// Input that cannot be used at all: with `--format json` there is a document all the same.
pub(crate) fn unusable(format: Format, failure: Failure) -> Result<ExitCode, Failure> {
    if format == Format::Json {
        let error = Some(failure.message().to_string());
        let report = Report { ok: false, error, diagnostics: Vec::new(), schedules: Vec::new() };
        output::print(&(serde_json::to_string_pretty(&report).expect("a report is plain data") + "\n"))?;
    }
    Err(failure)
}

/// The document for tools.
pub(crate) fn json(source: &Source, sweeps: &[Sweep], ok: bool) -> String {
    let diagnostics = diagnostics(source, sweeps);
    let report = Report {
        ok,
        error: None,
        diagnostics: diagnostics.iter().map(|d| JsonDiagnostic::new(&source.map, d)).collect(),
        schedules: sweeps.iter().map(|sweep| json_schedule(source, sweep)).collect(),
    };
    serde_json::to_string_pretty(&report).expect("a report is plain data") + "\n"
}

fn json_schedule(source: &Source, sweep: &Sweep) -> JsonSchedule {
    let info = &source.schedules()[sweep.schedule];
    JsonSchedule {
        name: info.name.clone(),
        collective: info.collective.clone(),
        ranks: sweep.counts.iter().map(json_count).collect(),
    }
}

fn json_count(count: &Count) -> JsonCount {
    let mut json = JsonCount {
        n: count.ranks,
        ok: true,
        applies: true,
        reason: None,
        failing_root: None,
        figures: None,
    };
    match &count.verdict {
        Verdict::DoesNotApply { reason, .. } => {
            json.applies = false;
            json.reason = Some(reason.clone());
        }
        Verdict::Wrong { root, .. } => {
            json.ok = false;
            json.failing_root = Some(*root);
        }
        Verdict::Right(figures) => json.figures = Some(json_figures(figures, count.roots.len() as u32)),
    }
    json
}

fn json_figures(figures: &Figures, roots: u32) -> JsonFigures {
    let properties = &figures.properties;
    JsonFigures {
        steps: properties.steps,
        bytes_sent_max: properties.sent_max.to_string(),
        bytes_sent_bound: properties.bounds.sent_max.to_string(),
        bytes_received_max: properties.received_max.to_string(),
        bytes_received_bound: properties.bounds.received_max.to_string(),
        scratch_max: properties.scratch_max.to_string(),
        rounds_bound_one_port: properties.bounds.rounds_one_port,
        same_reduction_tree: properties.same_reduction_tree,
        ordered: properties.ordered,
        unequal_blocks: properties.equal_blocks_only.is_none(),
        roots,
        min_slots: figures.min_slots,
        accumulate: figures.accumulate.map(DType::name),
        wire: figures.wire.map(DType::name),
    }
}

/// Below this many ranks many loops run not at all, and what they lack is hard to see.
const TELLING_RANKS: u32 = 4;

/// All diagnostics: the file's own; then for each schedule those of the smallest telling count that is wrong, or else
/// the smallest; and each warning once.
pub(crate) fn diagnostics(source: &Source, sweeps: &[Sweep]) -> Vec<Diagnostic> {
    let mut all = source.diagnostics.clone();
    for sweep in sweeps {
        let wrong = || {
            sweep.counts.iter().filter_map(|count| match &count.verdict {
                Verdict::Wrong { diagnostics, root } => Some((count, *root, diagnostics)),
                _ => None,
            })
        };
        let wrong = wrong().find(|(count, ..)| count.ranks >= TELLING_RANKS).or_else(|| wrong().next());
        if let Some((count, root, diagnostics)) = wrong {
            let at = instance(count, root);
            for diagnostic in diagnostics {
                let told = match diagnostic.is_error() {
                    true => diagnostic.clone().note(at.clone()),
                    false => diagnostic.clone(),
                };
                add(&mut all, told);
            }
        }
        for count in &sweep.counts {
            if let Verdict::Right(figures) = &count.verdict {
                for warning in &figures.warnings {
                    if !all.iter().any(|d| d.code == warning.code && places(d) == places(warning)) {
                        all.push(warning.clone().note(instance(count, count.roots[0])));
                    }
                }
            }
        }
    }
    all
}

/// Adds what is wrong with one schedule. A statement that another schedule of the file reaches by a call is told of
/// once, where it is reached by the fewest calls.
fn add(all: &mut Vec<Diagnostic>, told: Diagnostic) {
    let through = |calls: &Diagnostic, place: &Diagnostic| {
        calls.calls.iter().any(|call| places(place).first() == Some(&call.span))
    };
    let same = |known: &&mut Diagnostic| {
        known.code == told.code
            && (places(known) == places(&told) || through(known, &told) && through(&told, known))
    };
    match all.iter_mut().find(same) {
        None => all.push(told),
        Some(known) if known.calls.len() > told.calls.len() => *known = told,
        Some(known) if places(known) == places(&told) && known.calls.is_empty() && told.calls.is_empty() => {
            all.push(told)
        }
        Some(_) => {}
    }
}

/// The primary place, and the library's statement if a call of it is blamed.
fn places(diagnostic: &Diagnostic) -> Vec<coll_base::Span> {
    let primary = diagnostic.primary.as_ref().map(|label| label.span);
    let statement = diagnostic.secondary.first().filter(|_| diagnostic.blames_call()).map(|label| label.span);
    primary.into_iter().chain(statement).collect()
}

fn instance(count: &Count, root: u32) -> String {
    if count.roots.len() > 1 || root != 0 {
        format!("found with n = {}, root = {root}", count.ranks)
    } else {
        format!("found with n = {}", count.ranks)
    }
}

/// A table for each schedule, and a sentence; a line for each of those that are `broken`.
pub(crate) fn text(source: &Source, sweeps: &[Sweep], broken: &[usize]) -> String {
    let mut text = String::new();
    for sweep in sweeps {
        let info = &source.schedules()[sweep.schedule];
        text += &format!("{}.{}  ({})\n", info.collective, info.name, source.map.name(source.main));
        text += &table(sweep);
        text += &conclusion(sweep);
        text += "\n";
    }
    for info in broken.iter().map(|&schedule| &source.schedules()[schedule]) {
        text += &format!("{}.{}  not checked further: see the errors\n", info.collective, info.name);
    }
    if target::is_no_schedule_file(source) { String::new() } else { text }
}

const HEAD: [&str; 8] = ["ranks", "steps", "sent", "bound", "received", "bound", "scratch", "slots"];

fn table(sweep: &Sweep) -> String {
    let rows: Vec<[String; 8]> = sweep.counts.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEAD[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("  {cell:>width$}"));
        padded.collect::<String>() + "\n"
    };
    let mut text = line(&HEAD);
    for row in &rows {
        text += &line(&row.each_ref().map(String::as_str));
    }
    text + "  sent, received: by the busiest rank, as a fraction of the buffer; bound: the least possible\n"
}

fn row(count: &Count) -> Option<[String; 8]> {
    let Verdict::Right(figures) = &count.verdict else { return None };
    let p = &figures.properties;
    Some([
        count.ranks.to_string(),
        p.steps.to_string(),
        p.sent_max.to_string(),
        p.bounds.sent_max.to_string(),
        p.received_max.to_string(),
        p.bounds.received_max.to_string(),
        p.scratch_max.to_string(),
        figures.min_slots.to_string(),
    ])
}

fn conclusion(sweep: &Sweep) -> String {
    let right = sweep.proved();
    let wrong = sweep.counts_where(|verdict| matches!(verdict, Verdict::Wrong { .. }));
    let excluded = sweep.counts_where(|verdict| matches!(verdict, Verdict::DoesNotApply { .. }));
    let mut text = match (right.is_empty(), wrong.is_empty()) {
        (true, true) => "  error: none of the rank counts applies\n".to_string(),
        (false, true) => format!("  keeps its contract for n = {}{}\n", ranges(&right), roots(sweep)),
        (true, false) => format!("  {} for n = {}\n", found(sweep), ranges(&wrong)),
        (false, false) => {
            format!("  keeps its contract for n = {} but not for {}\n", ranges(&right), ranges(&wrong))
        }
    };
    if !excluded.is_empty() {
        let reason = sweep.counts.iter().find_map(|count| match &count.verdict {
            Verdict::DoesNotApply { reason, .. } => Some(reason.as_str()),
            _ => None,
        });
        text += &format!("  does not apply to n = {}: {}\n", ranges(&excluded), reason.unwrap_or(""));
    }
    text + &serves(sweep)
}

/// What all the counts that are not right have in common.
fn found(sweep: &Sweep) -> &'static str {
    let mut each = sweep.counts.iter().filter_map(|count| match &count.verdict {
        Verdict::Wrong { diagnostics, .. } => Some(target::found(diagnostics)),
        _ => None,
    });
    let first = each.next().unwrap_or(target::WRONG);
    if each.all(|other| other == first) { first } else { target::WRONG }
}

fn roots(sweep: &Sweep) -> &'static str {
    let every = |count: &Count| count.ranks == 1 || count.roots.len() == count.ranks as usize;
    let rooted = sweep.counts.iter().any(|count| count.roots.len() > 1);
    if rooted && sweep.counts.iter().all(every) { ", any root" } else { "" }
}

/// Properties that hold for every count that is right.
fn serves(sweep: &Sweep) -> String {
    let figures: Vec<&Figures> = sweep
        .counts
        .iter()
        .filter_map(|count| match &count.verdict {
            Verdict::Right(figures) => Some(figures),
            _ => None,
        })
        .collect();
    if figures.is_empty() {
        return String::new();
    }
    let all = |test: fn(&Figures) -> bool| if figures.iter().all(|f| test(f)) { "yes" } else { "no" };
    let wide = rounding(figures[0].accumulate, figures[0].wire);
    format!(
        "  unequal blocks: {} · ordered operators: {} · same reduction tree on every rank: {}\n{wide}",
        all(|f| f.properties.equal_blocks_only.is_none()),
        all(|f| f.properties.ordered),
        all(|f| f.properties.same_reduction_tree),
    )
}

/// A plan moves and reduces the values of its contract whatever their type; to what they are rounded, and when, is said beside
/// it. Of all tunings `wire` alone has the contract kept only up to rounding.
pub(super) fn rounding(accumulate: Option<DType>, wire: Option<DType>) -> String {
    let mut text = String::new();
    match (accumulate, wire) {
        (None, _) => {}
        (Some(wide), Some(wire)) if wire != wide => {
            text += &format!("  narrow floats are accumulated in {wide}\n");
        }
        (Some(wide), _) => {
            text += &format!("  narrow floats are accumulated in {wide}: every result is rounded once\n");
        }
    }
    if let Some(wire) = wire {
        text +=
            &format!("  wider floats travel as {wire}: of them the contract is kept up to rounding, and ");
        text += "ranks may differ in bits\n";
    }
    text
}

/// `2..=5, 8`
fn ranges(counts: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &count in counts {
        match runs.last_mut() {
            Some((_, high)) if *high + 1 == count => *high = count,
            _ => runs.push((count, count)),
        }
    }
    let run = |&(low, high): &(u32, u32)| match high - low {
        0 => low.to_string(),
        1 => format!("{low}, {high}"),
        _ => format!("{low}..={high}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(", ")
}
