//! GOAL schedules: for each rank a graph of sends, receives and computations (T. Hoefler, C. Siebert, A. Lumsdaine,
//! *Group Operation Assembly Language: a flexible way to express collective communication*, 2009), in the text form
//! that LogGOPSim's tools read.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! l1: calc 100
//! l2: send 8b to 1 tag 5
//! l2 requires l1
//! }
//! rank 1 {
//! l1: recv 8b from 0 tag 5
//! }
//! ```
//!
//! `requires` waits for an operation's end, `irequires` for its start. `cpu N` and `nic N` name a rank's processor and
//! network interface, 0 where they are left out. `-1` as a receive's source or tag stands for any.
//!
//! It knows no data. What is written cannot be proved again, though the plan that it comes from was; and what is read becomes
//! a plan of messages, each of which carries a block of its own from one rank to the other.

mod import;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use import::Schedule;
pub use read::GoalError;
pub use write::{LOCAL_BYTES_PER_NS, write};

/// A schedule for all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goal {
    /// What each rank does.
    pub ranks: Vec<GoalRank>,
}

/// What one rank does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoalRank {
    /// Its operations, in the order of the file.
    pub ops: Vec<GoalOp>,
    /// What waits for what, in the order of the file.
    pub edges: Vec<Edge>,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalOp {
    /// Its label; empty if it has none.
    pub label: String,
    /// The line it stands in, from 1.
    pub line: u32,
    /// What it does.
    pub kind: GoalKind,
    /// The processor of the rank that does it.
    pub cpu: u32,
    /// The network interface of the rank that it goes through.
    pub nic: u32,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalKind {
    /// Sends to a rank.
    Send {
        /// The receiver.
        to: u32,
        /// Its size.
        bytes: u64,
        /// What its receive asks for.
        tag: u32,
    },
    /// Receives from a rank.
    Recv {
        /// The sender; any if there is none.
        from: Option<u32>,
        /// What is asked for. The message's own size counts.
        bytes: u64,
        /// The tag; any if there is none.
        tag: Option<u32>,
    },
    /// Computes.
    Calc {
        /// For so long.
        ns: u64,
    },
}

/// One operation of a rank waits for another: indices into [`GoalRank::ops`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What waits.
    pub op: u32,
    /// What it waits for.
    pub on: u32,
    /// It waits for the other's start, not its end.
    pub start: bool,
}

impl Goal {
    /// Reads the text form. `file` is what messages call it.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn from_text(file: &str, text: &str) -> Result<Goal, GoalError> {
        read::read(file, text)
    }
}

impl std::fmt::Display for GoalKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let any = |value: Option<u32>| value.map_or("any".to_string(), |value| value.to_string());
        match *self {
            GoalKind::Send { to, bytes, tag } => write!(f, "send {bytes}b to {to} tag {tag}"),
            GoalKind::Recv { from, bytes, tag } => {
                write!(f, "recv {bytes}b from {} tag {}", any(from), any(tag))
            }
            GoalKind::Calc { ns } => write!(f, "calc {ns}"),
        }
    }
}
