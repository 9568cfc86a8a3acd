//! All placements of few ranks, by branch and bound: loads only grow as ranks are placed, so a part that costs as much as the
//! best whole is left.

use super::loads::{Loads, Ways};
use super::{Cost, Traffic};
use crate::network::Network;

/// The best placement, the given one among equals.
pub(super) fn place(network: &Network, traffic: &Traffic, given: &[u32], before: Cost) -> Vec<u32> {
    let ranks = traffic.ranks() as usize;
    let mut bytes_of = vec![0u128; ranks];
    let mut flows: Vec<Vec<(u32, u64, bool)>> = vec![Vec::new(); ranks];
    for (from, to, bytes) in traffic.flows() {
        for rank in [from, to] {
            bytes_of[rank as usize] += u128::from(bytes);
        }
        flows[from as usize].push((to, bytes, true));
        flows[to as usize].push((from, bytes, false));
    }
    // Ranks that send much first: their mistakes are seen early.
    let mut order: Vec<u32> = (0..ranks as u32).collect();
    order.sort_by_key(|&rank| (std::cmp::Reverse(bytes_of[rank as usize]), rank));
    let mut search = Search {
        ways: Ways::new(network),
        loads: Loads::new(network),
        flows,
        order,
        device_of: vec![None; ranks],
        is_taken: vec![false; network.devices.len()],
        best: given.to_vec(),
        best_cost: before,
    };
    search.go(0);
    search.best
}

struct Search<'n> {
    ways: Ways<'n>,
    loads: Loads,
    /// Of each rank: the other, the bytes, whether it is the sender.
    flows: Vec<Vec<(u32, u64, bool)>>,
    order: Vec<u32>,
    device_of: Vec<Option<u32>>,
    is_taken: Vec<bool>,
    best: Vec<u32>,
    best_cost: Cost,
}

impl Search<'_> {
    fn go(&mut self, depth: usize) {
        let cost = Cost {
            bottleneck_us: self.loads.bottleneck_us(),
            total_us: self.loads.total_us,
            bottleneck: None,
        };
        if !cost.is_less_than(&self.best_cost) {
            return;
        }
        let Some(&rank) = self.order.get(depth) else {
            self.best = self.device_of.iter().map(|device| device.unwrap_or(0)).collect();
            self.best_cost = cost;
            return;
        };
        for device in 0..self.is_taken.len() as u32 {
            if self.is_taken[device as usize] {
                continue;
            }
            self.set(rank, device, true);
            self.go(depth + 1);
            self.set(rank, device, false);
        }
    }

    /// Puts a rank on a device, or takes it off.
    fn set(&mut self, rank: u32, device: u32, is_added: bool) {
        for &(other, bytes, is_sender) in &self.flows[rank as usize] {
            let Some(there) = self.device_of[other as usize] else { continue };
            let (from, to) = if is_sender { (device, there) } else { (there, device) };
            let loads = &mut self.loads;
            self.ways.with(from, to, |way| loads.put(way, bytes, is_added));
        }
        self.device_of[rank as usize] = is_added.then_some(device);
        self.is_taken[device as usize] = is_added;
    }
}
