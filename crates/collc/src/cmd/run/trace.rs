//! `--trace`: when each operation of a run began and ended, in the form and with the numbers of a simulation's trace.

use super::prepare::Prepared;
use crate::args::{RunArgs, TransportKind};
use crate::failure::Failure;
use crate::output;
use coll::trial::{RankReport, Timeline};
use coll_plan::Plan;

/// Runs whose operations nobody sees, or sees not all of.
pub(super) fn refuse(args: &RunArgs, plan: &Plan) -> Result<(), Failure> {
    if args.trace.is_none() {
        return Ok(());
    }
    if args.transport == TransportKind::Cuda {
        return Err(Failure::unusable("streams of devices do not tell when each operation begins and ends")
            .help("leave `--trace` out; Nsight Systems shows what devices do"));
    }
    if !plan.is_whole() {
        return Err(Failure::unusable(format!(
            "`{}` is one rank's part, and a trace shows all",
            args.target
        ))
        .help("leave `--trace` out, or give the whole plan to every rank"));
    }
    Ok(())
}

/// Writes what all ranks tell of, if it was asked for.
pub(super) fn write(args: &RunArgs, prepared: &Prepared, reports: &[RankReport]) -> Result<(), Failure> {
    let Some(path) = &args.trace else { return Ok(()) };
    let timelines: Vec<Option<&Timeline>> = reports.iter().map(|report| report.timeline.as_ref()).collect();
    let timeline = Timeline::together_us(&timelines)
        .ok_or_else(|| Failure::wrong("a rank did not tell when its operations began and ended"))?;
    let places: Vec<Option<&str>> = prepared.devices.iter().map(|name| Some(name.as_str())).collect();
    let trace = coll_sim::trace_of(&[&prepared.plan], &places, &timeline);
    let trace = trace.map_err(|error| Failure::unusable(error.to_string()))?;
    output::write_file(path, trace.as_bytes())
}
