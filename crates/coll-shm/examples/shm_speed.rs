//! Times of a plan over shared memory, between threads or between processes:
//!
//! ```console
//! $ collc compile schedules/allreduce/ring.coll --ranks 4 --emit plan > ring4.plan
//! $ cargo run --release -p coll-shm --example shm_speed -- processes ring4.plan 8 1024 1048576
//! ```
//!
//! Elements are f32 and are summed, out of place, on ordinary memory. Before each iteration the ranks meet; its time is
//! the largest over them. `pp` is the way of one byte from rank 0 to rank 1, in the same minute: on a virtual machine it
//! tells how far apart the cores were.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use coll_base::{DType, RedOp};
use coll_exec::{Binding, Bound, BufferMemory, Interest, Link, Placement, RunOptions, Transport};
use coll_kernel::Reducer;
use coll_plan::Plan;
use coll_shm::{Options, ShmTransport, processes, threads};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where ranks meet between iterations.
const MEETING: u32 = 63;

/// What one rank measured: ping-pong and iterations, in microseconds.
struct Times {
    ping_pong_us: f64,
    /// In a row, without meeting in between.
    in_a_row_us: f64,
    iterations_us: Vec<f64>,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, file, sizes @ ..] = &args[..] else {
        panic!("usage: shm_speed threads|processes PLAN BYTES...")
    };
    let plan = coll_plan::from_text(&std::fs::read_to_string(file).expect("the plan can be read"));
    let plan = plan.expect("it is a plan");
    let sizes: Vec<u64> = sizes.iter().map(|size| size.parse().expect("a number of bytes")).collect();
    match std::env::var("SHM_SPEED_RANK") {
        Ok(rank) => return child(rank.parse().expect("a rank"), &plan, &sizes),
        Err(_) => println!(
            "{:>10} {:>10} {:>10} {:>10} {:>10} {:>6}  {} over {mode}",
            "bytes", "median", "min", "p99", "in a row", "pp", plan.name
        ),
    }
    let results = if mode == "threads" { over_threads(&plan, &sizes) } else { over_processes(&plan, &args) };
    for (at, size) in sizes.iter().enumerate() {
        let ranks: Vec<&Times> = results.iter().map(|rank| &rank[at]).collect();
        let largest =
            |times: &dyn Fn(&Times) -> f64| ranks.iter().map(|rank| times(rank)).fold(0.0, f64::max);
        let count = ranks[0].iterations_us.len();
        let mut all: Vec<f64> = (0..count).map(|k| largest(&|rank| rank.iterations_us[k])).collect();
        all.sort_by(f64::total_cmp);
        println!(
            "{size:>10} {:>10.2} {:>10.2} {:>10.2} {:>10.2} {:>6.3}",
            all[count / 2],
            all[0],
            all[count * 99 / 100],
            largest(&|rank| rank.in_a_row_us),
            largest(&|rank| rank.ping_pong_us),
        );
    }
}

fn options() -> Options {
    let ring = std::env::var("SHM_SPEED_RING").ok().map(|bytes| bytes.parse().expect("bytes"));
    Options { ring_bytes: ring, ..Options::default() }
}

fn over_threads(plan: &Plan, sizes: &[u64]) -> Vec<Vec<Times>> {
    let world = threads::world_with(plan.world(), &options()).expect("there is memory for a world");
    std::thread::scope(|scope| {
        let ranks: Vec<_> =
            world.into_iter().map(|transport| scope.spawn(|| rank(transport, plan, sizes))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect()
    })
}

/// The parent passes blobs round between its children, over their standard input and output.
fn over_processes(plan: &Plan, args: &[String]) -> Vec<Vec<Times>> {
    let program = std::env::current_exe().expect("a program has a path");
    let start = |rank: u32| {
        let mut command = Command::new(&program);
        command.args(args).env("SHM_SPEED_RANK", rank.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
    };
    let mut children: Vec<Child> = (0..plan.world()).map(start).collect();
    for _ in 0..2 {
        let blobs: Vec<Vec<u8>> =
            children.iter_mut().map(|child| read(child.stdout.as_mut().unwrap())).collect();
        for child in &mut children {
            blobs.iter().for_each(|blob| write(child.stdin.as_mut().unwrap(), blob));
        }
    }
    let decode = |blob: Vec<u8>| {
        let numbers: Vec<f64> = blob.chunks(8).map(|x| f64::from_le_bytes(x.try_into().unwrap())).collect();
        Times { ping_pong_us: numbers[0], in_a_row_us: numbers[1], iterations_us: numbers[2..].to_vec() }
    };
    let sizes = args.len() - 2;
    let mut results: Vec<Vec<Times>> = Vec::new();
    for child in &mut children {
        let out = child.stdout.as_mut().unwrap();
        results.push((0..sizes).map(|_| decode(read(out))).collect());
    }
    children.into_iter().for_each(|mut child| assert!(child.wait().expect("it ends").success()));
    results
}

fn child(rank_number: u32, plan: &Plan, sizes: &[u64]) {
    let mut exchange = |blob: Vec<u8>| {
        write(&mut std::io::stdout(), &blob);
        Ok((0..plan.world()).map(|_| read(&mut std::io::stdin())).collect())
    };
    let transport = processes::join(rank_number, plan.world(), &mut exchange, &options()).expect("they meet");
    assert_eq!(transport.unreached().count(), 0, "all ranks are on this machine");
    for times in rank(transport, plan, sizes) {
        let numbers = [times.ping_pong_us, times.in_a_row_us].into_iter().chain(times.iterations_us);
        write(&mut std::io::stdout(), &numbers.flat_map(f64::to_le_bytes).collect::<Vec<u8>>());
    }
}

fn write(to: &mut impl Write, blob: &[u8]) {
    to.write_all(&(blob.len() as u64).to_le_bytes()).expect("the other end reads");
    to.write_all(blob).expect("the other end reads");
    to.flush().expect("the other end reads");
}

fn read(from: &mut impl Read) -> Vec<u8> {
    let mut length = [0; 8];
    from.read_exact(&mut length).expect("the other end writes");
    let mut blob = vec![0; u64::from_le_bytes(length) as usize];
    from.read_exact(&mut blob).expect("the other end writes");
    blob
}

fn rank(mut transport: ShmTransport, plan: &Plan, sizes: &[u64]) -> Vec<Times> {
    let me = transport.rank();
    let others = (0..plan.world()).filter(|&peer| peer != me);
    let meeting: Vec<Link> = others.map(|peer| Link { peer, channel: MEETING }).collect();
    transport.connect(meeting.clone()).expect("there is memory");
    transport.begin(Duration::from_secs(20));
    let mut operation = 0;
    let times =
        sizes.iter().map(|&size| measure(&mut transport, plan, size, &meeting, &mut operation)).collect();
    meet(&mut transport, &meeting);
    transport.shutdown();
    times
}

fn measure(
    transport: &mut ShmTransport,
    plan: &Plan,
    size: u64,
    meeting: &[Link],
    operation: &mut u64,
) -> Times {
    let me = transport.rank();
    let reducer = Reducer::builtin(RedOp::Sum, DType::F32).expect("it is supported");
    let counts = plan.contract.counts((size / 4).max(1)).expect("counts fit");
    let placements: Vec<Placement> = plan.contract.buffers.iter().map(|_| Placement::Separate).collect();
    let mut bound = Bound::new(Binding {
        plan,
        rank: me,
        counts: &counts,
        element_size_bytes: 4,
        reducer: plan.contract.reduces().then_some(&reducer),
        placements: &placements,
    })
    .expect("it can be bound");
    transport.connect(bound.links().collect::<Vec<_>>()).expect("there is memory");
    let sides = |at: usize| bound.buffer_bytes(at).expect("it has this buffer");
    let fill = |bytes: u64, value: f32| value.to_le_bytes().repeat(bytes as usize / 4);
    let mut memory: Vec<[Vec<u8>; 2]> = (0..placements.len())
        .map(|at| [fill(sides(at)[0], me as f32 + 1.0), fill(sides(at)[1], 0.0)])
        .collect();
    let mut once = |transport: &mut ShmTransport| {
        let mut buffers: [BufferMemory<'_>; 1] =
            memory.each_mut_first().map(|[input, output]| BufferMemory::Separate { input, output });
        let options = RunOptions { operation: *operation, ..RunOptions::default() };
        *operation += 1;
        bound.run(transport, &mut buffers, options).expect("it runs");
    };
    let iterations = ((1u64 << 28) / size.max(1 << 12)).clamp(30, 5000) as usize;
    for _ in 0..iterations / 10 + 3 {
        meet(transport, meeting);
        once(transport);
    }
    let ping_pong_us = ping_pong(transport, meeting);
    let mut iterations_us = Vec::with_capacity(iterations);
    for _ in 0..iterations {
        meet(transport, meeting);
        let start = Instant::now();
        once(transport);
        iterations_us.push(start.elapsed().as_secs_f64() * 1e6);
    }
    meet(transport, meeting);
    let start = Instant::now();
    (0..iterations).for_each(|_| once(transport));
    let in_a_row_us = start.elapsed().as_secs_f64() * 1e6 / iterations as f64;
    if plan.contract.collective == "allreduce" {
        let n = plan.world() as f32;
        let due = (n * (n + 1.0) / 2.0).to_le_bytes();
        assert!(memory[0][1].chunks(4).all(|found| found == due), "rank {me}: a wrong element");
    }
    Times { ping_pong_us, in_a_row_us, iterations_us }
}

/// The only buffer of a plan, as an array that a call can borrow without allocating.
trait First {
    fn each_mut_first(&mut self) -> [&mut [Vec<u8>; 2]; 1];
}

impl First for Vec<[Vec<u8>; 2]> {
    fn each_mut_first(&mut self) -> [&mut [Vec<u8>; 2]; 1] {
        let [only] = &mut self[..] else { panic!("plans of one buffer can be timed") };
        [only]
    }
}

/// Everybody waits for everybody.
fn meet(transport: &mut ShmTransport, meeting: &[Link]) {
    for &link in meeting {
        say(transport, link);
    }
    for &link in meeting {
        hear(transport, link);
    }
}

fn say(transport: &mut ShmTransport, link: Link) {
    while transport.try_send(link, &[&[1]]).expect("the peer is there") == 0 {
        transport.wait(&[Interest::writable(link)]).expect("the peer is there");
    }
}

fn hear(transport: &mut ShmTransport, link: Link) {
    while transport.try_recv(link, &mut [0]).expect("the peer is there") == 0 {
        transport.wait(&[Interest::readable(link)]).expect("the peer is there");
    }
}

fn ping_pong(transport: &mut ShmTransport, meeting: &[Link]) -> f64 {
    const TURNS: u32 = 200;
    meet(transport, meeting);
    let start = Instant::now();
    let me = transport.rank();
    if me < 2 {
        let link = Link { peer: 1 - me, channel: MEETING };
        for _ in 0..TURNS {
            if me == 0 {
                say(transport, link);
            }
            hear(transport, link);
            if me == 1 {
                say(transport, link);
            }
        }
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(2 * TURNS)
}
