//! Many ranks: a greedy start, then exchanges of two ranks, or moves to a free device, as long as they help.
//!
//! Exchanges are looked for where it matters: of the ranks whose messages cross the busiest link, each with every other
//! device, or with some of many; then of any two, drawn from a fixed seed, for less work of all links together. The work is
//! bounded by what is touched, not by the clock, so that the answer does not hang on the machine.

use super::loads::{Loads, Ways};
use super::{Cost, Traffic, cost};
use crate::network::Network;

/// The most steps over links in a search.
const TOUCHED_MAX: u64 = 6_000_000;
/// The most ways that the greedy start looks at.
const GREEDY_MAX: u64 = 4_000_000;
/// Devices that a rank is tried on.
const TRIED_MAX: usize = 64;
/// Draws without success after which the search ends, for each rank.
const DRAWS_OF_A_RANK: u64 = 20;

/// A placement that costs no more than the given one.
pub(super) fn place(network: &Network, traffic: &Traffic, given: &[u32], before: Cost) -> Vec<u32> {
    let ways = Ways::new(network);
    let flows = Flows::new(traffic);
    let mut start = given.to_vec();
    if let Some(greedy) = greedy(network, traffic, &flows, &ways)
        && cost(network, traffic, &greedy).is_ok_and(|cost| cost.is_less_than(&before))
    {
        start = greedy;
    }
    let mut search = Search::new(network, &ways, &flows, start);
    for (from, to, bytes) in traffic.flows() {
        search.put(from, to, bytes, true);
    }
    search.loads.touched = 0;
    search.improve();
    search.device_of
}

/// Flows by rank: the other, the bytes, whether the rank is the sender.
struct Flows(Vec<Vec<(u32, u64, bool)>>);

impl Flows {
    fn new(traffic: &Traffic) -> Flows {
        let mut flows = vec![Vec::new(); traffic.ranks() as usize];
        for (from, to, bytes) in traffic.flows() {
            flows[from as usize].push((to, bytes, true));
            flows[to as usize].push((from, bytes, false));
        }
        Flows(flows)
    }
}

/// The rank that has most to do with those that are placed goes where it has the least way to them.
fn greedy(network: &Network, traffic: &Traffic, flows: &Flows, ways: &Ways<'_>) -> Option<Vec<u32>> {
    let (ranks, devices) = (traffic.ranks() as usize, network.devices.len());
    let looks: u64 = 2 * traffic.flows().count() as u64 * devices as u64;
    if looks > GREEDY_MAX || ranks as u64 * ranks as u64 > 16 * GREEDY_MAX {
        return None;
    }
    let mut device_of: Vec<Option<u32>> = vec![None; ranks];
    let mut is_taken = vec![false; devices];
    let mut tied = vec![0u128; ranks];
    let all = |rank: usize| flows.0[rank].iter().map(|&(_, bytes, _)| u128::from(bytes)).sum::<u128>();
    let weights: Vec<u128> = (0..ranks).map(all).collect();
    for _ in 0..ranks {
        let open = (0..ranks).filter(|&rank| device_of[rank].is_none());
        let rank = open.max_by_key(|&rank| (tied[rank], weights[rank], std::cmp::Reverse(rank)))?;
        let mut best: Option<(f64, u32)> = None;
        for device in (0..devices as u32).filter(|&device| !is_taken[device as usize]) {
            let mut us = 0.0;
            for &(other, bytes, is_sender) in &flows.0[rank] {
                let Some(there) = device_of[other as usize] else { continue };
                let (from, to) = if is_sender { (device, there) } else { (there, device) };
                us += bytes as f64 * ways.byte_us(from, to);
            }
            if best.is_none_or(|(least, _)| us < least) {
                best = Some((us, device));
            }
        }
        let (_, device) = best?;
        device_of[rank] = Some(device);
        is_taken[device as usize] = true;
        for &(other, bytes, _) in &flows.0[rank] {
            tied[other as usize] += u128::from(bytes);
        }
    }
    device_of.into_iter().collect()
}

struct Search<'s> {
    ways: &'s Ways<'s>,
    flows: &'s Flows,
    loads: Loads,
    device_of: Vec<u32>,
    rank_on: Vec<Option<u32>>,
    /// SplitMix64 (Steele, Lea and Flood 2014), from a fixed seed.
    random: u64,
}

impl<'s> Search<'s> {
    fn new(network: &Network, ways: &'s Ways<'s>, flows: &'s Flows, device_of: Vec<u32>) -> Search<'s> {
        let mut rank_on = vec![None; network.devices.len()];
        for (rank, &device) in (0..).zip(&device_of) {
            rank_on[device as usize] = Some(rank);
        }
        Search { ways, flows, loads: Loads::new(network), device_of, rank_on, random: 1 }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }

    fn cost(&self) -> Cost {
        Cost { bottleneck_us: self.loads.bottleneck_us(), total_us: self.loads.total_us, bottleneck: None }
    }

    fn improve(&mut self) {
        while self.loads.touched < TOUCHED_MAX && self.relieve() {}
        let ranks = self.device_of.len();
        let mut vain = 0;
        while self.loads.touched < TOUCHED_MAX && vain < DRAWS_OF_A_RANK * ranks as u64 {
            let rank = self.draw(ranks) as u32;
            let device = self.draw(self.rank_on.len()) as u32;
            vain = if self.try_exchange(rank, device) { 0 } else { vain + 1 };
        }
    }

    /// One exchange that relieves the busiest link, if one is found.
    fn relieve(&mut self) -> bool {
        let busiest = self.loads.bottleneck();
        let mut crossing = Vec::new();
        for rank in 0..self.device_of.len() as u32 {
            for &(other, _, is_sender) in &self.flows.0[rank as usize] {
                let (from, to) = if is_sender { (rank, other) } else { (other, rank) };
                let (from, to) = (self.device_of[from as usize], self.device_of[to as usize]);
                let (crosses, length) = self.ways.with(from, to, |way| (way.contains(&busiest), way.len()));
                self.loads.touched += length as u64;
                if crosses {
                    crossing.push(rank);
                    break;
                }
            }
        }
        let devices = self.rank_on.len();
        for rank in crossing {
            for tried in 0..devices.min(TRIED_MAX) {
                let device = if devices <= TRIED_MAX { tried } else { self.draw(devices) };
                if self.try_exchange(rank, device as u32) {
                    return true;
                }
                if self.loads.touched >= TOUCHED_MAX {
                    return false;
                }
            }
        }
        false
    }

    /// Moves a rank to a device, and who is there to the rank's; back again unless that helps.
    fn try_exchange(&mut self, rank: u32, device: u32) -> bool {
        if self.device_of[rank as usize] == device {
            return false;
        }
        let before = self.cost();
        let home = self.device_of[rank as usize];
        self.exchange(rank, device);
        if self.cost().is_less_than(&before) {
            return true;
        }
        self.exchange(rank, home);
        false
    }

    fn exchange(&mut self, rank: u32, device: u32) {
        let home = self.device_of[rank as usize];
        let guest = self.rank_on[device as usize];
        self.lift(rank, guest, false);
        self.device_of[rank as usize] = device;
        self.rank_on[device as usize] = Some(rank);
        self.rank_on[home as usize] = guest;
        if let Some(guest) = guest {
            self.device_of[guest as usize] = home;
        }
        self.lift(rank, guest, true);
    }

    /// Takes off, or puts on, all that two ranks send and get; what they send each other once.
    fn lift(&mut self, rank: u32, guest: Option<u32>, is_added: bool) {
        let flows = self.flows;
        for moved in std::iter::once(rank).chain(guest) {
            for &(other, bytes, is_sender) in &flows.0[moved as usize] {
                if Some(moved) == guest && other == rank {
                    continue;
                }
                let (from, to) = if is_sender { (moved, other) } else { (other, moved) };
                self.put(from, to, bytes, is_added);
            }
        }
    }

    fn put(&mut self, from: u32, to: u32, bytes: u64, is_added: bool) {
        let (from, to) = (self.device_of[from as usize], self.device_of[to as usize]);
        let loads = &mut self.loads;
        self.ways.with(from, to, |way| loads.put(way, bytes, is_added));
    }
}
