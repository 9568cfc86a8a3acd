//! Times blocking calls of a communicator whose ranks are threads: the first of its kind, and the median of many.
//!
//! `cargo run --release -p coll --example comm_speed -- 2` (ranks; add `tcp` to leave shared memory out).

#![allow(clippy::print_stdout)]

use coll::{CommError, Communicator, RedOp, Via};
use std::time::Instant;

const SIZES_BYTES: [usize; 5] = [8, 1 << 10, 32 << 10, 1 << 20, 16 << 20];

fn main() {
    let mut args = std::env::args().skip(1);
    let ranks = args.next().and_then(|text| text.parse().ok()).unwrap_or(2);
    let via = if args.next().as_deref() == Some("tcp") { Via::Tcp } else { Via::Fastest };
    let began = Instant::now();
    let comms = Communicator::builder().via(via).local(ranks).unwrap_or_else(|error| panic!("{error}"));
    println!("{ranks} ranks met in {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    let threads: Vec<_> = comms.into_iter().map(|comm| std::thread::spawn(move || time(comm))).collect();
    for thread in threads {
        thread.join().expect("no rank panics").unwrap_or_else(|error| panic!("{error}"));
    }
}

fn time(mut comm: Communicator) -> Result<(), CommError> {
    for bytes in SIZES_BYTES {
        let (input, mut output) = (vec![1f32; bytes / 4], vec![0f32; bytes / 4]);
        comm.barrier()?;
        let began = Instant::now();
        comm.all_reduce(&input, &mut output, RedOp::Sum)?;
        let first_ms = began.elapsed().as_secs_f64() * 1e3;
        let rounds = (200_000_000 / (bytes + 20_000)).clamp(20, 20_000);
        let mut times_us: Vec<f64> = (0..rounds)
            .map(|_| {
                let began = Instant::now();
                comm.all_reduce(&input, &mut output, RedOp::Sum)?;
                Ok(began.elapsed().as_secs_f64() * 1e6)
            })
            .collect::<Result<_, CommError>>()?;
        times_us.sort_by(f64::total_cmp);
        if comm.rank() == 0 {
            let median_us = times_us[times_us.len() / 2];
            println!(
                "{bytes:>10} B: first {first_ms:>8.2} ms, then {median_us:>10.2} µs (median of {rounds})"
            );
        }
    }
    Ok(())
}
