//! Placement: which rank runs on which device, so that what ranks send each other crosses slow links least.
//!
//! The cost of a placement is the time of its busiest link (bytes that cross it by its bandwidth); of placements that are equal
//! in that, the time of all links together, which is bytes by hops, each hop weighed by its slowness. Few ranks are placed
//! exactly, by branch and bound; more by a greedy start and a local search of fixed length and seed. Either way the answer is
//! the same each time, never costs more than the order as given, and says how it was found.

mod exact;
mod loads;
mod local;

use crate::network::{LinkId, Network};
use std::collections::BTreeMap;
use std::fmt;

/// As many arrangements are tried one by one: all of eight ranks on eight devices.
pub const EXACT_MAX: u64 = 50_000;

/// What ranks send each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    ranks: u32,
    flows: BTreeMap<(u32, u32), u64>,
}

impl Traffic {
    /// Of so many ranks that send nothing.
    pub fn new(ranks: u32) -> Traffic {
        Traffic { ranks, flows: BTreeMap::new() }
    }

    /// Adds bytes from one rank to another; what a rank sends itself crosses no link, and what a rank sends that is not among
    /// the ranks is refused.
    pub fn add(&mut self, from: u32, to: u32, bytes: u64) -> Result<(), PlaceError> {
        for rank in [from, to] {
            if rank >= self.ranks {
                return Err(PlaceError::NoSuchRank { rank, ranks: self.ranks });
            }
        }
        if from != to && bytes > 0 {
            let sum = self.flows.entry((from, to)).or_insert(0);
            *sum = sum.saturating_add(bytes);
        }
        Ok(())
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// From, to and bytes, in order.
    pub fn flows(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        self.flows.iter().map(|(&(from, to), &bytes)| (from, to, bytes))
    }
}

/// Why ranks cannot be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceError {
    /// More ranks than devices.
    TooFewDevices {
        /// The ranks.
        ranks: u32,
        /// The devices.
        devices: u32,
    },
    /// A rank that is not among the ranks.
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        ranks: u32,
    },
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceError::TooFewDevices { ranks, devices } => write!(
                f,
                "{ranks} ranks are to be placed, and the topology has {devices} devices; take fewer ranks or a larger topology"
            ),
            PlaceError::NoSuchRank { rank, ranks } => write!(f, "rank {rank} is none of the {ranks} ranks"),
        }
    }
}

impl std::error::Error for PlaceError {}

/// What a placement costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// What the busiest link takes to carry what crosses it, in microseconds.
    pub bottleneck_us: f64,
    /// What all links take, one after the other.
    pub total_us: f64,
    /// The busiest link, of equals the first; none if nothing crosses any.
    pub bottleneck: Option<LinkId>,
}

impl Cost {
    /// Whether it is less by more than rounding.
    fn is_less_than(&self, other: &Cost) -> bool {
        let less = |a: f64, b: f64| a < b - 1e-9 * b.abs();
        less(self.bottleneck_us, other.bottleneck_us)
            || (!less(other.bottleneck_us, self.bottleneck_us) && less(self.total_us, other.total_us))
    }
}

/// How a placement was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Nothing is sent: ranks stay as they are.
    AsGiven,
    /// No placement costs less.
    Exact,
    /// A greedy start and a local search: others may cost less.
    Searched,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::AsGiven => "as given",
            Method::Exact => "exact",
            Method::Searched => "greedy and local search",
        })
    }
}

/// Where ranks run. It maps ranks to devices and nothing else: which rank gives or gets which block stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// Each rank's device, a place in [`Network::devices`].
    pub device_of: Vec<u32>,
    /// How it was found.
    pub method: Method,
    /// The cost of rank r on device r.
    pub before: Cost,
    /// The cost of this placement.
    pub after: Cost,
}

/// Places ranks.
pub fn place(network: &Network, traffic: &Traffic) -> Result<Placement, PlaceError> {
    let given: Vec<u32> = (0..traffic.ranks).collect();
    let before = cost(network, traffic, &given)?;
    if traffic.flows.is_empty() {
        return Ok(Placement { device_of: given, method: Method::AsGiven, before, after: before });
    }
    let devices = network.devices.len() as u64;
    let arrangements = (0..u64::from(traffic.ranks))
        .try_fold(1u64, |product, taken| product.checked_mul(devices - taken).filter(|&p| p <= EXACT_MAX));
    let (device_of, method) = match arrangements {
        Some(_) => (exact::place(network, traffic, &given, before), Method::Exact),
        None => (local::place(network, traffic, &given, before), Method::Searched),
    };
    let after = cost(network, traffic, &device_of)?;
    // Rounding on the way never makes it worse than it was.
    if before.is_less_than(&after) {
        return Ok(Placement { device_of: given, method, before, after: before });
    }
    Ok(Placement { device_of, method, before, after })
}

/// What a placement costs: `device_of` has a device for each rank.
pub fn cost(network: &Network, traffic: &Traffic, device_of: &[u32]) -> Result<Cost, PlaceError> {
    let devices = network.devices.len() as u32;
    if traffic.ranks > devices || (device_of.len() as u64) < u64::from(traffic.ranks) {
        return Err(PlaceError::TooFewDevices {
            ranks: traffic.ranks,
            devices: devices.min(device_of.len() as u32),
        });
    }
    let mut loads = vec![0u128; network.links.len()];
    let mut way = Vec::new();
    for (from, to, bytes) in traffic.flows() {
        network.routes.route(device_of[from as usize], device_of[to as usize], &mut way);
        for &link in &way {
            loads[link as usize] += u128::from(bytes);
        }
    }
    let mut cost = Cost { bottleneck_us: 0.0, total_us: 0.0, bottleneck: None };
    for ((at, link), &load) in (0..).zip(&network.links).zip(&loads) {
        let us = load as f64 / link.bytes_per_us;
        cost.total_us += us;
        if us > cost.bottleneck_us {
            cost = Cost { bottleneck_us: us, bottleneck: Some(at), ..cost };
        }
    }
    Ok(cost)
}

/// The ranks of each machine, for schedules that go machine by machine: groups in the order of their first ranks, each in
/// ascending order. They may differ in size.
pub fn nodes(network: &Network, device_of: &[u32]) -> Vec<Vec<u32>> {
    let mut groups: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut place_of = BTreeMap::new();
    for (rank, &device) in (0u32..).zip(device_of) {
        let machine = network.devices[device as usize].machine;
        let at = *place_of.entry(machine).or_insert_with(|| {
            groups.push((machine, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(rank);
    }
    groups.into_iter().map(|(_, ranks)| ranks).collect()
}
