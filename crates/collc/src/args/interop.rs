//! The options of `import` and `export`.

use super::{Choice, Passes};
use clap::{Args, ValueEnum};
use coll::{Bytes, RankCounts};
use coll_base::DType;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct ImportArgs {
    /// A schedule of another tool: MSCCL XML, MSCCL++ JSON, GOAL, or one of the Chakra traces of all ranks, NAME.0.et
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The root, which the forms do not say [default: the first rank with which the schedule is right]
    #[arg(long, value_name = "R")]
    pub(crate) root: Option<u32>,
    /// Where to write the plan; without it the plan is printed as text
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Say what it costs that the schedule was not made for this network: a topology file, or a generator
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) topology: Option<String>,
}

/// The forms that are written.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// MSCCL XML, in the strict form that RCCL loads
    MscclXml,
    /// An execution plan of MSCCL++
    MscclppJson,
    /// GOAL, the input of LogGOPSim: times and sizes, no data
    Goal,
    /// Chakra execution traces for astra-sim, a file for each rank: OUT.0.et, OUT.1.et, …
    Chakra,
}

/// The protocols of MSCCL, which differ in how many messages may be under way.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// 2 messages under way
    #[value(name = "Simple")]
    Simple,
    /// 8 messages under way
    #[value(name = "LL")]
    Ll,
    /// 8 messages under way
    #[value(name = "LL128")]
    Ll128,
}

impl Protocol {
    /// Its name in the file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "Simple",
            Protocol::Ll => "LL",
            Protocol::Ll128 => "LL128",
        }
    }

    /// Messages of a connection that may be under way.
    pub(crate) fn slots(self) -> u32 {
        match self {
            Protocol::Simple => 2,
            Protocol::Ll | Protocol::Ll128 => 8,
        }
    }
}

#[derive(Args)]
pub(crate) struct ExportArgs {
    /// A plan, a schedule file, a schedule of another tool, or the name of a library schedule such as `allreduce.ring`
    #[arg(value_name = "PLAN|FILE")]
    pub(crate) target: String,
    /// The rank count, for a schedule
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) ranks: Option<RankCounts>,
    /// The root, for a schedule
    #[arg(long, value_name = "R")]
    pub(crate) root: Option<u32>,
    /// The form to write
    #[arg(long, value_enum)]
    pub(crate) to: ExportForm,
    /// Where to write
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Size of the operation's buffer, for forms that say sizes (GOAL, Chakra) [default: 1MiB]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) bytes: Option<Bytes>,
    /// Element type, which sizes are cut by
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,
    /// The protocol that MSCCL XML names
    #[arg(long, value_enum, default_value = "Simple")]
    pub(crate) protocol: Protocol,
    /// The least size that the file is for, where the form says it
    #[arg(long, value_name = "SIZE", default_value = "0", allow_hyphen_values = true)]
    pub(crate) min_bytes: Bytes,
    /// The greatest size that the file is for, where the form says it
    #[arg(long, value_name = "SIZE", default_value = "1GiB", allow_hyphen_values = true)]
    pub(crate) max_bytes: Bytes,
    /// Write a file that its runtimes could not load, such as one of more steps than they have room for
    #[arg(long)]
    pub(crate) ignore_limits: bool,
    #[command(flatten)]
    pub(crate) choice: Choice,
    #[command(flatten)]
    pub(crate) passes: Passes,
}
