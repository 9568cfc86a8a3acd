//! A judge of stream plans that shares no code with what makes them: any two accesses of one byte, one of which writes, are
//! ordered by streams, events and parcels.

use coll_exec::Memory;
use coll_gpu::stream_plan::{Deed, Heading, Launch, Parcel, Spot, StreamPlan, Work};
use std::collections::BTreeMap;

/// An access: who, which bytes, and whether it writes.
#[derive(Clone, Copy)]
struct Access {
    node: usize,
    start: u64,
    end: u64,
    writes: bool,
}

/// A piece of work, or a parcel on its way, which comes after it is posted and before it is collected.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Node {
    Work(usize),
    Parcel(u32),
}

/// All nodes, and for each, which others come before it: a bit for each.
struct Before {
    nodes: Vec<Node>,
    words: usize,
    bits: Vec<u64>,
}

impl Before {
    fn new(stream_plan: &StreamPlan) -> Before {
        let count = stream_plan.work.len() + stream_plan.parcels.len();
        let words = count.div_ceil(64);
        let mut before = Before { nodes: Vec::with_capacity(count), words, bits: vec![0; words * count] };
        let mut last = vec![None; stream_plan.streams.len()];
        let mut records = vec![None; stream_plan.events as usize];
        let mut parcels = vec![None; stream_plan.parcels.len()];
        let mut links = BTreeMap::new();
        for (at, work) in stream_plan.work.iter().enumerate() {
            let node = before.nodes.len();
            before.nodes.push(Node::Work(at));
            if let Some(earlier) = last[work.stream as usize].replace(node) {
                before.add(node, earlier);
            }
            match work.deed {
                Deed::Record(event) => records[event as usize] = Some(node),
                // An event that is not recorded when a wait for it is put on a stream is not waited for.
                Deed::Wait(event) => {
                    if let Some(record) = records[event as usize] {
                        before.add(node, record);
                    }
                }
                Deed::Post(parcel) => {
                    let carried = before.nodes.len();
                    before.nodes.push(Node::Parcel(parcel));
                    before.add(carried, node);
                    // A link's parcels are carried in order, and one comes in when it has gone out.
                    let it = &stream_plan.parcels[parcel as usize];
                    if let Some(earlier) = links.insert((it.rank, it.heading, it.link), carried) {
                        before.add(carried, earlier);
                    }
                    if it.heading == Heading::In {
                        let is_other_end = |other: &&Parcel| {
                            other.heading == Heading::Out
                                && (other.rank, other.link.peer) == (it.link.peer, it.rank)
                                && (other.link.channel, other.message) == (it.link.channel, it.message)
                        };
                        let sent = stream_plan.parcels.iter().position(|other| is_other_end(&other));
                        let sent = sent.and_then(|sent| parcels[sent]).expect("it is posted before");
                        before.add(carried, sent);
                    }
                    assert!(parcels[parcel as usize].replace(carried).is_none(), "posted twice");
                }
                Deed::Collect(parcel) => {
                    before.add(node, parcels[parcel as usize].expect("it is posted before"));
                }
                Deed::Copy { .. } | Deed::Launch(_) | Deed::Signal { .. } | Deed::Await(_) => {}
            }
        }
        assert!(parcels.iter().all(Option::is_some), "a parcel is never posted");
        before
    }

    fn add(&mut self, at: usize, earlier: usize) {
        let (low, high) = self.bits.split_at_mut(at * self.words);
        let row = &low[earlier * self.words..(earlier + 1) * self.words];
        high.iter_mut().zip(row).for_each(|(mine, theirs)| *mine |= theirs);
        high[earlier / 64] |= 1 << (earlier % 64);
    }

    fn holds(&self, earlier: usize, later: usize) -> bool {
        self.bits[later * self.words + earlier / 64] >> (earlier % 64) & 1 == 1
    }
}

/// The first two accesses that nothing orders, in words.
pub fn race(stream_plan: &StreamPlan) -> Option<String> {
    let before = Before::new(stream_plan);
    let mut all: BTreeMap<(u32, Memory), Vec<Access>> = BTreeMap::new();
    for (at, &node) in before.nodes.iter().enumerate() {
        for (spot, bytes, writes) in touched(stream_plan, node) {
            let access = Access { node: at, start: spot.offset, end: spot.offset + bytes, writes };
            all.entry((spot.rank, spot.memory)).or_default().push(access);
        }
    }
    for (memory, mut accesses) in all {
        accesses.sort_unstable_by_key(|access| access.start);
        for (index, one) in accesses.iter().enumerate() {
            let near = accesses[index + 1..].iter().take_while(|other| other.start < one.end);
            for other in near.filter(|other| (one.writes || other.writes) && one.node != other.node) {
                let (first, second) = (one.node.min(other.node), one.node.max(other.node));
                if !before.holds(first, second) {
                    let [first, second] = [first, second].map(|at| told(stream_plan, before.nodes[at]));
                    return Some(format!("{memory:?}: {first} and {second}"));
                }
            }
        }
    }
    None
}

/// Whatever touches a rank's memory comes before the end of its caller's stream: nothing runs on after a call, on any rank.
pub fn runs_on(stream_plan: &StreamPlan) -> Option<String> {
    let before = Before::new(stream_plan);
    let end = |rank: u32| {
        let first = stream_plan.ranks[rank as usize].streams.start;
        let is_on_it = |node: &Node| matches!(node, Node::Work(at) if stream_plan.work[*at].stream == first);
        before.nodes.iter().rposition(is_on_it)
    };
    let ends: Vec<Option<usize>> = (0..stream_plan.ranks.len() as u32).map(end).collect();
    for (at, &node) in before.nodes.iter().enumerate() {
        for (spot, ..) in touched(stream_plan, node) {
            let is_before = ends[spot.rank as usize].is_some_and(|end| end == at || before.holds(at, end));
            if !is_before {
                let node = told(stream_plan, node);
                return Some(format!("{node} of {}, on memory of rank {}", stream_plan.name, spot.rank));
            }
        }
    }
    None
}

fn told(stream_plan: &StreamPlan, node: Node) -> String {
    match node {
        Node::Work(at) => format!("{:?}", stream_plan.work[at]),
        Node::Parcel(parcel) => format!("{:?}", stream_plan.parcels[parcel as usize]),
    }
}

fn touched(stream_plan: &StreamPlan, node: Node) -> Vec<(Spot, u64, bool)> {
    match node {
        Node::Work(at) => accesses(stream_plan, &stream_plan.work[at]),
        Node::Parcel(parcel) => {
            let parcel = &stream_plan.parcels[parcel as usize];
            let writes = parcel.heading == Heading::In;
            parcel.parts.iter().map(|&(spot, bytes)| (spot, bytes, writes)).collect()
        }
    }
}

fn accesses(stream_plan: &StreamPlan, work: &Work) -> Vec<(Spot, u64, bool)> {
    let operator = stream_plan.arithmetic.as_ref().map(|arithmetic| arithmetic.operator());
    let sizes =
        operator.map_or((1, 1), |operator| (operator.dtype().size_bytes(), operator.working_size_bytes()));
    match &work.deed {
        Deed::Record(_)
        | Deed::Wait(_)
        | Deed::Signal { .. }
        | Deed::Await(_)
        | Deed::Post(_)
        | Deed::Collect(_) => Vec::new(),
        Deed::Copy { target, source, bytes } => vec![(*source, *bytes, false), (*target, *bytes, true)],
        Deed::Launch(Launch::Combine { target, sources, count }) => {
            let reads = sources.iter().map(|source| (*source, count * sizes.1, false));
            reads.chain([(*target, count * sizes.1, true)]).collect()
        }
        Deed::Launch(Launch::Prepare { working, input, count }) => {
            vec![(*input, count * sizes.0, false), (*working, count * sizes.1, true)]
        }
        Deed::Launch(Launch::Finish { output, working, count, .. }) => {
            vec![(*working, count * sizes.1, false), (*output, count * sizes.0, true)]
        }
        Deed::Launch(Launch::Cast { target, source, count, from, to }) => {
            vec![(*source, count * from.size_bytes(), false), (*target, count * to.size_bytes(), true)]
        }
    }
}
