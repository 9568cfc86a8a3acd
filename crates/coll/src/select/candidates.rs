//! What may be taken: every library schedule of an operation, with values of its parameters.
//!
//! Nothing is known of a schedule but what it declares. A parameter is tried at its default and at powers of two; what a
//! `require` refuses is no candidate. A parameter `local` is the number of ranks in a node, as the library has it: where
//! there are several machines it takes that number alone.

use super::facts;
use crate::{Instance, Options, Outcome, Source, library, prove};
use coll_cost::Layout;
use std::sync::Arc;

/// A library schedule with values for its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The operation, `allreduce`.
    pub operation: &'static str,
    /// The schedule, `ring`.
    pub schedule: &'static str,
    /// Parameters that do not have their default's value.
    pub params: Vec<(String, i64)>,
}

/// Powers of two that a parameter is tried at.
const VALUES: [i64; 7] = [2, 4, 8, 16, 32, 64, 128];
/// On more ranks the larger values, which make many messages, are left out.
const MANY_RANKS: u32 = 16;
/// How many of [`VALUES`] are tried there.
const MANY_RANKS_VALUES: usize = 6;

impl Candidate {
    /// Its full name, `allreduce.ring`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.operation, self.schedule)
    }

    /// Its source.
    pub fn source(&self) -> Arc<Source> {
        Source::shared(self.operation, self.schedule).expect("invariant: candidates come from the library")
    }

    /// Compiles and proves it.
    pub fn prove(&self, ranks: u32, root: u32) -> Outcome {
        self.prove_with(ranks, root, &Options::default())
    }

    /// The same, with options for the compiler.
    pub fn prove_with(&self, ranks: u32, root: u32, options: &Options) -> Outcome {
        let source = self.source();
        prove(&source, self.index(&source), &self.instance(ranks, root), options)
    }

    /// Ranks in a node, if that is set.
    pub(crate) fn local(&self) -> Option<u32> {
        let local = self.params.iter().find(|(name, _)| name == LOCAL);
        local.and_then(|&(_, value)| u32::try_from(value).ok())
    }

    pub(crate) fn index(&self, source: &Source) -> usize {
        let at = source.schedules().iter().position(|schedule| schedule.name == self.schedule);
        at.expect("invariant: a library file declares the schedule that it is called for")
    }

    pub(crate) fn instance(&self, ranks: u32, root: u32) -> Instance {
        Instance { ranks, root, params: self.params.clone() }
    }
}

impl std::fmt::Display for Candidate {
    /// `allreduce.double_tree(c=16)`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.operation, self.schedule)?;
        if !self.params.is_empty() {
            write!(f, "({})", coll_base::named_options(&self.params).join(", "))?;
        }
        Ok(())
    }
}

/// All candidates for an operation, by name, defaults before other values: the first of equals is taken.
pub(super) fn candidates(operation: &'static str, ranks: u32, layout: Layout) -> Vec<Candidate> {
    match facts::of(operation) {
        Some(facts) => of_declared(operation, &facts.params, ranks, layout),
        None => of_declared(operation, &declared(operation), ranks, layout),
    }
}

/// A schedule's parameters with their defaults.
pub(super) type Params = Vec<(String, i64)>;

/// The schedules of an operation, as their sources declare them: that takes reading all of them.
pub(super) fn declared(operation: &'static str) -> Vec<(&'static str, Params)> {
    let entries = library::entries().filter(|entry| entry.collective == operation);
    let params = |entry: library::Entry| {
        let bare = Candidate { operation, schedule: entry.schedule, params: Vec::new() };
        let source = bare.source();
        (entry.schedule, source.schedules()[bare.index(&source)].params.clone())
    };
    entries.map(params).collect()
}

pub(super) fn of_declared(
    operation: &'static str,
    declared: &[(&'static str, Params)],
    ranks: u32,
    layout: Layout,
) -> Vec<Candidate> {
    let of = |&(schedule, ref params): &(&'static str, Params)| {
        let settings = settings(params, ranks, layout);
        settings.into_iter().map(move |params| Candidate { operation, schedule, params })
    };
    declared.iter().flat_map(of).collect()
}

/// Which values a schedule's parameters are set to: defaults, then one parameter at a time.
pub(super) fn settings(declared: &[(String, i64)], ranks: u32, layout: Layout) -> Vec<Vec<(String, i64)>> {
    let hosts = layout.hosts(ranks);
    let mut base = Vec::new();
    let mut settings = Vec::new();
    for (name, default) in declared {
        if name == LOCAL && hosts > 1 {
            let local = i64::from(layout.ranks_on_host(ranks));
            if local != *default {
                base.push((name.clone(), local));
            }
        }
    }
    settings.push(base.clone());
    if ranks > super::WHOLE_RANKS_MAX {
        return settings;
    }
    let values = if ranks > MANY_RANKS { &VALUES[..MANY_RANKS_VALUES] } else { &VALUES };
    for (name, default) in declared {
        if name == LOCAL && hosts > 1 {
            continue;
        }
        for &value in values.iter().filter(|&value| value != default) {
            let mut params = base.clone();
            params.push((name.clone(), value));
            settings.push(params);
        }
    }
    settings
}

/// The parameter that says how many ranks each node has.
pub(super) const LOCAL: &str = "local";
