//! Errors of an elaboration. A faulty statement fails again and again, once for each round of its loop: the first
//! is told, the others are counted.

use coll_base::{Code, Diagnostic, Span};
use std::collections::HashMap;

/// The most faulty statements that are told.
const TOLD_MAX: usize = 20;
/// So many faults, and elaboration ends: a loop that is wrong everywhere need not run to its end.
const FAULTS_MAX: u64 = 10_000;

pub(super) struct Sink {
    found: Vec<(Diagnostic, u64)>,
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
        self.found.iter().map(|(_, again)| again + 1).sum::<u64>() >= FAULTS_MAX
    }

    /// Tells of a fault of the statement at `span`, or counts it.
    pub(super) fn push(&mut self, span: Option<Span>, diagnostic: Diagnostic) {
        let key = (diagnostic.code, span);
        if let Some(&at) = self.known.get(&key) {
            self.found[at].1 += 1;
        } else if self.found.len() < TOLD_MAX {
            self.known.insert(key, self.found.len());
            self.found.push((diagnostic, 0));
        }
    }

    pub(super) fn into_diagnostics(self) -> Vec<Diagnostic> {
        let told = self.found.into_iter().map(|(diagnostic, again)| match again {
            0 => diagnostic,
            1 => diagnostic.note("and once more for other values"),
            _ => diagnostic.note(format!("and {again} times more for other values")),
        });
        told.collect()
    }
}
