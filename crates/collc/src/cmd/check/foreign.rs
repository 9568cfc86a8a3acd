//! `collc check FILE` where the file is a schedule of another tool: it is imported and proved.

use crate::args::{CheckArgs, Format};
use crate::cmd::foreign;
use crate::failure::Failure;
use crate::output;
use crate::render::JsonDiagnostic;
use coll::foreign::{Examined, ForeignSchedule};
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Report {
    ok: bool,
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
    /// None for a collective that is not known here.
    postcondition: Option<bool>,
    min_slots: u32,
    same_reduction_tree: bool,
    races: u64,
    root: Option<u32>,
    copies: u32,
    equal_chunks_only: bool,
}

/// Says what was found.
pub(super) fn run(args: &CheckArgs, examined: &Examined) -> Result<ExitCode, Failure> {
    let known = examined.schedule.as_ref().map(|schedule| schedule.plan.world());
    let is_asked =
        |world: u32| args.ranks.as_ref().is_none_or(|asked| asked.iter().any(|ranks| ranks == world));
    if let Some(world) = known.filter(|&world| !is_asked(world)) {
        return Err(Failure::unusable(format!("`{}` is a schedule for {world} ranks alone", args.target))
            .help("leave `--ranks` out"));
    }
    match args.format {
        Format::Json => {
            let report = Report {
                ok: examined.ok(),
                diagnostics: examined
                    .diagnostics
                    .iter()
                    .map(|d| JsonDiagnostic::new(&examined.map, d))
                    .collect(),
                schedules: examined.schedule.iter().map(json).collect(),
            };
            output::print(&(serde_json::to_string_pretty(&report).expect("invariant: plain data") + "\n"))?;
        }
        Format::Text => {
            foreign::show(examined);
            output::print(&examined.schedule.as_ref().map_or(String::new(), text))?;
        }
    }
    Ok(if examined.ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn json(schedule: &ForeignSchedule) -> JsonSchedule {
    let verdict = schedule.verdict;
    let count = JsonCount {
        n: schedule.plan.world(),
        ok: verdict.ok,
        applies: true,
        postcondition: verdict.postcondition,
        min_slots: verdict.min_slots,
        same_reduction_tree: verdict.same_reduction_tree,
        races: verdict.races,
        root: schedule.plan.root,
        copies: schedule.copies,
        equal_chunks_only: schedule.equal_chunks_only,
    };
    JsonSchedule { name: schedule.name.clone(), collective: schedule.collective.clone(), ranks: vec![count] }
}

fn text(schedule: &ForeignSchedule) -> String {
    let verdict = schedule.verdict;
    if !verdict.ok {
        return format!("{} ({}): wrong\n", schedule.name, schedule.collective);
    }
    let trees = if verdict.same_reduction_tree { "yes" } else { "no" };
    format!("{}  same reduction tree on every rank: {trees}\n", foreign::summary(schedule))
}
