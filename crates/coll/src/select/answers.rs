//! What is taken for the calls that are made most, by the constants that are shipped: found out beforehand, so that a
//! first call compiles and proves the one schedule that it runs.
//!
//! There are answers for rank counts of [`ranks`] on one machine that has a core for each rank or one of [`CORES`], for every
//! size up to [`SIZE_MAX_BYTES`]; for blocks of any lengths; and for calls whose bits must not depend on sizes. They are what comparing all candidates
//! finds, and are used only with the very constants and schedules that they were made with: whoever has measured a machine
//! of his own gets its own answers, and waits for them once. `UPDATE_ANSWERS=1 cargo test --release -p coll --lib answers` makes them
//! anew; a test demands it.
//!
//! The file, `answers.bin`, is the library's [hash](library::HASH), the [fingerprint](Tuning::fingerprint) of the shipped
//! constants, then a section for each operation behind its length: in it a block for each rank count, behind its length. A
//! block has, where the operation reduces, two numbers for calls whose bits must not depend on sizes, with operators that
//! commute and that do not: the candidate's place, counted from 1, or 0. Then a row for each kind of call (`Kind::row`): the
//! number of its runs and, for each, the candidate's place, and how many intervals of sizes it has unless it is the last. No
//! runs say that the row is as the one before. Numbers are LEB128.

use super::operations::OPERATIONS;
use super::packed::{block, number};
use super::question::{Question, REDUCING};
use super::table::{interval, least};
use crate::library;
use coll_base::DType;
use coll_cost::{Constants, Tuning};
use std::sync::OnceLock;

/// Core counts of machines where ranks share cores.
const CORES: [u32; 3] = [2, 4, 8];

/// Larger buffers take so long that nobody waits for a choice.
const SIZE_MAX_BYTES: u64 = 64 << 20;

const TRANSPORTS: [&str; 2] = ["tcp", "shm"];

/// Element types that reductions take another time for.
const REDUCED: [DType; 2] = [DType::F32, DType::Bf16];

static FILE: &[u8] = include_bytes!("answers.bin");

/// Operations that have a variant for blocks of any lengths, which all ranks know.
const UNEQUAL: [&str; 2] = ["allgather", "reduce_scatter"];

/// Rank counts with answers. For the others first calls look for themselves, lest the file take long to make.
fn ranks() -> impl Iterator<Item = u32> {
    (2..=16).chain([24, 32, 48, 64])
}

/// Core counts that make a difference to so many ranks: those that they share, and a core for each.
fn cores(ranks: u32) -> impl Iterator<Item = u32> {
    CORES.into_iter().filter(move |&cores| cores < ranks).chain([ranks])
}

/// Those of [`REDUCED`] that make a difference to an operation.
fn reduced(operation: &str) -> &'static [DType] {
    if REDUCING.contains(&operation) { &REDUCED } else { &REDUCED[..1] }
}

/// The place of the candidate that is cheapest at a size in bytes, if it is known beforehand.
pub(super) fn cheapest(question: &Question, constants: &Constants, bytes: u64) -> Option<u32> {
    let answers = answers()?;
    if answers.constants.of(question.transport) != Some(constants) {
        return None;
    }
    let work = question.work(bytes);
    let at = interval(work.bytes);
    if work.bytes > SIZE_MAX_BYTES || least(at) != work.bytes {
        return None;
    }
    let row = Kind::of(question, constants)?.row(question);
    let mut block = answers.block(question)?;
    steadiest_of(question.operation, &mut block)?;
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

/// The place of the candidate that serves all sizes, if it is known beforehand.
pub(super) fn steadiest(question: &Question) -> Option<u32> {
    let usual_blocks = question.unequal_blocks == (question.operation == "reduce_scatter");
    // What does not commute depends on the root.
    if !usual_blocks || question.own_blocks_only || (!question.commutative && question.root != 0) {
        return None;
    }
    let mut block = answers()?.block(question)?;
    let steadiest = steadiest_of(question.operation, &mut block)?;
    steadiest[usize::from(!question.commutative)]
}

/// All that an answer depends on besides operation, ranks and size.
struct Kind {
    /// Which of [`REDUCED`], as far as time goes.
    reduced: usize,
    /// Blocks may be of any lengths.
    unequal: bool,
    /// Which of [`cores`].
    cores: usize,
    /// Which of [`TRANSPORTS`].
    transport: usize,
}

impl Kind {
    /// The kind of a call, if there are answers for its kind.
    fn of(question: &Question, constants: &Constants) -> Option<Kind> {
        let Question { operation, ranks, layout, .. } = *question;
        let unequal = question.unequal_blocks;
        let usual_blocks = !question.own_blocks_only && (!unequal || UNEQUAL.contains(&operation));
        if !usual_blocks || !question.commutative || question.deterministic || layout.hosts(ranks) > 1 {
            return None;
        }
        let work = question.work(0);
        let rate = constants.reduction(work.dtype, work.user_operator);
        let is_alike = |&dtype: &DType| constants.reduction(dtype, false) == rate;
        let reduced = match REDUCING.contains(&operation) {
            true => REDUCED.iter().position(is_alike)?,
            false => 0,
        };
        let cores = cores(ranks).position(|cores| cores == layout.cores.min(ranks))?;
        let transport = TRANSPORTS.iter().position(|&known| known == question.transport)?;
        Some(Kind { reduced, unequal, cores, transport })
    }

    /// Its row's place in the block of the rank count.
    fn row(&self, question: &Question) -> usize {
        let first = usize::from(self.unequal) * reduced(question.operation).len() + self.reduced;
        (first * cores(question.ranks).count() + self.cores) * TRANSPORTS.len() + self.transport
    }
}

/// What the file holds.
struct Answers {
    constants: Tuning,
    sections: Vec<&'static [u8]>,
}

/// The answers, if they are of this library and of the constants that are shipped with it.
fn answers() -> Option<&'static Answers> {
    static READ: OnceLock<Option<Answers>> = OnceLock::new();
    let answers = READ.get_or_init(|| {
        let answers = read(FILE, Tuning::shipped());
        if answers.is_none() {
            log::debug!(
                "the shipped answers are of other schedules or constants; first calls look for themselves"
            );
        }
        answers
    });
    answers.as_ref()
}

fn read(file: &'static [u8], constants: Tuning) -> Option<Answers> {
    let (hash, rest) = file.split_first_chunk::<8>()?;
    let (fingerprint, mut rest) = rest.split_first_chunk::<8>()?;
    if u64::from_le_bytes(*hash) != library::HASH
        || u64::from_le_bytes(*fingerprint) != constants.fingerprint()
    {
        return None;
    }
    let sections = OPERATIONS.iter().map(|_| block(&mut rest)).collect::<Option<_>>()?;
    Some(Answers { constants, sections })
}

impl Answers {
    /// What is known of an operation on so many ranks.
    fn block(&self, question: &Question) -> Option<&'static [u8]> {
        let at = ranks().position(|ranks| ranks == question.ranks)?;
        let operation = OPERATIONS.iter().position(|&known| known == question.operation)?;
        let mut section = *self.sections.get(operation)?;
        (0..at).try_for_each(|_| block(&mut section).map(drop))?;
        block(&mut section)
    }
}

/// Takes the candidates that serve all sizes off a block: for operators that commute, and for others.
fn steadiest_of(operation: &str, block: &mut &[u8]) -> Option<[Option<u32>; 2]> {
    if !REDUCING.contains(&operation) {
        return Some([None; 2]);
    }
    let mut one = || number(block).map(|place| place.checked_sub(1).map(|place| place as u32));
    Some([one()?, one()?])
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
