//! One message from a rank to another, as a plan: so it runs, fails and is told of like any other operation.

use crate::comm::store::Stored;
use crate::comm::wires::MESSAGE_CHANNEL;
use coll_base::{DType, Fraction};
use coll_contract::{Blocks, BufferDecl, BufferRole, Classes, Contract, Ensure, Leaf, Value};
use coll_plan::{Action, Claims, Lane, Line, Op, Plan, RankPlan, Region, Run, Store};
use std::sync::Arc;

/// This rank's part of a message that it sends to `peer`, or receives from it; `wire` is what its elements travel as, if
/// that is not what they are.
pub(crate) fn plan(sends: bool, rank: u32, peer: u32, world: u32, wire: Option<DType>) -> Stored {
    let (from, to) = if sends { (rank, peer) } else { (peer, rank) };
    let travels = wire.map_or_else(String::new, |wire| format!(" as {wire}"));
    Stored {
        plan: Arc::new(Plan { wire, ..slice(from, to, rank, world) }),
        identity: format!("message from rank {from} to rank {to}{travels}").into(),
        ordered: true,
        equal_blocks_only: false,
    }
}

/// The contract, for all ranks.
fn contract(from: u32, to: u32, world: u32) -> Contract {
    let leaf = Leaf { rank: from, buffer: 0, block: 0 };
    Contract {
        collective: "message".to_string(),
        ranks: world,
        only: None,
        buffers: vec![BufferDecl { name: "data".to_string(), role: BufferRole::InOut, blocks: 1 }],
        given: vec![Blocks::Listed(vec![(from, 0)])],
        ensures: vec![Ensure { rank: to, buffer: 0, block: 0, value: 0 }],
        values: vec![Value::Copy(leaf)],
        after: Vec::new(),
        classes: Classes { count: 1, table: vec![0; world as usize] },
    }
}

fn slice(from: u32, to: u32, rank: u32, world: u32) -> Plan {
    Plan {
        name: "message".to_string(),
        params: Vec::new(),
        root: None,
        contract: contract(from, to, world).slice(rank),
        reduces: false,
        claims: Claims::default(),
        cuts: vec![Fraction::ZERO, Fraction::ONE],
        channels: MESSAGE_CHANNEL + 1,
        slices: 1,
        accumulate: None,
        wire: None,
        slots: 0,
        lines: vec![Line { file: "message".to_string(), line: 1 }],
        ranks: vec![part(from, to, rank)],
        origin: None,
        proof: None,
        placement: None,
    }
}

/// What one rank does: nothing, if it is neither of the two.
fn part(from: u32, to: u32, rank: u32) -> RankPlan {
    let none = Run::default();
    let one = Run { start: 0, end: 1 };
    let op =
        |action, source, target| Op { action, source, operand: none, target, waits: none, step: 0, line: 0 };
    let channel = MESSAGE_CHANNEL;
    let whole = |store| Region { store, block: 0, low: 0, high: 1, class: 0 };
    let (ops, regions) = if rank == from {
        (vec![op(Action::Send { peer: to, channel }, one, none)], vec![whole(Store::In(0))])
    } else if rank == to {
        (vec![op(Action::Recv { peer: from, channel }, none, one)], vec![whole(Store::Out(0))])
    } else {
        (Vec::new(), Vec::new())
    };
    let lanes = if ops.is_empty() { Vec::new() } else { vec![Lane { start: 0, end: 1 }] };
    RankPlan { rank, slots: Vec::new(), lanes, ops, regions, waits: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_proved_like_any_plan() {
        for (world, from, to) in [(2, 0, 1), (2, 1, 0), (5, 3, 1)] {
            let whole = Plan {
                contract: contract(from, to, world),
                ranks: (0..world).map(|rank| part(from, to, rank)).collect(),
                ..slice(from, to, from, world)
            };
            coll_plan::verify(&whole).unwrap_or_else(|error| panic!("{error}"));
            let proof = coll_check::plan::prove(&whole);
            assert!(proof.diagnostics.is_empty(), "{:?}", proof.diagnostics);
            assert!(proof.rendezvous, "it ends even if the send waits for its receive");
            for rank in [from, to] {
                assert_eq!(whole.slice(rank), Some(slice(from, to, rank, world)));
            }
        }
    }
}
