//! Ways between devices.
//!
//! Of a searched topology, a way is one of fewest wires, of these one whose narrowest part is widest, of these the one of
//! lowest numbers, looked at from the sender's end. Devices with `forward = false` are no part of others' ways. Regular shapes
//! have formulas: grids go dimension by dimension, trees up and down by the receiver's number, which spreads receivers over
//! the spines. The same question has the same answer always.

mod formula;
mod graph;
mod search;

use crate::network::{Device, Link, Network};
use crate::topology::{Shape, Topology};
use formula::{FatTree, Grid, LeafSpine};
use graph::Graph;
use search::Searched;
use std::sync::Arc;

impl Topology {
    /// The network of this topology: each direction of a full-duplex wire is a link, a half-duplex wire is one link, and a node
    /// with a bandwidth of its own is a link that all crosses which passes through it.
    pub fn network(&self) -> Network {
        let nodes = self.devices();
        let mut links = Vec::new();
        let graph = Graph::new(self, &mut links);
        let devices = nodes.iter().map(|&at| {
            let node = &self.nodes[at as usize];
            Device {
                name: node.name.clone(),
                machine: node.machine.unwrap_or(0),
                message_us: node.figures.message_us,
                reduce_ns: node.figures.reduce_ns,
                copy_ns: node.figures.copy_ns,
            }
        });
        Network {
            name: self.name.clone(),
            devices: devices.collect(),
            routes: self.routes(graph, &links, nodes),
            links,
        }
    }

    fn routes(&self, graph: Graph, links: &[Link], devices: Vec<u32>) -> Arc<dyn crate::Routes> {
        match &self.shape {
            Shape::Grid { extents, wraps } => {
                Arc::new(Grid { graph, extents: extents.clone(), wraps: *wraps })
            }
            Shape::FatTree { ports } => Arc::new(FatTree { graph, ports: *ports }),
            &Shape::LeafSpine { leaves, hosts, spines } => {
                Arc::new(LeafSpine { graph, leaves, hosts, spines })
            }
            Shape::Searched => Arc::new(Searched::new(self, graph, links, devices)),
        }
    }
}
