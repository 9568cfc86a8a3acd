//! A judge of stream plans that shares no code with what makes them: any two accesses of one byte, one of which writes, are
//! ordered by streams and events.

use coll_exec::Memory;
use coll_gpu::stream_plan::{Deed, Launch, Spot, StreamPlan, Work};
use std::collections::BTreeMap;

/// An access: who, which bytes, and whether it writes.
#[derive(Clone, Copy)]
struct Access {
    work: usize,
    start: u64,
    end: u64,
    writes: bool,
}

/// For each piece of work, which others come before it: a bit for each.
struct Before {
    words: usize,
    bits: Vec<u64>,
}

impl Before {
    fn new(stream_plan: &StreamPlan) -> Before {
        let count = stream_plan.work.len();
        let words = count.div_ceil(64);
        let mut before = Before { words, bits: vec![0; words * count] };
        let mut last = vec![None; stream_plan.streams.len()];
        let mut records = vec![None; stream_plan.events as usize];
        for (at, work) in stream_plan.work.iter().enumerate() {
            if let Some(earlier) = last[work.stream as usize].replace(at) {
                before.add(at, earlier);
            }
            match work.deed {
                Deed::Record(event) => records[event as usize] = Some(at),
                // An event that is not recorded when a wait for it is put on a stream is not waited for.
                Deed::Wait(event) => {
                    if let Some(record) = records[event as usize] {
                        before.add(at, record);
                    }
                }
                Deed::Copy { .. } | Deed::Launch(_) | Deed::Signal { .. } | Deed::Await(_) => {}
            }
        }
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
    for (at, work) in stream_plan.work.iter().enumerate() {
        for (spot, bytes, writes) in accesses(stream_plan, work) {
            let access = Access { work: at, start: spot.offset, end: spot.offset + bytes, writes };
            all.entry((spot.rank, spot.memory)).or_default().push(access);
        }
    }
    for (memory, mut accesses) in all {
        accesses.sort_unstable_by_key(|access| access.start);
        for (index, one) in accesses.iter().enumerate() {
            let near = accesses[index + 1..].iter().take_while(|other| other.start < one.end);
            for other in near.filter(|other| (one.writes || other.writes) && one.work != other.work) {
                let (first, second) = (one.work.min(other.work), one.work.max(other.work));
                if !before.holds(first, second) {
                    let [first, second] = [first, second].map(|at| &stream_plan.work[at]);
                    return Some(format!("{memory:?}: {first:?} and {second:?}"));
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
        stream_plan.work.iter().rposition(|work| work.stream == first)
    };
    let ends: Vec<Option<usize>> = (0..stream_plan.ranks.len() as u32).map(end).collect();
    for (at, work) in stream_plan.work.iter().enumerate() {
        for (spot, ..) in accesses(stream_plan, work) {
            let is_before = ends[spot.rank as usize].is_some_and(|end| end == at || before.holds(at, end));
            if !is_before {
                return Some(format!("{work:?} of {}, on memory of rank {}", stream_plan.name, spot.rank));
            }
        }
    }
    None
}

fn accesses(stream_plan: &StreamPlan, work: &Work) -> Vec<(Spot, u64, bool)> {
    let operator = stream_plan.arithmetic.as_ref().map(|arithmetic| arithmetic.operator());
    let sizes =
        operator.map_or((1, 1), |operator| (operator.dtype().size_bytes(), operator.working_size_bytes()));
    match &work.deed {
        Deed::Record(_) | Deed::Wait(_) | Deed::Signal { .. } | Deed::Await(_) => Vec::new(),
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
