//! Flight records of a job in which one rank makes another call than the others, for PyTorch's analyser:
//!
//! `cargo run -p coll --example flight_record FOLDER`, then `torchfrtrace FOLDER`. With `right` behind the folder all calls match.

#![allow(clippy::print_stderr)]

use coll::{CommError, Communicator, RedOp};
use std::path::PathBuf;
use std::thread;

const RANKS: u32 = 3;

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("a folder"));
    let all_right = args.next().is_some_and(|word| word == "right");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let ranks = Communicator::local(RANKS).expect("threads can be had");
    let threads = ranks.into_iter().map(|mut comm| {
        let file = folder.join(format!("record{}", comm.rank()));
        thread::spawn(move || {
            if let Err(error) = calls(&mut comm, all_right) {
                eprintln!("rank {}: {error}", comm.rank());
            }
            std::fs::write(file, comm.flight_record_pickle()).expect("a file can be written");
            comm
        })
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| drop(thread.join().expect("no rank panics")));
}

/// Each kind of call, and at the end one that is not everybody's.
fn calls(comm: &mut Communicator, all_right: bool) -> Result<(), CommError> {
    let (rank, n) = (comm.rank(), comm.world() as usize);
    let (mine, mut one, mut all) = (vec![rank as f32; 8], vec![0f32; 8], vec![0f32; 8 * n]);
    let whole = vec![1f32; 8 * n];
    comm.barrier()?;
    comm.all_reduce(&mine, &mut one, RedOp::Sum)?;
    comm.broadcast(&mut one, 1)?;
    comm.reduce(&mine, Some(&mut one), RedOp::Sum, 0)?;
    comm.gather(&mine, Some(&mut all), 0)?;
    comm.scatter(Some(&whole), &mut one, 0)?;
    comm.all_gather(&mine, &mut all)?;
    comm.reduce_scatter(&whole, &mut one, RedOp::Sum)?;
    comm.all_to_all(&whole, &mut all)?;
    comm.scan(&mine, &mut one, RedOp::Sum)?;
    let counts: Vec<usize> = (1..=n).collect();
    let (own, sum) = (counts[rank as usize], counts.iter().sum());
    comm.all_gather_v(&mine[..own], &mut vec![0f32; sum], &counts)?;
    match rank {
        0 => comm.send(&mine, 1)?,
        1 => comm.receive(&mut one, 0)?,
        _ => {}
    }
    match rank == 2 && !all_right {
        true => comm.broadcast(&mut one, 0),
        false => comm.all_reduce_in_place(&mut one, RedOp::Max),
    }
}
