//! The options of `collc bench`: nccl-tests', and those of `tests/peers`.

use super::seconds;
use crate::cmd::bench::Pace;
use clap::{Args, ValueEnum};
use coll::{Bytes, RankCounts};
use coll_base::{DType, RedOp};
use std::path::PathBuf;

/// How to print.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchFormat {
    /// nccl-tests' table
    Table,
    /// A line of JSON for each cell, measured as `tests/peers` measures other libraries
    Jsonl,
}

/// What runs the operations.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Through {
    /// A communicator's blocking calls, as programs make them
    Communicator,
    /// The plans that `collc explain-choice` tells of, run without a communicator
    Plans,
}

/// How the ranks of a benchmark reach each other.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchTransport {
    /// TCP sockets
    Tcp,
    /// Shared memory between processes
    Shm,
    /// Memory of one process whose threads are the ranks
    Threads,
    /// Streams of the CUDA devices there are
    Cuda,
}

impl BenchTransport {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BenchTransport::Tcp => "tcp",
            BenchTransport::Shm => "shm",
            BenchTransport::Threads => "threads",
            BenchTransport::Cuda => "cuda",
        }
    }

    /// The name that its constants have; devices have none of their own yet, and take those of one process's memory.
    pub(crate) fn constants(self) -> &'static str {
        match self {
            BenchTransport::Cuda => BenchTransport::Threads.name(),
            named => named.name(),
        }
    }
}

/// Where buffers lie.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchMemory {
    /// Memory like any other
    Ordinary,
    /// Memory of `comm.alloc`, which ranks that share it read in place
    Alloc,
}

impl BenchMemory {
    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            BenchMemory::Ordinary => "ordinary",
            BenchMemory::Alloc => "alloc",
        }
    }
}

/// An operation's name is not looked at here, so that an unknown one gets a better message.
#[derive(Args)]
pub(crate) struct BenchArgs {
    /// Operations, with commas between
    #[arg(long, value_name = "OPS", value_delimiter = ',', default_value = "allreduce")]
    pub(crate) ops: Vec<String>,
    /// How many ranks to start on this machine: `4`, or several counts one after the other
    #[arg(long, value_name = "COUNTS", default_value = "2", allow_hyphen_values = true)]
    pub(crate) ranks: RankCounts,
    /// Transport between ranks
    #[arg(long, value_enum, default_value = "tcp")]
    pub(crate) transport: BenchTransport,
    /// With `--transport cuda`, a process for each rank, which open each other's memory on devices [default: all ranks in one
    /// process]
    #[arg(long)]
    pub(crate) processes: bool,
    /// Where buffers lie
    #[arg(long, value_enum, default_value = "ordinary")]
    pub(crate) memory: BenchMemory,
    /// Take schedules whose bits depend on the number of ranks alone, for all sizes [env: COLLC_DETERMINISTIC]
    #[arg(long)]
    pub(crate) deterministic: bool,
    /// The type that narrow floats are reduced in, and rounded once at the end: `f32` [env: COLLC_ACCUMULATE]
    #[arg(long, value_name = "TYPE", value_parser = super::accumulate)]
    pub(crate) accumulate: Option<DType>,
    /// The type that wider floats travel as, such as `bf16`. Results are right up to its rounding [env: COLLC_WIRE]
    #[arg(long, value_name = "TYPE", value_parser = super::wire)]
    pub(crate) wire: Option<DType>,
    /// What runs the operations
    #[arg(long, value_enum, default_value = "communicator")]
    pub(crate) through: Through,
    /// The least size
    #[arg(short = 'b', long, value_name = "SIZE", default_value = "8", allow_hyphen_values = true)]
    pub(crate) min_bytes: Bytes,
    /// The largest size
    #[arg(short = 'e', long, value_name = "SIZE", default_value = "16M", allow_hyphen_values = true)]
    pub(crate) max_bytes: Bytes,
    /// Each size is the one before times this
    #[arg(short = 'f', long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(2..))]
    pub(crate) factor: u64,
    /// Each size is the one before and this many bytes more
    #[arg(short = 'i', long, value_name = "SIZE", conflicts_with = "factor")]
    pub(crate) step_bytes: Option<Bytes>,
    /// These sizes, with commas between, and no others
    #[arg(long, value_name = "SIZES", value_delimiter = ',', conflicts_with_all = ["min_bytes", "max_bytes", "factor", "step_bytes"])]
    pub(crate) sizes: Vec<Bytes>,
    /// Reduction operator
    #[arg(short = 'o', long, value_name = "OP", default_value = "sum")]
    pub(crate) op: RedOp,
    /// Element type
    #[arg(short = 'd', long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,
    /// The root
    #[arg(short = 'r', long, value_name = "R", default_value_t = 0)]
    pub(crate) root: u32,
    /// Timed iterations [default: 20 in the table, as many as fill the target in lines]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) iters: Option<u32>,
    /// Iterations before the timed ones [default: 5 in the table, 3 to 50 in 50 ms in lines]
    #[arg(short = 'w', long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=20_000))]
    pub(crate) warmup: Option<u32>,
    /// Compare every element of a run with what it should be; 0 leaves that out
    #[arg(short = 'c', long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) check: u8,
    /// Seconds that the timed runs of a cell should take, where `--iters` does not say how many
    #[arg(long, value_name = "SECONDS", default_value_t = 0.2, value_parser = seconds)]
    pub(crate) target: f64,
    /// Least iterations up to 1 MiB
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) min_small: u32,
    /// Least iterations above 1 MiB
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) min_big: u32,
    /// Most iterations
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) max_iters: u32,
    /// Seconds to wait for a quiet machine before each cell, at most
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) gate: Option<f64>,
    /// More attempts at a cell during which other processes used over a quarter of a core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) retries: u32,
    /// In lines: the number of the round
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) round: u32,
    /// In lines: the configuration's name [default: collc- and the transport, and -alloc for `--memory alloc`]
    #[arg(long, value_name = "NAME")]
    pub(crate) config: Option<String>,
    /// What `collc tune` wrote [env: COLLC_TUNE; default: shipped constants]
    #[arg(long, value_name = "FILE")]
    pub(crate) constants: Option<PathBuf>,
    /// Seconds without progress after which every rank gives up
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    pub(crate) timeout: f64,
    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: BenchFormat,
}

impl BenchArgs {
    /// How often cells are run: nccl-tests' counts in its table, a time in lines.
    pub(crate) fn pace(&self) -> Pace {
        let in_table = |count| (self.format == BenchFormat::Table).then_some(count);
        Pace {
            warmup: self.warmup.or(in_table(5)),
            iters: self.iters.or(in_table(20)),
            target_s: self.target,
            min_small: self.min_small,
            min_big: self.min_big,
            max_iters: self.max_iters,
            gate_s: self.gate.unwrap_or(0.0),
            retries: self.retries,
        }
    }

    /// Whether the operator works on the element type.
    pub(crate) fn op_serves(&self) -> bool {
        coll_kernel::Reducer::builtin(self.op, self.dtype).is_ok()
    }
}
