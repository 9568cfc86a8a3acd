//! A rank's lanes: one for each peer, channel and direction, and one for what stays on the rank. Messages of a pair
//! take its channels in turn; both ends count alike. Signals that have arrived are kept for those to be sent.

use super::draft::Draft;
use super::hazards::NONE;

pub(super) struct Ports {
    channels: u32,
    /// Messages so far, by peer: out, then in.
    messages: Vec<u64>,
    /// Lanes by direction, peer and channel.
    lanes: Vec<u32>,
    local: u32,
    /// The latest signal of each incoming lane, from earlier steps: `(lane, operation)`.
    signals: Vec<(u32, u32)>,
    /// Those of this step.
    arriving: Vec<(u32, u32)>,
}

/// Which way a message goes.
#[derive(Clone, Copy)]
pub(super) enum Way {
    Out,
    In,
}

impl Ports {
    pub(super) fn new(ranks: u32, channels: u32) -> Ports {
        let ends = 2 * ranks as usize;
        Ports {
            channels,
            messages: vec![0; ends],
            lanes: vec![NONE; ends * channels as usize],
            local: NONE,
            signals: Vec::new(),
            arriving: Vec::new(),
        }
    }

    /// Starts anew for a rank.
    pub(super) fn start(&mut self) {
        self.messages.fill(0);
        self.lanes.fill(NONE);
        self.local = NONE;
        self.signals.clear();
        self.arriving.clear();
    }

    /// The channel and the lane of the next message to or from a peer.
    pub(super) fn next(&mut self, way: Way, peer: u32, draft: &mut Draft) -> (u32, u32) {
        let end = match way {
            Way::Out => peer as usize,
            Way::In => self.messages.len() / 2 + peer as usize,
        };
        let channel = (self.messages[end] % self.channels as u64) as u32;
        self.messages[end] += 1;
        let lane = &mut self.lanes[end * self.channels as usize + channel as usize];
        if *lane == NONE {
            *lane = draft.open_lane();
        }
        (channel, *lane)
    }

    /// The lane of what stays on the rank.
    pub(super) fn local(&mut self, draft: &mut Draft) -> u32 {
        if self.local == NONE {
            self.local = draft.open_lane();
        }
        self.local
    }

    /// A signal arrives by an operation.
    pub(super) fn signal(&mut self, lane: u32, op: u32) {
        self.arriving.push((lane, op));
    }

    /// The operations that brought the signals of earlier steps; of each lane the latest.
    pub(super) fn signals(&self) -> impl Iterator<Item = u32> + '_ {
        self.signals.iter().map(|&(_, op)| op)
    }

    /// The step has ended.
    pub(super) fn end_step(&mut self) {
        for (lane, op) in self.arriving.drain(..) {
            match self.signals.iter_mut().find(|signal| signal.0 == lane) {
                Some(signal) => signal.1 = op,
                None => self.signals.push((lane, op)),
            }
        }
    }
}
