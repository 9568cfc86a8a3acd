//! Where ranks stand, and the links between any two that talk.

use crate::SimError;
use crate::table::Table;
use coll_topo::{LinkId, Network};
use rustc_hash::FxHashMap;

/// The devices of ranks, and the way of each connection.
pub(crate) struct Ways {
    /// The device of each rank.
    pub(crate) devices: Vec<u32>,
    /// For each connection, its way.
    of_connection: Vec<u32>,
    ways: Vec<Way>,
    links: Vec<LinkId>,
}

/// From one rank to another.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    start: u32,
    end: u32,
    /// All its links' together.
    pub(crate) latency_us: f64,
    /// Its slowest link's.
    pub(crate) bytes_per_us: f64,
}

impl Ways {
    pub(crate) fn new(table: &Table, network: &Network, devices: Vec<u32>) -> Result<Ways, SimError> {
        let mut ways = Ways { devices, of_connection: Vec::new(), ways: Vec::new(), links: Vec::new() };
        let mut known: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut links = Vec::new();
        for connection in &table.connections {
            let pair = (connection.from, connection.to);
            let way = match known.get(&pair) {
                Some(&way) => way,
                None => {
                    let [from, to] = [pair.0, pair.1].map(|rank| ways.devices[rank as usize]);
                    network.routes.route(from, to, &mut links);
                    if links.is_empty() {
                        let name = |device: u32| network.devices[device as usize].name.clone();
                        return Err(SimError::NoWay { from: name(from), to: name(to) });
                    }
                    let way = ways.add(network, &links);
                    known.insert(pair, way);
                    way
                }
            };
            ways.of_connection.push(way);
        }
        Ok(ways)
    }

    fn add(&mut self, network: &Network, links: &[LinkId]) -> u32 {
        let of = |link: &LinkId| &network.links[*link as usize];
        let start = self.links.len() as u32;
        self.links.extend_from_slice(links);
        self.ways.push(Way {
            start,
            end: self.links.len() as u32,
            latency_us: links.iter().map(|link| of(link).latency_us).sum(),
            bytes_per_us: links.iter().map(|link| of(link).bytes_per_us).fold(f64::INFINITY, f64::min),
        });
        self.ways.len() as u32 - 1
    }

    pub(crate) fn of(&self, connection: u32) -> Way {
        self.ways[self.of_connection[connection as usize] as usize]
    }

    pub(crate) fn links(&self, way: Way) -> &[LinkId] {
        &self.links[way.start as usize..way.end as usize]
    }
}

/// The devices that ranks take: as they are listed, or in the order that is given.
pub(crate) fn devices(network: &Network, order: Option<&[u32]>, ranks: u32) -> Result<Vec<u32>, SimError> {
    let count = network.devices.len() as u32;
    let order: Vec<u32> = match order {
        None => (0..count).collect(),
        Some(order) => order.to_vec(),
    };
    if (order.len() as u64) < u64::from(ranks) {
        return Err(SimError::TooFewDevices {
            network: network.name.clone(),
            devices: order.len() as u32,
            ranks,
        });
    }
    let mut taken = vec![false; count as usize];
    for (rank, &device) in order.iter().take(ranks as usize).enumerate() {
        match taken.get_mut(device as usize) {
            None => return Err(SimError::NoDevice { rank: rank as u32, device, devices: count }),
            Some(taken) if *taken => {
                return Err(SimError::DeviceTwice { device: network.devices[device as usize].name.clone() });
            }
            Some(taken) => *taken = true,
        }
    }
    Ok(order[..ranks as usize].to_vec())
}

/// Refuses a network with times or rates that are none.
pub(crate) fn check(network: &Network) -> Result<(), SimError> {
    let wrong = |what: &str, field: &str, value: f64| SimError::Constant {
        what: what.to_string(),
        field: field.to_string(),
        value,
    };
    for device in &network.devices {
        let fields =
            [("message_us", device.message_us), ("reduce_ns", device.reduce_ns), ("copy_ns", device.copy_ns)];
        for (field, value) in fields {
            if !(value.is_finite() && value >= 0.0) {
                return Err(wrong(&device.name, field, value));
            }
        }
    }
    for link in &network.links {
        if !(link.bytes_per_us.is_finite() && link.bytes_per_us > 0.0) {
            return Err(wrong(&link.name, "bandwidth", link.bytes_per_us));
        }
        if !(link.latency_us.is_finite() && link.latency_us >= 0.0) {
            return Err(wrong(&link.name, "latency", link.latency_us));
        }
    }
    Ok(())
}
