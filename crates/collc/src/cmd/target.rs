//! What the first argument of a command names: a file, or a schedule of the library.

use crate::failure::Failure;
use crate::{output, render};
use coll::{Bundle, Source, library};
use coll_base::Diagnostic;
use coll_sema::ScheduleInfo;
use std::path::Path;

/// True if the argument names a file rather than a schedule of the library.
pub(crate) fn names_a_file(target: &str) -> bool {
    Path::new(target).exists() || target.contains(['/', '\\']) || target.ends_with(".coll")
}

/// Opens a schedule file, a bundle, or a schedule of the library. What is wrong with it is in its diagnostics.
pub(crate) fn open(target: &str) -> Result<Source, Failure> {
    if names_a_file(target) {
        let text = coll::read_text(Path::new(target))?;
        if !Bundle::is_bundle(&text) {
            return Ok(Source::from_text(target, text));
        }
        let bundle = Bundle::from_json(&text);
        return match bundle {
            Ok(bundle) => Ok(bundle.source()),
            Err(error) => Err(Failure::unusable(format!("`{target}`: {error}"))),
        };
    }
    let (operation, algorithm) = match target.split_once('.') {
        Some((operation, algorithm)) => (operation, Some(algorithm)),
        None => (target, None),
    };
    let Some(operation) = coll::canonical_operation(operation) else {
        return Err(Failure::unusable(format!("there is no file `{target}`, and no operation of that name"))
            .help(format!(
                "operations are {}; `collc list` shows their schedules",
                coll::OPERATIONS.join(", ")
            )));
    };
    let algorithms = || library::entries().filter(|entry| entry.collective == operation).map(|e| e.schedule);
    let listed = || algorithms().collect::<Vec<_>>().join(", ");
    match algorithm {
        None => Err(Failure::unusable(format!("`{operation}` is an operation with several schedules")).help(
            format!("name one, such as `{operation}.{}`: {}", algorithms().next().unwrap_or("…"), listed()),
        )),
        Some(algorithm) => Source::builtin(operation, algorithm).ok_or_else(|| {
            Failure::unusable(format!("`{operation}` has no schedule `{algorithm}`"))
                .help(format!("it has {}", listed()))
        }),
    }
}

/// The schedules that a command is to look at: the named one, or all.
pub(crate) fn chosen(source: &Source, name: Option<&str>) -> Result<Vec<usize>, Failure> {
    let schedules = source.schedules();
    let listed = || schedules.iter().map(|s| format!("`{}`", s.name)).collect::<Vec<_>>().join(", ");
    match name {
        None => Ok((0..schedules.len()).collect()),
        Some(name) => match schedules.iter().position(|schedule| schedule.name == name) {
            Some(at) => Ok(vec![at]),
            None => Err(Failure::unusable(format!(
                "{} declares no schedule `{name}`",
                source.map.name(source.main)
            ))
            .help(format!("it declares {}", listed()))),
        },
    }
}

/// The one schedule that a command is to take.
pub(crate) fn the_one(source: &Source, name: Option<&str>) -> Result<usize, Failure> {
    match chosen(source, name)?[..] {
        [one] => Ok(one),
        // A file that declares helpers before its main schedule is used by its last one only if told so.
        _ => {
            let names =
                source.schedules().iter().map(|s| format!("`{}`", s.name)).collect::<Vec<_>>().join(", ");
            Err(Failure::unusable(format!(
                "{} declares {} schedules: {names}",
                source.map.name(source.main),
                source.schedules().len()
            ))
            .help("name one with `--schedule NAME`"))
        }
    }
}

/// Parameters that the schedule does not have are a mistake worth stopping for.
pub(crate) fn check_parameters(schedule: &ScheduleInfo, define: &[(String, i64)]) -> Result<(), Failure> {
    for (at, (name, _)) in define.iter().enumerate() {
        if !schedule.params.iter().any(|(known, _)| known == name) {
            let listed = |known: &String| if schedule.lists.contains(known) { ", …" } else { "" };
            let known = schedule.params.iter();
            let known = known.map(|(known, value)| format!("`{known} = {value}{}`", listed(known)));
            let known = known.collect::<Vec<_>>().join(", ");
            let failure =
                Failure::unusable(format!("schedule `{}` has no parameter `{name}`", schedule.name));
            return Err(failure.help(if known.is_empty() {
                "it has none".into()
            } else {
                format!("it has {known}")
            }));
        }
        if !schedule.lists.contains(name) && define[..at].iter().any(|(earlier, _)| earlier == name) {
            return Err(Failure::unusable(format!("parameter `{name}` is set twice"))
                .help("it is one number, and not a list of several"));
        }
    }
    Ok(())
}

/// Leaves a source with what concerns the schedule that is named. One that is not there is told of elsewhere.
pub(crate) fn restrict(source: &mut Source, name: Option<&str>) {
    let Some(name) = name else { return };
    let Some(at) = source.schedules().iter().position(|schedule| schedule.name == name) else { return };
    let Source { module, diagnostics, .. } = source;
    diagnostics.retain(|diagnostic| module.concerns(at, diagnostic));
}

/// Shows what is wrong with a source on standard error. A text in which nothing could be read is unusable input.
pub(crate) fn refuse_if_broken(source: &Source) -> Result<(), Failure> {
    if !source.has_errors() {
        return Ok(());
    }
    show(source, &source.diagnostics);
    Err(broken(source))
}

/// The failure that a source with errors ends in.
pub(crate) fn broken(source: &Source) -> Failure {
    let errors = source.diagnostics.iter().filter(|d| d.is_error()).count();
    let name = source.map.name(source.main);
    let message = format!("{name} has {errors} error{}", if errors == 1 { "" } else { "s" });
    if is_no_schedule_file(source) { Failure::unusable(message) } else { Failure::wrong(message) }
}

/// True if it is no schedule file with a mistake, but no schedule file at all: it never says `schedule`, or is beyond
/// what the parser takes.
pub(crate) fn is_no_schedule_file(source: &Source) -> bool {
    let beyond = source.diagnostics.iter().any(|diagnostic| diagnostic.code == coll_syntax::codes::TOO_MUCH);
    source.has_errors() && (beyond || !source.map.text(source.main).contains("schedule"))
}

/// Diagnostics on standard error.
pub(crate) fn show(source: &Source, diagnostics: &[Diagnostic]) {
    output::complain_raw(&render::render(&source.map, diagnostics, output::colours()));
}

/// What is said of a schedule that is not right.
pub(crate) const WRONG: &str = "is wrong";

/// The verdict on a schedule with such diagnostics: what is too large has not been judged.
pub(crate) fn found(diagnostics: &[Diagnostic]) -> &'static str {
    let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error());
    if errors.all(|error| error.code == coll_sema::codes::TOO_LARGE) { "is too large" } else { WRONG }
}
