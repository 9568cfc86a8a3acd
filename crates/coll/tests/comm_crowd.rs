//! Sixty-four ranks as processes of one machine: what memory each takes, and how long they need until all have run a ring.

use coll::select::Chooser;
use coll::{Communicator, RedOp, Via};
use coll_cost::Tuning;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const RANKS: u32 = 64;

/// What a rank may take beyond its user's buffers, as its part of what it shares with others.
const LIMIT_KIB: u64 = 40 << 10;

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
    // Without the choice among schedules, which is a matter of its own.
    let forced = "allreduce.ring,alltoall.pairwise".parse().expect("there are such schedules");
    let chooser = Arc::new(Chooser::new(Tuning::shipped()).with_forced(forced));
    let builder = Communicator::builder().from_env().via(Via::Shm).chooser(chooser);
    let comm = builder.time_limit(Duration::from_secs(100)).build();
    let mut comm = comm.unwrap_or_else(|error| panic!("{error}"));
    let met = began.elapsed();
    let (input, mut sum) = (vec![1f32; 1 << 10], vec![0f32; 1 << 10]);
    comm.all_reduce(&input, &mut sum, RedOp::Sum).expect("all are there");
    let (ready, cpu_ms) = (began.elapsed(), cpu_ms());
    assert!(sum.iter().all(|&sum| sum == RANKS as f32));
    let after_ring = pss_kib() - before;
    // Every pair of ranks, and messages that fill rings.
    let (blocks, mut others) = (vec![1u8; 1024 * RANKS as usize], vec![0u8; 1024 * RANKS as usize]);
    comm.all_to_all(&blocks, &mut others).expect("all are there");
    let mut large = vec![1f32; 1 << 20];
    comm.all_reduce_in_place(&mut large, RedOp::Sum).expect("all are there");
    comm.barrier().expect("all are there");
    let buffers_kib = (4 * ((1 << 20) + (2 << 10)) + 2 * 1024 * u64::from(RANKS)) >> 10;
    let after_all = (pss_kib() - before).saturating_sub(buffers_kib);
    // Nobody goes before all have looked: what is shared would become the others'.
    comm.barrier().expect("all are there");
    println!("figures: {} {} {cpu_ms} {after_ring} {after_all}", met.as_millis(), ready.as_millis());
}

#[test]
fn sixty_four_ranks_take_little_memory_and_time() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = socket.local_addr().expect("it has an address").port();
    drop(socket);
    let began = Instant::now();
    let ranks: Vec<Child> = (0..RANKS).map(|rank| start(rank, port)).collect();
    let (mut most, mut cpu_ms) = ([0u64; 5], 0);
    for (rank, child) in ranks.into_iter().enumerate() {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout);
        let figures = said.lines().find_map(|line| line.split("figures: ").nth(1));
        let Some(figures) = figures else {
            panic!("rank {rank}: {said}{}", String::from_utf8_lossy(&output.stderr));
        };
        let figures: Vec<u64> = figures.split(' ').map(|figure| figure.parse().expect("a number")).collect();
        cpu_ms += figures[2];
        most.iter_mut().zip(figures).for_each(|(most, figure)| *most = (*most).max(figure));
    }
    let [met_ms, ready_ms, _, after_ring_kib, after_all_kib] = most;
    eprintln!(
        "{RANKS} ranks: met after {met_ms} ms, a ring run after {ready_ms} ms, for which all have run {cpu_ms} ms; at most \
         {after_ring_kib} KiB each then, and {after_all_kib} KiB after an all-to-all and an all-reduce of 4 MiB; {:?} in all",
        began.elapsed()
    );
    assert!(
        after_ring_kib <= LIMIT_KIB && after_all_kib <= LIMIT_KIB,
        "{after_ring_kib}, {after_all_kib} KiB"
    );
}
