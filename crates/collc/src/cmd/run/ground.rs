//! `--topology`: a run whose plan is fitted to a topology, and whose ranks stand where the plan says.
//!
//! Ranks that the topology has in one machine are started as ranks of one machine, and those of others as if they were on
//! another: with `--transport auto` or `threads` the first share memory and the second are reached over TCP. With `cuda` each has
//! the device of its number, and as a process reaches those of other machines over TCP. So the order of ranks is what runs, as far as one machine can show it.

use crate::args::{RunArgs, TransportKind};
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

/// Where ranks stand on a topology; without one nothing is said.
#[derive(Default)]
pub(super) struct Standing {
    /// The machine of each rank.
    pub(super) machines: Vec<u32>,
    /// The name of each rank's device.
    pub(super) devices: Vec<String>,
}

impl Standing {
    /// As the plan is placed.
    pub(super) fn of(network: &Network, plan: &Plan) -> Standing {
        let order = plan.placement.as_ref().map_or(&[][..], |placement| &placement.order);
        let devices = || order.iter().filter_map(|&device| network.devices.get(device as usize));
        Standing {
            machines: devices().map(|device| device.machine).collect(),
            devices: devices().map(|device| device.name.clone()).collect(),
        }
    }
}

/// Memory that ranks are to share, and a topology on which they do not.
pub(super) fn refuse_apart(args: &RunArgs, standing: &Standing) -> Result<(), Failure> {
    let other = standing.machines.iter().position(|machine| *machine != standing.machines[0]);
    match (args.transport, other) {
        (TransportKind::Shm, Some(rank)) => Err(Failure::unusable(format!(
            "ranks are to share memory, and rank {rank} stands on `{}`, in another machine than rank 0",
            standing.devices[rank]
        ))
        .help("`--transport auto` reaches ranks of other machines over TCP")),
        _ => Ok(()),
    }
}

/// A plan that was read, placed: as `--place` says, else as the plan says, else in the topology's order. One rank's part says
/// itself where all ranks stand.
pub(super) fn placed(args: &RunArgs, fitting: &Fitting, plan: Plan) -> Result<Plan, Failure> {
    let network = fitting.network();
    if !plan.is_whole() && fitting.wish().is_some() {
        return Err(Failure::unusable(format!(
            "`{}` is one rank's part: where it stands depends on all",
            args.target
        ))
        .help("leave `--place` or COLLC_DEVICES out, or give the whole plan"));
    }
    let element = crate::cmd::sim::planned::element(&plan, args.dtype);
    let options = Options { bytes: Call::asked(args).bytes, element, ..Options::default() };
    let options = Options { bytes: coll_sim::size_taken_bytes(&plan, &options), ..options };
    let wish = fitting.wish();
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

/// What is said of where ranks stand, and how far the transport goes by it.
pub(super) fn told(args: &RunArgs, network: &Network, plan: &Plan, standing: &Standing) -> String {
    let order = plan.placement.as_ref().map_or(String::new(), |placement| shown(&placement.order));
    let mut distinct = standing.machines.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let apart = match (distinct.len(), args.transport) {
        (count, TransportKind::Cuda) => {
            let over = if count > 1 && (args.processes || args.ranks.is_none()) {
                format!(", in {count} machines, which reach each other over TCP")
            } else {
                String::new()
            };
            format!("each on the CUDA device of that number, if there are so many{over}")
        }
        (0 | 1, _) => "all in one machine".to_string(),
        (count, TransportKind::Auto | TransportKind::Threads) => {
            format!("in {count} machines: ranks of one share memory, and others go over TCP")
        }
        (count, TransportKind::Tcp | TransportKind::Shm) => format!(
            "in {count} machines; all go over TCP, and with `--transport auto` ranks of one would share memory"
        ),
    };
    format!("{}: rank r stands on device r of the order {order}, {apart}", network.name)
}
