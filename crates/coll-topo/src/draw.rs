//! Pictures of topologies: SVG by a layout of one's own, and text for Graphviz.
//!
//! Machines are boxes. In them, and above them for what stands outside machines, nodes lie in rows: devices at the bottom,
//! then what is one link away from a device, and so on. Hosts without switches lie on a circle, or, of a grid of two
//! dimensions, on a grid. Wires are coloured by bandwidth; the legend tells which is which.

mod dot;
mod layout;
mod svg;

pub use dot::dot;
pub use svg::svg;

use crate::topology::{Topology, Wire};
use crate::units::show_bandwidth;
use std::fmt;

/// The most nodes that are drawn.
pub const DRAWN_MAX: usize = 4_000;
/// The most wires that are drawn.
const WIRES_MAX: usize = 40_000;

/// Why a topology is not drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrawError {
    /// Its nodes.
    pub nodes: usize,
    /// Its wires.
    pub wires: usize,
}

impl fmt::Display for DrawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DrawError { nodes, wires } = self;
        write!(
            f,
            "the topology has {nodes} nodes and {wires} links, and at most {DRAWN_MAX} and {WIRES_MAX} are drawn"
        )
    }
}

impl std::error::Error for DrawError {}

fn check(topology: &Topology) -> Result<(), DrawError> {
    let error = DrawError { nodes: topology.nodes.len(), wires: topology.wires.len() };
    if error.nodes > DRAWN_MAX || error.wires > WIRES_MAX { Err(error) } else { Ok(()) }
}

/// Colours from the widest wire to the narrowest, told apart by people who see fewer colours too (Okabe and Ito 2008).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// The bandwidths that there are, the widest first. Of more than there are colours, the narrowest share the last.
fn bandwidths(topology: &Topology) -> Vec<f64> {
    let mut rates: Vec<f64> = topology.wires.iter().map(|wire| wire.bytes_per_us).collect();
    rates.sort_by(|a, b| b.total_cmp(a));
    rates.dedup();
    rates
}

/// Which of the colours a wire has.
fn colour_of(rates: &[f64], wire: &Wire) -> usize {
    let at = rates.partition_point(|&rate| rate > wire.bytes_per_us);
    at.min(COLOURS.len() - 1)
}

/// What each colour means.
fn legend(rates: &[f64]) -> Vec<(&'static str, String)> {
    let shown = rates.iter().take(COLOURS.len()).enumerate().map(|(at, &rate)| {
        let more = at + 1 == COLOURS.len() && rates.len() > COLOURS.len();
        (COLOURS[at], if more { format!("{} and less", show_bandwidth(rate)) } else { show_bandwidth(rate) })
    });
    shown.collect()
}
