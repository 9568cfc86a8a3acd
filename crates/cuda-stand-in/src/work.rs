//! What lies in a stream's queue, and which bytes it reads and writes.

use crate::clock::Clock;
use crate::kernel::Kernel;
use std::sync::{Arc, OnceLock};

/// A point in a stream that others can wait for: once it has been reached, it says what was known there.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) done: OnceLock<Done>,
}

/// A point that has been reached.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) clock: Clock,
    /// The number of steps until then, which serves as time.
    pub(crate) step: u64,
}

/// How a word in memory is compared with what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    /// At least, going round.
    AtLeast,
    Equal,
    And,
    Nor,
}

impl Compare {
    pub(crate) fn holds(self, word: u64, value: u64, wide: bool) -> bool {
        match self {
            Compare::AtLeast if wide => (word.wrapping_sub(value) as i64) >= 0,
            Compare::AtLeast => ((word as u32).wrapping_sub(value as u32) as i32) >= 0,
            Compare::Equal => word == value,
            Compare::And => word & value != 0,
            Compare::Nor if wide => !(word | value) != 0,
            Compare::Nor => !(word as u32 | value as u32) != 0,
        }
    }
}

/// One thing to do.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Copy {
        to: u64,
        from: u64,
        bytes: u64,
    },
    /// A copy of host memory that was read as the call was made.
    Upload {
        to: u64,
        bytes: Arc<[u8]>,
    },
    /// A pattern of 1, 2 or 4 bytes, repeated.
    Fill {
        to: u64,
        pattern: [u8; 4],
        width: u64,
        count: u64,
    },
    Launch {
        kernel: Arc<Kernel>,
        arguments: Vec<u64>,
        grid: u32,
        block: u32,
    },
    /// A function of the host, and what it is called with.
    Call {
        function: usize,
        data: usize,
    },
    Record(Arc<Record>),
    Wait(Arc<Record>),
    /// An event of several processes: where its word is, and the number of this recording.
    RecordShared {
        word: u64,
        number: u64,
        record: Arc<Record>,
    },
    WaitShared {
        word: u64,
        number: u64,
        known: Option<Arc<Record>>,
    },
    WaitWord {
        at: u64,
        wide: bool,
        value: u64,
        compare: Compare,
    },
    WriteWord {
        at: u64,
        wide: bool,
        value: u64,
    },
    /// Memory comes about.
    Allocate {
        base: u64,
        bytes: u64,
    },
    /// Memory goes.
    Free {
        base: u64,
        bytes: u64,
    },
}

/// Bytes that an operation reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
    pub(crate) writes: bool,
}

impl Touch {
    pub(crate) fn reads(at: u64, bytes: u64) -> Touch {
        Touch { at, bytes, writes: false }
    }

    pub(crate) fn writes(at: u64, bytes: u64) -> Touch {
        Touch { at, bytes, writes: true }
    }
}

impl Work {
    /// What it reads and writes; words that serve to wait are neither.
    pub(crate) fn touches(&self) -> Vec<Touch> {
        match self {
            Work::Copy { to, from, bytes } => vec![Touch::reads(*from, *bytes), Touch::writes(*to, *bytes)],
            Work::Upload { to, bytes } => vec![Touch::writes(*to, bytes.len() as u64)],
            Work::Fill { to, width, count, .. } => vec![Touch::writes(*to, width.saturating_mul(*count))],
            Work::Launch { kernel, arguments, .. } => kernel.touches(arguments),
            Work::Allocate { base, bytes } | Work::Free { base, bytes } => {
                vec![Touch::writes(*base, *bytes)]
            }
            _ => Vec::new(),
        }
    }

    /// Bytes that it reads and writes and that overlap, where nothing says what comes of it: a kernel's target may be exactly
    /// one of its sources, and the areas of a copy may not touch at all.
    pub(crate) fn overlap(&self) -> Option<(Touch, Touch)> {
        let may_be_same = matches!(self, Work::Launch { .. });
        let touches = self.touches();
        let (target, sources) = touches.split_last()?;
        let overlaps = |source: &&Touch| {
            let apart = source.at >= target.at.saturating_add(target.bytes)
                || target.at >= source.at.saturating_add(source.bytes);
            let same = may_be_same && (source.at, source.bytes) == (target.at, target.bytes);
            !source.writes && target.writes && !apart && !same
        };
        sources.iter().find(overlaps).map(|source| (*source, *target))
    }

    /// What it is, for reports.
    pub(crate) fn told(&self) -> String {
        match self {
            Work::Copy { bytes, .. } => format!("a copy of {bytes} bytes"),
            Work::Upload { bytes, .. } => format!("a copy of {} bytes from the host", bytes.len()),
            Work::Fill { width, count, .. } => format!("a fill of {} bytes", width.saturating_mul(*count)),
            Work::Launch { kernel, .. } => format!("kernel {}", kernel.name),
            Work::Call { .. } => "a host function".into(),
            Work::Record(_) | Work::RecordShared { .. } => "an event".into(),
            Work::Wait(_) | Work::WaitShared { .. } => "a wait for an event".into(),
            Work::WaitWord { value, .. } => format!("a wait for the value {value}"),
            Work::WriteWord { value, .. } => format!("a write of the value {value}"),
            Work::Allocate { bytes, .. } => format!("an allocation of {bytes} bytes"),
            Work::Free { bytes, .. } => format!("the freeing of {bytes} bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_as_cuda_does() {
        assert!(Compare::AtLeast.holds(5, 5, false) && !Compare::AtLeast.holds(4, 5, false));
        assert!(Compare::AtLeast.holds(2, u64::from(u32::MAX), false), "it goes round");
        assert!(!Compare::AtLeast.holds(2, u64::from(u32::MAX), true));
        assert!(Compare::AtLeast.holds(2, u64::MAX, true));
        assert!(Compare::Equal.holds(7, 7, true) && !Compare::Equal.holds(6, 7, true));
        assert!(Compare::And.holds(6, 2, false) && !Compare::And.holds(4, 2, false));
        assert!(Compare::Nor.holds(0, 1, false) && !Compare::Nor.holds(u64::from(u32::MAX), 0, false));
    }
}
