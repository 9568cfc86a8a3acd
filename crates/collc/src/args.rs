//! The command line, as clap reads it.

mod bench;
mod env;
mod fit;
mod interop;
mod sim;
mod topo;
mod tune;

use clap::{Args, Parser, Subcommand, ValueEnum};
use coll::{Bytes, RankCounts};
use coll_base::DType;
use std::path::PathBuf;

pub(crate) use bench::{BenchArgs, BenchFormat, BenchMemory, BenchTransport, Through};
pub(crate) use env::EnvArgs;
pub(crate) use fit::Fit;
pub(crate) use interop::{ExportArgs, ExportForm, ImportArgs};
pub(crate) use sim::{CompareArgs, Ground, Model, SimArgs};
pub(crate) use topo::{
    TopoArgs, TopoCheckArgs, TopoCommand, TopoDrawArgs, TopoImportArgs, TopoProbeArgs, TopoText,
};
pub(crate) use tune::TuneArgs;

const EXIT_CODES: &str = "Exit codes: 0 all is well; 1 what was checked is wrong, or a run failed or gave wrong elements; \
                          2 the input, the options or the output cannot be used; 130 interrupted.";

/// A compiler and runtime for collective communication.
#[derive(Parser)]
#[command(
    name = "collc",
    version,
    after_help = format!("{}\n\n{EXIT_CODES}", crate::environment::help()),
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Prove that schedules keep their contracts, and print what else is known of them
    Check(CheckArgs),
    /// Compile a schedule to a proved plan
    Compile(CompileArgs),
    /// Run a schedule, a plan or an operation on real processes and verify every element
    Run(RunArgs),
    /// Make a proved plan of a schedule of another tool
    Import(ImportArgs),
    /// Write a proved plan in the form of another tool
    Export(ExportArgs),
    /// Format schedule files
    Fmt(FmtArgs),
    /// List the library's schedules with their costs
    List(ListArgs),
    /// Explain a diagnostic code, with an example and its mend
    Explain(ExplainArgs),
    /// Say which schedule an operation takes at a size, what each would take, and why
    ExplainChoice(ExplainChoiceArgs),
    /// Time operations over a range of sizes, with nccl-tests' options and table
    Bench(BenchArgs),
    /// Measure the constants that schedules are chosen by, and write them to a file
    Tune(TuneArgs),
    /// Look at, check, import, draw and measure topologies
    Topo(TopoArgs),
    /// Say what collc finds around it: its settings, the machine, CUDA devices
    Env(EnvArgs),
    /// Predict what a schedule, a plan or a GOAL file takes on a topology
    Sim(SimArgs),
    /// Compare schedules on a topology over a range of sizes
    Compare(CompareArgs),
    /// One rank of `run`, started by it
    #[command(hide = true, name = "__rank")]
    Rank,
    /// One rank of `run --processes`, started by it
    #[command(hide = true, name = "__device_rank")]
    DeviceRank,
    /// One rank of `bench` or `tune`, started by it
    #[command(hide = true, name = "__bench_rank")]
    BenchRank,
    /// One rank of `topo probe`, started by it
    #[command(hide = true, name = "__probe_rank")]
    ProbeRank,
}

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One document for tools
    Json,
}

/// Which schedule, and with which parameters.
#[derive(Args)]
pub(crate) struct Choice {
    /// The schedule to take, where a file declares several
    #[arg(long, value_name = "NAME")]
    pub(crate) schedule: Option<String>,
    /// Set a parameter of the schedule; one that is a list, such as the sizes of nodes, to `local=8,8,4`
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = definition, allow_hyphen_values = true)]
    pub(crate) define: Vec<(String, Numbers)>,
}

/// What a parameter is set to; several for a list.
pub(crate) type Numbers = Vec<i64>;

impl Choice {
    /// The parameters that are set; a list's numbers each for itself.
    pub(crate) fn defined(&self) -> Vec<(String, i64)> {
        let each = |(name, numbers): &(String, Numbers)| {
            numbers.iter().map(|&number| (name.clone(), number)).collect::<Vec<_>>()
        };
        self.define.iter().flat_map(each).collect()
    }
}

/// Which passes run.
#[derive(Args, Clone)]
pub(crate) struct Passes {
    /// Leave out a pass by name; may be given several times
    #[arg(long, value_name = "PASS")]
    pub(crate) skip: Vec<String>,
    /// Leave out all passes
    #[arg(long, conflicts_with = "skip")]
    pub(crate) no_opt: bool,
    /// Connections for each pair of ranks, whatever `tune` says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) lanes: Option<u32>,
    /// Parts that each chunk is cut into, whatever `tune` says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) slices: Option<u32>,
    /// The type that narrow floats are reduced in, and rounded once at the end, whatever `tune` says: `f32`
    #[arg(long, value_name = "TYPE", value_parser = accumulate)]
    pub(crate) accumulate: Option<DType>,
    /// The type that wider floats travel as, whatever `tune` says: `bf16`, `f16`, `f8e4m3`, `f8e5m2` or `f32`. Results are
    /// right up to its rounding
    #[arg(long, value_name = "TYPE", value_parser = wire)]
    pub(crate) wire: Option<DType>,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// A schedule file or a plan, or the name of a library schedule such as `allreduce.ring`
    #[arg(value_name = "FILE")]
    pub(crate) target: String,
    /// Rank counts: `4`, `2,4,8` or `2..=64` [default: 2..=16]
    #[arg(long, value_name = "COUNTS", allow_hyphen_values = true)]
    pub(crate) ranks: Option<RankCounts>,
    /// The root [default: every one up to 64 ranks, then rank 0]
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) root: Option<u32>,
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) passes: Passes,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

/// What `compile --emit` prints.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The syntax tree
    Ast,
    /// The program: every transfer
    Program,
    /// The program's dependence graph as text
    Graph,
    /// The plan as text
    Plan,
    /// The plan as JSON
    Json,
    /// The program's dependence graph for Graphviz; of what is a plan already, its operations, lanes and messages
    Dot,
    /// The plan as a picture: ranks, steps, messages
    Svg,
}

#[derive(Args)]
pub(crate) struct CompileArgs {
    /// A schedule file, or the name of a library schedule such as `allreduce.ring`
    #[arg(value_name = "FILE")]
    pub(crate) target: String,
    /// The rank count [default: with `--topology` one for each device; else 2..=16 are proved and a bundle is written that
    /// `run` instantiates]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) ranks: Option<RankCounts>,
    /// The root
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) root: Option<u32>,
    /// Only this rank's slice of the plan, without the other ranks' where the schedule allows it
    #[arg(long, value_name = "R", requires = "ranks")]
    pub(crate) rank: Option<u32>,
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) passes: Passes,
    #[command(flatten)]
    pub(crate) fit: Fit,
    /// Where to write [default: the file's name with `.plan` or `.bundle`, in this folder]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Print a stage of the compilation, instead of writing a plan
    #[arg(long, value_enum)]
    pub(crate) emit: Option<Emit>,
}

/// How ranks reach each other.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportKind {
    /// Shared memory between ranks of one machine, TCP between others
    Auto,
    /// TCP sockets
    Tcp,
    /// Shared memory between processes of one machine
    Shm,
    /// Memory of one process whose threads are the ranks
    Threads,
    /// Streams of the CUDA devices there are, each rank with its own
    Cuda,
}

impl TransportKind {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TransportKind::Auto => "auto",
            TransportKind::Tcp => "tcp",
            TransportKind::Shm => "shm",
            TransportKind::Threads => "threads",
            TransportKind::Cuda => "cuda",
        }
    }

    /// The name that its constants have, where ranks are started together on one machine or else one by one.
    pub(crate) fn constants(self, together: bool) -> &'static str {
        match self {
            TransportKind::Auto if together => "shm",
            TransportKind::Auto => "tcp",
            // Devices have no constants of their own yet: those of one process's memory order schedules alike.
            TransportKind::Cuda => "threads",
            named => named.name(),
        }
    }

    /// How a rank is to reach the others.
    pub(crate) fn via(self) -> coll::Via {
        match self {
            TransportKind::Auto | TransportKind::Threads | TransportKind::Cuda => coll::Via::Fastest,
            TransportKind::Tcp => coll::Via::Tcp,
            TransportKind::Shm => coll::Via::Shm,
        }
    }
}

/// A transport that constants are known of, whether or not this version runs over it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TransportName {
    /// TCP sockets
    Tcp,
    /// Shared memory between processes
    Shm,
    /// Threads of one process
    Threads,
}

impl TransportName {
    /// The name that constants have.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TransportName::Tcp => "tcp",
            TransportName::Shm => "shm",
            TransportName::Threads => "threads",
        }
    }
}

#[derive(Args)]
pub(crate) struct RunArgs {
    /// A schedule file, a plan, a bundle, or an operation such as `allreduce` or `allreduce.ring`
    #[arg(value_name = "FILE|PLAN|OP")]
    pub(crate) target: String,
    /// How many ranks to start on this machine
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) ranks: Option<RankCounts>,
    /// Size of the operation's buffer, as in nccl-tests: `28`, `64K`, `1MiB`
    /// [default: 1MiB, or the nearest size that a file of another tool is for]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) bytes: Option<Bytes>,
    /// Elements of each block instead, where blocks differ: `3,0,7`, a matrix with a row for each rank (`1,2;0,3`), or a file
    /// of such lines. `alltoallv`, `allgatherv`, `gatherv`, `scatterv` and `reduce_scatterv` need it
    #[arg(long, value_name = "COUNTS", conflicts_with = "bytes", allow_hyphen_values = true)]
    pub(crate) counts: Option<String>,
    /// Element type
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,
    /// Reduction operator: built in, one that the file declares, or one of another file as FILE.coll:NAME [default: the file's
    /// own if it declares one, else sum]
    #[arg(long, value_name = "OP")]
    pub(crate) op: Option<String>,
    /// Set a parameter of the operator: the file's own, or `factor` of `premul_sum`
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = operator_value, allow_hyphen_values = true)]
    pub(crate) operator_values: Vec<(String, f64)>,
    /// Timed iterations
    #[arg(long, value_name = "K", default_value_t = 20, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) iters: u32,
    /// Iterations before the timed ones
    #[arg(long, value_name = "K", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) warmup: u32,
    /// The root
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) root: Option<u32>,
    /// Run once more after the timed iterations, and write when each operation began and ended as a trace for chrome://tracing
    /// and Perfetto, with the numbers that it has in the plan and its source line
    #[arg(long, value_name = "OUT.json")]
    pub(crate) trace: Option<PathBuf>,
    /// Run in place: each buffer is input and output at once. A file of another tool that is for such calls alone runs in place
    /// without it
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Run a file of another tool though it is for calls in place or out of place alone (`inplace`, `outofplace`), and take
    /// `--bytes` as it is where none is given
    #[arg(long)]
    pub(crate) ignore_limits: bool,
    /// Take a schedule whose bits depend on the number of ranks alone, for all sizes [env: COLLC_DETERMINISTIC]
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// Transport between ranks
    #[arg(long, value_enum, default_value = "tcp")]
    pub(crate) transport: TransportKind,
    /// With `--transport cuda`, a process for each rank, which open each other's memory on devices [default: all ranks in one
    /// process]
    #[arg(long)]
    pub(crate) processes: bool,
    /// What goes over TCP goes within TLS, whose key is made from the job's token; what goes through memory stays on its machine
    /// [env: COLLC_TLS]
    #[arg(long)]
    pub(crate) tls: bool,
    /// Only each so many ranks, one after the other, share memory, as if each had a machine of its own with them: with
    /// `--transport auto`, `threads`, or `cuda` where ranks are processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks_per_host: Option<u32>,
    /// What `collc tune` wrote, to choose a schedule by [env: COLLC_TUNE; default: shipped constants]
    #[arg(long, value_name = "FILE", conflicts_with = "topology")]
    pub(crate) constants: Option<PathBuf>,
    /// Choose and fit the plan for this topology as `compile` does, and have ranks stand there: those of one of its machines
    /// are started as ranks of one machine
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) topology: Option<String>,
    /// The device of each rank, as in `compile` [default: best; of a plan, as it says]
    #[arg(long, value_name = "PLACE", requires = "topology")]
    pub(crate) place: Option<String>,
    /// Seconds without progress after which every rank gives up
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) timeout: f64,
    /// Seed of the input data
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) passes: Passes,
    /// Be this rank of a job whose ranks are started one by one [env: RANK]
    #[arg(long, value_name = "R", conflicts_with = "ranks", allow_negative_numbers = true)]
    pub(crate) rank: Option<u32>,
    /// How many ranks the job has [env: WORLD_SIZE]
    #[arg(long, value_name = "N", conflicts_with = "ranks")]
    pub(crate) world_size: Option<u32>,
    /// Where rank 0 listens for the others [env: MASTER_ADDR and MASTER_PORT]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) rendezvous: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct FmtArgs {
    /// Files, or `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing; exit with 1 if a file is not formatted
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(Args)]
pub(crate) struct ListArgs {
    /// Only this operation's schedules
    #[arg(value_name = "OP")]
    pub(crate) operation: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct ExplainArgs {
    /// A code such as `E0501`; without one, all codes are listed
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

#[derive(Args)]
pub(crate) struct ExplainChoiceArgs {
    /// The operation, such as `allreduce`
    #[arg(value_name = "OP")]
    pub(crate) operation: String,
    /// Size of the operation's buffer, as in nccl-tests: `28`, `64K`, `1MiB`
    #[arg(value_name = "SIZE", default_value = "1MiB", allow_hyphen_values = true)]
    pub(crate) bytes: Bytes,
    /// How many ranks
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) ranks: RankCounts,
    /// Element type
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,
    /// The root
    #[arg(long, value_name = "R", default_value_t = 0)]
    pub(crate) root: u32,
    /// The operator does not commute: operands must stay in rank order
    #[arg(long)]
    pub(crate) ordered: bool,
    /// The operator is a user's own
    #[arg(long)]
    pub(crate) user_operator: bool,
    /// The type that narrow floats are reduced in: `f32`
    #[arg(long, value_name = "TYPE", value_parser = accumulate)]
    pub(crate) accumulate: Option<DType>,
    /// The type that wider floats travel as, such as `bf16`
    #[arg(long, value_name = "TYPE", value_parser = wire)]
    pub(crate) wire: Option<DType>,
    /// Blocks may differ in size
    #[arg(long)]
    pub(crate) unequal_blocks: bool,
    /// Bits must depend on the number of ranks alone: what that costs is shown
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// Transport between ranks
    #[arg(long, value_enum, default_value = "tcp")]
    pub(crate) transport: TransportName,
    /// Cores of each machine [default: this one's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cores: Option<u32>,
    /// Ranks on each machine [default: all on one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks_per_host: Option<u32>,
    /// What `collc tune` wrote [env: COLLC_TUNE; default: shipped constants]
    #[arg(long, value_name = "FILE")]
    pub(crate) constants: Option<PathBuf>,
    /// Rank by simulation on this topology instead, each schedule with its ranks placed at its best; at most 256 ranks
    #[arg(long, value_name = "TOPOLOGY", conflicts_with_all = ["constants", "cores", "ranks_per_host", "transport", "sizes", "deterministic"])]
    pub(crate) topology: Option<String>,
    /// Show every value of every parameter that was tried, not each schedule's best alone
    #[arg(long)]
    pub(crate) all: bool,
    /// Show from which size on which schedule is taken, up to 1 GiB
    #[arg(long)]
    pub(crate) sizes: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

/// `k=8`, `local=8,8,4`
fn definition(text: &str) -> Result<(String, Numbers), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("`{text}` sets nothing; write `NAME=VALUE`"))?;
    let number =
        |number: &str| number.trim().parse().map_err(|_| format!("`{number}` is no 64-bit whole number"));
    let numbers = value.split(',').map(number).collect::<Result<Numbers, String>>()?;
    Ok((name.trim().to_string(), numbers))
}

/// `f32`
pub(crate) fn accumulate(text: &str) -> Result<DType, String> {
    match text.parse()? {
        DType::F32 => Ok(DType::F32),
        other => Err(format!("nothing can be accumulated in {other}; narrow floats can be in f32")),
    }
}

/// `bf16`
pub(crate) fn wire(text: &str) -> Result<DType, String> {
    let dtype: DType = text.parse()?;
    let names = || DType::WIRE.map(|dtype| dtype.name()).join(", ");
    if dtype.is_wire() {
        Ok(dtype)
    } else {
        Err(format!("nothing can travel as {dtype}; there are {}", names()))
    }
}

/// `alpha=0.5`
fn operator_value(text: &str) -> Result<(String, f64), String> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| format!("`{text}` sets nothing; write `NAME=VALUE`"))?;
    match value.trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((name.trim().to_string(), number)),
        _ => Err(format!("`{value}` is no finite number")),
    }
}

pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err(format!("`{text}` is no time limit; write seconds, more than 0 and at most 86400")),
    }
}
