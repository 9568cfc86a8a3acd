//! How long a rank that finds nothing to do looks again before it sleeps.
//!
//! Waking a sleeping core costs 20 to 30 µs, several times what a small message takes otherwise, so a rank that expects
//! bytes soon does better to ask again. That holds while every rank has a core. Where ranks share cores, a rank that
//! asks takes the core from the one that it waits for: there it asks a few times, gives its core away between more
//! tries, and then sleeps. Either way no more than a millisecond is spent before it sleeps.

use std::time::{Duration, Instant};

/// The longest that may be spun, whatever the options say.
pub(crate) const SPIN_LIMIT_MAX: Duration = Duration::from_millis(1);

/// Tries of a crowded rank before it gives its core away, and how often it does that before it sleeps.
const CROWDED_TRIES: u32 = 2;
const CROWDED_YIELDS: u32 = 40;

/// What to do where nothing has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// Look again.
    Again,
    /// Let others run, then look again.
    Yield,
    Sleep,
}

/// A rank's patience since bytes last moved.
#[derive(Debug)]
pub(crate) struct Spin {
    limit: Duration,
    crowded: bool,
    since: Option<Instant>,
    tries: u32,
}

impl Spin {
    pub(crate) fn new(limit: Duration, crowded: bool) -> Spin {
        Spin { limit: limit.min(SPIN_LIMIT_MAX), crowded, since: None, tries: 0 }
    }

    pub(crate) fn set_crowded(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    /// Something has moved.
    pub(crate) fn renew(&mut self) {
        self.since = None;
        self.tries = 0;
    }

    pub(crate) fn next(&mut self) -> Rest {
        if self.limit.is_zero() {
            return Rest::Sleep;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        self.tries = self.tries.saturating_add(1);
        if self.tries > 1 && since.elapsed() >= self.limit {
            return Rest::Sleep;
        }
        match self.crowded {
            false => Rest::Again,
            true if self.tries <= CROWDED_TRIES => Rest::Again,
            true if self.tries <= CROWDED_TRIES + CROWDED_YIELDS => Rest::Yield,
            true => Rest::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rests(spin: &mut Spin, most: u32) -> [u32; 2] {
        let mut counts = [0; 2];
        for _ in 0..most {
            match spin.next() {
                Rest::Again => counts[0] += 1,
                Rest::Yield => counts[1] += 1,
                Rest::Sleep => break,
            }
        }
        counts
    }

    #[test]
    fn no_core_is_burnt_beyond_the_limit() {
        let began = Instant::now();
        let mut spin = Spin::new(Duration::from_secs(5), false);
        let [tries, yields] = rests(&mut spin, u32::MAX);
        assert!(tries > 1 && yields == 0);
        assert!(began.elapsed() >= SPIN_LIMIT_MAX && began.elapsed() < Duration::from_millis(200));
        assert_eq!(spin.next(), Rest::Sleep, "until something moves");
        spin.renew();
        assert_eq!(spin.next(), Rest::Again);
        assert_eq!(rests(&mut Spin::new(Duration::ZERO, false), 10), [0, 0]);
    }

    #[test]
    fn the_crowded_give_their_core_away() {
        let mut spin = Spin::new(SPIN_LIMIT_MAX, true);
        let [tries, yields] = rests(&mut spin, 10_000);
        assert!(tries <= CROWDED_TRIES && yields <= CROWDED_YIELDS && tries > 0, "{tries} {yields}");
    }
}
