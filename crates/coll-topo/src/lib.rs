//! What a plan runs on: machines, devices, switches and the links between them.

mod network;

pub use network::{Device, Link, LinkId, Network, Routes};
