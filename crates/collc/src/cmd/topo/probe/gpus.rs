//! `--gpus`: this machine's CUDA devices as a topology: each device, and each pair with the way between them.

use super::shape::{rounded, rounded_rate};
use crate::failure::Failure;
use crate::output;
use coll::Bytes;
use coll_base::Span;
use coll_gpu::{Measured, MeasuredPair, measure};
use coll_topo::{
    BANDWIDTH_MAX_BYTES_PER_US, Description, DeviceFigures, Duplex, Kind, LinkDecl, MachineDecl, NodeDecl,
    show_bandwidth, show_time,
};
use std::path::Path;

const MACHINE: &str = "here";

/// Measures, writes the file, and says what is in it.
pub(super) fn write(bytes: u64, path: &Path) -> Result<String, Failure> {
    let measured = measure(bytes).map_err(|error| Failure::unusable(error.to_string()))?;
    let mut comments = vec![
        format!("Measured by `collc topo probe --gpus` with copies of {}.", Bytes(bytes)),
        "Each pair was measured alone: what several pairs share is not in this file.".to_string(),
    ];
    comments.extend(measured.names.iter().enumerate().map(|(at, name)| format!("gpu{at}: {name}")));
    let apart = measured.pairs.iter().filter(|pair| !pair.reach);
    comments.extend(apart.map(|pair| {
        let [a, b] = pair.devices;
        format!("gpu{a} and gpu{b} do not reach each other: copies between them go by way of the host.")
    }));
    output::write_file(path, coll_topo::write(&description(&measured), &comments).as_bytes())?;
    let mut told = String::new();
    for (at, name) in measured.names.iter().enumerate() {
        told += &format!("gpu{at}: {name}\n");
    }
    told += &format!(
        "work of a few bytes takes {}; a byte is copied at {} and summed at {}\n",
        show_time(rounded(measured.message_us)),
        show_bandwidth(1e3 / rounded_rate(measured.copy_ns)),
        show_bandwidth(1e3 / rounded_rate(measured.reduce_ns))
    );
    for pair in &measured.pairs {
        let [a, b] = pair.devices;
        let way = if pair.reach { "" } else { ", by way of the host" };
        told += &format!(
            "gpu{a} - gpu{b}: {}, {}{way}\n",
            show_time(rounded(pair.short_us)),
            show_bandwidth(bandwidth(pair))
        );
    }
    Ok(told + &format!("written to {}\n", path.display()))
}

fn bandwidth(pair: &MeasuredPair) -> f64 {
    rounded(pair.bytes_per_us.clamp(1e-3, BANDWIDTH_MAX_BYTES_PER_US))
}

fn description(measured: &Measured) -> Description {
    let span = Span::default();
    let node =
        |at: usize| NodeDecl { forwards: false, ..NodeDecl::new(Kind::Device, format!("gpu{at}"), span) };
    let link = |pair: &MeasuredPair| LinkDecl {
        between: pair.devices.map(|device| format!("{MACHINE}.gpu{device}")),
        pairs: None,
        bytes_per_us: bandwidth(pair),
        latency_us: rounded((pair.short_us - measured.message_us).max(0.0)),
        duplex: Duplex::Full,
        count: 1,
        span,
    };
    let machine = MachineDecl {
        name: MACHINE.to_string(),
        count: None,
        nodes: (0..measured.names.len()).map(node).collect(),
        links: Vec::new(),
        span,
    };
    let figures = DeviceFigures {
        message_us: rounded(measured.message_us),
        reduce_ns: rounded_rate(measured.reduce_ns),
        copy_ns: rounded_rate(measured.copy_ns),
    };
    let links = measured.pairs.iter().map(link).collect();
    Description { figures, machines: vec![machine], links, ..Description::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_read_back_as_a_topology() {
        let pair = |devices, reach| MeasuredPair { devices, reach, short_us: 7.0, bytes_per_us: 25_000.0 };
        let measured = Measured {
            names: ["A", "A", "B"].map(str::to_string).to_vec(),
            message_us: 5.0,
            copy_ns: 0.001,
            reduce_ns: 0.002,
            pairs: vec![pair([0, 1], true), pair([0, 2], false), pair([1, 2], false)],
        };
        let text = coll_topo::write(&description(&measured), &[]);
        let network = coll_topo::load("probe", &text).network().expect("it is right");
        let names: Vec<&str> = network.devices.iter().map(|device| device.name.as_str()).collect();
        assert_eq!(names, ["here.gpu0", "here.gpu1", "here.gpu2"]);
        assert_eq!((network.devices[0].message_us, network.devices[0].copy_ns), (5.0, 0.001));
        let mut way = Vec::new();
        network.routes.route(0, 2, &mut way);
        let link = &network.links[way[0] as usize];
        assert_eq!((way.len(), link.latency_us, link.bytes_per_us), (1, 2.0, 25_000.0));
    }
}
