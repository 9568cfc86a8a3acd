//! What can go wrong with a communicator, and what that means for it.

use coll_exec::{BindError, Fault, Place, RunError};
use coll_tcp::StartError;
use std::fmt;
use std::sync::Arc;

/// Why a call failed. Every message is one that can be shown as it is: it names the rank, the call and the reason.
///
/// [`CommError::is_fatal`] tells whether the communicator has ended with it. Once it has, on one rank, it has on all: each
/// call returns an error within the time limit, and later calls return [`CommError::Ended`] at once.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommError {
    /// The ranks did not come together.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The builder was told what cannot be.
    #[error("{what}")]
    Setup {
        /// What is wrong, and the way out.
        what: String,
    },
    /// A call that no rank can carry out, as every rank finds by itself: nothing was sent, and the communicator goes on.
    #[error("rank {rank}, {call}: {reason}")]
    Refused {
        /// This rank.
        rank: u32,
        /// The call, in words.
        call: String,
        /// What cannot be, and the way out.
        reason: String,
    },
    /// A call that is wrong on this rank, of which the others cannot know: nothing of it was sent, they are told, and the
    /// communicator has ended on all ranks.
    #[error("rank {rank}, {call}: {reason}")]
    Misused {
        /// This rank.
        rank: u32,
        /// The call, in words.
        call: String,
        /// What is wrong, and the way out.
        reason: String,
    },
    /// This rank gave up, by [`Communicator::abort`](crate::Communicator::abort) or an
    /// [`AbortHandle`](crate::AbortHandle). The communicator has ended on all ranks; on the others the error is
    /// [`CommError::Failed`] with [`Fault::Aborted`].
    #[error("rank {rank} gave up: aborted: {reason}")]
    Aborted {
        /// This rank.
        rank: u32,
        /// The reason that was given.
        reason: String,
    },
    /// A schedule, a plan or an operator that cannot be used.
    #[error("`{name}`: {reason}")]
    Schedule {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// An operation failed while it ran. The communicator has ended.
    #[error(transparent)]
    Failed(Arc<Failure>),
    /// The communicator has ended before, for this reason.
    #[error("the communicator has ended: {first}")]
    Ended {
        /// The first error.
        first: Arc<CommError>,
    },
    /// A closure of [`Communicator::start`](crate::Communicator::start) panicked. The communicator has ended.
    #[error("rank {rank}: an operation in the background panicked: {message}")]
    Panicked {
        /// This rank.
        rank: u32,
        /// What the panic said.
        message: String,
    },
}

/// Where an operation failed, and on what.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The rank that says so.
    pub rank: u32,
    /// The operation's number: equal on all ranks for collective operations, counted for each peer for the others. None for
    /// what is no operation, such as a split.
    pub operation: Option<u64>,
    /// The call in words: `allreduce of 1024 f32, sum`.
    pub call: String,
    /// The schedule that ran.
    pub schedule: Option<String>,
    /// Where in the plan it was: step, source line, the peer, what it waited for.
    pub place: Option<Place>,
    /// The rank that was found to make another call here.
    pub other_call_of: Option<u32>,
    /// Where calls differ, the call before this one: a rank that only sends in a call may be through with it before it shows
    /// that the others made another.
    pub call_before: Option<String>,
    /// What happened.
    pub fault: Fault,
}

impl CommError {
    /// True if the communicator has ended with this error, on all ranks.
    pub fn is_fatal(&self) -> bool {
        match self {
            CommError::Misused { .. }
            | CommError::Aborted { .. }
            | CommError::Failed(_)
            | CommError::Ended { .. }
            | CommError::Panicked { .. } => true,
            CommError::Start(_)
            | CommError::Setup { .. }
            | CommError::Refused { .. }
            | CommError::Schedule { .. } => false,
        }
    }

    /// What failed while it ran: this error's own, or that with which the communicator ended.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            CommError::Failed(failure) => Some(failure),
            CommError::Ended { first } => first.failure(),
            _ => None,
        }
    }
}

impl Failure {
    pub(crate) fn of_run(error: RunError, call: String, other_call_of: Option<u32>) -> Failure {
        Failure {
            rank: error.rank,
            operation: Some(error.operation),
            call,
            schedule: Some(error.name),
            place: error.place.map(|place| *place),
            other_call_of,
            call_before: None,
            fault: error.fault,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        match self.operation {
            Some(operation) => write!(f, ", operation {operation} ({}", self.call)?,
            None => write!(f, " ({}", self.call)?,
        }
        if let Some(schedule) = &self.schedule {
            write!(f, "; {schedule}")?;
        }
        f.write_str(")")?;
        if let Some(place) = &self.place {
            write!(f, ", {place}")?;
        }
        match self.other_call_of {
            // Where both calls are known in words, they say all.
            Some(peer) if !matches!(self.fault, Fault::UnlikeCalls { .. }) => {
                write!(f, ": rank {peer} makes another call here")?;
                if let Some(before) = &self.call_before {
                    write!(f, " (before it this rank made operation {before})")?;
                }
                f.write_str("; do all ranks make the same calls, in one order?")
            }
            _ => write!(f, ": {}", self.fault),
        }
    }
}

impl std::error::Error for Failure {}

/// Why a call is refused before anything is sent.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Every rank finds the same.
    Everywhere(String),
    /// Only this rank can know.
    Here(String),
}

impl From<BindError> for Refusal {
    /// What a plan is bound to depends on the call alone; only memory, and where blocks lie in it, is a rank's own matter.
    fn from(error: BindError) -> Refusal {
        match error {
            BindError::Memory { .. } | BindError::Outside { .. } | BindError::Overlap { .. } => {
                Refusal::Here(error.to_string())
            }
            other => Refusal::Everywhere(other.to_string()),
        }
    }
}
