//! Schedules of files that a communicator is told to take: they serve, or the call is an error that names the file and what
//! keeps it. Known fault B092.

#[path = "comm/world.rs"]
mod world;

use coll::select::{Chooser, insisted};
use coll::{CommError, Communicator, Instance, Outcome, RedOp, Source, Via};
use coll_interop::msccl;
use std::sync::Arc;
use world::{value, world_of};

/// A ring all-reduce of four ranks as MSCCL XML, for sizes from 64 to 4096 bytes. The attribute, if one is named, becomes another.
fn ring(folder: &std::path::Path, change: Option<(&str, &str)>) -> String {
    let source = Source::builtin("allreduce", "ring").expect("it is in the library");
    let instance = Instance { ranks: 4, root: 0, params: Vec::new() };
    let Outcome::Right(proved) = coll::prove(&source, 0, &instance, &Default::default()) else {
        panic!("it is right")
    };
    let options = msccl::WriteOptions { min_bytes: 64, max_bytes: 4096, ..Default::default() };
    let written = msccl::write(&proved.plan, &options).expect("the form can say it");
    let mut text = written.within_limits(&proved.plan).expect("it is small");
    if let Some((from, to)) = change {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let path = folder.join("ring.xml");
    std::fs::write(&path, text).expect("it can be written");
    path.to_string_lossy().into_owned()
}

/// What each rank of four finds when it sums up so many elements with a file to be taken.
fn sums(file: &str, elements: usize, in_place: bool) -> Vec<Result<String, String>> {
    let (forced, imposed) = insisted(file).expect("it can be read");
    let chooser = Chooser::new(coll_cost::Tuning::shipped()).with_forced(forced).with_imposed(imposed);
    let builder = Communicator::builder().via(Via::Fastest).chooser(Arc::new(chooser));
    let each = move |comm: &mut Communicator| -> Result<String, CommError> {
        let mut input: Vec<i32> = (0..elements).map(|at| i32::from(value(comm.rank(), at))).collect();
        let due: Vec<i32> =
            (0..elements).map(|at| (0..4).map(|rank| i32::from(value(rank, at))).sum()).collect();
        if in_place {
            comm.all_reduce_in_place(&mut input, RedOp::Sum)?;
            assert_eq!(input, due);
        } else {
            let mut output = vec![0; elements];
            comm.all_reduce(&input, &mut output, RedOp::Sum)?;
            assert_eq!(output, due);
        }
        Ok(comm.flight_record().last().expect("a call was made").schedule.clone())
    };
    world_of(builder, 4, each).into_iter().map(|result| result.map_err(|error| error.to_string())).collect()
}

#[test]
fn a_file_serves_the_calls_that_it_is_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = ring(folder.path(), None);
    for (elements, in_place) in [(16, false), (1024, true), (37, false)] {
        for result in sums(&file, elements, in_place) {
            assert_eq!(result.as_deref(), Ok("allreduce.allreduce_ring"), "{elements}");
        }
    }
}

#[test]
fn b092_a_call_that_a_file_is_not_for_is_an_error_that_names_both() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = ring(folder.path(), None);
    let wrong = |found: Vec<Result<String, String>>, words: &str| {
        for result in found {
            let error = result.expect_err("it is refused");
            assert!(error.contains("ring.xml") && error.contains(words), "{error}");
        }
    };
    wrong(sums(&file, 2048, false), "8192 B are more than `maxBytes` 4096");
    wrong(sums(&file, 4, false), "16 B are fewer than `minBytes` 64");
    let file = ring(folder.path(), Some(("outofplace=\"1\"", "outofplace=\"0\"")));
    wrong(sums(&file, 64, false), "`outofplace` is 0");
    assert!(sums(&file, 64, true).iter().all(Result::is_ok));
}

#[test]
fn what_is_no_schedule_of_an_operation_is_refused_when_it_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = ring(folder.path(), Some((" chan=\"0\"", "")));
    let error = insisted(&file).expect_err("it lacks an attribute");
    assert!(error.contains("ring.xml") && error.contains("`chan`"), "{error}");
    let file = ring(folder.path(), None);
    let error = insisted(&format!("allreduce.ring,{file}")).expect_err("one can be taken");
    assert!(error.contains("two schedules are named for `allreduce`"), "{error}");
    let error = insisted("/nowhere/to/be.xml").expect_err("it is not there");
    assert!(error.contains("/nowhere/to/be.xml"), "{error}");
    // Where nothing but a communicator could take it, it is not passed over either.
    let (_, imposed) = insisted(&file).expect("it can be read");
    let chooser = Chooser::new(coll_cost::Tuning::shipped()).with_imposed(imposed);
    let question = coll::select::Question::new("allreduce", 4, 1024);
    let error = chooser.choose(&question).expect_err("there is nothing to choose").to_string();
    assert!(error.contains("ring.xml") && error.contains("nothing to choose"), "{error}");
}
