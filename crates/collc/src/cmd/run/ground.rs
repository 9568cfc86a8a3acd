//! `--topology`: a run whose plan is fitted to a topology, and whose ranks stand where the plan says.
//!
//! Ranks that the topology has in one machine are started as ranks of one machine, and those of others as if they were on
//! another: with `--transport auto` the first share memory and the second are reached over TCP. So the order of ranks is what
//! runs, as far as one machine can show it.

use crate::args::RunArgs;
use crate::cmd::compile::fit::Fitting;
use crate::cmd::place::{self, shown};
use crate::cmd::run::prepare::Call;
use crate::failure::Failure;
use coll_plan::{Placement, Plan};
use coll_sim::Options;
use coll_topo::Network;
use std::env;

/// The topology, and the devices of ranks on it, where options do not say them.
const TOPOLOGY: &str = "COLLC_TOPOLOGY";
const DEVICES: &str = "COLLC_DEVICES";

/// What the options ask for; nothing without a topology.
pub(super) fn fitting(args: &RunArgs) -> Result<Option<Fitting>, Failure> {
    let variable = |name: &str| env::var(name).ok().filter(|text| !text.trim().is_empty());
    let Some(topology) = args.topology.clone().or_else(|| variable(TOPOLOGY)) else { return Ok(None) };
    let place = args.place.clone().or_else(|| variable(DEVICES));
    if args.ranks_per_host.is_some() {
        return Err(Failure::unusable(
            "`--ranks-per-host` says which ranks share a machine, and so does `--topology`",
        )
        .help("leave one of them out"));
    }
    Fitting::of(&topology, place.as_deref(), Call::asked(args).bytes, &args.passes).map(Some)
}

/// The machine of each rank, as the plan is placed.
pub(super) fn machines(network: &Network, plan: &Plan) -> Vec<u32> {
    let order = plan.placement.as_ref().map_or(&[][..], |placement| &placement.order);
    let machine = |&device: &u32| network.devices.get(device as usize).map_or(0, |device| device.machine);
    order.iter().map(machine).collect()
}

/// A plan that was read, placed: as `--place` says, else as the plan says, else in the topology's order. One rank's part says
/// itself where all ranks stand.
pub(super) fn placed(args: &RunArgs, fitting: &Fitting, plan: Plan) -> Result<Plan, Failure> {
    let network = fitting.network();
    if !plan.is_whole() && args.place.is_some() {
        return Err(Failure::unusable(format!(
            "`{}` is one rank's part: where it stands depends on all",
            args.target
        ))
        .help("leave `--place` out, or give the whole plan"));
    }
    let element = crate::cmd::sim::planned::element(&plan, args.dtype);
    let options = Options { bytes: Call::asked(args).bytes, element, ..Options::default() };
    let options = Options { bytes: coll_sim::size_taken_bytes(&plan, &options), ..options };
    let wish = args.place.as_ref().map(|_| fitting.wish());
    let order = match (wish, &plan.placement) {
        (None, None) => None,
        _ => place::stand(wish, std::slice::from_ref(&plan), network, &options)?.order,
    };
    let order = order.unwrap_or_else(|| (0..plan.world()).collect());
    if let Some(&device) = order.iter().find(|&&device| device as usize >= network.devices.len()) {
        let message = format!(
            "the plan puts a rank on device {device}, and `{}` has {}",
            network.name,
            network.devices.len()
        );
        return Err(Failure::unusable(message).help("`--place best` places its ranks anew"));
    }
    let placement = Placement { topology: network.name.clone(), order };
    Ok(if plan.placement.as_ref() == Some(&placement) { plan } else { coll::placed(plan, placement) })
}

/// What is said of where ranks stand.
pub(super) fn told(network: &Network, plan: &Plan, machines: &[u32]) -> String {
    let order = plan.placement.as_ref().map_or(String::new(), |placement| shown(&placement.order));
    let mut distinct = machines.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let apart = match distinct.len() {
        0 | 1 => "all in one machine".to_string(),
        count => format!(
            "in {count} machines; with `--transport auto` ranks of one share memory, and others go over TCP"
        ),
    };
    format!("{}: rank r stands on device r of the order {order}, {apart}", network.name)
}
