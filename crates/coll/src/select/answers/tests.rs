//! The shipped answers against what comparing all candidates finds.

use super::*;
use crate::select::family::Family;
use crate::select::packed::{put, put_block};
use crate::select::table::{Looks, Table};
use coll_cost::Layout;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Rank counts at which the file is compared with the library whenever tests run; made anew, all are.
const LOOKED_AT: [u32; 5] = [2, 3, 6, 8, 16];
/// Of each row every so many intervals are compared then, row by row others.
const STRIDE: usize = 9;
/// The program is not to grow by more.
const FILE_MAX_BYTES: usize = 200_000;

fn family(operation: &'static str, ranks: u32) -> Arc<Family> {
    Arc::new(Family::new(operation, ranks, 0, Layout::one_host(ranks)))
}

fn constants(question: &Question) -> Constants {
    Tuning::shipped().of(question.transport).cloned().expect("they are shipped")
}

/// Candidates compared, if one can serve.
fn table(family: &Arc<Family>, question: &Question, looks: Looks) -> Option<Table> {
    let excluded = family.members.iter().map(|_| None).collect();
    let question = question.clone().in_order();
    Table::new(Arc::clone(family), excluded, constants(&question), question, looks)
}

/// A call of each kind, in the order of their rows.
fn questions(operation: &'static str, ranks: u32) -> Vec<Question> {
    let mut questions = Vec::new();
    for &unequal_blocks in if UNEQUAL.contains(&operation) { &[false, true][..] } else { &[false][..] } {
        for &dtype in reduced(operation) {
            for layout in cores(ranks).map(Layout::one_host) {
                let plain = Question { dtype, layout, unequal_blocks, ..Question::new(operation, ranks, 0) };
                questions.extend(TRANSPORTS.map(|transport| Question { transport, ..plain.clone() }));
            }
        }
    }
    questions
}

/// Calls whose bits must not depend on sizes: with operators that commute, and that do not.
fn steady_questions(operation: &'static str, ranks: u32) -> Vec<Question> {
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

fn block_of(operation: &'static str, ranks: u32) -> Vec<u8> {
    let family = family(operation, ranks);
    let mut block = Vec::new();
    for question in steady_questions(operation, ranks) {
        let steadiest = table(&family, &question, Looks::Unanswered).map(|table| table.index(0) as u64 + 1);
        put(&mut block, steadiest.unwrap_or(0));
    }
    let mut before = Vec::new();
    for question in questions(operation, ranks) {
        let table = table(&family, &question, Looks::Unanswered).expect("one serves");
        let taken: Vec<u32> =
            (0..=interval(SIZE_MAX_BYTES)).map(|at| table.index(least(at)) as u32).collect();
        let row = runs(&taken);
        match row == before {
            true => put(&mut block, 0),
            false => block.extend(&row),
        }
        before = row;
    }
    block
}

/// The file, from the library and the constants as they are now.
fn made_anew() -> Vec<u8> {
    // Those that take longest first, on all cores.
    let mut open: Vec<(u32, &'static str)> =
        ranks().flat_map(|ranks| OPERATIONS.map(|operation| (ranks, operation))).collect();
    open.sort_by_key(|&(ranks, _)| std::cmp::Reverse(ranks));
    let next = AtomicUsize::new(0);
    let blocks: Mutex<BTreeMap<(u32, &str), Vec<u8>>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(&(ranks, operation)) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let block = block_of(operation, ranks);
                    blocks.lock().expect("no other failed").insert((ranks, operation), block);
                }
            });
        }
    });
    let blocks = blocks.into_inner().expect("none failed");
    let mut file = library::HASH.to_le_bytes().to_vec();
    file.extend(Tuning::shipped().fingerprint().to_le_bytes());
    for operation in OPERATIONS {
        let mut section = Vec::new();
        ranks().for_each(|ranks| put_block(&mut section, &blocks[&(ranks, operation)]));
        put_block(&mut file, &section);
    }
    file
}

#[test]
fn answers_are_what_comparing_all_finds() {
    if std::env::var_os("UPDATE_ANSWERS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/select/answers.bin");
        std::fs::write(path, made_anew()).expect("it is written");
        return;
    }
    let stale = "make it anew: UPDATE_ANSWERS=1 cargo test --release -p coll --lib answers";
    assert!(answers().is_some(), "answers.bin is of other schedules or other constants; {stale}");
    for operation in OPERATIONS {
        for ranks in LOOKED_AT {
            let family = family(operation, ranks);
            for question in steady_questions(operation, ranks) {
                let expected = table(&family, &question, Looks::AtAll).map(|table| table.index(0) as u32);
                assert_eq!(steadiest(&question), expected, "{question:?}; {stale}");
            }
            for (number, question) in questions(operation, ranks).iter().enumerate() {
                let table = table(&family, question, Looks::AtAll).expect("one serves");
                for at in (number % STRIDE..=interval(SIZE_MAX_BYTES)).step_by(STRIDE) {
                    let found = cheapest(question, &constants(question), least(at));
                    let expected = table.index(least(at)) as u32;
                    assert_eq!(found, Some(expected), "{question:?}, {} B; {stale}", least(at));
                }
            }
        }
    }
}

#[test]
fn what_the_answers_do_not_hold_for_has_none() {
    let known = Question { transport: "shm", ..Question::new("allreduce", 8, 0) };
    let shipped = constants(&known);
    let ask = |question: &Question, bytes| cheapest(question, &shipped, bytes);
    assert!(ask(&known, 1 << 16).is_some());
    // A type that takes as long as f32, and one that is computed and moved as f32.
    let f64s = Question { dtype: DType::F64, ..known.clone() };
    assert_eq!(ask(&f64s, 1 << 16), ask(&known, 1 << 16));
    let wide = Question { dtype: DType::Bf16, accumulate: true, ..known.clone() };
    assert_eq!(ask(&wide, 1 << 16), ask(&known, 1 << 17));
    // More cores than ranks are as good as one for each.
    let roomy = Question { layout: Layout::one_host(96), ..known.clone() };
    assert_eq!(ask(&roomy, 1 << 16), ask(&known, 1 << 16));
    let apart = Layout { ranks_per_host: 4, cores: 4 };
    for other in [
        Question { layout: apart, ..known.clone() },
        Question { layout: Layout::one_host(3), ..known.clone() },
        Question { commutative: false, ..known.clone() },
        Question { user_operator: true, ..known.clone() },
        Question { unequal_blocks: true, ..known.clone() },
        Question { own_blocks_only: true, ..known.clone() },
        Question { ranks: 33, ..known.clone() },
        Question { ranks: 1, ..known.clone() },
        Question { transport: "tcp", ..known.clone() },
    ] {
        assert_eq!(ask(&other, 1 << 16), None, "{other:?}");
    }
    assert_eq!(ask(&known, (1 << 16) + 4), None, "that is no interval's least size");
    assert_eq!(ask(&known, 2 * SIZE_MAX_BYTES), None);
    let measured = Constants { switch_us: shipped.switch_us + 0.1, ..shipped.clone() };
    assert_eq!(cheapest(&known, &measured, 1 << 16), None);
    let steady = Question { deterministic: true, ..known };
    assert!(steadiest(&steady).is_some());
    assert_eq!(steadiest(&Question { unequal_blocks: true, ..steady.clone() }), None);
    assert_eq!(steadiest(&Question { commutative: false, root: 1, ..steady }), None);
}

#[test]
fn a_damaged_or_foreign_file_is_as_good_as_none() {
    assert!(FILE.len() <= FILE_MAX_BYTES, "{} bytes", FILE.len());
    assert!(read(&FILE[..FILE.len() - 1], Tuning::shipped()).is_none());
    assert!(read(&[0; 17], Tuning::shipped()).is_none());
    let mut measured = Tuning::shipped();
    let tcp = measured.of("tcp").cloned().expect("they are shipped");
    measured.set(Constants { send_us: tcp.send_us + 1.0, ..tcp });
    assert!(read(FILE, measured).is_none());
    for damaged in [&[][..], &[0], &[2, 5], &[2, 5, 1], &[0x80; 20]] {
        assert_eq!(run_at(damaged, 3), None, "{damaged:?}");
    }
    assert_eq!([0, 1, 2, 9].map(|at| run_at(&[2, 5, 2, 7], at)), [Some(5), Some(5), Some(7), Some(7)]);
}
