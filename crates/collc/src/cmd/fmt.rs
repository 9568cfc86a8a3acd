//! `collc fmt`: one way to write a schedule.

use crate::args::FmtArgs;
use crate::failure::Failure;
use crate::{output, render};
use coll_base::SourceMap;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

/// Formats files in place, standard input to standard output, or with `--check` only says what is not formatted.
pub(crate) fn run(args: &FmtArgs) -> Result<ExitCode, Failure> {
    let mut all_well = true;
    for path in &args.files {
        all_well &= one(path, args.check)?;
    }
    Ok(if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// False if the file does not parse, or with `check` is not formatted.
fn one(path: &Path, check: bool) -> Result<bool, Failure> {
    let is_stdin = path == Path::new("-");
    let text = if is_stdin { read_stdin()? } else { coll::read_text(path)? };
    let mut sources = SourceMap::new();
    let file = sources.add(if is_stdin { "<stdin>".into() } else { path.display().to_string() }, text);
    let formatted = match coll_syntax::format(file, sources.text(file)) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            output::complain_raw(&render::render(&sources, &diagnostics, output::colours()));
            return Ok(false);
        }
    };
    let changed = formatted != sources.text(file);
    if check {
        if changed {
            output::complain(&format!("`{}` is not formatted; run `collc fmt` on it", sources.name(file)));
        }
        return Ok(!changed);
    }
    if is_stdin {
        output::print(&formatted)?;
    } else if changed {
        output::write_file(path, formatted.as_bytes())?;
    }
    Ok(true)
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().read_to_string(&mut text);
    read.map_err(|error| Failure::unusable(format!("cannot read standard input: {error}")))?;
    Ok(text)
}
