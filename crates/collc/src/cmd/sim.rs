//! `collc sim`: what a schedule or plan takes on a topology, in virtual time; or a GOAL file in the LogGOPS model.
//!
//! [`planned`] finds the plan, [`ground`] the network and the ranks' places, [`report`] prints.

mod goal;
pub(crate) mod ground;
pub(crate) mod planned;
mod report;

use crate::args::{Model, SimArgs};
use crate::cmd::foreign;
use crate::cmd::place::{self, Wish};
use crate::failure::Failure;
use crate::output;
use coll_sim::{Options, SimError, Simulator};
use ground::Place;
use planned::Planned;
use std::process::ExitCode;

/// What is simulated if nothing is said.
const BYTES: u64 = 1 << 20;

/// Predicts one run.
pub(crate) fn run(args: &SimArgs) -> Result<ExitCode, Failure> {
    let is_goal = args.target.ends_with(".goal");
    match args.model.unwrap_or(if is_goal { Model::Loggops } else { Model::Flow }) {
        Model::Loggops => goal::run(args),
        Model::Flow if is_goal => Err(Failure::unusable(format!("`{}` is a GOAL file", args.target))
            .help("GOAL files run with `--model loggops`")),
        Model::Flow => flow(args),
    }
}

fn flow(args: &SimArgs) -> Result<ExitCode, Failure> {
    if args.params.is_some() {
        return Err(Failure::unusable("`--params` is for `--model loggops`")
            .help("the constants of flows are the topology's"));
    }
    let place = Place::new(&args.ground)?;
    let shape = (place.wish == Some(Wish::Best)).then_some(&place.network);
    let ranks = (place.ranks, place.default_ranks());
    let planned = Planned::new(&args.target, &args.ground, &args.choice, ranks, shape)?;
    if planned.is_foreign {
        foreign::shape::tell(&args.target, &planned.plans[0], &place.network)?;
    }
    let bytes = args.bytes.map_or(BYTES, |bytes| bytes.0);
    let plans: Vec<_> = planned.plans.iter().collect();
    let mut options = Options {
        bytes,
        element: planned.element(args.ground.dtype),
        slots: args.ground.slots,
        stream: args.ground.stream,
        exact: args.ground.exact,
        ..Options::default()
    };
    let stand = place::stand(place.wish.as_ref(), &planned.plans, &place.network, &options)?;
    options.order = stand.order.clone();
    options.timeline = args.trace.is_some();
    let simulator = Simulator::new(plans.clone(), &place.network, options.order.as_deref())
        .map_err(|error| failure(&error))?;
    let prediction = simulator.run(&options).map_err(|error| failure(&error))?;
    if let Some(path) = &args.trace {
        let trace = coll_sim::trace(&plans, &place.network, &prediction).map_err(|error| failure(&error))?;
        output::write_file(path, trace.as_bytes())?;
    }
    report::print(args, &planned, &place.network, (bytes, &stand), &prediction)?;
    Ok(ExitCode::SUCCESS)
}

/// What keeps a simulation from an answer: a stuck one is wrong, all else cannot be used.
pub(crate) fn failure(error: &SimError) -> Failure {
    let failure = match error {
        SimError::Stuck(_) => Failure::wrong(error.to_string()),
        _ => Failure::unusable(error.to_string()),
    };
    match error.help() {
        Some(help) => failure.help(help),
        None => failure,
    }
}
