//! Schedules that the user insists on: `allreduce.ring`, `broadcast.chain(c=64)`, several with commas between.

use super::candidates::Candidate;
use super::operations::canonical_operation;
use crate::library;

/// For some operations, the schedule to take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forced(Vec<Candidate>);

/// Why a text names no schedules to take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ForcedError {
    /// It is not written as one is.
    #[error(
        "`{text}` names no schedule; write `allreduce.ring`, or `broadcast.chain(c=64)` to set parameters"
    )]
    Form {
        /// The text.
        text: String,
    },
    /// There is no such operation.
    #[error("there is no operation `{name}`; there are {}", super::OPERATIONS.join(", "))]
    Operation {
        /// The name.
        name: String,
    },
    /// The operation has no such schedule.
    #[error("`{operation}` has no schedule `{name}`; it has {known}")]
    Schedule {
        /// The operation.
        operation: String,
        /// The name.
        name: String,
        /// What it has.
        known: String,
    },
    /// The schedule has no such parameter.
    #[error("`{schedule}` has no parameter `{name}`; it has {known}")]
    Parameter {
        /// The schedule.
        schedule: String,
        /// The name.
        name: String,
        /// What it has.
        known: String,
    },
    /// Two schedules for one operation.
    #[error("two schedules are named for `{operation}`; one can be taken")]
    Twice {
        /// The operation.
        operation: String,
    },
}

impl Forced {
    /// The schedule for an operation, if one is named.
    pub fn of(&self, operation: &str) -> Option<&Candidate> {
        self.0.iter().find(|candidate| candidate.operation == operation)
    }
}

impl std::str::FromStr for Forced {
    type Err = ForcedError;

    fn from_str(text: &str) -> Result<Forced, ForcedError> {
        let mut forced: Vec<Candidate> = Vec::new();
        for part in parts(text) {
            let candidate = candidate(part)?;
            if forced.iter().any(|known| known.operation == candidate.operation) {
                return Err(ForcedError::Twice { operation: candidate.operation.to_string() });
            }
            forced.push(candidate);
        }
        Ok(Forced(forced))
    }
}

/// Cuts at commas outside of parentheses.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let cut = move |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(cut).map(str::trim).filter(|part| !part.is_empty())
}

fn candidate(text: &str) -> Result<Candidate, ForcedError> {
    let form = || ForcedError::Form { text: text.to_string() };
    let (name, params) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => (name, rest.strip_suffix(')').ok_or_else(form)?),
    };
    let (operation, schedule) = name.trim().split_once('.').ok_or_else(form)?;
    let operation = canonical_operation(operation)
        .ok_or_else(|| ForcedError::Operation { name: operation.to_string() })?;
    let entries = || library::entries().filter(|entry| entry.collective == operation);
    let entry = entries().find(|entry| entry.schedule == schedule).ok_or_else(|| ForcedError::Schedule {
        operation: operation.to_string(),
        name: schedule.to_string(),
        known: entries().map(|entry| entry.schedule).collect::<Vec<_>>().join(", "),
    })?;
    let mut candidate = Candidate { operation, schedule: entry.schedule, params: Vec::new() };
    let source = candidate.source();
    let known = &source.schedules()[candidate.index(&source)].params;
    let lists = &source.schedules()[candidate.index(&source)].lists;
    for param in params.split(',').map(str::trim).filter(|param| !param.is_empty()) {
        let Some((name, value)) = param.split_once('=') else {
            // One more number of a list: `local=8,8,4`.
            let (name, _) =
                candidate.params.last().filter(|(name, _)| lists.contains(name)).ok_or_else(form)?;
            let more = (name.clone(), param.parse().map_err(|_| form())?);
            candidate.params.push(more);
            continue;
        };
        let (name, value) = (name.trim(), value.trim().parse().map_err(|_| form())?);
        if !known.iter().any(|(known, _)| known == name) {
            let known: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
            return Err(ForcedError::Parameter {
                schedule: candidate.name(),
                name: name.to_string(),
                known: if known.is_empty() { "none".to_string() } else { known.join(", ") },
            });
        }
        candidate.params.retain(|(known, _)| known != name);
        candidate.params.push((name.to_string(), value));
    }
    Ok(candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_named_with_or_without_parameters() {
        let forced: Forced = "allreduce.ring, broadcast.chain(c=64)".parse().unwrap();
        assert_eq!(forced.of("allreduce").unwrap().to_string(), "allreduce.ring");
        assert_eq!(forced.of("broadcast").unwrap().to_string(), "broadcast.chain(c=64)");
        assert_eq!(forced.of("scan"), None);
        let uneven: Forced = "allreduce.two_level(local=8, 8,4)".parse().unwrap();
        assert_eq!(uneven.of("allreduce").unwrap().to_string(), "allreduce.two_level(local=8,8,4)");
        assert_eq!("".parse::<Forced>().unwrap(), Forced::default());
    }

    #[test]
    fn what_names_no_schedule_is_refused_with_a_way_out() {
        let cases = [
            ("ring", "write `allreduce.ring`"),
            ("allredux.ring", "there are broadcast, "),
            ("allreduce.rink", "it has butterfly, "),
            ("broadcast.chain(k=2)", "it has c"),
            ("broadcast.chain(c)", "write `allreduce.ring`"),
            ("broadcast.chain(c=2", "write `allreduce.ring`"),
            ("broadcast.chain(c=x)", "write `allreduce.ring`"),
            ("broadcast.chain(c=2,3)", "write `allreduce.ring`"),
            ("allreduce.ring,all_reduce.two_shot", "two schedules"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Forced>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
