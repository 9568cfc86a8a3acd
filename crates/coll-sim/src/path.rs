//! The critical path: from the operation that ended last back to what it waited for last, and so on to the start.

use crate::engine::Engine;
use crate::table::{NONE, Parts, Table};
use coll_plan::Line;
use std::collections::BTreeMap;

/// An operation on the path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathStep {
    /// The rank.
    pub rank: u32,
    /// The operation, as in the plan.
    pub op: u32,
    /// The step of the program.
    pub step: u32,
    /// The source line, if the plan knows it.
    pub line: Option<Line>,
    /// When it was over, in microseconds.
    pub end_us: f64,
    /// How much later than the one before it on the path.
    pub took_us: f64,
}

/// The path to the operation that ended last.
pub(crate) fn critical(parts: &Parts, table: &Table, engine: &Engine) -> Vec<PathStep> {
    let mut ops = Vec::new();
    let mut at = engine.last;
    // Each operation waited for one that was before it, so there are not more than all.
    while at != NONE && ops.len() < table.len() {
        ops.push(at);
        at = engine.cause[at as usize];
    }
    ops.reverse();
    let mut before = 0.0_f64;
    let step = |op: u32| {
        let rank = table.rank(op);
        let local = op - table.bases[rank as usize];
        let what = &parts.part(rank).ops[local as usize];
        let end_us = engine.end[op as usize];
        let took_us = (end_us - before).max(0.0);
        before = before.max(end_us);
        PathStep { rank, op: local, step: what.step, line: parts.line(rank, what).cloned(), end_us, took_us }
    };
    ops.into_iter().map(step).collect()
}

/// What each source line adds to a path, in microseconds, the largest first: `(line, time, operations)`.
pub fn by_line(path: &[PathStep]) -> Vec<(Line, f64, usize)> {
    let mut sums: BTreeMap<&Line, (f64, usize)> = BTreeMap::new();
    for step in path {
        if let Some(line) = &step.line {
            let sum = sums.entry(line).or_default();
            *sum = (sum.0 + step.took_us, sum.1 + 1);
        }
    }
    let mut lines: Vec<_> = sums.into_iter().map(|(line, (us, count))| (line.clone(), us, count)).collect();
    lines.sort_by(|a, b| b.1.total_cmp(&a.1));
    lines
}
