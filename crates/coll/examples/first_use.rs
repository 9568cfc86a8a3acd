//! What the first call of an operation costs before anything is sent: choosing, compiling and proving, in a process that has
//! done nothing yet.
//!
//! `cargo run --release -p coll --example first_use` prints a table; with an operation, a rank count and a size in bytes it
//! prints one figure in milliseconds, of a question that is asked once. An operation may be followed by how it is asked for:
//! `allreduce+deterministic`; `allreduce+users`, with an operator of one's own; `allreduce+threads`; `allreduce+hosts`, on machines of two
//! ranks each; `allreduce+measured`, by constants that differ from the shipped ones and have no answers beside them.

#![allow(clippy::print_stdout)]

use coll::select::{Chooser, Question};
use coll_cost::{Constants, Layout, Tuning};
use std::process::Command;
use std::time::Instant;

const OPERATIONS: [&str; 9] = [
    "allreduce",
    "broadcast",
    "allgather",
    "alltoall",
    "allreduce+deterministic",
    "allreduce+users",
    "allreduce+threads",
    "allreduce+hosts",
    "allreduce+measured",
];
const RANKS: [u32; 4] = [2, 8, 16, 64];
const SIZES: [u64; 3] = [8, 64 << 10, 64 << 20];
/// Each figure is the least of so many processes', as others may take the core away.
const TRIES: u32 = 20;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [operation, ranks, bytes] => {
            let (operation, way) = operation.split_once('+').unwrap_or((operation, ""));
            let operation = coll::canonical_operation(operation).expect("an operation");
            let (ranks, bytes) = (ranks.parse().expect("ranks"), bytes.parse().expect("bytes"));
            println!("{:.3}", first_ms(operation, way, ranks, bytes));
        }
        _ => table(),
    }
}

/// The first question's time, in milliseconds: all of it is this thread's own work.
fn first_ms(operation: &'static str, way: &str, ranks: u32, bytes: u64) -> f64 {
    let mut tuning = Tuning::shipped();
    let one_host = Layout::one_host(2);
    let plain = Question { layout: one_host, transport: "shm", ..Question::new(operation, ranks, bytes) };
    let question = match way {
        "" | "measured" => plain,
        "deterministic" => Question { deterministic: true, ..plain },
        "users" => Question { user_operator: true, ..plain },
        "threads" => Question { transport: "threads", ..plain },
        "hosts" => Question { transport: "tcp", layout: Layout { ranks_per_host: 2, cores: 2 }, ..plain },
        _ => panic!("`{way}` is no way to ask"),
    };
    if way == "measured" {
        let shipped = tuning.of("shm").expect("they are shipped").clone();
        tuning.set(Constants { send_us: 1.1 * shipped.send_us, ..shipped });
    }
    let began = Instant::now();
    let chooser = Chooser::new(tuning);
    let table = chooser.table(&question).expect("one serves");
    std::hint::black_box(table.pick(bytes));
    began.elapsed().as_secs_f64() * 1e3
}

fn table() {
    println!("first question, ms, least of {TRIES} processes; shm, 2 cores");
    println!("{:<24} {:>6} {:>10} {:>10} {:>10}", "", "ranks", "8 B", "64 KiB", "64 MiB");
    let program = std::env::current_exe().expect("this program has a file");
    for operation in OPERATIONS {
        for ranks in RANKS {
            let figure = |bytes: u64| {
                let once = |_| {
                    let args = [operation.to_string(), ranks.to_string(), bytes.to_string()];
                    let output = Command::new(&program).args(args).output().expect("it runs");
                    let text = String::from_utf8_lossy(&output.stdout).trim().to_string();
                    text.parse::<f64>().expect("a figure")
                };
                (0..TRIES).map(once).fold(f64::INFINITY, f64::min)
            };
            let [small, medium, large] = SIZES.map(figure);
            println!("{operation:<24} {ranks:>6} {small:>10.2} {medium:>10.2} {large:>10.2}");
        }
    }
}
