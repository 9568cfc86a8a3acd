//! A small memory that all rank processes of a benchmark share: a start barrier, agreement, and a slot for each rank
//! and iteration. Ranks start a timed call within a fraction of a microsecond of each other, whatever the transport is.
//!
//! This is the one file of this crate with unsafe code: mapping a file, and looking at it as atomics.
#![allow(unsafe_code)]

use crate::failure::Failure;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The most timed iterations of a cell.
pub(super) const ITERS_MAX: u32 = 20_000;

/// Words of a cache line: what ranks spin on lies apart.
const LINE: usize = 8;
const ARRIVED: usize = 0;
const GENERATION: usize = LINE;
const AGREED: usize = 2 * LINE;
const PING: usize = 3 * LINE;
const PONG: usize = 4 * LINE;
const FAILED: usize = 5 * LINE;
const SLOTS: usize = 6 * LINE;

/// Figures of each rank beside its iterations.
#[derive(Clone, Copy)]
pub(super) enum Figure {
    /// Processor time in seconds.
    Cpu,
    /// Microseconds of a call without barriers.
    BackToBack,
    /// Wrong elements.
    Bad,
}

const FIGURES: usize = 3;

/// One rank's view of the shared memory.
pub(super) struct Control {
    map: memmap2::MmapRaw,
    world: usize,
    rank: usize,
    patience: Duration,
}

fn words(world: u32) -> usize {
    SLOTS + world as usize * (FIGURES + ITERS_MAX as usize)
}

/// Gives a new file the size that ranks map.
pub(super) fn size(file: &File, world: u32) -> std::io::Result<()> {
    file.set_len(8 * words(world) as u64)
}

impl Control {
    /// Maps the file, which the launcher has sized.
    pub(super) fn open(path: &Path, world: u32, rank: u32, patience: Duration) -> Result<Control, Failure> {
        let shown = path.display();
        let failure = |error| Failure::unusable(format!("rank {rank}: the control file `{shown}`: {error}"));
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(failure)?;
        let map = memmap2::MmapRaw::map_raw(&file).map_err(failure)?;
        if map.len() < 8 * words(world) {
            return Err(Failure::unusable(format!("rank {rank}: the control file `{shown}` is too short")));
        }
        Ok(Control { map, world: world as usize, rank: rank as usize, patience })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at < words(self.world as u32), "a word beyond the control memory");
        // SAFETY: the mapping is page aligned, shared, longer than `at` words (checked when it was opened and above) and
        // lives as long as `self`; every process looks at it as atomics alone.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().cast::<u64>().add(at)) }
    }

    /// Waits until every rank is here: spins a little, then yields. Ends early if a rank has failed, or never comes.
    pub(super) fn barrier(&self) -> Result<(), Failure> {
        let generation = self.word(GENERATION).load(Ordering::Acquire);
        if self.word(ARRIVED).fetch_add(1, Ordering::SeqCst) + 1 == self.world as u64 {
            self.word(ARRIVED).store(0, Ordering::SeqCst);
            self.word(GENERATION).store(generation + 1, Ordering::Release);
            return Ok(());
        }
        self.wait("the start barrier", 200, || self.word(GENERATION).load(Ordering::Acquire) != generation)
    }

    fn wait(&self, what: &str, spins: u32, done: impl Fn() -> bool) -> Result<(), Failure> {
        let mut tries = 0u32;
        let mut since = None;
        while !done() {
            tries = tries.wrapping_add(1);
            if tries <= spins {
                std::hint::spin_loop();
                continue;
            }
            std::thread::yield_now();
            if tries.is_multiple_of(1024) {
                let since = *since.get_or_insert_with(Instant::now);
                if self.word(FAILED).load(Ordering::Relaxed) != 0 {
                    return Err(Failure::wrong(format!("rank {}: another rank gave up first", self.rank)));
                }
                if since.elapsed() > self.patience {
                    let limit = self.patience.as_secs_f64();
                    let message = format!("rank {}: not every rank came to {what} in {limit} s", self.rank);
                    return Err(Failure::wrong(message));
                }
            }
        }
        Ok(())
    }

    /// Tells the others not to wait any longer.
    pub(super) fn fail(&self) {
        self.word(FAILED).store(1, Ordering::Relaxed);
    }

    /// Every rank gets rank 0's value.
    pub(super) fn agree(&self, value: u64) -> Result<u64, Failure> {
        if self.rank == 0 {
            self.word(AGREED).store(value, Ordering::SeqCst);
        }
        self.barrier()?;
        let agreed = self.word(AGREED).load(Ordering::SeqCst);
        self.barrier()?;
        Ok(agreed)
    }

    /// Notes the time of an iteration.
    pub(super) fn put_us(&self, iteration: u32, us: f64) {
        self.word(self.iteration(self.rank, iteration)).store(us.to_bits(), Ordering::Relaxed);
    }

    /// The time of an iteration, which is the largest over the ranks.
    pub(super) fn slowest_us(&self, iteration: u32) -> f64 {
        let of = |rank| f64::from_bits(self.word(self.iteration(rank, iteration)).load(Ordering::Relaxed));
        (0..self.world).map(of).fold(0.0, f64::max)
    }

    fn iteration(&self, rank: usize, iteration: u32) -> usize {
        SLOTS + self.world * FIGURES + rank * ITERS_MAX as usize + iteration.min(ITERS_MAX - 1) as usize
    }

    /// Notes a figure of this rank.
    pub(super) fn put(&self, figure: Figure, value: f64) {
        self.word(SLOTS + self.rank * FIGURES + figure as usize).store(value.to_bits(), Ordering::Relaxed);
    }

    /// A figure of every rank.
    pub(super) fn all(&self, figure: Figure) -> impl Iterator<Item = f64> {
        let of = move |rank: usize| {
            f64::from_bits(self.word(SLOTS + rank * FIGURES + figure as usize).load(Ordering::Relaxed))
        };
        (0..self.world).map(of)
    }

    /// One way between ranks 0 and 1 through this memory, in microseconds; known to rank 0. It shows the state of the
    /// machine: whether the two cores share a cache.
    pub(super) fn ping_pong_us(&self) -> Result<f64, Failure> {
        const BATCH: u64 = 40;
        const BATCHES: u64 = 12;
        if self.world < 2 {
            return Ok(0.0);
        }
        if self.rank == 0 {
            self.word(PING).store(0, Ordering::SeqCst);
            self.word(PONG).store(0, Ordering::SeqCst);
        }
        self.barrier()?;
        let until = |word: usize, value: u64| {
            self.wait("the ping-pong", 5000, || self.word(word).load(Ordering::SeqCst) == value)
        };
        let mut best = f64::INFINITY;
        match self.rank {
            0 => {
                for batch in 0..BATCHES {
                    let start = Instant::now();
                    for i in batch * BATCH + 1..=(batch + 1) * BATCH {
                        self.word(PING).store(i, Ordering::SeqCst);
                        until(PONG, i)?;
                    }
                    best = best.min(start.elapsed().as_secs_f64() * 1e6 / BATCH as f64 / 2.0);
                }
            }
            1 => {
                for i in 1..=BATCH * BATCHES {
                    until(PING, i)?;
                    self.word(PONG).store(i, Ordering::SeqCst);
                }
            }
            _ => {}
        }
        self.barrier()?;
        Ok(if self.rank == 0 { best } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_map_one_file_meet_agree_and_give_up() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        size(file.as_file(), 3).expect("it is sized");
        let rank = |rank: u32| {
            let path = file.path().to_path_buf();
            move || {
                let control = Control::open(&path, 3, rank, Duration::from_secs(20)).expect("it opens");
                for round in 0..50u64 {
                    assert_eq!(control.agree(round * (1 - u64::from(rank.min(1)))).expect("all come"), round);
                    control.put_us(round as u32, f64::from(rank) + round as f64);
                    control.barrier().expect("all come");
                    assert_eq!(control.slowest_us(round as u32), 2.0 + round as f64);
                    control.barrier().expect("all come");
                }
                control.ping_pong_us().expect("both play");
                if rank == 2 {
                    control.fail();
                    return;
                }
                let alone = control.barrier().expect_err("rank 2 has failed");
                assert!(alone.message().contains("another rank gave up"), "{alone}");
            }
        };
        let threads = [0, 1, 2].map(|number| std::thread::spawn(rank(number)));
        threads.into_iter().for_each(|thread| thread.join().expect("it ends well"));
    }

    #[test]
    fn a_file_that_is_too_short_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        size(file.as_file(), 1).expect("it is sized");
        let error =
            Control::open(file.path(), 2, 0, Duration::from_secs(1)).err().expect("it is for one rank");
        assert!(error.message().contains("too short"), "{error}");
    }
}
