//! The constants of one transport on one machine: what is measured by `collc tune`, and shipped for those who did not.

use coll_base::DType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the model knows of a transport. Times are microseconds of a rank's thread, unless they say otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// The transport's name: `tcp`, `shm`, `threads`.
    pub transport: String,
    /// Beginning and ending an operation.
    pub call_us: f64,
    /// Sending a message without its bytes.
    pub send_us: f64,
    /// Receiving a message without its bytes.
    pub recv_us: f64,
    /// A copy or reduction without its bytes.
    pub local_us: f64,
    /// From a message's being sent to its being seen on another core.
    pub wake_us: f64,
    /// To hand a core to the next rank, and to look for messages there, where there are more ranks than cores.
    pub switch_us: f64,
    /// A byte sent.
    pub send: Rate,
    /// A byte received and stored.
    pub recv: Rate,
    /// A byte copied.
    pub copy: Rate,
    /// A byte reduced by a built-in operator, by element type; what is not listed takes as long as `f32`.
    pub reduce: BTreeMap<DType, Rate>,
    /// A byte reduced by a user's operator.
    pub reduce_user: Rate,
    /// Bytes that all ranks of a machine may touch before rates turn from near to far.
    pub cache_bytes: u64,
    /// From how many bytes on a message to several peers may be written once and read by all; none if it never is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_from_bytes: Option<u64>,
    /// Between machines, where the transport reaches that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// How it was measured; none is shipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fit: Option<Fit>,
}

/// The time of a byte, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// While all lies in the cache.
    pub near_ns: f64,
    /// From and to memory.
    pub far_ns: f64,
}

/// What lies between machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// What a message takes more than within a machine, in microseconds.
    pub latency_us: f64,
    /// A byte on the wire, in nanoseconds; a machine's ranks share it.
    pub byte_ns: f64,
}

/// How well constants fit what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Rank counts of the probes.
    pub ranks: Vec<u32>,
    /// Cores of the machine.
    pub cores: u32,
    /// Probes.
    pub probes: u32,
    /// The geometric mean of how far prediction and measurement are apart: 1.2 is a fifth too long or too short.
    pub error_factor: f64,
}

impl Rate {
    /// The same near and far.
    pub const fn flat(ns: f64) -> Rate {
        Rate { near_ns: ns, far_ns: ns }
    }

    /// The time of a byte in nanoseconds where a share of the bytes, 0 to 1, is out of the cache.
    pub fn ns(self, far: f64) -> f64 {
        self.near_ns + (self.far_ns - self.near_ns) * far
    }
}

impl Constants {
    /// Whether a message of so many bytes that goes to so many peers is written once for all.
    pub fn shares(&self, sends: u32, bytes: f64) -> bool {
        self.shared_from_bytes.is_some_and(|least| bytes >= least as f64)
            && coll_plan::is_worth_sharing(sends, bytes as u64)
    }

    /// The rate of a reduction.
    pub fn reduction(&self, dtype: DType, user: bool) -> Rate {
        match user {
            true => self.reduce_user,
            false => {
                let rate = self.reduce.get(&dtype).or_else(|| self.reduce.get(&DType::F32));
                rate.copied().unwrap_or(self.copy)
            }
        }
    }

    /// The share of the bytes that a machine's ranks touch which is out of its cache.
    pub fn far_share(&self, touched_bytes: f64) -> f64 {
        let cache = self.cache_bytes as f64;
        if touched_bytes <= cache { 0.0 } else { 1.0 - cache / touched_bytes }
    }

    /// What is wrong with them, if anything: the field and the value.
    pub fn fault(&self) -> Option<String> {
        let rate = |name: &'static str, rate: Rate| [(name, rate.near_ns), (name, rate.far_ns)];
        let times = [
            ("call_us", self.call_us),
            ("send_us", self.send_us),
            ("recv_us", self.recv_us),
            ("local_us", self.local_us),
            ("wake_us", self.wake_us),
            ("switch_us", self.switch_us),
        ];
        let rates = [
            rate("send", self.send),
            rate("recv", self.recv),
            rate("copy", self.copy),
            rate("reduce_user", self.reduce_user),
        ];
        let reductions = self.reduce.values().map(|&r| rate("reduce", r));
        let wire =
            self.wire.iter().flat_map(|w| [("wire.latency_us", w.latency_us), ("wire.byte_ns", w.byte_ns)]);
        let all =
            times.into_iter().chain(rates.into_iter().flatten()).chain(reductions.flatten()).chain(wire);
        let is_time = |value: f64| value.is_finite() && (0.0..=TIME_MAX).contains(&value);
        let mut wrong = all.filter(|&(_, value)| !is_time(value));
        wrong
            .next()
            .map(|(name, value)| format!("`{name}` is {value}, where a time from 0 to {TIME_MAX} is due"))
    }
}

/// No constant is above it: a second for a message, a millisecond for a byte.
const TIME_MAX: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tuning;

    #[test]
    fn bytes_grow_dear_as_they_leave_the_cache() {
        let shm = Tuning::shipped().of("shm").unwrap().clone();
        let shares = [1e3, 64e6, 256e6, 4e9].map(|bytes| shm.far_share(bytes));
        assert!(shares.is_sorted() && shares[0] == 0.0 && shares[3] < 1.0 && shares[3] > 0.9, "{shares:?}");
        let rate = Rate { near_ns: 1.0, far_ns: 3.0 };
        assert_eq!([rate.ns(0.0), rate.ns(0.5), rate.ns(1.0)], [1.0, 2.0, 3.0]);
    }

    #[test]
    fn what_is_no_time_is_named() {
        let mut shm = Tuning::shipped().of("shm").unwrap().clone();
        assert_eq!(shm.fault(), None);
        shm.switch_us = -1.0;
        assert_eq!(shm.fault().unwrap(), "`switch_us` is -1, where a time from 0 to 1000000 is due");
        shm.switch_us = f64::NAN;
        assert!(shm.fault().unwrap().contains("NaN"));
    }
}
