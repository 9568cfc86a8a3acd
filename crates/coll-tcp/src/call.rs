//! What a rank is doing: the call that it makes under an operation number, and how far it is with it.
//!
//! Kept up to date by the calling thread at the cost of a lock that nobody else wants, once a call, and told to the server only
//! when a rank stalls and it asks. Then the calls of all ranks are compared, and those that are late are known.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many of the latest calls a rank remembers: ranks that are not in step can be compared all the same.
const REMEMBERED: usize = 8;

/// How many it remembers of calls that it makes as one: any of them may be the one that differs.
const GROUP_REMEMBERED: usize = 64;

/// Words that are told in all, in bytes: far less than a message may have. Later calls are told without.
const WORDS_BYTES_MAX: usize = 128 << 10;

/// The most fields of a call that are told, and the most characters of each name and value.
const FIELDS_MAX: usize = 32;
const FIELD_CHARS_MAX: usize = 200;

/// A call as every rank must make it under the same operation number. Made once and used for every operation like it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Equal if and only if the calls are.
    pub fingerprint: [u8; 16],
    /// The same for people, as ordered (field, value) pairs: the operation, the count and so on.
    pub words: Vec<(String, String)>,
}

/// What a rank is doing.
#[derive(Debug, Default)]
pub(crate) struct Doing {
    /// The latest operations, oldest first.
    recent: VecDeque<(u64, Arc<Call>)>,
    waits_for: Vec<u32>,
}

/// Whether a rank is in a call, and since when or since when not: what changes twice a call, without a lock.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    within: AtomicBool,
    /// 0 if it has not been in any.
    since_ms: AtomicU64,
    /// It may be known whom it waits for.
    waits: AtomicBool,
}

impl Moment {
    /// The rank is in a call from now on, or in none.
    pub(crate) fn turn(&self, within: bool) {
        self.within.store(within, Ordering::Relaxed);
        self.since_ms.store(tick_ms(), Ordering::Relaxed);
    }

    pub(crate) fn is_within(&self) -> bool {
        self.within.load(Ordering::Relaxed)
    }

    pub(crate) fn may_wait(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    pub(crate) fn set_waits(&self, waits: bool) {
        self.waits.store(waits, Ordering::Relaxed);
    }

    /// For how long, in milliseconds.
    fn age_ms(&self) -> u64 {
        match self.since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since => tick_ms().saturating_sub(since),
        }
    }
}

/// As it is told to the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The latest operations, oldest first; none if the rank has not begun any.
    pub(crate) recent: Vec<Told>,
    /// Whether it is in the last of them still.
    pub(crate) within: bool,
    /// For how long, or since when not, in milliseconds.
    pub(crate) since_ms: u64,
    /// Whom it waits for, if it has slept for long.
    pub(crate) waits_for: Vec<u32>,
}

/// A call under an operation number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Told {
    pub(crate) operation: u64,
    pub(crate) fingerprint: [u8; 16],
    pub(crate) words: Vec<(String, String)>,
}

impl Doing {
    /// A call that begins; `within` another one if both are made as one.
    pub(crate) fn begin(&mut self, operation: u64, call: &Arc<Call>, within: bool) {
        let kept = if within { GROUP_REMEMBERED } else { REMEMBERED };
        if self.recent.len() == kept && self.recent.front().is_some_and(|(_, first)| Arc::ptr_eq(first, call))
        {
            // In a loop the oldest is often the same call: it is remembered anew, and nothing is counted up and down.
            self.recent.rotate_left(1);
            if let Some(last) = self.recent.back_mut() {
                last.0 = operation;
            }
            return;
        }
        self.recent.reserve(kept.saturating_sub(self.recent.len()));
        while self.recent.len() >= kept {
            self.recent.pop_front();
        }
        self.recent.push_back((operation, Arc::clone(call)));
    }

    /// It waits for nobody any more.
    pub(crate) fn waited(&mut self) {
        self.waits_for.clear();
    }

    pub(crate) fn wait_for(&mut self, peers: impl Iterator<Item = u32>) {
        self.waits_for.clear();
        self.waits_for.extend(peers);
        self.waits_for.sort_unstable();
        self.waits_for.dedup();
    }

    pub(crate) fn report(&self, moment: &Moment) -> Report {
        let mut left = WORDS_BYTES_MAX;
        let told = |(operation, call): &(u64, Arc<Call>)| {
            let words = call.words.iter().take(FIELDS_MAX).map(|(name, value)| (cut(name), cut(value)));
            let words: Vec<(String, String)> = if left > 0 { words.collect() } else { Vec::new() };
            left = left.saturating_sub(words.iter().map(|(name, value)| name.len() + value.len()).sum());
            Told { operation: *operation, fingerprint: call.fingerprint, words }
        };
        Report {
            recent: self.recent.iter().map(told).collect(),
            within: moment.is_within(),
            since_ms: moment.age_ms(),
            waits_for: self.waits_for.clone(),
        }
    }
}

/// The time of the system's last tick, some milliseconds old: it is asked for twice in each call, and takes a fifth of what exact
/// time does. Never 0.
fn tick_ms() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    let time = Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0));
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(FIELD_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

impl Report {
    /// The latest operation's number.
    pub(crate) fn operation(&self) -> Option<u64> {
        self.recent.last().map(|told| told.operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_calls_are_remembered_and_nothing_is_allocated_for_them() {
        let call = Arc::new(Call { fingerprint: [1; 16], words: vec![("count".into(), "4".into())] });
        let (mut doing, moment) = (Doing::default(), Moment::default());
        assert_eq!(doing.report(&moment), Report::default());
        moment.turn(true);
        doing.begin(0, &call, false);
        let space = doing.recent.capacity();
        let other = Arc::new(Call { fingerprint: [2; 16], ..Call::default() });
        (1..40).for_each(|operation| {
            doing.begin(operation, if operation == 35 { &other } else { &call }, false);
        });
        assert_eq!(doing.recent.capacity(), space);
        doing.wait_for([3, 1, 3].into_iter());
        let report = doing.report(&moment);
        assert_eq!((report.operation(), report.within, report.waits_for), (Some(39), true, vec![1, 3]));
        let told: Vec<(u64, u8)> =
            report.recent.iter().map(|told| (told.operation, told.fingerprint[0])).collect();
        assert_eq!(told, [(32, 1), (33, 1), (34, 1), (35, 2), (36, 1), (37, 1), (38, 1), (39, 1)]);
        doing.waited();
        moment.turn(false);
        assert_eq!((doing.report(&moment).within, doing.report(&moment).waits_for), (false, vec![]));
    }

    #[test]
    fn of_calls_that_are_made_as_one_the_first_is_remembered() {
        let call = Arc::new(Call { fingerprint: [1; 16], words: vec![("count".into(), "4".into())] });
        let (mut doing, moment) = (Doing::default(), Moment::default());
        (0..40).for_each(|operation| doing.begin(operation, &call, operation > 0));
        assert_eq!(doing.report(&moment).recent.first().map(|told| told.operation), Some(0));
        (40..100).for_each(|operation| doing.begin(operation, &call, true));
        assert_eq!(doing.report(&moment).recent.len(), GROUP_REMEMBERED);
        doing.begin(100, &call, false);
        assert_eq!(doing.report(&moment).recent.first().map(|told| told.operation), Some(93));
    }

    #[test]
    fn endless_words_are_cut() {
        let words = vec![("é".repeat(1000), "x".repeat(10)); 100];
        let call = Arc::new(Call { fingerprint: [0; 16], words });
        let (mut doing, moment) = (Doing::default(), Moment::default());
        doing.begin(1, &call, false);
        let told = &doing.report(&moment).recent[0];
        assert_eq!((told.words.len(), told.words[0].0.chars().count()), (32, 203));
        (2..60).for_each(|operation| doing.begin(operation, &call, true));
        let told = doing.report(&moment).recent;
        let bytes = told.iter().flat_map(|told| &told.words).map(|(name, value)| name.len() + value.len());
        assert!(told.len() == 59 && bytes.sum::<usize>() < 2 * WORDS_BYTES_MAX);
    }
}
