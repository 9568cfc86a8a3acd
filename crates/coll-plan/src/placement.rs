//! Where the ranks of a plan are meant to run. It says nothing of what they do: operations, proofs and results are the same
//! wherever ranks run. Whoever starts ranks, and whoever predicts what they take, goes by it.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Ranks on the devices of a topology.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The topology's name: a file's, or a generator's text.
    pub topology: String,
    /// The device of each rank, by its place among the topology's devices; no two alike.
    pub order: Vec<u32>,
}

impl Placement {
    /// The order in words: `0 2 1 3`.
    pub fn words(&self) -> String {
        self.order.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
    }
}

impl fmt::Display for Placement {
    /// `"cluster" order 0 2 1 3`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} order {}", self.topology, self.words())
    }
}
