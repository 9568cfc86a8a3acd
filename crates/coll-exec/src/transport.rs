//! What an executor needs of a transport: byte streams that never block, and one way to sleep.

use crate::frame::{FINGERPRINT_BYTES, FrameFault, Hex};

/// One of this rank's connections: a byte stream in each direction, in order, to one peer on one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// The other rank.
    pub peer: u32,
    /// The channel.
    pub channel: u32,
}

/// What a sleeping executor would act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interest {
    /// The link.
    pub link: Link,
    /// Wake when bytes can be read.
    pub readable: bool,
    /// Wake when bytes can be written.
    pub writable: bool,
    /// Wake when all that was lent on the link has been given back.
    pub returned: bool,
}

impl Interest {
    /// In bytes that can be read.
    pub fn readable(link: Link) -> Interest {
        Interest { link, readable: true, writable: false, returned: false }
    }

    /// In room for bytes.
    pub fn writable(link: Link) -> Interest {
        Interest { link, readable: false, writable: true, returned: false }
    }

    /// In the return of what was lent.
    pub fn returned(link: Link) -> Interest {
        Interest { link, readable: false, writable: false, returned: true }
    }
}

/// Bytes of a [`Loan`] on the wire.
pub const LOAN_BYTES: usize = 32;

/// A part of a message that the receiver reads in the sender's memory, in place of its bytes.
///
/// | bytes | little-endian |
/// |---|---|
/// | 0..8 | the memory's number, which no other memory of the sender has or had |
/// | 8..16 | what the transport finds it by |
/// | 16..24 | where the part starts |
/// | 24..32 | how long it is: more than nothing, and no more than the message lacks |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loan {
    /// The memory's number.
    pub memory: u64,
    /// What the transport finds it by.
    pub handle: u64,
    /// Where the part starts, in bytes.
    pub offset: u64,
    /// How long it is, in bytes.
    pub bytes: u64,
}

impl Loan {
    /// As it goes over the wire.
    pub fn to_bytes(&self) -> [u8; LOAN_BYTES] {
        let words = [self.memory, self.handle, self.offset, self.bytes];
        let mut bytes = [0; LOAN_BYTES];
        let (places, _) = bytes.as_chunks_mut::<8>();
        places.iter_mut().zip(words).for_each(|(place, word)| *place = word.to_le_bytes());
        bytes
    }

    /// Of bytes that anybody may have sent.
    pub fn from_bytes(bytes: &[u8; LOAN_BYTES]) -> Loan {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| u64::from_le_bytes(words[at]);
        Loan { memory: word(0), handle: word(1), offset: word(2), bytes: word(3) }
    }
}

/// Why an operation cannot go on. The executor adds rank, operation, step and source line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The deadline passed.
    #[error("nothing moved for the time limit of {limit_s} s")]
    TimedOut {
        /// The limit that was set, in seconds.
        limit_s: f64,
    },
    /// The deadline passed, and it is known who kept the others waiting.
    #[error("nothing moved for the time limit of {limit_s} s: {detail}")]
    Late {
        /// The limit that was set, in seconds.
        limit_s: f64,
        /// Who kept the others waiting, ascending.
        ranks: Vec<u32>,
        /// In words: what each of them does instead, or that it does not answer.
        detail: String,
    },
    /// Ranks make different calls under one operation number.
    #[error("{detail}")]
    UnlikeCalls {
        /// The operation's number.
        operation: u64,
        /// Both sides' calls, and who makes which.
        detail: String,
    },
    /// A peer is gone: its connection closed or broke.
    #[error("lost rank {peer}: {detail}")]
    PeerLost {
        /// The peer.
        peer: u32,
        /// What the system said.
        detail: String,
    },
    /// Another rank gave up first; its words are passed on.
    #[error("rank {origin} gave up: {reason}")]
    Aborted {
        /// Who gave up first.
        origin: u32,
        /// Its reason.
        reason: String,
    },
    /// The link is not among those that were set up.
    #[error("no connection to rank {peer} on channel {channel}")]
    NoLink {
        /// The peer.
        peer: u32,
        /// The channel.
        channel: u32,
    },
    /// A peer runs another call: the fingerprints differ. Whoever knows what they stand for tells both calls in words.
    #[error("rank {peer} runs another call: its fingerprint is {}, here {}", Hex(theirs), Hex(ours))]
    Mismatch {
        /// The peer.
        peer: u32,
        /// The fingerprint of this rank's call.
        ours: [u8; FINGERPRINT_BYTES],
        /// That of the peer's call.
        theirs: [u8; FINGERPRINT_BYTES],
    },
    /// What a peer shares with this rank is not as any rank leaves it.
    #[error("what rank {peer} shares with this rank is damaged: {detail}")]
    Damaged {
        /// The peer.
        peer: u32,
        /// What is wrong.
        detail: String,
    },
    /// A peer sent something else than what is due.
    #[error("rank {peer} sent {fault}")]
    Frame {
        /// The peer.
        peer: u32,
        /// What is wrong with it.
        fault: FrameFault,
    },
    /// Every lane waits for another one: the plan has a cycle, or the ranks of a simulated world wait in a ring.
    #[error("nothing can go on: {waits}")]
    Stuck {
        /// Who waits for what.
        waits: String,
    },
    /// A buffer is not as long as its counts say.
    #[error("{part} of buffer `{buffer}` has {found_bytes} B where its counts need {expected_bytes} B")]
    BufferLength {
        /// The buffer's name.
        buffer: String,
        /// `input`, `output` or `memory`.
        part: &'static str,
        /// What the counts need.
        expected_bytes: u64,
        /// What was given.
        found_bytes: u64,
    },
    /// Buffers are not given in the way that the plan was bound for.
    #[error("{found} where {expected} was bound")]
    Buffers {
        /// What was bound.
        expected: String,
        /// What was given.
        found: String,
    },
}

/// One rank's connections. Sending and receiving never block; only [`Transport::wait`] does.
pub trait Transport {
    /// Offers bytes, `parts` one after the other, to a link. Returns how many it took: 0 means that it would block.
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault>;

    /// Takes bytes from a link into `into`, which is not empty. Returns how many: 0 means that it would block.
    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault>;

    /// Shows bytes that have come on a link, in order and where they lie, so that they are read without a copy: none if
    /// there are none for now. They stay until [`Transport::consume`]. A transport that cannot says `None`, and is read
    /// by [`Transport::try_recv`].
    #[inline]
    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        let _ = link;
        Ok(None)
    }

    /// Gives back the first bytes of what [`Transport::peek`] has just shown: at most so many.
    #[inline]
    fn consume(&mut self, link: Link, bytes: usize) {
        let _ = (link, bytes);
    }

    /// Whether payloads on a link carry a checksum; equal on both ends.
    #[inline]
    fn checks(&self, link: Link) -> bool {
        let _ = link;
        false
    }

    /// From how many bytes on it is worth it to lend a message on a link: the receiver reads it where it lies, and says when
    /// it has done so. Nothing if it cannot be done; what holds on one end holds on the other.
    #[inline]
    fn lends(&self, link: Link) -> Option<u64> {
        let _ = link;
        None
    }

    /// Makes a part of a message ready to be read in place by the other end of a link. Nothing if these bytes do not lie
    /// where the peer can read them.
    #[inline]
    fn lend(&mut self, link: Link, bytes: &[u8]) -> Option<Loan> {
        let _ = (link, bytes);
        None
    }

    /// Notes that a message has been lent whole.
    #[inline]
    fn lent(&mut self, link: Link) {
        let _ = link;
    }

    /// Room for a message that goes to several peers: it is written there once, and each of them reads it there. Says where
    /// it is; nothing if there is no such room now.
    #[inline]
    fn stage(&mut self, bytes: u64) -> Option<u64> {
        let _ = bytes;
        None
    }

    /// Writes bytes of a message where it was given room.
    #[inline]
    fn write_staged(&mut self, at: u64, bytes: &[u8]) {
        let _ = (at, bytes);
    }

    /// Makes bytes that were staged ready to be read by a peer.
    #[inline]
    fn lend_staged(&mut self, at: u64, bytes: u64) -> Loan {
        Loan { offset: at, bytes, ..Loan::default() }
    }

    /// Notes that a message that is staged from `at` on has been lent whole on a link; `last` if it will be lent to no other
    /// peer. Its room is used again when all have read it.
    #[inline]
    fn lent_staged(&mut self, link: Link, at: u64, last: bool) {
        let _ = (link, at, last);
    }

    /// Whether the peer has read every message that was lent on a link. Until then what was lent must stay as it is.
    #[inline]
    fn is_returned(&mut self, link: Link) -> Result<bool, Fault> {
        let _ = link;
        Ok(true)
    }

    /// Shows what a peer lends.
    #[inline]
    fn borrow(&mut self, link: Link, loan: &Loan) -> Result<&[u8], Fault> {
        let _ = loan;
        Err(Fault::NoLink { peer: link.peer, channel: link.channel })
    }

    /// Asked after a part has been read: an error if the peer has given up meanwhile, so that its memory may have changed.
    #[inline]
    fn still_lent(&mut self, link: Link, loan: &Loan) -> Result<(), Fault> {
        let _ = (link, loan);
        Ok(())
    }

    /// Says that a message that was lent here has been read whole.
    #[inline]
    fn give_back(&mut self, link: Link) {
        let _ = link;
    }

    /// An operation has failed: what it has lent may change from here on. The peers must find that out before they use it.
    fn revoke(&mut self) {}

    /// An operation ends here: what it has sent must reach the peers even if this rank does not call again.
    #[inline]
    fn flush(&mut self) {}

    /// Sleeps until a link may do what is asked of it, or the operation has failed elsewhere, or the deadline has
    /// passed: the last two are errors. May return early. A lost peer is reported even if no interest names it.
    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault>;
}
