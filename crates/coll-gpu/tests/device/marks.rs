//! What is measured on a device, as a table: it is printed and never judged, for times are those of the machine it runs on.
//! On the stand-in sizes are small and times mean nothing.

use crate::support::memory::{LIMIT, Memory, prepare};
use crate::support::{Call, Case, devices, group, is_stand_in, plan};
use coll::Options;
use coll_base::{DType, RedOp};
use coll_gpu::measure;
use std::time::Instant;

/// Times each figure is taken; the best is told.
const ROUNDS: usize = 5;
const RANKS: u32 = 8;
/// Of a sum in place, to the device's own copy.
const MARK: f64 = 0.9;

#[test]
#[ignore = "it measures; tests/gpu/device.sh runs it alone"]
fn table() {
    if devices().is_none() {
        return;
    }
    let (large, rounds) = if is_stand_in() { (4096, 1) } else { (256 << 20, ROUNDS) };
    println!("| what | size | time or rate | against | share |");
    println!("|---|---|---|---|---|");
    let copy_ns = reductions(large, rounds);
    let one_rank = large / 8;
    for schedule in ["one_shot", "two_shot", "recursive_doubling", "ring"] {
        allreduce(schedule, one_rank, copy_ns, rounds);
    }
    let sizes: &[u64] = if is_stand_in() { &[1024] } else { &[1024, 64 << 10, 1 << 20] };
    sizes.iter().for_each(|&bytes| replay(bytes, rounds));
}

/// The least of what is measured in so many rounds.
fn best(rounds: usize, measured: impl FnMut(usize) -> f64) -> f64 {
    (0..rounds).map(measured).fold(f64::INFINITY, f64::min)
}

/// A sum of `f32` in place reads two bytes and writes one where a copy reads one and writes one. Nanoseconds for a byte that
/// is copied within the slowest device.
fn reductions(bytes: u64, rounds: usize) -> f64 {
    let all: Vec<_> = (0..rounds).map(|_| measure(bytes).expect("there is memory")).collect();
    let copy_ns = best(rounds, |round| all[round].copy_ns);
    let reduce_ns = best(rounds, |round| all[round].reduce_ns);
    let (copies, sums) = (2.0 / copy_ns, 3.0 / reduce_ns);
    println!("| copy, read and write | {bytes} B | {copies:.1} GB/s | | |");
    let share = sums / copies;
    let verdict = if share < MARK { "below" } else { "reaches" };
    println!(
        "| f32 sum in place, reads and write | {bytes} B | {sums:.1} GB/s | copy | {share:.2}, {verdict} {MARK} |"
    );
    copy_ns
}

fn call(bytes: u64) -> Case {
    let size = DType::F32.size_bytes();
    Case { elements: (bytes / size).max(1), ..Case::new(RedOp::Sum, DType::F32) }
}

/// All ranks on one device. Each input must be read once and each output written once, as by a copy.
fn allreduce(schedule: &str, bytes: u64, copy_ns: f64, rounds: usize) {
    let Some(plan) = plan("allreduce", schedule, RANKS, 0, &Options::default()) else { return };
    let call = Call::new(&plan, &call(bytes));
    let sent: usize = call.before.iter().flatten().map(|[input, _]| input.len()).sum();
    let group = group(RANKS, 1);
    let memory = Memory::new(&group, &call);
    let (pointers, handles) = (memory.pointers(), memory.handles());
    let mut prepared = prepare(&group, &call);
    let mut once = || {
        let start = Instant::now();
        prepared.launch(&pointers, &handles).expect("it is put on streams");
        prepared.wait(LIMIT).expect("it ends");
        start.elapsed().as_secs_f64() * 1e9
    };
    once();
    let took_ns = best(4 * rounds, |_| once());
    let (us, share) = (took_ns / 1e3, sent as f64 * copy_ns / took_ns);
    println!(
        "| allreduce.{schedule}, {RANKS} ranks on one device | {bytes} B a rank | {us:.1} us | copy of all inputs | {share:.2} |"
    );
}

/// Runs that follow each other, put on streams one by one and as a graph.
fn replay(bytes: u64, rounds: usize) {
    let runs = if is_stand_in() { 1 } else { 20u32 };
    let plan = plan("allreduce", "two_shot", RANKS, 0, &Options::default()).expect("it applies");
    let call = Call::new(&plan, &call(bytes));
    let group = group(RANKS, 1);
    let memory = Memory::new(&group, &call);
    let (pointers, handles) = (memory.pointers(), memory.handles());
    let mut prepared = prepare(&group, &call);
    let mut graph = prepare(&group, &call).capture(&pointers).expect("it is captured");
    // One round more, whose time is not the best: it warms up.
    let launches_us = best(rounds + 1, |_| {
        let start = Instant::now();
        (0..runs).for_each(|_| prepared.launch(&pointers, &handles).expect("it is put on streams"));
        prepared.wait(LIMIT).expect("it ends");
        start.elapsed().as_secs_f64() * 1e6 / f64::from(runs)
    });
    let graphs_us = best(rounds + 1, |_| {
        let start = Instant::now();
        (0..runs).for_each(|_| graph.launch(&handles).expect("it is put on streams"));
        graph.wait(LIMIT).expect("it ends");
        start.elapsed().as_secs_f64() * 1e6 / f64::from(runs)
    });
    let share = launches_us / graphs_us;
    println!(
        "| graph replay, allreduce.two_shot, {RANKS} ranks | {bytes} B a rank | {graphs_us:.1} us | launches, {launches_us:.1} us | {share:.2} times as fast |"
    );
}
