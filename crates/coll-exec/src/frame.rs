//! The header before each message: 32 bytes that say what follows, so that a receiver knows that it reads what it was
//! meant to read, and finds out at once if the ranks do not run the same call. The first message of an operation on a
//! link has 16 bytes more, the fingerprint of the call: with 8 bytes of payload and a transport's own word, header and
//! all fit into one cache line of 64 bytes.
//!
//! | bytes | little-endian |
//! |---|---|
//! | 0..2 | magic `c0 11` |
//! | 2 | version |
//! | 3 | form of the elements: 0 as they are, 1 as the operator prepared them; 2 more if loans follow in their place, 4 more if a checksum follows them |
//! | 4..8 | generation of the communicator |
//! | 8..16 | operation number |
//! | 16..20 | number of the message on its link, from 0 in each operation |
//! | 20..24 | step of the program that it comes from: tells people where the sender was |
//! | 24..32 | payload bytes |
//! | 32..48 | fingerprint of the call; only in message 0 |
//!
//! A checksum is the CRC-32C of the payload (G. Castagnoli, S. Bräuer, M. Herrmann, 1993), four bytes after it; a message
//! without payload has none. A header needs none: it is compared with what is due, byte for byte but for the step.
//!
//! The length is compared with what is due, never used. What tells whose frame it is comes first, so that a receiver
//! knows after 32 bytes whether 16 more belong to it.

use std::fmt;

/// Bytes of a header but the first.
pub const HEADER_BYTES: usize = 32;

/// Bytes of the header of message 0 of an operation on a link: the longest.
pub const FIRST_HEADER_BYTES: usize = HEADER_BYTES + FINGERPRINT_BYTES;

/// Bytes of the checksum after a payload.
pub(crate) const CHECKSUM_BYTES: usize = 4;

/// Bytes of the fingerprint of a call.
pub const FINGERPRINT_BYTES: usize = 16;

const MAGIC: [u8; 2] = [0xc0, 0x11];
const VERSION: u8 = 3;

/// The bytes of the step, which are not compared.
const STEP: std::ops::Range<usize> = 20..24;

/// What a header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Whether elements are as the operator prepared them.
    pub prepared: bool,
    /// Whether [loans](crate::Loan) follow in place of the payload.
    pub lent: bool,
    /// Whether a checksum follows the payload.
    pub checked: bool,
    /// The communicator's generation: frames of a torn-down one are strangers.
    pub generation: u32,
    /// The operation's number.
    pub operation: u64,
    /// The message's number on its link.
    pub message: u32,
    /// The step it comes from.
    pub step: u32,
    /// Bytes that follow.
    pub payload_bytes: u64,
    /// What tells the call from others; it goes with message 0 alone.
    pub fingerprint: [u8; FINGERPRINT_BYTES],
}

impl Header {
    /// How long the header of message number `message` is.
    #[inline]
    pub fn size_bytes(message: u32) -> usize {
        if message == 0 { FIRST_HEADER_BYTES } else { HEADER_BYTES }
    }

    /// As it goes over the wire: the first [`Header::size_bytes`] of these.
    #[inline]
    pub fn to_bytes(&self) -> [u8; FIRST_HEADER_BYTES] {
        let mut bytes = [0; FIRST_HEADER_BYTES];
        bytes[0..2].copy_from_slice(&MAGIC);
        bytes[2] = VERSION;
        bytes[3] = self.form();
        bytes[4..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.operation.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.message.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.step.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes[32..48].copy_from_slice(&self.fingerprint);
        bytes
    }

    fn form(&self) -> u8 {
        u8::from(self.prepared) | u8::from(self.lent) << 1 | u8::from(self.checked) << 2
    }

    /// The header that is due if the message is lent, where that is what has arrived.
    pub(crate) fn as_lent(&self, arrived: &[u8]) -> Option<Header> {
        let lent = Header { lent: true, ..*self };
        (arrived.get(3) == Some(&lent.form())).then_some(lent)
    }

    /// Checks what has arrived of a header against what is due. Nothing is decided before 32 bytes are there, and all
    /// once [`Header::size_bytes`] are. The sender's step is told, not compared: plans may number steps as they like on
    /// both ends.
    #[inline]
    pub fn check(&self, arrived: &[u8]) -> Result<(), FrameFault> {
        match self.is(arrived) {
            true => Ok(()),
            false => self.difference(arrived),
        }
    }

    /// Whether it is the one that is due, in few steps.
    #[inline]
    fn is(&self, arrived: &[u8]) -> bool {
        let Some((first, rest)) = arrived.split_first_chunk::<HEADER_BYTES>() else { return false };
        let due = self.to_bytes();
        let (words, _) = first.as_chunks::<8>();
        let (dues, _) = due.as_chunks::<8>();
        // The step is the high half of the third word.
        let differences = [u64::MAX, u64::MAX, u32::MAX.into(), u64::MAX];
        let same = (0..4).all(|at| {
            let difference = u64::from_le_bytes(words[at]) ^ u64::from_le_bytes(dues[at]);
            difference & differences[at] == 0
        });
        same && (self.message > 0 || rest.first_chunk() == Some(&self.fingerprint))
    }

    #[cold]
    fn difference(&self, arrived: &[u8]) -> Result<(), FrameFault> {
        let Some((first, rest)) = arrived.split_first_chunk::<HEADER_BYTES>() else { return Ok(()) };
        if first[0..2] != MAGIC {
            let [a, b, ..] = *first;
            return Err(FrameFault::Foreign { found: u16::from_be_bytes([a, b]) });
        }
        if first[2] != VERSION {
            return Err(FrameFault::Version { sent: first[2], due: VERSION });
        }
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| first[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let sender_step = word(STEP.start);
        let fault = |field, sent: u64, due: u64| match sent == due {
            true => Ok(()),
            false => Err(FrameFault::Field { field, sent, due, sender_step, step: self.step }),
        };
        fault(Field::Generation, word(4).into(), self.generation.into())?;
        fault(Field::Operation, long(8), self.operation)?;
        fault(Field::Message, word(16).into(), self.message.into())?;
        if self.message == 0 {
            // Different calls differ in more than the fingerprint: that is the better news, and waited for.
            let Some((theirs, _)) = rest.split_first_chunk() else { return Ok(()) };
            if *theirs != self.fingerprint {
                return Err(FrameFault::Call { ours: self.fingerprint, theirs: *theirs });
            }
        }
        fault(Field::Form, first[3].into(), self.form().into())?;
        fault(Field::PayloadBytes, long(24), self.payload_bytes)
    }
}

/// A part of a header that both ends must agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Field {
    Generation,
    Operation,
    Message,
    Form,
    PayloadBytes,
}

/// A header that is not the one that is due. Reads on after "rank 1 sent".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// Not a header at all.
    #[error("what is no frame: it starts with {found:#06x} where 0xc011 is due")]
    Foreign {
        /// The first two bytes.
        found: u16,
    },
    /// Another version of the wire format.
    #[error("a frame of wire version {sent} where version {due} is due: do all ranks run one release?")]
    Version {
        /// The sender's.
        sent: u8,
        /// Ours.
        due: u8,
    },
    /// It belongs to another call.
    #[error("a frame of another call: its fingerprint is {}, here {}", Hex(theirs), Hex(ours))]
    Call {
        /// The fingerprint of this rank's call.
        ours: [u8; FINGERPRINT_BYTES],
        /// The sender's.
        theirs: [u8; FINGERPRINT_BYTES],
    },
    /// The payload is not what was sent.
    #[error("a payload of {} B whose checksum is {due:08x}, and {found:08x} came of it: it was damaged on its way", Grouped(*bytes))]
    Checksum {
        /// Its length in bytes.
        bytes: u64,
        /// The sender's.
        due: u32,
        /// Of what came.
        found: u32,
    },
    /// A field differs.
    #[error("{}", FieldFault { field: *field, sent: *sent, due: *due, sender_step: *sender_step, step: *step })]
    Field {
        /// Which.
        field: Field,
        /// What the sender says.
        sent: u64,
        /// What is due here.
        due: u64,
        /// The sender's step.
        sender_step: u32,
        /// The receiver's step.
        step: u32,
    },
}

/// Puts a field that differs into words.
struct FieldFault {
    field: Field,
    sent: u64,
    due: u64,
    sender_step: u32,
    step: u32,
}

impl fmt::Display for FieldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, due) = (self.sent, self.due);
        match self.field {
            Field::Generation => {
                write!(f, "a frame of generation {sent} where {due} is due: one rank has started anew")?
            }
            Field::Operation => {
                write!(
                    f,
                    "a frame of operation {sent} where {due} is due: do all ranks call in the same order?"
                )?;
            }
            Field::Message => {
                write!(f, "message {sent} where message {due} is due: do all ranks run the same plan?")?
            }
            Field::Form => {
                let form = |form| match form {
                    0 => "plain elements",
                    1 => "prepared elements",
                    2 | 3 => "elements in its own memory",
                    4 | 5 => "elements with a checksum",
                    _ => "elements of no known form",
                };
                write!(f, "{} where {} are due", form(sent), form(due))?;
                if sent | due == 1 {
                    write!(f, ": do all ranks use the same operator?")?;
                }
            }
            Field::PayloadBytes => {
                write!(f, "{} B where {} B are due: counts differ?", Grouped(sent), Grouped(due))?;
            }
        }
        if self.sender_step != self.step {
            write!(f, " (its step {}, here step {})", self.sender_step, self.step)?;
        }
        Ok(())
    }
}

/// `c0ffee`
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// `1,638,400`
pub(crate) struct Grouped(pub(crate) u64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Header = Header {
        prepared: false,
        lent: false,
        checked: false,
        generation: 2,
        operation: 1 << 40,
        message: 5,
        step: 4,
        payload_bytes: 1_638_392,
        fingerprint: *b"allreduce of f32",
    };
    const FIRST: Header = Header { message: 0, ..DUE };

    fn sent(header: &Header) -> Vec<u8> {
        header.to_bytes()[..Header::size_bytes(header.message)].to_vec()
    }

    fn check(change: impl Fn(&mut Header), due: &str) {
        let mut header = DUE;
        change(&mut header);
        assert_eq!(DUE.check(&sent(&header)).unwrap_err().to_string(), due);
    }

    #[test]
    fn a_header_reads_back_and_every_difference_is_told() {
        assert_eq!(DUE.check(&sent(&DUE)), Ok(()));
        check(|sent| sent.payload_bytes = 1_638_400, "1,638,400 B where 1,638,392 B are due: counts differ?");
        check(
            |sent| (sent.message, sent.step) = (6, 7),
            "message 6 where message 5 is due: do all ranks run the same plan? (its step 7, here step 4)",
        );
        check(
            |sent| sent.operation = 281,
            "a frame of operation 281 where 1099511627776 is due: do all ranks call in the same order?",
        );
        check(
            |sent| sent.generation = 1,
            "a frame of generation 1 where 2 is due: one rank has started anew",
        );
        check(
            |sent| sent.prepared = true,
            "prepared elements where plain elements are due: do all ranks use the same operator?",
        );
        check(|sent| sent.lent = true, "elements in its own memory where plain elements are due");
        check(|sent| sent.checked = true, "elements with a checksum where plain elements are due");
        let mut other_step = DUE;
        other_step.step = 9;
        assert_eq!(DUE.check(&sent(&other_step)), Ok(()), "steps are told, not compared");
    }

    #[test]
    fn another_call_is_told_before_what_follows_from_it() {
        let other = Header { fingerprint: *b"broadcast of i32", payload_bytes: 1, ..FIRST };
        let (ours, theirs) = (FIRST.fingerprint, other.fingerprint);
        assert_eq!(FIRST.check(&sent(&other)), Err(FrameFault::Call { ours, theirs }));
        assert_eq!(FIRST.check(&sent(&other)[..47]), Ok(()), "the rest of the fingerprint may still come");
        // Whose frame it is decides whether there will be a fingerprint.
        assert!(FIRST.check(&sent(&DUE)).is_err() && DUE.check(&sent(&FIRST)[..32]).is_err());
    }

    #[test]
    fn no_byte_but_the_steps_may_change_unnoticed() {
        for due in [DUE, FIRST] {
            for byte in (0..sent(&due).len()).filter(|byte| !STEP.contains(byte)) {
                for bit in 0..8 {
                    let mut bytes = sent(&due);
                    bytes[byte] ^= 1 << bit;
                    assert!(due.check(&bytes).is_err(), "byte {byte}, bit {bit}");
                }
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn bytes_of_any_kind_are_judged(bytes: Vec<u8>, start: u8, first: bool) {
            let due = if first { FIRST } else { DUE };
            // Right as far as `start`, then anything.
            let mut arrived = sent(&due);
            arrived.truncate(start.into());
            arrived.extend(&bytes);
            arrived.truncate(sent(&due).len());
            let whole = arrived.len() == sent(&due).len();
            let same = arrived.iter().zip(sent(&due)).enumerate().all(|(at, (a, b))| STEP.contains(&at) || *a == b);
            match due.check(&arrived) {
                Ok(()) => assert!(!whole || same),
                Err(fault) => assert!(!same && !fault.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let shown = [0, 999, 1000, 123_456, 1_234_567].map(|x| Grouped(x).to_string());
        assert_eq!(shown, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}
