//! `collc env`: every setting that collc takes from outside its options, with its value and where that comes from. There are
//! no files of settings: what is not an option is a variable of the environment, or the default.

use crate::args::{EnvArgs, Format};
use crate::environment;
use crate::failure::Failure;
use crate::output;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Setting {
    name: &'static str,
    value: Option<String>,
    source: &'static str,
    what: &'static str,
}

/// Prints them.
pub(crate) fn run(args: &EnvArgs) -> Result<ExitCode, Failure> {
    let setting = |(name, value, what): (&'static str, Option<String>, &'static str)| Setting {
        name,
        source: if value.is_some() { "environment" } else { "default" },
        value,
        what,
    };
    let settings: Vec<Setting> = environment::all().into_iter().map(setting).collect();
    output::print(&match args.format {
        Format::Json => serde_json::to_string_pretty(&settings).expect("invariant: plain data") + "\n",
        Format::Text => text(&settings),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn text(settings: &[Setting]) -> String {
    let mut text = String::new();
    for Setting { name, value, source, what } in settings {
        let value = value.as_ref().map_or("not set".to_string(), |value| format!("{value}  ({source})"));
        text += &format!("{name:<20} {value}\n                     {what}\n");
    }
    text + "\nthere are no files of settings; options go before variables\n"
}
