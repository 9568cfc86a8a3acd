//! Ways of regular shapes, worked out from numbers.

use super::graph::Graph;
use crate::network::{LinkId, Routes};

/// A grid, in row-major order.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) graph: Graph,
    pub(super) extents: Vec<u32>,
    pub(super) wraps: bool,
}

impl Routes for Grid {
    /// The last dimension first, each in its shorter direction; halfway round, upwards.
    fn route(&self, from: u32, to: u32, way: &mut Vec<LinkId>) {
        way.clear();
        if from == to {
            return;
        }
        self.graph.begin(from, way);
        let (mut at, mut stride) = (from, 1);
        for &extent in self.extents.iter().rev() {
            let (mut here, there) = (at / stride % extent, to / stride % extent);
            let upwards = (there + extent - here) % extent;
            let is_up = if self.wraps { upwards <= extent - upwards } else { there > here };
            while here != there {
                let next = if is_up { (here + 1) % extent } else { (here + extent - 1) % extent };
                let neighbour = at - here * stride + next * stride;
                self.graph.step(at, neighbour, way);
                (here, at) = (next, neighbour);
            }
            stride *= extent;
        }
    }
}

/// Hosts, edge switches, aggregation switches, core switches, in this order.
#[derive(Debug)]
pub(super) struct FatTree {
    pub(super) graph: Graph,
    pub(super) ports: u32,
}

impl Routes for FatTree {
    /// Up no further than needed. Which aggregation and core switch is the receiver's number's to say, so that what goes to one
    /// host takes one way down, and hosts are spread over all.
    fn route(&self, from: u32, to: u32, way: &mut Vec<LinkId>) {
        way.clear();
        if from == to {
            return;
        }
        let half = self.ports / 2;
        let hosts = self.ports * half * half;
        let (edges, aggs, cores) = (hosts, hosts + self.ports * half, hosts + 2 * self.ports * half);
        let (up, down) = (from / half, to / half);
        let mut nodes = vec![from, edges + up];
        if up != down {
            let place = to % half;
            nodes.push(aggs + up / half * half + place);
            if up / half != down / half {
                nodes.push(cores + place * half + to / half % half);
                nodes.push(aggs + down / half * half + place);
            }
            nodes.push(edges + down);
        }
        nodes.push(to);
        walk(&self.graph, &nodes, way);
    }
}

/// Hosts, leaves, spines, in this order.
#[derive(Debug)]
pub(super) struct LeafSpine {
    pub(super) graph: Graph,
    pub(super) leaves: u32,
    pub(super) hosts: u32,
    pub(super) spines: u32,
}

impl Routes for LeafSpine {
    /// By the spine of the receiver's number.
    fn route(&self, from: u32, to: u32, way: &mut Vec<LinkId>) {
        way.clear();
        if from == to {
            return;
        }
        let first_leaf = self.leaves * self.hosts;
        let (up, down) = (first_leaf + from / self.hosts, first_leaf + to / self.hosts);
        let spine = first_leaf + self.leaves + to % self.spines;
        match up == down {
            true => walk(&self.graph, &[from, up, to], way),
            false => walk(&self.graph, &[from, up, spine, down, to], way),
        }
    }
}

fn walk(graph: &Graph, nodes: &[u32], way: &mut Vec<LinkId>) {
    graph.begin(nodes[0], way);
    for pair in nodes.windows(2) {
        graph.step(pair[0], pair[1], way);
    }
}
