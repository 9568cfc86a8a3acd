//! Fits a transport's constants to measured calls.
//!
//! What is sought are the constants whose predictions are least apart from the measurements, by the squares of the
//! logarithms of their ratios, so that a call of a microsecond counts as much as one of a second. Some constants cannot be
//! told apart by any call (a message's two ends mostly come together); a weak pull keeps those near where they started.
//! The search goes along one constant at a time, by factors that shrink: there are few constants, and no gradient.

use crate::{Constants, Fit, Layout, Outline, Work};
use coll_base::DType;

/// A measured call.
pub struct Probe {
    /// What ran.
    pub outline: Outline,
    /// Ranks that ran it.
    pub ranks: u32,
    /// Where they were.
    pub layout: Layout,
    /// What it moved.
    pub work: Work,
    /// What it took, in microseconds.
    pub measured_us: f64,
}

impl Probe {
    /// Prediction over measurement.
    pub fn ratio(&self, constants: &Constants) -> f64 {
        self.outline.predict_us(constants, self.layout, self.work) / self.measured_us
    }
}

/// How strongly constants are held to where they started, beside one probe.
const PULL: f64 = 0.01;
/// Factors that are tried, one after the other.
const FACTORS: [f64; 6] = [2.0, 1.4, 1.2, 1.1, 1.04, 1.015];
/// No constant is sought below so many microseconds or nanoseconds.
const LEAST: f64 = 1e-4;
/// Rounds with one factor.
const ROUNDS_MAX: u32 = 40;

/// The constants that fit best, from `start` on, and how well they do. Probes have been measured: each took time.
pub fn fit(start: &Constants, probes: &[Probe]) -> Constants {
    let mut best = start.clone();
    for constant in sought(&mut best) {
        *constant = constant.max(LEAST);
    }
    let from: Vec<f64> = sought(&mut best).into_iter().map(|constant| *constant).collect();
    let mut least = misfit(&best, &from, probes);
    for factor in FACTORS {
        for _ in 0..ROUNDS_MAX {
            let before = least;
            for at in 0..from.len() {
                for step in [factor, 1.0 / factor] {
                    let mut tried = best.clone();
                    if let Some(constant) = sought(&mut tried).into_iter().nth(at) {
                        *constant = (*constant * step).max(LEAST);
                    }
                    let found = misfit(&tried, &from, probes);
                    if found < least {
                        (best, least) = (tried, found);
                    }
                }
            }
            if least >= before {
                break;
            }
        }
    }
    let mut ranks: Vec<u32> = probes.iter().map(|probe| probe.ranks).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let apart: f64 = probes.iter().map(|probe| probe.ratio(&best).ln().abs()).sum();
    best.fit = Some(Fit {
        ranks,
        cores: probes.first().map_or(0, |probe| probe.layout.cores),
        probes: probes.len() as u32,
        error_factor: (apart / probes.len().max(1) as f64).exp(),
    });
    best
}

/// The constants that calls tell of; what happens within a rank is measured by itself.
fn sought(constants: &mut Constants) -> [&mut f64; 8] {
    let Constants { send_us, recv_us, wake_us, switch_us, send, recv, .. } = constants;
    [
        send_us,
        recv_us,
        wake_us,
        switch_us,
        &mut send.near_ns,
        &mut send.far_ns,
        &mut recv.near_ns,
        &mut recv.far_ns,
    ]
}

fn misfit(constants: &Constants, from: &[f64], probes: &[Probe]) -> f64 {
    let square = |ratio: f64| ratio.ln().powi(2);
    let apart: f64 = probes.iter().map(|probe| square(probe.ratio(constants))).sum();
    let mut constants = constants.clone();
    let pulled: f64 = sought(&mut constants).iter().zip(from).map(|(now, from)| square(**now / from)).sum();
    apart + PULL * pulled
}

/// The element types whose reductions differ in speed so much that each is measured.
pub const REDUCED: [DType; 6] = [DType::F32, DType::F64, DType::I32, DType::I64, DType::F16, DType::Bf16];
