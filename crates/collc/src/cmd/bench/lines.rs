//! A line of JSON for a cell: the fields of `tests/peers`, and the schedule that was taken.

use super::settings::{Cell, Measured, Settings};
use crate::args::{BenchArgs, BenchMemory};
use coll_base::DType;
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    peer: &'static str,
    transport: &'a str,
    config: &'a str,
    memory: &'static str,
    version: &'static str,
    op: String,
    ranks: u32,
    bytes: u64,
    actual_bytes: u64,
    median_us: f64,
    min_us: f64,
    p99_us: f64,
    #[serde(rename = "algbw_GBps")]
    algbw: f64,
    #[serde(rename = "busbw_GBps")]
    busbw: f64,
    iters: u32,
    b2b_us: f64,
    #[serde(rename = "b2b_busbw_GBps")]
    b2b_busbw: f64,
    b2b_iters: u32,
    other_cores: f64,
    pp_us: f64,
    bad: u64,
    checked: bool,
    round: u32,
    schedule: &'a str,
    in_place: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    accumulate: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wire: Option<&'static str>,
}

/// The line, with its end.
pub(super) fn line(args: &BenchArgs, settings: &Settings, cell: &Cell, measured: &Measured) -> String {
    let transport = &settings.transport;
    let GBps { algbw, busbw } = GBps::of(measured, measured.median_us);
    let suffix = if args.memory == BenchMemory::Alloc { "-alloc" } else { "" };
    let default = format!("collc-{transport}{suffix}");
    let line = Line {
        peer: "collc",
        transport,
        config: args.config.as_deref().unwrap_or(&default),
        memory: args.memory.name(),
        version: env!("CARGO_PKG_VERSION"),
        op: cell.operation.replace('_', ""),
        ranks: settings.world,
        bytes: cell.bytes,
        actual_bytes: measured.actual_bytes,
        median_us: measured.median_us,
        min_us: measured.min_us,
        p99_us: measured.p99_us,
        algbw,
        busbw,
        iters: measured.iters,
        b2b_us: measured.b2b_us,
        b2b_busbw: GBps::of(measured, measured.b2b_us).busbw,
        b2b_iters: measured.b2b_iters,
        other_cores: measured.other_cores,
        pp_us: measured.pp_us,
        bad: measured.bad.unwrap_or(0),
        checked: measured.bad.is_some(),
        round: args.round,
        schedule: &measured.schedule,
        in_place: cell.in_place,
        accumulate: settings.accumulate.map(DType::name),
        wire: settings.wire.map(DType::name),
    };
    serde_json::to_string(&line).expect("invariant: plain data") + "\n"
}

/// Bandwidths at a time.
struct GBps {
    algbw: f64,
    busbw: f64,
}

impl GBps {
    fn of(measured: &Measured, us: f64) -> GBps {
        let algbw = if us > 0.0 { measured.actual_bytes as f64 / us / 1e3 } else { 0.0 };
        GBps { algbw, busbw: algbw * measured.bus_factor }
    }
}
