//! What crosses each link, and which link is busiest, while ranks are moved.

use crate::network::{LinkId, Network};
use std::cell::RefCell;

/// Ways are kept for up to so many devices.
const TABLE_MAX: usize = 256;

/// Ways between devices, kept if they are few.
pub(super) struct Ways<'n> {
    network: &'n Network,
    table: Option<Vec<Vec<LinkId>>>,
    scratch: RefCell<Vec<LinkId>>,
}

impl<'n> Ways<'n> {
    pub(super) fn new(network: &'n Network) -> Ways<'n> {
        let count = network.devices.len();
        let table = (count <= TABLE_MAX).then(|| {
            let pairs = (0..count as u32).flat_map(|from| (0..count as u32).map(move |to| (from, to)));
            let way = |(from, to)| {
                let mut way = Vec::new();
                network.routes.route(from, to, &mut way);
                way
            };
            pairs.map(way).collect()
        });
        Ways { network, table, scratch: RefCell::new(Vec::new()) }
    }

    /// Shows the way to `look`.
    pub(super) fn with<T>(&self, from: u32, to: u32, look: impl FnOnce(&[LinkId]) -> T) -> T {
        match &self.table {
            Some(table) => look(&table[from as usize * self.network.devices.len() + to as usize]),
            None => {
                let mut way = self.scratch.borrow_mut();
                self.network.routes.route(from, to, &mut way);
                look(&way)
            }
        }
    }

    /// Microseconds that a byte takes of the links of a way, all together.
    pub(super) fn byte_us(&self, from: u32, to: u32) -> f64 {
        let links = &self.network.links;
        self.with(from, to, |way| way.iter().map(|&link| 1.0 / links[link as usize].bytes_per_us).sum())
    }
}

/// Loads of links in a tournament: each knows its time, and the root the busiest.
pub(super) struct Loads {
    bytes: Vec<u128>,
    byte_us: Vec<f64>,
    /// A heap of pairs' winners; leaves begin at `leaves`.
    times: Vec<f64>,
    leaves: usize,
    pub(super) total_us: f64,
    /// Links that were touched, as a measure of work.
    pub(super) touched: u64,
}

impl Loads {
    pub(super) fn new(network: &Network) -> Loads {
        let count = network.links.len();
        let leaves = count.next_power_of_two().max(1);
        Loads {
            bytes: vec![0; count],
            byte_us: network.links.iter().map(|link| 1.0 / link.bytes_per_us).collect(),
            times: vec![0.0; 2 * leaves],
            leaves,
            total_us: 0.0,
            touched: 0,
        }
    }

    /// What the busiest link takes.
    pub(super) fn bottleneck_us(&self) -> f64 {
        self.times[1]
    }

    /// The busiest link, of equals the first.
    pub(super) fn bottleneck(&self) -> LinkId {
        let mut at = 1;
        while at < self.leaves {
            at = if self.times[2 * at] >= self.times[2 * at + 1] { 2 * at } else { 2 * at + 1 };
        }
        (at - self.leaves) as LinkId
    }

    /// Puts bytes on the links of a way, or takes them off.
    pub(super) fn put(&mut self, way: &[LinkId], bytes: u64, is_added: bool) {
        self.touched += way.len() as u64;
        for &link in way {
            let link = link as usize;
            let before = self.bytes[link] as f64 * self.byte_us[link];
            match is_added {
                true => self.bytes[link] += u128::from(bytes),
                false => self.bytes[link] -= u128::from(bytes),
            }
            let after = self.bytes[link] as f64 * self.byte_us[link];
            self.total_us += after - before;
            let mut at = self.leaves + link;
            self.times[at] = after;
            while at > 1 {
                at /= 2;
                self.times[at] = self.times[2 * at].max(self.times[2 * at + 1]);
            }
        }
    }
}
