//! What one thread shows another on a link, in the order in which it tells of it there. What goes through the ring is a number;
//! what that stands for is here, where no number can be made up: a rank reads what it was shown, and nothing else.
//!
//! There is a lock, and nobody ever waits for it: the writer is done here before the number goes out.

use coll_exec::{Loan, Look, Sight};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The memory that loans name which stand in a ledger; no other has this number.
pub(crate) const MEMORY: u64 = u64::MAX;

/// What was shown in one direction of a link.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Shown>);

#[derive(Debug, Default)]
struct Shown {
    /// The number of the first.
    first: u64,
    sights: VecDeque<Sight>,
}

/// Whether a loan stands in a ledger.
#[inline]
pub(crate) fn holds(loan: &Loan) -> bool {
    loan.memory == MEMORY
}

impl Ledger {
    /// Takes a sight in, and gives what the other end is told.
    pub(crate) fn put(&self, sight: Sight) -> Loan {
        let bytes = sight.len() as u64;
        let mut shown = self.locked();
        shown.sights.push_back(sight);
        let handle = shown.first + shown.sights.len() as u64 - 1;
        Loan { memory: MEMORY, handle, offset: 0, bytes }
    }

    /// What a loan stands for: nothing if the run that it is of has ended. Those before it have been read, and are forgotten.
    pub(crate) fn look(&self, loan: &Loan) -> Result<Option<Look>, String> {
        let mut shown = self.locked();
        while shown.first < loan.handle && shown.sights.pop_front().is_some() {
            shown.first += 1;
        }
        let sight = shown.sights.front().filter(|sight| {
            shown.first == loan.handle && loan.offset == 0 && sight.len() as u64 == loan.bytes
        });
        let sight = sight.ok_or_else(|| {
            let Loan { handle, bytes, .. } = loan;
            format!("it shows {bytes} B under the number {handle}, and has shown no such thing")
        })?;
        Ok(sight.look())
    }

    /// A thread that panicked left nothing half done behind the lock.
    fn locked(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
