//! A topology: machines, the nodes in them and between them, and the wires that join nodes. It is what files, generators
//! and imports become, with every template written out, and what networks, pictures and tables are made of.

use crate::description::{DeviceFigures, Duplex, Kind};

/// Machines, nodes and wires. Names are unique, every wire joins two nodes, and there is a way between any two devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// What it is called in reports: a file's name, the name that the file gives itself, or a generator's text.
    pub name: String,
    /// The machines' names.
    pub machines: Vec<String>,
    /// Devices, NICs and switches.
    pub nodes: Vec<Node>,
    /// What joins them.
    pub wires: Vec<Wire>,
    /// How ways are found.
    pub shape: Shape,
}

/// A device, a NIC or a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// `node0.gpu3`: unique in its topology.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its machine's place in [`Topology::machines`]; none for what stands between machines.
    pub machine: Option<u32>,
    /// Whether what is not for it may pass through it.
    pub forwards: bool,
    /// Bytes in a microsecond that it passes in all, if less than its wires do.
    pub bytes_per_us: Option<f64>,
    /// What a device takes to work; of other nodes it means nothing.
    pub figures: DeviceFigures,
    /// Words for people, such as a bus id.
    pub note: Option<String>,
}

/// What joins two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Wire {
    /// Its ends' places in [`Topology::nodes`]; a one-way wire leads from the first to the second.
    pub ends: [u32; 2],
    /// Bytes in a microsecond: of each direction if it is full duplex, else in all.
    pub bytes_per_us: f64,
    /// What the first byte takes to cross it, in microseconds.
    pub latency_us: f64,
    /// Which directions it has, and whether they share.
    pub duplex: Duplex,
}

/// How ways are found: by search, or by a formula that a regular shape has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Fewest wires, then widest, then lowest number.
    Searched,
    /// Dimension by dimension, the last first, in the shorter direction; nodes are devices in row-major order.
    Grid {
        /// The extents.
        extents: Vec<u32>,
        /// Whether each dimension's ends are joined.
        wraps: bool,
    },
    /// Up, then down, by the receiver's number. Nodes: hosts, edge switches, aggregation switches, core switches.
    FatTree {
        /// Ports of each switch.
        ports: u32,
    },
    /// Up, then down, by the receiver's number. Nodes: hosts, leaves, spines.
    LeafSpine {
        /// Leaf switches.
        leaves: u32,
        /// Hosts of each leaf.
        hosts: u32,
        /// Spine switches.
        spines: u32,
    },
}

impl Topology {
    /// The places of its devices in [`Topology::nodes`], in the order in which ranks take them.
    pub fn devices(&self) -> Vec<u32> {
        self.of_kind(Kind::Device).collect()
    }

    /// How many nodes are of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.of_kind(kind).count()
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.nodes).filter(move |(_, node)| node.kind == kind).map(|(at, _)| at)
    }
}
