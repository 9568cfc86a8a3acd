//! Rank processes: started with a message on standard input, heard line by line, and ended with whoever started them.

use crate::failure::Failure;
use crate::interrupts::Interrupts;
use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

/// After the first rank failed, the others have this long to say why they gave up.
const LAST_WORDS: Duration = Duration::from_secs(3);

enum Event {
    Line(u32, String),
    /// A rank's output ended.
    Closed(u32),
    /// Ctrl-C.
    Interrupted,
}

/// What a line of a rank says to the one who started it.
pub(crate) enum Heard {
    /// It was taken.
    Taken,
    /// The rank gave up, and why.
    Failed(String),
}

/// Running rank processes. Dropping it ends them.
pub(crate) struct Processes {
    children: Vec<Child>,
    events: Receiver<Event>,
    interrupts: Interrupts,
}

impl Processes {
    /// Starts `collc ARGUMENT` for each message, rank by rank.
    pub(crate) fn start(
        argument: &str,
        messages: impl Iterator<Item = Vec<u8>>,
    ) -> Result<Processes, Failure> {
        let program =
            env::current_exe().map_err(|error| Failure::unusable(format!("where is collc? {error}")))?;
        let (sender, events) = mpsc::channel();
        let interrupted = sender.clone();
        let interrupts = Interrupts::catch(move || {
            let _ = interrupted.send(Event::Interrupted);
        })?;
        let mut processes = Processes { children: Vec::new(), events, interrupts };
        for (rank, message) in (0u32..).zip(messages) {
            if processes.interrupts.came() {
                return Err(Failure::interrupted());
            }
            let started = Command::new(&program)
                .arg(argument)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .map_err(|error| Failure::unusable(format!("cannot start rank {rank}: {error}")));
            processes.children.push(started?);
            let child = processes.children.last_mut().expect("invariant: it was just added");
            let input = child.stdin.take().expect("invariant: it is piped");
            let output = child.stdout.take().expect("invariant: it is piped");
            // A rank that dies at once closes its pipe; its end is told by its output.
            thread::spawn(move || { input }.write_all(&message));
            let events = sender.clone();
            thread::spawn(move || listen(rank, output, &events));
        }
        Ok(processes)
    }

    /// Hears all ranks to their ends. On failure, every rank's reason.
    pub(crate) fn hear(&mut self, mut hear: impl FnMut(u32, &str) -> Heard) -> Result<(), Failure> {
        let mut reasons: BTreeMap<u32, String> = BTreeMap::new();
        let mut open = self.children.len();
        while open > 0 {
            let event = match reasons.is_empty() {
                true => self.events.recv().ok(),
                false => self.events.recv_timeout(LAST_WORDS).ok(),
            };
            match event {
                None => break,
                Some(Event::Interrupted) => return Err(Failure::interrupted()),
                Some(Event::Line(rank, line)) => {
                    if let Heard::Failed(reason) = hear(rank, &line) {
                        reasons.insert(rank, reason);
                    }
                }
                Some(Event::Closed(rank)) => {
                    open -= 1;
                    if let Some(end) = self.abnormal_end(rank) {
                        reasons.entry(rank).or_insert(end);
                    }
                }
            }
        }
        if self.interrupts.came() {
            return Err(Failure::interrupted());
        }
        if reasons.is_empty() { Ok(()) } else { Err(failed(&reasons)) }
    }

    /// How a rank ended, if not in good order.
    fn abnormal_end(&mut self, rank: u32) -> Option<String> {
        match self.children[rank as usize].wait() {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("rank {rank} ended without a word: {}", describe(status))),
            Err(error) => Some(format!("rank {rank} cannot be waited for: {error}")),
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.children {
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
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
pub(crate) fn failed(reasons: &BTreeMap<u32, String>) -> Failure {
    let lines: Vec<&str> = reasons.values().map(String::as_str).collect();
    match lines[..] {
        [] => Failure::wrong("the ranks ended without a report"),
        [one] => Failure::wrong(one),
        _ => Failure::wrong(format!("{} ranks failed:\n  {}", lines.len(), lines.join("\n  "))),
    }
}

fn listen(rank: u32, output: impl Read, events: &Sender<Event>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        let _ = events.send(Event::Line(rank, line));
    }
    let _ = events.send(Event::Closed(rank));
}

/// What the one who started this rank told it. If that one is killed, this process is too.
pub(crate) fn told() -> Result<Vec<u8>, Failure> {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|error| Failure::unusable(format!("this rank is told nothing: {error}")))?;
    Ok(bytes)
}

/// Says a line to the one who started this rank.
pub(crate) fn say(line: &str) {
    // A starter that is gone has ended this process, or will.
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Each rank needs two pipes, a control connection and, at its peers, links: too few descriptors are told before
/// anything is started.
pub(crate) fn check_descriptors(world: u32) -> Result<(), Failure> {
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
