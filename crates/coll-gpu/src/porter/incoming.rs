//! One link's messages on their way in: slices are received into pinned memory as long as there are slots, posted or not, and
//! copied to the device in order once the message is posted, each while the next ones come.

use super::ring::{Copies, Ring, Walk};
use super::{Message, Tools, Trouble};
use coll_exec::{FIRST_HEADER_BYTES, Fault, FrameFault, Header, Interest, Link};

/// One link's messages, in order.
pub(super) struct Incoming {
    link: Link,
    messages: Vec<Message>,
    ring: Ring,
    /// The message that is received, what has come of its header, of all of it, and of the slice that comes.
    receiving: usize,
    header: [u8; FIRST_HEADER_BYTES],
    header_bytes: usize,
    received_bytes: u64,
    slice_bytes: usize,
    /// The message that is copied, and whether it has been posted.
    copying: usize,
    is_posted: bool,
    walk: Walk,
    /// Messages of which all is done.
    done: usize,
}

impl Incoming {
    pub(super) fn new(link: Link, messages: Vec<Message>, ring: Ring) -> Incoming {
        Incoming {
            link,
            messages,
            ring,
            receiving: 0,
            header: [0; FIRST_HEADER_BYTES],
            header_bytes: 0,
            received_bytes: 0,
            slice_bytes: 0,
            copying: 0,
            is_posted: false,
            walk: Walk::default(),
            done: 0,
        }
    }

    pub(super) fn link(&self) -> Link {
        self.link
    }

    pub(super) fn begin(&mut self) {
        self.ring.clear();
        (self.receiving, self.header_bytes, self.received_bytes, self.slice_bytes) = (0, 0, 0, 0);
        (self.copying, self.is_posted, self.walk, self.done) = (0, false, Walk::default(), 0);
    }

    /// Does what can be done. Says whether anything was.
    pub(super) fn step(&mut self, tools: &mut Tools<'_>) -> Result<bool, Trouble> {
        let received = self.receive(tools)?;
        let copies = self.copy(tools)?;
        Ok(self.take_copied(tools)? | received | copies)
    }

    fn receive(&mut self, tools: &mut Tools<'_>) -> Result<bool, Trouble> {
        let mut any = false;
        while let Some(message) = self.messages.get(self.receiving) {
            let header_size = Header::size_bytes(message.message);
            if self.header_bytes < header_size {
                let into = &mut self.header[self.header_bytes..header_size];
                let got = tools.network.try_recv(self.link, into)?;
                if got == 0 {
                    break;
                }
                any = true;
                self.header_bytes += got;
                let due = tools.header(message);
                due.check(&self.header[..self.header_bytes]).map_err(|fault| self.another(fault))?;
                continue;
            }
            if self.received_bytes < message.bytes {
                let lacking = message.bytes - self.received_bytes + self.slice_bytes as u64;
                let Some(size) = self.ring.room(lacking) else { break };
                let into = self.ring.next_slot(self.slice_bytes..size);
                let got = tools.network.try_recv(self.link, into)?;
                if got == 0 {
                    break;
                }
                any = true;
                self.slice_bytes += got;
                self.received_bytes += got as u64;
                if self.slice_bytes == size {
                    self.ring.take(self.receiving, size, self.received_bytes == message.bytes);
                    self.slice_bytes = 0;
                }
            }
            if self.received_bytes == message.bytes {
                self.receiving += 1;
                (self.header_bytes, self.received_bytes) = (0, 0);
            }
        }
        Ok(any)
    }

    fn another(&self, fault: FrameFault) -> Trouble {
        let peer = self.link.peer;
        Trouble::Network(match fault {
            FrameFault::Call { ours, theirs } => Fault::Mismatch { peer, ours, theirs },
            fault => Fault::Frame { peer, fault },
        })
    }

    /// Puts copies of slices on the stream, as far as messages are posted.
    fn copy(&mut self, tools: &mut Tools<'_>) -> Result<bool, Trouble> {
        let mut any = false;
        while let Some(message) = self.messages.get(self.copying).filter(|_| self.copying <= self.receiving) {
            if message.bytes == 0 {
                if self.copying == self.receiving {
                    break;
                }
                // Messages end in order: those before it are still being copied.
                if self.done < self.copying {
                    break;
                }
                tools.carried(message);
                (self.copying, self.done, any) = (self.copying + 1, self.done + 1, true);
                continue;
            }
            let Some((slice, slot)) = self.ring.to_copy() else { break };
            if !self.is_posted {
                if !tools.opens(message, tools.in_stream)? {
                    break;
                }
                self.is_posted = true;
            }
            let place = (tools.in_stream, tools.device);
            self.walk.copy(Copies::ToDevice, &message.parts, slot, slice.bytes as u64, place)?;
            self.ring.copies(tools.in_stream)?;
            any = true;
            if slice.last {
                self.copying += 1;
                (self.is_posted, self.walk) = (false, Walk::default());
            }
        }
        Ok(any)
    }

    /// Sees which copies are done, and frees their slots.
    fn take_copied(&mut self, tools: &mut Tools<'_>) -> Result<bool, Trouble> {
        let mut any = false;
        while let Some(slice) = self.ring.copied()? {
            any = true;
            self.ring.free();
            if slice.last {
                tools.carried(&self.messages[slice.message]);
                self.done += 1;
            }
        }
        Ok(any)
    }

    pub(super) fn is_done(&self) -> bool {
        self.done == self.messages.len()
    }

    /// Whether something has yet to come from the device.
    pub(super) fn awaits_device(&self, tools: &Tools<'_>) -> bool {
        let next = self.messages.get(self.receiving);
        !self.ring.is_empty() || next.is_some_and(|message| !tools.is_posted(message))
    }

    /// Bytes, of a message that a stream waits for: one that is not posted yet is nobody's delay.
    pub(super) fn interest(&self, tools: &Tools<'_>) -> Option<Interest> {
        let message = self.messages.get(self.receiving).filter(|message| tools.is_posted(message))?;
        let has_room = message.bytes == 0 || self.ring.room(message.bytes).is_some();
        has_room.then(|| Interest::readable(self.link))
    }

    /// The message that it is at.
    pub(super) fn stands_at(&self) -> Option<&Message> {
        self.messages.get(self.done)
    }
}
