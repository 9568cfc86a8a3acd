//! Races: two accesses of the same bytes, one of them a write, of which neither is known to come before the other.
//!
//! Each allocation keeps the accesses that nothing later has covered. As whether two are ordered follows from the clocks
//! alone, a race is found whichever of the two happened to run first.

use crate::clock::{Clock, Epoch};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes `from..to` of an allocation, looked at or changed.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) writes: bool,
    pub(crate) epoch: Epoch,
    /// The operation, with its stream.
    pub(crate) what: Arc<str>,
}

/// Accesses of one allocation that a later one may still race with.
#[derive(Debug, Default)]
pub(crate) struct History(Vec<Access>);

impl History {
    /// Notes an access by someone who knows `clock`, and gives the earlier ones that it races with.
    pub(crate) fn note(&mut self, access: Access, clock: &Clock) -> Vec<Access> {
        let mut rivals = Vec::new();
        let mut kept = Vec::with_capacity(self.0.len() + 2);
        for old in self.0.drain(..) {
            if old.to <= access.from || access.to <= old.from {
                kept.push(old);
                continue;
            }
            let ordered = clock.covers(old.epoch);
            if !ordered && (old.writes || access.writes) {
                rivals.push(old.clone());
            }
            // Whoever races with what is covered here races with what covers it.
            if access.writes || (ordered && !old.writes) {
                if old.from < access.from {
                    kept.push(Access { to: access.from, ..old.clone() });
                }
                if access.to < old.to {
                    kept.push(Access { from: access.to, ..old });
                }
            } else {
                kept.push(old);
            }
        }
        kept.push(access);
        self.0 = kept;
        rivals
    }
}

/// Reports that are kept word for word. More are counted.
const REPORTS_MAX: usize = 256;

/// What was found: each pair of operations once.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    pub(crate) texts: Vec<String>,
    pub(crate) count: u64,
    known: BTreeSet<(Arc<str>, Arc<str>)>,
}

impl Reports {
    /// Two accesses of `place`, of which the later ran second. What is said of them, if it has not been said.
    pub(crate) fn add(&mut self, earlier: &Access, later: &Access, place: &str) -> Option<String> {
        if !self.known.insert((earlier.what.clone(), later.what.clone())) {
            return None;
        }
        self.count += 1;
        (self.texts.len() < REPORTS_MAX).then(|| {
            let does = |access: &Access| if access.writes { "writes" } else { "reads" };
            let (from, to) = (earlier.from.max(later.from), earlier.to.min(later.to));
            let text = format!(
                "race: {} {} bytes {from}..{to} of {place}, and {} {} them; nothing orders the two",
                earlier.what,
                does(earlier),
                later.what,
                does(later),
            );
            self.texts.push(text.clone());
            text
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(from: u64, to: u64, writes: bool, epoch: Epoch) -> Access {
        Access { from, to, writes, epoch, what: "it".into() }
    }

    #[test]
    fn reads_do_not_race_and_unordered_writes_do() {
        let (mut history, mut a, mut b) = (History::default(), Clock::default(), Clock::default());
        let (in_a, in_b) = (a.tick(0), b.tick(1));
        assert!(history.note(access(0, 8, false, in_a), &a).is_empty());
        assert!(history.note(access(4, 12, false, in_b), &b).is_empty());
        let rivals = history.note(access(6, 10, true, in_b), &b);
        assert_eq!(rivals.len(), 1, "the other's read, not its own");
        assert_eq!(rivals[0].epoch, in_a);
    }

    #[test]
    fn what_is_covered_in_part_stays_in_part() {
        let (mut history, mut a, b) = (History::default(), Clock::default(), Clock::default());
        let first = a.tick(0);
        history.note(access(0, 100, true, first), &a);
        let second = a.tick(0);
        history.note(access(20, 30, true, second), &a);
        let mut told = b;
        told.join(&{
            let mut clock = Clock::default();
            clock.tick(0);
            clock
        });
        let later = told.tick(1);
        assert_eq!(history.note(access(0, 20, false, later), &told).len(), 0);
        assert_eq!(history.note(access(25, 26, false, later), &told).len(), 1);
        assert_eq!(history.note(access(30, 100, false, later), &told).len(), 0);
        // Someone who was told nothing races with what is left on either side.
        let mut stranger = Clock::default();
        let unknown = stranger.tick(2);
        assert_eq!(history.note(access(0, 20, false, unknown), &stranger).len(), 1);
        assert_eq!(history.note(access(30, 31, false, unknown), &stranger).len(), 1);
        assert_eq!(history.note(access(99, 100, false, unknown), &stranger).len(), 1);
        assert_eq!(history.note(access(100, 101, false, unknown), &stranger).len(), 0);
    }

    #[test]
    fn a_read_covers_an_ordered_read_but_no_write() {
        let (mut history, mut a, mut b) = (History::default(), Clock::default(), Clock::default());
        let wrote = a.tick(0);
        history.note(access(0, 8, true, wrote), &a);
        b.join(&a);
        let read = b.tick(1);
        assert!(history.note(access(0, 8, false, read), &b).is_empty());
        let mut c = Clock::default();
        let other = c.tick(2);
        assert_eq!(history.note(access(0, 8, false, other), &c).len(), 1, "the write, not the read");
    }
}
