//! What is to be said of a topology at a glance: ways by kind, and what the halves can send each other.

mod flow;

use crate::description::Kind;
use crate::network::Network;
use crate::topology::Topology;
use std::collections::BTreeMap;

/// Up to so many devices, every pair is looked at.
const PAIRED_MAX: usize = 256;
/// Up to so many wires, halves are compared.
const CUT_MAX: usize = 400_000;
/// Halvings that are compared, at most.
const HALVINGS_MAX: u32 = 6;

/// Figures of a topology.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Machines.
    pub machines: usize,
    /// Devices.
    pub devices: usize,
    /// NICs.
    pub nics: usize,
    /// Switches: bridges and processors included.
    pub switches: usize,
    /// Wires.
    pub wires: usize,
    /// Kinds of ways between devices, the shortest first.
    pub classes: Vec<Class>,
    /// Whether every pair of devices was looked at, not a sample of 256 devices.
    pub is_whole: bool,
    /// What the halves can send each other; none of one device, or of too many wires.
    pub bisection: Option<Bisection>,
}

/// Ways that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Between devices of one machine.
    pub within_machine: bool,
    /// Links that are crossed.
    pub links: usize,
    /// The narrowest, in bytes in a microsecond.
    pub bytes_per_us: f64,
    /// All together, in microseconds.
    pub latency_us: f64,
    /// How many ordered pairs of devices have such a way.
    pub pairs: u64,
    /// The names of the first such pair.
    pub example: [String; 2],
}

/// What one half of the devices can send the other at once.
///
/// The least cut over all halves is hard to find (it is NP-hard), so it is the least of some: the first half of the devices
/// against the second, then blocks of a quarter, an eighth and so on, alternating. Of a grid of powers of two these cut every
/// dimension in the middle. Of each halving the largest flow is exact (Dinic 1970), over all ways, not only those that are
/// taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bisection {
    /// The least, in bytes in a microsecond.
    pub bytes_per_us: f64,
    /// How many halvings were compared.
    pub halvings: u32,
}

impl Summary {
    /// Looks at a topology.
    pub fn new(topology: &Topology) -> Summary {
        let network = topology.network();
        let (classes, is_whole) = classes(&network);
        Summary {
            machines: topology.machines.len(),
            devices: topology.count(Kind::Device),
            nics: topology.count(Kind::Nic),
            switches: topology.count(Kind::Switch),
            wires: topology.wires.len(),
            classes,
            is_whole,
            bisection: bisection(topology),
        }
    }
}

/// All devices, or of too many the first half of as many, for what is near, and the other half at equal distances.
fn sample(count: usize) -> Vec<u32> {
    if count <= PAIRED_MAX {
        return (0..count as u32).collect();
    }
    let half = PAIRED_MAX / 2;
    let spread = (0..half).map(|i| (half + i * (count - half) / half) as u32);
    (0..half as u32).chain(spread).collect()
}

/// Within a machine first; then links, bandwidth downwards, latency.
type Key = (bool, usize, std::cmp::Reverse<u64>, u64);

fn classes(network: &Network) -> (Vec<Class>, bool) {
    let count = network.devices.len();
    let is_whole = count <= PAIRED_MAX;
    let sample = sample(count);
    let mut classes: BTreeMap<Key, (u64, [u32; 2])> = BTreeMap::new();
    let mut way = Vec::new();
    for &from in &sample {
        for &to in sample.iter().filter(|&&to| to != from) {
            network.routes.route(from, to, &mut way);
            let links = way.iter().map(|&link| &network.links[link as usize]);
            let width = links.clone().map(|link| link.bytes_per_us).fold(f64::INFINITY, f64::min);
            let latency: f64 = links.map(|link| link.latency_us).sum();
            let [one, other] = [from, to].map(|device| network.devices[device as usize].machine);
            // Bits of positive floats are in their order; picoseconds make sums in another order equal.
            let key =
                (one != other, way.len(), std::cmp::Reverse(width.to_bits()), (latency * 1e6).round() as u64);
            classes.entry(key).or_insert((0, [from, to])).0 += 1;
        }
    }
    let class = |((between, links, width, latency), (pairs, example)): (Key, (u64, [u32; 2]))| Class {
        within_machine: !between,
        links,
        bytes_per_us: f64::from_bits(width.0),
        latency_us: latency as f64 / 1e6,
        pairs,
        example: example.map(|device| network.devices[device as usize].name.clone()),
    };
    (classes.into_iter().map(class).collect(), is_whole)
}

fn bisection(topology: &Topology) -> Option<Bisection> {
    let devices = topology.devices();
    if devices.len() < 2 || topology.wires.len() > CUT_MAX {
        return None;
    }
    let mut found: Option<Bisection> = None;
    for digit in 1..=HALVINGS_MAX {
        let blocks = 1usize << digit;
        if digit > 1 && !devices.len().is_multiple_of(blocks) {
            break;
        }
        let is_first = |place: usize| (place * blocks / devices.len()).is_multiple_of(2);
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for (place, &device) in devices.iter().enumerate() {
            if is_first(place) { one.push(device) } else { other.push(device) }
        }
        let flow = flow::largest(topology, &one, &other);
        let least = found.map_or(f64::INFINITY, |found| found.bytes_per_us);
        found = Some(Bisection { bytes_per_us: flow.min(least), halvings: digit });
    }
    found
}
