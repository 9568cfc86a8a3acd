//! Device memory beside what the executor of every transport needs: where messages lie that are not read in place.
//!
//! A message is staged by its sender where it travels as another type, or where the plan counts on message slots; by its
//! receiver where kernels on its device cannot read the sender's memory, another machine's least of all. A stream's receives follow each other, so they
//! share one place; a lane's sends each wait for the one before to be read, so they share one as well.

use super::Layout;
use super::lower::message_bytes;
use super::order::Order;
use coll_exec::{Act, Link, Outline};
use coll_plan::OpId;
use std::collections::BTreeMap;

/// Places begin at multiples of this: what allocators of device memory promise.
const ALIGN: u64 = 256;

/// One rank's streams and staging.
pub(super) struct Staging {
    /// Streams of the rank, at least 1.
    pub(super) streams: u32,
    /// Bytes of all scratch.
    pub(super) bytes: u64,
    lane_of: Vec<u32>,
    outgoing: Vec<Option<u64>>,
    /// For each stream, where what comes in is put, and where it is widened.
    incoming: Vec<[u64; 2]>,
}

impl Staging {
    pub(super) fn new(outline: &Outline, outlines: &[Outline], layout: &Layout, order: &Order) -> Staging {
        let lanes = outline.lanes.len() as u32;
        let mut lane_of = vec![0; outline.ops.len()];
        for (lane, ops) in (0u32..).zip(&outline.lanes) {
            ops.clone().for_each(|op| lane_of[op as usize] = lane);
        }
        let mut staging = Staging {
            streams: lanes.clamp(1, layout.streams_per_rank_max.max(1)),
            bytes: outline.scratch_bytes,
            lane_of,
            outgoing: vec![None; outline.ops.len()],
            incoming: Vec::new(),
        };
        if outline.slots > 0 {
            staging.slots(outline);
        } else if outline.cast.is_some() {
            staging.lanes(outline, lanes);
        }
        staging.receives(outline, outlines, layout, order);
        staging
    }

    /// The rank's stream that an operation is on.
    pub(super) fn stream(&self, op: OpId) -> u32 {
        self.lane_of[op as usize] % self.streams
    }

    /// Where the sender puts a message, if it does.
    pub(super) fn outgoing(&self, op: OpId) -> Option<u64> {
        self.outgoing[op as usize]
    }

    /// Where the receiver puts a message that it cannot reach.
    pub(super) fn incoming(&self, op: OpId) -> u64 {
        self.incoming[self.stream(op) as usize][0]
    }

    /// Where it is widened.
    pub(super) fn widened(&self, op: OpId) -> u64 {
        self.incoming[self.stream(op) as usize][1]
    }

    /// Every link has its slots, which its messages take in turn.
    fn slots(&mut self, outline: &Outline) {
        let mut links: BTreeMap<Link, Vec<OpId>> = BTreeMap::new();
        for (op, operation) in (0..).zip(&outline.ops) {
            if let Act::Send { link, .. } = operation.act {
                links.entry(link).or_default().push(op);
            }
        }
        for messages in links.values() {
            let slots = (outline.slots as usize).min(messages.len());
            for slot in 0..slots {
                let own = || messages.iter().skip(slot).step_by(slots);
                let offset = self.take(own().map(|&op| message(outline, op)).max().unwrap_or(0));
                own().for_each(|&op| self.outgoing[op as usize] = Some(offset));
            }
        }
    }

    fn lanes(&mut self, outline: &Outline, lanes: u32) {
        let is_send = |op: &OpId| matches!(outline.ops[*op as usize].act, Act::Send { .. });
        for lane in 0..lanes {
            let ops = outline.lanes[lane as usize].clone().filter(is_send);
            let Some(bytes) = ops.clone().map(|op| message(outline, op)).max() else { continue };
            let offset = self.take(bytes);
            ops.for_each(|op| self.outgoing[op as usize] = Some(offset));
        }
    }

    fn receives(&mut self, outline: &Outline, outlines: &[Outline], layout: &Layout, order: &Order) {
        let mut most = vec![[0u64; 2]; self.streams as usize];
        for (op, operation) in (0..).zip(&outline.ops) {
            let (Act::Receive { fold, .. }, Some((sender, _))) =
                (operation.act, order.meets((outline.rank, op)))
            else {
                continue;
            };
            let [incoming, widened] = &mut most[self.stream(op) as usize];
            let computes = fold.is_some() || outline.cast.is_some();
            let sender = outlines[sender as usize].rank;
            if computes && !layout.reads(outline.rank, sender) {
                *incoming = message(outline, op).max(*incoming);
            }
            if fold.is_some() && outline.cast.is_some() {
                *widened = operation.bytes.max(*widened);
            }
        }
        self.incoming = most.into_iter().map(|places| places.map(|bytes| self.take(bytes))).collect();
    }

    fn take(&mut self, bytes: u64) -> u64 {
        let start = self.bytes.next_multiple_of(ALIGN);
        if bytes == 0 {
            return start;
        }
        self.bytes = start + bytes;
        start
    }
}

/// Bytes of an operation's message.
fn message(outline: &Outline, op: OpId) -> u64 {
    let bytes = outline.ops[op as usize].bytes;
    outline.cast.map_or(bytes, |cast| message_bytes(cast, bytes))
}
