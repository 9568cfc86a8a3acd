//! What was measured, as a topology file and as words.

use super::measure::{Measured, Pair};
use crate::failure::Failure;
use crate::output;
use coll::Bytes;
use coll_base::Span;
use coll_topo::{
    BANDWIDTH_MAX_BYTES_PER_US, Description, DeviceFigures, Duplex, Kind, LinkDecl, MachineDecl, NodeDecl,
    show_bandwidth, show_time,
};
use std::path::Path;

/// Writes the file, and says what is in it.
pub(super) fn write(
    measured: &Measured,
    transport: &str,
    bytes: u64,
    path: &Path,
) -> Result<String, Failure> {
    let description = description(measured);
    let ranks = measured.hosts.len();
    let mut comments = vec![
        format!(
            "Measured by `collc topo probe` over {transport}, between {ranks} ranks, with messages of {}.",
            Bytes(bytes)
        ),
        "Each pair was measured alone: what several pairs share is not in this file.".to_string(),
    ];
    let order: Vec<&str> = description
        .machines
        .iter()
        .flat_map(|machine| machine.nodes.iter().map(|node| node.name.as_str()))
        .collect();
    let in_order: Vec<String> = (0..ranks).map(|rank| format!("rank{rank}")).collect();
    let mut told = String::new();
    if order != in_order {
        let note = "ranks of one host do not follow each other, so device r is not the one that rank r had";
        comments.push(format!("Take care: {note}."));
        told += &format!("note: {note}; names tell which it was\n");
    }
    output::write_file(path, coll_topo::write(&description, &comments).as_bytes())?;
    for machine in &description.machines {
        told += &format!("{}: {} ranks\n", machine.name, machine.nodes.len());
    }
    told += &format!(
        "a message costs each side {}; a byte is copied at {} and summed at {}\n",
        show_time(description.figures.message_us),
        show_bandwidth(1e3 / description.figures.copy_ns),
        show_bandwidth(1e3 / description.figures.reduce_ns)
    );
    told += "pair        one way  bandwidth\n";
    let mut pairs = measured.pairs.iter();
    for a in 0..ranks {
        for b in a + 1..ranks {
            let Some(pair) = pairs.next() else { break };
            let pair_name = format!("{a} - {b}");
            told += &format!(
                "{pair_name:<9}{:>10}  {}\n",
                show_time(rounded(pair.latency_us)),
                show_bandwidth(bandwidth(pair))
            );
        }
    }
    Ok(told + &format!("written to {}\n", path.display()))
}

/// Three digits: more were not measured.
pub(super) fn rounded(figure: f64) -> f64 {
    format!("{figure:.2e}").parse().unwrap_or(figure)
}

/// The time of a byte whose rate has three digits: files have rates.
pub(super) fn rounded_rate(ns: f64) -> f64 {
    1e3 / rounded(1e3 / ns.max(1e-6))
}

fn bandwidth(pair: &Pair) -> f64 {
    rounded((1e3 / pair.byte_ns.max(1e-9)).clamp(1e-3, BANDWIDTH_MAX_BYTES_PER_US))
}

fn description(measured: &Measured) -> Description {
    let span = Span::default();
    let ranks = measured.hosts.len();
    // What a message costs is a rank's, not a pair's: the median of all.
    let mut costs: Vec<f64> = measured.pairs.iter().map(|pair| pair.message_us).collect();
    costs.sort_by(f64::total_cmp);
    let message_us = rounded(costs.get(costs.len() / 2).copied().unwrap_or(0.0));
    let figures = DeviceFigures {
        message_us,
        reduce_ns: rounded_rate(measured.reduce_ns),
        copy_ns: rounded_rate(measured.copy_ns),
    };
    let mut machines: Vec<MachineDecl> = Vec::new();
    let names: Vec<String> = measured.hosts.iter().map(|host| machine_name(host)).collect();
    for (rank, name) in names.iter().enumerate() {
        let node = NodeDecl { forwards: false, ..NodeDecl::new(Kind::Device, format!("rank{rank}"), span) };
        match machines.iter_mut().find(|machine| machine.name == *name) {
            Some(machine) => machine.nodes.push(node),
            None => machines.push(MachineDecl {
                name: name.clone(),
                count: None,
                nodes: vec![node],
                links: Vec::new(),
                span,
            }),
        }
    }
    let mut links = Vec::new();
    let mut pairs = measured.pairs.iter();
    for a in 0..ranks {
        for b in a + 1..ranks {
            let Some(pair) = pairs.next() else { break };
            links.push(LinkDecl {
                between: [a, b].map(|rank| format!("{}.rank{rank}", names[rank])),
                pairs: None,
                bytes_per_us: bandwidth(pair),
                latency_us: rounded((pair.latency_us - 2.0 * message_us).max(0.0)),
                duplex: Duplex::Full,
                count: 1,
                span,
            });
        }
    }
    Description { figures, machines, links, ..Description::default() }
}

/// A host's name as a machine's.
fn machine_name(host: &str) -> String {
    host.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_reads_back_as_a_topology() {
        let pair = |latency_us| Pair { latency_us, message_us: 1.0, byte_ns: 0.25 };
        let hosts = ["a.example", "a.example", "b"].map(str::to_string).to_vec();
        let measured =
            Measured { hosts, pairs: vec![pair(5.0), pair(20.0), pair(1.5)], copy_ns: 0.1, reduce_ns: 0.2 };
        let text = coll_topo::write(&description(&measured), &[]);
        let network = coll_topo::load("probe", &text).network().expect("it is right");
        let names: Vec<&str> = network.devices.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["a_example.rank0", "a_example.rank1", "b.rank2"]);
        let link = |from, to| {
            let mut way = Vec::new();
            network.routes.route(from, to, &mut way);
            assert_eq!(way.len(), 1);
            let link = &network.links[way[0] as usize];
            (link.latency_us, link.bytes_per_us)
        };
        assert_eq!(link(0, 1), (3.0, 4000.0));
        assert_eq!(link(2, 0), (18.0, 4000.0));
        assert_eq!(link(1, 2), (0.0, 4000.0), "a link takes no less than nothing");
        assert_eq!((network.devices[0].message_us, network.devices[0].copy_ns), (1.0, 0.1));
    }
}
