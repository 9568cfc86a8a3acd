//! The options of `collc topo`.

use super::{Format, TransportKind, seconds};
use clap::{Args, Subcommand};
use coll::Bytes;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct TopoArgs {
    #[command(subcommand)]
    pub(crate) command: TopoCommand,
}

#[derive(Subcommand)]
pub(crate) enum TopoCommand {
    /// Say what a topology has, what ways lead between its devices, and what its halves can send each other
    Show(TopoText),
    /// Say what is wrong with a topology
    Check(TopoCheckArgs),
    /// Write any topology as a file that can be changed, and say what of it cannot be used
    Import(TopoImportArgs),
    /// Draw a topology
    Draw(TopoDrawArgs),
    /// Measure latency and bandwidth between the ranks of a job, and write them as a topology
    Probe(TopoProbeArgs),
}

#[derive(Args)]
pub(crate) struct TopoText {
    /// A topology file, NCCL's topology XML, what `nvidia-smi topo -m` printed, or a generator such as `torus:4x4`
    #[arg(value_name = "TOPOLOGY")]
    pub(crate) topology: String,
}

#[derive(Args)]
pub(crate) struct TopoCheckArgs {
    #[command(flatten)]
    pub(crate) text: TopoText,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct TopoImportArgs {
    #[command(flatten)]
    pub(crate) text: TopoText,
    /// Make so many of the machine that NCCL's XML or the matrix describes, joined by their NICs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) machines: Option<u32>,
    /// Where to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct TopoDrawArgs {
    #[command(flatten)]
    pub(crate) text: TopoText,
    /// Where to write: `.svg` is a picture, `.dot` a text for Graphviz
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Args)]
pub(crate) struct TopoProbeArgs {
    /// How many ranks to start on this machine
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=64), conflicts_with_all = ["rank", "world_size", "rendezvous"])]
    pub(crate) ranks: Option<u32>,
    /// Measure this machine's CUDA devices instead: each, and each pair
    #[arg(long, conflicts_with_all = ["ranks", "transport", "rank", "world_size", "rendezvous"])]
    pub(crate) gpus: bool,
    /// Transport between ranks
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) transport: TransportKind,
    /// Only each so many ranks, one after the other, share memory, as if each had a machine of its own with them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks_per_host: Option<u32>,
    /// Size of the messages that bandwidth is measured with
    #[arg(long, value_name = "SIZE", default_value = "4MiB", allow_hyphen_values = true)]
    pub(crate) bytes: Bytes,
    /// Where rank 0 writes
    #[arg(short, long, value_name = "FILE", default_value = "topology.toml")]
    pub(crate) output: PathBuf,
    /// Seconds without progress after which every rank gives up
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) timeout: f64,
    /// Be this rank of a job whose ranks are started one by one [env: RANK]
    #[arg(long, value_name = "R")]
    pub(crate) rank: Option<u32>,
    /// How many ranks the job has [env: WORLD_SIZE]
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<u32>,
    /// Where rank 0 listens for the others [env: MASTER_ADDR and MASTER_PORT]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) rendezvous: Option<String>,
}
