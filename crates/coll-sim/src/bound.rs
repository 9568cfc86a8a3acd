//! What no schedule can beat: the least that a contract asks of the busiest rank and the busiest machine, over what the
//! links that they have can take; and the least time in which word of one rank reaches as many others as it must.
//!
//! What must leave a set of devices crosses, on every way out, the way's first link; so the first links of all ways out
//! together bound it, and so do the second ones, and so on. The least of these sums is what is divided by.

mod spread;

use crate::table::Parts;
use coll_base::Fraction;
use coll_contract::{Blocks, BufferDecl, Classes, Contract, Ensure, Leaf, Value};
use coll_topo::{LinkId, Network};

/// A lower bound, and what it comes of.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The larger of the two below, in microseconds.
    pub us: f64,
    /// For word to spread.
    pub latency_us: f64,
    /// For bytes to leave and to come.
    pub bytes_us: f64,
}

/// What bounds a contract on a network, whatever the size.
pub(crate) struct Limits {
    /// The first buffer's blocks.
    blocks: u64,
    /// Microseconds for each byte of the sized buffer.
    byte_us: f64,
    latency_us: f64,
    message_us: f64,
}

/// The most devices for which the ways between all are gone through; beyond, bytes bound nothing.
const DEVICES_MAX: usize = 2048;

/// Links of a way, from its end, that are looked at as a cut.
const POSITIONS: usize = 8;

impl Limits {
    pub(crate) fn new(parts: &Parts, network: &Network, devices: &[u32]) -> Limits {
        let lead = parts.lead();
        let device = |device: &u32| &network.devices[*device as usize];
        let overhead_us = devices.iter().map(|d| device(d).message_us).fold(f64::INFINITY, f64::min);
        let hears = hears_most(parts);
        if devices.len() > DEVICES_MAX || hears <= 1 {
            // A way has at least one link.
            let links = network.links.iter().map(|link| link.latency_us);
            let least_us = links.fold(f64::INFINITY, f64::min);
            let latency_us = spread::spread_us(hears, overhead_us, least_us);
            return Limits { blocks: 1, byte_us: 0.0, latency_us, message_us: 0.0 };
        }
        let machine = |device: &u32| network.devices[*device as usize].machine;
        let machines = Groups::new(devices.iter().map(machine));
        let ranks = Groups::new(0..devices.len() as u32);
        let cuts = Cuts::new(network, devices, &machines);
        let latency_us = spread::spread_us(hears, overhead_us, cuts.least_latency_us);
        let mut byte_us = 0.0;
        if lead.is_whole() {
            for (groups, out, into) in
                [(ranks, cuts.ranks[0], cuts.ranks[1]), (machines, cuts.machines[0], cuts.machines[1])]
            {
                if groups.count < 2 {
                    continue;
                }
                let merged = merged(&lead.contract, &groups);
                let bounds = coll_contract::bounds(&merged);
                let of_buffer = |share: Fraction| share.to_f64() * f64::from(groups.most);
                byte_us = f64::max(byte_us, of_buffer(bounds.sent_max) / out);
                byte_us = f64::max(byte_us, of_buffer(bounds.received_max) / into);
            }
        }
        let blocks = lead.contract.buffers.first().map_or(1, |buffer| u64::from(buffer.blocks).max(1));
        Limits { blocks, byte_us, latency_us, message_us: 2.0 * overhead_us + cuts.least_latency_us }
    }

    /// The bound for so many elements of the sized buffer, and bytes that each is sent as.
    pub(crate) fn at(&self, elements: u64, sent_bytes: u64) -> Bound {
        // Blocks differ by an element where it does not divide; the bound counts the smallest.
        let elements = elements - elements % self.blocks;
        let bytes_us = elements as f64 * sent_bytes as f64 * self.byte_us;
        let bytes_us = if bytes_us > 0.0 { bytes_us + self.message_us } else { 0.0 };
        Bound { us: self.latency_us.max(bytes_us), latency_us: self.latency_us, bytes_us }
    }
}

/// The most ranks that one must hear of, with itself, or that must hear of one.
fn hears_most(parts: &Parts) -> u32 {
    let lead = parts.lead();
    if lead.is_whole() {
        let rounds = coll_contract::bounds(&lead.contract).rounds_one_port;
        return if rounds == 0 { 1 } else { (1 << (rounds - 1)) + 1 };
    }
    let hears = |rank: u32| {
        let contract = &parts.plan(rank).contract;
        let leaves = contract.ensures_of(rank).iter();
        let leaves = leaves.flat_map(|ensure| contract.values[ensure.value as usize].leaves());
        let mut heard: Vec<u32> = leaves.map(|leaf| leaf.rank).collect();
        heard.extend(contract.after.iter().filter(|(own, _)| *own == rank).map(|&(_, other)| other));
        heard.push(rank);
        heard.sort_unstable();
        heard.dedup();
        heard.len() as u32
    };
    (0..parts.world()).map(hears).max().unwrap_or(1)
}

/// Ranks by what they have in common.
struct Groups {
    /// The group of each rank, from 0.
    of: Vec<u32>,
    /// The number of each rank within its group.
    within: Vec<u32>,
    count: u32,
    /// Ranks of the largest group.
    most: u32,
}

impl Groups {
    fn new(keys: impl Iterator<Item = u32>) -> Groups {
        let mut groups = Groups { of: Vec::new(), within: Vec::new(), count: 0, most: 0 };
        let mut known: std::collections::BTreeMap<u32, (u32, u32)> = std::collections::BTreeMap::new();
        for key in keys {
            let next = known.len() as u32;
            let (group, size) = known.entry(key).or_insert((next, 0));
            groups.of.push(*group);
            groups.within.push(*size);
            *size += 1;
            groups.most = groups.most.max(*size);
        }
        groups.count = known.len() as u32;
        groups
    }
}

/// The contract of groups of ranks, each taken for one rank that has all their blocks. What it must send and receive, its
/// members together must.
fn merged(contract: &Contract, groups: &Groups) -> Contract {
    let block = |rank: u32, buffer: u32, block: u32| {
        groups.within[rank as usize] * contract.buffers[buffer as usize].blocks + block
    };
    let leaf = |leaf: &Leaf| Leaf {
        rank: groups.of[leaf.rank as usize],
        buffer: leaf.buffer,
        block: block(leaf.rank, leaf.buffer, leaf.block),
    };
    let value = |value: &Value| match value {
        Value::Copy(of) => Value::Copy(leaf(of)),
        Value::Reduce(leaves) => Value::Reduce(leaves.iter().map(leaf).collect()),
    };
    let ensure = |ensure: &Ensure| Ensure {
        rank: groups.of[ensure.rank as usize],
        buffer: ensure.buffer,
        block: block(ensure.rank, ensure.buffer, ensure.block),
        value: ensure.value,
    };
    let mut ensures: Vec<Ensure> = contract.ensures.iter().map(ensure).collect();
    ensures.sort_by_key(|ensure| (ensure.rank, ensure.buffer, ensure.block));
    let buffer = |buffer: &BufferDecl| BufferDecl { blocks: buffer.blocks * groups.most, ..buffer.clone() };
    Contract {
        collective: contract.collective.clone(),
        ranks: groups.count,
        only: None,
        buffers: contract.buffers.iter().map(buffer).collect(),
        given: contract.buffers.iter().map(|_| Blocks::None).collect(),
        ensures,
        values: contract.values.iter().map(value).collect(),
        after: Vec::new(),
        classes: Classes { count: 0, table: Vec::new() },
    }
}

/// What leaves and what enters the rank and the machine that can send and take most, in bytes a microsecond.
struct Cuts {
    ranks: [f64; 2],
    machines: [f64; 2],
    least_latency_us: f64,
}

impl Cuts {
    fn new(network: &Network, devices: &[u32], machines: &Groups) -> Cuts {
        let mut order: Vec<usize> = (0..devices.len()).collect();
        order.sort_by_key(|&rank| machines.of[rank]);
        let mut cuts = Cuts { ranks: [0.0; 2], machines: [0.0; 2], least_latency_us: f64::INFINITY };
        let mut way: Vec<LinkId> = Vec::new();
        for into in [false, true] {
            let mut by_rank = Sums::new(network.links.len());
            let mut by_machine = Sums::new(network.links.len());
            for (at, &own) in order.iter().enumerate() {
                let is_new = at == 0 || machines.of[order[at - 1]] != machines.of[own];
                by_rank.begin(&mut cuts.ranks[usize::from(into)]);
                if is_new {
                    by_machine.begin(&mut cuts.machines[usize::from(into)]);
                }
                for other in (0..devices.len()).filter(|&other| other != own) {
                    let (from, to) = if into { (other, own) } else { (own, other) };
                    network.routes.route(devices[from], devices[to], &mut way);
                    let latency_us = way.iter().map(|&link| network.links[link as usize].latency_us).sum();
                    cuts.least_latency_us = cuts.least_latency_us.min(latency_us);
                    if into {
                        way.reverse();
                    }
                    by_rank.add(network, &way);
                    if machines.of[own] != machines.of[other] {
                        by_machine.add(network, &way);
                    }
                }
            }
            by_rank.begin(&mut cuts.ranks[usize::from(into)]);
            by_machine.begin(&mut cuts.machines[usize::from(into)]);
        }
        cuts
    }
}

/// Sums, for the group that is under way, of the links at each position of its ways, each link once.
struct Sums {
    seen: Vec<[u32; POSITIONS]>,
    group: u32,
    sums: [f64; POSITIONS],
}

impl Sums {
    fn new(links: usize) -> Sums {
        Sums { seen: vec![[0; POSITIONS]; links], group: 0, sums: [0.0; POSITIONS] }
    }

    /// Ends the group that is under way, if there is one, and keeps its least cut if it is the largest yet.
    fn begin(&mut self, most: &mut f64) {
        if self.group > 0 {
            let least = self.sums.iter().copied().fold(f64::INFINITY, f64::min);
            *most = most.max(least);
        }
        self.group += 1;
        self.sums = [0.0; POSITIONS];
    }

    fn add(&mut self, network: &Network, way: &[LinkId]) {
        let Some(last) = way.len().checked_sub(1) else { return };
        for position in 0..POSITIONS {
            let link = way[position.min(last)] as usize;
            if std::mem::replace(&mut self.seen[link][position], self.group) != self.group {
                self.sums[position] += network.links[link].bytes_per_us;
            }
        }
    }
}
