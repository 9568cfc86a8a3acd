//! A plan with its sizes left open: operations of all ranks in one table, each with its bytes as a share of the sized
//! buffer's, and what each sets off.

use coll_contract::Contract;
use coll_plan::{Action, Op, Plan, RankPlan, Region, Run, Store};
use std::collections::{BTreeMap, HashSet};

/// Nobody.
pub(crate) const NONE: u32 = u32::MAX;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Sends to a rank.
    Send,
    /// Receives and stores.
    Recv,
    /// Receives and reduces.
    RecvReduce,
    /// Copies within the rank.
    Copy,
    /// Reduces within the rank.
    Reduce,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// What it does.
    pub kind: ItemKind,
    /// Bytes it moves, as a share of the sized buffer's.
    pub share: f64,
    pub(crate) rank: u32,
    /// The other end of its message.
    pub(crate) partner: u32,
    /// The receive that a send follows byte by byte.
    pub(crate) leader: u32,
    /// How many operations it waits for.
    pub(crate) waits: u32,
    /// What it stores is read by no other operation, so that it need not stay in the cache.
    pub(crate) past_cache: bool,
    /// The message that a send has in common with others, by its number in [`Outline::shared`].
    pub(crate) common: u32,
}

/// A whole plan, ready to be run on constants.
#[derive(Clone, Debug)]
pub struct Outline {
    pub(crate) ranks: u32,
    pub(crate) items: Vec<Item>,
    /// For each operation, where those that wait for its end begin in `next`.
    pub(crate) starts: Vec<u32>,
    pub(crate) next: Vec<u32>,
    /// For each operation, the sends that follow it: most have none, so they are a list.
    pub(crate) followers: Vec<(u32, u32)>,
    /// How many sends each message has that goes to several peers as it is.
    pub(crate) shared: Vec<u32>,
    /// Bytes of all of a rank's buffers, as a share of the sized one's.
    pub(crate) touched: f64,
    /// Of the bytes that a rank reduces, the share that it does not reduce into a place once more: the most that any has. What
    /// comes from several peers at once is reduced into one place while that is in the cache.
    pub(crate) accumulated: f64,
}

impl Outline {
    /// Outlines a whole plan that has been verified.
    pub fn new(plan: &Plan) -> Outline {
        let shares = Shares::new(&plan.contract);
        let mut outline = Outline {
            ranks: plan.world(),
            items: Vec::with_capacity(plan.ranks.iter().map(|part| part.ops.len()).sum()),
            starts: Vec::new(),
            next: Vec::new(),
            followers: Vec::new(),
            shared: Vec::new(),
            touched: shares.touched,
            accumulated: 0.0,
        };
        let mut edges: Vec<(u32, u32)> = Vec::new();
        let mut messages: BTreeMap<(u32, u32, u32), [Vec<u32>; 2]> = BTreeMap::new();
        for part in &plan.ranks {
            let base = outline.items.len() as u32;
            let (common, first) = (coll_plan::shared_sends(part), outline.shared.len() as u32);
            for (at, op) in part.ops.iter().enumerate() {
                let id = base + at as u32;
                let mut item = item(plan, part.regions(moved(op)), op.action, part.rank, &shares);
                if let Some(common) = common[at] {
                    item.common = first + common;
                    outline.shared.resize(outline.shared.len().max(item.common as usize + 1), 0);
                    outline.shared[item.common as usize] += 1;
                }
                for wait in part.waits(op) {
                    match wait.along {
                        true => item.leader = base + wait.op,
                        false => edges.push((base + wait.op, id)),
                    }
                }
                if let Some((peer, channel)) = op.action.sends_to() {
                    messages.entry((part.rank, peer, channel)).or_default()[0].push(id);
                }
                if let Some((peer, channel)) = op.action.receives_from() {
                    messages.entry((peer, part.rank, channel)).or_default()[1].push(id);
                }
                if item.leader != NONE {
                    outline.followers.push((item.leader, id));
                }
                outline.items.push(item);
            }
            outline.note_memory(plan, part, base, &shares);
            for lane in &part.lanes {
                edges.extend((lane.start + 1..lane.end).map(|op| (base + op - 1, base + op)));
            }
        }
        for [sends, receives] in messages.values() {
            for (&send, &receive) in sends.iter().zip(receives) {
                outline.items[send as usize].partner = receive;
                outline.items[receive as usize].partner = send;
            }
        }
        outline.link(&edges);
        outline
    }

    /// The plan as it runs in place, where what is copied from a block of a buffer to itself stays where it is.
    pub fn without_copies_onto_themselves(mut self, plan: &Plan) -> Outline {
        let parts = plan.ranks.iter().flat_map(|part| part.ops.iter().map(move |op| (part, op)));
        for (item, (part, op)) in self.items.iter_mut().zip(parts) {
            let place = |region: &Region| match region.store {
                Store::In(buffer) | Store::Out(buffer) | Store::Tmp(buffer) => {
                    Some((buffer, region.block, region.low, region.high))
                }
                Store::Slot => None,
            };
            let ends = part.regions(op.source).iter().zip(part.regions(op.target));
            let mut ends = ends.map(|(source, target)| (place(source), place(target)));
            if item.kind == ItemKind::Copy
                && ends.all(|(source, target)| source.is_some() && source == target)
            {
                item.share = 0.0;
            }
        }
        self
    }

    /// Notes what a rank's operations do with memory: where it accumulates, and what it stores for its caller alone.
    fn note_memory(&mut self, plan: &Plan, part: &RankPlan, base: u32, shares: &Shares) {
        let reduces = |op: &Op| matches!(op.action, Action::RecvReduce { .. } | Action::Reduce { .. });
        let targets = part.ops.iter().filter(|op| reduces(op)).flat_map(|op| part.regions(op.target));
        let sum = |regions: &mut dyn Iterator<Item = &Region>| -> f64 {
            regions.map(|region| shares.region(plan, region)).sum()
        };
        let reduced = sum(&mut targets.clone());
        let places: HashSet<&Region> = targets.collect();
        if reduced > 0.0 {
            self.accumulated = self.accumulated.max(sum(&mut places.into_iter()) / reduced);
        }
        // By block: plans read what they store in the pieces that they stored it in, or in whole blocks.
        let place = |region: &Region| (region.store, region.block);
        let read = part.ops.iter().flat_map(|op| [op.source, op.operand]).flat_map(|run| part.regions(run));
        let read: HashSet<(Store, u32)> = read.map(place).collect();
        for (item, op) in self.items[base as usize..].iter_mut().zip(&part.ops) {
            let stores = matches!(op.action, Action::Copy | Action::Recv { .. });
            item.past_cache =
                stores && !part.regions(op.target).iter().any(|region| read.contains(&place(region)));
        }
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// True if nothing is done.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn link(&mut self, edges: &[(u32, u32)]) {
        self.followers.sort_unstable();
        self.starts = vec![0; self.items.len() + 1];
        edges.iter().for_each(|&(from, _)| self.starts[from as usize + 1] += 1);
        (0..self.items.len()).for_each(|at| self.starts[at + 1] += self.starts[at]);
        let mut free = self.starts.clone();
        self.next = vec![0; edges.len()];
        for &(from, to) in edges {
            self.next[free[from as usize] as usize] = to;
            free[from as usize] += 1;
            self.items[to as usize].waits += 1;
        }
        // A message's coming and a leader's beginning are waited for as well.
        for item in &mut self.items {
            let receives = matches!(item.kind, ItemKind::Recv | ItemKind::RecvReduce);
            item.waits += u32::from(receives && item.partner != NONE) + u32::from(item.leader != NONE);
        }
    }

    pub(crate) fn next(&self, id: u32) -> &[u32] {
        &self.next[self.starts[id as usize] as usize..self.starts[id as usize + 1] as usize]
    }

    pub(crate) fn followers(&self, id: u32) -> &[(u32, u32)] {
        let start = self.followers.partition_point(|&(leader, _)| leader < id);
        let rest = &self.followers[start..];
        &rest[..rest.partition_point(|&(leader, _)| leader == id)]
    }
}

/// Whether every message goes from where its bytes are given to where they are to stay, so that each rank touches its own
/// blocks alone.
pub fn is_direct(plan: &Plan) -> bool {
    plan.ranks.iter().all(|part| {
        part.ops.iter().all(|op| {
            let from = part.regions(op.source).iter().all(|region| matches!(region.store, Store::In(_)));
            let to = part.regions(op.target).iter().all(|region| matches!(region.store, Store::Out(_)));
            from && to
        })
    })
}

/// The regions whose lengths are the bytes that an operation moves.
pub(crate) fn moved(op: &coll_plan::Op) -> Run {
    if op.target.is_empty() { op.source } else { op.target }
}

fn item(plan: &Plan, regions: &[Region], action: Action, rank: u32, shares: &Shares) -> Item {
    let share = regions.iter().map(|region| shares.region(plan, region)).sum();
    Item {
        kind: kind(action),
        share,
        rank,
        partner: NONE,
        leader: NONE,
        waits: 0,
        past_cache: false,
        common: NONE,
    }
}

pub(crate) fn kind(action: Action) -> ItemKind {
    match action {
        Action::Send { .. } => ItemKind::Send,
        Action::Recv { .. } => ItemKind::Recv,
        Action::RecvReduce { .. } => ItemKind::RecvReduce,
        Action::Copy => ItemKind::Copy,
        Action::Reduce { .. } => ItemKind::Reduce,
    }
}

/// Blocks as shares of the sized buffer.
pub(crate) struct Shares {
    of_class: Vec<f64>,
    pub(crate) touched: f64,
}

impl Shares {
    pub(crate) fn new(contract: &Contract) -> Shares {
        // A size that every buffer's blocks divide, so that all are equal.
        let elements = contract.buffers.iter().map(|b| u64::from(b.blocks)).max().unwrap_or(1).max(1) << 20;
        let counts = contract.counts(elements).unwrap_or_default();
        let of_class: Vec<f64> = counts.iter().map(|&count| count as f64 / elements as f64).collect();
        let rank = contract.only.unwrap_or(0);
        let touched = (0..contract.buffers.len() as u32).flat_map(|buffer| {
            (0..contract.buffers[buffer as usize].blocks).map(move |block| (buffer, block))
        });
        let touched = touched.map(|(buffer, block)| {
            of_class.get(contract.class(rank, buffer, block) as usize).copied().unwrap_or(0.0)
        });
        // Out of place a buffer is two.
        let touched = 2.0 * touched.sum::<f64>();
        Shares { of_class, touched }
    }

    pub(crate) fn region(&self, plan: &Plan, region: &Region) -> f64 {
        let cut = |piece: u32| plan.cuts[piece as usize].to_f64();
        let block = self.of_class.get(region.class as usize).copied().unwrap_or(0.0);
        (cut(region.high) - cut(region.low)) * block
    }
}
