//! Combinations that follow each other into one target become one kernel of more operands: the sum so far stays in
//! registers. The order is the same, and so are the bits.

use super::{Deed, Launch, Spot, StreamPlan, Work};

/// Operands that one kernel takes, ascending. There is one of each.
pub(crate) const ARITIES: [usize; 4] = [2, 3, 4, 8];

/// The most operands.
const ARITY_MAX: usize = 8;

/// Fuses what can be fused.
///
/// Of two combinations the first moves to the place of the second: it may where its stream does nothing in between but
/// wait, for then nobody has been told that it is done.
pub(super) fn fuse(mut stream_plan: StreamPlan) -> StreamPlan {
    let mut all: Vec<Option<Work>> = Vec::with_capacity(stream_plan.work.len());
    // Where the last combination of each stream stands, if nothing but waits came after.
    let mut open: Vec<Option<usize>> = vec![None; stream_plan.streams.len()];
    for mut work in stream_plan.work {
        let stream = work.stream as usize;
        match &mut work.deed {
            Deed::Wait(_) | Deed::Await(_) | Deed::Collect(_) => {}
            Deed::Launch(Launch::Combine { target, sources, count }) => {
                let before = open[stream].and_then(|at| all[at].as_ref());
                let joined = before.and_then(|before| joined(&before.deed, *target, sources, *count));
                if let (Some(joined), Some(at)) = (joined, open[stream]) {
                    *sources = joined;
                    all[at] = None;
                }
                open[stream] = Some(all.len());
            }
            Deed::Copy { .. } | Deed::Launch(_) | Deed::Record(_) | Deed::Signal { .. } | Deed::Post(_) => {
                open[stream] = None;
            }
        }
        all.push(Some(work));
    }
    stream_plan.work = all.into_iter().flatten().flat_map(split).collect();
    stream_plan
}

/// The operands of both, if the second goes on with the result of the first.
fn joined(before: &Deed, target: Spot, sources: &[Spot], count: u64) -> Option<Vec<Spot>> {
    let Deed::Launch(Launch::Combine { target: earlier, sources: first, count: elements }) = before else {
        return None;
    };
    let goes_on = *earlier == target && *elements == count && sources[0] == target;
    let reads_it_once = !sources[1..].contains(&target);
    let fits = first.len() + sources.len() - 1 <= ARITY_MAX;
    (goes_on && reads_it_once && fits).then(|| [first, &sources[1..]].concat())
}

/// One combination as kernels that there are.
fn split(work: Work) -> Vec<Work> {
    let Deed::Launch(Launch::Combine { target, sources, count }) = work.deed else { return vec![work] };
    let kernel =
        |sources: Vec<Spot>| Work { deed: Deed::Launch(Launch::Combine { target, sources, count }), ..work };
    if ARITIES.contains(&sources.len()) {
        return vec![kernel(sources)];
    }
    let (first, rest) = sources.split_at(4);
    vec![kernel(first.to_vec()), kernel([&[target], rest].concat())]
}
