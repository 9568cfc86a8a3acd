//! `collc run`: a plan on real processes, every element verified.
//!
//! `prepare` finds the plan and proves it. With `--ranks` this process is the launcher (`launch`): it hosts the
//! rendezvous, starts one process a rank, hands each its part of the plan, and prints what they found. With `--rank` it
//! is itself one rank of a job whose others are started elsewhere (`join`).

mod counts;
pub(crate) mod devices;
mod foreign;
mod ground;
mod join;
mod launch;
mod operator;
mod prepare;
mod report;
mod trace;

use crate::args::{Format, RunArgs, TransportKind};
use crate::failure::Failure;
use crate::output;
use std::process::ExitCode;

/// Runs as a launcher or as one rank.
pub(crate) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    if args.processes && args.transport != TransportKind::Cuda {
        return Err(devices::no_processes(args.transport.name()));
    }
    let done = match join::place(args)? {
        Some(place) => join::run(args, &place),
        None => launch::run(args),
    };
    if let (Err(failure), Format::Json) = (&done, args.format) {
        output::print(&report::failed(failure))?;
    }
    done
}

/// One rank of a launcher's job.
pub(crate) fn rank() -> Result<ExitCode, Failure> {
    launch::rank()
}

/// One rank of a launcher's job, on a device.
pub(crate) fn device_rank() -> Result<ExitCode, Failure> {
    launch::device_rank()
}
