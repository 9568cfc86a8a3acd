//! Where ranks are, and what they are given to do: all that a prediction needs besides a plan and constants. Every rank
//! of a job knows the same of it.

use coll_base::DType;

/// Where the ranks are: machine by machine, as many on each, in rank order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout {
    /// Ranks on each machine but perhaps the last; at least as many as there are ranks if all are on one.
    pub ranks_per_host: u32,
    /// Cores of each machine.
    pub cores: u32,
}

impl Layout {
    /// All ranks on one machine.
    pub fn one_host(cores: u32) -> Layout {
        Layout { ranks_per_host: u32::MAX, cores: cores.max(1) }
    }

    /// The machine of a rank.
    pub fn host(self, rank: u32) -> u32 {
        rank / self.ranks_per_host.max(1)
    }

    /// Machines that `ranks` ranks are on.
    pub fn hosts(self, ranks: u32) -> u32 {
        ranks.div_ceil(self.ranks_per_host.max(1)).max(1)
    }

    /// Ranks on the machine that has most.
    pub fn ranks_on_host(self, ranks: u32) -> u32 {
        ranks.min(self.ranks_per_host.max(1))
    }
}

/// What an operation moves and reduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Bytes of the sized buffer on one rank, all of its blocks together.
    pub bytes: u64,
    /// The element type.
    pub dtype: DType,
    /// The operator is a user's own.
    pub user_operator: bool,
}
