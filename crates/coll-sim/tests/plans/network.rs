//! Networks with constants that one can reckon with.

use coll_topo::{Device, Link, LinkId, Network, Routes};
use std::sync::Arc;

/// Constants of all devices and links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants {
    pub(crate) message_us: f64,
    pub(crate) reduce_ns: f64,
    pub(crate) copy_ns: f64,
    pub(crate) bytes_per_us: f64,
    pub(crate) latency_us: f64,
}

impl Constants {
    /// Latency, and 1 GB/s; nothing else costs anything.
    pub(crate) const PLAIN: Constants =
        Constants { message_us: 0.0, reduce_ns: 0.0, copy_ns: 0.0, bytes_per_us: 1000.0, latency_us: 3.0 };

    fn devices(self, count: u32, per_machine: u32) -> Vec<Device> {
        let device = |at: u32| Device {
            name: format!("d{at}"),
            machine: at / per_machine,
            message_us: self.message_us,
            reduce_ns: self.reduce_ns,
            copy_ns: self.copy_ns,
        };
        (0..count).map(device).collect()
    }

    fn link(self, name: String, latency_us: f64) -> Link {
        Link { name, bytes_per_us: self.bytes_per_us, latency_us }
    }
}

/// Ways as a function: `(from, to, devices)` to links.
type Way = fn(u32, u32, u32) -> Vec<LinkId>;

struct ByRule {
    devices: u32,
    way: Way,
}

impl std::fmt::Debug for ByRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} devices", self.devices)
    }
}

impl Routes for ByRule {
    fn route(&self, from: u32, to: u32, way: &mut Vec<LinkId>) {
        way.clear();
        if from != to {
            way.extend((self.way)(from, to, self.devices));
        }
    }
}

fn network(name: &str, devices: Vec<Device>, links: Vec<Link>, way: Way) -> Network {
    let count = devices.len() as u32;
    Network { name: name.into(), devices, links, routes: Arc::new(ByRule { devices: count, way }) }
}

/// A link of its own for each ordered pair.
pub(crate) fn full(count: u32, constants: Constants) -> Network {
    let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    let links =
        pairs.map(|(from, to)| constants.link(format!("d{from}->d{to}"), constants.latency_us)).collect();
    network("full", constants.devices(count, 1), links, |from, to, n| vec![from * n + to])
}

/// One port a device, with a link out, which has the latency, and one in.
pub(crate) fn ports(count: u32, constants: Constants) -> Network {
    let out = (0..count).map(|at| constants.link(format!("d{at}->switch"), constants.latency_us));
    let into = (0..count).map(|at| constants.link(format!("switch->d{at}"), 0.0));
    let links = out.chain(into).collect();
    network("ports", constants.devices(count, 1), links, |from, to, n| vec![from, n + to])
}

/// As [`full`], and every way goes through a link more, of its own.
pub(crate) fn full_with_hop(count: u32, constants: Constants, hop_us: f64) -> Network {
    let plain = full(count, constants);
    let mut links = plain.links;
    let hops: Vec<Link> = links
        .iter()
        .map(|link| Link { name: format!("{}'", link.name), latency_us: hop_us, ..*link })
        .collect();
    links.extend(hops);
    network("full with a hop", constants.devices(count, 1), links, |from, to, n| {
        vec![from * n + to, n * n + from * n + to]
    })
}

/// One bus for all.
pub(crate) fn bus(count: u32, constants: Constants) -> Network {
    let links = vec![constants.link("bus".into(), constants.latency_us)];
    network("bus", constants.devices(count, count), links, |_, _, _| vec![0])
}

/// Machines of four devices: a port each, and a NIC of a quarter of a port's bandwidth between machines.
pub(crate) fn machines(count: u32, constants: Constants) -> Network {
    let nic = Constants { bytes_per_us: constants.bytes_per_us / 4.0, ..constants };
    let out = (0..count).map(|at| constants.link(format!("d{at}->switch"), constants.latency_us));
    let into = (0..count).map(|at| constants.link(format!("switch->d{at}"), 0.0));
    let nic_out = (0..count).map(|at| nic.link(format!("nic{at}->net"), 4.0 * constants.latency_us));
    let nic_in = (0..count).map(|at| nic.link(format!("net->nic{at}"), 0.0));
    let links = out.chain(into).chain(nic_out).chain(nic_in).collect();
    network("machines", constants.devices(count, 4), links, |from, to, n| match from / 4 == to / 4 {
        true => vec![from, n + to],
        false => vec![from, 2 * n + from / 4, 3 * n + to / 4, n + to],
    })
}
