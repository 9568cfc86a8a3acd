//! When each operation of a run began and ended, for whoever asks. There is no clock in this crate: one is given.
//!
//! An operation begins when its lane stands at it and all that it waits for is over, as in `coll-sim`'s timelines; what is done
//! straight through keeps no such moments, so a binding that keeps them takes the general loop.

use crate::Bound;
use coll_plan::OpId;

/// Nanoseconds since any moment; it never goes back.
pub type Clock = fn() -> u64;

/// The moments of a run.
#[derive(Debug)]
pub(crate) struct Journal {
    clock: Clock,
    /// By operation: when it began, 0 if it has not, and when it ended.
    times_ns: Vec<(u64, u64)>,
}

impl Journal {
    /// Forgets the run before.
    #[cold]
    pub(crate) fn begin(&mut self) {
        self.times_ns.fill((0, 0));
    }

    /// An operation has its turn; only its first counts.
    #[cold]
    pub(crate) fn began(&mut self, op: OpId) {
        let (began, _) = &mut self.times_ns[op as usize];
        if *began == 0 {
            *began = (self.clock)();
        }
    }

    #[cold]
    pub(crate) fn ended(&mut self, op: OpId) {
        self.times_ns[op as usize].1 = (self.clock)();
    }
}

impl Bound {
    /// Keeps when each operation begins and ends in runs from here on, by a clock; they take somewhat longer for it.
    pub fn keep_times(&mut self, clock: Clock) {
        self.short = None;
        self.state.journal = Some(Journal { clock, times_ns: vec![(0, 0); self.code.ops.len()] });
    }

    /// When each operation of the last run began and ended, by its number in the rank's part of the plan; of a run that failed,
    /// 0 where it did not. Nothing if they are not kept.
    pub fn times_ns(&self) -> Option<&[(u64, u64)]> {
        self.state.journal.as_ref().map(|journal| &journal.times_ns[..])
    }
}
