//! The header before each message: 32 bytes that say what follows, so that a receiver knows that it reads what it was
//! meant to read, and finds out at once if the ranks do not run the same call.
//!
//! | bytes | little-endian |
//! |---|---|
//! | 0..2 | magic `c0 11` |
//! | 2 | version |
//! | 3 | form of the elements: 0 as they are, 1 as the operator prepared them |
//! | 4..8 | generation of the communicator |
//! | 8..16 | operation number |
//! | 16..20 | number of the message on its link, from 0 in each operation |
//! | 20..24 | step of the program that it comes from: tells people where the sender was |
//! | 24..32 | payload bytes |
//!
//! The length is compared with what is due, never used.

use std::fmt;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 32;

const MAGIC: [u8; 2] = [0xc0, 0x11];
const VERSION: u8 = 1;

/// What a header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Whether elements are as the operator prepared them.
    pub prepared: bool,
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
}

impl Header {
    /// As it goes over the wire.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..2].copy_from_slice(&MAGIC);
        bytes[2] = VERSION;
        bytes[3] = self.prepared.into();
        bytes[4..8].copy_from_slice(&self.generation.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.operation.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.message.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.step.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes
    }

    /// Checks what arrived against what is due. The sender's step is told, not compared: plans may number steps as
    /// they like on both ends.
    pub fn check(self, arrived: &[u8; HEADER_BYTES]) -> Result<(), FrameFault> {
        if arrived[0..2] != MAGIC {
            let [a, b, ..] = *arrived;
            return Err(FrameFault::Foreign { found: u16::from_be_bytes([a, b]) });
        }
        if arrived[2] != VERSION {
            return Err(FrameFault::Version { sent: arrived[2], due: VERSION });
        }
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| arrived[at + i]));
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let sender_step = word(20);
        let fault = |field, sent: u64, due: u64| match sent == due {
            true => Ok(()),
            false => Err(FrameFault::Field { field, sent, due, sender_step, step: self.step }),
        };
        fault(Field::Generation, word(4).into(), self.generation.into())?;
        fault(Field::Operation, long(8), self.operation)?;
        fault(Field::Message, word(16).into(), self.message.into())?;
        fault(Field::Form, arrived[3].into(), self.prepared.into())?;
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
                let form = |prepared| if prepared == 0 { "plain elements" } else { "prepared elements" };
                write!(f, "{} where {} are due: do all ranks use the same operator?", form(sent), form(due))?;
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
        generation: 2,
        operation: 1 << 40,
        message: 5,
        step: 4,
        payload_bytes: 1_638_392,
    };

    fn check(change: impl Fn(&mut Header), due: &str) {
        let mut sent = DUE;
        change(&mut sent);
        assert_eq!(DUE.check(&sent.to_bytes()).unwrap_err().to_string(), due);
    }

    #[test]
    fn a_header_reads_back_and_every_difference_is_told() {
        assert_eq!(DUE.check(&DUE.to_bytes()), Ok(()));
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
        let mut other_step = DUE;
        other_step.step = 9;
        assert_eq!(DUE.check(&other_step.to_bytes()), Ok(()), "steps are told, not compared");
    }

    #[test]
    fn no_byte_but_the_steps_may_change_unnoticed() {
        for byte in (0..HEADER_BYTES).filter(|byte| !(20..24).contains(byte)) {
            for bit in 0..8 {
                let mut bytes = DUE.to_bytes();
                bytes[byte] ^= 1 << bit;
                assert!(DUE.check(&bytes).is_err(), "byte {byte}, bit {bit}");
            }
        }
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let shown = [0, 999, 1000, 123_456, 1_234_567].map(|x| Grouped(x).to_string());
        assert_eq!(shown, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}
