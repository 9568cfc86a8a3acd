//! The launcher: hosts the rendezvous, starts a process for each rank, hands each its settings and its part of the plan
//! through standard input, and hears from each through standard output, a line of JSON at a time.

use super::{devices, prepare, report};
use crate::args::{Format, RunArgs, TransportKind};
use crate::failure::Failure;
use crate::output;
use crate::processes::{self, Heard, Processes, check_descriptors};
use coll::trial::{Milestone, RankReport, Settings, run_rank, run_threads};
use coll_plan::{Plan, Proof};
use coll_tcp::{Rendezvous, Token};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// What a rank says to its launcher.
#[derive(Serialize, Deserialize)]
enum Word {
    /// So many iterations are done.
    Progress(u32),
    /// It is done; rank 0 gives everybody's reports.
    Done(Vec<RankReport>),
    /// It gave up.
    Failed(String),
}

/// Starts all ranks, waits for them, and prints what they found.
pub(super) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let ranks = match &args.ranks {
        None => None,
        Some(ranks) => Some(ranks.single().ok_or_else(|| Failure::unusable("a run has one rank count"))?),
    };
    if args.rendezvous.is_some() && ranks.is_some() {
        return Err(Failure::unusable("`--rendezvous` is for ranks that are started one by one")
            .help("leave it out, or give `--rank` and `--world-size` instead of `--ranks`"));
    }
    let mut prepared = prepare::prepare(args, ranks, None)?;
    let world = prepared.plan.world();
    if args.transport == TransportKind::Cuda && args.processes {
        // What is missing is said once, and not by every rank.
        devices::told(world, devices::order(&prepared.settings, &prepared.plan))?;
    } else if args.transport == TransportKind::Cuda {
        if args.tls {
            return Err(Failure::unusable(
                "ranks on devices are streams of one process: nothing goes over TCP",
            )
            .help("leave `--tls` out"));
        }
        let bar = progress_bar(args, &prepared.settings);
        let reports = devices::run(&prepared.settings, &prepared.plan, &bar)?;
        return report::print(args, &prepared, &reports);
    }
    check_descriptors(world)?;
    let token = Token::random().map_err(|error| Failure::unusable(format!("no random bytes: {error}")))?;
    prepared.settings.token = token.reveal().to_string();
    let server = Rendezvous::bind_tls("127.0.0.1:0", token, prepared.settings.tls);
    let server = server.map_err(|error| Failure::unusable(error.to_string()))?;
    prepared.settings.rendezvous = server.address().to_string();

    let bar = progress_bar(args, &prepared.settings);
    let outcome = match args.transport {
        TransportKind::Threads => threads(&prepared.settings, &prepared.plan, &bar),
        TransportKind::Cuda => job("__device_rank", &prepared.settings, &prepared.plan, &bar),
        _ => job(RANK, &prepared.settings, &prepared.plan, &bar),
    };
    drop(server);
    report::print(args, &prepared, &outcome?)
}

/// All ranks as threads of this process. Ctrl-C ends it with all of them.
fn threads(settings: &Settings, plan: &Plan, bar: &ProgressBar) -> Result<Vec<RankReport>, Failure> {
    let hear = |rank, milestone| match milestone {
        Milestone::Iterations(done) if rank == 0 => bar.set_position(u64::from(done)),
        Milestone::Spared(mishap) => output::complain(&spared(mishap)),
        Milestone::Iterations(_) | Milestone::Kill => {}
    };
    let ran = run_threads(settings, plan, hear);
    bar.finish_and_clear();
    let ran = ran.map_err(|error| Failure::unusable(format!("no shared memory for the ranks: {error}")))?;
    let mut reasons = BTreeMap::new();
    let mut reports = None;
    for (rank, outcome) in (0..).zip(ran) {
        match outcome {
            Ok(all) => reports = reports.or(Some(all)),
            Err(error) => {
                reasons.insert(rank, error_text(&error.to_string(), rank));
            }
        }
    }
    match reports {
        Some(reports) if reasons.is_empty() => Ok(reports),
        _ => Err(processes::failed(&reasons)),
    }
}

pub(super) fn spared(mishap: coll::trial::Mishap) -> String {
    format!(
        "warning: rank {} sends nothing from step {} on: its rehearsed failure never came",
        mishap.rank, mishap.step
    )
}

fn progress_bar(args: &RunArgs, settings: &Settings) -> ProgressBar {
    if args.format != Format::Text || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(u64::from(settings.warmup + settings.iters));
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} iterations")
        .unwrap_or(ProgressStyle::default_bar());
    bar.with_style(style)
}

/// What a rank is started as that needs its own part of the plan alone.
const RANK: &str = "__rank";

/// All ranks as processes, started as `argument`: each is handed its settings and its part of the plan, or all of it.
fn job(
    argument: &str,
    settings: &Settings,
    plan: &Plan,
    bar: &ProgressBar,
) -> Result<Vec<RankReport>, Failure> {
    let messages = (0..plan.world()).map(|rank| {
        let settings = Settings { rank, ..settings.clone() };
        if argument != RANK {
            return message(&settings, plan);
        }
        let mut slice = plan.slice(rank).expect("invariant: a whole plan has every rank");
        slice.proof = Some(Proof::Whole(settings.plan_hash.clone()));
        message(&settings, &slice)
    });
    let mut ranks = Processes::start(argument, messages)?;
    let mut reports = None;
    let heard = ranks.hear(|rank, line| match serde_json::from_str(line) {
        Ok(Word::Failed(reason)) => Heard::Failed(reason),
        Ok(Word::Done(all)) if rank == 0 => {
            reports = Some(all);
            Heard::Taken
        }
        Ok(Word::Progress(done)) if rank == 0 => {
            bar.set_position(u64::from(done));
            Heard::Taken
        }
        _ => Heard::Taken,
    });
    bar.finish_and_clear();
    heard?;
    reports.ok_or_else(|| Failure::wrong("the ranks ended without a report"))
}

fn message(settings: &Settings, plan: &Plan) -> Vec<u8> {
    let head = serde_json::to_vec(settings).expect("invariant: settings are plain data");
    let mut message = (head.len() as u64).to_le_bytes().to_vec();
    message.extend(head);
    message.extend(coll_plan::to_bytes(plan));
    message
}

/// One rank, as its launcher started it.
pub(super) fn rank() -> Result<ExitCode, Failure> {
    attend(|settings, plan| {
        let mut hear = |milestone| match milestone {
            Milestone::Iterations(done) => say(&Word::Progress(done)),
            Milestone::Kill => kill(),
            Milestone::Spared(mishap) => output::complain(&spared(mishap)),
        };
        run_rank(settings, plan, &mut hear).map_err(|error| error.to_string())
    })
}

/// One rank on a device, as its launcher started it.
pub(super) fn device_rank() -> Result<ExitCode, Failure> {
    attend(|settings, plan| {
        let mut hear = |done| say(&Word::Progress(done));
        devices::rank(settings, plan, &mut hear).map_err(|failure| failure.message().to_string())
    })
}

/// Is told what to run, and says what came of it.
fn attend(
    run: impl FnOnce(&Settings, &Plan) -> Result<Vec<RankReport>, String>,
) -> Result<ExitCode, Failure> {
    let (settings, plan) = told()?;
    let word = match run(&settings, &plan) {
        Ok(reports) => Word::Done(if settings.rank == 0 { reports } else { Vec::new() }),
        Err(error) => Word::Failed(error_text(&error, settings.rank)),
    };
    let failed = matches!(word, Word::Failed(_));
    say(&word);
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Ends this process as a signal from without would.
pub(super) fn kill() {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
}

/// Every line names its rank.
fn error_text(text: &str, rank: u32) -> String {
    if text.starts_with(&format!("rank {rank}")) { text.into() } else { format!("rank {rank}: {text}") }
}

fn say(word: &Word) {
    processes::say(&serde_json::to_string(word).expect("invariant: a word is plain data"));
}

fn told() -> Result<(Settings, Plan), Failure> {
    let unusable =
        |what: String| Failure::unusable(format!("`collc __rank` is started by `collc run`: {what}"));
    let bytes = processes::told()?;
    let (length, rest) =
        bytes.split_first_chunk::<8>().ok_or_else(|| unusable("it is told nothing".into()))?;
    let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
    if length > rest.len() {
        return Err(unusable("what it is told is cut short".into()));
    }
    let (head, plan) = rest.split_at(length);
    let settings = serde_json::from_slice(head).map_err(|error| unusable(error.to_string()))?;
    let plan = coll_plan::from_bytes(plan).map_err(|error| unusable(error.to_string()))?;
    Ok((settings, plan))
}
