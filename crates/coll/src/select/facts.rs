//! What is known of every candidate before it is compiled: its parameters, whether it serves so many ranks, and sums over
//! its operations, from which [`Totals::bound_us`] tells what it takes at least.
//!
//! Compiling all candidates of an all-reduce takes 15 ms on 8 ranks and 200 ms on 64; a first call has no such time. So the
//! sums are shipped, in `facts.bin`, for all rank counts up to [`RANKS_MAX`]. They only ever spare work: what is
//! taken has been compiled and compared as ever, and a library with other texts than the file was made from does without
//! it. `UPDATE_FACTS=1 cargo test --release -p coll facts` makes it anew; a test demands it.
//!
//! The file is the library's [hash](library::HASH), then for each operation a section behind its length: for each schedule
//! its parameters with their defaults, then for each rank count, behind its length, a row for each candidate on one
//! machine. Numbers are LEB128, shares in units of 2^-16, rounded down; what is spared is rounded up.

use super::candidates::{Candidate, Params, settings};
use super::operations::OPERATIONS;
use super::packed::{block, number};
use crate::library;
use coll_cost::{Layout, Totals};
use std::sync::OnceLock;

/// The largest rank count with facts.
pub(super) const RANKS_MAX: u32 = 64;

static FILE: &[u8] = include_bytes!("facts.bin");

/// What is known of one operation.
pub(super) struct Facts {
    operation: &'static str,
    /// For each schedule, in the library's order, its parameters.
    pub(super) params: Vec<(&'static str, Params)>,
    /// Where the rows of each rank count lie, from two ranks on.
    rows: Vec<&'static [u8]>,
}

/// What is known of a candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fact {
    /// A `require` excludes it.
    DoesNotApply,
    /// It runs.
    Runs(Totals),
}

/// The facts of an operation, if there are any of this library.
pub(super) fn of(operation: &'static str) -> Option<&'static Facts> {
    static READ: OnceLock<Option<Vec<&'static [u8]>>> = OnceLock::new();
    static FACTS: [OnceLock<Option<Facts>>; OPERATIONS.len()] = [const { OnceLock::new() }; OPERATIONS.len()];
    let sections = READ.get_or_init(|| sections(FILE));
    if sections.is_none() {
        log::debug!("the shipped facts are not of this library's schedules; choices compile all of them");
    }
    let at = OPERATIONS.iter().position(|known| *known == operation)?;
    let section = sections.as_ref()?.get(at)?;
    FACTS[at].get_or_init(|| facts(operation, section)).as_ref()
}

impl Facts {
    /// What is known of the operation's candidates on so many ranks of one machine.
    pub(super) fn on(&self, ranks: u32) -> Vec<(Candidate, Fact)> {
        let at = ranks.checked_sub(2).map(|at| at as usize);
        let Some(rows) = at.and_then(|at| self.rows.get(at)) else { return Vec::new() };
        self.read(ranks, rows).unwrap_or_default()
    }

    fn read(&self, ranks: u32, mut rows: &[u8]) -> Option<Vec<(Candidate, Fact)>> {
        let touched = share(&mut rows)?;
        let mut all = Vec::new();
        for &(schedule, ref known) in &self.params {
            for params in settings(known, ranks, Layout::one_host(ranks)) {
                let fact = match number(&mut rows)? {
                    0 => Fact::DoesNotApply,
                    chain => Fact::Runs(Totals {
                        chain: (chain - 1) as u32,
                        messages: number(&mut rows)? as u32,
                        locals: number(&mut rows)? as u32,
                        sent: share(&mut rows)?,
                        common: share(&mut rows)?,
                        reduced: share(&mut rows)?,
                        copied: share(&mut rows)?,
                        touched,
                    }),
                };
                all.push((Candidate { operation: self.operation, schedule, params }, fact));
            }
        }
        Some(all)
    }
}

fn sections(file: &'static [u8]) -> Option<Vec<&'static [u8]>> {
    let (hash, mut rest) = file.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*hash) != library::HASH {
        return None;
    }
    OPERATIONS.iter().map(|_| block(&mut rest)).collect()
}

fn facts(operation: &'static str, mut section: &'static [u8]) -> Option<Facts> {
    let mut params = Vec::new();
    for entry in library::entries().filter(|entry| entry.collective == operation) {
        let count = number(&mut section)?;
        let of_one = (0..count).map(|_| {
            let name = std::str::from_utf8(block(&mut section)?).ok()?.to_string();
            Some((name, i64::try_from(number(&mut section)?).ok()?))
        });
        params.push((entry.schedule, of_one.collect::<Option<Params>>()?));
    }
    let rows = (2..=RANKS_MAX).map(|_| block(&mut section)).collect::<Option<Vec<_>>>()?;
    Some(Facts { operation, params, rows })
}

const UNIT: f64 = 65_536.0;

fn share(bytes: &mut &[u8]) -> Option<f64> {
    Some(number(bytes)? as f64 / UNIT)
}

#[cfg(test)]
mod tests;
