//! Schedules of other tools as what a command is about: opened, shown, compiled.

pub(crate) mod shape;

use crate::args::{CompileArgs, Emit};
use crate::cmd::target;
use crate::failure::Failure;
use crate::{output, render};
use coll::foreign::{Examined, ForeignSchedule, Form, examine, examine_traces};
use coll_base::SourceMap;
use coll_plan::Plan;
use std::path::Path;
use std::process::ExitCode;

/// The largest foreign file that is read.
const SIZE_MAX_BYTES: u64 = 1 << 30;

/// Reads and proves a file, if it is of a foreign form.
pub(crate) fn open(name: &str, root: Option<u32>) -> Result<Option<Examined>, Failure> {
    if !target::names_a_file(name) || Path::new(name).is_dir() {
        return Ok(None);
    }
    if let Some(examined) = traces(name)? {
        return Ok(Some(examined));
    }
    // What is wrong with the file otherwise is told by whoever reads it for what it is.
    let Ok(bytes) = coll::read_bytes(Path::new(name), SIZE_MAX_BYTES) else { return Ok(None) };
    of_bytes(name, bytes, root)
}

/// Reads and proves the Chakra traces of all ranks, if a file is one of them by its name: `NAME.0.et`, `NAME.1.et` and so on, as far
/// as there are such files.
pub(crate) fn traces(name: &str) -> Result<Option<Examined>, Failure> {
    let numbered = name.strip_suffix(".et").and_then(|stem| stem.rsplit_once('.'));
    let Some((stem, Ok(rank))) = numbered.map(|(stem, rank)| (stem, rank.parse::<usize>())) else {
        return Ok(None);
    };
    let mut all = Vec::new();
    loop {
        let file = format!("{stem}.{}.et", all.len());
        if !Path::new(&file).is_file() {
            break;
        }
        let bytes = coll::read_bytes(Path::new(&file), SIZE_MAX_BYTES)?;
        all.push((file, bytes));
    }
    if rank >= all.len() {
        return Err(Failure::unusable(format!("there is no `{stem}.{}.et`", all.len()))
            .help("traces are numbered from 0, one for each rank"));
    }
    Ok(Some(examine_traces(&format!("{stem}.et"), &all)))
}

/// Proves what was read, if it is of a foreign form.
pub(crate) fn of_bytes(name: &str, bytes: Vec<u8>, root: Option<u32>) -> Result<Option<Examined>, Failure> {
    let Some(form) = Form::of(&bytes) else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        Failure::unusable(format!("`{name}` is no text file: byte {offset} is not UTF-8 text"))
            .help(format!("{} is written in UTF-8", form.name()))
    })?;
    if let Some(root) = root {
        let examined = examine(form, name, text, Some(root));
        let ranks = examined.schedule.as_ref().map_or(u32::MAX, |schedule| schedule.plan.world());
        if root >= ranks {
            return Err(Failure::unusable(format!("root {root} is no rank among {ranks}")));
        }
        return Ok(Some(examined));
    }
    Ok(Some(examine(form, name, text, None)))
}

/// The schedule of a file that is right; what is wrong is shown.
pub(crate) fn right(name: &str, examined: Examined) -> Result<ForeignSchedule, Failure> {
    show(&examined);
    let count = examined.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    match examined.schedule {
        Some(schedule) if schedule.verdict.ok => Ok(schedule),
        Some(_) => Err(Failure::wrong(format!("`{name}` does not do what it says: {count} errors"))),
        None => Err(Failure::unusable(format!("`{name}` has {count} errors"))),
    }
}

/// What was found, on standard error.
pub(crate) fn show(examined: &Examined) {
    output::complain_raw(&render::render(&examined.map, &examined.diagnostics, output::colours()));
}

/// The copies that were put in.
pub(crate) fn copies(schedule: &ForeignSchedule) -> Option<String> {
    let for_what = if schedule.limits.in_place { "in place" } else { "out of place" };
    (schedule.copies > 0).then(|| {
        format!(
            "{} copies were put in, since the file is for calls {for_what} alone and a plan serves both",
            schedule.copies
        )
    })
}

/// `collc compile` of a foreign file: its plan.
pub(crate) fn compile(args: &CompileArgs, examined: Examined) -> Result<ExitCode, Failure> {
    let schedule = right(&args.target, examined)?;
    let plan = part(args, &schedule.plan)?;
    if let Some(emit) = args.emit {
        return print(args, emit, &plan);
    }
    let stem = Path::new(&args.target).file_stem().map_or("out".into(), |stem| stem.to_string_lossy());
    let path = args.output.clone().unwrap_or_else(|| format!("{stem}.plan").into());
    output::write_file(&path, &coll_plan::to_bytes(&plan))?;
    output::print(&format!("{}wrote {}\n", summary(&schedule), path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// `collc compile` of a plan, which is compiled already: it is printed in another form, or drawn.
pub(crate) fn show_plan(args: &CompileArgs, bytes: &[u8]) -> Result<ExitCode, Failure> {
    let read = coll::read_plan(bytes).map_err(|error| {
        output::complain_raw(&render::render(&SourceMap::new(), error.diagnostics(), output::colours()));
        Failure::wrong(format!("`{}`: {error}", args.target))
    })?;
    let plan = part(args, &read.plan)?;
    match args.emit {
        Some(emit) => print(args, emit, &plan),
        None => Err(Failure::unusable(format!("`{}` is a plan, and has been compiled", args.target)).help(
            "print it with `--emit plan` or `--emit json`, or draw it with `--emit svg` or `--emit dot`",
        )),
    }
}

/// What of a plan is asked for.
fn part(args: &CompileArgs, plan: &Plan) -> Result<Plan, Failure> {
    if let Some(ranks) = args.ranks.as_ref().filter(|ranks| ranks.single() != Some(plan.world())) {
        let asked = ranks.single().map_or("several counts".into(), |ranks| format!("{ranks}"));
        return Err(Failure::unusable(format!(
            "`{}` is a schedule for {} ranks, not {asked}",
            args.target,
            plan.world()
        )));
    }
    if !args.choice.define.is_empty() || args.choice.schedule.is_some() {
        return Err(Failure::unusable("`-D` and `--schedule` are for schedules in the coll language"));
    }
    match args.rank {
        None => Ok(plan.clone()),
        Some(rank) => plan
            .slice(rank)
            .ok_or_else(|| Failure::unusable(format!("rank {rank} is no rank among {}", plan.world()))),
    }
}

/// Prints a plan in a form, or draws it.
fn print(args: &CompileArgs, emit: Emit, plan: &Plan) -> Result<ExitCode, Failure> {
    let text = match emit {
        Emit::Plan => coll_plan::to_text(plan),
        Emit::Json => coll_plan::to_json(plan),
        Emit::Svg | Emit::Dot => {
            if let Some(rank) = args.rank {
                let message =
                    format!("`--rank {rank}` goes with one rank's part of a plan, and a picture shows all");
                return Err(Failure::unusable(message)
                    .help("leave `--rank` out, or print the slice with `--emit plan`"));
            }
            let drawn = if emit == Emit::Dot { coll_sim::dot(plan) } else { coll_sim::drawing(plan) };
            drawn.map_err(|error| Failure::unusable(error.to_string()))?
        }
        Emit::Ast | Emit::Program | Emit::Graph => {
            return Err(Failure::unusable(format!(
                "`{}` is taken as a plan, which has no program and no tree",
                args.target
            ))
            .help(
                "print it with `--emit plan` or `--emit json`, or draw it with `--emit svg` or `--emit dot`",
            ));
        }
    };
    match &args.output {
        Some(path) => output::write_file(path, text.as_bytes())?,
        None => output::print(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What an imported schedule is, in two lines or three.
pub(crate) fn summary(schedule: &ForeignSchedule) -> String {
    let plan = &schedule.plan;
    let ops: usize = plan.ranks.iter().map(|part| part.ops.len()).sum();
    let promise = match schedule.verdict.postcondition {
        Some(_) => "keeps its contract",
        None if schedule.sizes_bytes.is_some() => "every message arrives",
        None => "promises nothing that is known here, does not stop and has no race",
    };
    let mut text = format!(
        "{} for {} ranks: {ops} operations, {promise}; least message slots: {}\n",
        plan.name,
        plan.world(),
        schedule.verdict.min_slots
    );
    if let Some(copies) = copies(schedule) {
        text += &format!("  {copies}\n");
    }
    match &schedule.sizes_bytes {
        Some(_) => {
            text += "  the file says what is sent; a plan takes any sizes that its blocks divide, all alike\n"
        }
        None => text += &format!("  the file is for {}; a plan serves all\n", schedule.limits.words()),
    }
    if schedule.equal_chunks_only {
        text += &format!("  chunks change places: counts have to divide by {}\n", schedule.limits.divisor());
    }
    text
}
