//! What is taken for the calls that are made most: found out beforehand, so that a first call compiles and proves the one
//! schedule that it runs.
//!
//! Some are shipped, by the constants that are shipped: see `shipped`. `collc tune` makes others, by the constants that it has
//! measured, and writes them beside these ([`with_answers`]). They are what comparing all candidates finds, and
//! are used only with the very constants and schedules that they were made with. `make` makes both.
//!
//! A file is the library's [hash](library::HASH), the [fingerprint](Tuning::fingerprint) of the constants, then what does not
//! depend on the constants given: for each operation a block, with, where it reduces, two numbers for each rank count of
//! [`ranks`], for calls whose bits must not depend on sizes, with operators that commute and that do not: the candidate's
//! place, counted from 1, or 0. All are empty where none are told. Then the number of groups. Each is its head (ranks on a machine
//! and cores, both counted from 1, or 0; lists of transports, reductions and rank counts, behind their lengths), then a
//! section for each operation behind its length; in it a block for each of the rank counts, behind its length, with
//! a row for each kind of call (`Group::row`): the number of its runs and, for each, the candidate's place, and how many
//! intervals of sizes it has unless it is the last. No runs say that the row is as the one before. Numbers are LEB128.

mod make;
mod shipped;

pub use make::with_answers;

use super::operations::OPERATIONS;
use super::packed::{block, number};
use super::question::{Question, REDUCING};
use super::table::{interval, least};
use crate::library;
use coll_base::DType;
use coll_cost::{Constants, Layout, Tuning};
use std::borrow::Cow;
use std::ops::Range;

/// Larger buffers take so long that nobody waits for a choice.
const SIZE_MAX_BYTES: u64 = 64 << 20;

/// Operations that have a variant for blocks of any lengths, which all ranks know.
const UNEQUAL: [&str; 2] = ["allgather", "reduce_scatter"];

/// Rank counts with answers, unless it is said for which. For the others first calls look for themselves, lest making answers
/// take long.
pub const ANSWERED_RANKS: [u32; 19] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 32, 48, 64];

fn ranks() -> impl Iterator<Item = u32> {
    ANSWERED_RANKS.into_iter()
}

/// Where ranks are, for the answers of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Ranks on each machine; none if all are on one.
    pub ranks_per_host: Option<u32>,
    /// Cores of each machine; none if there is one for each rank.
    pub cores: Option<u32>,
}

impl Place {
    fn layout(self, ranks: u32) -> Layout {
        let ranks_per_host = self.ranks_per_host.unwrap_or(u32::MAX);
        let cores = self.cores.unwrap_or(ranks.min(ranks_per_host));
        Layout { ranks_per_host, cores: cores.max(1) }
    }

    /// Whether so many ranks are where a layout says. More cores than ranks are as good as one for each.
    fn is(self, layout: Layout, ranks: u32) -> bool {
        let told = |layout: Layout| {
            let on_host = layout.ranks_on_host(ranks);
            (layout.hosts(ranks), on_host, layout.cores.min(on_host))
        };
        told(self.layout(ranks)) == told(layout)
    }

    /// Whether it is a place for so many ranks: machines are full, and there are several if it says so.
    fn serves(self, ranks: u32) -> bool {
        self.ranks_per_host.is_none_or(|each| each > 0 && ranks > each && ranks.is_multiple_of(each))
    }
}

/// What a reduction is, as far as time and what can serve go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduction {
    /// A built-in operator, on elements that take as long as these.
    Builtin(DType),
    /// A user's operator, that commutes.
    Users,
    /// A user's operator whose operands must stay in rank order. The root, where there is one, is rank 0.
    UsersInOrder,
}

/// All of them, by their number in files.
const REDUCTIONS: [Reduction; 8] = [
    Reduction::Builtin(DType::F32),
    Reduction::Builtin(DType::Bf16),
    Reduction::Users,
    Reduction::UsersInOrder,
    Reduction::Builtin(DType::F16),
    Reduction::Builtin(DType::F64),
    Reduction::Builtin(DType::I32),
    Reduction::Builtin(DType::I64),
];

impl Reduction {
    fn is(self, question: &Question, constants: &Constants, dtype: DType) -> bool {
        let Question { user_operator, commutative, root, .. } = *question;
        match self {
            Reduction::Builtin(alike) => {
                let takes = |dtype| constants.reduction(dtype, false);
                !user_operator && commutative && takes(alike) == takes(dtype)
            }
            Reduction::Users => user_operator && commutative,
            Reduction::UsersInOrder => user_operator && !commutative && root == 0,
        }
    }
}

/// Answers for ranks at one place.
#[derive(Debug)]
struct Group {
    place: Place,
    transports: Vec<String>,
    reductions: Vec<Reduction>,
    ranks: Vec<u32>,
    /// Where each operation's section lies in the file.
    sections: Vec<Range<usize>>,
}

impl Group {
    /// The kinds of reductions that make a difference to an operation.
    fn reductions(&self, operation: &str) -> &[Reduction] {
        let all = &self.reductions[..];
        if REDUCING.contains(&operation) { all } else { &all[..all.len().min(1)] }
    }

    /// The place of a call's row in the block of its rank count, if there are answers for its kind. Rows are in the order of
    /// equal and unequal blocks, then of reductions, then of transports.
    fn row(&self, question: &Question, constants: &Constants) -> Option<usize> {
        let Question { operation, ranks, layout, unequal_blocks, .. } = *question;
        let is_here = self.place.is(layout, ranks) && self.ranks.contains(&ranks);
        if !is_here || (unequal_blocks && !UNEQUAL.contains(&operation)) {
            return None;
        }
        let dtype = question.work(0).dtype;
        let reductions = self.reductions(operation);
        let reduction = match REDUCING.contains(&operation) {
            true => reductions.iter().position(|known| known.is(question, constants, dtype))?,
            false => 0,
        };
        let transport = self.transports.iter().position(|known| known == question.transport)?;
        let kind = usize::from(unequal_blocks) * reductions.len() + reduction;
        Some(kind * self.transports.len() + transport)
    }
}

/// What a file holds.
#[derive(Debug)]
pub(crate) struct Answers {
    file: Cow<'static, [u8]>,
    constants: Tuning,
    /// For each operation, where the candidates lie that serve all sizes.
    steady: Vec<Range<usize>>,
    groups: Vec<Group>,
}

impl Answers {
    /// A file's answers, if it is whole, and of this library and these constants.
    pub(crate) fn read(file: Cow<'static, [u8]>, constants: &Tuning) -> Option<Answers> {
        let (hash, rest) = file.split_first_chunk::<8>()?;
        let (fingerprint, mut rest) = rest.split_first_chunk::<8>()?;
        if u64::from_le_bytes(*hash) != library::HASH
            || u64::from_le_bytes(*fingerprint) != constants.fingerprint()
        {
            return None;
        }
        let steady = sections(&mut rest, file.len())?;
        let groups = number(&mut rest)?;
        let groups = (0..groups).map(|_| group(&mut rest, file.len())).collect::<Option<Vec<_>>>()?;
        rest.is_empty().then_some(())?;
        Some(Answers { constants: constants.clone(), steady, groups, file })
    }

    /// The place of the candidate that is cheapest at a size in bytes, if it is known.
    pub(crate) fn cheapest(&self, question: &Question, constants: &Constants, bytes: u64) -> Option<u32> {
        if question.own_blocks_only
            || question.deterministic
            || self.constants.of(question.transport) != Some(constants)
        {
            return None;
        }
        let work = question.work(bytes);
        let at = interval(work.bytes);
        if work.bytes > SIZE_MAX_BYTES || least(at) != work.bytes {
            return None;
        }
        let (group, row) =
            self.groups.iter().find_map(|group| Some((group, group.row(question, constants)?)))?;
        let mut block = self.block(group, question)?;
        let mut runs: &[u8] = block;
        for _ in 0..=row {
            let from = block;
            let count = number(&mut block)?;
            if count > 0 {
                runs = from;
            }
            (0..count.saturating_mul(2).saturating_sub(1)).try_for_each(|_| number(&mut block).map(drop))?;
        }
        run_at(runs, at as u64)
    }

    /// What a group knows of an operation on so many ranks.
    fn block(&self, group: &Group, question: &Question) -> Option<&[u8]> {
        let at = group.ranks.iter().position(|&ranks| ranks == question.ranks)?;
        let operation = OPERATIONS.iter().position(|&known| known == question.operation)?;
        let mut section = &self.file[group.sections.get(operation)?.clone()];
        (0..at).try_for_each(|_| block(&mut section).map(drop))?;
        block(&mut section)
    }

    /// The place of the candidate that serves all sizes, if it is known. It depends on no constants but the shipped ones.
    fn steadiest(&self, question: &Question) -> Option<u32> {
        let at = ranks().position(|ranks| ranks == question.ranks)?;
        let operation = OPERATIONS.iter().position(|&known| known == question.operation)?;
        let mut told = &self.file[self.steady.get(operation)?.clone()];
        (0..2 * at + usize::from(!question.commutative)).try_for_each(|_| number(&mut told).map(drop))?;
        number(&mut told)?.checked_sub(1).map(|place| place as u32)
    }
}

/// The place of the candidate that is cheapest at a size in bytes, if it is known beforehand: of the answers that came with
/// the constants, or of the shipped ones.
pub(super) fn cheapest(
    own: Option<&Answers>,
    question: &Question,
    constants: &Constants,
    bytes: u64,
) -> Option<u32> {
    let of = |answers: &Answers| answers.cheapest(question, constants, bytes);
    own.and_then(of).or_else(|| shipped::answers().and_then(of))
}

/// The place of the candidate that serves all sizes, if it is known beforehand.
pub(super) fn steadiest(question: &Question) -> Option<u32> {
    let usual_blocks = question.unequal_blocks == (question.operation == "reduce_scatter");
    // What does not commute depends on the root.
    if !usual_blocks || question.own_blocks_only || (!question.commutative && question.root != 0) {
        return None;
    }
    shipped::answers()?.steadiest(question)
}

/// Where the sections of all operations lie in a file of so many bytes, of which `rest` is left.
fn sections(rest: &mut &[u8], file_bytes: usize) -> Option<Vec<Range<usize>>> {
    let section = |_| {
        let section = block(rest)?;
        let end = file_bytes - rest.len();
        Some(end - section.len()..end)
    };
    OPERATIONS.iter().map(section).collect()
}

/// A group is read in place: its sections lie in the file.
fn group(rest: &mut &[u8], file_bytes: usize) -> Option<Group> {
    let narrow = |number: u64| u32::try_from(number).ok();
    let optional = |number: u64| Some(narrow(number)?.checked_sub(1));
    let place = Place { ranks_per_host: optional(number(rest)?)?, cores: optional(number(rest)?)? };
    let name = |rest: &mut &[u8]| Some(std::str::from_utf8(block(rest)?).ok()?.to_string());
    let transports = number(rest)?;
    let transports = (0..transports).map(|_| name(rest)).collect::<Option<Vec<_>>>()?;
    let reductions = number(rest)?;
    let reduction = |rest: &mut &[u8]| REDUCTIONS.get(usize::try_from(number(rest)?).ok()?).copied();
    let reductions = (0..reductions).map(|_| reduction(rest)).collect::<Option<Vec<_>>>()?;
    let ranks = number(rest)?;
    let ranks = (0..ranks).map(|_| narrow(number(rest)?)).collect::<Option<Vec<_>>>()?;
    let sections = sections(rest, file_bytes)?;
    Some(Group { place, transports, reductions, ranks, sections })
}

/// The candidate of the run that an interval is in.
fn run_at(mut runs: &[u8], interval: u64) -> Option<u32> {
    let count = number(&mut runs)?;
    let mut passed = 0u64;
    for left in (0..count).rev() {
        let candidate = u32::try_from(number(&mut runs)?).ok()?;
        if left == 0 {
            return Some(candidate);
        }
        passed = number(&mut runs)?.saturating_add(passed);
        if interval < passed {
            return Some(candidate);
        }
    }
    None
}

#[cfg(test)]
mod tests;
