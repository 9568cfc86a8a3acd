//! One rank's own part of a plan, without the others': what a rank of a large job needs, in time and memory that do
//! not grow with the square of the ranks.
//!
//! The short way makes the rank's transfers alone and lowers these alone. It takes a few things for granted that only
//! the whole can tell: that the schedule is right, that nothing of it is dead, that all its cuts are used. So it is
//! gone only if it has shown its worth: on the largest rank counts up to [`REFERENCE_RANKS_MAX`] that the schedule
//! applies to, the whole is proved and compiled, and each rank's slice of it must be, byte for byte, what the short
//! way yields. If it is not, or the short way finds no end, the whole is compiled and proved, and a slice cut off.

use crate::Source;
use crate::prove::{Outcome, REFERENCE_RANKS_MAX, decided, prove};
use coll_base::{Diagnostic, Span};
use coll_compile::Options;
use coll_plan::Plan;
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
    /// The slice. Its [`proof`](Plan::proof) is the hash of the whole plan, if that was compiled.
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
    if instance.ranks > REFERENCE_RANKS_MAX && is_trusted(source, schedule, instance, options) {
        match alone(source, schedule, instance, rank, options) {
            Err(Refusal::DoesNotApply { span, reason }) => return RankOutcome::DoesNotApply { span, reason },
            Ok(Some((plan, warnings))) => {
                return RankOutcome::Right(Box::new(RankPlanned { plan, alone: true, warnings }));
            }
            Ok(None) | Err(Refusal::Errors(_)) => {}
        }
    }
    match prove(source, schedule, instance, options) {
        Outcome::DoesNotApply { span, reason } => RankOutcome::DoesNotApply { span, reason },
        Outcome::Wrong(diagnostics) => RankOutcome::Wrong(diagnostics),
        Outcome::Right(proved) => {
            let Some(mut plan) = proved.plan.slice(rank) else {
                let message = format!("rank {rank} is not among the ranks 0..{}", instance.ranks);
                let code = coll_sema::codes::RANK_RANGE;
                return RankOutcome::Wrong(vec![Diagnostic::unplaced(code, message)]);
            };
            plan.proof = Some(coll_plan::hash(&proved.plan));
            RankOutcome::Right(Box::new(RankPlanned { plan, alone: false, warnings: proved.warnings }))
        }
    }
}

/// The short way. None where it ends nowhere.
fn alone(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    rank: u32,
    options: &Options,
) -> Result<Option<(Plan, Vec<Diagnostic>)>, Refusal> {
    let Some(instantiated) = source.module.instantiate_rank(schedule, instance, rank)? else {
        return Ok(None);
    };
    let Some(decided) = decided(source, schedule, instance, options) else { return Ok(None) };
    match coll_compile::compile_rank(&instantiated.program, &source.map, &decided.options, rank) {
        Ok(Some(plan)) if coll_plan::verify(&plan).is_ok() => Ok(Some((plan, instantiated.warnings))),
        _ => Ok(None),
    }
}

/// Whether the short way yields the slices of the whole on small rank counts.
fn is_trusted(source: &Source, schedule: usize, instance: &Instance, options: &Options) -> bool {
    let mut tried = 0;
    for ranks in (2..=REFERENCE_RANKS_MAX).rev() {
        let root = instance.root % ranks;
        let small = Instance { ranks, root, params: instance.params.clone() };
        match prove(source, schedule, &small, options) {
            Outcome::DoesNotApply { .. } => continue,
            Outcome::Wrong(_) => return false,
            Outcome::Right(proved) => {
                let agrees = |rank| match alone(source, schedule, &small, rank, options) {
                    Ok(Some((plan, _))) => Some(plan) == proved.plan.slice(rank),
                    _ => false,
                };
                if !(0..ranks).all(agrees) {
                    return false;
                }
            }
        }
        tried += 1;
        if tried == REFERENCES {
            break;
        }
    }
    tried > 0
}

#[cfg(test)]
#[allow(clippy::print_stdout, reason = "tests say what they went through")]
mod tests {
    use super::*;
    use crate::library;
    use std::collections::BTreeMap;

    /// Up to the reference counts the whole is taken, so beyond them the short way must be right wherever it is
    /// trusted; below, it need only be so for the schedules named here.
    const COUNTS: [u32; 8] = [2, 3, 5, 8, 16, 24, 33, 64];
    const SHORT: [&str; 8] = [
        "allreduce.ring",
        "allreduce.recursive_doubling",
        "allreduce.rabenseifner",
        "allgather.ring",
        "reduce_scatter.ring",
        "broadcast.binomial",
        "broadcast.double_tree",
        "barrier.dissemination",
    ];

    #[test]
    fn a_rank_by_itself_is_the_slice_of_the_whole() {
        let mut by_name: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for entry in library::entries() {
            let source = Source::builtin(entry.collective, entry.schedule).unwrap();
            let (name, options) = (format!("{}.{}", entry.collective, entry.schedule), Options::default());
            let schedule = source.schedules().len() - 1;
            let (short, long) = by_name.entry(name.clone()).or_default();
            for ranks in COUNTS {
                let instance = Instance { ranks, root: ranks / 3, params: Vec::new() };
                let Outcome::Right(proved) = prove(&source, schedule, &instance, &options) else { continue };
                let trusted = is_trusted(&source, schedule, &instance, &options);
                for rank in [0, 1, ranks / 2, ranks - 1] {
                    match alone(&source, schedule, &instance, rank, &options) {
                        Ok(Some((plan, _))) if trusted => {
                            let slice = proved.plan.slice(rank).unwrap();
                            let same = coll_plan::to_bytes(&plan) == coll_plan::to_bytes(&slice);
                            let strict = ranks > REFERENCE_RANKS_MAX || SHORT.contains(&name.as_str());
                            if strict && !same {
                                let texts = (coll_plan::to_text(&plan), coll_plan::to_text(&slice));
                                assert_eq!(texts.0, texts.1, "{name} on {ranks} ranks, rank {rank}");
                                panic!("{name} on {ranks} ranks, rank {rank}: same text, other bytes");
                            }
                            if !same {
                                println!("{name} on {ranks} ranks, rank {rank}: only the whole will do");
                            }
                            *short += 1;
                        }
                        _ => *long += 1,
                    }
                }
            }
        }
        let whole: Vec<&String> =
            by_name.iter().filter(|(_, ways)| ways.1 > 0).map(|(name, _)| name).collect();
        println!(
            "{} of {} schedules by themselves; not {whole:?}",
            by_name.len() - whole.len(),
            by_name.len()
        );
        for name in SHORT {
            assert!(by_name[name].0 > 0 && by_name[name].1 == 0, "{name}: {:?}", by_name[name]);
        }
    }

    /// Deciding on the reference what is merged must not cost the library anything.
    #[test]
    fn the_reference_decides_as_the_count_itself_would() {
        let mut differ = Vec::new();
        for entry in library::entries() {
            let source = Source::builtin(entry.collective, entry.schedule).unwrap();
            let schedule = source.schedules().len() - 1;
            for ranks in REFERENCE_RANKS_MAX + 1..=33 {
                let instance = Instance { ranks, root: 0, params: Vec::new() };
                let Ok(instantiated) = source.module.instantiate(schedule, &instance) else { continue };
                let compile = |options| {
                    let compiled = coll_compile::compile(&instantiated.program, &source.map, options);
                    coll_plan::to_bytes(&compiled.unwrap().plan)
                };
                let decided = decided(&source, schedule, &instance, &Options::default()).unwrap();
                let (own, reference) = (compile(&Options::default()), compile(&decided.options));
                if own != reference {
                    differ.push(format!("{}.{} on {ranks}", entry.collective, entry.schedule));
                }
            }
        }
        assert_eq!(differ, [""; 0]);
    }

    /// By hand: `cargo test -p coll --release --lib one_rank -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures time"]
    fn a_rank_of_4096() {
        for entry in library::entries() {
            let source = Source::builtin(entry.collective, entry.schedule).unwrap();
            let schedule = source.schedules().len() - 1;
            let (instance, options) =
                (Instance { ranks: 4096, root: 0, params: Vec::new() }, Options::default());
            let start = std::time::Instant::now();
            let trusted = is_trusted(&source, schedule, &instance, &options);
            let checked = start.elapsed();
            let plan = alone(&source, schedule, &instance, 17, &options);
            let way = match &plan {
                Ok(Some((plan, _))) => format!("{} operations", plan.ranks[0].ops.len()),
                Ok(None) => "no way".to_string(),
                Err(_) => "refused".to_string(),
            };
            let (name, all) = (format!("{}.{}", entry.collective, entry.schedule), start.elapsed());
            println!("{name}: {all:?} in all, reference {checked:?}, trusted {trusted}, {way}");
        }
    }
}
