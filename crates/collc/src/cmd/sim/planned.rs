//! The plan that is simulated: read, or compiled for the ranks that are asked for.

use crate::args::{Choice, Ground};
use crate::cmd::compile::shape;
use crate::cmd::{compile, foreign, target};
use crate::failure::Failure;
use crate::{output, render};
use coll::{Bundle, Instance, Outcome, Source};
use coll_base::{DType, SourceMap};
use coll_plan::Plan;
use coll_sim::Element;
use coll_topo::Network;
use std::path::Path;

/// The largest plan file that is read.
pub(crate) const PLAN_SIZE_MAX_BYTES: u64 = 4 << 30;

/// Up to so many ranks a schedule is instantiated once more, to tell the variables of its steps.
const DESCRIBED_RANKS_MAX: u32 = 256;

/// A plan, and what its steps are called.
pub(crate) struct Planned {
    /// The whole, or all slices.
    pub(crate) plans: Vec<Plan>,
    /// For each step of the program, its loop variables: `s = 3`. Empty where they are not known.
    pub(crate) steps: Vec<String>,
    /// It came of another tool, which knew nothing of the network.
    pub(crate) is_foreign: bool,
}

impl Planned {
    /// Reads or compiles what `target` names. `ranks` is what was asked for; a schedule without takes `default`. With a network
    /// in `shape`, a schedule's parameter for the ranks in a node is what that has.
    pub(crate) fn new(
        target: &str,
        ground: &Ground,
        choice: &Choice,
        (ranks, default): (Option<u32>, u32),
        shape: Option<&Network>,
    ) -> Result<Planned, Failure> {
        if target::names_a_file(target) {
            if foreign::traces(target)?.is_some() {
                return Err(Failure::unusable(format!(
                    "`{target}` is a Chakra trace, which has sizes of its own"
                ))
                .help("a plan that `collc import` makes of it takes any size"));
            }
            let bytes = coll::read_bytes(Path::new(target), PLAN_SIZE_MAX_BYTES)?;
            if coll::is_plan(&bytes) {
                refuse_compiling(target, ground, choice)?;
                let plans = vec![read(target, &bytes, ground, ranks)?];
                return Ok(Planned { plans, steps: Vec::new(), is_foreign: false });
            }
            if coll::foreign::Form::of(&bytes).is_some() {
                refuse_compiling(target, ground, choice)?;
                let examined = foreign::of_bytes(target, bytes, ground.root)?;
                let examined = examined.expect("invariant: it is of such a form");
                let schedule = foreign::right(target, examined)?;
                if schedule.sizes_bytes.is_some() {
                    let message = format!("`{target}` is a GOAL file, which has sizes of its own");
                    return Err(Failure::unusable(message).help(
                        "`collc sim --model loggops` runs it; a plan that `collc import` makes of it takes any size",
                    ));
                }
                let plan = fitting(target, schedule.plan, ground, ranks)?;
                return Ok(Planned { plans: vec![plan], steps: Vec::new(), is_foreign: true });
            }
            let text = std::str::from_utf8(&bytes).ok().filter(|text| Bundle::is_bundle(text));
            if let Some(text) = text {
                let unusable = |error| Failure::unusable(format!("`{target}`: {error}"));
                let bundle = Bundle::from_json(text).map_err(unusable)?;
                let mut params = bundle.params.clone();
                params.retain(|(name, _)| !choice.define.iter().any(|(defined, _)| defined == name));
                params.extend(choice.defined());
                let source = bundle.source();
                let named = Some(bundle.schedule.as_str());
                return compiled(&source, named, params, ground, (ranks.unwrap_or(default), shape));
            }
        }
        let source = target::open(target)?;
        let named = match target::names_a_file(target) {
            true => choice.schedule.as_deref(),
            false => target.split_once('.').map(|(_, schedule)| schedule),
        };
        compiled(&source, named, choice.defined(), ground, (ranks.unwrap_or(default), shape))
    }

    /// The schedule's full name.
    pub(crate) fn name(&self) -> &str {
        &self.plans[0].name
    }

    /// What an element of a type is while it is reduced, and in messages.
    pub(crate) fn element(&self, dtype: DType) -> Element {
        element(&self.plans[0], dtype)
    }

    /// How many ranks it is for.
    pub(crate) fn ranks(&self) -> u32 {
        self.plans[0].world()
    }
}

/// What an element of a type is while a plan reduces it, and in the plan's messages.
pub(crate) fn element(plan: &Plan, dtype: DType) -> Element {
    let is_float = |dtype: DType| dtype.is_float() || dtype.is_complex();
    let held = match plan.accumulate {
        Some(wide) if plan.reduces && dtype.is_narrow_float() => wide,
        _ => dtype,
    };
    let parts = held.size_bytes() / held.part().size_bytes();
    let sent_bytes = match plan.wire {
        Some(wire) if is_float(held) && wire.size_bytes() < held.part().size_bytes() => {
            parts * wire.size_bytes()
        }
        _ => held.size_bytes(),
    };
    Element { given_bytes: dtype.size_bytes(), held_bytes: held.size_bytes(), sent_bytes }
}

fn compiled(
    source: &Source,
    schedule: Option<&str>,
    params: Vec<(String, i64)>,
    ground: &Ground,
    (ranks, shape): (u32, Option<&Network>),
) -> Result<Planned, Failure> {
    target::refuse_if_broken(source)?;
    target::show(source, &source.diagnostics);
    let schedule = target::the_one(source, schedule)?;
    target::check_parameters(&source.schedules()[schedule], &params)?;
    let root = ground.root.unwrap_or(0);
    if root >= ranks {
        return Err(Failure::unusable(format!("root {root} is no rank among {ranks}"))
            .help(format!("roots are 0..={}", ranks - 1)));
    }
    let mut instance = Instance { ranks, root, params };
    if let Some(network) = shape {
        shape::shape(network, source, schedule, &mut instance);
    }
    let options = compile::options(&ground.passes)?;
    let outcome = coll::prove(source, schedule, &instance, &options);
    let slices = match is_too_large(&outcome) {
        true => coll::compile_slices(source, schedule, &instance, &options),
        false => None,
    };
    let plans = match slices {
        Some(slices) => slices,
        None => vec![compile::settled(source, schedule, &instance, outcome)?.plan],
    };
    let steps = if ranks <= DESCRIBED_RANKS_MAX { steps(source, schedule, &instance) } else { Vec::new() };
    Ok(Planned { plans, steps, is_foreign: false })
}

/// Whether a schedule is not wrong, but too much to be written down whole: then each rank's part may do.
fn is_too_large(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Wrong(errors) => errors.iter().any(|error| error.code == coll_sema::codes::TOO_LARGE),
        _ => false,
    }
}

fn steps(source: &Source, schedule: usize, instance: &Instance) -> Vec<String> {
    let Ok(instantiated) = source.module.instantiate(schedule, instance) else { return Vec::new() };
    let program = instantiated.program;
    program.steps.iter().map(|step| program.origins.describe(step.origin)).collect()
}

fn read(target: &str, bytes: &[u8], ground: &Ground, ranks: Option<u32>) -> Result<Plan, Failure> {
    let read = coll::read_plan(bytes).map_err(|error| {
        output::complain_raw(&render::render(&SourceMap::new(), error.diagnostics(), output::colours()));
        let message = format!("`{target}`: {error}");
        if matches!(error, coll::PlanError::Wrong(_)) {
            Failure::wrong(message)
        } else {
            Failure::unusable(message)
        }
    })?;
    fitting(target, read.plan, ground, ranks)
}

/// A plan that is there, if it is for the ranks and the root that are asked for.
fn fitting(target: &str, plan: Plan, ground: &Ground, ranks: Option<u32>) -> Result<Plan, Failure> {
    let world = plan.world();
    if let Some(ranks) = ranks.filter(|&ranks| ranks != world) {
        return Err(Failure::unusable(format!("`{target}` is a plan for {world} ranks, not {ranks}"))
            .help("compile the schedule for that many, or simulate the schedule itself"));
    }
    if let Some(asked) = ground.root.filter(|&asked| plan.root != Some(asked)) {
        let found = plan.root.map_or("no root".into(), |root| format!("root {root}"));
        return Err(Failure::unusable(format!("`{target}` is a plan for {found}, not root {asked}")));
    }
    Ok(plan)
}

/// A plan has been compiled.
fn refuse_compiling(target: &str, ground: &Ground, choice: &Choice) -> Result<(), Failure> {
    let passes = &ground.passes;
    let given = [
        ("-D", !choice.define.is_empty()),
        ("--schedule", choice.schedule.is_some()),
        ("--skip", !passes.skip.is_empty()),
        ("--no-opt", passes.no_opt),
        ("--lanes", passes.lanes.is_some()),
        ("--slices", passes.slices.is_some()),
        ("--accumulate", passes.accumulate.is_some()),
        ("--wire", passes.wire.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => {
            Err(Failure::unusable(format!("`{name}` is for schedules, and `{target}` is a plan"))
                .help("compile the schedule with it, or simulate the schedule itself"))
        }
    }
}
