//! Machines of GPUs, alone and in clusters. Figures are what their maker states: each direction of a link, decimal bytes.

use super::words::Words;
use crate::description::{Description, DeviceFigures, Duplex, Kind, LinkDecl, MachineDecl, NodeDecl, Pairs};
use coll_base::{Diagnostic, Span};

/// A machine of eight GPUs.
pub(super) struct Dgx {
    /// NVLink of a GPU, one direction, bytes in a microsecond.
    nvlink: f64,
    /// PCI Express between GPU and NIC, one direction.
    pci: f64,
    /// A NIC, one direction.
    nic: f64,
    figures: DeviceFigures,
}

/// NVIDIA DGX H100 data sheet: 18 NVLinks of the fourth generation, 900 GB/s in both directions; 8 ConnectX-7 of 400 Gb/s;
/// PCIe 5.0 x16: 32 GT/s on 16 lanes, of 130 bits 128 data, 63 GB/s. HBM3 of 3.35 TB/s (H100 SXM data sheet): a reduction reads two bytes and writes one, a copy reads one
/// and writes one.
pub(super) const H100: Dgx = Dgx {
    nvlink: 450e3,
    pci: 63e3,
    nic: 50e3,
    figures: DeviceFigures { message_us: 0.5, reduce_ns: 3.0 / 3350.0, copy_ns: 2.0 / 3350.0 },
};

/// NVIDIA DGX A100 data sheet: 12 NVLinks of the third generation, 600 GB/s in both directions; 8 ConnectX-6 of 200 Gb/s;
/// PCIe 4.0 x16 (31.5 GB/s). HBM2e of 2.039 TB/s (A100 80GB SXM data sheet).
pub(super) const A100: Dgx = Dgx {
    nvlink: 300e3,
    pci: 31.5e3,
    nic: 25e3,
    figures: DeviceFigures { message_us: 0.5, reduce_ns: 3.0 / 2039.0, copy_ns: 2.0 / 2039.0 },
};

/// From a GPU to NVSwitch, in microseconds: half of what NCCL's tuner reckons with for a hop over NVLink, 0.6 (`hwLat` of a
/// ring with LL, `src/graph/tuning.cc`; 2.7 over the network).
const NVLINK_US: f64 = 0.3;
/// From a GPU to its NIC. With the two links below it makes the 2.7 µs of NCCL's tuner for a hop over the network.
const PCI_US: f64 = 0.35;
/// From a NIC to its leaf switch.
const NIC_US: f64 = 1.0;
/// From a leaf switch to the spine.
const SPINE_US: f64 = 0.3;

const GPUS: u32 = 8;

fn link(a: &str, b: &str, bytes_per_us: f64, latency_us: f64, span: Span) -> LinkDecl {
    let between = [a.to_string(), b.to_string()];
    LinkDecl { between, pairs: None, bytes_per_us, latency_us, duplex: Duplex::Full, count: 1, span }
}

fn gpus(count: u32, span: Span) -> NodeDecl {
    // A GPU's memory is no way for what others send.
    NodeDecl { forwards: false, ..NodeDecl::new(Kind::Device, "gpu", span).times(count) }
}

/// One machine of GPUs on NVSwitch.
pub(super) fn nvswitch(words: &mut Words) -> Result<Description, Diagnostic> {
    let [count] = words.exactly()?;
    let bandwidth = words.bandwidth("bw", H100.nvlink)?;
    let latency_us = words.latency_us("lat", NVLINK_US)?;
    let span = words.span;
    let machine = MachineDecl {
        name: "node".to_string(),
        count: Some(1),
        nodes: vec![gpus(count, span), NodeDecl::new(Kind::Switch, "nvswitch", span)],
        links: vec![link("gpu*", "nvswitch", bandwidth, latency_us, span)],
        span,
    };
    Ok(Description { figures: H100.figures, machines: vec![machine], ..Description::default() })
}

/// Machines of eight GPUs and eight NICs; the NICs of one number share a leaf switch, their rail.
pub(super) fn dgx(words: &mut Words, made: &Dgx) -> Result<Description, Diagnostic> {
    let [machines] = words.exactly()?;
    if machines > 10_000 {
        return Err(words.fault(format!("{machines} machines; at most 10000 are made")));
    }
    let nvlink = words.bandwidth("nvlink", made.nvlink)?;
    let nic = words.bandwidth("bw", made.nic)?;
    let nic_us = words.latency_us("lat", NIC_US)?;
    let span = words.span;
    let to_nic = LinkDecl { pairs: Some(Pairs::Same), ..link("gpu*", "nic*", made.pci, PCI_US, span) };
    let machine = MachineDecl {
        name: "node".to_string(),
        count: Some(machines),
        nodes: vec![
            gpus(GPUS, span),
            NodeDecl::new(Kind::Nic, "nic", span).times(GPUS),
            NodeDecl::new(Kind::Switch, "nvswitch", span),
        ],
        links: vec![link("gpu*", "nvswitch", nvlink, NVLINK_US, span), to_nic],
        span,
    };
    let rail = |number: u32| link(&format!("node*.nic{number}"), &format!("rail{number}"), nic, nic_us, span);
    let mut links: Vec<LinkDecl> = (0..GPUS).map(rail).collect();
    // The spine carries all that a rail's NICs can send.
    links.push(link("rail*", "spine", nic * f64::from(machines), SPINE_US, span));
    Ok(Description {
        figures: made.figures,
        machines: vec![machine],
        nodes: vec![
            NodeDecl::new(Kind::Switch, "rail", span).times(GPUS),
            NodeDecl::new(Kind::Switch, "spine", span),
        ],
        links,
        ..Description::default()
    })
}
