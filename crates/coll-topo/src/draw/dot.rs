//! Text for Graphviz.

use super::{COLOURS, DrawError, bandwidths, check, colour_of};
use crate::description::{Duplex, Kind};
use crate::topology::Topology;
use crate::units::{show_bandwidth, show_time};
use std::fmt::Write;

/// The topology as an undirected graph, machines as clusters.
pub fn dot(topology: &Topology) -> Result<String, DrawError> {
    check(topology)?;
    let mut text = format!("graph {} {{\n", quoted(&topology.name));
    text += "  node [fontname=\"sans-serif\", style=filled, fillcolor=white];\n  edge [fontname=\"sans-serif\", fontsize=9];\n";
    let node = |at: usize| {
        let node = &topology.nodes[at];
        let (shape, colour) = match node.kind {
            Kind::Device => ("box", "#dcebf7"),
            Kind::Nic => ("hexagon", "#fdf0d5"),
            Kind::Switch => ("ellipse", "#eeeeee"),
        };
        format!("  {} [shape={shape}, fillcolor=\"{colour}\"];\n", quoted(&node.name))
    };
    let mut by_machine: Vec<Vec<usize>> = vec![Vec::new(); topology.machines.len()];
    for (at, of) in topology.nodes.iter().enumerate() {
        match of.machine {
            Some(machine) => by_machine[machine as usize].push(at),
            None => text += &node(at),
        }
    }
    for (machine, nodes) in by_machine.iter().enumerate() {
        // A host by itself needs no frame.
        let is_framed = nodes.len() > 1;
        if is_framed {
            let _ = writeln!(
                text,
                "  subgraph cluster_{machine} {{ label={};",
                quoted(&topology.machines[machine])
            );
        }
        nodes.iter().for_each(|&at| text += &node(at));
        text += if is_framed { "  }\n" } else { "" };
    }
    let rates = bandwidths(topology);
    for wire in &topology.wires {
        let [a, b] = wire.ends.map(|at| quoted(&topology.nodes[at as usize].name));
        let label = format!("{} {}", show_bandwidth(wire.bytes_per_us), show_time(wire.latency_us));
        let extra = match wire.duplex {
            Duplex::Full => "",
            Duplex::Half => ", style=dashed",
            Duplex::OneWay => ", dir=forward",
        };
        let colour = COLOURS[colour_of(&rates, wire)];
        let _ = writeln!(text, "  {a} -- {b} [label=\"{label}\", color=\"{colour}\"{extra}];");
    }
    text += "}\n";
    Ok(text)
}

fn quoted(name: &str) -> String {
    let escaped: String = name
        .chars()
        .filter(|c| !c.is_control())
        .flat_map(|c| if matches!(c, '"' | '\\') { vec!['\\', c] } else { vec![c] })
        .collect();
    format!("\"{escaped}\"")
}
