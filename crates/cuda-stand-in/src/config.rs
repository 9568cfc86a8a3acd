//! How the machine is that the stand-in pretends, and what it counts: shared by the driver and those who set it up.
//!
//! A program that is started from outside, as a user starts it, cannot set the stand-in up. For such it reads one variable of the
//! environment, `CUDA_STAND_IN`, which [`control::environment`](crate::control::environment) writes.

use std::path::PathBuf;

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
    /// Operations that a queue holds. Who enqueues one more waits until there is room, as with a real driver, whose queues hold
    /// about a thousand.
    pub depth: usize,
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
            depth: 1024,
            threads_apart: false,
        }
    }
}

impl Config {
    /// As the value of the variable, with the file that what is found is added to.
    pub(crate) fn as_text(&self, report: Option<&str>) -> String {
        let Config { devices, seed, device_bytes, peers, patience_ms, depth, threads_apart } = self;
        let mut text = format!(
            "devices={devices} seed={seed} device_bytes={device_bytes} patience_ms={patience_ms} depth={depth} \
             threads_apart={threads_apart}"
        );
        if !peers.is_empty() {
            let peers: Vec<String> = peers.iter().map(u64::to_string).collect();
            text += &format!(" peers={}", peers.join(","));
        }
        report.map_or(text.clone(), |report| format!("{text} report={report}"))
    }

    /// What the variable says; None if it means nothing. What it leaves out is as by default.
    fn of_text(text: &str) -> Option<(Config, Option<PathBuf>)> {
        let (text, report) = match text.split_once("report=") {
            Some((text, report)) => (text, Some(PathBuf::from(report))),
            None => (text, None),
        };
        let mut config = Config::default();
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=')?;
            match name {
                "devices" => config.devices = value.parse().ok().filter(|&devices| devices <= 64)?,
                "seed" => config.seed = value.parse().ok()?,
                "device_bytes" => config.device_bytes = value.parse().ok()?,
                "patience_ms" => config.patience_ms = value.parse().ok()?,
                "depth" => config.depth = value.parse().ok()?,
                "threads_apart" => config.threads_apart = value.parse().ok()?,
                "peers" => {
                    config.peers = value.split(',').map(|row| row.parse().ok()).collect::<Option<_>>()?
                }
                _ => return None,
            }
        }
        (config.peers.is_empty() || config.peers.len() == config.devices).then_some((config, report))
    }

    /// The machine of a program that sets none up; None if the variable means nothing.
    pub(crate) fn of_environment() -> Option<(Config, Option<PathBuf>)> {
        match std::env::var("CUDA_STAND_IN") {
            Ok(text) => Config::of_text(&text),
            Err(std::env::VarError::NotPresent) => Some((Config::default(), None)),
            Err(_) => None,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_says_what_it_was_made_of() {
        let config =
            Config { devices: 3, seed: 7, peers: vec![6, 5, 3], threads_apart: true, ..Config::default() };
        let text = config.as_text(Some("/tmp/a b"));
        assert_eq!(Config::of_text(&text), Some((config, Some("/tmp/a b".into()))));
        assert_eq!(Config::of_text(&Config::default().as_text(None)), Some((Config::default(), None)));
        for wrong in ["devices", "devices=x", "devices=65", "sead=1", "devices=2 peers=1,2,3", "peers=1,"] {
            assert_eq!(Config::of_text(wrong), None, "{wrong}");
        }
    }
}
