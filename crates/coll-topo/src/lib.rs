//! What a plan runs on: machines, devices, switches and the links between them.
//!
//! A text of any kind (a TOML file, NCCL's XML, `nvidia-smi topo -m`, a generator's `torus:4x4`) becomes a [`Description`],
//! which is written out as a [`Topology`]. Its [`Network`] is what the simulator and the [placement](place) see: devices,
//! directed links and the way between any two devices. `docs/topology.md` is the manual.

// A text is refused once, and then nothing else is done: the size of a diagnostic is of no account.
#![allow(clippy::result_large_err)]

pub mod codes;
mod connected;
mod description;
mod draw;
mod expand;
mod file;
mod generate;
mod import;
mod load;
mod network;
mod pattern;
pub mod place;
mod route;
mod summary;
mod topology;
mod units;

pub use description::{
    COUNT_MAX, Description, DeviceFigures, Duplex, Kind, LinkDecl, MachineDecl, NodeDecl, OwnFigures, Pairs,
};
pub use draw::{DRAWN_MAX, DrawError, dot, svg};
pub use expand::{NODES_MAX, WIRES_MAX};
pub use file::write;
pub use generate::{DEVICES_MAX, GENERATORS, is_generator};
pub use load::{Format, Loaded, TEXT_MAX_BYTES, load};
pub use network::{Device, Link, LinkId, Network, Routes};
pub use summary::{Bisection, Class, Summary};
pub use topology::{Node, Shape, Topology, Wire};
pub use units::{BANDWIDTH_MAX_BYTES_PER_US, LATENCY_MAX_US, show_bandwidth, show_time};
