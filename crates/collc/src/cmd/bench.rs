//! `collc bench`: times operations over a range of sizes on ranks of this machine, processes or threads.
//!
//! The table is nccl-tests' (options, columns, bus bandwidth); `--format jsonl` prints the lines that `tests/peers`
//! reads, measured as it measures other libraries. A cell's schedule is chosen as for any call; `COLLC_SCHEDULE` insists
//! on one.

mod cell;
mod control;
mod lines;
mod machine;
mod over_comm;
mod over_devices;
mod over_plans;
mod pages;
mod pattern;
mod settings;
mod subject;
mod table;
mod threads;
mod wire;

pub(crate) use settings::{Cell, Measured, Pace, Settings};

use super::choice;
use super::run::devices;
use crate::args::{BenchArgs, BenchFormat, BenchMemory, BenchTransport, Through};
use crate::failure::Failure;
use crate::processes::{self, Heard, Processes};
use coll::Communicator;
use coll::select::Question;
use coll_cost::Layout;
use coll_shm::ShmTransport;
use coll_tcp::{Rendezvous, Token};
use control::Control;
use over_comm::OverComm;
use over_devices::{Alone, OverDevices};
use over_plans::OverPlans;
use settings::Word;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use subject::Subject;

/// Measures and prints.
pub(crate) fn run(args: &BenchArgs) -> Result<ExitCode, Failure> {
    let sizes = sizes(args)?;
    let operations = operations(args)?;
    let mut wrong = 0;
    for ranks in args.ranks.iter() {
        let settings = settings(args, ranks, &operations, &sizes)?;
        let mut printer = Printer::new(args, &settings);
        measure(settings, &mut |cells, measured| printer.take(cells, measured))?;
        printer.end()?;
        wrong += printer.wrong;
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Hears of a cell, with all cells beside it.
pub(crate) type Hear<'h> = dyn FnMut(&[Cell], Measured) -> Result<(), Failure> + 'h;

/// Runs all cells on ranks of this machine, and hears of each as it is done.
pub(crate) fn measure(mut settings: Settings, hear: &mut Hear<'_>) -> Result<(), Failure> {
    crate::environment::nothing_is_rehearsed();
    processes::check_descriptors(settings.world)?;
    let file = control_file(settings.world)?;
    settings.control = file.path().to_path_buf();
    if settings.transport == over_devices::CUDA && !settings.processes {
        return over_devices::measure(&settings, hear);
    }
    if settings.transport == wire::THREADS {
        return threads::measure(&settings, hear);
    }
    let token = Token::random().map_err(|error| Failure::unusable(format!("no random bytes: {error}")))?;
    settings.token = token.reveal().to_string();
    let server = Rendezvous::bind_tls("127.0.0.1:0", token, settings.tls);
    let server = server.map_err(|error| Failure::unusable(error.to_string()))?;
    settings.rendezvous = server.address().to_string();
    let message = |rank| {
        let settings = Settings { rank, ..settings.clone() };
        serde_json::to_vec(&settings).expect("invariant: settings are plain data")
    };
    let mut job = Processes::start("__bench_rank", (0..settings.world).map(message))?;
    let mut failed = None;
    let heard = job.hear(|rank, line| match serde_json::from_str(line) {
        Ok(Word::Cell(measured)) if rank == 0 => {
            failed = failed.take().or(hear(&settings.cells, *measured).err());
            Heard::Taken
        }
        Ok(Word::Failed(reason)) => Heard::Failed(reason),
        Ok(Word::Cell(_)) | Err(_) => Heard::Taken,
    });
    drop(job);
    match failed {
        Some(failure) => Err(failure),
        None => heard,
    }
}

/// The file of [`control`], which lives as long as this does.
fn control_file(world: u32) -> Result<tempfile::NamedTempFile, Failure> {
    let unusable = |what: &str, error: std::io::Error| Failure::unusable(format!("{what}: {error}"));
    // Memory, where there is such a place: a file on a disk would be written back while ranks spin on it.
    let folder = if Path::new("/dev/shm").is_dir() { "/dev/shm".into() } else { std::env::temp_dir() };
    let file = tempfile::Builder::new().prefix("collc-bench-").tempfile_in(&folder);
    let file = file.map_err(|error| unusable("no control file", error))?;
    control::size(file.as_file(), world).map_err(|error| unusable("the control file", error))?;
    Ok(file)
}

/// One rank, as its launcher started it.
pub(crate) fn rank() -> Result<ExitCode, Failure> {
    let bytes = processes::told()?;
    let settings: Settings = serde_json::from_slice(&bytes).map_err(|error| {
        Failure::unusable(format!("`collc __bench_rank` is started by `collc bench`: {error}"))
    })?;
    let said = match cells(&settings, Given::Nothing, &say) {
        Ok(()) => return Ok(ExitCode::SUCCESS),
        Err(failure) => failed(settings.rank, &failure),
    };
    say(&said);
    Ok(ExitCode::FAILURE)
}

fn failed(rank: u32, failure: &Failure) -> Word {
    let (word, prefix) = (failure.message().to_string(), format!("rank {rank}"));
    Word::Failed(if word.starts_with(&prefix) { word } else { format!("{prefix}: {word}") })
}

/// What a rank has of the others before it meets them.
enum Given {
    /// It is a process, and meets them by itself.
    Nothing,
    /// Ranks are threads: its memory.
    Memory(Box<ShmTransport>),
    /// Ranks are threads: its communicator.
    Communicator(Box<Communicator>),
}

fn cells(settings: &Settings, given: Given, say: &dyn Fn(&Word)) -> Result<(), Failure> {
    let patience = Duration::from_secs_f64(settings.time_limit_s);
    let control = Control::open(&settings.control, settings.world, settings.rank, patience)?;
    let run = Run { settings, control: &control, say };
    match (given, settings.transport.as_str()) {
        (Given::Nothing, over_devices::CUDA) => run.on(OverDevices::<Alone>::on(settings)),
        (Given::Memory(memory), _) => {
            run.on(OverPlans::on(settings, |_| wire::of_threads(*memory, settings)))
        }
        (Given::Communicator(comm), _) => run.on(Ok(OverComm::on(settings, *comm))),
        (Given::Nothing, _) if !settings.plans => run.on(OverComm::join(settings)),
        (Given::Nothing, wire::SHM) => {
            run.on(OverPlans::on(settings, |choices| wire::Shm::join(settings, choices)))
        }
        (Given::Nothing, _) => run.on(OverPlans::on(settings, |choices| wire::tcp(settings, choices))),
    }
}

struct Run<'r> {
    settings: &'r Settings,
    control: &'r Control,
    say: &'r dyn Fn(&Word),
}

impl Run<'_> {
    fn on<S: Subject>(self, subject: Result<S, Failure>) -> Result<(), Failure> {
        let Run { settings, control, say } = self;
        let mut subject = subject.inspect_err(|_| control.fail())?;
        for number in 0..settings.cells.len() {
            match cell::measure(&mut subject, control, settings, number) {
                Ok(Some(measured)) => say(&Word::Cell(Box::new(measured))),
                Ok(None) => {}
                Err(failure) => {
                    control.fail();
                    subject.abort(failure.message());
                    return Err(failure);
                }
            }
        }
        subject.leave();
        Ok(())
    }
}

fn say(word: &Word) {
    processes::say(&serde_json::to_string(word).expect("invariant: a word is plain data"));
}

/// What `args` say of one rank count.
fn settings(
    args: &BenchArgs,
    world: u32,
    operations: &[&'static str],
    sizes: &[u64],
) -> Result<Settings, Failure> {
    if args.root >= world {
        return Err(Failure::unusable(format!("root {} is no rank among {world}", args.root))
            .help(format!("roots are 0..={}", world - 1)));
    }
    if !args.op_serves() {
        let message = format!("operator `{}` does not work on {}", args.op, args.dtype);
        return Err(Failure::unusable(message));
    }
    let (_, file) = choice::tuning(args.constants.as_deref())?;
    let constants = match file {
        None => None,
        Some(path) => Some(coll::read_text(Path::new(&path))?),
    };
    let forced = std::env::var(choice::SCHEDULE).unwrap_or_default();
    choice::insisted()?;
    let on_devices = args.transport == BenchTransport::Cuda;
    if args.processes {
        match on_devices {
            // What is missing is said once, and not by every rank.
            true => drop(devices::dealt(world, None)?),
            false => return Err(devices::no_processes(args.transport.name())),
        }
    }
    if on_devices && args.memory == BenchMemory::Alloc {
        return Err(Failure::unusable("`--memory alloc` is memory that ranks on processors share")
            .help("leave it out: on devices buffers lie in their memory"));
    }
    let plans = args.through == Through::Plans || on_devices;
    if plans {
        crate::environment::no_checksums(", or leave out `--through plans`")?;
    }
    let checksums = crate::environment::checksums()?;
    let deterministic = choice::deterministic(args.deterministic)?;
    let (accumulate, wire) = choice::types(args.accumulate, args.wire)?;
    if let Some(wire) = wire.filter(|_| deterministic) {
        let message =
            format!("what travels as {wire} is rounded on its way, and bits depend on where that is");
        return Err(Failure::unusable(message).help("leave out `--deterministic` or `--wire`"));
    }
    let chooser = choice::chooser(args.constants.as_deref())?;
    for &operation in operations {
        let question = Question {
            root: args.root,
            dtype: args.dtype,
            accumulate: accumulate.is_some(),
            wire,
            deterministic,
            transport: args.transport.constants(),
            layout: Layout::one_host(choice::cores()),
            ..Question::new(operation, world, sizes.first().copied().unwrap_or(0))
        };
        chooser.choose(&question).map_err(|error| Failure::unusable(error.to_string()))?;
    }
    let is_table = args.format == BenchFormat::Table;
    let mut cells = Vec::new();
    for &operation in operations {
        for (at, &bytes) in sizes.iter().enumerate() {
            if operation == BARRIER && at > 0 {
                continue;
            }
            let bytes = if operation == BARRIER { 0 } else { bytes };
            let cell = |in_place| Cell { operation: operation.to_string(), bytes, in_place, schedule: None };
            match is_table {
                true => cells.extend(places(operation, plans).iter().map(|&in_place| cell(in_place))),
                // As in the other libraries, whose broadcast knows one buffer.
                false => cells.push(cell(operation == "broadcast")),
            }
        }
    }
    Ok(Settings {
        rank: 0,
        world,
        rendezvous: String::new(),
        token: String::new(),
        tls: crate::environment::tls()?,
        control: Default::default(),
        cells,
        dtype: args.dtype,
        op: args.op,
        root: args.root,
        pace: args.pace(),
        check: args.check != 0,
        time_limit_s: args.timeout,
        transport: args.transport.name().to_string(),
        processes: args.processes,
        deterministic,
        accumulate,
        wire,
        cores: choice::cores(),
        constants,
        forced,
        checksums,
        shared_memory: args.memory == BenchMemory::Alloc,
        plans,
    })
}

const BARRIER: &str = "barrier";

/// Out of place, then in place, where an operation knows both.
fn places(operation: &str, plans: bool) -> &'static [bool] {
    match operation {
        "alltoall" | BARRIER => &[false],
        "allreduce" | "allgather" | "reduce_scatter" => &[false, true],
        _ if plans => &[false, true],
        // A communicator's broadcast has one buffer, and other operations have two.
        "broadcast" => &[true],
        _ => &[false],
    }
}

fn operations(args: &BenchArgs) -> Result<Vec<&'static str>, Failure> {
    let known = |name: &String| {
        coll::canonical_operation(name).ok_or_else(|| {
            Failure::unusable(format!("there is no operation `{name}`"))
                .help(format!("there are {}", coll::OPERATIONS.join(", ")))
        })
    };
    args.ops.iter().map(known).collect()
}

/// At most so many sizes.
const SIZES_MAX: usize = 10_000;

/// The sizes that are listed, or those from the least to the largest by factor or step.
fn sizes(args: &BenchArgs) -> Result<Vec<u64>, Failure> {
    if !args.sizes.is_empty() {
        return Ok(args.sizes.iter().map(|size| size.0).collect());
    }
    let (low, high) = (args.min_bytes.0, args.max_bytes.0);
    if low > high {
        return Err(Failure::unusable(format!("no size is from {} to {}", args.min_bytes, args.max_bytes))
            .help("`-b` is the least size, `-e` the largest"));
    }
    let mut sizes = vec![low];
    while let Some(&last) = sizes.last() {
        let next = match (args.step_bytes, args.factor) {
            (Some(step), _) => last.checked_add(step.0.max(1)),
            (None, factor) => last.checked_mul(factor).filter(|&next| next > last),
        };
        let Some(next) = next.filter(|&next| next <= high) else { break };
        sizes.push(next);
        if sizes.len() > SIZES_MAX {
            return Err(Failure::unusable(format!("more than {SIZES_MAX} sizes")).help("take larger steps"));
        }
    }
    Ok(sizes)
}

/// Prints what is measured, as it comes.
struct Printer<'a> {
    args: &'a BenchArgs,
    settings: Settings,
    /// Of the operation at hand: in the table its header has been printed.
    operation: Option<String>,
    /// The out-of-place half of a row.
    pending: Option<Measured>,
    busbw: Vec<f64>,
    wrong: u64,
}

impl<'a> Printer<'a> {
    fn new(args: &'a BenchArgs, settings: &Settings) -> Printer<'a> {
        Printer {
            args,
            settings: Settings { cells: Vec::new(), ..settings.clone() },
            operation: None,
            pending: None,
            busbw: Vec::new(),
            wrong: 0,
        }
    }

    fn take(&mut self, cells: &[Cell], measured: Measured) -> Result<(), Failure> {
        let (number, cell) = (measured.cell, &cells[measured.cell]);
        self.wrong += measured.bad.unwrap_or(0);
        if self.args.format == BenchFormat::Jsonl {
            return crate::output::print(&lines::line(self.args, &self.settings, cell, &measured));
        }
        if self.operation.as_deref() != Some(&cell.operation) {
            self.close()?;
            self.operation = Some(cell.operation.clone());
            let title = table::head(self.args, &cell.operation, &self.settings);
            crate::output::print(&title)?;
        }
        self.busbw.push(table::bandwidths(&measured).1);
        if cell.in_place {
            let row = table::row(self.args, &cell.operation, self.pending.take(), Some(measured));
            return crate::output::print(&row);
        }
        // The row is printed with its other half, where there is one.
        let has_other = cells.get(number + 1).is_some_and(|next| next.in_place);
        match has_other {
            true => self.pending = Some(measured),
            false => crate::output::print(&table::row(self.args, &cell.operation, Some(measured), None))?,
        }
        Ok(())
    }

    /// The end of an operation's table.
    fn close(&mut self) -> Result<(), Failure> {
        let Some(operation) = self.operation.take() else { return Ok(()) };
        let foot = table::foot(&operation, self.wrong, &self.busbw);
        self.busbw.clear();
        crate::output::print(&foot)
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.close()
    }
}
