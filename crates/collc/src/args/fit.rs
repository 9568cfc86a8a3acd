//! The options of `collc compile` that fit a plan to a topology.

use clap::Args;
use coll::Bytes;

/// What a plan is fitted to.
#[derive(Args)]
pub(crate) struct Fit {
    /// Fit the plan to this topology, a file or a generator such as `dgx-h100:4`: its parameter `local` is the ranks in a
    /// node (pass `shape`), ranks are placed (`place`), slices and lanes are chosen by simulation (`pipeline`)
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) topology: Option<String>,
    /// The device of each rank: `best`, `none` for the topology's order, `shuffled:SEED`, or devices by name or number such as
    /// `0,2,1,3` [default: best]
    #[arg(long, value_name = "PLACE", requires = "topology")]
    pub(crate) place: Option<String>,
    /// Size of the buffer that slices, lanes and places are weighed at [default: 1MiB]
    #[arg(long, value_name = "SIZE", requires = "topology", allow_hyphen_values = true)]
    pub(crate) bytes: Option<Bytes>,
}
