//! Giving up from any thread, while another is in a call.

use crate::comm::CommError;
use crate::comm::engine::Engine;
use coll_exec::Fault;
use coll_tcp::Aborter;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Ends a communicator on all ranks, from any thread: see
/// [`Communicator::abort_handle`](crate::Communicator::abort_handle). Cheap to clone; it may outlive the communicator, and has
/// no effect then.
#[derive(Clone, Debug)]
pub struct AbortHandle {
    order: Arc<Order>,
    aborter: Aborter,
    rank: u32,
}

/// What a handle has ordered.
#[derive(Debug, Default)]
pub(crate) struct Order {
    given: AtomicBool,
    reason: OnceLock<String>,
}

impl AbortHandle {
    pub(crate) fn new(engine: &Engine) -> AbortHandle {
        AbortHandle { order: Arc::clone(&engine.order), aborter: engine.wires.aborter(), rank: engine.rank }
    }

    /// Ends the communicator on all ranks, for this reason. It returns at once: it waits neither for the thread that is in a
    /// call nor for another rank. Calls that are under way, here and elsewhere, in the foreground and behind it, come back
    /// with an error that gives the reason, as soon as their rank wakes: within a fraction of a second. Of several reasons the
    /// first one counts.
    pub fn abort(&self, reason: &str) {
        if self.order.reason.set(reason.to_string()).is_err() {
            return;
        }
        log::warn!("rank {}: aborted: {reason}", self.rank);
        self.order.given.store(true, Ordering::Release);
        self.aborter.abort(&format!("aborted: {reason}"));
    }

    /// Whether this rank has been told to end, by this handle or another of the same communicator.
    pub fn is_aborted(&self) -> bool {
        self.order.given.load(Ordering::Acquire)
    }
}

impl Order {
    /// Whether it is given: one load from memory.
    #[inline]
    pub(crate) fn is_given(&self) -> bool {
        self.given.load(Ordering::Acquire)
    }

    /// The error of calls after it.
    pub(crate) fn error(&self, rank: u32) -> CommError {
        let reason = self.reason.get().cloned().unwrap_or_default();
        CommError::Aborted { rank, reason }
    }

    /// Whether a fault is this order's own doing.
    pub(crate) fn explains(&self, rank: u32, fault: &Fault) -> bool {
        self.is_given() && matches!(fault, Fault::Aborted { origin, .. } if *origin == rank)
    }
}
