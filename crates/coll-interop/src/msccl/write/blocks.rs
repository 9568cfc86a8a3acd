//! Thread blocks: one for each connection, or for two where what comes in on one is sent on over the other. Fused ones
//! share a channel, and two connections of one pair of ranks never do.

use super::flow::{Flow, Link, Move};
use coll_plan::Plan;
use std::collections::{BTreeMap, BTreeSet};

/// A thread block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadBlock {
    pub(super) send: Option<u32>,
    pub(super) receive: Option<u32>,
    pub(super) channel: u32,
}

/// A thread block with the connection that it sends over, and the one that it receives over.
type End = (ThreadBlock, Option<Link>, Option<Link>);

/// The thread blocks of all ranks.
pub(super) struct ThreadBlocks {
    pub(super) channels: u32,
    blocks: Vec<Vec<ThreadBlock>>,
    /// The thread block of each end of a connection.
    sends: BTreeMap<Link, u32>,
    receives: BTreeMap<Link, u32>,
    /// The thread block of each local operation.
    locals: BTreeMap<(u32, u32), u32>,
}

impl ThreadBlocks {
    pub(super) fn of(plan: &Plan, flow: &Flow) -> ThreadBlocks {
        let mut links = BTreeSet::new();
        let mut passes: BTreeMap<(Link, Link), u32> = BTreeMap::new();
        for moved in flow.of_all() {
            let (into, out) = (moved.incoming(plan), moved.outgoing(plan));
            links.extend(out.into_iter().chain(into));
            if let Some(pair) = into.zip(out) {
                *passes.entry(pair).or_default() += 1;
            }
        }
        let joined = join(&links, passes);
        let channels = joined.channels(&links);
        ThreadBlocks::new(plan, flow, &links, &joined, &channels)
    }

    fn new(
        plan: &Plan,
        flow: &Flow,
        links: &BTreeSet<Link>,
        joined: &Joined,
        channels: &BTreeMap<Link, u32>,
    ) -> ThreadBlocks {
        let mut ends: Vec<Vec<End>> = plan.ranks.iter().map(|_| Vec::new()).collect();
        for &link in links {
            let (from, to, _) = link;
            let channel = channels[&link];
            let incoming = joined.feeds.get(&link).copied();
            let receive = incoming.map(|(sender, ..)| sender);
            ends[from as usize].push((
                ThreadBlock { send: Some(to), receive, channel },
                Some(link),
                incoming,
            ));
            if !joined.fed.contains(&link) {
                let block = ThreadBlock { send: None, receive: Some(from), channel };
                ends[to as usize].push((block, None, Some(link)));
            }
        }
        let (mut sends, mut receives) = (BTreeMap::new(), BTreeMap::new());
        let mut blocks = Vec::new();
        for ends in &mut ends {
            ends.sort_unstable();
            for (&(_, out, into), id) in ends.iter().zip(0..) {
                out.map(|link| sends.insert(link, id));
                into.map(|link| receives.insert(link, id));
            }
            blocks.push(ends.iter().map(|&(block, ..)| block).collect::<Vec<_>>());
        }
        let count = channels.values().max().map_or(1, |&last| last + 1);
        let locals = BTreeMap::new();
        let mut all = ThreadBlocks { channels: count, blocks, sends, receives, locals };
        for part in &plan.ranks {
            all.place_locals(plan, part.rank, flow.of_rank(part.rank));
        }
        all
    }

    /// Local work goes where the message before it in its lane goes, or the one after it, or to a thread block of its own.
    fn place_locals(&mut self, plan: &Plan, rank: u32, moves: &[Move]) {
        let part = &plan.ranks[rank as usize];
        let mut of_op: BTreeMap<u32, u32> = BTreeMap::new();
        for moved in moves {
            if let Some(block) = self.end_of(plan, moved) {
                of_op.extend(moved.ops.iter().map(|&op| (op, block)));
            }
        }
        let mut own: Option<u32> = None;
        for lane in &part.lanes {
            let known = |op: u32| of_op.get(&op).copied();
            let mut last = (lane.start..lane.end).find_map(known);
            for op in lane.start..lane.end {
                if let Some(block) = known(op) {
                    last = Some(block);
                    continue;
                }
                let block = last.unwrap_or_else(|| {
                    *own.get_or_insert_with(|| {
                        let blocks = &mut self.blocks[rank as usize];
                        blocks.push(ThreadBlock { send: None, receive: None, channel: 0 });
                        blocks.len() as u32 - 1
                    })
                });
                self.locals.insert((rank, op), block);
            }
        }
    }

    fn end_of(&self, plan: &Plan, moved: &Move) -> Option<u32> {
        match moved.incoming(plan) {
            Some(into) => self.receives.get(&into).copied(),
            None => self.sends.get(&moved.outgoing(plan)?).copied(),
        }
    }

    /// A rank's thread blocks.
    pub(super) fn of_rank(&self, rank: u32) -> &[ThreadBlock] {
        &self.blocks[rank as usize]
    }

    /// The thread block of a move.
    pub(super) fn block_of(&self, plan: &Plan, moved: &Move) -> u32 {
        let local = || self.locals.get(&(moved.rank, moved.ops[0])).copied();
        self.end_of(plan, moved).or_else(local).unwrap_or(0)
    }

    /// Whether a receive's thread block also has the connection that a send goes out on.
    pub(super) fn are_joined(&self, into: Link, out: Link) -> bool {
        self.receives.get(&into).is_some_and(|block| self.sends.get(&out) == Some(block)) && into.1 == out.0
    }
}

/// Which connections share a thread block, and so a channel.
struct Joined {
    /// For outgoing connections, the incoming one of the same thread block.
    feeds: BTreeMap<Link, Link>,
    /// The incoming ones among these.
    fed: BTreeSet<Link>,
    /// A representative of all that share a channel.
    class: BTreeMap<Link, Link>,
}

/// Joins those that pass on most first. A join that would give two connections of one pair of ranks one channel is left.
fn join(links: &BTreeSet<Link>, passes: BTreeMap<(Link, Link), u32>) -> Joined {
    let class = links.iter().map(|&link| (link, link)).collect();
    let mut joined = Joined { feeds: BTreeMap::new(), fed: BTreeSet::new(), class };
    let mut members: BTreeMap<Link, BTreeSet<Link>> =
        links.iter().map(|&link| (link, BTreeSet::from([link]))).collect();
    let mut passes: Vec<((Link, Link), u32)> = passes.into_iter().collect();
    passes.sort_by_key(|&(pair, count)| (std::cmp::Reverse(count), pair));
    for ((into, out), _) in passes {
        if joined.feeds.contains_key(&out) || joined.fed.contains(&into) {
            continue;
        }
        let (a, b) = (joined.class[&into], joined.class[&out]);
        if a != b {
            let pairs = |class: Link| members[&class].iter().map(|&(from, to, _)| (from, to));
            let taken: BTreeSet<(u32, u32)> = pairs(a).collect();
            if pairs(b).any(|pair| taken.contains(&pair)) {
                continue;
            }
            let moved = members.remove(&b).unwrap_or_default();
            for &link in &moved {
                joined.class.insert(link, a);
            }
            members.entry(a).or_default().extend(moved);
        }
        joined.feeds.insert(out, into);
        joined.fed.insert(into);
    }
    joined
}

impl Joined {
    /// The least channels such that connections of one pair of ranks have different ones.
    fn channels(&self, links: &BTreeSet<Link>) -> BTreeMap<Link, u32> {
        let mut members: BTreeMap<Link, Vec<Link>> = BTreeMap::new();
        for &link in links {
            members.entry(self.class[&link]).or_default().push(link);
        }
        let mut taken: BTreeSet<(u32, u32, u32)> = BTreeSet::new();
        let mut channels = BTreeMap::new();
        let mut classes: Vec<&Vec<Link>> = members.values().collect();
        classes.sort_by_key(|class| std::cmp::Reverse(class.len()));
        for class in classes {
            let is_free =
                |channel: &u32| class.iter().all(|&(from, to, _)| !taken.contains(&(from, to, *channel)));
            let channel = (0..).find(is_free).unwrap_or(0);
            for &(from, to, own) in class {
                taken.insert((from, to, channel));
                channels.insert((from, to, own), channel);
            }
        }
        channels
    }
}
