//! Times the proof of a ring all-reduce: `cargo run --release -p coll-check --example prove_ring -- 1024`. With a second
//! argument the ring's ranks follow each other with that stride (no common divisor with the first).
#![allow(clippy::print_stdout)]

use coll_base::{FileId, Fraction, Span};
use coll_check::program::prove;
use coll_contract::{Blocks, BufferDecl, BufferRole, Classes, Contract, Ensure, Leaf, Value};
use coll_ir::{Cuts, Kind, Origin, Origins, Place, Program, Step, Transfer, Tune};
use std::time::Instant;

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u32>().ok());
    let (ranks, stride) = (numbers.next().unwrap_or(256), numbers.next().unwrap_or(1));
    let program = ring(ranks, stride);
    let start = Instant::now();
    let proof = prove(&program);
    let seconds = start.elapsed().as_secs_f64();
    println!("{} transfers in {seconds:.3} s: {:?}", program.transfers.len(), proof.properties);
    proof.diagnostics.iter().for_each(|told| println!("{}: {}", told.code, told.message));
}

fn ring(n: u32, stride: u32) -> Program {
    let mut transfers = Vec::new();
    let rank = |position: u32| position % n * stride % n;
    for step in 0..2 * (n - 1) {
        let (kind, shift) = if step < n - 1 { (Kind::Reduce, n - step) } else { (Kind::Move, 2 * n - step) };
        for position in 0..n {
            let place = |position| Place { rank: rank(position), buffer: 0, block: 0 };
            let low = (position + shift) % n;
            let (source, target) = (place(position), place(position + 1));
            transfers.push(Transfer { kind, step, source, target, low, high: low + 1, class: 0, origin: 0 });
        }
    }
    let leaf = |rank| Leaf { rank, buffer: 0, block: 0 };
    let contract = Contract {
        collective: "allreduce".into(),
        ranks: n,
        only: None,
        buffers: vec![BufferDecl { name: "data".into(), role: BufferRole::InOut, blocks: 1 }],
        given: vec![Blocks::All],
        ensures: (0..n).map(|rank| Ensure { rank, buffer: 0, block: 0, value: 0 }).collect(),
        values: vec![Value::Reduce((0..n).map(leaf).collect())],
        after: Vec::new(),
        classes: Classes { count: 1, table: vec![0; n as usize] },
    };
    let origin =
        Origin { span: Span::new(FileId(0), 0, 0), binding: Origins::NO_BINDING, call: Origins::NO_CALL };
    Program {
        schedule: "ring".into(),
        params: Vec::new(),
        root: 0,
        rooted: false,
        contract,
        scratch: Vec::new(),
        cuts: Cuts((0..=n).map(|i| Fraction::new(i as u64, n as u64)).collect()),
        steps: vec![Step { origin: 0 }; 2 * (n as usize - 1)],
        transfers,
        stages: Vec::new(),
        origins: Origins { origins: vec![origin], ..Origins::default() },
        tune: Tune::default(),
    }
}
