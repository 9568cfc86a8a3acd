//! Proves that a program keeps its contract, or says where it does not.
//!
//! [`prove`] runs the program once on symbols ([`run`]): a piece holds not a number but the exact set of ranks' values
//! in it. What every rank ends with is compared to the contract ([`verdict`]). Only if that fails is the run repeated
//! for the piece concerned, with a memory of every write ([`trace`]), to find whom to blame ([`explain`], [`reads`],
//! [`entries`]). A program that keeps its contract is looked through for work it could leave out ([`waste`]).

mod blocks;
mod by_statement;
mod entries;
mod explain;
mod idle;
mod intern;
mod leaf_sets;
mod measure;
mod memory;
mod names;
mod reads;
mod run;
mod sets;
mod trace;
mod values;
mod verdict;
mod waste;

use by_statement::ByStatement;
use coll_base::{Diagnostic, Fraction};
use coll_contract::{Bounds, bounds};
use coll_ir::{OriginId, Program};
use measure::Scale;
use run::{Outcome, Traffic};
use verdict::{Fault, Verdict};

/// What [`prove`] found out.
#[derive(Clone, Debug)]
pub struct Proof {
    /// Errors: reads of nothing first, then the first violation of each kind. Or, if there are none, warnings.
    pub diagnostics: Vec<Diagnostic>,
    /// Facts about the program. Of one that breaks its contract, those that follow from its transfers alone hold.
    pub properties: Properties,
}

impl Proof {
    /// True if the program keeps its contract.
    pub fn ok(&self) -> bool {
        !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// What a program costs, and whom it serves. Sizes are fractions of the contract's first buffer, of which all blocks are
/// taken to be of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Messages, signals included, on the longest path on which each needs what the one before brought. Copies within a
    /// rank are free, and so is sending several messages at once.
    pub steps: u32,
    /// What the rank sends that sends most.
    pub sent_max: Fraction,
    /// What the rank receives that receives most.
    pub received_max: Fraction,
    /// The least that any schedule of this contract must do.
    pub bounds: Bounds,
    /// Messages that a rank sends, or receives, where that is most. Signals count, and each chunk is a message, as
    /// written: the compiler may send several as one.
    pub messages_max: u32,
    /// Scratch on the rank that uses most: of each slot that is written, the largest shape it takes.
    pub scratch_max: Fraction,
    /// A transfer between blocks that the contract does not make equal, if there is one: then the schedule serves only
    /// blocks of equal size.
    pub equal_blocks_only: Option<OriginId>,
    /// Every reduction has its operands in the contract's order, so that operators that do not commute are served.
    pub ordered: bool,
    /// Ranks that end with one reduced value have all made it by one reduction tree, so they end with the same bits.
    pub same_reduction_tree: bool,
    /// Within a block, every reduction is made by one reduction tree whatever the element's place, so that bits do not
    /// depend on sizes and cuts.
    pub same_tree_at_every_place: bool,
    /// Ranks that neither send nor receive.
    pub idle_ranks: u32,
}

/// Runs a program that has passed `coll_ir`'s verification on symbols, and judges it.
pub fn prove(program: &Program) -> Proof {
    let scale = Scale::new(&program.cuts);
    let mut outcome = run::run(program, &scale);
    let verdict = verdict::judge(program, &mut outcome);
    let properties = properties(program, &scale, &outcome, &verdict);
    let errors = errors(program, &mut outcome, &verdict);
    let told = if errors.is_empty() { warnings(program, &mut outcome, &properties) } else { errors };
    let own = program.origins.schedule.file;
    let told = told.into_iter().map(|diagnostic| diagnostic.blame_call(own)).collect();
    let diagnostics = Diagnostic::one_for_each_call(told);
    Proof { diagnostics, properties }
}

/// At most this many statements are told of for one code.
const STATEMENTS_MAX: usize = 4;

fn errors(program: &Program, outcome: &mut Outcome, verdict: &Verdict) -> Vec<Diagnostic> {
    let mut told = Vec::new();
    for statement in std::mem::take(&mut outcome.empty_sources).statements().iter().take(STATEMENTS_MAX) {
        told.push(reads::empty_source(program, &mut outcome.values, statement));
    }
    for statement in std::mem::take(&mut outcome.empty_targets).statements().iter().take(STATEMENTS_MAX) {
        told.push(reads::empty_target(program, &mut outcome.values, statement));
    }
    // What is missing where something was read that is not there misses it for that reason.
    let reads_nothing = !told.is_empty();
    let first = told.len();
    for &violation in verdict.violations.iter().filter(|v| !(reads_nothing && v.fault == Fault::Nothing)) {
        let diagnostic = explain::explain(program, outcome, violation);
        // A statement that is wrong in one way makes places wrong in several.
        let blames = |known: &Diagnostic| known.primary.as_ref().map(|label| label.span);
        if !told[first..].iter().any(|known| blames(known) == blames(&diagnostic)) {
            told.push(diagnostic);
        }
    }
    if let Some(early) = verdict.early {
        told.push(entries::leaves_early(program, outcome, early));
    }
    told
}

fn warnings(program: &Program, outcome: &mut Outcome, properties: &Properties) -> Vec<Diagnostic> {
    let mut told = Vec::new();
    if program.contract.ensures.is_empty() && program.contract.after.is_empty() {
        // Where nothing is promised all is waste.
        return told;
    }
    for statement in waste::unread(program, &outcome.resent).statements().iter().take(STATEMENTS_MAX) {
        told.push(waste::nobody_reads(program, statement));
    }
    let mut resent = ByStatement::default();
    for &transfer in &outcome.resent {
        resent.add(program, transfer, program.transfers[transfer as usize].low);
    }
    for statement in resent.statements().iter().take(STATEMENTS_MAX) {
        told.extend(waste::sent_twice(program, &mut outcome.values, statement));
    }
    told.extend(waste::sends_too_much(program, properties, &outcome.traffic));
    told
}

fn properties(program: &Program, scale: &Scale, outcome: &Outcome, verdict: &Verdict) -> Properties {
    let blocks = program.contract.buffers.first().map_or(0, |buffer| buffer.blocks);
    let traffic = &outcome.traffic;
    let most = |of: fn(&Traffic) -> u128| traffic.iter().map(of).max().unwrap_or(0);
    let messages = |traffic: &Traffic| traffic.messages_sent.max(traffic.messages_received);
    let mut scratch = vec![0u128; traffic.len()];
    for (rank, (low, high)) in outcome.memory.slots_in_use() {
        scratch[rank as usize] += scale.length(low, high) as u128;
    }
    let origin = |transfer: u32| program.transfers[transfer as usize].origin;
    Properties {
        steps: outcome.depth,
        sent_max: scale.fraction(most(|traffic| traffic.sent), blocks),
        received_max: scale.fraction(most(|traffic| traffic.received), blocks),
        bounds: bounds(&program.contract),
        messages_max: traffic.iter().map(messages).max().unwrap_or(0),
        scratch_max: scale.fraction(scratch.iter().copied().max().unwrap_or(0), blocks),
        equal_blocks_only: outcome.crosses_classes.map(origin),
        ordered: verdict.ordered,
        same_reduction_tree: verdict.same_tree,
        same_tree_at_every_place: verdict.same_tree_within,
        idle_ranks: traffic.iter().filter(|traffic| messages(traffic) == 0).count() as u32,
    }
}
