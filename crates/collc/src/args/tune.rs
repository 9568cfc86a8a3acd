//! The options of `collc tune`.

use super::bench::BenchTransport;
use super::seconds;
use clap::Args;
use coll::RankCounts;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct TuneArgs {
    /// Transports between ranks, one after the other: `tcp,shm`
    #[arg(long, value_enum, default_value = "tcp", value_delimiter = ',')]
    pub(crate) transport: Vec<BenchTransport>,
    /// Rank counts to measure with [default: 2, and two for each core]
    #[arg(long, value_name = "COUNTS", allow_hyphen_values = true)]
    pub(crate) ranks: Option<RankCounts>,
    /// Where to write; what the file has of other transports is kept
    #[arg(short, long, value_name = "FILE", default_value = "collc-tune.json")]
    pub(crate) output: PathBuf,
    /// Rank counts for which it is worked out, and written too, what common calls take by the new constants, so that a first
    /// call compiles one schedule instead of several [default: 2..=16, 24, 32, 48 and 64]
    #[arg(long, value_name = "COUNTS", allow_hyphen_values = true)]
    pub(crate) answers: Option<RankCounts>,
    /// Work nothing out: first calls look for themselves
    #[arg(long, conflicts_with_all = ["answers", "ranks_per_host"])]
    pub(crate) no_answers: bool,
    /// Work it out for several machines as well, of so many ranks each, with commas between
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ranks_per_host: Vec<u32>,
    /// Then run all operations with what the constants choose, and say how far predictions were off
    #[arg(long)]
    pub(crate) check: bool,
    /// Seconds that the timed runs of a probe should take
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1, value_parser = seconds)]
    pub(crate) target: f64,
    /// Seconds without progress after which every rank gives up
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds)]
    pub(crate) timeout: f64,
}
