//! Ranks that are processes, in turn on the devices there are: they open each other's memory.

use crate::support::processes::{ByFiles, run};
use crate::support::{Call, Case, devices, plan};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_gpu::Shared;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The child: one rank, told by its environment which. It does nothing where it is told nothing.
#[test]
#[ignore = "it is run by the test of this file, once for each rank"]
fn child() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let (Some(rank), Some(ranks)) = (number("TEST_RANK"), number("TEST_RANKS")) else { return };
    let folder = PathBuf::from(std::env::var_os("TEST_FOLDER").expect("there is a folder"));
    let Some(found) = devices() else { return };
    let device = rank % found.devices.len() as u32;
    let exchange = ByFiles { folder, rank, ranks, round: 0 };
    let mut shared = Shared::join(rank, ranks, device, Box::new(exchange)).expect("the device opens");
    for (collective, name) in [("allreduce", "ring"), ("alltoall", "pairwise"), ("scan", "chain")] {
        let plan = plan(collective, name, ranks, 0, &Options::default()).expect("it applies");
        let call = Call::new(&plan, &Case { in_place: name == "ring", ..Case::new(RedOp::Sum, DType::F32) });
        run(&mut shared, &call, rank);
    }
    println!("DONE {rank}");
}

#[test]
fn processes_give_the_bits_of_the_cpu() {
    if devices().is_none() {
        return;
    }
    let (ranks, folder) = (2, tempfile::tempdir().expect("a folder"));
    let program = std::env::current_exe().expect("this test is a program");
    let start = |rank: u32| -> Child {
        let mut command = Command::new(&program);
        command.args(["--exact", "processes::child", "--ignored", "--nocapture"]);
        command.env("TEST_RANK", rank.to_string()).env("TEST_RANKS", ranks.to_string());
        command.env("TEST_FOLDER", folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    let children: Vec<Child> = (0..ranks).map(start).collect();
    for (rank, child) in children.into_iter().enumerate() {
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(&format!("DONE {rank}")), "rank {rank} of {ranks}: {text}{errors}");
    }
}
