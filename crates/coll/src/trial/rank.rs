//! One rank of a trial.

use crate::comm::{Meeting, Via, Wires, WiresError, host_name};
use crate::plans::identity;
use crate::trial::rehearsal::{Mishap, Rehearsal};
use crate::trial::timeline::{Timeline, now_ns};
use crate::trial::{
    Inputs, Judge, NoMemory, Operator, OperatorCode, RunMemory, Verdict, placements, travels_as,
};
use coll_base::{DType, RedOp};
use coll_exec::{BindError, Binding, Bound, BufferMemory, Link, RunError, RunOptions};
use coll_kernel::{Reducer, Unsupported};
use coll_plan::{Plan, Proof};
use coll_shm::ShmTransport;
use coll_tcp::{Call, StartError};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;
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
    /// What goes over TCP goes within TLS.
    pub tls: bool,
    /// How ranks may reach each other.
    pub via: Via,
    /// If given, only each so many ranks, one after the other, share memory, as if they had machines of their own.
    pub ranks_per_host: Option<u32>,
    /// If given, the machine of each rank: only ranks of one share memory.
    pub machines: Vec<u32>,
    /// Payloads carry checksums over TCP.
    pub checksums: bool,
    /// What the plan is shown as: see [`crate::proof_hash`].
    pub plan_hash: String,
    /// Elements of the sized buffer.
    pub elements: u64,
    /// Elements by count class.
    pub counts: Vec<u64>,
    /// The element type.
    pub dtype: DType,
    /// The operator.
    pub operator: Operator,
    /// A user's operator runs as machine code where it can.
    pub native: bool,
    /// True if the collective reduces: a rank's slice of the contract cannot always tell.
    pub reduces: bool,
    /// Iterations before the timed ones.
    pub warmup: u32,
    /// Timed iterations.
    pub iters: u32,
    /// Run once more after them, and tell when each operation began and ended.
    pub timeline: bool,
    /// Run in place.
    pub in_place: bool,
    /// Seed of the inputs.
    pub seed: u64,
    /// Seconds without progress after which the rank gives up.
    pub time_limit_s: f64,
    /// Seconds that making and judging data may take on top, where ranks wait for each other between operations.
    pub judging_s: f64,
    /// Failures that are rehearsed.
    pub mishaps: Vec<Mishap>,
}

/// What whoever started a rank hears of it while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Milestone {
    /// So many iterations are done.
    Iterations(u32),
    /// A rehearsed failure wants this process to be killed, now.
    Kill,
    /// A rehearsed failure never came about: the rank sent nothing from that step on.
    Spared(Mishap),
}

/// What a rank found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RankReport {
    /// The rank.
    pub rank: u32,
    /// Time of each timed iteration, in microseconds.
    pub times_us: Vec<f64>,
    /// What ran where the operator was applied.
    pub operator_code: OperatorCode,
    /// Elements that are wrong.
    pub wrong: u64,
    /// The first of them, in words.
    pub first_wrong: Option<String>,
    /// Keys of ensured values and digests of their bytes.
    pub digests: Vec<(u64, u64)>,
    /// When operations began and ended, if that was asked for.
    pub timeline: Option<Timeline>,
}

/// Why a trial ended early on this rank.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The ranks met, and cannot reach each other as they should.
    #[error("rank {rank}: {what}")]
    Meet {
        /// This rank.
        rank: u32,
        /// What is wrong.
        what: String,
    },
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
    /// Two ranks know the whole plan that they have slices of, and it is not one.
    #[error(
        "rank {rank} has a slice of the plan {found}, and rank {other} one of the plan {expected}, though both were \
         compiled from the same; run the same build of collc on all ranks"
    )]
    PlansDiffer {
        /// This rank, or the first that differs.
        rank: u32,
        /// Its whole plan's hash.
        found: String,
        /// The first rank that knows the whole.
        other: u32,
        /// Its whole plan's hash.
        expected: String,
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

/// Joins the others, runs and judges, and exchanges reports: every rank gets all of them, in order. `hear` is told how it
/// goes.
pub fn run_rank(
    settings: &Settings,
    plan: &Plan,
    hear: &mut dyn FnMut(Milestone),
) -> Result<Vec<RankReport>, TrialError> {
    run_rank_of(settings, plan, None, hear)
}

/// `threads` is the shared memory of ranks that are threads of one process.
pub(super) fn run_rank_of(
    settings: &Settings,
    plan: &Plan,
    threads: Option<ShmTransport>,
    hear: &mut dyn FnMut(Milestone),
) -> Result<Vec<RankReport>, TrialError> {
    let (reducer, operator_code) = settings.operator.compiled(settings.dtype, settings.native)?;
    let reference = settings.operator.reference(settings.dtype, plan)?;
    let placements = placements(&plan.contract, settings.in_place);
    let binding = Binding {
        plan,
        rank: settings.rank,
        counts: &settings.counts,
        element_size_bytes: settings.dtype.size_bytes(),
        reducer: settings.reduces.then_some(&reducer),
        placements: &placements,
    };
    let bound = Bound::typed(binding, settings.dtype);
    // What only this rank finds wrong is told to the others when they have met.
    let bound = match bound {
        Err(error) if plan.world() == 1 => return Err(error.into()),
        bound => bound,
    };
    let words = words(settings, plan);
    let mut wires = Wires::join(meeting(settings, plan, words.clone()), None, threads)
        .map_err(|error| meet_error(settings.rank, error))?;
    let done = bound.map_err(TrialError::from).and_then(|bound| {
        let call = Arc::new(call(words));
        let mut trial = Trial { settings, plan, reference, operator_code, bound, call };
        trial.run(&mut wires, hear)
    });
    if let Err(error) = &done {
        wires.abort(&error.to_string());
    }
    done
}

fn meeting(settings: &Settings, plan: &Plan, fingerprint: Vec<(String, String)>) -> Meeting {
    Meeting {
        rank: settings.rank,
        world: plan.world(),
        address: settings.rendezvous.clone(),
        token: settings.token.clone(),
        tls: settings.tls,
        job: String::new(),
        time_limit: duration(settings.time_limit_s),
        via: settings.via,
        host: match settings.machines.get(settings.rank as usize) {
            Some(machine) => format!("#{machine}"),
            None => host_name("", settings.ranks_per_host, settings.rank),
        },
        checksums: settings.checksums,
        fingerprint,
    }
}

fn meet_error(rank: u32, error: WiresError) -> TrialError {
    match error {
        WiresError::Start(error) => TrialError::Start(error),
        other => TrialError::Meet { rank, what: other.to_string() },
    }
}

/// What the ranks of a job compare when they meet, and again where they stall: names, and values that are equal on all.
pub fn words(settings: &Settings, plan: &Plan) -> Vec<(String, String)> {
    let field = |name: &str, value: &dyn std::fmt::Display| (name.to_string(), value.to_string());
    vec![
        field("schedule", &plan.name),
        field("root", &plan.root.map_or("none".into(), |root| root.to_string())),
        field("parameters", &parameters(plan)),
        field("lanes", &plan.channels),
        field("slices", &plan.slices),
        field("travel as", &plan.wire.map_or("what they are", DType::name)),
        field("accumulated in", &plan.accumulate.map_or("its own type", DType::name)),
        field("plan", &identity(plan)),
        field("dtype", &settings.dtype),
        field("count", &settings.elements),
        field("counts of blocks", &shown(&settings.counts)),
        field("operator", &settings.operator.name()),
        field("operator's parameters", &settings.operator.values()),
        field("operator's definition", &settings.operator.definition()),
        field("iterations", &settings.iters),
        field("warm-up", &settings.warmup),
        field("timeline", &settings.timeline),
        field("in place", &settings.in_place),
        field("seed", &settings.seed),
    ]
}

fn call(words: Vec<(String, String)>) -> Call {
    let digest = Sha256::digest(format!("{words:?}"));
    Call { fingerprint: std::array::from_fn(|at| digest[at]), words }
}

/// `[3, 0, 7]`; of very many the first, and a hash of all.
fn shown(counts: &[u64]) -> String {
    const SHOWN_MAX: usize = 64;
    if counts.len() <= SHOWN_MAX {
        return format!("{counts:?}");
    }
    let hash = counts.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, count| {
        (hash ^ count).wrapping_mul(0x0100_0000_01b3).rotate_left(29)
    });
    format!("{:?} and more, hash {hash:016x}", &counts[..SHOWN_MAX])
}

/// Nobody waits for longer than a year, whatever the settings say; what is no time is none.
fn duration(seconds: f64) -> Duration {
    const YEAR_S: f64 = 365.0 * 86_400.0;
    Duration::try_from_secs_f64(seconds.min(YEAR_S)).unwrap_or_default()
}

/// `k = 2, local = 4`
fn parameters(plan: &Plan) -> String {
    let pairs = coll_base::named_values(&plan.params);
    if pairs.is_empty() { "none".into() } else { pairs.join(", ") }
}

struct Trial<'a> {
    settings: &'a Settings,
    plan: &'a Plan,
    /// What results are judged by: it shares no code with what a user's operator ran as.
    reference: Reducer,
    operator_code: OperatorCode,
    bound: Bound,
    call: Arc<Call>,
}

impl Trial<'_> {
    fn run(
        &mut self,
        wires: &mut Wires,
        hear: &mut dyn FnMut(Milestone),
    ) -> Result<Vec<RankReport>, TrialError> {
        let rank = self.settings.rank;
        let limit = duration(self.settings.time_limit_s);
        let patience = limit + duration(self.settings.judging_s);
        let Settings { counts, dtype, in_place, .. } = self.settings;
        let memory = RunMemory::new(&self.plan.contract, rank, counts, dtype.size_bytes(), *in_place);
        let mut memory = memory.map_err(|NoMemory { bytes }| TrialError::Memory { rank, bytes })?;
        let mut verdict = Verdict::default();
        let mut times_us = Vec::with_capacity(self.settings.iters as usize);
        let timed_end = self.settings.warmup.saturating_add(self.settings.iters);
        let total = timed_end.saturating_add(self.settings.timeline.into());
        let mut rehearsal = Rehearsal::of(&self.settings.mishaps, rank, limit);
        self.connect(wires, limit)?;
        for iteration in 0..total {
            if iteration == timed_end {
                self.bound.keep_times(now_ns);
            }
            memory.fill(&self.inputs(), iteration > 0);
            let what = format!("barrier before operation {iteration} ({})", self.plan.name);
            let known = if iteration == 0 { known_whole(self.plan) } else { Vec::new() };
            compare_known(rank, &exchange(wires, rank, patience, what, known)?)?;
            let options = wires.begin(limit, iteration.into(), &self.call, true);
            let start = Instant::now();
            self.operate(wires, &mut memory.bound(), options, rehearsal.as_mut(), hear)?;
            let elapsed = start.elapsed();
            wires.end();
            if (self.settings.warmup..timed_end).contains(&iteration) {
                times_us.push(elapsed.as_secs_f64() * 1e6);
            }
            if iteration == 0 || iteration + 1 == total {
                let judged = (iteration > 0).then_some(&verdict);
                verdict.take(self.judge(&memory, judged));
            }
            hear(Milestone::Iterations(iteration + 1));
        }
        if let Some(spared) = rehearsal.and_then(|rehearsal| rehearsal.left()) {
            hear(Milestone::Spared(spared));
        }
        let Verdict { wrong, first: first_wrong, digests } = verdict;
        let report = RankReport {
            rank,
            times_us,
            operator_code: self.operator_code.clone(),
            wrong,
            first_wrong,
            digests,
            timeline: Timeline::of(&self.bound),
        };
        let blob = serde_json::to_vec(&report).expect("invariant: a report is plain data");
        let blobs = exchange(wires, rank, patience, "exchange of reports".into(), blob)?;
        let read = |(rank, blob): (usize, &Vec<u8>)| {
            serde_json::from_slice(blob)
                .map_err(|error| TrialError::Report { rank: rank as u32, detail: error.to_string() })
        };
        blobs.iter().enumerate().map(read).collect()
    }

    fn connect(&self, wires: &mut Wires, limit: Duration) -> Result<(), TrialError> {
        let links: Vec<Link> = self.bound.links().collect();
        let rank = self.settings.rank;
        let what = || format!("connecting to the peers of {}", self.plan.name);
        wires.connect(&links, limit).map_err(|fault| TrialError::Exchange { rank, what: what(), fault })
    }

    fn operate(
        &mut self,
        wires: &mut Wires,
        buffers: &mut [BufferMemory<'_>],
        options: RunOptions,
        rehearsal: Option<&mut Rehearsal>,
        hear: &mut dyn FnMut(Milestone),
    ) -> Result<(), TrialError> {
        let ran = match rehearsal {
            None => self.bound.run(wires, buffers, options),
            Some(rehearsal) => {
                let mut kill = || hear(Milestone::Kill);
                self.bound.run(&mut rehearsal.over(wires, &mut kill), buffers, options)
            }
        };
        ran.map_err(|mut error| {
            error.fault = wires.explain(error.fault);
            error.into()
        })
    }

    fn inputs(&self) -> Inputs {
        let near_one = self.settings.operator.builtin() == Some(RedOp::Prod);
        Inputs { seed: self.settings.seed, dtype: self.settings.dtype, near_one }
    }

    /// Judges what lies in memory, from inputs that are always the same: what has the bits of what was judged before, where
    /// nothing was wrong, is judged as that was.
    fn judge(&self, memory: &RunMemory<'_>, before: Option<&Verdict>) -> Verdict {
        let judge = Judge {
            contract: &self.plan.contract,
            counts: &self.settings.counts,
            inputs: self.inputs(),
            op: self.settings.operator.builtin(),
            reducer: &self.reference,
            wire: travels_as(self.plan, self.settings.dtype, &self.reference),
        };
        let outputs = memory.outputs();
        let outputs: Vec<&[u8]> = outputs.iter().map(|output| &output[..]).collect();
        if let Some(before) = before.filter(|before| before.wrong == 0) {
            let digests = judge.digests(self.settings.rank, &outputs);
            if digests == before.digests {
                return Verdict { digests, ..Verdict::default() };
            }
        }
        judge.verdict(self.settings.rank, &outputs)
    }
}

/// The hash of the whole plan, if this rank knows it: a slice that was made alone does not.
fn known_whole(plan: &Plan) -> Vec<u8> {
    match &plan.proof {
        Some(Proof::Whole(hash)) => hash.clone().into_bytes(),
        _ => Vec::new(),
    }
}

/// Ranks whose slices were cut from a whole have them from one. That all were compiled from the same is known since they
/// joined; builds of the compiler may differ all the same.
fn compare_known(rank: u32, blobs: &[Vec<u8>]) -> Result<(), TrialError> {
    let mut known = (0..).zip(blobs).filter(|(_, blob)| !blob.is_empty());
    let Some((other, expected)) = known.next() else { return Ok(()) };
    match known.find(|(_, found)| *found != expected) {
        None => Ok(()),
        Some((differs, found)) => {
            let text = |blob: &[u8]| String::from_utf8_lossy(blob).into_owned();
            let own = &blobs[rank as usize];
            let (rank, found) =
                if own.is_empty() || own == expected { (differs, found) } else { (rank, own) };
            Err(TrialError::PlansDiffer { rank, found: text(found), other, expected: text(expected) })
        }
    }
}

fn exchange(
    wires: &mut Wires,
    rank: u32,
    limit: Duration,
    what: String,
    blob: Vec<u8>,
) -> Result<Vec<Vec<u8>>, TrialError> {
    wires.exchange(limit, blob).map_err(|fault| TrialError::Exchange { rank, what, fault })
}
