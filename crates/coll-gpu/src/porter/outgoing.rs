//! One link's messages on their way out: slices are copied to pinned memory as soon as a message is posted, and sent in order,
//! each while the next ones are copied.

use super::ring::{Copies, Ring, Walk};
use super::{Message, Tools, Trouble};
use coll_exec::{Header, Interest, Link};

/// One link's messages, in order.
pub(super) struct Outgoing {
    link: Link,
    messages: Vec<Message>,
    ring: Ring,
    /// The message that is copied, how much of it has been put on a stream, and whether it has been posted.
    copying: usize,
    copied_bytes: u64,
    is_posted: bool,
    walk: Walk,
    /// The message that is sent, how much of it has gone, of its header and of the slice at the front.
    sending: usize,
    sent_bytes: u64,
    header_bytes: usize,
    slice_bytes: usize,
    /// The network took nothing when it was asked last.
    is_blocked: bool,
}

impl Outgoing {
    pub(super) fn new(link: Link, messages: Vec<Message>, ring: Ring) -> Outgoing {
        Outgoing {
            link,
            messages,
            ring,
            copying: 0,
            copied_bytes: 0,
            is_posted: false,
            walk: Walk::default(),
            sending: 0,
            sent_bytes: 0,
            header_bytes: 0,
            slice_bytes: 0,
            is_blocked: false,
        }
    }

    pub(super) fn link(&self) -> Link {
        self.link
    }

    pub(super) fn begin(&mut self) {
        self.ring.clear();
        (self.copying, self.copied_bytes, self.is_posted, self.walk) = (0, 0, false, Walk::default());
        (self.sending, self.sent_bytes, self.header_bytes, self.slice_bytes) = (0, 0, 0, 0);
        self.is_blocked = false;
    }

    /// Does what can be done. Says whether anything was.
    pub(super) fn step(&mut self, tools: &mut Tools<'_>) -> Result<bool, Trouble> {
        let copies = self.copy(tools)?;
        let copied = self.take_copied(tools)?;
        Ok(self.send(tools)? | copies | copied)
    }

    /// Puts copies of slices on the stream, as far as messages are posted and slots are free.
    fn copy(&mut self, tools: &mut Tools<'_>) -> Result<bool, Trouble> {
        let mut any = false;
        while let Some(message) = self.messages.get(self.copying) {
            if !self.is_posted {
                if !tools.opens(message, tools.out_stream)? {
                    break;
                }
                (self.is_posted, any) = (true, true);
            }
            if self.copied_bytes < message.bytes {
                let Some(bytes) = self.ring.room(message.bytes - self.copied_bytes) else { break };
                self.copied_bytes += bytes as u64;
                self.ring.take(self.copying, bytes, self.copied_bytes == message.bytes);
                let (_, slot) = self.ring.to_copy().expect("invariant: it has just been taken");
                let place = (tools.out_stream, tools.device);
                self.walk.copy(Copies::ToHost, &message.parts, slot, bytes as u64, place)?;
                self.ring.copies(tools.out_stream)?;
                any = true;
            }
            if self.copied_bytes == message.bytes {
                if message.bytes == 0 {
                    tools.carried(message);
                }
                self.copying += 1;
                (self.copied_bytes, self.is_posted, self.walk) = (0, false, Walk::default());
            }
        }
        Ok(any)
    }

    /// Sees which copies are done: of whose message that is the last one, the source may change.
    fn take_copied(&mut self, tools: &mut Tools<'_>) -> Result<bool, Trouble> {
        let mut any = false;
        while let Some(slice) = self.ring.copied()? {
            any = true;
            if slice.last {
                tools.carried(&self.messages[slice.message]);
            }
        }
        Ok(any)
    }

    fn send(&mut self, tools: &mut Tools<'_>) -> Result<bool, Trouble> {
        let mut any = false;
        self.is_blocked = false;
        while let Some(message) = self.messages.get(self.sending) {
            let is_open = self.sending < self.copying || (self.sending == self.copying && self.is_posted);
            let front = self.ring.front().filter(|(slice, _)| slice.message == self.sending);
            if !is_open || (front.is_none() && message.bytes > 0) {
                break;
            }
            let header = tools.header(message).to_bytes();
            let header = &header[self.header_bytes..Header::size_bytes(message.message)];
            let payload = front.map_or(&[][..], |(_, bytes)| &bytes[self.slice_bytes..]);
            let parts = [header, payload];
            let parts = if header.is_empty() { &parts[1..] } else { &parts[..] };
            let taken = tools.network.try_send(self.link, parts)?;
            if taken == 0 {
                self.is_blocked = true;
                break;
            }
            any = true;
            let of_header = taken.min(header.len());
            let of_payload = taken - of_header;
            let is_whole = front.is_some_and(|(slice, _)| self.slice_bytes + of_payload == slice.bytes);
            self.header_bytes += of_header;
            self.slice_bytes += of_payload;
            self.sent_bytes += of_payload as u64;
            if is_whole {
                self.ring.free();
                self.slice_bytes = 0;
            }
            let ends = self.sent_bytes == message.bytes;
            if ends && self.header_bytes == Header::size_bytes(message.message) {
                self.sending += 1;
                (self.sent_bytes, self.header_bytes) = (0, 0);
            }
        }
        Ok(any)
    }

    pub(super) fn is_done(&self) -> bool {
        self.sending == self.messages.len()
    }

    /// Whether something has yet to come from the device.
    pub(super) fn awaits_device(&self) -> bool {
        self.copying < self.messages.len() || !self.ring.is_empty() && !self.is_blocked
    }

    pub(super) fn interest(&self) -> Option<Interest> {
        self.is_blocked.then(|| Interest::writable(self.link))
    }

    /// The message that it is at.
    pub(super) fn stands_at(&self) -> Option<&Message> {
        self.messages.get(self.sending)
    }
}
