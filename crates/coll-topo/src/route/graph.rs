//! Nodes and the links that lead out of them, as routes look them up.

use crate::description::Duplex;
use crate::network::{Link, LinkId};
use crate::topology::Topology;
use std::collections::HashSet;

/// A step from a node: where to, and over which link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) to: u32,
    pub(super) link: LinkId,
}

/// For each node the steps out of it, by where they lead, the best of parallel ones first.
#[derive(Debug)]
pub(super) struct Graph {
    starts: Vec<u32>,
    steps: Vec<Step>,
    /// Links that nodes themselves are: what passes through is limited.
    limits: Vec<Option<LinkId>>,
}

impl Graph {
    /// Lists the links of a topology, wires first, then nodes.
    pub(super) fn new(topology: &Topology, links: &mut Vec<Link>) -> Graph {
        let mut taken = HashSet::new();
        let mut push = |links: &mut Vec<Link>, name: String, bytes_per_us: f64, latency_us: f64| {
            let mut unique = name.clone();
            let mut nth = 1;
            // Parallel wires have one name, and a number from the second on.
            while !taken.insert(unique.clone()) {
                nth += 1;
                unique = format!("{name}#{nth}");
            }
            links.push(Link { name: unique, bytes_per_us, latency_us });
            links.len() as LinkId - 1
        };
        let mut from_to: Vec<(u32, Step)> = Vec::new();
        for wire in &topology.wires {
            let [a, b] = wire.ends;
            let [here, there] = wire.ends.map(|at| topology.nodes[at as usize].name.as_str());
            let (rate, latency) = (wire.bytes_per_us, wire.latency_us);
            let sign = if wire.duplex == Duplex::Half { "--" } else { "->" };
            let link = push(links, format!("{here}{sign}{there}"), rate, latency);
            from_to.push((a, Step { to: b, link }));
            match wire.duplex {
                Duplex::Full => {
                    let link = push(links, format!("{there}->{here}"), rate, latency);
                    from_to.push((b, Step { to: a, link }));
                }
                Duplex::Half => from_to.push((b, Step { to: a, link })),
                Duplex::OneWay => {}
            }
        }
        let limits = topology.nodes.iter().map(|node| {
            let rate = node.bytes_per_us?;
            Some(push(links, node.name.clone(), rate, 0.0))
        });
        let limits: Vec<Option<LinkId>> = limits.collect();
        let width = |step: &Step| links[step.link as usize].bytes_per_us;
        from_to.sort_by(|(a, one), (b, two)| {
            (a, one.to)
                .cmp(&(b, two.to))
                .then(width(two).total_cmp(&width(one)))
                .then(one.link.cmp(&two.link))
        });
        let mut starts = vec![0u32; topology.nodes.len() + 1];
        for (from, _) in &from_to {
            starts[*from as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        Graph { starts, steps: from_to.into_iter().map(|(_, step)| step).collect(), limits }
    }

    pub(super) fn len(&self) -> usize {
        self.limits.len()
    }

    /// The steps out of a node.
    pub(super) fn out(&self, node: u32) -> &[Step] {
        &self.steps[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// The best link between neighbours.
    pub(super) fn link(&self, from: u32, to: u32) -> Option<LinkId> {
        let out = self.out(from);
        let at = out.partition_point(|step| step.to < to);
        out.get(at).filter(|step| step.to == to).map(|step| step.link)
    }

    /// A node's own limit.
    pub(super) fn limit(&self, node: u32) -> Option<LinkId> {
        self.limits[node as usize]
    }

    /// Begins a way at a node.
    pub(super) fn begin(&self, node: u32, way: &mut Vec<LinkId>) {
        way.clear();
        way.extend(self.limit(node));
    }

    /// Goes on over a link to a node.
    pub(super) fn follow(&self, link: LinkId, to: u32, way: &mut Vec<LinkId>) {
        way.push(link);
        way.extend(self.limit(to));
    }

    /// Goes on to a neighbour; that there is a link is known of the shape.
    pub(super) fn step(&self, from: u32, to: u32, way: &mut Vec<LinkId>) {
        if let Some(link) = self.link(from, to) {
            self.follow(link, to, way);
        }
    }
}
