//! How the machine is that the stand-in pretends, and what it counts: shared by the driver and those who set it up.

/// What a test asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Devices of the machine, at most 64.
    pub devices: usize,
    /// What all choices are drawn from: which queue goes on, and what fresh memory holds.
    pub seed: u64,
    /// Memory of each device.
    pub device_bytes: u64,
    /// For each device, bit `j` is set if it can reach device `j`. Empty: all reach all.
    pub peers: Vec<u64>,
    /// A wait that nothing can end is given up after so long.
    pub patience_ms: u64,
    /// Whether threads of the host are told apart: work of one is then ordered before another's only through the driver or
    /// [`hands_over`](crate::control::Session::hands_over). Otherwise threads are taken to tell each other all they know.
    pub threads_apart: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            devices: 2,
            seed: 0,
            device_bytes: 1 << 30,
            peers: Vec::new(),
            patience_ms: 10_000,
            threads_apart: false,
        }
    }
}

impl Config {
    /// Whether one device can reach another's memory.
    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        from != to && self.peers.get(from).is_none_or(|row| row >> to & 1 == 1)
    }
}

/// What has been done since the last reset.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Operations that ran, of every kind.
    pub steps: u64,
    /// Kernels that ran.
    pub launches: u64,
    /// Copies and fills that ran.
    pub copies: u64,
    /// Bytes that copies and fills wrote.
    pub copied_bytes: u64,
    /// Waits for events that had not been recorded, which are no waits.
    pub empty_waits: u64,
    /// Operations that wait in queues now.
    pub pending: u64,
    /// Streams that are there now, default ones left out.
    pub streams: u64,
    /// Events that are there now.
    pub events: u64,
    /// Allocations of device memory that are there now.
    pub allocations: u64,
    /// Bytes of device memory that are taken now.
    pub allocated_bytes: u64,
    /// Graphs that were launched.
    pub graph_launches: u64,
}
