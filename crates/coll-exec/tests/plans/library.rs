//! A few collectives and algorithms, lowered by hand.

use super::{Part, Promise, after, along, leaf, plan, region};
use coll_contract::{Blocks, BufferRole, Contract, Value};
use coll_plan::{Action, Plan, Store};

const IN: Store = Store::In(0);
const OUT: Store = Store::Out(0);
const TMP: Store = Store::Tmp(0);

fn all_reduce(ranks: u32) -> Contract {
    let mut promise = Promise::new("allreduce", ranks).buffer("data", BufferRole::InOut, 1, Blocks::All);
    for rank in 0..ranks {
        promise.ensure(rank, 0, 0, Value::Reduce((0..ranks).map(|q| leaf(q, 0, 0)).collect()));
    }
    promise.classes(|_, _, _| 0)
}

/// A reduce-scatter round the ring, then an all-gather; sends follow receives byte by byte.
pub(crate) fn ring(n: u32) -> Plan {
    let parts = (0..n).map(|r| ring_part(n, r)).collect();
    plan("allreduce.ring", all_reduce(n), n, parts)
}

fn ring_part(n: u32, r: u32) -> Part {
    let mut part = Part::new(r);
    if n == 1 {
        part.lane().op(Action::Copy, [&[region(IN, 0, 0..1, 0)], &[], &[region(OUT, 0, 0..1, 0)]], &[]);
        return part;
    }
    let (left, right) = ((r + n - 1) % n, (r + 1) % n);
    let chunk = |store, back: u32| {
        let k = (r + 2 * n - back) % n;
        [region(store, 0, k..k + 1, 0)]
    };
    // Receives are operations 0..2(n-1), sends follow.
    let sends = 2 * (n - 1);
    part.lane();
    for s in 0..n - 1 {
        part.step(s).fold(left, false, &chunk(IN, s + 1), &chunk(OUT, s + 1), &[]);
    }
    for s in 0..n - 1 {
        part.step(n - 1 + s).recv(left, &chunk(OUT, s), &[after(sends + s)]);
    }
    part.lane();
    part.step(0).send(right, &chunk(IN, 0), &[]);
    for s in 1..2 * (n - 1) {
        part.step(s).send(right, &chunk(OUT, s % n), &[along(s - 1)]);
    }
    part
}

/// Two ranks send each other all they have; what comes is staged in a slot until the own data has gone out.
pub(crate) fn exchange() -> Plan {
    let parts = (0..2).map(|r| {
        let mut part = Part::new(r);
        part.slot(0, 0, 1);
        let slot = [region(Store::Slot, 0, 0..1, 0)];
        let own = |store| [region(store, 0, 0..1, 0)];
        let sent = part.lane().send(1 - r, &own(IN), &[]);
        let received = part.lane().recv(1 - r, &slot, &[]);
        // In rank order on both: rank 1 has the other's value on the left.
        let action = Action::Reduce { left: r == 1 };
        part.lane().op(action, [&slot, &own(IN), &own(OUT)], &[after(sent), after(received)]);
        part
    });
    let parts = parts.collect();
    plan("allreduce.exchange", all_reduce(2), 1, parts)
}

/// Rank 0 sends down a chain, piece by piece; every rank passes on what has come so far.
pub(crate) fn chain(n: u32, pieces: u32) -> Plan {
    let mut promise =
        Promise::new("broadcast", n).buffer("data", BufferRole::InOut, 1, Blocks::Listed(vec![(0, 0)]));
    (0..n).for_each(|rank| promise.ensure(rank, 0, 0, Value::Copy(leaf(0, 0, 0))));
    let parts = (0..n).map(|r| {
        let mut part = Part::new(r);
        let piece = |store, k| [region(store, 0, k..k + 1, 0)];
        if r == 0 {
            part.lane().op(
                Action::Copy,
                [&[region(IN, 0, 0..pieces, 0)], &[], &[region(OUT, 0, 0..pieces, 0)]],
                &[],
            );
        } else {
            part.lane();
            for k in 0..pieces {
                part.step(r - 1).recv(r - 1, &piece(OUT, k), &[]);
            }
        }
        if r + 1 < n {
            part.lane();
            for k in 0..pieces {
                match r {
                    0 => part.step(0).send(1, &piece(IN, k), &[]),
                    _ => part.step(r).send(r + 1, &piece(OUT, k), &[along(k)]),
                };
            }
        }
        part
    });
    let parts = parts.collect();
    plan("broadcast.chain", promise.classes(|_, _, _| 0), pieces, parts)
}

/// Rank 0 sends to rank 1, which passes on what has come so far to all others at once.
pub(crate) fn fan(n: u32) -> Plan {
    let mut promise =
        Promise::new("broadcast", n).buffer("data", BufferRole::InOut, 1, Blocks::Listed(vec![(0, 0)]));
    (0..n).for_each(|rank| promise.ensure(rank, 0, 0, Value::Copy(leaf(0, 0, 0))));
    let whole = |store| [region(store, 0, 0..1, 0)];
    let parts = (0..n).map(|r| {
        let mut part = Part::new(r);
        match r {
            0 => {
                part.lane().op(Action::Copy, [&whole(IN), &[], &whole(OUT)], &[]);
                part.lane().send(1, &whole(IN), &[]);
            }
            1 => {
                let come = part.lane().recv(0, &whole(OUT), &[]);
                (2..n).for_each(|q| {
                    part.lane().step(1).send(q, &whole(OUT), &[along(come)]);
                });
            }
            _ => {
                part.lane().step(1).recv(1, &whole(OUT), &[]);
            }
        }
        part
    });
    let parts = parts.collect();
    plan("broadcast.fan", promise.classes(|_, _, _| 0), 1, parts)
}

/// Up a chain to rank 0; what lies between is in memory that nothing is promised about. The far end is the right
/// operand, so that order is kept.
pub(crate) fn reduce_chain(n: u32) -> Plan {
    let mut promise = Promise::new("reduce", n).buffer("data", BufferRole::InOut, 1, Blocks::All);
    promise.ensure(0, 0, 0, Value::Reduce((0..n).map(|q| leaf(q, 0, 0)).collect()));
    let parts = (0..n).map(|r| {
        let mut part = Part::new(r);
        let whole = |store| [region(store, 0, 0..1, 0)];
        let target = whole(if r == 0 { OUT } else { TMP });
        let last = r + 1 == n;
        match (last, r) {
            (true, 0) => part.lane().op(Action::Copy, [&whole(IN), &[], &target], &[]),
            (true, _) => part.lane().send(r - 1, &whole(IN), &[]),
            (false, 0) => part.lane().fold(1, false, &whole(IN), &target, &[]),
            (false, _) => {
                let folded = part.lane().fold(r + 1, false, &whole(IN), &target, &[]);
                part.lane().send(r - 1, &target, &[along(folded)])
            }
        };
        part
    });
    let parts = parts.collect();
    plan("reduce.chain", promise.classes(|_, _, _| 0), 1, parts)
}

/// Everybody sends its block to everybody; blocks have counts of their own.
pub(crate) fn all_gather(n: u32) -> Plan {
    let given = Blocks::Listed((0..n).map(|r| (r, r)).collect());
    let mut promise = Promise::new("allgather", n).buffer("data", BufferRole::InOut, n, given);
    (0..n).for_each(|r| (0..n).for_each(|q| promise.ensure(r, 0, q, Value::Copy(leaf(q, 0, q)))));
    let parts = (0..n).map(|r| {
        let mut part = Part::new(r);
        // Cut in two: the two regions of a message lie side by side.
        let block = |store, k| [region(store, k, 0..1, k), region(store, k, 1..2, k)];
        part.lane().op(Action::Copy, [&block(IN, r), &[], &block(OUT, r)], &[]);
        for q in (0..n).filter(|q| *q != r) {
            part.lane().send(q, &block(IN, r), &[]);
            part.lane().recv(q, &block(OUT, q), &[]);
        }
        part
    });
    let parts = parts.collect();
    plan("allgather.direct", promise.classes(|_, _, block| block), 2, parts)
}

/// Everybody sends everybody else a block of its own; every pair has its own count.
pub(crate) fn all_to_all(n: u32) -> Plan {
    let mut promise = Promise::new("alltoall", n).buffer("input", BufferRole::In, n, Blocks::All).buffer(
        "output",
        BufferRole::Out,
        n,
        Blocks::None,
    );
    (0..n).for_each(|r| (0..n).for_each(|q| promise.ensure(r, 1, q, Value::Copy(leaf(q, 0, r)))));
    let pair = |r, buffer, block| if buffer == 0 { r * n + block } else { block * n + r };
    let contract = promise.classes(pair);
    let parts = (0..n).map(|r| {
        let mut part = Part::new(r);
        let input = |q| [region(Store::In(0), q, 0..1, contract.class(r, 0, q))];
        let output = |q| [region(Store::Out(1), q, 0..1, contract.class(r, 1, q))];
        part.lane().op(Action::Copy, [&input(r), &[], &output(r)], &[]);
        for q in (0..n).filter(|q| *q != r) {
            part.lane().send(q, &input(q), &[]);
            part.lane().recv(q, &output(q), &[]);
        }
        part
    });
    let parts = parts.collect();
    plan("alltoall.direct", contract, 1, parts)
}

/// The sum of all ranks up to one's own, in order, up a chain.
pub(crate) fn scan_chain(n: u32) -> Plan {
    let mut promise = Promise::new("scan", n).buffer("data", BufferRole::InOut, 1, Blocks::All);
    for rank in 0..n {
        promise.ensure(rank, 0, 0, Value::Reduce((0..=rank).map(|q| leaf(q, 0, 0)).collect()));
    }
    let parts = (0..n).map(|r| {
        let mut part = Part::new(r);
        let whole = |store| [region(store, 0, 0..1, 0)];
        let done = match r {
            0 => part.lane().op(Action::Copy, [&whole(IN), &[], &whole(OUT)], &[]),
            _ => part.lane().fold(r - 1, true, &whole(IN), &whole(OUT), &[]),
        };
        if r + 1 < n {
            let wait = if r == 0 { after(done) } else { along(done) };
            part.lane().send(r + 1, &whole(OUT), &[wait]);
        }
        part
    });
    let parts = parts.collect();
    plan("scan.chain", promise.classes(|_, _, _| 0), 1, parts)
}

/// A foreign habit: both ranks send three messages before they receive any.
pub(crate) fn eager(slots: u32) -> Plan {
    let given = Blocks::Listed(vec![(0, 0), (1, 1)]);
    let mut promise = Promise::new("allgather", 2).buffer("data", BufferRole::InOut, 2, given);
    (0..2).for_each(|r| (0..2).for_each(|q| promise.ensure(r, 0, q, Value::Copy(leaf(q, 0, q)))));
    let parts = (0..2).map(|r| {
        let mut part = Part::new(r);
        let piece = |store, block, k| [region(store, block, k..k + 1, 0)];
        part.lane();
        for k in 0..3 {
            part.step(k).send(1 - r, &piece(IN, r, k), &[]);
        }
        for k in 0..3 {
            part.step(k).recv(1 - r, &piece(OUT, 1 - r, k), &[]);
        }
        let whole = |store| [region(store, r, 0..3, 0)];
        part.lane().op(Action::Copy, [&whole(IN), &[], &whole(OUT)], &[]);
        part
    });
    let parts = parts.collect();
    Plan { slots, ..plan("allgather.eager", promise.classes(|_, _, _| 0), 3, parts) }
}

/// Every rank signals every other.
pub(crate) fn barrier(n: u32) -> Plan {
    let mut promise = Promise::new("barrier", n);
    promise.contract.after =
        (0..n).flat_map(|r| (0..n).filter(move |q| *q != r).map(move |q| (r, q))).collect();
    let parts = (0..n).map(|r| {
        let mut part = Part::new(r);
        for q in (0..n).filter(|q| *q != r) {
            part.lane().send(q, &[], &[]);
            part.lane().recv(q, &[], &[]);
        }
        part
    });
    let parts = parts.collect();
    plan("barrier.direct", promise.classes(|_, _, _| 0), 1, parts)
}
