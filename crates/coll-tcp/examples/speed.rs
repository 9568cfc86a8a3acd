//! How fast links are on this machine: latency of small messages, and bandwidth both ways at once.
//!
//! `cargo run --release -p coll-tcp --example speed -- [ranks]`. Each rank is a process; all talk to their two
//! neighbours in a ring. One line for each size: time for one step (send to the next, receive from the one before; a
//! ping-pong with two ranks), bandwidth for each direction, and calls to the system for each message.
//!
//! `SPEED_PIN=1` binds ranks to cores in turn (by `taskset`); `SPEED_SPIN_US`, `SPEED_BUFFER` and `SPEED_TURN` (bytes
//! for one call) try other settings than the defaults; `SPEED_SIZES` other sizes, as a list.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::env;
use std::process::{Command, exit};
use std::time::{Duration, Instant};

use coll_exec::{Fault, Interest, Link, Transport};
use coll_tcp::{Counters, JoinOptions, Rendezvous, TcpTransport, join};

const HEADER: [u8; 32] = [7; 32];

fn main() {
    let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    let outcome = match (number("SPEED_RANK"), number("SPEED_WORLD"), env::var("SPEED_ADDRESS")) {
        (Some(rank), Some(world), Ok(address)) => rank_part(rank, world, &address),
        _ => launch(env::args().nth(1).and_then(|ranks| ranks.parse().ok()).unwrap_or(2)),
    };
    if let Err(error) = outcome {
        eprintln!("{error}");
        exit(1);
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn launch(world: u32) -> Outcome {
    let server = Rendezvous::bind("127.0.0.1:0", "speed")?;
    let began = Instant::now();
    let mut children = Vec::new();
    for rank in 0..world {
        let program = env::current_exe()?;
        let mut command = match env::var_os("SPEED_PIN") {
            None => Command::new(program),
            Some(_) => {
                let cores = std::thread::available_parallelism()?.get() as u32;
                let mut command = Command::new("taskset");
                command.args(["-c", &(rank % cores).to_string()]).arg(program);
                command
            }
        };
        command.env("SPEED_RANK", rank.to_string()).env("SPEED_WORLD", world.to_string());
        children.push(command.env("SPEED_ADDRESS", server.address().to_string()).spawn()?);
    }
    for mut child in children {
        if !child.wait()?.success() {
            return Err("a rank failed".into());
        }
    }
    println!("{world} ranks in {:.2} s", began.elapsed().as_secs_f64());
    Ok(())
}

fn rank_part(rank: u32, world: u32, address: &str) -> Outcome {
    let mut options = JoinOptions::new(rank, world, address);
    options.token = "speed".into();
    if let Some(spin) = env::var("SPEED_SPIN_US").ok().and_then(|spin| spin.parse().ok()) {
        options.spin_limit = Duration::from_micros(spin);
    }
    options.socket_buffer_bytes = env::var("SPEED_BUFFER").ok().and_then(|bytes| bytes.parse().ok());
    let turn = env::var("SPEED_TURN").ok().and_then(|bytes| bytes.parse().ok()).unwrap_or(1 << 20);
    let began = Instant::now();
    let mut transport = join(options)?;
    let next = Link { peer: (rank + 1) % world, channel: 0 };
    let before = Link { peer: (rank + world - 1) % world, channel: 0 };
    transport.connect(&[next, before])?;
    transport.exchange(vec![])?;
    if rank == 0 {
        println!(
            "ready after {:.1} ms, {} KiB resident",
            began.elapsed().as_secs_f64() * 1e3,
            resident_kib()
        );
    }
    let sizes = env::var("SPEED_SIZES").unwrap_or("8,1024,32768,1048576,16777216,67108864".to_owned());
    for size in sizes.split(',') {
        let size: usize = size.parse()?;
        let steps = match size {
            0..=1024 => 10_000 / world as usize,
            _ => ((1usize << 29) / size / world as usize).clamp(4, 1000),
        };
        let mut run = Run { transport: &mut transport, next, before, turn };
        run.measure(size, steps)?;
    }
    transport.exchange(vec![])?;
    transport.shutdown();
    Ok(())
}

struct Run<'t> {
    transport: &'t mut TcpTransport,
    next: Link,
    before: Link,
    turn: usize,
}

impl Run<'_> {
    fn measure(&mut self, size: usize, steps: usize) -> Outcome {
        let outgoing = vec![1; size];
        let mut incoming = vec![0; size];
        for _ in 0..steps / 10 + 1 {
            self.both_ways(&outgoing, &mut incoming)?;
        }
        self.transport.exchange(vec![])?;
        let counters = self.transport.counters();
        let mut times = Vec::with_capacity(steps);
        for _ in 0..steps {
            let began = Instant::now();
            self.both_ways(&outgoing, &mut incoming)?;
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
        let calls = per_step(counters, self.transport.counters(), steps as f64);
        self.transport.exchange(vec![])?;
        times.sort_by(f64::total_cmp);
        if self.transport.rank() == 0 {
            let median = times[steps / 2];
            println!(
                "{size:>10} B {median:>10.2} us  min {:>10.2} p99 {:>10.2}  {:>6.2} GB/s  {calls}",
                times[0],
                times[steps * 99 / 100],
                size as f64 / median / 1e3
            );
        }
        Ok(())
    }

    /// Sends to the next and receives from the one before, in turns, as an executor does.
    fn both_ways(&mut self, outgoing: &[u8], incoming: &mut [u8]) -> Result<(), Fault> {
        let mut staging = [0; 8 << 10];
        let (mut sent, mut received) = (0, 0);
        let total = HEADER.len() + outgoing.len();
        while sent < total || received < total {
            let before_turn = (sent, received);
            if sent < total {
                let header = &HEADER[sent.min(HEADER.len())..];
                let from = sent.saturating_sub(HEADER.len());
                let part = &outgoing[from..outgoing.len().min(from + self.turn)];
                sent += self.transport.try_send(self.next, &[header, part])?;
            }
            if received < HEADER.len() {
                let small = total.min(staging.len());
                received += self.transport.try_recv(self.before, &mut staging[..small])?;
            } else if received < total {
                let from = received - HEADER.len();
                let to = incoming.len().min(from + self.turn);
                received += self.transport.try_recv(self.before, &mut incoming[from..to])?;
            }
            if (sent, received) == before_turn {
                let wants = |link, readable, writable| Interest { link, readable, writable, returned: false };
                let interests =
                    [wants(self.next, false, sent < total), wants(self.before, received < total, false)];
                let from = usize::from(sent >= total);
                let to = if received >= total { 1 } else { 2 };
                self.transport.wait(&interests[from..to])?;
            }
        }
        Ok(())
    }
}

fn per_step(from: Counters, to: Counters, steps: f64) -> String {
    let per = |from: u64, to: u64| (to - from) as f64 / steps;
    format!(
        "calls a step: {:.2} sends, {:.2} receives, {:.2} in vain, {:.2} yields, {:.3} sleeps",
        per(from.sends, to.sends),
        per(from.receives, to.receives),
        per(from.in_vain, to.in_vain),
        per(from.yields, to.yields),
        per(from.sleeps, to.sleeps)
    )
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
