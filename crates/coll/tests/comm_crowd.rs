//! Sixty-four ranks as processes of one machine: what memory each takes, and how long they need until all have run a ring.

#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "comm/port.rs"]
mod port;

use coll::{Buffer, Communicator, RedOp, Source, Via};
use port::free_port;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const RANKS: u32 = 64;

/// What a rank may take beyond its user's buffers, as its part of what it shares with others.
const LIMIT_KIB: u64 = 40 << 10;

/// How long two cores may take until a ring has run on all ranks.
const READY_MS: u64 = 2000;

/// Set in the processes that this test starts.
const ROLE: &str = "COLL_TEST_CROWD";

fn start(rank: u32, port: u16) -> Child {
    Command::new(std::env::current_exe().expect("this test has a file"))
        .args(["--exact", "as_one_of_many", "--nocapture"])
        .env(ROLE, "rank")
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", RANKS.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// KiB of this process's memory, what is shared divided by those who share it.
fn pss_kib() -> u64 {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").expect("there is /proc");
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).expect("it has a sum");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Milliseconds that this process's threads have run so far, in hundredths of a second.
fn cpu_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("there is /proc");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().unwrap_or(0));
    10 * ticks.sum::<u64>()
}

#[test]
fn as_one_of_many() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let (began, before) = (Instant::now(), pss_kib());
    let builder = Communicator::builder().from_env().via(Via::Shm).time_limit(Duration::from_secs(100));
    let mut comm = builder.build().unwrap_or_else(|error| panic!("{error}"));
    let met = began.elapsed();
    let ring = include_str!("../../../schedules/allreduce/ring.coll");
    let ring = comm.load(&Source::from_text("ring.coll", ring), None, &[], 0).expect("it is right");
    let planned_cpu_ms = cpu_ms();
    let sum = |comm: &mut Communicator, len: usize| {
        let (input, mut sum) = (vec![1f32; len], vec![0f32; len]);
        let counts = ring.counts(len as u64).expect("they fit");
        let buffers = vec![Buffer::separate(&input, &mut sum)];
        comm.run_custom(&ring, &counts, buffers, Some(RedOp::Sum.into())).expect("all are there");
        assert!(sum.iter().all(|&sum| sum == RANKS as f32));
    };
    sum(&mut comm, 1 << 10);
    let (ready, cpu_ms) = (began.elapsed(), cpu_ms());
    let after_ring = pss_kib() - before;
    // Every pair of ranks, and messages that fill rings.
    let (blocks, mut others) = (vec![1u8; 1024 * RANKS as usize], vec![0u8; 1024 * RANKS as usize]);
    let pairs = include_str!("../../../schedules/alltoall/pairwise.coll");
    let pairs = comm.load(&Source::from_text("pairwise.coll", pairs), None, &[], 0).expect("it is right");
    let counts = pairs.counts(blocks.len() as u64).expect("they fit");
    let buffers = vec![Buffer::input(&blocks), Buffer::output(&mut others)];
    comm.run_custom(&pairs, &counts, buffers, None).expect("all are there");
    drop((blocks, others));
    sum(&mut comm, 1 << 20);
    let after_all = pss_kib() - before;
    // Nobody goes before all have looked: what is shared would become the others'.
    sum(&mut comm, 1);
    let (met_ms, ready_ms) = (met.as_millis(), ready.as_millis());
    println!("figures: {met_ms} {ready_ms} {planned_cpu_ms} {cpu_ms} {after_ring} {after_all}");
}

#[test]
fn sixty_four_ranks_take_little_memory_and_time() {
    let port = free_port();
    let began = Instant::now();
    let ranks: Vec<Child> = (0..RANKS).map(|rank| start(rank, port)).collect();
    let (mut most, mut cpu_ms) = ([0u64; 6], [0; 2]);
    for (rank, child) in ranks.into_iter().enumerate() {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout);
        let figures = said.lines().find_map(|line| line.split("figures: ").nth(1));
        let Some(figures) = figures else {
            panic!("rank {rank}: {said}{}", String::from_utf8_lossy(&output.stderr));
        };
        let figures: Vec<u64> = figures.split(' ').map(|figure| figure.parse().expect("a number")).collect();
        cpu_ms = [cpu_ms[0] + figures[2], cpu_ms[1] + figures[3]];
        most.iter_mut().zip(figures).for_each(|(most, figure)| *most = (*most).max(figure));
    }
    let [met_ms, ready_ms, _, _, after_ring_kib, after_all_kib] = most;
    eprintln!(
        "{RANKS} ranks: met after {met_ms} ms, a ring run after {ready_ms} ms; all together ran {cpu_ms:?} ms until they had a \
         plan and until the ring was run; at most {after_ring_kib} KiB each then, and {after_all_kib} KiB after an all-to-all and an all-reduce of 4 MiB; {:?} in all",
        began.elapsed()
    );
    // What is measured by the clock is a matter of who else runs. Two cores of their own would need half of what all ran.
    assert!(cpu_ms[1] <= 2 * READY_MS, "{cpu_ms:?} ms");
    assert!(
        after_ring_kib <= LIMIT_KIB && after_all_kib <= LIMIT_KIB,
        "{after_ring_kib}, {after_all_kib} KiB"
    );
}
