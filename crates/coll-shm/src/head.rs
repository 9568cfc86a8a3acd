//! What a rank shows all its peers: who it is, whether it is still there, and whether it is asleep.

use crate::bell::{self, Bell};
use crate::memory::{Block, PAGE_BYTES};
use rustix::io::Errno;
use rustix::thread::futex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

/// Bytes of a head.
pub(crate) const HEAD_BYTES: usize = PAGE_BYTES;

/// Sixteen random bytes that a rank writes into its memory: who reads them through a mapping has the right one.
pub(crate) type Token = [u8; 16];

const TOKEN_AT: usize = 0;
const ASLEEP_AT: usize = 64;
const STATE_AT: usize = 128;
const REVOKED_AT: usize = 192;

/// Whether a rank is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    Here,
    /// It left in good order.
    Left,
    /// It was dropped in the middle of things.
    Dropped,
}

/// A view of a rank's head.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    block: Arc<Block>,
    /// Whether only threads of this process see it.
    private: bool,
}

impl Head {
    /// For threads of this process.
    pub(crate) fn private() -> io::Result<Head> {
        Ok(Head { block: Arc::new(Block::heap(HEAD_BYTES)?), private: true })
    }

    /// In memory that processes share.
    pub(crate) fn shared(block: Block) -> Head {
        Head { block: Arc::new(block), private: false }
    }

    pub(crate) fn token(&self) -> Token {
        let [low, high] =
            [0, 8].map(|at| self.block.word(TOKEN_AT + at).load(Ordering::Acquire).to_ne_bytes());
        let mut token = [0; 16];
        token[..8].copy_from_slice(&low);
        token[8..].copy_from_slice(&high);
        token
    }

    pub(crate) fn set_token(&self, token: Token) {
        let (halves, _) = token.as_chunks::<8>();
        for (at, half) in halves.iter().enumerate() {
            self.block.word(TOKEN_AT + 8 * at).store(u64::from_ne_bytes(*half), Ordering::Release);
        }
    }

    pub(crate) fn presence(&self) -> Presence {
        match self.block.half(STATE_AT).load(Ordering::Acquire) {
            0 => Presence::Here,
            1 => Presence::Left,
            _ => Presence::Dropped,
        }
    }

    /// Goes; what was said first stays.
    pub(crate) fn go(&self, presence: Presence) {
        let value = match presence {
            Presence::Here => 0,
            Presence::Left => 1,
            Presence::Dropped => 2,
        };
        let _ = self.block.half(STATE_AT).compare_exchange(0, value, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Says that what the rank has lent is not to be used from here on.
    pub(crate) fn revoke(&self) {
        self.block.half(REVOKED_AT).store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Whether it has said so.
    #[inline]
    pub(crate) fn has_revoked(&self) -> bool {
        self.block.half(REVOKED_AT).load(Ordering::SeqCst) != 0
    }

    /// Sleeps until it is woken or for `limit`, unless `ready` says that there is something to do.
    pub(crate) fn sleep(&self, limit: Duration, ready: impl FnOnce() -> bool) {
        bell::sleep(&Futex { head: self, limit }, ready);
    }

    /// Wakes the rank if it is asleep. The caller has put a fence after what the rank is to see.
    #[inline]
    pub(crate) fn wake(&self) {
        bell::wake(&Futex { head: self, limit: Duration::ZERO });
    }

    fn flags(&self) -> futex::Flags {
        if self.private { futex::Flags::PRIVATE } else { futex::Flags::empty() }
    }
}

/// A head's flag, which ranks sleep on for at most `limit`.
struct Futex<'h> {
    head: &'h Head,
    limit: Duration,
}

impl Futex<'_> {
    #[inline]
    fn word(&self) -> &AtomicU32 {
        self.head.block.half(ASLEEP_AT)
    }
}

impl Bell for Futex<'_> {
    fn set(&self, up: bool) {
        self.word().store(up.into(), Ordering::Relaxed);
    }

    #[inline]
    fn is_up(&self) -> bool {
        self.word().load(Ordering::Relaxed) != 0
    }

    fn take_down(&self) -> bool {
        self.word().swap(0, Ordering::AcqRel) != 0
    }

    fn fence(&self) {
        fence(Ordering::SeqCst);
    }

    fn doze(&self) {
        let limit = self.limit.try_into().ok();
        match futex::wait(self.word(), self.head.flags(), 1, limit.as_ref()) {
            // Woken, too late to sleep, a signal, or time is up: all the same to the caller.
            Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
            // A system that cannot: time passes all the same.
            Err(_) => std::thread::yield_now(),
        }
    }

    fn rouse(&self) {
        let _ = futex::wake(self.word(), self.head.flags(), 1);
    }
}
