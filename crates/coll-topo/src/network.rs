//! A topology as the simulator and the placement see it: devices, directed links with rates, and the way between any
//! two devices.

use std::fmt::Debug;
use std::sync::Arc;

/// A link's place in [`Network::links`].
pub type LinkId = u32;

/// Where a rank runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// `n0.gpu3`: unique in its network.
    pub name: String,
    /// Its machine; devices of one machine have equal numbers.
    pub machine: u32,
    /// Processor time to send or to take a message, besides its bytes, in microseconds.
    pub message_us: f64,
    /// A byte reduced, in nanoseconds.
    pub reduce_ns: f64,
    /// A byte copied within the device, in nanoseconds.
    pub copy_ns: f64,
}

/// One direction of a wire, or a thing that all that passes shares: a half-duplex bus, a NIC's injection limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// `n0.gpu3->n0.nvswitch`: unique in its network.
    pub name: String,
    /// Bytes in a microsecond (1 GB/s is 1000), shared by all flows that cross it.
    pub bytes_per_us: f64,
    /// What a message's first byte takes to cross it, in microseconds.
    pub latency_us: f64,
}

/// Finds the way between two devices. Ways are found when asked for: all of ten thousand devices' would not fit.
pub trait Routes: Debug + Send + Sync {
    /// Writes the links from one device to another, in order, after emptying `way`. A device's way to itself is empty. The
    /// same question has the same answer always.
    fn route(&self, from: u32, to: u32, way: &mut Vec<LinkId>);
}

/// Devices, links and ways.
#[derive(Clone, Debug)]
pub struct Network {
    /// What it is called in reports: a file's name or a generator's text.
    pub name: String,
    /// In the order in which ranks take them, unless they are placed otherwise.
    pub devices: Vec<Device>,
    /// What flows share.
    pub links: Vec<Link>,
    /// The ways.
    pub routes: Arc<dyn Routes>,
}
