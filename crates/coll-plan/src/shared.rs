//! Sends of a rank that send the same: what they send is the same values, whichever runs first.

use crate::{Action, Op, OpId, RankPlan, Region, Store};
use std::collections::{HashMap, HashSet};

/// So many peers, or a message of so many bytes, make it worth it to write a message once for all of them. Measured between
/// processes on two cores, all-gathers in one step, copied to each peer and written once: blocks of 32 KiB and 128 KiB on 8
/// ranks 58 and 420 µs, and 37 and 160; of 32 KiB and 64 KiB on 4 ranks 19 and 32, and 21 and 35. Broadcasts of 1 MiB to three
/// peers in one step 224 and 147.
const MANY: u32 = 4;
const LARGE_BYTES: u64 = 128 << 10;

/// What is longer is out of the caches before the last peer has read it.
const SHARED_BYTES_MAX: u64 = 2 << 20;

/// Whether a message of so many bytes that goes to so many peers should be written once for all of them.
pub fn is_worth_sharing(sends: u32, bytes: u64) -> bool {
    sends > 1 && bytes <= SHARED_BYTES_MAX && (sends >= MANY || bytes >= LARGE_BYTES)
}

/// For each operation of a part the number of its group, if it is a send that sends what another one sends to another peer.
///
/// Two sends of the same regions need not be such: something may be written there in between. These are: nothing writes any of
/// it, or all that does is over before one that all of them wait for, or follow in its lane.
pub fn shared_sends(part: &RankPlan) -> Vec<Option<u32>> {
    let mut by_source: HashMap<&[Region], Vec<OpId>> = HashMap::new();
    for (id, op) in (0..).zip(&part.ops) {
        if op.action.sends_to().is_some() && !op.source.is_empty() {
            by_source.entry(part.regions(op.source)).or_default().push(id);
        }
    }
    let peers = |sends: &[OpId]| {
        let mut peers: Vec<_> =
            sends.iter().filter_map(|&id| part.ops[id as usize].action.sends_to()).collect();
        peers.sort_unstable();
        peers.dedup();
        peers.len()
    };
    let mut groups: Vec<Vec<OpId>> = by_source.into_values().filter(|sends| peers(sends) > 1).collect();
    groups.retain(|sends| is_same_for_all(part, sends));
    groups.sort_unstable();
    let mut group_of = vec![None; part.ops.len()];
    for (number, sends) in (0..).zip(&groups) {
        sends.iter().for_each(|&id| group_of[id as usize] = Some(number));
    }
    group_of
}

/// Whether sends of the same regions find the same in them.
fn is_same_for_all(part: &RankPlan, sends: &[OpId]) -> bool {
    let source = part.regions(part.ops[sends[0] as usize].source);
    let writes = |op: &Op| {
        let of = |target: &Region| source.iter().any(|read| meet(read, target));
        !copies_in_place(part, op, source) && part.regions(op.target).iter().any(of)
    };
    let writers: Vec<OpId> = (0..).zip(&part.ops).filter(|(_, op)| writes(op)).map(|(id, _)| id).collect();
    let is_last = |&writer: &OpId| {
        sends.iter().all(|&send| follows(part, send, writer)) && follows_all(part, writer, &writers, source)
    };
    writers.is_empty() || writers.iter().any(is_last)
}

/// Whether an operation begins after all others of these have ended, which write parts of `regions`; or goes along with one that
/// writes just these, so that each piece of them is over when it comes to it.
fn follows_all(part: &RankPlan, writer: OpId, writers: &[OpId], regions: &[Region]) -> bool {
    let mut missing = writers.len() - 1;
    let mut seen = HashSet::from([writer]);
    let mut open = vec![writer];
    while let Some(id) = open.pop().filter(|_| missing > 0) {
        let whole = |op: OpId| part.regions(part.ops[op as usize].target) == regions;
        let waits = part.waits(&part.ops[id as usize]).iter();
        let before = waits.filter(|wait| !wait.along || whole(wait.op)).map(|wait| wait.op);
        let lane = &part.lanes[part.lanes.partition_point(|lane| lane.end <= id)];
        for earlier in before.chain((lane.start < id).then(|| id - 1)) {
            if seen.insert(earlier) {
                missing -= usize::from(writers.contains(&earlier));
                open.push(earlier);
            }
        }
    }
    missing == 0
}

/// Whether two regions may have bytes in common. In place, a buffer's stores are one memory.
fn meet(a: &Region, b: &Region) -> bool {
    match (a.store, b.store) {
        (Store::Slot, Store::Slot) => a.block == b.block,
        (Store::Slot, _) | (_, Store::Slot) => false,
        (Store::In(x) | Store::Out(x) | Store::Tmp(x), Store::In(y) | Store::Out(y) | Store::Tmp(y)) => {
            x == y && a.block == b.block && a.low < b.high && b.low < a.high
        }
    }
}

/// Whether an operation copies inputs to the outputs of the same blocks: what is read of the inputs stays as it is, in place
/// too.
fn copies_in_place(part: &RankPlan, op: &Op, read: &[Region]) -> bool {
    let (source, target) = (part.regions(op.source), part.regions(op.target));
    let is_same = |(from, to): (&Region, &Region)| match (from.store, to.store) {
        (Store::In(x), Store::Out(y)) => {
            x == y && (from.block, from.low, from.high) == (to.block, to.low, to.high)
        }
        _ => false,
    };
    op.action == Action::Copy
        && source.iter().zip(target).all(is_same)
        && read.iter().all(|region| matches!(region.store, Store::In(_)))
}

fn follows(part: &RankPlan, send: OpId, writer: OpId) -> bool {
    let waits = part.waits(&part.ops[send as usize]).iter().any(|wait| wait.op == writer);
    let in_lane = || part.lanes.iter().any(|lane| lane.start <= writer && writer < send && send < lane.end);
    waits || in_lane()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::pair;
    use crate::{Lane, Run, Wait};

    fn region(store: Store, low: u32, high: u32) -> Region {
        Region { store, block: 0, low, high, class: 0 }
    }

    /// An action with what it reads, writes and waits for.
    type Sketch<'a> = (Action, &'a [Region], &'a [Region], &'a [Wait]);

    /// Operations in lanes of one, unless `lanes` says where lanes start.
    fn part(ops: &[Sketch<'_>], lanes: &[u32]) -> RankPlan {
        let mut part = pair().ranks[0].clone();
        (part.ops, part.regions, part.waits, part.lanes) = (vec![], vec![], vec![], vec![]);
        for &(action, source, target, waits) in ops {
            let mut run = |regions: &[Region]| {
                let start = part.regions.len() as u32;
                part.regions.extend(regions);
                Run { start, end: part.regions.len() as u32 }
            };
            let (source, target) = (run(source), run(target));
            let start = part.waits.len() as u32;
            part.waits.extend(waits);
            let waits = Run { start, end: part.waits.len() as u32 };
            part.ops.push(Op { action, source, operand: Run::default(), target, waits, step: 0, line: 0 });
        }
        let ends = lanes.iter().skip(1).copied().chain([ops.len() as u32]);
        part.lanes = lanes.iter().zip(ends).map(|(&start, end)| Lane { start, end }).collect();
        part
    }

    fn send(peer: u32) -> Action {
        Action::Send { peer, channel: 0 }
    }

    #[test]
    fn sends_of_the_same_values_to_several_peers_are_one_group() {
        let (own, come) = ([region(Store::In(0), 0, 2)], [region(Store::Out(0), 0, 2)]);
        let recv = Action::Recv { peer: 9, channel: 0 };
        let along = [Wait { op: 0, along: true }];
        let all = [Some(0), Some(0)];
        // Of what is given, also where it is copied to its place in the output.
        let given = part(&[(send(1), &own, &[], &[]), (send(2), &own, &[], &[])], &[0, 1]);
        assert_eq!(shared_sends(&given), all);
        let copied = (Action::Copy, &own[..], &come[..], &[][..]);
        let ops = [(send(1), &own[..], &[][..], &[][..]), (send(2), &own, &[], &[]), copied];
        assert_eq!(shared_sends(&part(&ops, &[0, 1, 2]))[..2], all);
        // Of what comes, in lanes that wait for it and in its own.
        let ops = [
            (recv, &[][..], &come[..], &[][..]),
            (send(1), &come, &[], &along),
            (send(2), &come, &[], &along),
        ];
        assert_eq!(shared_sends(&part(&ops, &[0, 1, 2]))[1..], all);
        assert_eq!(shared_sends(&part(&ops, &[0, 2]))[1..], all);
    }

    /// As at the end of a reduction: each of the first operations waits for the one before it, and the sends for the last.
    #[test]
    fn what_several_have_written_one_after_the_other_is_the_same_once_the_last_is_over() {
        let come = [region(Store::Out(0), 0, 2)];
        let recv = Action::Recv { peer: 9, channel: 0 };
        let after = |op, along| [Wait { op, along }];
        let sends_of = |between: &[Wait], before_sends: &[Wait], lanes: &[u32]| {
            let ops = [
                (recv, &[][..], &come[..], &[][..]),
                (recv, &[], &come, between),
                (send(1), &come, &[], before_sends),
                (send(2), &come, &[], before_sends),
            ];
            shared_sends(&part(&ops, lanes))[2..] == [Some(0), Some(0)]
        };
        let lanes = [0, 1, 2, 3];
        assert!(sends_of(&after(0, false), &after(1, false), &lanes));
        assert!(sends_of(&after(0, true), &after(1, true), &lanes));
        assert!(sends_of(&[], &after(1, false), &[0, 2, 3]), "in one lane");
        // The second may come before the first, or after the sends.
        assert!(!sends_of(&[], &after(1, false), &lanes));
        assert!(!sends_of(&after(0, false), &after(0, false), &lanes));
        // Going along with what writes half of it says nothing of the other half.
        let half = [region(Store::Out(0), 0, 1)];
        let ops = [
            (recv, &[][..], &half[..], &[][..]),
            (recv, &[], &come, &after(0, true)[..]),
            (send(1), &come, &[], &after(1, false)),
            (send(2), &come, &[], &after(1, false)),
        ];
        assert!(shared_sends(&part(&ops, &lanes))[2..].iter().all(Option::is_none));
    }

    #[test]
    fn others_are_not() {
        let (own, come) = ([region(Store::In(0), 0, 2)], [region(Store::Out(0), 0, 2)]);
        let (recv, after) = (Action::Recv { peer: 9, channel: 0 }, [Wait { op: 0, along: false }]);
        let none = |ops: &[Sketch<'_>], lanes: &[u32]| {
            assert!(shared_sends(&part(ops, lanes)).iter().all(Option::is_none), "{ops:?}");
        };
        // Twice to one peer; different pieces; written after the first, where both may be one memory.
        none(&[(send(1), &own, &[], &[]), (send(1), &own, &[], &[])], &[0, 1]);
        none(&[(send(1), &own, &[], &[]), (send(2), &[region(Store::In(0), 0, 1)], &[], &[])], &[0, 1]);
        none(&[(send(1), &own, &[], &[]), (recv, &[], &come, &after), (send(2), &own, &[], &[])], &[0]);
        // Written twice, or with nothing that says when.
        let ops = [
            (recv, &[][..], &come[..], &[][..]),
            (send(1), &come, &[], &after),
            (send(2), &come, &[], &after),
        ];
        let again = (recv, &[][..], &come[..], &[][..]);
        none(&[ops[0], ops[1], again, ops[2]], &[0]);
        none(&[ops[0], ops[1], (send(2), &come, &[], &[])], &[0, 1, 2]);
    }
}
