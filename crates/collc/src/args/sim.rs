//! The options of `collc sim` and `collc compare`.

use super::{Choice, Format, Passes};
use clap::{Args, ValueEnum};
use coll::{Bytes, RankCounts};
use coll_base::DType;
use coll_sim::loggops::LogGops;
use std::path::PathBuf;
use std::str::FromStr;

/// How time passes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Model {
    /// Messages are flows that share the links of a topology
    Flow,
    /// LogGOPSim's model of six constants, for GOAL files
    Loggops,
}

/// What a plan is run on, in either command.
#[derive(Args)]
pub(crate) struct Ground {
    /// The network: a topology file, or a generator such as `full:8,bw=25GB/s,lat=1us`
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) topology: Option<String>,
    /// How many ranks [default: the plan's, or one for each device]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) ranks: Option<RankCounts>,
    /// The root
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    pub(crate) root: Option<u32>,
    /// Element type: what a plan holds or sends as another counts as that
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    pub(crate) dtype: DType,
    /// The device of each rank: `best`, `none` for the topology's order, `shuffled:SEED`, or devices by name or number such as
    /// `0,2,1,3` [default: as the plan says, else none]
    #[arg(long, value_name = "PLACE")]
    pub(crate) place: Option<String>,
    /// Messages of a connection that may be under way before their receives are there [default: as many as the plan needs]
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<u32>,
    /// Messages are passed on byte by byte where the plan allows it, not stored whole first
    #[arg(long)]
    pub(crate) stream: bool,
    /// Work out all rates whenever a message comes or goes, also where more than 256 share links; slow for large jobs
    #[arg(long)]
    pub(crate) exact: bool,
    #[command(flatten)]
    pub(crate) passes: Passes,
}

#[derive(Args)]
pub(crate) struct SimArgs {
    /// A schedule file, a plan, a file of another tool, or the name of a library schedule such as `allreduce.ring`
    #[arg(value_name = "FILE|PLAN|NAME")]
    pub(crate) target: String,
    #[command(flatten)]
    pub(crate) ground: Ground,
    /// Size of the operation's buffer on each rank, as in nccl-tests: `28`, `64K`, `1MiB` [default: 1MiB]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) bytes: Option<Bytes>,
    /// Write the run as a trace for chrome://tracing and Perfetto
    #[arg(long, value_name = "OUT.json")]
    pub(crate) trace: Option<PathBuf>,
    /// How time passes [default: loggops for files that end in `.goal`, else flow]
    #[arg(long, value_enum)]
    pub(crate) model: Option<Model>,
    /// Constants of LogGOPS in nanoseconds and, for S, bytes; those left out are LogGOPSim's [default:
    /// L=2500,o=1500,g=1000,G=6,O=0,S=65535]
    #[arg(long, value_name = "CONSTANTS", value_parser = LogGops::from_str)]
    pub(crate) params: Option<LogGops>,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

#[derive(Args)]
pub(crate) struct CompareArgs {
    /// Schedule files, plans or names of library schedules, such as `allreduce.ring allreduce.rabenseifner`; `NAME@PLACE` places the
    /// ranks of one as `--place` does of all: `allreduce.ring@best`
    #[arg(value_name = "FILE|PLAN|NAME", required = true)]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) ground: Ground,
    /// Sizes: each twice the one before, `1KiB..64MiB`, or a list
    #[arg(long, value_name = "SIZES", default_value = "1KiB..64MiB", allow_hyphen_values = true)]
    pub(crate) sizes: Sizes,
    /// Set a parameter of those schedules that have it; one that is a list, such as the sizes of nodes, to `local=8,8,4`
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = super::definition, allow_hyphen_values = true)]
    pub(crate) define: Vec<(String, super::Numbers)>,
    /// Write a plot of the times
    #[arg(short, long, value_name = "OUT.svg")]
    pub(crate) output: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: Format,
}

/// Sizes to look at, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes(pub(crate) Vec<u64>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let mut sizes = Vec::new();
        for part in text.split(',') {
            let Some((low, high)) = part.split_once("..") else {
                sizes.push(part.parse::<Bytes>()?.0);
                continue;
            };
            let low: Bytes = low.parse()?;
            let high: Bytes = high.trim_start_matches('=').parse()?;
            if low.0 == 0 || low > high {
                return Err(format!("`{part}` holds no sizes: it goes up from a size above 0"));
            }
            let doubled = std::iter::successors(Some(low.0), |size| size.checked_mul(2));
            sizes.extend(doubled.take_while(|&size| size <= high.0));
        }
        sizes.sort_unstable();
        sizes.dedup();
        Ok(Sizes(sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::Sizes;

    #[test]
    fn sizes_are_ranges_that_double_and_lists() {
        let read = |text: &str| text.parse::<Sizes>().map(|sizes| sizes.0);
        assert_eq!(read("1KiB..8KiB"), Ok(vec![1024, 2048, 4096, 8192]));
        assert_eq!(read("3..=13,5"), Ok(vec![3, 5, 6, 12]));
        assert!(read("0..8").is_err() && read("8..4").is_err() && read("x").is_err() && read("").is_err());
    }
}
