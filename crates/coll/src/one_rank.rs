//! One rank's own part of a plan, without the others': what a rank of a large job needs, in time and memory that do
//! not grow with the square of the ranks.
//!
//! The short way makes the rank's transfers alone and lowers these alone. It takes a few things for granted that only
//! the whole can tell: that the schedule is right, that nothing of it is dead, that all its cuts are used. So it is
//! gone only if it has shown its worth: on the largest rank counts up to [`REFERENCE_RANKS_MAX`] that the schedule
//! applies to, the whole is proved and compiled, and each rank's slice of it must be, byte for byte, what the short
//! way yields. If it is not, or the short way finds no end, the whole is compiled and proved, and a slice cut off.
//!
//! Either way the slice names the proof that it rests on: the hash of the whole, or a proof by reference that lists these
//! counts. Either way it has the same origin, and but for the proof the same bytes.

use crate::Source;
use crate::origin::origin;
use crate::prove::{Outcome, REFERENCE_RANKS_MAX, decided, prove};
use coll_base::{Diagnostic, Span};
use coll_compile::Options;
use coll_plan::{Claims, Plan, Proof, Reference};
use coll_sema::{Instance, Refusal};

/// How many rank counts the short way is tried on before it is trusted.
const REFERENCES: usize = 4;

/// What became of a schedule for one rank.
pub enum RankOutcome {
    /// A `require` excludes the rank count.
    DoesNotApply {
        /// The `require`.
        span: Span,
        /// Its reason.
        reason: String,
    },
    /// It is wrong.
    Wrong(Vec<Diagnostic>),
    /// The rank's slice of the plan.
    Right(Box<RankPlanned>),
}

/// A rank's slice of a plan.
pub struct RankPlanned {
    /// The slice. Its [`proof`](Plan::proof) is the hash of the whole plan, if that was compiled; else a proof by reference.
    pub plan: Plan,
    /// Whether it was made by itself. Then the schedule was proved on small rank counts and not on this one.
    pub alone: bool,
    /// Warnings of all stages.
    pub warnings: Vec<Diagnostic>,
}

/// Compiles one rank's part of a schedule, by itself if that can be done. The rank is below the rank count.
pub fn compile_rank(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    rank: u32,
    options: &Options,
) -> RankOutcome {
    if instance.ranks > REFERENCE_RANKS_MAX
        && let Some(trust) = trust(source, schedule, instance, options)
    {
        match alone(source, schedule, instance, rank, options) {
            Err(Refusal::DoesNotApply { span, reason }) => return RankOutcome::DoesNotApply { span, reason },
            Ok(Some((plan, warnings))) => {
                let plan = trust.rest_on(plan, source, options);
                return RankOutcome::Right(Box::new(RankPlanned { plan, alone: true, warnings }));
            }
            Ok(None) | Err(Refusal::Errors(_)) => {}
        }
    }
    match prove(source, schedule, instance, options) {
        Outcome::DoesNotApply { span, reason } => RankOutcome::DoesNotApply { span, reason },
        Outcome::Wrong(diagnostics) => RankOutcome::Wrong(diagnostics),
        Outcome::Right(proved) => {
            let Some(plan) = proved.plan.slice(rank) else {
                let message = format!("rank {rank} is not among the ranks 0..{}", instance.ranks);
                let code = coll_sema::codes::RANK_RANGE;
                return RankOutcome::Wrong(vec![Diagnostic::unplaced(code, message)]);
            };
            RankOutcome::Right(Box::new(RankPlanned { plan, alone: false, warnings: proved.warnings }))
        }
    }
}

/// Compiles every rank's part of a schedule by itself, where that can be done and the whole is too large to be written
/// down; each has been proved on small rank counts alone. None where the short way ends nowhere.
pub fn compile_slices(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    options: &Options,
) -> Option<Vec<Plan>> {
    if instance.ranks <= REFERENCE_RANKS_MAX {
        return None;
    }
    let trust = trust(source, schedule, instance, options)?;
    let decided = decided(source, schedule, instance, options)?.options;
    let mut plans = Vec::with_capacity(instance.ranks as usize);
    for rank in 0..instance.ranks {
        let (plan, _) = alone_as(source, schedule, instance, rank, &decided).ok()??;
        plans.push(Plan { claims: trust.claims, reduces: trust.reduces || plan.reduces, ..plan });
    }
    let origin = origin(source, plans.first()?, options);
    let proof = Proof::Reference(Reference::new(&origin, trust.counts));
    for plan in &mut plans {
        plan.proof = Some(proof.clone());
        plan.origin = Some(origin.clone());
    }
    Some(plans)
}

/// What the short way rests on.
struct Trust {
    /// Rank counts and roots on which it yielded the slices of the proved whole; not empty.
    counts: Vec<(u32, u32)>,
    /// What was claimed on all of them.
    claims: Claims,
    /// The contract has reductions.
    reduces: bool,
}

impl Trust {
    /// A slice that was made alone, with the proof that it rests on.
    fn rest_on(self, plan: Plan, source: &Source, options: &Options) -> Plan {
        let mut plan = Plan { claims: self.claims, reduces: self.reduces || plan.reduces, ..plan };
        let origin = origin(source, &plan, options);
        plan.proof = Some(Proof::Reference(Reference::new(&origin, self.counts)));
        plan.origin = Some(origin);
        plan
    }
}

/// The short way; the slice yet without claims, origin and proof. None where it ends nowhere.
fn alone(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    rank: u32,
    options: &Options,
) -> Result<Option<(Plan, Vec<Diagnostic>)>, Refusal> {
    match decided(source, schedule, instance, options) {
        Some(decided) => alone_as(source, schedule, instance, rank, &decided.options),
        None => Ok(None),
    }
}

/// The short way, with nothing left to be weighed.
fn alone_as(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    rank: u32,
    decided: &Options,
) -> Result<Option<(Plan, Vec<Diagnostic>)>, Refusal> {
    let Some(instantiated) = source.module.instantiate_rank(schedule, instance, rank)? else {
        return Ok(None);
    };
    match coll_compile::compile_rank(&instantiated.program, &source.map, decided, rank) {
        Ok(Some(plan)) if coll_plan::verify(&plan).is_ok() => Ok(Some((plan, instantiated.warnings))),
        _ => Ok(None),
    }
}

/// What was found on small rank counts, if the short way yields the slices of the whole there.
fn trust(source: &Source, schedule: usize, instance: &Instance, options: &Options) -> Option<Trust> {
    let all = Claims { ordered: true, same_reduction_tree: true };
    let rooted = source.schedules().get(schedule).is_some_and(|info| info.rooted);
    let mut trust = Trust { counts: Vec::new(), claims: all, reduces: false };
    for ranks in (2..=REFERENCE_RANKS_MAX).rev() {
        let root = instance.root % ranks;
        let small = Instance { ranks, root, params: instance.params.clone() };
        match prove(source, schedule, &small, options) {
            Outcome::DoesNotApply { .. } => continue,
            Outcome::Wrong(_) => return None,
            Outcome::Right(proved) => {
                let agrees = |rank| match alone(source, schedule, &small, rank, options) {
                    Ok(Some((plan, _))) => is_slice(plan, &proved.plan, rank),
                    _ => false,
                };
                if !(0..ranks).all(agrees) {
                    return None;
                }
                trust.claims = trust.claims.and(proved.plan.claims);
                trust.reduces |= proved.plan.reduces;
            }
        }
        trust.counts.push((ranks, if rooted { root } else { 0 }));
        if trust.counts.len() == REFERENCES {
            break;
        }
    }
    (!trust.counts.is_empty()).then_some(trust)
}

/// Whether what was made alone is a rank's slice of the whole, but for what is known of the whole alone.
fn is_slice(alone: Plan, whole: &Plan, rank: u32) -> bool {
    let Some(slice) = whole.slice(rank) else { return false };
    let Plan { claims, reduces, origin, proof, .. } = slice.clone();
    Plan { claims, reduces, origin, proof, ..alone } == slice
}

#[cfg(test)]
mod tests;
