//! What a benchmark's ranks are told, and what rank 0 reports of a cell.

use crate::failure::Failure;
use coll::select::{Chooser, insisted};
use coll_base::{DType, RedOp};
use coll_cost::Tuning;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a rank is told. All but `rank` is equal on every rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settings {
    pub(crate) rank: u32,
    pub(crate) world: u32,
    /// Where ranks meet, `host:port`.
    pub(crate) rendezvous: String,
    pub(crate) token: String,
    /// What goes over TCP goes within TLS.
    pub(crate) tls: bool,
    /// The file of [`super::control`].
    pub(crate) control: PathBuf,
    pub(crate) cells: Vec<Cell>,
    pub(crate) dtype: DType,
    pub(crate) op: RedOp,
    pub(crate) root: u32,
    pub(crate) pace: Pace,
    /// Whether results are compared with what they should be.
    pub(crate) check: bool,
    /// Seconds without progress after which the rank gives up.
    pub(crate) time_limit_s: f64,
    pub(crate) transport: String,
    /// Ranks on devices are processes.
    pub(crate) processes: bool,
    /// Buffers lie where peers read them in place.
    pub(crate) shared_memory: bool,
    /// Payloads carry checksums over TCP.
    pub(crate) checksums: bool,
    /// Bits are to depend on the number of ranks alone.
    pub(crate) deterministic: bool,
    /// What narrow floats are reduced in, if not in their own type.
    pub(crate) accumulate: Option<DType>,
    /// What wider floats travel as, if not as they are.
    pub(crate) wire: Option<DType>,
    /// Run chosen plans, without a communicator.
    pub(crate) plans: bool,
    /// Cores that choices reckon with.
    pub(crate) cores: u32,
    /// The text of a file of constants, if there is one.
    pub(crate) constants: Option<String>,
    /// Schedules to take whatever they cost, as the environment has it.
    pub(crate) forced: String,
}

impl Settings {
    /// What schedules are chosen by.
    pub(super) fn chooser(&self) -> Result<Chooser, Failure> {
        let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
        let tuning = match &self.constants {
            None => Tuning::shipped(),
            Some(text) => Tuning::from_json(text).map_err(|error| unusable(&error))?,
        };
        let (forced, imposed) = insisted(&self.forced).map_err(|error| unusable(&error))?;
        Ok(Chooser::new(tuning).with_forced(forced).with_imposed(imposed))
    }
}

/// One row: an operation at a size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// As the library has it.
    pub(crate) operation: String,
    /// The size that is asked for.
    pub(crate) bytes: u64,
    pub(crate) in_place: bool,
    /// Take this schedule, `allreduce.ring`, whatever it costs.
    pub(crate) schedule: Option<String>,
}

/// How often a cell is run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Pace {
    /// Runs before anything is timed; else at least 3, and up to 50 in 50 ms.
    pub(crate) warmup: Option<u32>,
    /// Timed runs; else as many as fill the target.
    pub(crate) iters: Option<u32>,
    /// Seconds that the timed runs of a cell should take.
    pub(crate) target_s: f64,
    /// Least iterations up to 1 MiB.
    pub(crate) min_small: u32,
    /// Least iterations above.
    pub(crate) min_big: u32,
    /// Most iterations.
    pub(crate) max_iters: u32,
    /// Seconds to wait for a quiet machine before a cell.
    pub(crate) gate_s: f64,
    /// More attempts at a cell during which others used more than a quarter of a core.
    pub(crate) retries: u32,
}

/// What was measured in a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Which cell.
    pub(crate) cell: usize,
    /// The schedule that was taken.
    pub(crate) schedule: String,
    /// Bytes of the sized buffer, which is at least an element for each block.
    pub(crate) actual_bytes: u64,
    pub(crate) elements: u64,
    /// Whether the operation reduces.
    pub(crate) reduces: bool,
    pub(crate) root: Option<u32>,
    /// Busbw is algbw times this.
    pub(crate) bus_factor: f64,
    /// Over the iterations, each of which is the largest over the ranks.
    pub(crate) median_us: f64,
    pub(crate) min_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) iters: u32,
    /// The mean of runs without barriers between, the largest over the ranks.
    pub(crate) b2b_us: f64,
    pub(crate) b2b_iters: u32,
    /// Cores' worth of processor time that others used.
    pub(crate) other_cores: f64,
    /// One way between ranks 0 and 1 through shared memory.
    pub(crate) pp_us: f64,
    /// Wrong elements, if that was looked at.
    pub(crate) bad: Option<u64>,
}

/// A line that a rank says.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Word {
    /// A cell is done.
    Cell(Box<Measured>),
    /// The rank gave up.
    Failed(String),
}
