//! `collc topo show`: a topology at a glance.

use crate::args::TopoText;
use crate::failure::Failure;
use crate::output;
use coll_topo::{Class, Summary, show_bandwidth, show_time};
use std::process::ExitCode;

/// The most kinds of ways that are listed.
const CLASSES_MAX: usize = 24;

/// Prints what there is.
pub(super) fn run(args: &TopoText) -> Result<ExitCode, Failure> {
    let (topology, loaded) = match super::topology(&args.topology)? {
        Ok(found) => found,
        Err(code) => return Ok(code),
    };
    let summary = Summary::new(&topology);
    let mut text = format!("{}: {}\n", topology.name, loaded.format.name());
    let Summary { machines, devices, nics, switches, wires, .. } = summary;
    text +=
        &format!("machines {machines}, devices {devices}, NICs {nics}, switches {switches}, links {wires}\n");
    let mut per_machine: Vec<(usize, usize)> = Vec::new();
    let mut sizes = vec![0usize; machines];
    for &device in &topology.devices() {
        if let Some(machine) = topology.nodes[device as usize].machine {
            sizes[machine as usize] += 1;
        }
    }
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    for size in sizes {
        match per_machine.last_mut() {
            Some((known, count)) if *known == size => *count += 1,
            _ => per_machine.push((size, 1)),
        }
    }
    let groups: Vec<String> =
        per_machine.iter().map(|(size, count)| format!("{count} of {size} devices")).collect();
    text +=
        &format!("machines by size: {}\n", if groups.is_empty() { "none".into() } else { groups.join(", ") });
    text += &classes(&summary);
    text += &match summary.bisection {
        Some(found) => format!(
            "\nbisection {}: what one half of the devices can send the other, the least of {} halving{}\n",
            show_bandwidth(found.bytes_per_us),
            found.halvings,
            if found.halvings == 1 { "" } else { "s" }
        ),
        None => "\nbisection: not worked out, for there are no two halves, or too many links\n".to_string(),
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn classes(summary: &Summary) -> String {
    if summary.classes.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:<17}  {:>5}  {:>10}  {:>9}  {:>9}  such as\n",
        "ways", "links", "bandwidth", "latency", "pairs"
    );
    for class in summary.classes.iter().take(CLASSES_MAX) {
        let Class { within_machine, links, bytes_per_us, latency_us, pairs, example } = class;
        text += &format!(
            "{:<17}  {links:>5}  {:>10}  {:>9}  {pairs:>9}  {} to {}\n",
            if *within_machine { "within a machine" } else { "between machines" },
            show_bandwidth(*bytes_per_us),
            show_time(*latency_us),
            example[0],
            example[1]
        );
    }
    if summary.classes.len() > CLASSES_MAX {
        text += &format!("… and {} kinds more\n", summary.classes.len() - CLASSES_MAX);
    }
    if !summary.is_whole {
        text += "(of the first 128 devices and 128 at equal distances)\n";
    }
    text
}
