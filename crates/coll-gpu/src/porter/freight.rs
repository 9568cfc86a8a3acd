//! What one call has carried: the messages of all its links, and the streams and memory that they go through.

use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::ring::Ring;
use super::{Message, Tools, Trouble};
use crate::driver::{Current, Device, HostWords, Pointer, Stream};
use crate::stream_plan::{Heading, Parcel};
use crate::{GpuError, Network};
use coll_exec::{FINGERPRINT_BYTES, Interest, Link};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most pinned memory that a call takes where it has many links, in bytes: slices become shorter then.
const PINNED_BYTES_MAX: usize = 64 << 20;

/// The shortest slices that it makes of it.
const SLICE_BYTES_MIN: usize = 64 << 10;

/// A call's messages.
pub(crate) struct Freight {
    device: Arc<Device>,
    outgoing: Vec<Outgoing>,
    incoming: Vec<Incoming>,
    /// On their way out, and in.
    streams: [Stream; 2],
    prepared: bool,
    fingerprint: [u8; FINGERPRINT_BYTES],
    interests: Vec<Interest>,
}

/// What came of a look at all links.
pub(super) struct Turn {
    pub(super) moved: bool,
    pub(super) is_done: bool,
    pub(super) awaits_device: bool,
}

/// What tells a call's messages from those of others.
pub(crate) struct Seal {
    pub(crate) fingerprint: [u8; FINGERPRINT_BYTES],
    /// Whether elements travel as the operator takes them.
    pub(crate) prepared: bool,
}

impl Freight {
    /// Of a rank's parcels, whose bytes lie at `address`.
    pub(crate) fn new(
        device: &Arc<Device>,
        parcels: &[Parcel],
        address: impl Fn(&crate::stream_plan::Spot) -> Pointer,
        seal: Seal,
        slice_bytes: usize,
    ) -> Result<Freight, GpuError> {
        let mut links: BTreeMap<(Heading, Link), Vec<Message>> = BTreeMap::new();
        for (at, parcel) in parcels.iter().enumerate() {
            let parts = parcel.parts.iter().map(|(spot, bytes)| (address(spot), *bytes));
            links.entry((parcel.heading, parcel.link)).or_default().push(Message {
                parcel: at,
                message: parcel.message,
                step: parcel.step,
                bytes: parcel.bytes,
                parts: parts.collect(),
            });
        }
        let share = PINNED_BYTES_MAX / (4 * links.len().max(1));
        let slice_bytes = slice_bytes.min(share.max(SLICE_BYTES_MIN));
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for ((heading, link), mut messages) in links {
            messages.sort_by_key(|message| message.message);
            let longest = messages.iter().map(|message| message.bytes).max().unwrap_or(0);
            let ring = Ring::new(device, messages.len(), longest, slice_bytes)?;
            match heading {
                Heading::Out => outgoing.push(Outgoing::new(link, messages, ring)),
                Heading::In => incoming.push(Incoming::new(link, messages, ring)),
            }
        }
        let interests = Vec::with_capacity(outgoing.len() + incoming.len());
        let streams = [Stream::new(device)?, Stream::new(device)?];
        let Seal { fingerprint, prepared } = seal;
        Ok(Freight { device: device.clone(), outgoing, incoming, streams, prepared, fingerprint, interests })
    }

    pub(super) fn begin(&mut self) {
        self.outgoing.iter_mut().for_each(Outgoing::begin);
        self.incoming.iter_mut().for_each(Incoming::begin);
    }

    /// Does for every link what can be done.
    pub(super) fn step(
        &mut self,
        network: &mut dyn Network,
        words: &HostWords,
        (run, operation): (u32, u64),
    ) -> Result<Turn, Trouble> {
        let _current = Current::of(&self.device)?;
        let mut tools = Tools {
            network,
            words,
            device: &self.device,
            out_stream: self.streams[0].handle(),
            in_stream: self.streams[1].handle(),
            run,
            operation,
            prepared: self.prepared,
            fingerprint: self.fingerprint,
        };
        let mut turn = Turn { moved: false, is_done: true, awaits_device: false };
        self.interests.clear();
        for link in self.outgoing.iter_mut().filter(|link| !link.is_done()) {
            turn.moved |= link.step(&mut tools)?;
            turn.is_done &= link.is_done();
            turn.awaits_device |= link.awaits_device();
            self.interests.extend(link.interest());
        }
        for link in self.incoming.iter_mut().filter(|link| !link.is_done()) {
            turn.moved |= link.step(&mut tools)?;
            turn.is_done &= link.is_done();
            turn.awaits_device |= link.awaits_device(&tools);
            self.interests.extend(link.interest(&tools));
        }
        Ok(turn)
    }

    /// What links wait for, as the last step left them.
    pub(super) fn interests(&self) -> &[Interest] {
        &self.interests
    }

    /// The parcel that is to be told of where something went wrong: of this peer, if there is one.
    pub(super) fn stands_at(&self, peer: Option<u32>) -> Option<usize> {
        let out = self.outgoing.iter().filter_map(|link| Some((link.link().peer, link.stands_at()?)));
        let arriving = self.incoming.iter().filter_map(|link| Some((link.link().peer, link.stands_at()?)));
        // What waits for bytes to come tells more than what has yet to go.
        let mut all: Vec<(u32, &Message)> = arriving.chain(out).collect();
        all.sort_by_key(|(other, message)| (peer.is_some_and(|peer| peer != *other), message.step));
        all.first().map(|(_, message)| message.parcel)
    }

    /// Waits for copies that are on their way.
    pub(super) fn synchronize(&self) {
        // A device that fails has none.
        self.streams.iter().for_each(|stream| drop(stream.synchronize()));
    }
}

impl Drop for Freight {
    fn drop(&mut self) {
        self.synchronize();
    }
}
