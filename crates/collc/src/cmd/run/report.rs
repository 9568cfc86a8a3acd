//! What `run` prints.

use super::prepare::Prepared;
use super::trace;
use crate::args::{Format, RunArgs};
use crate::failure::Failure;
use crate::output;
use coll::trial::{OperatorCode, RankReport, Summary};
use coll_base::DType;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct JsonRun<'a> {
    op: String,
    schedule: &'a str,
    ranks: u32,
    bytes: u64,
    count: u64,
    dtype: &'static str,
    redop: &'a str,
    transport: &'a str,
    iters: u32,
    median_us: f64,
    min_us: f64,
    p99_us: f64,
    #[serde(rename = "algbw_GBps")]
    algbw: f64,
    #[serde(rename = "busbw_GBps")]
    busbw: Option<f64>,
    wrong: u64,
    ok: bool,
    root: Option<u32>,
    in_place: bool,
    seed: u64,
    plan: &'a str,
    differing_blocks: u64,
    /// `native` or `interpreted`, of a user's operator; none for others.
    operator_code: Option<&'static str>,
    /// Why it was interpreted.
    operator_code_reason: Option<String>,
    /// The type that it was accumulated in, if that is another than the elements'.
    accumulate: Option<&'static str>,
    /// The type that elements travelled as, if that is narrower than they are.
    wire: Option<&'static str>,
}

/// The document of a run that failed.
pub(super) fn failed(failure: &Failure) -> String {
    #[derive(Serialize)]
    struct Failed<'a> {
        ok: bool,
        error: &'a str,
    }
    let document = Failed { ok: false, error: failure.message() };
    serde_json::to_string_pretty(&document).expect("invariant: plain data") + "\n"
}

/// Prints the table or the document; the verdict is over all ranks.
pub(super) fn print(
    args: &RunArgs,
    prepared: &Prepared,
    reports: &[RankReport],
) -> Result<ExitCode, Failure> {
    let summary = Summary::of(reports);
    let differing = if prepared.plan.claims.same_reduction_tree { summary.differing_blocks } else { 0 };
    let ok = summary.wrong == 0 && differing == 0;
    let row = row(prepared, &summary, ok);
    match args.format {
        Format::Json => {
            output::print(&(serde_json::to_string_pretty(&row).expect("invariant: plain data") + "\n"))?
        }
        Format::Text => output::print(&text(prepared, &row))?,
    }
    if let Some(first) = &summary.first_wrong {
        output::complain(&format!("{} elements are wrong; the first: {first}", summary.wrong));
    }
    if differing > 0 {
        output::complain(&format!(
            "{differing} blocks differ in bits between ranks, and the plan promises that none does"
        ));
    }
    trace::write(args, prepared, reports)?;
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row<'a>(prepared: &'a Prepared, summary: &Summary, ok: bool) -> JsonRun<'a> {
    let (plan, settings) = (&prepared.plan, &prepared.settings);
    let bytes = settings.elements * settings.dtype.size_bytes();
    let algbw = if summary.median_us > 0.0 { bytes as f64 / summary.median_us / 1e3 } else { 0.0 };
    let (operator_code, operator_code_reason) = match &summary.operator_code {
        _ if !plan.contract.reduces() => (None, None),
        OperatorCode::Builtin => (None, None),
        code @ OperatorCode::Native => (Some(code.name()), None),
        code @ OperatorCode::Interpreted { reason } => (Some(code.name()), Some(reason.clone())),
    };
    let (op, _) = plan.name.split_once('.').unwrap_or((&plan.name, ""));
    // Blocks of lengths of their own are another operation to those who read this.
    let is_known = coll::canonical_operation(op).is_some();
    let op = if prepared.has_counts && is_known { format!("{op}v") } else { op.to_string() };
    JsonRun {
        op,
        schedule: &plan.name,
        ranks: plan.world(),
        bytes,
        count: settings.elements,
        dtype: settings.dtype.name(),
        redop: if plan.reduces { settings.operator.name() } else { "none" },
        transport: prepared.transport,
        iters: settings.iters,
        median_us: summary.median_us,
        min_us: summary.min_us,
        p99_us: summary.p99_us,
        algbw,
        busbw: prepared.bus_factor.map(|factor| algbw * factor),
        wrong: summary.wrong,
        ok,
        root: plan.root,
        in_place: settings.in_place,
        seed: settings.seed,
        plan: &settings.plan_hash,
        differing_blocks: summary.differing_blocks,
        operator_code,
        operator_code_reason,
        accumulate: prepared.accumulate.map(DType::name),
        wire: prepared.wire.map(DType::name),
    }
}

fn text(prepared: &Prepared, row: &JsonRun<'_>) -> String {
    let mut text = String::new();
    if let Some(remark) = &prepared.remark {
        text += &format!("{remark}\n");
    }
    let place = if row.in_place { "in place" } else { "out of place" };
    let root = row.root.map_or(String::new(), |root| format!(", root {root}"));
    text += &format!(
        "{} on {} ranks over {}{root}, {place}, plan {}\n",
        row.schedule,
        row.ranks,
        row.transport,
        &row.plan[..12]
    );
    text += &format!(
        "{:>12} {:>12} {:>6} {:>8} {:>11} {:>11} {:>11} {:>8} {:>8} {:>7}\n",
        "bytes", "count", "type", "redop", "median µs", "min µs", "p99 µs", "algbw", "busbw", "wrong"
    );
    text += &format!(
        "{:>12} {:>12} {:>6} {:>8} {:>11.1} {:>11.1} {:>11.1} {:>8.3} {:>8} {:>7}\n",
        row.bytes,
        row.count,
        row.dtype,
        row.redop,
        row.median_us,
        row.min_us,
        row.p99_us,
        row.algbw,
        row.busbw.map_or("-".into(), |busbw| format!("{busbw:.3}")),
        row.wrong
    );
    match (row.operator_code, &row.operator_code_reason) {
        (Some(_), Some(reason)) => text += &format!("operator {} was interpreted: {reason}\n", row.redop),
        (Some(_), None) => text += &format!("operator {} ran as machine code\n", row.redop),
        (None, _) => {}
    }
    if let Some(wide) = row.accumulate {
        let once = if row.wire.is_none() { ", and rounded once" } else { "" };
        text += &format!("{} was accumulated in {wide}{once}\n", row.dtype);
    }
    if let Some(wire) = row.wire {
        let was = row.accumulate.unwrap_or(row.dtype);
        text += &format!("{was} travelled as {wire}: results are right up to its rounding\n");
    }
    let verdict = match (row.ok, row.wire) {
        (true, None) => "every element on every rank is right",
        (true, Some(_)) => "every element on every rank is right up to that",
        (false, _) => "WRONG",
    };
    text + &format!("{} iterations, GB/s = 10^9 bytes a second; {verdict}\n", row.iters)
}
