//! The pipeline: which passes there are, in which order they run, and what each has done.

use crate::passes::{Grouped, drop_dead, merge, slice};
use crate::{codes, lower};
use coll_base::{DType, Diagnostic, SourceMap};
use coll_ir::{Kind, Program};
use coll_plan::Plan;
use std::fmt;

/// What may be chosen; the default is what the program's `tune` says and all passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Names of passes to leave out.
    pub skip: Vec<String>,
    /// Merge the messages of a step always, or never. None weighs it.
    pub merge: Option<bool>,
    /// Connections for each pair of ranks, instead of what `tune` says.
    pub lanes: Option<u32>,
    /// Parts that every chunk is cut into, instead of what `tune` says.
    pub slices: Option<u32>,
    /// The type that narrow floats are reduced in, instead of what `tune` says.
    pub accumulate: Option<DType>,
    /// The type that wider floats travel as, instead of what `tune` says.
    pub wire: Option<DType>,
}

/// What came out.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The plan.
    pub plan: Plan,
    /// What each pass did, in the order in which they ran.
    pub reports: Vec<PassReport>,
}

/// A pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassInfo {
    /// Its name, for [`Options::skip`] and [`run_pass`].
    pub name: &'static str,
    /// What holds after it.
    pub guarantee: &'static str,
}

/// All passes that can be skipped, in the order in which they run. The first three work on a program, the others
/// on the operations that it is lowered to.
pub const PASSES: &[PassInfo] = &[
    PassInfo { name: "drop_dead", guarantee: "every transfer reaches an ensured place; no drops are left" },
    PassInfo {
        name: "merge",
        guarantee: "one message a step for each pair of ranks, unless that takes longer",
    },
    PassInfo {
        name: "slice",
        guarantee: "every transfer is cut into as many messages as `tune slices` says",
    },
    PassInfo { name: "fuse", guarantee: "a send of just what a receive stores follows it byte by byte" },
    PassInfo { name: "prune", guarantee: "no wait follows from the others" },
];

/// What a pass did.
#[derive(Clone, Debug, PartialEq)]
pub struct PassReport {
    /// The pass; `lower` for what makes operations of transfers.
    pub name: &'static str,
    /// What it counted, such as `("messages", 12)`.
    pub counts: Vec<(&'static str, u64)>,
    /// Scratch of the rank that has most, in blocks; the program's own and what staging costs. Only of `lower`.
    pub scratch_blocks_max: Option<f64>,
    /// Why it did what it did, or nothing.
    pub reason: String,
}

impl fmt::Display for PassReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts.iter().map(|(what, count)| format!("{count} {what}"));
        write!(f, "{}: {}", self.name, counts.collect::<Vec<_>>().join(", "))?;
        if let Some(blocks) = self.scratch_blocks_max {
            write!(f, ", scratch of {blocks:.3} blocks at most")?;
        }
        if !self.reason.is_empty() {
            write!(f, " ({})", self.reason)?;
        }
        Ok(())
    }
}

/// Compiles a program that has passed [`coll_ir::verify`]. Operations name the lines of `sources` that they come
/// from.
///
/// # Errors
/// Options that cannot be had, and plans that are too large.
pub fn compile(program: &Program, sources: &SourceMap, options: &Options) -> Result<Compiled, Diagnostic> {
    let settings = settings(program, options)?;
    let runs = |name: &str| runs(options, name);
    let mut grouped = Grouped::new(program);
    let mut reports = Vec::new();
    for pass in PASSES.iter().filter(|pass| PROGRAM_PASSES.contains(&pass.name) && runs(pass.name)) {
        reports.push(on_program(pass.name, &mut grouped, options)?);
    }
    let (plan, totals) = lower::run(&grouped, sources, &settings)?;
    reports.push(lowered(&totals));
    if settings.fuse {
        reports.push(PassReport::counted("fuse", vec![("sends along a receive", totals.along)]));
    }
    if settings.prune {
        let counts = vec![("waits taken out", totals.pruned), ("left", totals.waits)];
        reports.push(PassReport::counted("prune", counts));
    }
    Ok(Compiled { plan, reports })
}

/// Compiles one rank's part of a program, as `coll-sema` instantiates it: its contract is that
/// rank's slice, and its transfers are those that begin or end there. What the passes decide on the whole is given:
/// whether messages are merged is what [`Options::merge`] says, and nothing else is taken to be dead, to be cut in
/// slices, or to be written twice in one step. None if the part alone does not tell what the slice of the plan is.
///
/// # Errors
/// As [`compile`].
pub fn compile_rank(
    program: &Program,
    sources: &SourceMap,
    options: &Options,
    rank: u32,
) -> Result<Option<Plan>, Diagnostic> {
    let settings = settings(program, options)?;
    let foreign =
        program.contract.only != Some(rank) || program.transfers.iter().any(|t| t.kind == Kind::Drop);
    if foreign || settings.slices > 1 {
        return Ok(None);
    }
    let mut grouped = Grouped::new(program);
    if options.merge == Some(true) && runs(options, "merge") {
        merge::run_of_rank(&mut grouped);
    }
    lower::run_of_rank(&grouped, sources, &settings, rank)
}

fn settings(program: &Program, options: &Options) -> Result<lower::Settings, Diagnostic> {
    if let Some(name) = options.skip.iter().find(|name| PASSES.iter().all(|pass| pass.name != *name)) {
        return Err(no_such_pass(name));
    }
    let lanes = options.lanes.or(program.tune.lanes).unwrap_or(1);
    within("lanes", lanes, LANES_MAX)?;
    let slices = options.slices.or(program.tune.slices).unwrap_or(1);
    within("slices", slices, SLICES_MAX)?;
    let slices = if runs(options, "slice") { slices } else { 1 };
    let accumulate = options.accumulate.or(program.tune.accumulate);
    if let Some(dtype) = accumulate.filter(|&dtype| dtype != DType::F32) {
        let message = format!("nothing can be accumulated in {dtype}");
        return Err(Diagnostic::unplaced(codes::CANNOT_COMPILE, message)
            .expected("`f32`")
            .found(format!("`{dtype}`"))
            .help("narrow floats can be accumulated in `f32`"));
    }
    let wire = options.wire.or(program.tune.wire);
    if let Some(dtype) = wire.filter(|dtype| !dtype.is_wire()) {
        let names = DType::WIRE.map(|dtype| format!("`{dtype}`")).join(", ");
        return Err(Diagnostic::unplaced(codes::CANNOT_COMPILE, format!("nothing can travel as {dtype}"))
            .expected(format!("one of {names}"))
            .found(format!("`{dtype}`"))
            .help("wider floats can travel as one of these"));
    }
    let (fuse, prune) = (runs(options, "fuse"), runs(options, "prune"));
    Ok(lower::Settings { lanes, slices, accumulate, wire, fuse, prune })
}

fn runs(options: &Options, name: &str) -> bool {
    !options.skip.iter().any(|skipped| skipped == name)
}

/// Runs one of the passes that work on a program: `drop_dead`, `merge` or `slice`.
///
/// # Errors
/// As [`compile`]; and if there is no such pass.
pub fn run_pass<'a>(
    name: &str,
    program: &'a Program,
    options: &Options,
) -> Result<(Grouped<'a>, PassReport), Diagnostic> {
    let known = PROGRAM_PASSES.iter().find(|pass| **pass == name).ok_or_else(|| no_such_pass(name))?;
    let mut grouped = Grouped::new(program);
    let report = on_program(known, &mut grouped, options)?;
    Ok((grouped, report))
}

const PROGRAM_PASSES: [&str; 3] = ["drop_dead", "merge", "slice"];
const LANES_MAX: u32 = 64;
const SLICES_MAX: u32 = 1024;

fn on_program(
    name: &'static str,
    grouped: &mut Grouped<'_>,
    options: &Options,
) -> Result<PassReport, Diagnostic> {
    let report = match name {
        "drop_dead" => {
            let dropped = drop_dead::run(grouped);
            let counts = vec![("dead transfers", dropped.transfers), ("drops", dropped.drops)];
            PassReport::counted(name, counts)
        }
        "merge" => merged(&merge::run(grouped, options.merge)),
        _ => {
            let slices = options.slices.or(grouped.program.tune.slices).unwrap_or(1);
            within("slices", slices, SLICES_MAX)?;
            slice::run(grouped, slices)?;
            PassReport::counted(name, vec![("parts of each transfer", slices as u64)])
        }
    };
    debug_assert_eq!(coll_ir::verify(&grouped.program), Ok(()), "after {name}");
    Ok(report)
}

impl PassReport {
    fn counted(name: &'static str, counts: Vec<(&'static str, u64)>) -> PassReport {
        PassReport { name, counts, scratch_blocks_max: None, reason: String::new() }
    }
}

fn merged(merging: &merge::Merging) -> PassReport {
    let counts = vec![("messages before", merging.before), ("after", merging.after)];
    let reason = match merging.weighed {
        Some((unmerged, merged)) => format!("{unmerged:.3} blocks of time unmerged, {merged:.3} merged"),
        None => String::new(),
    };
    PassReport { reason, ..PassReport::counted("merge", counts) }
}

fn lowered(totals: &lower::Totals) -> PassReport {
    let counts = vec![
        ("operations", totals.ops),
        ("messages", totals.messages),
        ("chunks staged", totals.staged),
        ("chunks gathered from two stores", totals.settled),
        ("count classes united", totals.united),
    ];
    PassReport { scratch_blocks_max: Some(totals.scratch_max), ..PassReport::counted("lower", counts) }
}

fn within(what: &str, value: u32, most: u32) -> Result<(), Diagnostic> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Diagnostic::unplaced(codes::CANNOT_COMPILE, format!("{value} {what} cannot be had"))
        .expected(format!("{what} from 1 to {most}"))
        .found(value.to_string())
        .help(format!("tune {what} within these bounds, or leave them out")))
}

fn no_such_pass(name: &str) -> Diagnostic {
    let names = PASSES.iter().map(|pass| pass.name).collect::<Vec<_>>().join(", ");
    Diagnostic::unplaced(codes::CANNOT_COMPILE, format!("there is no pass `{name}` to skip or to run alone"))
        .expected(format!("one of {names}"))
        .found(format!("`{name}`"))
        .help("correct the name")
}
