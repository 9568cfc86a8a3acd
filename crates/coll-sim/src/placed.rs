//! Where the ranks of a plan stand best on a network: placed by what they send each other, and judged by a run in virtual
//! time. Placement goes by bytes on links and knows no time; so what it finds is taken only if it is predicted to be faster than
//! the order in which the network lists its devices.

use crate::table::{Parts, Table};
use crate::{Options, SimError, Simulator};
use coll_plan::Plan;
use coll_topo::Network;
use coll_topo::place::{self, Cost, Method, PlaceError, Traffic};

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
}

/// Times that differ by less than this share are taken to be equal.
const GAIN_MIN: f64 = 1e-6;

/// Places the ranks of a whole plan, or of all slices of one. Of the options, `order` is not looked at.
///
/// # Errors
/// As [`Simulator::new`] and [`Simulator::run`].
pub fn placed(plans: &[&Plan], network: &Network, options: &Options) -> Result<Placed, SimError> {
    let run = |order: Option<&[u32]>| -> Result<f64, SimError> {
        Ok(Simulator::new(plans.to_vec(), network, order)?.run(options)?.time_us)
    };
    let listed_us = run(None)?;
    let traffic = traffic(plans, options)?;
    let found = place::place(network, &traffic).map_err(|error| refused(network, &traffic, error))?;
    let found_us = run(Some(&found.device_of))?;
    let taken = found_us < listed_us * (1.0 - GAIN_MIN);
    let order = if taken { found.device_of } else { (0..traffic.ranks()).collect() };
    let (method, before, after) = (found.method, found.before, found.after);
    Ok(Placed { order, method, taken, before, after, listed_us, found_us })
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
