//! The launcher: hosts the rendezvous, starts a process for each rank, hands each its settings and its part of the plan
//! through standard input, and hears from each through standard output, a line of JSON at a time.

use super::{prepare, report};
use crate::args::{Format, RunArgs, TransportKind};
use crate::failure::Failure;
use crate::output;
use coll::trial::{Milestone, RankReport, Settings, TrialError, run_rank, run_threads};
use coll_plan::{Plan, Proof};
use coll_tcp::{Rendezvous, Token};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use std::{env, thread};

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

/// What the launcher hears.
enum Event {
    Word(u32, Word),
    /// A rank's output ended.
    Closed(u32),
    /// Ctrl-C.
    Interrupted,
}

/// After the first rank failed, the others have this long to say why they gave up.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Set by Ctrl-C, so that nothing more is started.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

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
    check_descriptors(world)?;
    let token = Token::random().map_err(|error| Failure::unusable(format!("no random bytes: {error}")))?;
    prepared.settings.token = token.reveal().to_string();
    let server =
        Rendezvous::bind("127.0.0.1:0", token).map_err(|error| Failure::unusable(error.to_string()))?;
    prepared.settings.rendezvous = server.address().to_string();

    let (sender, events) = mpsc::channel();
    let interrupt = sender.clone();
    let handled = move || {
        ctrlc::set_handler(move || {
            INTERRUPTED.store(true, Ordering::SeqCst);
            let _ = interrupt.send(Event::Interrupted);
        })
    };
    if args.transport != TransportKind::Threads {
        handled().map_err(|error| Failure::unusable(format!("cannot catch Ctrl-C: {error}")))?;
    }
    let bar = progress_bar(args, &prepared.settings);
    let outcome = match args.transport {
        TransportKind::Threads => threads(&prepared.settings, &prepared.plan, &bar),
        _ => {
            let mut job = Job::start(&prepared.settings, &prepared.plan, sender)?;
            let outcome = job.wait(&events, &bar);
            job.end();
            outcome
        }
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
                reasons.insert(rank, error_text(&error, rank));
            }
        }
    }
    match reports {
        Some(reports) if reasons.is_empty() => Ok(reports),
        _ => Err(failed(&reasons)),
    }
}

pub(super) fn spared(mishap: coll::trial::Mishap) -> String {
    format!(
        "warning: rank {} sends nothing from step {} on: its rehearsed failure never came",
        mishap.rank, mishap.step
    )
}

/// Each rank needs two pipes, a control connection and, at its peers, links: too few descriptors are told before
/// anything is started.
fn check_descriptors(world: u32) -> Result<(), Failure> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let needed = u64::from(world) * 6 + 32;
    let (Some(current), hard) = (limit.current, limit.maximum) else { return Ok(()) };
    if current >= needed {
        return Ok(());
    }
    if hard.is_none_or(|hard| hard >= needed) {
        let raised = rustix::process::Rlimit { current: Some(needed), maximum: hard };
        if rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).is_ok() {
            return Ok(());
        }
    }
    Err(Failure::unusable(format!(
        "{world} ranks need {needed} file descriptors, and the limit is {current}"
    ))
    .help("raise it with `ulimit -n`, or start fewer ranks"))
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

/// The processes of a job. Dropping it ends them.
struct Job {
    children: Vec<Child>,
}

impl Job {
    fn start(settings: &Settings, plan: &Plan, events: Sender<Event>) -> Result<Job, Failure> {
        let program =
            env::current_exe().map_err(|error| Failure::unusable(format!("where is collc? {error}")))?;
        let mut job = Job { children: Vec::new() };
        for rank in 0..plan.world() {
            if INTERRUPTED.load(Ordering::SeqCst) {
                return Err(Failure::interrupted());
            }
            let started = Command::new(&program)
                .arg("__rank")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| Failure::unusable(format!("cannot start rank {rank}: {error}")));
            job.children.push(started?);
            let child = job.children.last_mut().expect("invariant: it was just added");
            let settings = Settings { rank, ..settings.clone() };
            let mut slice = plan.slice(rank).expect("invariant: a whole plan has every rank");
            slice.proof = Some(Proof::Whole(settings.plan_hash.clone()));
            let input = child.stdin.take().expect("invariant: it is piped");
            let output = child.stdout.take().expect("invariant: it is piped");
            let message = message(&settings, &slice);
            // A rank that dies at once closes its pipe; its end is told by its output.
            thread::spawn(move || { input }.write_all(&message));
            let events = events.clone();
            thread::spawn(move || listen(rank, output, &events));
        }
        Ok(job)
    }

    /// Hears all ranks to their ends. On failure, every rank's reason.
    fn wait(&mut self, events: &Receiver<Event>, bar: &ProgressBar) -> Result<Vec<RankReport>, Failure> {
        let mut reports = None;
        let mut reasons: BTreeMap<u32, String> = BTreeMap::new();
        let mut open = self.children.len();
        while open > 0 {
            let event = match reasons.is_empty() {
                true => events.recv().ok(),
                false => events.recv_timeout(LAST_WORDS).ok(),
            };
            match event {
                None => break,
                Some(Event::Interrupted) => return Err(Failure::interrupted()),
                Some(Event::Word(0, Word::Progress(done))) => bar.set_position(u64::from(done)),
                Some(Event::Word(_, Word::Progress(_))) => {}
                Some(Event::Word(rank, Word::Done(all))) => {
                    if rank == 0 {
                        reports = Some(all);
                    }
                }
                Some(Event::Word(rank, Word::Failed(reason))) => {
                    reasons.insert(rank, reason);
                }
                Some(Event::Closed(rank)) => {
                    open -= 1;
                    if let Some(end) = self.abnormal_end(rank) {
                        reasons.entry(rank).or_insert(end);
                    }
                }
            }
        }
        bar.finish_and_clear();
        if INTERRUPTED.load(Ordering::SeqCst) {
            return Err(Failure::interrupted());
        }
        match reports {
            Some(reports) if reasons.is_empty() => Ok(reports),
            _ => Err(failed(&reasons)),
        }
    }

    /// How a rank ended, if not in good order.
    fn abnormal_end(&mut self, rank: u32) -> Option<String> {
        match self.children[rank as usize].wait() {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("rank {rank} ended without a word: {}", describe(status))),
            Err(error) => Some(format!("rank {rank} cannot be waited for: {error}")),
        }
    }

    /// Ends what is left of it.
    fn end(&mut self) {
        for child in &mut self.children {
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(unix)]
fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => format!("killed by signal {signal}"),
        None => status.to_string(),
    }
}

#[cfg(not(unix))]
fn describe(status: ExitStatus) -> String {
    status.to_string()
}

/// One line for each rank that has something to say.
fn failed(reasons: &BTreeMap<u32, String>) -> Failure {
    let lines: Vec<&str> = reasons.values().map(String::as_str).collect();
    match lines[..] {
        [] => Failure::wrong("the ranks ended without a report"),
        [one] => Failure::wrong(one),
        _ => Failure::wrong(format!("{} ranks failed:\n  {}", lines.len(), lines.join("\n  "))),
    }
}

fn message(settings: &Settings, plan: &Plan) -> Vec<u8> {
    let head = serde_json::to_vec(settings).expect("invariant: settings are plain data");
    let mut message = (head.len() as u64).to_le_bytes().to_vec();
    message.extend(head);
    message.extend(coll_plan::to_bytes(plan));
    message
}

fn listen(rank: u32, output: impl Read, events: &Sender<Event>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        if let Ok(word) = serde_json::from_str(&line) {
            let _ = events.send(Event::Word(rank, word));
        }
    }
    let _ = events.send(Event::Closed(rank));
}

/// One rank, as its launcher started it.
pub(super) fn rank() -> Result<ExitCode, Failure> {
    // If the launcher is killed its ranks must not stay behind.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let (settings, plan) = told()?;
    let mut hear = |milestone| match milestone {
        Milestone::Iterations(done) => say(&Word::Progress(done)),
        Milestone::Kill => kill(),
        Milestone::Spared(mishap) => output::complain(&spared(mishap)),
    };
    let word = match run_rank(&settings, &plan, &mut hear) {
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
fn error_text(error: &TrialError, rank: u32) -> String {
    let text = error.to_string();
    if text.starts_with(&format!("rank {rank}")) { text } else { format!("rank {rank}: {text}") }
}

fn say(word: &Word) {
    let line = serde_json::to_string(word).expect("invariant: a word is plain data");
    // A launcher that is gone has ended this process, or will.
    let _ = writeln!(io::stdout().lock(), "{line}");
}

fn told() -> Result<(Settings, Plan), Failure> {
    let unusable =
        |what: String| Failure::unusable(format!("`collc __rank` is started by `collc run`: {what}"));
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).map_err(|error| unusable(error.to_string()))?;
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
