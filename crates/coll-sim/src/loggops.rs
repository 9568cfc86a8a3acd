//! LogGOPS: virtual time for a GOAL schedule in seven constants, event for event as LogGOPSim has it (T. Hoefler,
//! T. Schneider, A. Lumsdaine, *LogGOPSim: simulating large-scale applications in the LogGOPS model*, 2010).
//!
//! A rank has processors and network interfaces, each with the time from which it is free. A send takes its processor
//! for o + (size - 1) O and keeps its interface from the next send for g + (size - 1) G; the message comes L after the
//! o and takes the receiver's processor for o and the larger of the two times of its bytes. A message above S bytes
//! keeps its send from ending until its receive is there, and then holds the sender's processor to that time.
//!
//! All is counted in nanoseconds. Events of one time happen in the order in which they were made, and one that is put off
//! keeps its place; what becomes ready together starts with sends, then receives, then computations, each in the order
//! of the file.

mod engine;
#[cfg(test)]
mod tests;

use crate::goal::Goal;
use std::fmt;

/// The constants of the model: times in nanoseconds, `s` in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogGops {
    /// Latency of the network.
    pub l: u64,
    /// Processor time of a message at each end.
    pub o: u64,
    /// Time from one message to the next on an interface.
    pub g: u64,
    /// Interface time of each byte after the first.
    pub g_byte: u64,
    /// Processor time of each byte after the first.
    pub o_byte: u64,
    /// The largest message that is sent before its receive is there, in bytes.
    pub s: u64,
}

impl Default for LogGops {
    /// LogGOPSim's own.
    fn default() -> LogGops {
        LogGops { l: 2500, o: 1500, g: 1000, g_byte: 6, o_byte: 0, s: 65535 }
    }
}

impl std::str::FromStr for LogGops {
    type Err = String;

    /// `L=2500,o=1500,g=1000,G=6,O=0,S=65535`; what is left out keeps its default.
    fn from_str(text: &str) -> Result<LogGops, String> {
        let mut params = LogGops::default();
        let mut seen = String::new();
        for part in text.split(',') {
            let Some((name, value)) = part.split_once('=') else {
                return Err(format!("`{part}` sets nothing; write `L=2500,o=1500,g=1000,G=6,O=0,S=65535`"));
            };
            let (name, value) = (name.trim(), value.trim());
            let field = match name {
                "L" => &mut params.l,
                "o" => &mut params.o,
                "g" => &mut params.g,
                "G" => &mut params.g_byte,
                "O" => &mut params.o_byte,
                "S" => &mut params.s,
                _ => return Err(format!("LogGOPS has no `{name}`; there are L, o, g, G, O and S")),
            };
            if seen.contains(name) {
                return Err(format!("`{name}` is set twice"));
            }
            seen += name;
            let unit = if name == "S" { "bytes" } else { "nanoseconds" };
            *field = value
                .parse()
                .map_err(|_| format!("`{name}={value}`: `{value}` is no whole number of {unit} from 0 on"))?;
        }
        Ok(params)
    }
}

/// When a schedule ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// For each rank, when its processors are free for good, in nanoseconds.
    pub ns: Vec<u64>,
}

/// An operation that can never end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Its rank.
    pub rank: u32,
    /// Its label, or nothing.
    pub label: String,
    /// The line it stands in.
    pub line: u32,
    /// What it is, and what it waits for.
    pub why: String,
}

/// Why a schedule does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogGopsError {
    /// Nothing can happen any more, and these are left.
    Stuck(Vec<Blocked>),
    /// A time does not fit into 64 bits of nanoseconds.
    TooLong {
        /// The rank of the operation.
        rank: u32,
        /// The line it stands in.
        line: u32,
    },
}

/// The most operations that a message lists.
const SHOWN_MAX: usize = 12;

impl fmt::Display for LogGopsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogGopsError::TooLong { rank, line } => {
                write!(f, "rank {rank}, line {line}: the time is beyond 64 bits of nanoseconds")
            }
            LogGopsError::Stuck(blocked) => {
                let count = blocked.len();
                write!(
                    f,
                    "nothing can go on, and {count} operation{} not over:",
                    if count == 1 { " is" } else { "s are" }
                )?;
                for Blocked { rank, label, line, why } in blocked.iter().take(SHOWN_MAX) {
                    let name = if label.is_empty() { String::new() } else { format!(" {label}") };
                    write!(f, "\n  rank {rank}{name} (line {line}): {why}")?;
                }
                match count.saturating_sub(SHOWN_MAX) {
                    0 => Ok(()),
                    more => write!(f, "\n  and {more} more"),
                }
            }
        }
    }
}

impl std::error::Error for LogGopsError {}

/// Runs a schedule to its end.
///
/// # Errors
/// What is blocked, if it has no end.
pub fn run(goal: &Goal, params: &LogGops) -> Result<Finish, LogGopsError> {
    engine::run(goal, params)
}
