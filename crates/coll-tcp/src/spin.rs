//! How long a rank that finds nothing to do looks again before it sleeps.
//!
//! Waking a sleeping core costs 20 to 30 µs, several times what a small message takes otherwise, so a rank that expects
//! bytes soon does better to ask again. It must not keep the core from the rank that it waits for, though: even where
//! there are cores enough, the system may put both on one, and asking for 200 µs on end then made a step of 8 µs take
//! 230. So it asks a few times, then gives its core away between tries; with more ranks than cores it does so almost at
//! once, and not for long. A core that comes back late has gone to a program that has nothing to do with the job: then
//! sleep is better, as the system runs a sleeper that is woken before such a one. No more than a millisecond is spent
//! before it sleeps.

use std::time::{Duration, Instant};

/// The longest that may be spun, whatever the options say.
pub(crate) const SPIN_LIMIT_MAX: Duration = Duration::from_millis(1);

/// Tries before a rank gives its core away, of 0.3 to 0.8 µs each: as long as a small message travels. Each time that
/// giving it away was what helped, it tries once less the next time: its peer may be on the same core.
const TRIES: u32 = 8;
const CROWDED_TRIES: u32 = 2;

/// How often a crowded rank gives its core away before it sleeps.
const CROWDED_YIELDS: u32 = 40;

/// A core that is away for so long has gone to another program.
const LONG_AWAY: Duration = Duration::from_millis(1);

/// So many rests after that are sleep at once.
const WARY_RESTS: u32 = 200;

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
    tries: u32,
    tries_max: u32,
    /// When it first gave its core away, and when it last did.
    yielded: Option<(Instant, Instant)>,
    wary: u32,
}

impl Spin {
    pub(crate) fn new(limit: Duration, crowded: bool) -> Spin {
        let limit = limit.min(SPIN_LIMIT_MAX);
        Spin { limit, crowded, tries: 0, tries_max: TRIES, yielded: None, wary: 0 }
    }

    pub(crate) fn set_crowded(&mut self, crowded: bool) {
        self.crowded = crowded;
    }

    /// Something has moved.
    pub(crate) fn renew(&mut self) {
        let most = if self.crowded { CROWDED_TRIES } else { TRIES };
        self.tries_max = match self.yielded {
            Some(_) => self.tries_max.saturating_sub(1).clamp(1, most),
            None => (self.tries_max + 1).min(most),
        };
        self.tries = 0;
        self.yielded = None;
    }

    pub(crate) fn next(&mut self) -> Rest {
        if self.limit.is_zero() {
            return Rest::Sleep;
        }
        self.tries = self.tries.saturating_add(1);
        if self.tries <= self.tries_max {
            return Rest::Again;
        }
        if self.wary > 0 {
            self.wary -= 1;
            return Rest::Sleep;
        }
        self.after_tries(Instant::now(), self.tries - self.tries_max)
    }

    fn after_tries(&mut self, now: Instant, yields: u32) -> Rest {
        let (first, last) = self.yielded.unwrap_or((now, now));
        if now.duration_since(last) > LONG_AWAY {
            self.wary = WARY_RESTS;
            return Rest::Sleep;
        }
        if now.duration_since(first) >= self.limit || self.crowded && yields > CROWDED_YIELDS {
            return Rest::Sleep;
        }
        self.yielded = Some((first, now));
        Rest::Yield
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often it looks again, and how often it yields, before it sleeps.
    fn rests(spin: &mut Spin) -> [u32; 2] {
        let mut counts = [0; 2];
        loop {
            match spin.next() {
                Rest::Again => counts[0] += 1,
                Rest::Yield => counts[1] += 1,
                Rest::Sleep => return counts,
            }
        }
    }

    #[test]
    fn no_core_is_burnt_beyond_the_limit() {
        let began = Instant::now();
        let mut spin = Spin::new(Duration::from_secs(5), false);
        let [tries, yields] = rests(&mut spin);
        assert!(tries == TRIES && yields > 0);
        assert!(began.elapsed() < Duration::from_millis(200));
        assert_eq!(spin.next(), Rest::Sleep, "until something moves");
        spin.renew();
        assert_eq!(spin.next(), Rest::Again);
        assert_eq!(rests(&mut Spin::new(Duration::ZERO, false)), [0, 0]);
    }

    #[test]
    fn tries_are_fewer_where_giving_the_core_away_helps_and_more_where_they_do() {
        let mut spin = Spin::new(SPIN_LIMIT_MAX, false);
        let now = Instant::now();
        for left in (1..TRIES).rev() {
            assert_eq!(spin.after_tries(now, 1), Rest::Yield);
            spin.renew();
            assert_eq!(spin.tries_max, left);
        }
        for more in 2..=TRIES {
            assert_eq!(spin.next(), Rest::Again);
            spin.renew();
            assert_eq!(spin.tries_max, more);
        }
    }

    #[test]
    fn the_crowded_give_their_core_away_soon_and_not_for_long() {
        let mut spin = Spin::new(SPIN_LIMIT_MAX, true);
        spin.renew();
        let [tries, yields] = rests(&mut spin);
        assert!(tries == CROWDED_TRIES && yields <= CROWDED_YIELDS, "{yields}");
    }

    #[test]
    fn beside_a_busy_program_a_rank_sleeps_at_once_for_a_while() {
        let mut spin = Spin::new(SPIN_LIMIT_MAX, false);
        let now = Instant::now();
        assert_eq!(spin.after_tries(now, 1), Rest::Yield);
        assert_eq!(spin.after_tries(now + Duration::from_micros(900), 2), Rest::Yield);
        assert_eq!(spin.after_tries(now + Duration::from_micros(1950), 3), Rest::Sleep);
        for _ in 0..WARY_RESTS {
            spin.renew();
            assert_eq!(rests(&mut spin)[1], 0);
        }
        spin.renew();
        while spin.next() == Rest::Again {}
        assert!(spin.yielded.is_some(), "it has forgotten");
    }
}
