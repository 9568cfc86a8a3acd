//! Whether there is a way between any two devices.
//!
//! Mostly one look tells: if there is a part of the network that passes things on and that every device touches, all is
//! well. One-way links, and devices that do not pass things on and touch different parts, need a search from each device.

use crate::description::{Duplex, Kind};
use crate::topology::Topology;

/// Up to so many devices, ways are searched for from each.
const SEARCHED_MAX: usize = 2_000;

/// Two devices, the first without a way to the second, if there are any.
pub(crate) fn apart(topology: &Topology) -> Option<(u32, u32)> {
    let devices = topology.devices();
    if devices.len() < 2 {
        return None;
    }
    let is_two_way = topology.wires.iter().all(|wire| wire.duplex != Duplex::OneWay);
    if is_two_way && have_part_in_common(topology, &devices) {
        return None;
    }
    let (out, back) = (neighbours(topology, false), neighbours(topology, true));
    let forwards = devices.iter().all(|&device| topology.nodes[device as usize].forwards);
    if forwards || devices.len() > SEARCHED_MAX {
        // Where all pass things on, the first device stands for all.
        let first = devices[0];
        let there = reached(topology, &out, first);
        let here = reached(topology, &back, first);
        let lost = |reached: &[bool]| devices.iter().copied().find(|&device| !reached[device as usize]);
        return lost(&there).map(|lost| (first, lost)).or_else(|| lost(&here).map(|lost| (lost, first)));
    }
    devices.iter().find_map(|&from| {
        let there = reached(topology, &out, from);
        devices.iter().copied().find(|&device| !there[device as usize]).map(|lost| (from, lost))
    })
}

/// Whether every device touches one part that passes things on.
fn have_part_in_common(topology: &Topology, devices: &[u32]) -> bool {
    let mut parts: Vec<u32> = (0..topology.nodes.len() as u32).collect();
    let passes = |at: u32| topology.nodes[at as usize].forwards;
    for wire in &topology.wires {
        if let [a, b] = wire.ends
            && passes(a)
            && passes(b)
        {
            let (a, b) = (root(&mut parts, a), root(&mut parts, b));
            parts[a.max(b) as usize] = a.min(b);
        }
    }
    let mut touched: Vec<Vec<u32>> = vec![Vec::new(); topology.nodes.len()];
    for wire in &topology.wires {
        for [from, to] in [wire.ends, [wire.ends[1], wire.ends[0]]] {
            if !passes(from) && passes(to) {
                touched[from as usize].push(root(&mut parts, to));
            }
        }
    }
    for &device in devices.iter().filter(|&&device| passes(device)) {
        touched[device as usize].push(root(&mut parts, device));
    }
    let mut common = std::mem::take(&mut touched[devices[0] as usize]);
    for &device in &devices[1..] {
        common.retain(|part| touched[device as usize].contains(part));
    }
    !common.is_empty()
}

fn root(parts: &mut [u32], mut at: u32) -> u32 {
    while parts[at as usize] != at {
        parts[at as usize] = parts[parts[at as usize] as usize];
        at = parts[at as usize];
    }
    at
}

fn neighbours(topology: &Topology, is_reversed: bool) -> Vec<Vec<u32>> {
    let mut neighbours = vec![Vec::new(); topology.nodes.len()];
    for wire in &topology.wires {
        let [a, b] = if is_reversed { [wire.ends[1], wire.ends[0]] } else { wire.ends };
        neighbours[a as usize].push(b);
        if wire.duplex != Duplex::OneWay {
            neighbours[b as usize].push(a);
        }
    }
    neighbours
}

fn reached(topology: &Topology, neighbours: &[Vec<u32>], from: u32) -> Vec<bool> {
    let mut reached = vec![false; topology.nodes.len()];
    reached[from as usize] = true;
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for &next in &neighbours[at as usize] {
            if !std::mem::replace(&mut reached[next as usize], true) {
                let node = &topology.nodes[next as usize];
                if node.forwards || node.kind != Kind::Device {
                    open.push(next);
                }
            }
        }
    }
    reached
}
