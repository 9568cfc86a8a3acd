//! GOAL and Chakra traces of every library schedule, read back: the same messages of the same sizes, each waiting for the same ones
//! as in the plan, and proved to arrive.

mod support;

use coll::foreign::{Examined, Form, examine, examine_traces};
use coll::library;
use coll_interop::{Sizes, chakra, goal};
use coll_plan::{Action, Plan};
use std::collections::{BTreeMap, BTreeSet};
use support::library_plan;

/// An end of a message: sender, receiver, which of the messages of the two, and whether it is the sender's.
type End = (u32, u32, u64, bool);

/// What a plan says of its messages: the bytes of each, and for each end the ends of the same rank that are surely over before.
type Said = (BTreeMap<(u32, u32, u64), u64>, BTreeMap<End, BTreeSet<End>>);

/// What a plan says, if its nth message on a channel is the message that `number` makes of both.
fn said(plan: &Plan, sizes: &[u64], number: impl Fn(u64, u32) -> u64) -> Said {
    let (mut bytes, mut before) = (BTreeMap::new(), BTreeMap::new());
    for part in &plan.ranks {
        let mut counts: BTreeMap<(u32, u32, bool), u64> = BTreeMap::new();
        let mut ends: Vec<Option<End>> = Vec::new();
        for op in &part.ops {
            let length = |region: &coll_plan::Region| {
                let count = sizes[region.class as usize];
                plan.cuts[region.high as usize].of(count) - plan.cuts[region.low as usize].of(count)
            };
            let mut take = |peer: u32, channel: u32, sends: bool| {
                let nth = counts.entry((peer, channel, sends)).or_default();
                *nth += 1;
                number(*nth - 1, channel)
            };
            let end = match op.action {
                Action::Send { peer, channel } => {
                    let end = (part.rank, peer, take(peer, channel, true), true);
                    // Neither form has a message without a byte.
                    let size = part.regions(op.source).iter().map(length).sum::<u64>().max(1);
                    bytes.insert((end.0, end.1, end.2), size);
                    Some(end)
                }
                Action::Recv { peer, channel } | Action::RecvReduce { peer, channel, .. } => {
                    Some((peer, part.rank, take(peer, channel, false), false))
                }
                Action::Copy | Action::Reduce { .. } => None,
            };
            ends.push(end);
        }
        for (id, end) in (0..).zip(&ends) {
            if let Some(end) = end {
                before.insert(
                    *end,
                    earlier(plan, part.rank, id).into_iter().filter_map(|op| ends[op as usize]).collect(),
                );
            }
        }
    }
    (bytes, before)
}

/// All operations of a rank that are over before one starts.
fn earlier(plan: &Plan, rank: u32, op: u32) -> BTreeSet<u32> {
    let part = &plan.ranks[rank as usize];
    let (mut seen, mut open) = (BTreeSet::new(), vec![op]);
    while let Some(op) = open.pop() {
        let lane = part.lanes.partition_point(|lane| lane.end <= op);
        let previous = (op > part.lanes[lane].start).then(|| op - 1);
        for on in part.waits(&part.ops[op as usize]).iter().map(|wait| wait.op).chain(previous) {
            if seen.insert(on) {
                open.push(on);
            }
        }
    }
    seen
}

/// What came back says what the plan says, and is proved.
fn same(what: &str, plan: &Plan, counts: &[u64], examined: &Examined) {
    let schedule = examined.schedule.as_ref().filter(|schedule| schedule.verdict.ok);
    let schedule = schedule.unwrap_or_else(|| panic!("{what}: {:#?}", examined.diagnostics));
    assert_eq!(schedule.plan.world(), plan.world(), "{what}");
    let sizes = schedule.sizes_bytes.as_ref().expect("the form says sizes");
    // Tags tell messages of two ranks apart, and are numbered such that channels of the plan take turns.
    let (bytes, before) =
        said(plan, counts, |nth, channel| nth * u64::from(plan.channels) + u64::from(channel));
    let mut numbers: BTreeMap<(u32, u32), BTreeSet<u64>> = BTreeMap::new();
    for &(from, to, number) in bytes.keys() {
        numbers.entry((from, to)).or_default().insert(number);
    }
    let dense = |from: u32, to: u32, number: u64| numbers[&(from, to)].range(..number).count() as u64;
    let end = |(from, to, number, sends): End| (from, to, dense(from, to, number), sends);
    let bytes: BTreeMap<_, _> = bytes
        .into_iter()
        .map(|((from, to, number), size)| ((from, to, dense(from, to, number)), size))
        .collect();
    let before: BTreeMap<End, BTreeSet<End>> =
        before.into_iter().map(|(of, ends)| (end(of), ends.into_iter().map(end).collect())).collect();
    // Each message has a channel of its own there.
    let (found_bytes, found_before) = said(&schedule.plan, sizes, |nth, channel| nth + u64::from(channel));
    assert_eq!(found_bytes, bytes, "{what}: sizes");
    assert_eq!(found_before, before, "{what}: order");
}

#[test]
fn every_library_schedule_comes_back_as_it_was() {
    let mut written = 0;
    for entry in library::entries() {
        for ranks in [1, 2, 3, 5, 8] {
            let Some(plan) = library_plan(&entry, ranks, ranks - 1) else { continue };
            // Elements that schedules do not divide, and fewer than ranks.
            for elements in [1003, 2] {
                let what = format!("{}.{} at {ranks}, {elements} elements", entry.collective, entry.schedule);
                let counts = plan.contract.counts(elements).unwrap_or_else(|error| panic!("{what}: {error}"));
                let sizes = Sizes { counts: counts.clone(), element_size_bytes: 1 };
                let text = goal::write(&plan, &sizes).expect("it is whole");
                same(
                    &format!("{what} as GOAL"),
                    &plan,
                    &counts,
                    &examine(Form::Goal, "back.goal", text, None),
                );
                let traces = chakra::write(&plan, &sizes).expect("it is whole");
                let name = |(rank, trace)| (format!("back.{rank}.et"), trace);
                let traces: Vec<(String, Vec<u8>)> = traces.into_iter().enumerate().map(name).collect();
                same(&format!("{what} as Chakra"), &plan, &counts, &examine_traces("back.et", &traces));
                written += 1;
            }
        }
    }
    assert!(written > 300, "only {written} were written");
}
