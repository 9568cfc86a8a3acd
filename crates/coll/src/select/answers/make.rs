//! Finds answers out, by comparing candidates for every kind of call: seconds to minutes, on all cores.

use super::{Place, REDUCTIONS, Reduction, SIZE_MAX_BYTES, UNEQUAL, ranks};
use crate::library;
use crate::select::family::Family;
use crate::select::operations::OPERATIONS;
use crate::select::packed::{put, put_block};
use crate::select::question::{Question, REDUCING};
use crate::select::table::{Looks, Table, interval, least};
use coll_cost::{Constants, Tuning};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Transports that calls may go over.
const TRANSPORTS: [&str; 3] = ["tcp", "shm", "threads"];

/// The one that leads to other machines.
const BETWEEN_HOSTS: &str = "tcp";

/// A group that is to be made.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) place: Place,
    pub(super) transports: Vec<&'static str>,
    pub(super) reductions: Vec<Reduction>,
    pub(super) ranks: Vec<u32>,
}

/// Constants with the answers for common calls beside them: all operations, over the transports that were measured, by as many
/// ranks as `ranks` says, at these places. Candidates are compiled and compared for that on all cores: seconds for few ranks,
/// a minute for dozens. `hear` is told how much is done, from 0 to 1. None is made for more than
/// [`WHOLE_RANKS_MAX`](crate::select::WHOLE_RANKS_MAX) ranks, or fewer than two.
pub fn with_answers(tuning: Tuning, places: &[Place], ranks: &[u32], hear: &(dyn Fn(f64) + Sync)) -> Tuning {
    let is_measured = |name: &&str| tuning.of(name).is_some_and(|constants| constants.fit.is_some());
    let measured: Vec<&'static str> = TRANSPORTS.into_iter().filter(is_measured).collect();
    let wanted = |&place: &Place| {
        let fits = |name: &&str| place.ranks_per_host.is_none() || *name == BETWEEN_HOSTS;
        let transports: Vec<&'static str> = measured.iter().copied().filter(fits).collect();
        let reductions = distinct(&tuning, &transports);
        let fits = |&ranks: &u32| (2..=super::super::WHOLE_RANKS_MAX).contains(&ranks) && place.serves(ranks);
        Wanted { place, transports, reductions, ranks: ranks.iter().copied().filter(fits).collect() }
    };
    let wanted: Vec<Wanted> =
        places.iter().map(wanted).filter(|wanted| !wanted.transports.is_empty()).collect();
    let file = file(&tuning, &wanted, &[], hear);
    tuning.with_answers(file)
}

/// Reductions that take another time than those before them, over one of the transports at least.
fn distinct(tuning: &Tuning, transports: &[&str]) -> Vec<Reduction> {
    let mut kept: Vec<Reduction> = Vec::new();
    for reduction in REDUCTIONS {
        let Reduction::Builtin(dtype) = reduction else {
            kept.push(reduction);
            continue;
        };
        let differs = |constants: &Constants| {
            let mut before = kept.iter().filter_map(|known| match known {
                Reduction::Builtin(before) => Some(constants.reduction(*before, false)),
                _ => None,
            });
            !before.any(|rate| rate == constants.reduction(dtype, false))
        };
        if transports.iter().filter_map(|name| tuning.of(name)).any(differs) {
            kept.push(reduction);
        }
    }
    kept
}

/// What is found out of one operation on so many ranks: a block for each of the groups, and the candidates that serve
/// all sizes.
type Found = (BTreeMap<usize, Vec<u8>>, [u64; 2]);

/// A file; `steady` are the rank counts whose candidates for all sizes are told.
pub(super) fn file(
    tuning: &Tuning,
    wanted: &[Wanted],
    steady: &[u32],
    hear: &(dyn Fn(f64) + Sync),
) -> Vec<u8> {
    let mut open = tasks(wanted, steady);
    // Those that take longest first, on all cores.
    open.sort_by_key(|task| std::cmp::Reverse(task.ranks));
    let weight = |task: &Task| f64::from(task.ranks) * f64::from(task.ranks);
    let (next, all) = (AtomicUsize::new(0), open.iter().map(weight).sum::<f64>());
    let found: Mutex<(BTreeMap<Task, Found>, f64)> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&task) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = find(task, tuning, wanted, steady);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.0.insert(task, one);
                    found.1 += weight(&task);
                    hear(found.1 / all);
                }
            });
        }
    });
    let (found, _) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    written(tuning, wanted, steady, &found)
}

/// Work that shares compiled candidates: these depend on how many ranks a machine has, and on no cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Task {
    operation: usize,
    ranks: u32,
    ranks_per_host: Option<u32>,
}

fn tasks(wanted: &[Wanted], steady: &[u32]) -> Vec<Task> {
    let of_groups = wanted.iter().flat_map(|Wanted { place, ranks, .. }| {
        let served = ranks.iter().filter(|&&ranks| place.serves(ranks));
        served.map(|&ranks| (ranks, place.ranks_per_host))
    });
    let all: BTreeSet<(u32, Option<u32>)> =
        of_groups.chain(steady.iter().map(|&ranks| (ranks, None))).collect();
    let of =
        |operation| all.iter().map(move |&(ranks, ranks_per_host)| Task { operation, ranks, ranks_per_host });
    (0..OPERATIONS.len()).flat_map(of).collect()
}

fn find(task: Task, tuning: &Tuning, wanted: &[Wanted], steady: &[u32]) -> Found {
    let Task { operation, ranks, ranks_per_host } = task;
    let layout = Place { ranks_per_host, cores: None }.layout(ranks);
    let family = Arc::new(Family::new(OPERATIONS[operation], ranks, 0, layout));
    let mut blocks = BTreeMap::new();
    for (number, wanted) in wanted.iter().enumerate() {
        if wanted.place.ranks_per_host == ranks_per_host && wanted.ranks.contains(&ranks) {
            blocks.insert(number, block(&family, tuning, wanted));
        }
    }
    let mut steadiest = [0; 2];
    if ranks_per_host.is_none() && steady.contains(&ranks) {
        for (place, question) in steadiest.iter_mut().zip(steady_questions(OPERATIONS[operation], ranks)) {
            let table = table(&family, tuning, &question, Looks::Unanswered);
            *place = table.map_or(0, |table| table.index(0) as u64 + 1);
        }
    }
    (blocks, steadiest)
}

/// A row for each kind of call.
fn block(family: &Arc<Family>, tuning: &Tuning, wanted: &Wanted) -> Vec<u8> {
    let mut block = Vec::new();
    let mut before = Vec::new();
    for question in questions(family.operation(), family.ranks, wanted) {
        let row = match table(family, tuning, &question, Looks::Unanswered) {
            Some(table) => {
                let take = |at| table.index(least(at)) as u32;
                runs(&(0..=interval(SIZE_MAX_BYTES)).map(take).collect::<Vec<_>>())
            }
            // Nothing serves; who asks is told so by looking.
            None => runs(&[u32::MAX]),
        };
        match row == before {
            true => put(&mut block, 0),
            false => block.extend(&row),
        }
        before = row;
    }
    block
}

/// Candidates compared, if one can serve.
pub(super) fn table(
    family: &Arc<Family>,
    tuning: &Tuning,
    question: &Question,
    looks: Looks,
) -> Option<Table> {
    let excluded = family.members.iter().map(|_| None).collect();
    let constants = tuning.of(question.transport)?.clone();
    Table::new(Arc::clone(family), excluded, constants, question.clone().in_order(), looks, None)
}

/// A call of each kind, in the order of their rows.
pub(super) fn questions(operation: &'static str, ranks: u32, wanted: &Wanted) -> Vec<Question> {
    let plain = Question { layout: wanted.place.layout(ranks), ..Question::new(operation, ranks, 0) };
    let reductions =
        if REDUCING.contains(&operation) { &wanted.reductions[..] } else { &wanted.reductions[..1] };
    let mut questions = Vec::new();
    for &unequal_blocks in if UNEQUAL.contains(&operation) { &[false, true][..] } else { &[false][..] } {
        for &reduction in reductions {
            let question = Question { unequal_blocks, ..reduction.of(plain.clone()) };
            let over = |&transport: &&'static str| Question { transport, ..question.clone() };
            questions.extend(wanted.transports.iter().map(over));
        }
    }
    questions
}

impl Reduction {
    /// A call that reduces so.
    fn of(self, plain: Question) -> Question {
        match self {
            Reduction::Builtin(dtype) => Question { dtype, ..plain },
            Reduction::Users => Question { user_operator: true, ..plain },
            Reduction::UsersInOrder => Question { user_operator: true, commutative: false, ..plain },
        }
    }
}

/// Calls whose bits must not depend on sizes: with operators that commute, and that do not.
pub(super) fn steady_questions(operation: &'static str, ranks: u32) -> Vec<Question> {
    let plain = Question { deterministic: true, ..Question::new(operation, ranks, 0) };
    match REDUCING.contains(&operation) {
        true => [true, false].map(|commutative| Question { commutative, ..plain.clone() }.in_order()).into(),
        false => Vec::new(),
    }
}

fn runs(taken: &[u32]) -> Vec<u8> {
    let runs: Vec<&[u32]> = taken.chunk_by(|a, b| a == b).collect();
    let mut row = Vec::new();
    put(&mut row, runs.len() as u64);
    for (at, run) in runs.iter().enumerate() {
        put(&mut row, run[0].into());
        if at + 1 < runs.len() {
            put(&mut row, run.len() as u64);
        }
    }
    row
}

fn written(tuning: &Tuning, wanted: &[Wanted], steady: &[u32], found: &BTreeMap<Task, Found>) -> Vec<u8> {
    let mut file = library::HASH.to_le_bytes().to_vec();
    file.extend(tuning.fingerprint().to_le_bytes());
    for (operation, name) in OPERATIONS.iter().enumerate() {
        let mut section = Vec::new();
        if !steady.is_empty() && REDUCING.contains(name) {
            for ranks in ranks() {
                let task = Task { operation, ranks, ranks_per_host: None };
                let places = found.get(&task).map_or([0; 2], |(_, places)| *places);
                places.into_iter().for_each(|place| put(&mut section, place));
            }
        }
        put_block(&mut file, &section);
    }
    put(&mut file, wanted.len() as u64);
    let optional = |number: Option<u32>| number.map_or(0, |number| u64::from(number) + 1);
    for (number, wanted) in wanted.iter().enumerate() {
        let Place { ranks_per_host, cores } = wanted.place;
        put(&mut file, optional(ranks_per_host));
        put(&mut file, optional(cores));
        put(&mut file, wanted.transports.len() as u64);
        wanted.transports.iter().for_each(|name| put_block(&mut file, name.as_bytes()));
        put(&mut file, wanted.reductions.len() as u64);
        for reduction in &wanted.reductions {
            let at = REDUCTIONS.iter().position(|known| known == reduction);
            put(&mut file, at.expect("invariant: all reductions are listed") as u64);
        }
        put(&mut file, wanted.ranks.len() as u64);
        wanted.ranks.iter().for_each(|&ranks| put(&mut file, ranks.into()));
        for operation in 0..OPERATIONS.len() {
            let mut section = Vec::new();
            for &ranks in &wanted.ranks {
                let task = Task { operation, ranks, ranks_per_host };
                let block = found.get(&task).and_then(|(blocks, _)| blocks.get(&number));
                put_block(&mut section, block.map_or(&[][..], |block| block));
            }
            put_block(&mut file, &section);
        }
    }
    file
}
