//! Plans of too many ranks to be compiled whole: judged by what a few ranks do, and by how long the chain of messages
//! that need each other is.
//!
//! The chain is that of the same schedule on three smaller counts, each twice the one before ([`chain_ranks`]), carried on: if it grew by as much at each doubling it is
//! taken to be logarithmic, if by twice as much linear, and so between. What is found is the classic sum: a message's
//! cost for each link of the chain, and what the busiest rank has to do besides.

use crate::outline::{Shares, kind, moved};
use crate::{Constants, ItemKind, Layout, Work};
use coll_plan::Plan;

/// Rank counts on which the chain of messages is counted: powers of two just if the count itself is, as many schedules
/// fold other counts onto a power of two first.
pub fn chain_ranks(ranks: u32) -> [u32; 3] {
    if ranks.is_power_of_two() { [8, 16, 32] } else { [12, 24, 48] }
}

/// A few ranks' parts of a plan.
#[derive(Clone, Debug)]
pub struct Slices {
    ranks: u32,
    /// Links of the longest chain of messages.
    chain: f64,
    /// For each rank that was looked at, what it does.
    loads: Vec<Load>,
    touched: f64,
}

/// What a rank does: how often, and with what share of the buffer.
#[derive(Clone, Debug, Default)]
struct Load {
    rank: u32,
    /// By receiver, in the order of the messages.
    sent_to: Vec<(u32, f64)>,
    sends: f64,
    receives: f64,
    locals: f64,
    sent: f64,
    received: f64,
    copied: f64,
    reduced: f64,
}

impl Slices {
    /// From slices of a plan, at least one, and the lengths of the chain on three counts that double up to `chain_ranks`. A
    /// chain is not above the number of the program's steps, of which each can add a message at most.
    pub fn new(plans: &[Plan], chain_ranks: u32, chain: [u32; 3]) -> Slices {
        let ranks = plans.first().map_or(1, Plan::world);
        let steps = plans.iter().flat_map(|plan| &plan.ranks).flat_map(|part| &part.ops);
        let steps = steps.map(|op| f64::from(op.step) + 1.0).fold(0.0, f64::max);
        Slices {
            ranks,
            chain: carried_on(chain.map(f64::from), chain_ranks, ranks).min(steps),
            loads: plans.iter().map(load).collect(),
            touched: plans.first().map_or(0.0, |plan| Shares::new(&plan.contract).touched),
        }
    }

    /// Messages on the longest chain, as far as it can be told.
    pub fn steps(&self) -> u32 {
        self.chain.round() as u32
    }

    /// What the busiest of the ranks that were looked at sends, as a share of the sized buffer's bytes.
    pub fn sent_share(&self) -> f64 {
        self.loads.iter().map(|load| load.sent).fold(0.0, f64::max)
    }

    /// The time of one call, in microseconds.
    pub fn predict_us(&self, constants: &Constants, layout: Layout, work: Work) -> f64 {
        let here = layout.ranks_on_host(self.ranks);
        let bytes = work.bytes as f64;
        let far = constants.far_share(self.touched * bytes * f64::from(here));
        let us = |ns: f64| ns * bytes / 1000.0;
        let reduce = constants.reduction(work.dtype, work.user_operator).ns(far);
        let busy = |load: &Load| {
            load.sends * constants.send_us
                + load.receives * constants.recv_us
                + load.locals * constants.local_us
                + us(constants.send.ns(far) * load.sent
                    + constants.recv.ns(far) * load.received
                    + constants.copy.ns(far) * load.copied
                    + reduce * load.reduced)
        };
        let most = self.loads.iter().map(busy).fold(0.0, f64::max);
        let mean = self.loads.iter().map(busy).sum::<f64>() / self.loads.len().max(1) as f64;
        let messages = self.loads.iter().map(|load| load.sends.max(load.receives)).fold(1.0, f64::max);
        let shared = here > layout.cores;
        let hop = if shared { constants.switch_us } else { constants.wake_us };
        let wire = constants.wire.filter(|_| layout.hosts(self.ranks) > 1);
        let way = hop + wire.map_or(0.0, |wire| wire.latency_us);
        // The busiest rank's messages are alike, as far as this looks.
        let chain = self.chain * (way + most / messages);
        let chain = chain + (most - self.chain.min(messages) * most / messages).max(0.0);
        let wires = wire.map_or(0.0, |wire| us(wire.byte_ns * self.leaving(layout)) + self.chain * way);
        let cores = match shared {
            true => f64::from(here) * (mean + messages * constants.switch_us) / f64::from(layout.cores),
            false => 0.0,
        };
        constants.call_us + chain.max(cores).max(wires)
    }

    /// What leaves a machine, as a share of the sized buffer's bytes: its last rank stands for itself, and what was seen
    /// of other ranks for the rest.
    fn leaving(&self, layout: Layout) -> f64 {
        let here = layout.ranks_on_host(self.ranks);
        let leaves = |load: &Load| {
            let away = load.sent_to.iter().filter(|(peer, _)| layout.host(*peer) != layout.host(load.rank));
            away.map(|(_, share)| share).sum::<f64>()
        };
        let mut sums = [(0.0, 0.0); 2];
        for load in &self.loads {
            let is_last = load.rank % here == here - 1 || load.rank == self.ranks - 1;
            let sum = &mut sums[usize::from(is_last)];
            *sum = (sum.0 + leaves(load), sum.1 + 1.0);
        }
        let [within, last] = sums.map(|(sum, count)| if count > 0.0 { sum / count } else { 0.0 });
        within * f64::from(here - 1) + last
    }
}

fn carried_on([a, b, c]: [f64; 3], from: u32, ranks: u32) -> f64 {
    let growth = if b > a { ((c - b) / (b - a)).clamp(1.0, 2.0) } else { 1.0 };
    let (mut chain, mut step, mut at) = (c, (c - b).max(0.0), f64::from(from));
    while at < f64::from(ranks) {
        step *= growth;
        // The last doubling may be a part of one.
        let part = (f64::from(ranks) / at - 1.0).min(1.0);
        chain += step * part;
        at *= 2.0;
    }
    chain
}

fn load(plan: &Plan) -> Load {
    let shares = Shares::new(&plan.contract);
    let mut load = Load::default();
    for part in &plan.ranks {
        load.rank = part.rank;
        for op in &part.ops {
            let share: f64 = part.regions(moved(op)).iter().map(|region| shares.region(plan, region)).sum();
            load.sent_to.extend(op.action.sends_to().map(|(peer, _)| (peer, share)));
            let kind = kind(op.action);
            match kind {
                ItemKind::Send => (load.sends, load.sent) = (load.sends + 1.0, load.sent + share),
                ItemKind::Recv | ItemKind::RecvReduce => {
                    (load.receives, load.received) = (load.receives + 1.0, load.received + share);
                }
                ItemKind::Copy => (load.locals, load.copied) = (load.locals + 1.0, load.copied + share),
                ItemKind::Reduce => load.locals += 1.0,
            }
            if matches!(kind, ItemKind::RecvReduce | ItemKind::Reduce) {
                load.reduced += share;
            }
        }
    }
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_carried_on_as_they_grew() {
        assert_eq!(carried_on([3.0, 4.0, 5.0], 32, 1024), 10.0);
        assert_eq!(carried_on([7.0, 15.0, 31.0], 32, 128), 127.0);
        assert_eq!(carried_on([1.0, 1.0, 1.0], 32, 4096), 1.0);
        assert_eq!(carried_on([11.0, 23.0, 47.0], 48, 72), 71.0);
    }
}
