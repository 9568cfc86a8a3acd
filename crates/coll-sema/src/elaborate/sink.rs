//! Errors of an elaboration. A faulty statement fails again and again, once for each round of its loop: the first
//! is told, the others are counted.

use crate::codes;
use coll_base::{Code, Diagnostic, Span};
use std::collections::HashMap;

/// The most faulty statements that are told.
const TOLD_MAX: usize = 20;
/// So many faults, and elaboration ends: a loop that is wrong everywhere need not run to its end.
const FAULTS_MAX: u64 = 10_000;

struct Found {
    diagnostic: Diagnostic,
    /// The statement.
    span: Option<Span>,
    /// How often it came again.
    again: u64,
}

pub(super) struct Sink {
    found: Vec<Found>,
    /// Which of `found` tells of a code at a place.
    known: HashMap<(Code, Option<Span>), usize>,
}

impl Sink {
    pub(super) fn new() -> Sink {
        Sink { found: Vec::new(), known: HashMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// True once there is no use in looking for more.
    pub(super) fn is_full(&self) -> bool {
        self.found.iter().map(|found| found.again + 1).sum::<u64>() >= FAULTS_MAX
    }

    /// Tells of a fault of the statement at `span`, or counts it.
    pub(super) fn push(&mut self, span: Option<Span>, diagnostic: Diagnostic) {
        let key = (diagnostic.code, span);
        if let Some(&at) = self.known.get(&key) {
            self.found[at].again += 1;
        } else if self.found.len() < TOLD_MAX {
            self.known.insert(key, self.found.len());
            self.found.push(Found { diagnostic, span, again: 0 });
        }
    }

    pub(super) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.leave_out_consequences();
        let told = self.found.into_iter().map(|Found { diagnostic, again, .. }| match again {
            0 => diagnostic,
            1 => diagnostic.note("and once more for other values"),
            _ => diagnostic.note(format!("and {again} times more for other values")),
        });
        Diagnostic::one_for_each_call(told.collect())
    }

    /// A number that cannot be computed for some values is wrong for others too: the first is told.
    fn leave_out_consequences(&mut self) {
        let arithmetic = self.found.iter().filter(|found| found.diagnostic.code == codes::ARITHMETIC);
        let causes: Vec<Span> = arithmetic.filter_map(|found| found.span).collect();
        let follows = |span: &Span| {
            causes.iter().any(|at| at.file == span.file && span.start <= at.start && at.end <= span.end)
        };
        self.found.retain(|found| {
            let of_range = [codes::RANK_RANGE, codes::INDEX_RANGE].contains(&found.diagnostic.code);
            !(of_range && found.span.as_ref().is_some_and(follows))
        });
    }
}
