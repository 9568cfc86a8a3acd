//! Proved plans of this process, shared by its communicators: ranks that are threads prove each schedule once.

use crate::comm::error::Refusal;
use crate::comm::types::Types;
use crate::select::{Candidate, Made};
use crate::{Options, Outcome, RankOutcome, Source, compile_rank, prove};
use coll_check::program::Properties;
use coll_plan::Plan;
use coll_sema::Instance;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Up to so many ranks the whole plan is made and proved: that takes milliseconds.
pub(crate) const WHOLE_RANKS_MAX: u32 = 64;

/// What a slice cannot tell is asked of the whole on at most so many ranks.
const SMALL_RANKS_MAX: u32 = 16;

/// Plans that are kept; beyond, all are forgotten, and those in use live on with their users.
const KEPT_MAX: usize = 256;

/// A plan, and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// The whole, or the rank's slice of it.
    pub(crate) plan: Arc<Plan>,
    /// What all ranks' slices have in common, however they were made: a hash.
    pub(crate) identity: Arc<str>,
    /// Operands stay in rank order.
    pub(crate) ordered: bool,
    /// Only blocks of equal size are served.
    pub(crate) equal_blocks_only: bool,
}

/// Why there is no plan.
pub(crate) enum NoPlan {
    /// The schedule is not for this many ranks.
    DoesNotApply(String),
    /// It is wrong.
    Wrong(String),
}

impl From<NoPlan> for Refusal {
    fn from(no_plan: NoPlan) -> Refusal {
        match no_plan {
            NoPlan::DoesNotApply(reason) | NoPlan::Wrong(reason) => Refusal::Everywhere(reason),
        }
    }
}

#[derive(PartialEq, Eq, Hash)]
struct Name {
    candidate: String,
    ranks: u32,
    root: u32,
    types: Types,
}

static KEPT: Mutex<Option<HashMap<Name, Stored>>> = Mutex::new(None);

/// The plan of a library schedule; `made` is that plan, if there is one already that says nothing of types.
pub(crate) fn library(
    candidate: &Candidate,
    ranks: u32,
    root: u32,
    rank: u32,
    types: Types,
    made: Option<Made>,
) -> Result<Stored, NoPlan> {
    let Types { accumulate, wire } = types;
    let options = Options { accumulate, wire, ..Options::default() };
    let instance = Instance { ranks, root, params: candidate.params.clone() };
    if ranks > WHOLE_RANKS_MAX {
        let source = candidate.source();
        return one_rank(&source, candidate.index(&source), &instance, rank, &options);
    }
    let name = Name { candidate: candidate.to_string(), ranks, root, types };
    if let Some(stored) = kept().as_ref().and_then(|kept| kept.get(&name)) {
        return Ok(stored.clone());
    }
    let stored = match made.filter(|_| types.is_nothing()) {
        Some(made) => stored(&made.properties, made.plan),
        None => {
            let source = candidate.source();
            proved(&source, candidate.index(&source), &instance, &options)?
        }
    };
    let mut kept = kept();
    let kept = kept.get_or_insert_default();
    if kept.len() >= KEPT_MAX {
        kept.clear();
    }
    kept.insert(name, stored.clone());
    Ok(stored)
}

fn kept() -> MutexGuard<'static, Option<HashMap<Name, Stored>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Proves a schedule and its plan.
pub(crate) fn proved(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    options: &Options,
) -> Result<Stored, NoPlan> {
    match prove(source, schedule, instance, options) {
        Outcome::DoesNotApply { reason, .. } => Err(NoPlan::DoesNotApply(reason)),
        Outcome::Wrong(diagnostics) => Err(wrong(&diagnostics)),
        Outcome::Right(proved) => Ok(stored(&proved.properties, Arc::new(proved.plan))),
    }
}

fn stored(properties: &Properties, plan: Arc<Plan>) -> Stored {
    Stored {
        identity: crate::plans::identity(&plan).into(),
        ordered: properties.ordered,
        equal_blocks_only: properties.equal_blocks_only.is_some(),
        plan,
    }
}

/// One rank's slice. It says nothing of order, so it is not taken where that matters; whether only equal blocks are served
/// is seen on the largest small rank count that the schedule is for.
pub(crate) fn one_rank(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    rank: u32,
    options: &Options,
) -> Result<Stored, NoPlan> {
    let small = (1..=SMALL_RANKS_MAX).rev().find_map(|ranks| {
        let small = Instance { ranks, root: instance.root % ranks, params: instance.params.clone() };
        proved(source, schedule, &small, options).ok()
    });
    match compile_rank(source, schedule, instance, rank, options) {
        RankOutcome::DoesNotApply { reason, .. } => Err(NoPlan::DoesNotApply(reason)),
        RankOutcome::Wrong(diagnostics) => Err(wrong(&diagnostics)),
        RankOutcome::Right(planned) => Ok(Stored {
            identity: crate::plans::identity(&planned.plan).into(),
            ordered: planned.plan.claims.ordered,
            equal_blocks_only: small.is_none_or(|small| small.equal_blocks_only),
            plan: Arc::new(planned.plan),
        }),
    }
}

fn wrong(diagnostics: &[coll_base::Diagnostic]) -> NoPlan {
    let first = diagnostics.iter().find(|diagnostic| diagnostic.is_error());
    NoPlan::Wrong(first.map_or_else(String::new, |error| format!("{}: {}", error.code, error.message)))
}
