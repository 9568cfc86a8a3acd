//! What can be chosen: how large rings are, and how a rank waits.

use std::time::Duration;

/// The smallest and the largest ring, in bytes.
const RING_BYTES: [usize; 2] = [16 << 10, 16 << 20];

/// What a rank writes into a ring of this size has left its second-level cache, of 1 MiB, when the peer reads it: from
/// the third level that is faster than out of the other core's second. Measured between two processes, f32 all-reduce by
/// a ring: 32 KiB in 5.3, 4.0, 3.0, 2.9 and 3.3 µs with rings of 512 KiB and 1, 2, 4 and 8 MiB, 1 MiB in 125, 62, 61, 67
/// and 78 µs.
const RING_BYTES_DEFAULT: usize = 2 << 20;

/// Bytes of all rings of a rank with its peers, one channel each, that are worked on at once: what is more drives the
/// ranks' own data out of the third level.
const WORKING_BYTES: usize = 4 << 20;

/// But no ring is smaller than this on that account.
const RING_BYTES_WORKING: usize = 128 << 10;

/// Bytes that they may have in any case: 64 ranks stay below 40 MiB each.
const BUDGET_BYTES: usize = 32 << 20;

/// Below, to copy into a ring takes no more time than to wait until the receiver has read the message. Measured between two
/// processes on far cores: an all-gather's messages of 8, 12, 16 and 32 KiB in 2.1, 2.3, 2.5 and 3.2 µs where they are read in
/// place, and in 12 (a step of the rings' own), 4.4, 5.4 and 8.8 µs through a ring; an all-reduce's of 8, 12, 16 and 32 KiB in 7.8,
/// 11.0, 13.3 and 21.0 against 7.6, 9.9, 12.2 and 21.1 µs. On near cores the gain begins at about the same sizes.
const LEND_BYTES: u64 = 16 << 10;

/// Memory like any other is read in place from larger messages on. An all-reduce's messages of 512 KiB out of memory that was
/// made to be lent took 49 µs in place and 64 through a ring on near cores, but 250 and 105 on far ones; of 8 MiB 2230 and 3330.
const SHOW_BYTES: u64 = 1 << 20;

/// Choices of a world or a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Bytes under way on a link in one direction: rounded to a power of two between 16 KiB and 16 MiB. By default as
    /// many as measured best, or fewer where there are many ranks.
    pub ring_bytes: Option<usize>,
    /// How a rank waits. By default by how many ranks share how many cores.
    pub waiting: Option<Waiting>,
    /// From how many bytes on a message out of [`Memory`](crate::Memory) is read in place by its receiver. By default from
    /// where it was measured to be faster.
    pub lend_bytes: Option<u64>,
    /// For threads: from how many bytes on a message out of any memory is read in place by its receiver. By default from where that
    /// is faster wherever the two threads run.
    pub show_bytes: Option<u64>,
    /// For processes: a name of the machine that this rank is on, beside the one that it finds. Ranks that give another one
    /// share no memory with it, even if they could.
    pub host: String,
    /// For threads: only each so many ranks, one after the other, share memory. By default all do.
    pub ranks_per_host: Option<u32>,
    /// For threads: the machine of each rank, whatever `ranks_per_host` says; only ranks of one share memory. None by default.
    pub machines: Vec<u32>,
}

/// How a rank waits: it looks again and again, then lets others run between looks, then sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How often it looks without giving its core away.
    pub spins: u32,
    /// For how long it then gives its core to whoever can run between looks.
    pub yielding: Duration,
}

impl Waiting {
    /// For so many ranks on so many cores. To wake a sleeping core takes some 20 µs, so a rank with a core of its own
    /// spins for about as long before it thinks of sleeping; ranks that share a core have nothing to spin for.
    pub fn of(ranks: usize, cores: usize) -> Waiting {
        match ranks <= cores {
            true => Waiting { spins: 1000, yielding: Duration::from_millis(2) },
            false => Waiting { spins: 2, yielding: Duration::from_millis(1) },
        }
    }
}

impl Options {
    pub(crate) fn ring_bytes(&self, world: u32) -> usize {
        let [least, most] = RING_BYTES;
        let each = |bytes: usize| bytes / (2 * (world as usize).max(2) - 2);
        let worked_on = each(WORKING_BYTES).clamp(RING_BYTES_WORKING, RING_BYTES_DEFAULT);
        let wanted = self.ring_bytes.unwrap_or(worked_on.min(each(BUDGET_BYTES))).clamp(least, most);
        // Down, so that the budget holds.
        1 << wanted.ilog2()
    }

    pub(crate) fn lend_bytes(&self) -> u64 {
        self.lend_bytes.unwrap_or(LEND_BYTES).max(1)
    }

    pub(crate) fn show_bytes(&self) -> u64 {
        self.show_bytes.unwrap_or(SHOW_BYTES).max(1)
    }

    pub(crate) fn waiting(&self, ranks: usize) -> Waiting {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.waiting.unwrap_or(Waiting::of(ranks, cores))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_of_many_ranks_stay_within_their_budget() {
        for world in 1..5000u32 {
            let ring = Options::default().ring_bytes(world);
            assert!(ring.is_power_of_two() && (16 << 10..=RING_BYTES_DEFAULT).contains(&ring));
            assert!(world != 2 || ring == RING_BYTES_DEFAULT);
            assert!(world > 1024 || ring * 2 * (world as usize - 1) <= BUDGET_BYTES, "{world}: {ring}");
        }
        assert_eq!(Options { ring_bytes: Some(100_000), ..Options::default() }.ring_bytes(2), 65536);
        assert_eq!(Options { ring_bytes: Some(usize::MAX), ..Options::default() }.ring_bytes(2), 16 << 20);
    }
}
