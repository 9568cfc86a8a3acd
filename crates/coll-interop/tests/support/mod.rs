//! Shared by tests: files of the corpus, contracts by name, and the proof of what was imported.
#![allow(dead_code, unreachable_pub)]

use coll_base::{Diagnostic, SourceMap};
use coll_check::plan::codes::{MESSAGES_UNORDERED, RACE};
use coll_contract::Contract;
use coll_interop::{Foreign, Form, Imported, Limits};
use coll_plan::Plan;
use coll_sema::{Instance, Library};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A file of the corpus.
pub fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/foreign").join(name)
}

/// The text of a compressed file of the corpus.
pub fn text_of(name: &str) -> String {
    let file = std::fs::File::open(corpus(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    text
}

struct Collectives;

impl Library for Collectives {
    fn schedule(&self, _: &str, _: &str) -> Option<(String, String)> {
        None
    }

    fn collectives(&self) -> (String, String) {
        ("collectives.coll".into(), include_str!("../../../../schedules/collectives.coll").into())
    }

    fn names(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// The contract of a collective.
pub fn contract(collective: &str, ranks: u32, root: u32) -> Contract {
    let mut map = SourceMap::new();
    let main = map.add("import.coll", format!("schedule import: {collective} {{ }}"));
    let (module, diagnostics) = coll_sema::load(&mut map, main, &Collectives);
    assert!(diagnostics.iter().all(|d| !d.is_error()), "{diagnostics:#?}");
    let instance = Instance { ranks, root, params: Vec::new() };
    module.instantiate(0, &instance).unwrap_or_else(|error| panic!("{error:?}")).program.contract
}

/// What was found out about a file.
#[derive(Debug)]
pub struct Found {
    pub plan: Plan,
    pub collective: String,
    pub limits: Limits,
    pub steps: usize,
    pub errors: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
    pub min_slots: u32,
    pub same_tree: bool,
    pub races: u64,
    pub copies: u32,
    pub equal_chunks_only: bool,
}

/// Imports a file and proves it. For rooted collectives, with the first root that is right, or else the likeliest.
pub fn examine(name: &str, text: &str) -> Result<Found, Vec<Diagnostic>> {
    let mut map = SourceMap::new();
    let file = map.add(name, text);
    let form = Form::of(text.as_bytes()).expect("it is of a known form");
    let foreign = Foreign::read(form, file, &map)?;
    let mut first = None;
    let roots = foreign.roots().map_or(vec![None], |roots| roots.into_iter().map(Some).collect());
    for root in roots {
        let known = foreign.known_collective();
        let contract = known.map(|name| contract(name, foreign.ranks(), root.unwrap_or(0)));
        let imported = foreign.import(contract, root, &map)?;
        let found = prove(imported, &foreign);
        if found.errors.is_empty() {
            return Ok(found);
        }
        first.get_or_insert(found);
    }
    Ok(first.expect("at least one was tried"))
}

fn prove(imported: Imported, foreign: &Foreign) -> Found {
    let mut plan = imported.plan;
    plan.slots = u32::MAX;
    let proof = coll_check::plan::prove(&plan);
    plan.slots = if proof.rendezvous { 0 } else { proof.min_slots };
    let told = proof.diagnostics.into_iter().filter(Diagnostic::is_error);
    let errors: Vec<Diagnostic> = imported.unordered.into_iter().chain(told).collect();
    let has_races = errors.iter().any(|d| [RACE, MESSAGES_UNORDERED].contains(&d.code));
    let races = if has_races { coll_check::plan::races(&plan).expect("they can be counted") } else { 0 };
    Found {
        plan,
        collective: foreign.collective().to_string(),
        limits: foreign.limits().clone(),
        steps: match foreign {
            Foreign::Msccl(algorithm) => algorithm.steps(),
            Foreign::Mscclpp(_) | Foreign::Goal(_) => 0,
        },
        races: races + imported.races,
        errors,
        warnings: imported.warnings,
        min_slots: proof.min_slots,
        same_tree: proof.claims.same_reduction_tree,
        copies: imported.copies,
        equal_chunks_only: imported.equal_chunks_only,
    }
}
