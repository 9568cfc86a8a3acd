//! Where the ranks of a plan stand best on a network: placed by what they send each other, and judged by runs in virtual
//! time.
//!
//! Placement by bytes on links ([`coll_topo::place`]) is quick and knows no time: of a schedule with many small messages in a row
//! it sees nothing, nor that two links are busy one after the other. So runs decide. Where few ranks of a small plan make it
//! cheap, every order is run, and the fastest is taken: *exact by time*. Of others the better of the network's own order and the
//! one that was found by bytes is changed by exchanges of ranks on the critical path, as long as a run gets faster, for a number of
//! runs that the plan's size bounds. What that misses a longer search may find. Either way the answer is the same each time.

use crate::table::{Parts, Table};
use crate::{Options, Prediction, SimError, Simulator};
use coll_plan::Plan;
use coll_topo::Network;
use coll_topo::place::{self, Cost, Method, PlaceError, Traffic};
use std::collections::BTreeMap;

/// Where ranks stand, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// The device of each rank.
    pub order: Vec<u32>,
    /// How the placement was found.
    pub method: Method,
    /// Whether it was taken: if not, ranks stand as the network lists its devices.
    pub taken: bool,
    /// What links take to carry all, in the network's order.
    pub before: Cost,
    /// The same, in the order that was found.
    pub after: Cost,
    /// What a run takes in the network's order, in microseconds.
    pub listed_us: f64,
    /// What it takes in the order that was found.
    pub found_us: f64,
    /// How runs decided.
    pub by_time: ByTime,
}

/// How runs in virtual time had a say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByTime {
    /// All orders were run, so many: none is faster.
    All(u64),
    /// Exchanges were tried, and some kept.
    Exchanges {
        /// Runs.
        tried: u64,
        /// Exchanges that made it faster.
        kept: u64,
    },
}

/// Times that differ by less than this share are taken to be equal.
const GAIN_MIN: f64 = 1e-6;

/// So many operations are run for one placement, all runs together.
const OPS_MAX: u64 = 400_000;

/// Devices that a rank on the critical path is tried on before the next one's turn.
const TRIED_MAX: usize = 24;

/// Places the ranks of a whole plan, or of all slices of one. Of the options, `order` is not looked at.
///
/// # Errors
/// As [`Simulator::new`] and [`Simulator::run`].
pub fn placed(plans: &[&Plan], network: &Network, options: &Options) -> Result<Placed, SimError> {
    let traffic = traffic(plans, options)?;
    let run = |order: &[u32]| -> Result<Prediction, SimError> {
        Simulator::new(plans.to_vec(), network, Some(order))?.run(options)
    };
    let found = place::place(network, &traffic).map_err(|error| refused(network, &traffic, error))?;
    let listed: Vec<u32> = (0..traffic.ranks()).collect();
    let start = run(&listed)?;
    let listed_us = start.time_us;
    let mut best = Best { order: listed.clone(), run: start };
    let ops = plans.iter().flat_map(|plan| &plan.ranks).map(|part| part.ops.len() as u64).sum::<u64>();
    let runs = OPS_MAX / ops.max(1);
    let by_time = match orders(traffic.ranks(), network.devices.len() as u64, runs) {
        Some(all) => {
            let mut tried = listed.clone();
            let mut is_taken = vec![false; network.devices.len()];
            every(&mut tried, 0, &mut is_taken, &mut |order| best.take(order, &run))?;
            ByTime::All(all)
        }
        None => {
            best.take(&found.device_of, &run)?;
            exchange(&mut best, network, runs, &run)?
        }
    };
    let taken = best.order != listed;
    let (method, before) = (found.method, found.before);
    let after =
        place::cost(network, &traffic, &best.order).map_err(|error| refused(network, &traffic, error))?;
    Ok(Placed {
        order: best.order,
        method,
        taken,
        before,
        after,
        listed_us,
        found_us: best.run.time_us,
        by_time,
    })
}

/// A run of an order.
type Run<'r> = dyn Fn(&[u32]) -> Result<Prediction, SimError> + 'r;

/// The fastest order so far.
struct Best {
    order: Vec<u32>,
    run: Prediction,
}

impl Best {
    /// Takes an order if it is faster.
    fn take(&mut self, order: &[u32], run: &Run<'_>) -> Result<bool, SimError> {
        let tried = run(order)?;
        let is_faster = tried.time_us < self.run.time_us * (1.0 - GAIN_MIN);
        if is_faster {
            *self = Best { order: order.to_vec(), run: tried };
        }
        Ok(is_faster)
    }
}

/// How many orders there are, if no more than so many.
fn orders(ranks: u32, devices: u64, most: u64) -> Option<u64> {
    (0..u64::from(ranks)).try_fold(1u64, |product, taken| {
        product.checked_mul(devices.checked_sub(taken)?).filter(|&product| product <= most)
    })
}

/// Shows every order that begins as `order` does up to `at`.
fn every(
    order: &mut [u32],
    at: usize,
    is_taken: &mut [bool],
    look: &mut impl FnMut(&[u32]) -> Result<bool, SimError>,
) -> Result<(), SimError> {
    if at == order.len() {
        return look(order).map(|_| ());
    }
    for device in 0..is_taken.len() {
        if !is_taken[device] {
            (order[at], is_taken[device]) = (device as u32, true);
            every(order, at + 1, is_taken, look)?;
            is_taken[device] = false;
        }
    }
    Ok(())
}

/// Exchanges ranks on the critical path with others, or moves them to devices that are free, as long as a run gets faster.
fn exchange(best: &mut Best, network: &Network, runs: u64, run: &Run<'_>) -> Result<ByTime, SimError> {
    let (mut tried, mut kept) = (0, 0);
    let devices = network.devices.len();
    'search: loop {
        for rank in on_path(&best.run) {
            // Devices far apart in the list are in different machines: they come early.
            let stride = devices / TRIED_MAX.min(devices) + 1;
            let spread = (0..stride).flat_map(|first| (first..devices).step_by(stride));
            for device in spread.take(TRIED_MAX) {
                if tried >= runs {
                    return Ok(ByTime::Exchanges { tried, kept });
                }
                let mut order = best.order.clone();
                let home = order[rank as usize];
                if home == device as u32 {
                    continue;
                }
                if let Some(guest) = order.iter().position(|&taken| taken == device as u32) {
                    order[guest] = home;
                }
                order[rank as usize] = device as u32;
                tried += 1;
                if best.take(&order, run)? {
                    kept += 1;
                    continue 'search;
                }
            }
        }
        return Ok(ByTime::Exchanges { tried, kept });
    }
}

/// The ranks of the critical path, those that it spends most time on first.
fn on_path(run: &Prediction) -> Vec<u32> {
    let mut times: BTreeMap<u32, f64> = BTreeMap::new();
    run.path.iter().for_each(|step| *times.entry(step.rank).or_default() += step.took_us);
    let mut ranks: Vec<(u32, f64)> = times.into_iter().collect();
    ranks.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranks.into_iter().map(|(rank, _)| rank).collect()
}

/// The size that options have, or the largest below it that the plan's contract takes: blocks of equal length divide it.
pub fn size_taken_bytes(plan: &Plan, options: &Options) -> u64 {
    let element = options.element.given_bytes.max(1);
    let elements = if plan.contract.buffers.is_empty() { 0 } else { options.bytes / element };
    match plan.contract.counts(elements) {
        Ok(_) => options.bytes,
        Err(uneven) => {
            let unit = u64::from(uneven.blocks).saturating_mul(element).max(1);
            options.bytes - options.bytes % unit
        }
    }
}

/// Bytes that ranks send each other in one run.
///
/// # Errors
/// Parts that are missing, and a size that the contract does not take.
pub fn traffic(plans: &[&Plan], options: &Options) -> Result<Traffic, SimError> {
    let parts = Parts::new(plans)?;
    let elements = options.bytes / options.element.given_bytes.max(1);
    let table = Table::new(&parts, elements, options.stream)?;
    let mut traffic = Traffic::new(parts.world());
    for connection in &table.connections {
        let sent: u64 = connection.sends.iter().map(|&send| table.elements[send as usize]).sum();
        let bytes = sent.saturating_mul(options.element.sent_bytes);
        traffic
            .add(connection.from, connection.to, bytes)
            .expect("invariant: a verified plan names only ranks of its own");
    }
    Ok(traffic)
}

fn refused(network: &Network, traffic: &Traffic, error: PlaceError) -> SimError {
    let devices = match error {
        PlaceError::TooFewDevices { devices, .. } => devices,
        _ => network.devices.len() as u32,
    };
    SimError::TooFewDevices { network: network.name.clone(), devices, ranks: traffic.ranks() }
}
