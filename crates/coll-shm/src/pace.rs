//! How long packets get into a ring: through the cache, or past it.
//!
//! The lines of a ring were last read by the other core, and to write one through the cache means to fetch it from there
//! first. How long that takes depends on where the two cores are. Measured on one machine, both directions at once:
//!
//! | | written, GB/s | read, GB/s |
//! |---|---|---|
//! | cores with a common third-level cache, through the cache | 22 to 42 | 31 to 38 |
//! | the same, past the cache | 23 to 30 | 19 to 21 |
//! | cores without, through the cache | 2.4 | 20 |
//! | the same, past the cache | 38 to 47 | 20 to 26 |
//!
//! A virtual machine's cores move while a job runs, so a writer keeps measuring: now and then the start of a packet goes
//! through the cache and is timed.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant};

/// Packets from here on are worth the question.
const STREAM_BYTES: usize = 1 << 10;

/// The timed start of a packet.
const PROBE_BYTES: usize = 2 << 10;

/// One packet of so many is timed.
const TIMED: u32 = 32;

/// A line that takes longer than this to write, in nanoseconds, comes from afar: between the 2 to 7 of near cores and
/// the 19 to 40 of far ones.
const FAR_LINE_NS: f32 = 11.0;

/// What a writer knows of how far its reader is.
#[derive(Debug)]
pub(crate) struct Pace {
    line_ns: f32,
    packets: u32,
}

/// How a packet is to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copying {
    /// Past the cache, but for the start that is timed.
    pub(crate) stream: bool,
    /// Bytes at the start that are timed, through the cache.
    pub(crate) probe_bytes: usize,
}

impl Pace {
    pub(crate) fn new() -> Pace {
        Pace { line_ns: 0.0, packets: 0 }
    }

    /// How to copy the next packet.
    #[inline]
    pub(crate) fn choose(&mut self, bytes: usize) -> Copying {
        if bytes < STREAM_BYTES {
            return Copying { stream: false, probe_bytes: 0 };
        }
        self.packets = self.packets.wrapping_add(1);
        let probe_bytes = if self.packets % TIMED == 1 { PROBE_BYTES.min(bytes) } else { 0 };
        Copying { stream: self.line_ns > FAR_LINE_NS, probe_bytes }
    }

    /// Times the start of a packet.
    pub(crate) fn time(&mut self, probe_bytes: usize, copy: impl FnOnce()) {
        let started = Instant::now();
        copy();
        // Until the lines are there: stores are taken over long before.
        fence(Ordering::SeqCst);
        self.note(started.elapsed().saturating_sub(timing()), probe_bytes);
    }

    fn note(&mut self, took: Duration, probe_bytes: usize) {
        let line_ns = took.as_nanos() as f32 * 64.0 / probe_bytes as f32;
        // One that was interrupted tells nothing; many slow ones do.
        self.line_ns += (line_ns.min(3.0 * FAR_LINE_NS) - self.line_ns) * 0.25;
    }
}

/// What it takes to time nothing: as long as some lines take, which would count against a short packet.
fn timing() -> Duration {
    static LEAST: OnceLock<Duration> = OnceLock::new();
    *LEAST.get_or_init(|| {
        let nothing = |_| {
            let started = Instant::now();
            fence(Ordering::SeqCst);
            started.elapsed()
        };
        (0..TIMED).map(nothing).min().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_readers_are_written_to_past_the_cache_and_near_ones_again_through_it() {
        let mut pace = Pace::new();
        assert_eq!(pace.choose(STREAM_BYTES - 1), Copying { stream: false, probe_bytes: 0 });
        let mut verdict = |line_ns: u64| {
            for _ in 0..20 * TIMED {
                let Copying { probe_bytes, .. } = pace.choose(32 << 10);
                if probe_bytes > 0 {
                    pace.note(Duration::from_nanos(line_ns * PROBE_BYTES as u64 / 64), probe_bytes);
                }
            }
            pace.choose(1 << 10).stream
        };
        assert_eq!([5, 30, 8, 40].map(&mut verdict), [false, true, false, true]);
    }

    #[test]
    fn one_slow_packet_is_no_verdict() {
        let mut pace = Pace::new();
        pace.note(Duration::from_secs(1), PROBE_BYTES);
        assert!(!pace.choose(32 << 10).stream);
    }
}
