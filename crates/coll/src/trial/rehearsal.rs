//! Failures on purpose: what a rank's peers make of lost, late, damaged messages and of its sudden end.
//!
//! A mishap befalls the first message that its rank sends in its step or a later one. Where a message starts is read from
//! its header, which every transport carries, so neither executor nor transport knows of it.

use coll_exec::{Fault, HEADER_BYTES, Header, Interest, Link, Loan, Transport};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// It is never sent.
    Drop,
    /// It is sent half a time limit late.
    Delay,
    /// Its first bytes are inverted: of its payload, or of its header if it has none. Without
    /// checksums it is for the judging of results to notice.
    Corrupt,
    /// Its rank is killed in its stead.
    Kill,
}

/// A failure that is rehearsed: `rank2:step5:drop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mishap {
    /// Whose message.
    pub rank: u32,
    /// The first step of the program, from 0, whose messages it may be.
    pub step: u32,
    /// What happens to it.
    pub what: What,
}

impl FromStr for Mishap {
    type Err = String;

    fn from_str(text: &str) -> Result<Mishap, String> {
        let wrong = || {
            format!(
                "`{text}` is no failure to rehearse; write `rank2:step5:drop`, or delay, corrupt, kill instead of drop"
            )
        };
        let mut parts = text.trim().split(':');
        let mut number = |word: &str| {
            let part = parts.next().and_then(|part| part.strip_prefix(word));
            part.and_then(|digits| digits.parse().ok()).ok_or_else(wrong)
        };
        let (rank, step) = (number("rank")?, number("step")?);
        let what = match parts.next() {
            Some("drop") => What::Drop,
            Some("delay") => What::Delay,
            Some("corrupt") => What::Corrupt,
            Some("kill") => What::Kill,
            _ => return Err(wrong()),
        };
        if parts.next().is_some() { Err(wrong()) } else { Ok(Mishap { rank, step, what }) }
    }
}

/// As many bytes as the largest element has.
const DAMAGED_BYTES: u64 = 16;

/// One rank's mishaps, and how far its messages are.
#[derive(Debug)]
pub(super) struct Rehearsal {
    mishaps: Vec<Mishap>,
    delay: Duration,
    streams: BTreeMap<Link, Stream>,
    /// Until when a message is held back.
    held: Option<Instant>,
}

/// A link's message under way.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// Bytes of it that are still to go.
    left: u64,
    /// They go nowhere.
    dropped: bool,
    /// The places of the bytes that are damaged, counted from where the stream is now.
    damaged: Range<u64>,
}

impl Rehearsal {
    /// Those of `mishaps` that befall `rank`; nothing if none does.
    pub(super) fn of(mishaps: &[Mishap], rank: u32, limit: Duration) -> Option<Rehearsal> {
        let mishaps: Vec<Mishap> = mishaps.iter().copied().filter(|mishap| mishap.rank == rank).collect();
        let (streams, held) = (BTreeMap::new(), None);
        (!mishaps.is_empty()).then_some(Rehearsal { mishaps, delay: limit / 2, streams, held })
    }

    /// A transport on which they happen; `kill` ends this process.
    pub(super) fn over<'r, T>(
        &'r mut self,
        transport: &'r mut T,
        kill: &'r mut dyn FnMut(),
    ) -> Rehearsed<'r, T> {
        Rehearsed { rehearsal: self, transport, kill }
    }

    /// A mishap that never came about, since its rank sent nothing then.
    pub(super) fn left(&self) -> Option<Mishap> {
        self.mishaps.first().copied()
    }

    /// The mishap of a message of this step, which is thereby used up.
    fn take(&mut self, step: u32) -> Option<What> {
        let at = self.mishaps.iter().position(|mishap| mishap.step <= step)?;
        Some(self.mishaps.remove(at).what)
    }
}

/// A transport with mishaps.
pub(super) struct Rehearsed<'r, T> {
    rehearsal: &'r mut Rehearsal,
    transport: &'r mut T,
    kill: &'r mut dyn FnMut(),
}

/// Step, header's size and payload's of the message that starts with these bytes.
fn header(parts: &[&[u8]]) -> Option<(u32, u64, u64)> {
    let header: &[u8; HEADER_BYTES] = parts.first()?.first_chunk()?;
    let message = u32::from_le_bytes(*header[16..].first_chunk()?);
    let step = u32::from_le_bytes(*header[20..].first_chunk()?);
    let payload_bytes = u64::from_le_bytes(*header[24..].first_chunk()?);
    Some((step, Header::size_bytes(message) as u64, payload_bytes))
}

impl<T: Transport> Rehearsed<'_, T> {
    /// A message begins: what happens to it. False if it is held back.
    fn begin(&mut self, link: Link, parts: &[&[u8]]) -> bool {
        if let Some(until) = self.rehearsal.held {
            if Instant::now() < until {
                return false;
            }
            self.rehearsal.held = None;
        }
        let Some((step, header_bytes, payload_bytes)) = header(parts) else { return true };
        let checksum_bytes = if payload_bytes > 0 && self.transport.checks(link) { 4 } else { 0 };
        let left = header_bytes + payload_bytes + checksum_bytes;
        let mut stream = Stream { left, ..Stream::default() };
        match self.rehearsal.take(step) {
            None => {}
            Some(What::Drop) => stream.dropped = true,
            Some(What::Corrupt) if payload_bytes == 0 => stream.damaged = 0..DAMAGED_BYTES,
            Some(What::Corrupt) => {
                stream.damaged = header_bytes..header_bytes + payload_bytes.min(DAMAGED_BYTES)
            }
            Some(What::Kill) => (self.kill)(),
            Some(What::Delay) => {
                self.rehearsal.held = Some(Instant::now() + self.rehearsal.delay);
                return false;
            }
        }
        self.rehearsal.streams.insert(link, stream);
        true
    }

    fn send(&mut self, link: Link, parts: &[&[u8]], stream: Stream) -> Result<usize, Fault> {
        let offered: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let damaged = stream.damaged.start..stream.damaged.end.min(offered);
        if stream.dropped {
            return Ok(offered.min(stream.left) as usize);
        }
        if damaged.is_empty() {
            return self.transport.try_send(link, parts);
        }
        let mut bytes = parts.concat();
        bytes[damaged.start as usize..damaged.end as usize].iter_mut().for_each(|byte| *byte ^= 0xff);
        self.transport.try_send(link, &[&bytes])
    }
}

impl<T: Transport> Transport for Rehearsed<'_, T> {
    fn try_send(&mut self, link: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
        if self.rehearsal.streams.get(&link).is_none_or(|stream| stream.left == 0) && !self.begin(link, parts)
        {
            return Ok(0);
        }
        let stream = self.rehearsal.streams.get(&link).cloned().unwrap_or_default();
        let taken = self.send(link, parts, stream)?;
        if let Some(stream) = self.rehearsal.streams.get_mut(&link) {
            stream.left = stream.left.saturating_sub(taken as u64);
            let Range { start, end } = stream.damaged;
            stream.damaged = start.saturating_sub(taken as u64)..end.saturating_sub(taken as u64);
        }
        Ok(taken)
    }

    fn try_recv(&mut self, link: Link, into: &mut [u8]) -> Result<usize, Fault> {
        self.transport.try_recv(link, into)
    }

    fn peek(&mut self, link: Link) -> Result<Option<&[u8]>, Fault> {
        self.transport.peek(link)
    }

    fn consume(&mut self, link: Link, bytes: usize) {
        self.transport.consume(link, bytes);
    }

    // This rank lends nothing: mishaps befall messages on their way. What others lend it reads.

    fn lends(&self, link: Link) -> Option<u64> {
        self.transport.lends(link)
    }

    fn checks(&self, link: Link) -> bool {
        self.transport.checks(link)
    }

    fn borrow(&mut self, link: Link, loan: &Loan) -> Result<&[u8], Fault> {
        self.transport.borrow(link, loan)
    }

    fn still_lent(&mut self, link: Link, loan: &Loan) -> Result<(), Fault> {
        self.transport.still_lent(link, loan)
    }

    fn give_back(&mut self, link: Link) {
        self.transport.give_back(link);
    }

    fn flush(&mut self) {
        self.transport.flush();
    }

    fn wait(&mut self, interests: &[Interest]) -> Result<(), Fault> {
        if self.rehearsal.held.is_some_and(|until| Instant::now() < until) {
            std::thread::sleep(Duration::from_millis(5));
            return Ok(());
        }
        self.transport.wait(interests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coll_exec::FIRST_HEADER_BYTES;

    /// Takes everything, at most five bytes at a time.
    #[derive(Default)]
    struct Sent(Vec<u8>);

    impl Transport for Sent {
        fn try_send(&mut self, _: Link, parts: &[&[u8]]) -> Result<usize, Fault> {
            let bytes = parts.concat();
            let taken = bytes.len().min(5);
            self.0.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn try_recv(&mut self, _: Link, _: &mut [u8]) -> Result<usize, Fault> {
            Ok(0)
        }

        fn wait(&mut self, _: &[Interest]) -> Result<(), Fault> {
            Ok(())
        }
    }

    fn message(step: u32, payload: &[u8]) -> Vec<u8> {
        let header = Header { step, payload_bytes: payload.len() as u64, ..Header::default() };
        [&header.to_bytes(), payload].concat()
    }

    /// What arrives of three messages, of steps 0, 1 and 2; and how often the rank was killed.
    fn arrives(mishap: &str) -> (Vec<u8>, u32) {
        let link = Link { peer: 1, channel: 0 };
        let mishaps = [mishap.parse().unwrap()];
        let mut rehearsal = Rehearsal::of(&mishaps, 2, Duration::from_millis(40)).unwrap();
        let (mut sent, mut killed) = (Sent::default(), 0);
        let mut kill = || killed += 1;
        for step in 0..3 {
            let message = message(step, &[step as u8; 9]);
            let (header, payload) = message.split_at(FIRST_HEADER_BYTES);
            let mut done = 0;
            while done < message.len() {
                let parts: &[&[u8]] = match done < FIRST_HEADER_BYTES {
                    true => &[&header[done..], payload],
                    false => &[&payload[done - FIRST_HEADER_BYTES..]],
                };
                let mut over = rehearsal.over(&mut sent, &mut kill);
                done += over.try_send(link, parts).unwrap();
                over.wait(&[]).unwrap();
            }
        }
        assert_eq!(rehearsal.left(), None);
        (sent.0, killed)
    }

    #[test]
    fn each_mishap_befalls_the_first_message_of_its_step() {
        let whole = [message(0, &[0; 9]), message(1, &[1; 9]), message(2, &[2; 9])];
        assert_eq!(arrives("rank2:step1:drop"), ([whole[0].clone(), whole[2].clone()].concat(), 0));
        assert_eq!(arrives("rank2:step1:delay"), (whole.concat(), 0));
        assert_eq!(arrives("rank2:step2:kill"), (whole.concat(), 1));
        let (damaged, _) = arrives("rank2:step1:corrupt");
        let differing: Vec<usize> = damaged
            .iter()
            .zip(whole.concat())
            .enumerate()
            .filter(|(_, (a, b))| **a != *b)
            .map(|(at, _)| at)
            .collect();
        let payload = whole[0].len() + FIRST_HEADER_BYTES;
        assert_eq!(differing, Vec::from_iter(payload..payload + 9));
    }

    #[test]
    fn what_is_no_mishap_says_what_one_is() {
        for text in [
            "",
            "rank2",
            "rank2:drop",
            "rank2:step:drop",
            "rank-1:step0:drop",
            "rank2:step5:lose",
            "rank2:step5:drop:x",
        ] {
            let message = text.parse::<Mishap>().unwrap_err();
            assert!(message.contains("rank2:step5:drop"), "{message}");
        }
        assert!(Rehearsal::of(&["rank1:step0:drop".parse().unwrap()], 2, Duration::ZERO).is_none());
    }
}
