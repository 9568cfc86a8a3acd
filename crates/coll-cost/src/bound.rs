//! What a plan takes at least: a few sums over its operations, from which most candidates can be passed over without being
//! compiled.
//!
//! Two things hold whatever the order of events is. Cores do one thing at a time, so all operations together take no less
//! than their processor time shared among all cores. And a message that needs what another brought begins after that one,
//! so a chain of them takes no less than a send, the way and a receive for each. [`Outline::predict_us`] is never below
//! either; a test holds it to that.

use crate::outline::NONE;
use crate::{Constants, ItemKind, Layout, Outline, Work};

/// Sums over a whole plan's operations. Shares are of the sized buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Messages on the longest chain in which each waits for the one before.
    pub chain: u32,
    /// Messages.
    pub messages: u32,
    /// Copies and reductions within ranks.
    pub locals: u32,
    /// What is sent, and so received.
    pub sent: f64,
    /// Of what is sent, what need not be written for each peer.
    pub common: f64,
    /// What is reduced.
    pub reduced: f64,
    /// What is copied within ranks.
    pub copied: f64,
    /// Bytes of all of a rank's buffers.
    pub touched: f64,
}

impl Outline {
    /// The sums.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals { chain: self.chain(), touched: self.touched, ..Totals::default() };
        for item in &self.items {
            match item.kind {
                ItemKind::Send => {
                    totals.messages += 1;
                    totals.sent += item.share;
                    if item.common != NONE {
                        let sends = f64::from(self.shared[item.common as usize]);
                        totals.common += item.share * (1.0 - 1.0 / sends);
                    }
                }
                ItemKind::Recv => {}
                ItemKind::RecvReduce => totals.reduced += item.share,
                ItemKind::Copy => {
                    totals.locals += 1;
                    totals.copied += item.share;
                }
                ItemKind::Reduce => {
                    totals.locals += 1;
                    totals.reduced += item.share;
                }
            }
        }
        totals
    }

    /// Messages on the longest path of operations.
    fn chain(&self) -> u32 {
        let mut missing: Vec<u32> = self.items.iter().map(|item| item.waits).collect();
        // For each operation, messages that end before it, or with it.
        let mut links = vec![0u32; self.items.len()];
        let mut open: Vec<u32> =
            (0..self.items.len() as u32).filter(|&id| missing[id as usize] == 0).collect();
        let mut longest = 0;
        while let Some(id) = open.pop() {
            let mine = links[id as usize];
            longest = longest.max(mine);
            let item = self.items[id as usize];
            // What follows a receive byte by byte is under way as soon as that is, whatever else the send waits for.
            let set_out = match item.leader {
                NONE => mine + 1,
                leader => mine.max(links[leader as usize] + 1),
            };
            let message =
                (item.kind == ItemKind::Send && item.partner != NONE).then_some((item.partner, set_out));
            let followers = self.followers(id).iter().map(|&(_, follower)| (follower, mine));
            let next = self.next(id).iter().map(|&next| (next, mine));
            for (to, links_to) in next.chain(followers).chain(message) {
                links[to as usize] = links[to as usize].max(links_to);
                missing[to as usize] -= 1;
                if missing[to as usize] == 0 {
                    open.push(to);
                }
            }
        }
        longest
    }
}

impl Totals {
    /// What a call takes at least, in microseconds.
    pub fn bound_us(&self, ranks: u32, constants: &Constants, layout: Layout, work: Work) -> f64 {
        let bytes = work.bytes as f64;
        let far = constants.far_share(self.touched * bytes * f64::from(layout.ranks_on_host(ranks)));
        let us = |share: f64, ns: f64| share * bytes * ns / 1000.0;
        let saved = if constants.shared_from_bytes.is_some() { self.common } else { 0.0 };
        let processor = f64::from(self.messages) * (constants.send_us + constants.recv_us)
            + f64::from(self.locals) * constants.local_us
            + us(self.sent - saved, constants.send.ns(far))
            // What stays in the cache of what is stored and reduced is not known here.
            + us(self.sent, constants.recv.near_ns)
            + us(self.reduced, constants.reduction(work.dtype, work.user_operator).near_ns)
            + us(self.copied, constants.copy.near_ns);
        let on_host = layout.ranks_on_host(ranks);
        let cores = (layout.hosts(ranks) * on_host.min(layout.cores)).clamp(1, ranks.max(1));
        // A message is seen on another core, or in another rank's turn on the same.
        let look = match (on_host > layout.cores, cores) {
            (false, _) => constants.wake_us,
            (true, 1) => constants.switch_us,
            (true, _) => constants.wake_us.min(constants.switch_us),
        };
        let chain = f64::from(self.chain) * (constants.send_us + look + constants.recv_us);
        constants.call_us + chain.max(processor / f64::from(cores))
    }
}
