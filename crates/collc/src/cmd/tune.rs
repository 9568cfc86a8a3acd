//! `collc tune`: measures the constants that schedules are chosen by.
//!
//! Copies and reductions are timed in this process. Then a few schedules, each of which stresses something else, are run
//! by rank processes at several sizes, and the transport's constants are fitted to what they took. What common calls take by
//! these is worked out last, and written beside them, so that first calls need not.

mod answers;
mod check;

use super::bench::{Cell, Measured, Pace, Settings, measure};
use super::choice;
use crate::args::{BenchTransport, TuneArgs};
use crate::failure::Failure;
use crate::output;
use coll::select::{Candidate, Forced};
use coll::{Bytes, Outcome, RankCounts};
use coll_base::{DType, RedOp};
use coll_cost::{Constants, Layout, Outline, Probe, REDUCED, Rate, Tuning, Work};
use coll_kernel::Reducer;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// What is run: a message, a message and a copy, an exchange, steps that wait for each other, reductions, many messages in
/// one step and the same in two.
const PROBES: [(&str, bool); 8] = [
    ("broadcast.linear", true),
    ("broadcast.linear", false),
    ("allgather.ring", true),
    ("allreduce.recursive_doubling", false),
    ("allreduce.ring", true),
    ("alltoall.linear", false),
    ("allgather.direct", true),
    ("allgather.doubling", true),
];
/// At which sizes.
const SIZES: [u64; 5] = [8, 1 << 10, 32 << 10, 1 << 20, 16 << 20];
/// What lies in the second-level cache, and what does not lie in any.
const NEAR_BYTES: usize = 256 << 10;
const FAR_BYTES: usize = 96 << 20;

/// Measures, fits, prints and writes.
pub(crate) fn run(args: &TuneArgs) -> Result<ExitCode, Failure> {
    // What is in the way is told before anything takes time.
    let mut tuning = known(&args.output)?;
    let cores = choice::cores();
    let counts = args.ranks.clone().unwrap_or_else(|| default_counts(cores));
    let counts: Vec<u32> = counts.iter().filter(|&ranks| ranks > 1).collect();
    if counts.is_empty() {
        return Err(Failure::unusable("no rank count has messages").help("give two ranks at least"));
    }
    if args.transport.contains(&BenchTransport::Cuda) {
        return Err(Failure::unusable("schedules on devices have no constants that could be measured yet")
            .help("leave `cuda` out of `--transport`"));
    }
    crate::environment::no_checksums(": constants are measured without")?;
    let answered = answers::ranks(args)?;
    let mut errors = Vec::new();
    for &transport in &args.transport {
        let constants = fitted(args, transport, &counts, cores)?;
        tuning.set(constants.clone());
        if args.check {
            errors.extend(check::errors(args, &tuning, transport, &counts, cores)?);
        }
    }
    if args.check {
        let transports: Vec<&str> = args.transport.iter().map(|transport| transport.name()).collect();
        output::print(&check::verdict(&transports, &mut errors))?;
    }
    if !args.no_answers {
        tuning = answers::with(args, &answered, tuning, cores);
    }
    output::write_file(&args.output, tuning.to_json().as_bytes())?;
    let shown = args.output.display();
    output::print(&format!("written to {shown}; COLLC_TUNE={shown} or `--constants {shown}` takes it\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// One transport's constants, measured.
fn fitted(
    args: &TuneArgs,
    transport: BenchTransport,
    counts: &[u32],
    cores: u32,
) -> Result<Constants, Failure> {
    let name = transport.name();
    let start = Tuning::shipped().of(name).cloned();
    let start = start.ok_or_else(|| Failure::unusable(format!("nothing is known of {name}")))?;
    let start = within_a_rank(start)?;
    let mut probes = Vec::new();
    for &ranks in counts {
        output::complain_raw(&format!("measuring on {ranks} ranks over {name}\n"));
        let cells = PROBES.iter().flat_map(|&(schedule, in_place)| {
            SIZES.map(|bytes| probe(schedule.to_string(), in_place, bytes))
        });
        probes.extend(measured(args, transport, ranks, cores, cells.collect())?);
    }
    let probed: Vec<Probe> = probes.iter().map(|(_, probe)| probe).map(copied).collect();
    let constants = coll_cost::fit(&start, &probed).rounded();
    output::print(&report(&constants, &probes))?;
    Ok(constants)
}

/// What the file holds already, of this transport or others.
fn known(path: &Path) -> Result<Tuning, Failure> {
    if !path.is_file() {
        return Ok(Tuning::shipped());
    }
    let text = coll::read_text(path)?;
    Tuning::from_json(&text).map_err(|error| {
        Failure::unusable(format!("`{}`: {error}", path.display()))
            .help("it would be replaced; name another with `-o`, or remove it")
    })
}

/// Two ranks with a core each, and two for each core.
fn default_counts(cores: u32) -> RankCounts {
    let most = (2 * cores).clamp(4, 16);
    format!("2,{most}").parse().unwrap_or_else(|_| RankCounts::range(2, 2))
}

/// A run of one schedule.
fn probe(schedule: String, in_place: bool, bytes: u64) -> Cell {
    let operation = schedule.split_once('.').map_or(schedule.as_str(), |(operation, _)| operation);
    Cell { operation: operation.to_string(), bytes, in_place, schedule: Some(schedule) }
}

/// Runs cells on so many ranks: each with its name.
fn measured(
    args: &TuneArgs,
    transport: BenchTransport,
    ranks: u32,
    cores: u32,
    cells: Vec<Cell>,
) -> Result<Vec<(String, Probe)>, Failure> {
    let mut probes = Vec::new();
    measure(settings(args, transport, ranks, cores, cells)?, &mut |cells, measured| {
        let cell = &cells[measured.cell];
        let outline = outline(&measured, cell, ranks)?;
        let (work, layout) = (work(&measured), Layout::one_host(cores));
        let name = format!("{} {:>8}", measured.schedule, Bytes(cell.bytes).to_string());
        probes
            .push((name, Probe { outline, ranks, layout, work, measured_us: measured.median_us.max(0.01) }));
        Ok(())
    })?;
    Ok(probes)
}

fn work(measured: &Measured) -> Work {
    Work { bytes: measured.actual_bytes, dtype: DType::F32, user_operator: false }
}

/// The plan as it ran; in place there is nothing to copy from a buffer to itself.
fn outline(measured: &Measured, cell: &Cell, ranks: u32) -> Result<Outline, Failure> {
    let forced: Result<Forced, _> = measured.schedule.parse();
    let forced = forced.map_err(|error| Failure::unusable(error.to_string()))?;
    let candidate: Option<&Candidate> =
        coll::canonical_operation(&cell.operation).and_then(|op| forced.of(op));
    match candidate.map(|candidate| candidate.prove(ranks, 0)) {
        Some(Outcome::Right(proved)) => {
            let outline = Outline::new(&proved.plan);
            Ok(if cell.in_place { outline.without_copies_onto_themselves(&proved.plan) } else { outline })
        }
        _ => Err(Failure::wrong(format!("{} does not serve {ranks} ranks", measured.schedule))),
    }
}

fn settings(
    args: &TuneArgs,
    transport: BenchTransport,
    world: u32,
    cores: u32,
    cells: Vec<Cell>,
) -> Result<Settings, Failure> {
    Ok(Settings {
        rank: 0,
        world,
        rendezvous: String::new(),
        token: String::new(),
        tls: crate::environment::tls()?,
        control: Default::default(),
        cells,
        dtype: DType::F32,
        op: RedOp::Sum,
        root: 0,
        pace: Pace {
            warmup: None,
            iters: None,
            target_s: args.target,
            min_small: 10,
            min_big: 3,
            max_iters: 2000,
            gate_s: 0.0,
            retries: 0,
        },
        check: true,
        time_limit_s: args.timeout,
        transport: transport.name().to_string(),
        checksums: false,
        processes: false,
        shared_memory: false,
        deterministic: false,
        accumulate: None,
        wire: None,
        plans: true,
        cores,
        constants: None,
        forced: String::new(),
    })
}

/// Copies and reductions, timed here.
fn within_a_rank(start: Constants) -> Result<Constants, Failure> {
    let mut constants = start;
    let (source, mut target) = (vec![1u8; FAR_BYTES], vec![0u8; FAR_BYTES]);
    let mut both = |work: &mut dyn FnMut(&mut [u8], &[u8])| Rate {
        near_ns: byte_ns(NEAR_BYTES, 200, &mut |bytes| work(&mut target[..bytes], &source[..bytes])),
        far_ns: byte_ns(FAR_BYTES, 3, &mut |bytes| work(&mut target[..bytes], &source[..bytes])),
    };
    constants.copy = both(&mut |target, source| target.copy_from_slice(source));
    for dtype in REDUCED {
        let reducer = Reducer::builtin(RedOp::Sum, dtype);
        let reducer = reducer.map_err(|error| Failure::unusable(error.to_string()))?;
        let rate = both(&mut |target, source| reducer.combine_into(target, None, source, false));
        constants.reduce.insert(dtype, rate);
    }
    Ok(constants)
}

/// The least time of a byte over some runs, in nanoseconds.
fn byte_ns(bytes: usize, runs: u32, work: &mut dyn FnMut(usize)) -> f64 {
    work(bytes);
    let mut least = f64::INFINITY;
    for _ in 0..runs {
        let start = Instant::now();
        work(bytes);
        least = least.min(start.elapsed().as_secs_f64());
    }
    least * 1e9 / bytes as f64
}

fn copied(probe: &Probe) -> Probe {
    Probe { outline: probe.outline.clone(), ..*probe }
}

fn report(constants: &Constants, probes: &[(String, Probe)]) -> String {
    let width = probes.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let mut text = format!(
        "{:width$}  {:>5}  {:>11}  {:>12}  {:>5}\n",
        "probe", "ranks", "measured µs", "predicted µs", "ratio"
    );
    for (name, probe) in probes {
        let ratio = probe.ratio(constants);
        text += &format!(
            "{name:width$}  {:>5}  {:>11.1}  {:>12.1}  {ratio:>5.2}\n",
            probe.ranks,
            probe.measured_us,
            ratio * probe.measured_us
        );
    }
    let Constants { transport, send_us, recv_us, wake_us, switch_us, send, recv, copy, .. } = constants;
    text += &format!("\n{transport}: a message costs {send_us:.2} µs to send and {recv_us:.2} to receive, ");
    text += &format!("{wake_us:.2} to wake its receiver, {switch_us:.2} where cores are shared\n");
    text += "ns a byte       in cache  in memory\n";
    let sum = constants.reduction(DType::F32, false);
    for (name, rate) in [("sent", send), ("received", recv), ("copied", copy), ("summed, f32", &sum)] {
        text += &format!("{name:<14}  {:>8.4}  {:>9.4}\n", rate.near_ns, rate.far_ns);
    }
    let error = constants.fit.as_ref().map_or(1.0, |fit| fit.error_factor);
    text + &format!(
        "predictions are off by a factor of {error:.2}, in the geometric mean of {} probes\n",
        probes.len()
    )
}
