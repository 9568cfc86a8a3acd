//! A ring all-reduce of any size, as a compiler would make it.

use crate::plan::prove;
use coll_base::Fraction;
use coll_contract::{Blocks, BufferDecl, BufferRole, Classes, Contract, Ensure, Leaf, Value};
use coll_plan::{Action, Lane, Line, Op, Plan, RankPlan, Region, Run, Store, Wait};

fn contract(n: u32) -> Contract {
    Contract {
        collective: "allreduce".into(),
        ranks: n,
        only: None,
        buffers: vec![BufferDecl { name: "data".into(), role: BufferRole::InOut, blocks: 1 }],
        given: vec![Blocks::All],
        ensures: (0..n).map(|rank| Ensure { rank, buffer: 0, block: 0, value: 0 }).collect(),
        values: vec![Value::Reduce((0..n).map(|rank| Leaf { rank, buffer: 0, block: 0 }).collect())],
        after: Vec::new(),
        classes: Classes { count: 1, table: vec![0; n as usize] },
    }
}

struct Writer {
    regions: Vec<Region>,
    waits: Vec<Wait>,
}

impl Writer {
    fn region(&mut self, store: Store, piece: u32) -> Run {
        self.regions.push(Region { store, block: 0, low: piece, high: piece + 1, class: 0 });
        Run { start: self.regions.len() as u32 - 1, end: self.regions.len() as u32 }
    }

    fn wait(&mut self, op: u32, along: bool) -> Run {
        self.waits.push(Wait { op, along });
        Run { start: self.waits.len() as u32 - 1, end: self.waits.len() as u32 }
    }
}

/// Receives in lane 0, sends in lane 1; `guarded` tells late receives to wait for the sends of what they overwrite.
pub(super) fn ring(n: u32, guarded: bool) -> Plan {
    let part = |rank| {
        let mut to = Writer { regions: Vec::new(), waits: Vec::new() };
        let none = Run::default();
        let (peer, from) = ((rank + 1) % n, (rank + n - 1) % n);
        let rounds = 2 * (n - 1);
        let piece = |step: u32| (rank + 2 * n - 1 - step) % n;
        let mut ops = Vec::new();
        for step in 0..rounds {
            let reduces = step < n - 1;
            let operand = if reduces { to.region(Store::In(0), piece(step)) } else { none };
            let target = to.region(Store::Out(0), piece(step));
            let action = match reduces {
                true => Action::RecvReduce { peer: from, channel: 0, left: false },
                false => Action::Recv { peer: from, channel: 0 },
            };
            let waits = if !reduces && guarded { to.wait(rounds + step + 1 - n, false) } else { none };
            ops.push(Op { action, source: none, operand, target, waits, step, line: 0 });
        }
        for step in 0..rounds {
            let (store, waits) = match step {
                0 => (Store::In(0), none),
                _ => (Store::Out(0), to.wait(step - 1, true)),
            };
            let source = to.region(store, (piece(step) + 1) % n);
            let action = Action::Send { peer, channel: 0 };
            ops.push(Op { action, source, operand: none, target: none, waits, step, line: 0 });
        }
        let lanes = vec![Lane { start: 0, end: rounds }, Lane { start: rounds, end: 2 * rounds }];
        RankPlan { rank, slots: Vec::new(), lanes, ops, regions: to.regions, waits: to.waits }
    };
    Plan {
        name: "allreduce.ring".into(),
        params: Vec::new(),
        root: None,
        contract: contract(n),
        reduces: true,
        claims: Default::default(),
        cuts: (0..=u64::from(n)).map(|i| Fraction::new(i, n.into())).collect(),
        channels: 1,
        slices: 1,
        accumulate: None,
        wire: None,
        slots: 0,
        lines: vec![Line { file: "ring.coll".into(), line: 5 }],
        ranks: (0..n).map(part).collect(),
        origin: None,
        proof: None,
        placement: None,
    }
}

#[test]
fn rings_of_many_sizes_are_proved() {
    for n in [2, 3, 4, 7, 16, 65] {
        for guarded in [true, false] {
            let proof = prove(&ring(n, guarded));
            assert!(proof.diagnostics.is_empty(), "n = {n}, guarded {guarded}: {:?}", proof.diagnostics);
            assert!(proof.rendezvous);
        }
    }
}

/// Each fault, put anywhere into a good ring, is found.
#[test]
fn a_ring_with_any_one_wait_or_region_changed_is_refused_or_the_same() {
    let good = ring(4, true);
    for op in 0..good.ranks[1].ops.len() {
        let mut shifted = good.clone();
        let part = &mut shifted.ranks[1];
        let run = if part.ops[op].target.is_empty() { part.ops[op].source } else { part.ops[op].target };
        let region = &mut part.regions[run.start as usize];
        (region.low, region.high) = ((region.low + 1) % 4, (region.low + 1) % 4 + 1);
        assert!(!prove(&shifted).diagnostics.is_empty(), "op {op} moves another piece");
    }
    for op in 0..good.ranks[1].ops.len() {
        let mut free = good.clone();
        free.ranks[1].ops[op].waits = Run::default();
        let follows = good.ranks[1].waits(&good.ranks[1].ops[op]).iter().any(|wait| wait.along);
        assert_eq!(prove(&free).diagnostics.is_empty(), !follows, "op {op} waits for nothing");
    }
}

/// Run by hand with `--release`: 4 million operations within 6 s.
#[test]
#[ignore = "takes seconds and a gigabyte"]
fn a_thousand_ranks() {
    for (n, guarded) in [(256, true), (1024, true), (1024, false)] {
        let plan = ring(n, guarded);
        let start = std::time::Instant::now();
        let proof = prove(&plan);
        assert!(proof.diagnostics.is_empty());
        let took = start.elapsed();
        assert!(took.as_secs_f64() < 6.0, "n = {n}: {took:?}");
    }
}
