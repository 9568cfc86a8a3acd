//! `collc compile`: a schedule to a proved plan, or, without `--ranks`, to a bundle.

pub(crate) mod fit;
pub(crate) mod shape;

use crate::args::{CompileArgs, Emit, Passes};
use crate::cmd::check::{plan_bytes, report, sweep::sweep};
use crate::cmd::{foreign, target};
use crate::failure::Failure;
use crate::{output, render};
use coll::{Bundle, Outcome, Proved, RankCounts, RankOutcome, RankPlanned, Source};
use coll_compile::Options;
use coll_sema::{Instance, Refusal};
use fit::{Fitting, Subject};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Rank counts that a bundle is proved for.
const BUNDLE_RANKS: std::ops::RangeInclusive<u32> = 2..=16;

/// Compiles one schedule.
pub(crate) fn run(args: &CompileArgs) -> Result<ExitCode, Failure> {
    if let Some(examined) = foreign::open(&args.target, args.root)? {
        refuse_to_overwrite(args)?;
        return foreign::compile(args, examined);
    }
    if let Some(bytes) = plan_bytes(&args.target)? {
        refuse_to_overwrite(args)?;
        return foreign::show_plan(args, &bytes);
    }
    let mut source = target::open(&args.target)?;
    target::restrict(&mut source, args.choice.schedule.as_deref());
    refuse_to_overwrite(args)?;
    fit::refuse_unused(args)?;
    if args.emit == Some(Emit::Ast) {
        return emit_ast(args, &source);
    }
    target::refuse_if_broken(&source)?;
    target::show(&source, &source.diagnostics);
    let schedule = target::the_one(&source, args.choice.schedule.as_deref())?;
    target::check_parameters(&source.schedules()[schedule], &args.choice.defined())?;
    let fitting = Fitting::new(args)?;
    let options = options_beside(&args.passes, if fitting.is_some() { &fit::PASSES } else { &[] })?;
    let Some(ranks) = ranks(args, fitting.as_ref())? else {
        if let Some(root) = args.root {
            return Err(Failure::unusable(format!(
                "`--root {root}` needs `--ranks`: a bundle serves any root"
            )));
        }
        return bundle(args, &source, schedule, &options);
    };
    let root = args.root.unwrap_or(0);
    if root >= ranks {
        return Err(Failure::unusable(format!("root {root} is no rank among {ranks}"))
            .help(format!("roots are 0..={}", ranks - 1)));
    }
    let mut instance = Instance { ranks, root, params: args.choice.defined() };
    let shaped = fitting.as_ref().and_then(|fitting| fitting.shape(&source, schedule, &mut instance));
    let fitting = fitting.map(|fitting| (fitting, shaped));
    match (args.emit, args.rank) {
        (Some(Emit::Program | Emit::Graph | Emit::Dot | Emit::Svg), Some(rank)) => Err(Failure::unusable(
            format!("`--rank {rank}` goes with one rank's part of a plan, and not with what shows all ranks"),
        )
        .help("leave `--rank` out, or print the slice with `--emit plan`")),
        (_, Some(rank)) => slice(args, &source, schedule, (&instance, rank), (&options, fitting)),
        (Some(Emit::Program | Emit::Graph | Emit::Dot), None) => {
            emit_program(args, &source, schedule, &instance)
        }
        (_, None) => plan(args, &source, schedule, &instance, (&options, fitting)),
    }
}

/// The rank count: what is asked for, else with a topology one rank for each device.
fn ranks(args: &CompileArgs, fitting: Option<&Fitting>) -> Result<Option<u32>, Failure> {
    let Some(counts) = &args.ranks else { return Ok(fitting.map(Fitting::default_ranks)) };
    counts.single().map(Some).ok_or_else(|| {
        Failure::unusable("a plan is for one rank count")
            .help("give one, or none for a bundle that serves any")
    })
}

/// A fitting, and what its first pass did to the parameters.
type Shaped = Option<(Fitting, Option<String>)>;

/// A proved plan, fitted to a topology if there is one; and a line on each thing that was done for that.
fn fitted(
    args: &CompileArgs,
    subject: &Subject<'_>,
    (options, fitting): (&Options, Shaped),
) -> Result<(Box<Proved>, Vec<String>), Failure> {
    let proved = proved(subject.source, subject.schedule, subject.instance, options)?;
    let Some((fitting, shaped)) = fitting else { return Ok((proved, Vec::new())) };
    let fitted = fitting.fit(subject, proved, options, &args.passes)?;
    Ok((fitted.proved, shaped.into_iter().chain(fitted.lines).collect()))
}

/// A plan written over its own source would lose it.
fn refuse_to_overwrite(args: &CompileArgs) -> Result<(), Failure> {
    let Some(output) = &args.output else { return Ok(()) };
    let same = match (std::fs::canonicalize(output), std::fs::canonicalize(&args.target)) {
        (Ok(output), Ok(source)) => output == source,
        _ => false,
    };
    match same {
        true => {
            Err(Failure::unusable(format!("`-o {}` would overwrite the schedule itself", output.display()))
                .help("name another file"))
        }
        false => Ok(()),
    }
}

/// What the options say about passes.
pub(crate) fn options(passes: &Passes) -> Result<Options, Failure> {
    options_beside(passes, &[])
}

/// The same where there are other passes beside the compiler's.
pub(crate) fn options_beside(passes: &Passes, others: &[&str]) -> Result<Options, Failure> {
    let own = || coll_compile::PASSES.iter().map(|pass| pass.name);
    let known = || own().chain(others.iter().copied());
    for name in &passes.skip {
        if !known().any(|known| known == name) {
            let names = known().collect::<Vec<_>>().join(", ");
            return Err(Failure::unusable(format!("no pass `{name}`")).help(format!("there are {names}")));
        }
    }
    let skips = |name: &&str| passes.no_opt || passes.skip.iter().any(|skip| skip == name);
    let skip = own().filter(skips).map(str::to_string).collect();
    let Passes { lanes, slices, accumulate, wire, .. } = *passes;
    Ok(Options { skip, lanes, slices, accumulate, wire, ..Options::default() })
}

/// A schedule's proved plan for one rank count and root; what is wrong is shown.
pub(crate) fn proved(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    options: &Options,
) -> Result<Box<Proved>, Failure> {
    settled(source, schedule, instance, coll::prove(source, schedule, instance, options))
}

/// The proved plan, or what kept it from being that; what is wrong is shown.
pub(crate) fn settled(
    source: &Source,
    schedule: usize,
    instance: &Instance,
    outcome: Outcome,
) -> Result<Box<Proved>, Failure> {
    let name = || {
        let info = &source.schedules()[schedule];
        format!("{}.{}", info.collective, info.name)
    };
    match outcome {
        Outcome::Right(proved) => {
            target::show(source, &proved.warnings);
            Ok(proved)
        }
        Outcome::DoesNotApply { reason, .. } => {
            Err(Failure::wrong(format!("{} does not apply to {} ranks: {reason}", name(), instance.ranks)))
        }
        Outcome::Wrong(diagnostics) => {
            target::show(source, &diagnostics);
            let found = target::found(&diagnostics);
            Err(Failure::wrong(format!("{} {found} for {} ranks", name(), instance.ranks)))
        }
    }
}

fn plan(
    args: &CompileArgs,
    source: &Source,
    schedule: usize,
    instance: &Instance,
    how: (&Options, Shaped),
) -> Result<ExitCode, Failure> {
    let (proved, lines) = fitted(args, &Subject { source, schedule, instance }, how)?;
    let plan = &proved.plan;
    let text = match args.emit {
        Some(Emit::Plan) => coll_plan::to_text(plan),
        Some(Emit::Json) => coll_plan::to_json(plan),
        Some(Emit::Svg) => coll_sim::drawing(plan).map_err(|error| Failure::unusable(error.to_string()))?,
        _ => {
            let path = args.output.clone().unwrap_or_else(|| default_output(args, source, "plan"));
            write_file(&path, &coll_plan::to_bytes(plan))?;
            output::print(&summary(&proved, &lines, &path))?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    emit(args, &text)
}

/// One rank's slice of a plan.
fn slice(
    args: &CompileArgs,
    source: &Source,
    schedule: usize,
    (instance, rank): (&Instance, u32),
    (options, fitting): (&Options, Shaped),
) -> Result<ExitCode, Failure> {
    let ranks = instance.ranks;
    if rank >= ranks {
        return Err(Failure::unusable(format!("rank {rank} is no rank among {ranks}"))
            .help(format!("ranks are 0..={}", ranks - 1)));
    }
    let info = &source.schedules()[schedule];
    let name = format!("{}.{}", info.collective, info.name);
    let outcome = match fitting {
        None => coll::compile_rank(source, schedule, instance, rank, options),
        // Where one rank stands depends on all.
        fitting => {
            let subject = Subject { source, schedule, instance };
            let (proved, _) = fitted(args, &subject, (options, fitting))?;
            let plan = proved.plan.slice(rank).expect("invariant: a whole plan has every rank's part");
            RankOutcome::Right(Box::new(RankPlanned { plan, alone: false, warnings: Vec::new() }))
        }
    };
    let planned = match outcome {
        RankOutcome::Right(planned) => planned,
        RankOutcome::DoesNotApply { reason, .. } => {
            return Err(Failure::wrong(format!("{name} does not apply to {ranks} ranks: {reason}")));
        }
        RankOutcome::Wrong(diagnostics) => {
            target::show(source, &diagnostics);
            let found = target::found(&diagnostics);
            return Err(Failure::wrong(format!("{name} {found} for {ranks} ranks")));
        }
    };
    target::show(source, &planned.warnings);
    let plan = &planned.plan;
    match args.emit {
        Some(Emit::Plan) => return emit(args, &coll_plan::to_text(plan)),
        Some(Emit::Json) => return emit(args, &coll_plan::to_json(plan)),
        _ => {}
    }
    let path = args.output.clone().unwrap_or_else(|| default_output(args, source, "plan"));
    write_file(&path, &coll_plan::to_bytes(plan))?;
    let ops: usize = plan.ranks.iter().map(|rank| rank.ops.len()).sum();
    let how = if planned.alone { "compiled by itself" } else { "cut off the whole plan" };
    let proof = plan.proof.as_ref().map_or(String::new(), |proof| format!("  rests on the proof {proof}\n"));
    output::print(&format!(
        "{name}, rank {rank} of {ranks}: {ops} operations, {how}\n{proof}wrote {}\n",
        path.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn summary(proved: &Proved, lines: &[String], path: &Path) -> String {
    let plan = &proved.plan;
    let ops: usize = plan.ranks.iter().map(|rank| rank.ops.len()).sum();
    let p = &proved.properties;
    let mut text = format!("{} for {} ranks: proved, compiled, proved again\n", plan.name, plan.world());
    text += &format!("  {} steps on the longest path, {ops} operations\n", p.steps);
    text += &format!("  busiest rank sends {} of the buffer (bound {})", p.sent_max, p.bounds.sent_max);
    text += &format!(", receives {} (bound {})\n", p.received_max, p.bounds.received_max);
    for pass in &proved.passes {
        text += &format!("  {pass}\n");
    }
    lines.iter().for_each(|line| text += &format!("  {line}\n"));
    text + &format!("wrote {}  {}\n", path.display(), &coll_plan::hash(plan)[..16])
}

/// Proves 2..=16 for every root, and writes what `run` instantiates for the ranks that it finds.
fn bundle(
    args: &CompileArgs,
    source: &Source,
    schedule: usize,
    options: &Options,
) -> Result<ExitCode, Failure> {
    let ranks = RankCounts::range(*BUNDLE_RANKS.start(), *BUNDLE_RANKS.end());
    let sweeps = [sweep(source, schedule, &ranks, None, &args.choice.defined(), options)?];
    // The file's own have been shown.
    target::show(source, &report::diagnostics(source, &sweeps)[source.diagnostics.len()..]);
    let text = report::text(source, &sweeps, &[]);
    if !sweeps[0].ok() {
        output::print(&text)?;
        return Ok(ExitCode::FAILURE);
    }
    let bundle = Bundle::new(source, schedule, args.choice.defined(), sweeps[0].proved());
    let path = args.output.clone().unwrap_or_else(|| default_output(args, source, "bundle"));
    write_file(&path, bundle.to_json().as_bytes())?;
    output::print(&format!("{text}wrote {}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

fn emit_ast(args: &CompileArgs, source: &Source) -> Result<ExitCode, Failure> {
    let parsed = coll_syntax::parse(source.main, source.map.text(source.main));
    if !parsed.diagnostics.is_empty() {
        output::complain_raw(&render::render(&source.map, &parsed.diagnostics, output::colours()));
        return Ok(ExitCode::FAILURE);
    }
    emit(args, &format!("{:#?}\n", parsed.file))
}

fn emit_program(
    args: &CompileArgs,
    source: &Source,
    schedule: usize,
    instance: &Instance,
) -> Result<ExitCode, Failure> {
    let program = match source.module.instantiate(schedule, instance) {
        Ok(instantiated) => instantiated.program,
        Err(Refusal::DoesNotApply { reason, .. }) => {
            return Err(Failure::wrong(format!("it does not apply to {} ranks: {reason}", instance.ranks)));
        }
        Err(Refusal::Errors(diagnostics)) => {
            target::show(source, &diagnostics);
            return Ok(ExitCode::FAILURE);
        }
    };
    let text = match args.emit {
        Some(Emit::Program) => coll_ir::print(&program),
        Some(Emit::Graph) => graph(&program),
        _ => coll_ir::dot(&program, &coll_ir::Dependences::of(&program)),
    };
    emit(args, &text)
}

/// The dependence graph, a transfer a line with what it comes after.
fn graph(program: &coll_ir::Program) -> String {
    let dependences = coll_ir::Dependences::of(program);
    let mut edges = dependences.edges().into_iter().peekable();
    let mut text = String::new();
    for (id, transfer) in (0..).zip(&program.transfers) {
        text += &format!("t{id}  step {}  {}", transfer.step, coll_ir::print_transfer(program, transfer));
        while let Some((from, _, why)) = edges.next_if(|&(_, to, _)| to == id) {
            text += &format!("  {} t{from}", why.word());
        }
        text += "\n";
    }
    text
}

fn emit(args: &CompileArgs, text: &str) -> Result<ExitCode, Failure> {
    match &args.output {
        Some(path) => write_file(path, text.as_bytes())?,
        None => output::print(text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes what was asked for, and says how else it can be had.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    output::write_file(path, bytes)
        .map_err(|failure| failure.help("nothing was written; name another place with `-o`"))
}

/// The source's name with another ending, in the current folder.
fn default_output(args: &CompileArgs, source: &Source, extension: &str) -> PathBuf {
    let name = source.map.name(source.main);
    let stem = match target::names_a_file(&args.target) {
        true => Path::new(name).file_stem().map_or("out".into(), |stem| stem.to_string_lossy().into_owned()),
        false => args.target.replace('.', "_"),
    };
    PathBuf::from(format!("{stem}.{extension}"))
}
