//! A plan over many sizes, and where one overtakes another.

use crate::{Options, SimError, Simulator};
use coll_plan::Plan;
use coll_topo::{Device, Link, LinkId, Network, Routes};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is known of one plan for a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Messages on the longest chain.
    pub steps: u32,
    /// Messages in all.
    pub messages: u64,
    /// Bytes that links of one bandwidth and latency carry together at the largest size: the fastest links first.
    pub classes: Vec<(String, u128)>,
    /// Times at the sizes that were asked for, in their order.
    pub times: Vec<SizeTime>,
}

/// The time at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeTime {
    /// Bytes of the sized buffer: the size that was asked for, or the largest below that the contract takes.
    pub bytes: u64,
    /// What it takes, in microseconds.
    pub time_us: f64,
    /// What no schedule can beat, in microseconds.
    pub bound_us: f64,
}

/// Runs a plan, or all slices of one, at each of the sizes.
///
/// # Errors
/// As [`Simulator::new`] and [`Simulator::run`].
pub fn compare(
    plans: &[&Plan],
    network: &Network,
    options: &Options,
    sizes: &[u64],
) -> Result<Comparison, SimError> {
    let simulator = Simulator::new(plans.to_vec(), network, options.order.as_deref())?;
    let mut comparison =
        Comparison { steps: steps(plans)?, messages: 0, classes: Vec::new(), times: Vec::new() };
    for &size in sizes {
        let run = |bytes| simulator.run(&Options { bytes, ..options.clone() });
        let (bytes, found) = match run(size) {
            Err(SimError::Bytes(uneven)) => {
                let unit = u64::from(uneven.blocks).saturating_mul(options.element.given_bytes);
                let bytes = size - size % unit.max(1);
                (bytes, run(bytes)?)
            }
            found => (size, found?),
        };
        comparison.times.push(SizeTime { bytes, time_us: found.time_us, bound_us: found.bound.us });
        comparison.messages = found.messages;
        comparison.classes = classes(network, &found.links);
    }
    Ok(comparison)
}

/// Bytes by kind of link.
fn classes(network: &Network, links: &[crate::LinkUse]) -> Vec<(String, u128)> {
    let mut sums: BTreeMap<(u64, u64), u128> = BTreeMap::new();
    for used in links {
        let link = &network.links[used.link as usize];
        // Neither is negative, so their bits are ordered as they are; the fastest come first.
        *sums.entry((u64::MAX - link.bytes_per_us.to_bits(), link.latency_us.to_bits())).or_default() +=
            used.bytes;
    }
    let name = |(rate, latency): (u64, u64)| {
        let (rate, latency) = (f64::from_bits(u64::MAX - rate), f64::from_bits(latency));
        format!("{} GB/s, {latency} µs", rate / 1000.0)
    };
    sums.into_iter().map(|(class, bytes)| (name(class), bytes)).collect()
}

/// All on one link without limits whose latency is 1 µs.
#[derive(Debug)]
struct OneLink;

impl Routes for OneLink {
    fn route(&self, from: u32, to: u32, way: &mut Vec<LinkId>) {
        way.clear();
        if from != to {
            way.push(0);
        }
    }
}

/// Messages on the longest chain: the time of a run in which messages take 1 µs and nothing else takes any.
fn steps(plans: &[&Plan]) -> Result<u32, SimError> {
    let ranks = plans.first().map_or(0, |plan| plan.world());
    let device = |rank: u32| Device {
        name: rank.to_string(),
        machine: 0,
        message_us: 0.0,
        reduce_ns: 0.0,
        copy_ns: 0.0,
    };
    let network = Network {
        name: "steps".into(),
        devices: (0..ranks).map(device).collect(),
        links: vec![Link { name: "all".into(), bytes_per_us: 1.0, latency_us: 1.0 }],
        routes: Arc::new(OneLink),
    };
    Ok(crate::predict(plans, &network, &Options::default())?.time_us.round() as u32)
}

/// Where, going up in size, the fastest is overtaken: about which size, by their numbers which, and by which. All have the
/// same sizes. Between two sizes times are taken to be straight lines.
pub fn crossovers(all: &[Comparison]) -> Vec<(u64, usize, usize)> {
    let count = all.iter().map(|one| one.times.len()).min().unwrap_or(0);
    let time = |one: usize, at: usize| all[one].times[at].time_us;
    let fastest = |at: usize| {
        (0..all.len())
            .reduce(|best, one| if time(one, at) < time(best, at) { one } else { best })
            .unwrap_or(0)
    };
    let mut found = Vec::new();
    let mut best = if count > 0 { fastest(0) } else { 0 };
    for at in 1..count {
        let next = fastest(at);
        if next == best || time(next, at) >= time(best, at) {
            continue;
        }
        let before = time(next, at - 1) - time(best, at - 1);
        let after = time(best, at) - time(next, at);
        let (low, high) = (all[next].times[at - 1].bytes as f64, all[next].times[at].bytes as f64);
        let share = if before + after > 0.0 { before / (before + after) } else { 0.0 };
        found.push(((low + share * (high - low)).round() as u64, best, next));
        best = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossovers_are_where_lines_meet() {
        let line = |latency: f64, byte: f64| {
            let times = [1u64, 2, 4, 8, 16, 32].map(|bytes| SizeTime {
                bytes,
                time_us: latency + byte * bytes as f64,
                bound_us: 0.0,
            });
            Comparison { steps: 0, messages: 0, classes: Vec::new(), times: times.to_vec() }
        };
        // 1 + 2x, 7 + x, 27 + 0.1x: they meet at 6 and at 22.2.
        let all = [line(27.0, 0.1), line(1.0, 2.0), line(7.0, 1.0)];
        assert_eq!(crossovers(&all), [(6, 1, 2), (22, 2, 0)]);
        assert_eq!(crossovers(&all[..1]), []);
        assert_eq!(crossovers(&[]), []);
    }
}
