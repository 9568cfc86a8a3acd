//! The largest flow from some devices to others (Dinic 1970): levels by breadth, then ways along them until none is left.

use crate::description::Duplex;
use crate::topology::Topology;

/// Less than this is nothing, in bytes in a microsecond.
const NOTHING: f64 = 1e-9;

struct Edge {
    to: u32,
    left: f64,
}

/// Edges lie in pairs, each the other's way back.
struct Flow {
    edges: Vec<Edge>,
    out: Vec<Vec<u32>>,
}

impl Flow {
    fn join(&mut self, from: u32, to: u32, forth: f64, back: f64) {
        for (a, b, left) in [(from, to, forth), (to, from, back)] {
            self.out[a as usize].push(self.edges.len() as u32);
            self.edges.push(Edge { to: b, left });
        }
    }

    fn levels(&self, source: u32) -> Vec<u32> {
        let mut level = vec![u32::MAX; self.out.len()];
        level[source as usize] = 0;
        let mut open = std::collections::VecDeque::from([source]);
        while let Some(at) = open.pop_front() {
            for &edge in &self.out[at as usize] {
                let Edge { to, left } = self.edges[edge as usize];
                if left > NOTHING && level[to as usize] == u32::MAX {
                    level[to as usize] = level[at as usize] + 1;
                    open.push_back(to);
                }
            }
        }
        level
    }

    /// Fills ways of one level after another until none is left; gives what flowed.
    fn fill(&mut self, source: u32, sink: u32, level: &[u32]) -> f64 {
        let mut next = vec![0usize; self.out.len()];
        let mut way: Vec<u32> = Vec::new();
        let (mut at, mut total) = (source, 0.0);
        loop {
            if at == sink {
                let least =
                    way.iter().map(|&edge| self.edges[edge as usize].left).fold(f64::INFINITY, f64::min);
                total += least;
                for &edge in &way {
                    self.edges[edge as usize].left -= least;
                    self.edges[edge as usize ^ 1].left += least;
                }
                // Back to where the way is full.
                let full =
                    way.iter().position(|&edge| self.edges[edge as usize].left <= NOTHING).unwrap_or(0);
                at = self.edges[way[full] as usize ^ 1].to;
                way.truncate(full);
                continue;
            }
            let out = &self.out[at as usize];
            match out.get(next[at as usize]) {
                Some(&edge) => {
                    let Edge { to, left } = self.edges[edge as usize];
                    if left > NOTHING && level[to as usize] == level[at as usize] + 1 {
                        way.push(edge);
                        at = to;
                    } else {
                        next[at as usize] += 1;
                    }
                }
                None => match way.pop() {
                    Some(edge) => {
                        at = self.edges[edge as usize ^ 1].to;
                        next[at as usize] += 1;
                    }
                    None => return total,
                },
            }
        }
    }
}

/// What `from` can send `to` at once, in bytes in a microsecond.
pub(super) fn largest(topology: &Topology, from: &[u32], to: &[u32]) -> f64 {
    let count = topology.nodes.len() as u32;
    // A node is where things come in; what leaves it starts from the second half if it has a limit.
    let (source, sink) = (2 * count, 2 * count + 1);
    let mut flow = Flow { edges: Vec::new(), out: vec![Vec::new(); 2 * count as usize + 2] };
    let leaving =
        |node: u32| if topology.nodes[node as usize].bytes_per_us.is_some() { node + count } else { node };
    for (at, node) in (0..).zip(&topology.nodes) {
        if let Some(limit) = node.bytes_per_us {
            flow.join(at, at + count, limit, 0.0);
        }
    }
    let mut sends = vec![false; count as usize];
    let mut takes = vec![false; count as usize];
    for (ends, is_of) in [(from, &mut sends), (to, &mut takes)] {
        ends.iter().for_each(|&device| is_of[device as usize] = true);
    }
    // A device that does not pass things on only sends or only takes.
    let silent = |node: u32| !topology.nodes[node as usize].forwards;
    let may = |a: u32, b: u32| !(silent(a) && takes[a as usize] || silent(b) && sends[b as usize]);
    for wire in &topology.wires {
        let ([a, b], rate) = (wire.ends, wire.bytes_per_us);
        if may(a, b) {
            flow.join(leaving(a), b, rate, 0.0);
        }
        if wire.duplex != Duplex::OneWay && may(b, a) {
            flow.join(leaving(b), a, rate, 0.0);
        }
    }
    // More than all wires together is no limit.
    let unlimited = topology.wires.iter().map(|wire| wire.bytes_per_us).sum::<f64>() * 2.0 + 1.0;
    for &device in from {
        flow.join(source, device, unlimited, 0.0);
    }
    for &device in to {
        flow.join(leaving(device), sink, unlimited, 0.0);
    }
    let mut total = 0.0;
    loop {
        let level = flow.levels(source);
        if level[sink as usize] == u32::MAX {
            return total;
        }
        total += flow.fill(source, sink, &level);
    }
}
