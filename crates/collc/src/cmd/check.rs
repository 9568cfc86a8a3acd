//! `collc check`: which rank counts a schedule keeps its contract for, and what is known of it.

mod foreign;
mod plan;
pub(super) mod report;
pub(super) mod sweep;

use crate::args::{CheckArgs, Format};
use crate::cmd::target;
use crate::failure::Failure;
use crate::output;
use coll::{RankCounts, Source};
use std::process::ExitCode;

pub(crate) use plan::bytes as plan_bytes;

/// Checks all schedules of a file, or the one that is named.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode, Failure> {
    if let Some(examined) = crate::cmd::foreign::open(&args.target, args.root)? {
        return foreign::run(args, &examined);
    }
    if let Some(bytes) = plan::bytes(&args.target)? {
        return plan::run(args, &bytes);
    }
    let mut source = match target::open(&args.target) {
        Ok(source) => source,
        Err(failure) => return report::unusable(args.format, failure),
    };
    target::restrict(&mut source, args.choice.schedule.as_deref());
    let sweeps = sweep_all(args, &source)?;
    let ok = !source.has_errors() && sweeps.iter().all(sweep::Sweep::ok);
    match args.format {
        Format::Json => output::print(&report::json(&source, &sweeps, ok))?,
        Format::Text => {
            target::show(&source, &report::diagnostics(&source, &sweeps));
            let broken: Vec<usize> = target::chosen(&source, args.choice.schedule.as_deref())?
                .into_iter()
                .filter(|&schedule| source.schedules()[schedule].broken)
                .collect();
            output::print(&report::text(&source, &sweeps, &broken))?;
        }
    }
    if target::is_no_schedule_file(&source) {
        return Err(target::broken(&source));
    }
    Ok(if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn sweep_all(args: &CheckArgs, source: &Source) -> Result<Vec<sweep::Sweep>, Failure> {
    let ranks = args.ranks.clone().unwrap_or(RankCounts::range(2, 16));
    let options = super::compile::options(&args.passes)?;
    let chosen = target::chosen(source, args.choice.schedule.as_deref())?;
    let mut sweeps = Vec::new();
    for schedule in chosen {
        let info = &source.schedules()[schedule];
        // With several schedules in a file, a parameter need only be one of theirs.
        let known = |name: &str| info.params.iter().any(|(known, _)| known == name);
        let define = match args.choice.schedule {
            Some(_) => args.choice.defined(),
            None => args.choice.defined().into_iter().filter(|(name, _)| known(name)).collect(),
        };
        if args.choice.schedule.is_some() || source.schedules().len() == 1 {
            target::check_parameters(info, &args.choice.defined())?;
        }
        if !info.broken {
            sweeps.push(sweep::sweep(source, schedule, &ranks, args.root, &define, &options)?);
        }
    }
    if let Some((name, _)) = args.choice.define.iter().find(|(name, _)| {
        !source.schedules().iter().any(|info| info.params.iter().any(|(known, _)| known == name))
    }) {
        return Err(Failure::unusable(format!("no schedule of {} has a parameter `{name}`", args.target)));
    }
    Ok(sweeps)
}
