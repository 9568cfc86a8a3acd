//! The shipped answers against what comparing all candidates finds, and answers that come with constants.

use super::make::{Wanted, file, questions, steady_questions, table};
use super::shipped::{FILE, answers, wanted};
use super::*;
use crate::select::family::Family;
use crate::select::table::Looks;
use crate::select::{Chooser, with_answers};
use coll_cost::Fit;
use std::sync::Arc;

/// Rank counts at which the file is compared with the library whenever tests run; made anew, all are.
const LOOKED_AT: [u32; 5] = [2, 3, 6, 8, 16];
/// Of each row every so many intervals are compared then, row by row others.
const STRIDE: usize = 27;
/// The program is not to grow by more.
const FILE_MAX_BYTES: usize = 200_000;

fn family(operation: &'static str, ranks: u32, place: Place) -> Arc<Family> {
    Arc::new(Family::new(operation, ranks, 0, place.layout(ranks)))
}

fn constants(question: &Question) -> Constants {
    Tuning::shipped().of(question.transport).cloned().expect("they are shipped")
}

fn of_shipped(question: &Question, bytes: u64) -> Option<u32> {
    cheapest(None, question, &constants(question), bytes)
}

#[test]
fn answers_are_what_comparing_all_finds() {
    let (shipped, all) = (Tuning::shipped(), ranks().collect::<Vec<_>>());
    if std::env::var_os("UPDATE_ANSWERS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/select/answers.bin");
        std::fs::write(path, file(&shipped, &wanted(), &all, &|_| ())).expect("it is written");
        return;
    }
    let stale = "make it anew: UPDATE_ANSWERS=1 cargo test --release -p coll --lib answers";
    assert!(answers().is_some(), "answers.bin is of other schedules or other constants; {stale}");
    for operation in OPERATIONS {
        for ranks in LOOKED_AT {
            let one_host = family(operation, ranks, Place { ranks_per_host: None, cores: None });
            for question in steady_questions(operation, ranks) {
                let table = table(&one_host, &shipped, &question, Looks::AtAll);
                let expected = table.map(|table| table.index(0) as u32);
                assert_eq!(steadiest(&question), expected, "{question:?}; {stale}");
            }
            for wanted in wanted().iter().filter(|wanted| wanted.ranks.contains(&ranks)) {
                let family = match wanted.place.ranks_per_host {
                    None => Arc::clone(&one_host),
                    Some(_) => family(operation, ranks, wanted.place),
                };
                compare(&family, wanted, stale);
            }
        }
    }
}

/// Looks at some sizes of each kind of call.
fn compare(family: &Arc<Family>, wanted: &Wanted, stale: &str) {
    for (number, question) in questions(family.operation(), family.ranks, wanted).iter().enumerate() {
        let table = table(family, &Tuning::shipped(), question, Looks::AtAll);
        for at in (number % STRIDE..=interval(SIZE_MAX_BYTES)).step_by(STRIDE) {
            let found = of_shipped(question, least(at)).filter(|&at| at != u32::MAX);
            let expected = table.as_ref().map(|table| table.index(least(at)) as u32);
            assert_eq!(found, expected, "{question:?}, {} B; {stale}", least(at));
        }
    }
}

#[test]
fn what_the_answers_do_not_hold_for_has_none() {
    let known = Question { transport: "shm", ..Question::new("allreduce", 8, 0) };
    let ask = of_shipped;
    assert!(ask(&known, 1 << 16).is_some());
    // A type that takes as long as f32, and one that is computed and moved as f32.
    let f64s = Question { dtype: DType::F64, ..known.clone() };
    assert_eq!(ask(&f64s, 1 << 16), ask(&known, 1 << 16));
    let wide = Question { dtype: DType::Bf16, accumulate: true, ..known.clone() };
    assert_eq!(ask(&wide, 1 << 16), ask(&known, 1 << 17));
    // More cores than ranks are as good as one for each.
    let roomy = Question { layout: Layout::one_host(96), ..known.clone() };
    assert_eq!(ask(&roomy, 1 << 16), ask(&known, 1 << 16));
    let on = |ranks_per_host, cores| Layout { ranks_per_host, cores };
    let apart = Question { layout: on(4, 64), transport: "tcp", ..known.clone() };
    for also in [
        Question { user_operator: true, ..known.clone() },
        Question { user_operator: true, commutative: false, ..known.clone() },
        Question { transport: "threads", ..known.clone() },
        Question { layout: on(4, 2), ..apart.clone() },
        Question { layout: on(2, 2), ..apart.clone() },
        apart.clone(),
    ] {
        assert!(ask(&also, 1 << 16).is_some(), "{also:?}");
    }
    for other in [
        Question { layout: on(4, 4), ..known.clone() },
        Question { layout: on(4, 3), ..apart.clone() },
        Question { layout: on(3, 3), ..apart.clone() },
        Question { user_operator: true, ..apart.clone() },
        Question { layout: Layout::one_host(3), ..known.clone() },
        Question { commutative: false, ..known.clone() },
        Question { user_operator: true, commutative: false, root: 1, ..known.clone() },
        Question { unequal_blocks: true, ..known.clone() },
        Question { own_blocks_only: true, ..known.clone() },
        Question { ranks: 33, ..known.clone() },
        Question { ranks: 1, ..known.clone() },
    ] {
        assert_eq!(ask(&other, 1 << 16), None, "{other:?}");
    }
    assert_eq!(ask(&known, (1 << 16) + 4), None, "that is no interval's least size");
    assert_eq!(ask(&known, 2 * SIZE_MAX_BYTES), None);
    let shipped = constants(&known);
    let measured = Constants { switch_us: shipped.switch_us + 0.1, ..shipped };
    assert_eq!(cheapest(None, &known, &measured, 1 << 16), None);
    let steady = Question { deterministic: true, ..known };
    assert!(steadiest(&steady).is_some());
    assert_eq!(steadiest(&Question { unequal_blocks: true, ..steady.clone() }), None);
    assert_eq!(steadiest(&Question { commutative: false, root: 1, ..steady }), None);
}

/// Constants as if they had been measured, over shared memory.
fn measured() -> Tuning {
    let mut tuning = Tuning::shipped();
    let shm = tuning.of("shm").cloned().expect("they are shipped");
    let fit = Some(Fit { ranks: vec![2], cores: 3, probes: 9, error_factor: 1.1 });
    tuning.set(Constants { switch_us: 1.3 * shm.switch_us, fit, ..shm });
    tuning
}

#[test]
fn answers_that_come_with_constants_are_those_of_a_chooser_without() {
    let places = [None, Some(2)].map(|ranks_per_host| Place { ranks_per_host, cores: Some(3) });
    let (ranks, heard) = ([3, 4], std::sync::Mutex::new(Vec::new()));
    let told = with_answers(measured(), &places, &ranks, &|done| heard.lock().unwrap().push(done));
    assert!(heard.into_inner().unwrap().last().is_some_and(|&done| (done - 1.0).abs() < 1e-9));
    // They travel as text, as the constants do.
    let told = Tuning::from_json(&told.to_json()).expect("it is written whole");
    let own = Answers::read(told.answers().expect("they came").to_vec().into(), &told).expect("they fit");
    let [knows, looks] = [Chooser::new(told.clone()), Chooser::new(measured())];
    for ranks in ranks {
        for operation in ["allreduce", "broadcast", "reduce_scatter"] {
            let plain = Question {
                transport: "shm",
                layout: Layout::one_host(3),
                ..Question::new(operation, ranks, 0)
            };
            let users = Question { user_operator: true, ..plain.clone() };
            for question in [plain.clone(), users, Question { dtype: DType::Bf16, ..plain }] {
                for bytes in [0, 8, 3 << 10, 1 << 20] {
                    let question = Question { bytes, ..question.clone() };
                    let known = own.cheapest(&question, told.of("shm").expect("measured"), bytes);
                    assert!(known.is_some(), "{question:?}");
                    assert_eq!(knows.choose(&question), looks.choose(&question), "{question:?}");
                }
            }
        }
    }
    let other = Question { transport: "tcp", ..Question::new("allreduce", 4, 0) };
    assert_eq!(own.cheapest(&other, told.of("tcp").expect("shipped"), 0), None, "it was not measured");
    let mut newer = told.clone();
    newer.set(measured().of("shm").map(|shm| Constants { send_us: 1.0, ..shm.clone() }).expect("measured"));
    assert!(Answers::read(told.answers().expect("they came").to_vec().into(), &newer).is_none());
}

#[test]
fn a_damaged_or_foreign_file_is_as_good_as_none() {
    assert!(FILE.len() <= FILE_MAX_BYTES, "{} bytes", FILE.len());
    let read = |file: &[u8], constants: &Tuning| Answers::read(file.to_vec().into(), constants);
    assert!(read(FILE, &Tuning::shipped()).is_some());
    for cut in [0, 7, 16, 40, FILE.len() / 2, FILE.len() - 1] {
        assert!(read(&FILE[..cut], &Tuning::shipped()).is_none(), "{cut}");
    }
    assert!(read(&[FILE, &[0]].concat(), &Tuning::shipped()).is_none());
    assert!(read(FILE, &measured()).is_none());
    for damaged in [&[][..], &[0], &[2, 5], &[2, 5, 1], &[0x80; 20]] {
        assert_eq!(run_at(damaged, 3), None, "{damaged:?}");
    }
    assert_eq!([0, 1, 2, 9].map(|at| run_at(&[2, 5, 2, 7], at)), [Some(5), Some(5), Some(7), Some(7)]);
}
