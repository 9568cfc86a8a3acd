//! GOAL files in the LogGOPS model.

use crate::args::{Format, SimArgs};
use crate::failure::Failure;
use crate::output;
use coll_sim::goal::Goal;
use coll_sim::loggops::{self, LogGopsError};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

#[derive(Serialize)]
struct Document {
    finish_ns: Vec<u64>,
}

pub(super) fn run(args: &SimArgs) -> Result<ExitCode, Failure> {
    refuse_what_is_for_plans(args)?;
    let text = coll::read_text(Path::new(&args.target))?;
    let goal = Goal::from_text(&args.target, &text).map_err(|error| {
        let failure = Failure::unusable(error.to_string());
        match error.help {
            Some(help) => failure.help(help),
            None => failure,
        }
    })?;
    let params = args.params.unwrap_or_default();
    let finish = loggops::run(&goal, &params).map_err(|error| match error {
        LogGopsError::Stuck(_) => Failure::wrong(error.to_string()),
        LogGopsError::TooLong { .. } => Failure::unusable(error.to_string()),
    })?;
    let document = Document { finish_ns: finish.ns };
    match args.format {
        Format::Json => {
            let json = serde_json::to_string_pretty(&document).expect("invariant: numbers are plain data");
            output::print(&(json + "\n"))?;
        }
        Format::Text => {
            let mut text = String::from("rank  finish ns\n");
            for (rank, ns) in document.finish_ns.iter().enumerate() {
                text += &format!("{rank:>4}  {ns:>9}\n");
            }
            let last = document.finish_ns.iter().max().copied().unwrap_or(0);
            output::print(&(text + &format!("the last is over after {last} ns\n")))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A GOAL file has its ranks, sizes and constants; what would be about a plan is a mistake.
fn refuse_what_is_for_plans(args: &SimArgs) -> Result<(), Failure> {
    let ground = &args.ground;
    let given = [
        ("--topology", ground.topology.is_some()),
        ("--ranks", ground.ranks.is_some()),
        ("--root", ground.root.is_some()),
        ("--place", ground.place.is_some()),
        ("--slots", ground.slots.is_some()),
        ("--stream", ground.stream),
        ("--skip", !ground.passes.skip.is_empty()),
        ("--no-opt", ground.passes.no_opt),
        ("--lanes", ground.passes.lanes.is_some()),
        ("--slices", ground.passes.slices.is_some()),
        ("--accumulate", ground.passes.accumulate.is_some()),
        ("--wire", ground.passes.wire.is_some()),
        ("--bytes", args.bytes.is_some()),
        ("--trace", args.trace.is_some()),
        ("--schedule", args.choice.schedule.is_some()),
        ("-D", !args.choice.define.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => Err(Failure::unusable(format!("`{name}` does not go with `--model loggops`"))
            .help("a GOAL file has its ranks and sizes, and `--params` its constants")),
    }
}
