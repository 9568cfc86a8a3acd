//! The shipped facts against what they are facts of.

use super::*;
use crate::select::candidates::{declared, of_declared};
use crate::select::packed::{put, put_block};
use crate::{Draft, Options};
use coll_cost::Outline;

/// Rank counts at which the file is compared with the library whenever tests run; made anew, all are.
const LOOKED_AT: [u32; 7] = [2, 3, 5, 8, 12, 16, 24];

fn put_share(bytes: &mut Vec<u8>, share: f64) {
    put(bytes, (share * UNIT + 1e-6).floor() as u64);
}

/// The sums of a candidate, if it applies.
fn totals(candidate: &Candidate, ranks: u32) -> Option<Totals> {
    let source = candidate.source();
    let instance = candidate.instance(ranks, 0);
    let draft = Draft::new(&source, candidate.index(&source), &instance, &Options::default());
    draft.ok().map(|draft| Outline::new(draft.plan()).totals())
}

fn rows(operation: &'static str, ranks: u32) -> Vec<u8> {
    let mut touched = 0.0f64;
    let mut rows = Vec::new();
    for candidate in of_declared(operation, &declared(operation), ranks, Layout::one_host(ranks)) {
        let Some(totals) = totals(&candidate, ranks) else {
            put(&mut rows, 0);
            continue;
        };
        touched = touched.max(totals.touched);
        for number in [totals.chain + 1, totals.messages, totals.locals] {
            put(&mut rows, number.into());
        }
        put_share(&mut rows, totals.sent);
        put_share(&mut rows, (totals.common * UNIT).ceil() / UNIT);
        put_share(&mut rows, totals.reduced);
        put_share(&mut rows, totals.copied);
    }
    let mut block = Vec::new();
    put_share(&mut block, touched);
    block.extend(rows);
    block
}

fn section(operation: &'static str) -> Vec<u8> {
    let mut section = Vec::new();
    for (_, params) in declared(operation) {
        put(&mut section, params.len() as u64);
        for (name, default) in params {
            put_block(&mut section, name.as_bytes());
            put(&mut section, u64::try_from(default).expect("defaults are not negative"));
        }
    }
    (2..=RANKS_MAX).for_each(|ranks| put_block(&mut section, &rows(operation, ranks)));
    section
}

#[test]
fn facts_are_those_of_the_library() {
    if std::env::var_os("UPDATE_FACTS").is_some() {
        let mut file = library::HASH.to_le_bytes().to_vec();
        OPERATIONS.iter().for_each(|operation| put_block(&mut file, &section(operation)));
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/select/facts.bin");
        std::fs::write(path, file).expect("it is written");
        return;
    }
    let stale = "make it anew: UPDATE_FACTS=1 cargo test --release -p coll facts";
    assert!(sections(FILE).is_some(), "facts.bin is of other schedules; {stale}");
    for operation in OPERATIONS {
        let facts = of(operation).expect("there are some");
        for ranks in LOOKED_AT {
            let at = (ranks - 2) as usize;
            assert_eq!(facts.rows[at], rows(operation, ranks), "{operation} on {ranks} ranks; {stale}");
            let known: Vec<Candidate> = facts.on(ranks).into_iter().map(|(candidate, _)| candidate).collect();
            let expected = of_declared(operation, &declared(operation), ranks, Layout::one_host(ranks));
            assert_eq!(known, expected, "{operation} on {ranks}");
        }
        assert!(facts.on(1).is_empty() && facts.on(RANKS_MAX + 1).is_empty());
    }
}

#[test]
fn a_damaged_file_is_as_good_as_none() {
    assert!(sections(&FILE[..FILE.len() - 1]).is_none());
    assert!(sections(&[0; 9]).is_none());
    let cut: &'static [u8] = &[1, 200];
    assert!(super::facts("scan", cut).is_none());
}
