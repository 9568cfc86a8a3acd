//! `collc explain E0123`: the page of a diagnostic, which is a file of `docs/errors`.

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output;
use std::process::ExitCode;

mod pages {
    include!(concat!(env!("OUT_DIR"), "/pages.rs"));
}

/// Prints one page, or the list of all codes.
pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let Some(code) = &args.code else {
        let titles = pages::PAGES.iter().map(|(_, page)| title(page).to_string() + "\n");
        output::print(&titles.collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    };
    let wanted = code.trim().to_ascii_uppercase();
    match pages::PAGES.iter().find(|(known, _)| *known == wanted) {
        Some((_, page)) => output::print(&readable(page))?,
        None => {
            return Err(Failure::unusable(format!("no diagnostic has the code `{code}`"))
                .help("`collc explain` without a code lists them all"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn title(page: &str) -> &str {
    page.lines().next().unwrap_or("").trim_start_matches("# ")
}

/// The page as plain text: examples indented, the marks that only its test reads left out.
fn readable(page: &str) -> String {
    let mut in_example = false;
    let mut text = String::new();
    for line in page.lines() {
        if line.starts_with("```") {
            in_example = !in_example;
        } else if in_example {
            text += &format!("    {line}\n");
        } else {
            text += &format!("{}\n", line.trim_start_matches("# "));
        }
    }
    text
}
