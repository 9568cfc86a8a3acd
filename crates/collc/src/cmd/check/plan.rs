//! `collc check FILE` where the file is a plan: it is verified and proved as it stands.

use crate::args::{CheckArgs, Format};
use crate::cmd::target;
use crate::failure::Failure;
use crate::render::JsonDiagnostic;
use crate::{output, render};
use coll::{PlanError, ReadPlan};
use coll_base::{DType, Diagnostic, SourceMap};
use coll_plan::Claims;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

/// The largest plan that is read.
const PLAN_SIZE_MAX_BYTES: u64 = 4 << 30;

#[derive(Serialize)]
struct Report {
    ok: bool,
    diagnostics: Vec<JsonDiagnostic>,
    schedules: Vec<JsonPlan>,
}

#[derive(Serialize)]
struct JsonPlan {
    name: String,
    collective: String,
    ranks: Vec<JsonCount>,
}

#[derive(Serialize)]
struct JsonCount {
    n: u32,
    ok: bool,
    applies: bool,
    min_slots: u32,
    same_reduction_tree: bool,
    ordered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    accumulate: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wire: Option<&'static str>,
    /// False for one rank's part, which claims what was proved elsewhere.
    proved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<String>,
}

/// The file's bytes, if it is a plan.
pub(crate) fn bytes(name: &str) -> Result<Option<Vec<u8>>, Failure> {
    if !target::names_a_file(name) || Path::new(name).is_dir() {
        return Ok(None);
    }
    match coll::read_bytes(Path::new(name), PLAN_SIZE_MAX_BYTES) {
        Ok(bytes) if coll::is_plan(&bytes) => Ok(Some(bytes)),
        // What is wrong with the file as a schedule is told when it is opened as one.
        _ => Ok(None),
    }
}

/// Proves it and says what is known of it.
pub(super) fn run(args: &CheckArgs, bytes: &[u8]) -> Result<ExitCode, Failure> {
    let read = coll::read_plan(bytes);
    let diagnostics: &[Diagnostic] = match &read {
        Ok(read) => &read.warnings,
        Err(error) => error.diagnostics(),
    };
    if let Err(error @ PlanError::Unreadable(_)) = &read {
        return super::report::unusable(
            args.format,
            Failure::unusable(format!("`{}`: {error}", args.target)),
        );
    }
    let none = SourceMap::new();
    match args.format {
        Format::Json => {
            let report = Report {
                ok: read.is_ok(),
                diagnostics: diagnostics.iter().map(|d| JsonDiagnostic::new(&none, d)).collect(),
                schedules: read.iter().map(json).collect(),
            };
            output::print(&(serde_json::to_string_pretty(&report).expect("invariant: plain data") + "\n"))?;
        }
        Format::Text => {
            output::complain_raw(&render::render(&none, diagnostics, output::colours()));
            output::print(&read.as_ref().map_or(String::new(), text))?;
        }
    }
    Ok(if read.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn json(read: &ReadPlan) -> JsonPlan {
    let (plan, min_slots) = (&read.plan, read.min_slots);
    let Claims { ordered, same_reduction_tree } = read.found;
    let proved = plan.is_whole();
    let count = JsonCount {
        n: plan.world(),
        ok: true,
        applies: true,
        min_slots,
        same_reduction_tree,
        ordered,
        accumulate: plan.accumulate.filter(|_| plan.reduces).map(DType::name),
        wire: plan.wire.map(DType::name),
        proved,
        proof: plan.proof.as_ref().map(ToString::to_string),
    };
    let name = plan.name.split_once('.').map_or(plan.name.as_str(), |(_, name)| name);
    JsonPlan { name: name.to_string(), collective: plan.contract.collective.clone(), ranks: vec![count] }
}

fn text(read: &ReadPlan) -> String {
    let plan = &read.plan;
    let ops: usize = plan.ranks.iter().map(|rank| rank.ops.len()).sum();
    let head = format!(
        "{} for {} ranks, {ops} operations, plan {}\n",
        plan.name,
        plan.world(),
        &coll::proof_hash(plan)[..16]
    );
    let yes = |holds| if holds { "yes" } else { "no" };
    let Claims { ordered, same_reduction_tree } = read.found;
    let serves = format!(
        "  ordered operators: {} · same reduction tree on every rank: {}\n",
        yes(ordered),
        yes(same_reduction_tree)
    );
    let accumulate = plan.accumulate.filter(|_| plan.reduces);
    let serves = serves + &super::report::rounding(accumulate, plan.wire);
    let rests = match &plan.proof {
        Some(proof) => format!("it rests on the proof {proof}, and claims:"),
        None => "it names no proof, and claims:".into(),
    };
    match plan.is_whole() {
        true => format!("{head}  keeps its contract; least message slots: {}\n{serves}", read.min_slots),
        false => format!("{head}  one rank's part: its tables fit together; {rests}\n{serves}"),
    }
}
