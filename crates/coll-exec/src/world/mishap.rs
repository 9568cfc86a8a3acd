//! What may befall a message in a world. Where a message starts is read from its header; one that something befalls is
//! held until it is whole, whatever the link holds, and comes then as its fate has it.

use super::random::Random;
use crate::frame::{CHECKSUM_BYTES, HEADER_BYTES, Header};
use std::collections::BTreeMap;

/// What befalls a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// It never comes.
    Drop,
    /// It comes late, and all that follows on its link after it.
    Delay,
    /// It comes twice.
    Duplicate,
    /// The message that follows it on its link overtakes it. If none follows it comes late.
    Reorder,
    /// One of its bits, anywhere, is turned round.
    Corrupt,
}

/// By sender, receiver and channel.
type Key = (u32, u32, u32);

/// What will befall messages, and what is held back.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    expected: Vec<(u32, u64, Mishap)>,
    /// Messages that each rank has begun.
    begun: BTreeMap<u32, u64>,
    streams: BTreeMap<Key, Stream>,
}

/// A link's message under way, and what was held back before it.
#[derive(Debug, Default)]
struct Stream {
    /// Bytes of the message that are still to go.
    left: usize,
    fate: Option<Mishap>,
    /// What has gone of a message that something befalls.
    message: Vec<u8>,
    late: Vec<u8>,
    /// What is late comes after the next message.
    overtaken: bool,
}

impl Fates {
    pub(crate) fn expect(&mut self, rank: u32, number: u64, mishap: Mishap) {
        self.expected.push((rank, number, mishap));
    }

    /// Whether something befalls the message that these bytes begin or go on with.
    pub(crate) fn is_amiss(&mut self, key: Key, parts: &[&[u8]], checks: bool) -> bool {
        if self.expected.is_empty() {
            return false;
        }
        let stream = self.streams.entry(key).or_default();
        if stream.left == 0 {
            stream.left = message_bytes(parts, checks);
            let begun = self.begun.entry(key.0).or_default();
            let due = |(rank, number, _): &&(u32, u64, Mishap)| (*rank, *number) == (key.0, *begun);
            stream.fate = self.expected.iter().find(due).map(|(_, _, mishap)| *mishap);
            *begun += 1;
        }
        // One that was held in part is held to its end.
        stream.fate.is_some() || !stream.late.is_empty() || !stream.message.is_empty()
    }

    /// Notes bytes of a message that nothing befalls.
    pub(crate) fn pass(&mut self, key: Key, bytes: usize) {
        if let Some(stream) = self.streams.get_mut(&key) {
            stream.left -= bytes;
        }
    }

    /// Takes bytes of a message that something befalls. Gives what comes of them now.
    pub(crate) fn take(&mut self, key: Key, bytes: &[u8], random: &mut Random) -> Vec<u8> {
        let stream = self.streams.entry(key).or_default();
        stream.message.extend_from_slice(bytes);
        stream.left -= bytes.len();
        if stream.left > 0 {
            return Vec::new();
        }
        let mut message = std::mem::take(&mut stream.message);
        match stream.fate.take() {
            None if stream.overtaken || stream.late.is_empty() => message.append(&mut stream.late),
            None => {
                stream.late.append(&mut message);
                return Vec::new();
            }
            Some(Mishap::Drop) => message.clear(),
            Some(Mishap::Duplicate) => message.extend_from_within(..),
            Some(Mishap::Corrupt) => {
                let at = random.index(message.len()).unwrap_or(0);
                message[at] ^= 1 << (random.next() % 8);
            }
            Some(late @ (Mishap::Delay | Mishap::Reorder)) => {
                stream.overtaken = late == Mishap::Reorder;
                stream.late = std::mem::take(&mut message);
            }
        }
        message
    }

    /// Lets go of all that is late.
    pub(crate) fn release(&mut self) -> Vec<(Key, Vec<u8>)> {
        let late = self.streams.iter_mut().filter(|(_, stream)| !stream.late.is_empty());
        late.map(|(key, stream)| (*key, std::mem::take(&mut stream.late))).collect()
    }
}

/// How long the message is that starts with these bytes.
fn message_bytes(parts: &[&[u8]], checks: bool) -> usize {
    let header: &[u8; HEADER_BYTES] =
        parts[0].first_chunk().expect("invariant: a message starts with its header");
    let message = u32::from_le_bytes([16, 17, 18, 19].map(|at| header[at]));
    let payload = u64::from_le_bytes([24, 25, 26, 27, 28, 29, 30, 31].map(|at| header[at])) as usize;
    let checksum = if checks && payload > 0 { CHECKSUM_BYTES } else { 0 };
    Header::size_bytes(message) + payload + checksum
}
