//! One rank of a trial.

use crate::trial::{Inputs, Judge, Operator, Verdict};
use coll_base::{DType, RedOp};
use coll_contract::{BufferRole, Leaf};
use coll_exec::{BindError, Binding, Bound, BufferMemory, Placement, RunError, RunOptions};
use coll_kernel::{Reducer, Unsupported};
use coll_plan::Plan;
use coll_tcp::{JoinOptions, StartError, TcpTransport, Token};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::{Duration, Instant};

/// What a rank is told. All but `rank` is equal on every rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// This rank.
    pub rank: u32,
    /// Where ranks meet, `host:port`.
    pub rendezvous: String,
    /// What ranks of this job know and others do not.
    pub token: String,
    /// Hash of the whole plan.
    pub plan_hash: String,
    /// Elements of the sized buffer.
    pub elements: u64,
    /// Elements by count class.
    pub counts: Vec<u64>,
    /// The element type.
    pub dtype: DType,
    /// The operator.
    pub operator: Operator,
    /// True if the collective reduces: a rank's slice of the contract cannot always tell.
    pub reduces: bool,
    /// Iterations before the timed ones.
    pub warmup: u32,
    /// Timed iterations.
    pub iters: u32,
    /// Run in place.
    pub in_place: bool,
    /// Seed of the inputs.
    pub seed: u64,
    /// Seconds without progress after which the rank gives up.
    pub time_limit_s: f64,
    /// Seconds that making and judging data may take on top, where ranks wait for each other between operations.
    pub judging_s: f64,
}

/// What a rank found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RankReport {
    /// The rank.
    pub rank: u32,
    /// Time of each timed iteration, in microseconds.
    pub times_us: Vec<f64>,
    /// Elements that are wrong.
    pub wrong: u64,
    /// The first of them, in words.
    pub first_wrong: Option<String>,
    /// Keys of ensured values and digests of their bytes.
    pub digests: Vec<(u64, u64)>,
}

/// Why a trial ended early on this rank.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The plan cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The operator does not work on the element type.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// An operation failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A barrier or the exchange of reports failed.
    #[error("rank {rank}, {what}: {fault}")]
    Exchange {
        /// This rank.
        rank: u32,
        /// What it was doing.
        what: String,
        /// What happened.
        fault: coll_exec::Fault,
    },
    /// A report that does not read: the ranks run different programs.
    #[error("rank {rank} reports what cannot be read: {detail}; do all ranks run the same collc?")]
    Report {
        /// Whose report.
        rank: u32,
        /// What is wrong with it.
        detail: String,
    },
    /// The system gave no memory for the buffers.
    #[error("rank {rank}: no memory for {bytes} bytes of buffers; a smaller `--bytes` may fit")]
    Memory {
        /// This rank.
        rank: u32,
        /// What was asked for.
        bytes: u64,
    },
}

/// Joins the others, runs and judges, and exchanges reports: every rank gets all of them, in order. `progress` hears of
/// every finished iteration.
pub fn run_rank(
    settings: &Settings,
    plan: &Plan,
    progress: &mut dyn FnMut(u32),
) -> Result<Vec<RankReport>, TrialError> {
    let reducer = settings.operator.reducer(settings.dtype)?;
    let placements = placements(settings, plan);
    let bound = Bound::new(Binding {
        plan,
        rank: settings.rank,
        counts: &settings.counts,
        element_size_bytes: settings.dtype.size_bytes(),
        reducer: settings.reduces.then_some(&reducer),
        placements: &placements,
    });
    // What only this rank finds wrong is told to the others when they have met.
    let bound = match bound {
        Err(error) if plan.world() == 1 => return Err(error.into()),
        bound => bound,
    };
    let mut transport = coll_tcp::join(join_options(settings, plan, bound.as_ref().ok()))?;
    let done = bound.map_err(TrialError::from).and_then(|bound| {
        let mut trial = Trial { settings, plan, reducer, bound, placements };
        trial.run(&mut transport, progress)
    });
    match done {
        Ok(reports) => {
            transport.shutdown();
            Ok(reports)
        }
        Err(error) => {
            transport.abort(&error.to_string());
            transport.shutdown();
            Err(error)
        }
    }
}

fn join_options(settings: &Settings, plan: &Plan, bound: Option<&Bound>) -> JoinOptions {
    let mut options = JoinOptions::new(settings.rank, plan.world(), settings.rendezvous.clone());
    options.token = Token::from(settings.token.clone());
    options.time_limit = Duration::from_secs_f64(settings.time_limit_s);
    options.links = bound.map_or(Vec::new(), |bound| bound.links().collect());
    let field = |name: &str, value: &dyn std::fmt::Display| (name.to_string(), value.to_string());
    options.fingerprint = vec![
        field("schedule", &plan.name),
        field("plan", &settings.plan_hash),
        field("dtype", &settings.dtype),
        field("count", &settings.elements),
        field("operator", &settings.operator.name()),
        field("operator's parameters", &settings.operator.values()),
        field("operator's definition", &settings.operator.definition()),
        field("iterations", &settings.iters),
        field("warm-up", &settings.warmup),
        field("in place", &settings.in_place),
        field("seed", &settings.seed),
    ];
    options
}

fn placements(settings: &Settings, plan: &Plan) -> Vec<Placement> {
    let placement = |role| match role {
        BufferRole::InOut if settings.in_place => Placement::InPlace,
        _ => Placement::Separate,
    };
    plan.contract.buffers.iter().map(|buffer| placement(buffer.role)).collect()
}

struct Trial<'a> {
    settings: &'a Settings,
    plan: &'a Plan,
    reducer: Reducer,
    bound: Bound,
    placements: Vec<Placement>,
}

/// A buffer's memory: input and output, or in place output alone.
struct Buffer {
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Trial<'_> {
    fn run(
        &mut self,
        transport: &mut TcpTransport,
        progress: &mut dyn FnMut(u32),
    ) -> Result<Vec<RankReport>, TrialError> {
        let rank = self.settings.rank;
        let limit = Duration::from_secs_f64(self.settings.time_limit_s);
        let patience = limit + Duration::from_secs_f64(self.settings.judging_s);
        let mut buffers = self.allocate()?;
        let mut verdict = Verdict::default();
        let mut times_us = Vec::with_capacity(self.settings.iters as usize);
        let total = self.settings.warmup + self.settings.iters;
        for iteration in 0..total {
            self.fill(&mut buffers, iteration == 0);
            transport.begin(patience);
            let what = format!("barrier before operation {iteration} ({})", self.plan.name);
            exchange(transport, rank, what, Vec::new())?;
            transport.begin(limit);
            let mut memory: Vec<BufferMemory<'_>> = buffers
                .iter_mut()
                .zip(&self.placements)
                .map(|(buffer, placement)| buffer.memory(*placement))
                .collect();
            let options = RunOptions { operation: u64::from(iteration), ..RunOptions::default() };
            let start = Instant::now();
            self.bound.run(transport, &mut memory, options)?;
            let elapsed = start.elapsed();
            if iteration >= self.settings.warmup {
                times_us.push(elapsed.as_secs_f64() * 1e6);
            }
            if iteration == 0 || iteration + 1 == total {
                verdict.take(self.judge(&buffers));
            }
            progress(iteration + 1);
        }
        let Verdict { wrong, first: first_wrong, digests } = verdict;
        let report = RankReport { rank, times_us, wrong, first_wrong, digests };
        let blob = serde_json::to_vec(&report).expect("invariant: a report is plain data");
        transport.begin(patience);
        let blobs = exchange(transport, rank, "exchange of reports".into(), blob)?;
        let read = |(rank, blob): (usize, &Vec<u8>)| {
            serde_json::from_slice(blob)
                .map_err(|error| TrialError::Report { rank: rank as u32, detail: error.to_string() })
        };
        blobs.iter().enumerate().map(read).collect()
    }

    fn allocate(&self) -> Result<Vec<Buffer>, TrialError> {
        let vector = |bytes: u64| -> Result<Vec<u8>, TrialError> {
            let mut vector = Vec::new();
            let too_much = |_| TrialError::Memory { rank: self.settings.rank, bytes };
            vector.try_reserve_exact(bytes as usize).map_err(too_much)?;
            vector.resize(bytes as usize, 0);
            Ok(vector)
        };
        let buffer = |at: usize| {
            let [input, output] = self.bound.buffer_bytes(at).unwrap_or_default();
            Ok(Buffer { input: vector(input)?, output: vector(output)? })
        };
        (0..self.plan.contract.buffers.len()).map(buffer).collect()
    }

    /// Fills inputs, and outputs with what is no result, so that an element that is never written shows.
    fn fill(&self, buffers: &mut [Buffer], first: bool) {
        let inputs = self.inputs();
        for (at, buffer) in buffers.iter_mut().enumerate() {
            let in_place = self.placements[at] == Placement::InPlace;
            if !in_place && !first {
                buffer.output.fill(0xA5);
                continue;
            }
            let filled = if in_place { &mut buffer.output } else { &mut buffer.input };
            let size = filled.len();
            filled.clear();
            for block in 0..self.plan.contract.buffers[at].blocks {
                let (rank, number) = (self.settings.rank, at as u32);
                let count = self.settings.counts[self.plan.contract.class(rank, number, block) as usize];
                let given = self.plan.contract.is_given(rank, number, block);
                if given {
                    inputs.fill(Leaf { rank, buffer: number, block }, 0, count, filled);
                } else if in_place {
                    filled.resize(filled.len() + (count * self.settings.dtype.size_bytes()) as usize, 0xA5);
                }
            }
            debug_assert_eq!(filled.len(), size, "buffers are filled as they were bound");
            if !in_place {
                buffer.output.fill(0xA5);
            }
        }
    }

    fn inputs(&self) -> Inputs {
        let near_one = self.settings.operator.builtin() == Some(RedOp::Prod);
        Inputs { seed: self.settings.seed, dtype: self.settings.dtype, near_one }
    }

    fn judge(&self, buffers: &[Buffer]) -> Verdict {
        let judge = Judge {
            contract: &self.plan.contract,
            counts: &self.settings.counts,
            inputs: self.inputs(),
            op: self.settings.operator.builtin(),
            reducer: &self.reducer,
        };
        let rank = self.settings.rank;
        let outputs: Vec<Cow<'_, [u8]>> = buffers
            .iter()
            .enumerate()
            .map(|(at, buffer)| match self.placements[at] {
                Placement::Separate => Cow::Borrowed(&buffer.output[..]),
                Placement::InPlace => Cow::Owned(self.ensured(at as u32, &buffer.output)),
            })
            .collect();
        let outputs: Vec<&[u8]> = outputs.iter().map(|output| &output[..]).collect();
        judge.verdict(rank, &outputs)
    }

    /// The ensured blocks of a buffer that holds every block.
    fn ensured(&self, buffer: u32, all: &[u8]) -> Vec<u8> {
        let (contract, rank) = (&self.plan.contract, self.settings.rank);
        let (mut kept, mut offset) = (Vec::new(), 0);
        for block in 0..contract.buffers[buffer as usize].blocks {
            let count = self.settings.counts[contract.class(rank, buffer, block) as usize];
            let size = (count * self.settings.dtype.size_bytes()) as usize;
            if contract.ensured(rank, buffer, block).is_some() {
                kept.extend_from_slice(&all[offset..offset + size]);
            }
            offset += size;
        }
        kept
    }
}

impl Buffer {
    fn memory(&mut self, placement: Placement) -> BufferMemory<'_> {
        match placement {
            Placement::Separate => BufferMemory::Separate { input: &self.input, output: &mut self.output },
            Placement::InPlace => BufferMemory::InPlace(&mut self.output),
        }
    }
}

fn exchange(
    transport: &mut TcpTransport,
    rank: u32,
    what: String,
    blob: Vec<u8>,
) -> Result<Vec<Vec<u8>>, TrialError> {
    transport.exchange(blob).map_err(|fault| TrialError::Exchange { rank, what, fault })
}
