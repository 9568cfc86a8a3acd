//! Bytes of a run that other threads of its process read where they lie: all memory of a process is theirs to see, but only as
//! long as it is there, and a run's buffers are the caller's again when the run ends.
//!
//! So a run has a gate. A [`Sight`] names bytes of the run; who wants to read them goes through the gate first, which
//! counts readers, and is not let in once the run has ended. A run that has shown something ends by closing its gate
//! and waiting until nobody is within, however it ends: well, with an error, or because its thread panics. Whoever
//! reads does nothing but that, so the wait is short; usually all have long read what they were shown. What a
//! transport says or fails to say changes nothing of that.
//!
//! The reader's slice has no owner that the compiler could see: hence `unsafe`.

#![allow(unsafe_code)]

use crate::run::Running;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a gate's word that count readers; those above number the runs.
const READERS_BITS: u32 = 16;
const READERS: u64 = (1 << READERS_BITS) - 1;

/// How often a run looks for readers before it lets others run.
const SPINS: u32 = 200;

/// The number of the run that may be looked at, and how many do so.
#[derive(Debug, Default)]
struct Gate(AtomicU64);

impl Gate {
    /// Lets a reader in, if the run of this number has not ended.
    fn enter(&self, run: u64) -> bool {
        let before = self.0.fetch_add(1, Ordering::SeqCst);
        let open = before >> READERS_BITS == run;
        if !open {
            self.leave();
        }
        open
    }

    fn leave(&self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    /// Ends the run. Returns when nobody is within.
    fn close(&self) {
        self.0.fetch_add(1 << READERS_BITS, Ordering::SeqCst);
        let mut looks = 0;
        while self.0.load(Ordering::SeqCst) & READERS != 0 {
            looks += 1;
            if looks < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// What a bound plan shows of its runs.
#[derive(Debug, Default)]
pub(crate) struct Shows {
    gate: Arc<Gate>,
    /// The number of the run.
    run: u64,
    /// Whether what is shown now is there until the gate closes.
    open: bool,
    /// Whether something was shown.
    used: bool,
}

impl Shows {
    /// Whether anything may be shown.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// Shows bytes of the buffers and the scratch of the run, if that is one to its end.
    pub(crate) fn show(&mut self, bytes: &[u8]) -> Option<Sight> {
        self.used |= self.open;
        let (gate, run) = (&self.gate, self.run);
        self.open.then(|| Sight { start: bytes.as_ptr(), len: bytes.len(), gate: Arc::clone(gate), run })
    }

    fn close(&mut self) {
        self.open = false;
        if std::mem::take(&mut self.used) {
            self.gate.close();
            self.run += 1;
        }
    }
}

/// Runs to the end, and shows meanwhile what it is asked to. Its buffers are borrowed for longer than this takes, and whoever
/// is let in has left when it returns or unwinds.
#[inline]
pub(crate) fn shown<R>(running: &mut Running<'_, '_>, work: impl FnOnce(&mut Running<'_, '_>) -> R) -> R {
    struct Closes<'r, 'b, 'a>(&'r mut Running<'b, 'a>);
    impl Drop for Closes<'_, '_, '_> {
        fn drop(&mut self) {
            self.0.shows().close();
        }
    }
    running.shows().open = true;
    let closes = Closes(running);
    work(closes.0)
}

/// Bytes of a run, for another thread of its process: a name, not a borrow. [`Sight::look`] gives the bytes while the run has not
/// ended.
#[derive(Debug)]
pub struct Sight {
    start: *const u8,
    len: usize,
    gate: Arc<Gate>,
    run: u64,
}

// SAFETY: the address is only read through the gate, and bytes may be read from any thread.
unsafe impl Send for Sight {}
// SAFETY: as above; nothing in it changes.
unsafe impl Sync for Sight {}

impl Sight {
    /// How many bytes there are.
    #[allow(clippy::len_without_is_empty, reason = "it is of no use empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The bytes, to be read at once: the run cannot end before this is dropped. Nothing if it has ended.
    pub fn look(&self) -> Option<Look> {
        let Sight { start, len, run, .. } = *self;
        self.gate.enter(run).then(|| Look { start, len, gate: Arc::clone(&self.gate) })
    }
}

/// Bytes of a run of another thread, which waits for this to be dropped before it ends.
#[derive(Debug)]
pub struct Look {
    start: *const u8,
    len: usize,
    gate: Arc<Gate>,
}

// SAFETY: as for a sight.
unsafe impl Send for Look {}

impl Deref for Look {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: they lie in a buffer or the scratch of a run, which has not ended and does not before this is gone; until then
        // both are borrowed by it. It does not write to what a message is made of before the message has been read; that a
        // receiver says so too soon is as with memory that processes share: what is read is only ever moved and combined.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.gate.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    fn open() -> Shows {
        Shows { open: true, ..Shows::default() }
    }

    #[test]
    fn what_is_shown_is_read_until_the_run_ends_and_not_after() {
        let bytes = [1u8, 2, 3];
        let mut shows = open();
        let sight = shows.show(&bytes[1..]).expect("it is open");
        assert_eq!((sight.len(), &*sight.look().expect("it has not ended")), (2, &[2u8, 3][..]));
        shows.close();
        assert!(sight.look().is_none() && shows.show(&bytes).is_none());
        shows.open = true;
        let next = shows.show(&bytes).expect("it is open again");
        assert!(sight.look().is_none(), "that is of an earlier run");
        assert_eq!(next.look().expect("it has not ended")[0], 1);
        shows.close();
    }

    #[test]
    fn a_run_does_not_end_before_its_readers_have_left() {
        for _ in 0..200 {
            let bytes = vec![7u8; 4096];
            let mut shows = open();
            let sight = shows.show(&bytes).expect("it is open");
            let ended = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let reader = scope.spawn(|| {
                    let look = sight.look()?;
                    std::thread::sleep(Duration::from_micros(50));
                    assert!(!ended.load(Ordering::SeqCst), "it ended while it was looked at");
                    Some(look.iter().map(|&byte| u64::from(byte)).sum::<u64>())
                });
                shows.close();
                ended.store(true, Ordering::SeqCst);
                drop(bytes);
                let sum = reader.join().expect("the reader panics not");
                assert!(sum.is_none_or(|sum| sum == 7 * 4096));
            });
        }
    }

    #[test]
    fn what_is_not_open_shows_nothing_and_costs_nothing_to_close() {
        let mut shows = Shows::default();
        assert!(!shows.is_open() && shows.show(&[1]).is_none());
        shows.close();
        assert_eq!(shows.run, 0);
    }
}
