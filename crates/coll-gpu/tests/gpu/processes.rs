//! Ranks that are processes, each with a device of the stand-in: they open each other's memory, and give the CPU's bits.

use crate::support::devices::LIMIT;
use crate::support::processes::{ByFiles, own, prepare, run};
use crate::support::{Call, Case, plan};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_gpu::{GroupError, Shared};
use cuda_stand_in::{Config, control};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CASES: [(&str, &str); 4] =
    [("allreduce", "ring"), ("allreduce", "recursive_doubling"), ("alltoall", "pairwise"), ("scan", "chain")];

/// The child: one rank, told by its environment what to do.
#[test]
#[ignore = "it is run by the tests of this file, once for each rank"]
fn child() {
    let told = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
    let number = |name: &str| told(name).parse::<u32>().expect("a number");
    let (rank, ranks) = (number("TEST_RANK"), number("TEST_RANKS"));
    let folder = PathBuf::from(told("TEST_FOLDER"));
    // A machine that is busy with other things takes its time.
    let patience_ms = LIMIT.as_millis() as u64;
    let config = Config { devices: ranks as usize, seed: u64::from(rank), patience_ms, ..Config::default() };
    let session = control::session(&config).expect("the stand-in opens");
    let exchange = ByFiles { folder, rank, ranks, round: 0 };
    let mut shared = Shared::join(rank, ranks, rank, Box::new(exchange)).expect("the device opens");
    for (collective, name) in CASES {
        let plan = plan(collective, name, ranks, 0, &Options::default()).expect("it applies");
        let call = Call::new(&plan, &Case { in_place: name == "ring", ..Case::new(RedOp::Sum, DType::F32) });
        run(&mut shared, &call, rank);
    }
    if told("TEST_MODE") == "late" && rank == 0 {
        late(&mut shared, rank, ranks);
    } else if told("TEST_MODE") == "late" {
        absent(&mut shared, rank, ranks);
    }
    drop(shared);
    session.verdict().expect("nothing is left to chance");
    println!("DONE {rank}");
}

/// The others do not run the call: the wait ends in time, and dropping it does not hang. So it is with several runs of a graph.
fn late(shared: &mut Shared, rank: u32, ranks: u32) {
    let plan = plan("allreduce", "ring", ranks, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let own = own(shared, &call, rank);
    let limit = Duration::from_millis(50);
    let mut ready = prepare(shared, &call, &own);
    ready.launch(own.stream.handle()).expect("it is put on a stream");
    let error = ready.wait(limit).expect_err("nobody comes");
    assert!(matches!(error, GroupError::TimedOut { rank: 0, .. }), "{error}");
    assert_eq!(ready.launch(own.stream.handle()).expect_err("it stays so"), error);
    shared.close(ready).expect("all come");
    let ready = prepare(shared, &call, &own);
    let mut graph = shared.capture(ready, LIMIT).expect("it is captured");
    (0..3).for_each(|_| graph.launch(own.stream.handle()).expect("it is put on a stream"));
    let gone = &mut || Some("rank 1 is gone".to_string());
    let error = graph.wait_unless(LIMIT, gone).expect_err("nobody comes");
    assert_eq!(error.to_string(), "rank 0: rank 1 is gone");
    assert_eq!(graph.launch(own.stream.handle()).expect_err("it stays so"), error);
    shared.close(graph).expect("all come");
}

fn absent(shared: &mut Shared, rank: u32, ranks: u32) {
    let plan = plan("allreduce", "ring", ranks, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &Case::new(RedOp::Sum, DType::F32));
    let own = own(shared, &call, rank);
    let ready = prepare(shared, &call, &own);
    shared.close(ready).expect("all come");
    let ready = prepare(shared, &call, &own);
    let graph = shared.capture(ready, LIMIT).expect("it is captured");
    shared.close(graph).expect("all come");
}

fn start(rank: u32, ranks: u32, mode: &str, folder: &Path) -> Child {
    let program = std::env::current_exe().expect("this test is a program");
    let mut command = Command::new(program);
    command.args(["--exact", "processes::child", "--ignored", "--nocapture"]).env("TEST_FOLDER", folder);
    command.env("TEST_RANK", rank.to_string()).env("TEST_RANKS", ranks.to_string()).env("TEST_MODE", mode);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn processes(ranks: u32, mode: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let children: Vec<Child> = (0..ranks).map(|rank| start(rank, ranks, mode, folder.path())).collect();
    for (rank, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(&format!("DONE {rank}")), "rank {rank} of {ranks}: {text}{errors}");
    }
}

#[test]
fn processes_give_the_bits_of_the_cpu() {
    processes(2, "runs");
    processes(3, "runs");
}

#[test]
fn a_process_that_does_not_come_ends_the_wait() {
    processes(2, "late");
}
