//! The clock of the flight record. Every call asks it twice, so it gives the processor's own count where that is even and the
//! same on all cores, which takes some 8 ns; to ask the system takes three times as long. What a count means in time is found
//! out only when somebody looks: by two places where both are known, at the start and then.
//!
//! The count has no safe name in Rust: hence `unsafe`.

#![allow(unsafe_code)]

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A moment, as the clock counts. None is 0.
pub(crate) type Ticks = u64;

/// Counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    counts: bool,
    start: Known,
}

/// A moment that is known both ways.
#[derive(Clone, Copy, Debug)]
struct Known {
    ticks: Ticks,
    time: Instant,
}

/// What ticks are in nanoseconds since 1970, as far as it is known at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    ticks: Ticks,
    since_1970_ns: u64,
    ns_per_tick: f64,
}

/// How often a moment is looked at, to have it once without being interrupted.
const LOOKS: usize = 5;

impl Clock {
    pub(crate) fn new() -> Clock {
        let time = Instant::now();
        let clock = Clock { counts: is_even(), start: Known { ticks: 1, time } };
        Clock { start: clock.known(), ..clock }
    }

    /// The moment.
    #[inline]
    pub(crate) fn now(&self) -> Ticks {
        if self.counts { count() } else { self.asked() }
    }

    /// Nanoseconds since the clock was made, and one more.
    #[cold]
    fn asked(&self) -> Ticks {
        u64::try_from(self.start.time.elapsed().as_nanos()).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// What its ticks are. Times between the start and now are exact to some tens of nanoseconds, against a clock that
    /// nobody sets; all are moved alike to where the system's clock is now.
    pub(crate) fn scale(&self) -> Scale {
        let now = self.known();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ticks = now.ticks.saturating_sub(self.start.ticks);
        let ns = (now.time - self.start.time).as_nanos() as f64;
        let ns_per_tick = if ticks > 0 { ns / ticks as f64 } else { 1.0 };
        let since_1970_ns = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
        Scale { ticks: now.ticks, since_1970_ns, ns_per_tick }
    }

    /// This moment both ways, as near to each other as can be had.
    fn known(&self) -> Known {
        let look = |_| {
            let (before, time, after) = (self.now(), Instant::now(), self.now());
            (after.saturating_sub(before), Known { ticks: before + after.saturating_sub(before) / 2, time })
        };
        let best = (0..LOOKS).map(look).min_by_key(|&(ticks, _)| ticks);
        best.map_or(self.start, |(_, known)| known)
    }
}

impl Scale {
    /// Nanoseconds since 1970.
    pub(crate) fn ns(&self, ticks: Ticks) -> u64 {
        let ns = |ticks: u64| (ticks as f64 * self.ns_per_tick).round() as u64;
        match self.ticks.checked_sub(ticks) {
            Some(before) => self.since_1970_ns.saturating_sub(ns(before)),
            None => self.since_1970_ns.saturating_add(ns(ticks - self.ticks)),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn count() -> Ticks {
    // SAFETY: every such processor counts, and where the system forbids a program to look, nothing else would run either.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn count() -> Ticks {
    0
}

/// Whether the processor says that its count goes on at one rate, whatever it does.
#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe, reason = "newer releases have it safe")]
fn is_even() -> bool {
    const LARGEST: u32 = 0x8000_0000;
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    // SAFETY: every such processor answers, and the second question is asked only if the first answer knows it.
    unsafe {
        std::arch::x86_64::__cpuid(LARGEST).eax >= POWER
            && std::arch::x86_64::__cpuid(POWER).edx & INVARIANT != 0
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn is_even() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn since_1970_ns() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_nanos() as u64
    }

    #[test]
    fn moments_are_told_as_the_system_tells_them() {
        for counts in [false, is_even()] {
            let clock = Clock { counts, ..Clock::new() };
            let clock = Clock { start: clock.known(), ..clock };
            let mut told = Vec::new();
            for _ in 0..20 {
                let (before, ticks, after) = (since_1970_ns(), clock.now(), since_1970_ns());
                told.push((before, ticks, after));
                std::thread::sleep(Duration::from_micros(300));
            }
            assert!(told.is_sorted_by_key(|&(_, ticks, _)| ticks) && told[0].1 > 0);
            let scale = clock.scale();
            for (before, ticks, after) in told {
                let ns = scale.ns(ticks);
                // What it may be off by, and what the system's clock is set by meanwhile.
                assert!(ns + 5_000 > before && ns < after + 5_000, "{counts}: {before} {ns} {after}");
            }
        }
    }
}
