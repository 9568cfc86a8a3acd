//! The answers that are shipped, in `answers.bin`: by the constants that are shipped, over every transport, for ranks on one
//! machine that has a core for each or one of [`CORES`], and on machines of [`RANKS_PER_HOST`] ranks each; for built-in
//! operators, and on one machine for users'. `UPDATE_ANSWERS=1 cargo test --release -p coll --lib answers` makes them anew; a
//! test demands it.

use super::Answers;
#[cfg(test)]
use super::{Place, REDUCTIONS, make::Wanted};
use coll_cost::Tuning;
use std::borrow::Cow;
use std::sync::OnceLock;

/// Core counts of machines where ranks share cores.
#[cfg(test)]
const CORES: [u32; 3] = [2, 4, 8];

/// Ranks of each machine, where there are several: with a core for each, or with one of [`CORES`].
#[cfg(test)]
const RANKS_PER_HOST: [u32; 3] = [2, 4, 8];

pub(super) static FILE: &[u8] = include_bytes!("../answers.bin");

/// The answers, if they are of this library and of the constants that are shipped with it.
pub(super) fn answers() -> Option<&'static Answers> {
    static READ: OnceLock<Option<Answers>> = OnceLock::new();
    let answers = READ.get_or_init(|| {
        let answers = Answers::read(Cow::Borrowed(FILE), &Tuning::shipped());
        if answers.is_none() {
            log::debug!(
                "the shipped answers are of other schedules or constants; first calls look for themselves"
            );
        }
        answers
    });
    answers.as_ref()
}

/// What is to be answered. Built-in reductions are those of `f32` and of bf16: by the shipped constants, others take as long as
/// one of these.
#[cfg(test)]
pub(super) fn wanted() -> Vec<Wanted> {
    let [f32s, bf16s, users, in_order, ..] = REDUCTIONS;
    let on_one_host = |cores| Wanted {
        place: Place { ranks_per_host: None, cores },
        transports: vec!["tcp", "shm", "threads"],
        reductions: vec![f32s, bf16s, users, in_order],
        ranks: super::ranks().filter(|&ranks| cores.is_none_or(|cores| cores < ranks)).collect(),
    };
    let on_several = |each: u32, cores: Option<u32>| Wanted {
        place: Place { ranks_per_host: Some(each), cores },
        // Between machines it is always that.
        transports: vec!["tcp"],
        reductions: vec![f32s, bf16s],
        ranks: super::ranks().filter(|&ranks| ranks > each && ranks.is_multiple_of(each)).collect(),
    };
    let mut wanted: Vec<Wanted> = std::iter::once(None).chain(CORES.map(Some)).map(on_one_host).collect();
    for each in RANKS_PER_HOST {
        let shared = CORES.into_iter().filter(|&cores| cores < each).map(Some);
        wanted.extend(std::iter::once(None).chain(shared).map(|cores| on_several(each, cores)));
    }
    wanted
}
