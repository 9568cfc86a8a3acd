//! `collc env`: what collc finds around it: its settings and where each comes from, the machine, and devices.
//!
//! There is no file of settings: they are options and variables, and all variables are listed here, set or not.

mod gpu;
mod machine;

use crate::args::{EnvArgs, Format};
use crate::environment;
use crate::failure::Failure;
use crate::output;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Document {
    version: &'static str,
    settings: Vec<Setting>,
    machine: machine::Machine,
    gpu: gpu::Found,
}

/// A variable that collc reads.
#[derive(Serialize)]
struct Setting {
    name: &'static str,
    /// What it is set to; a secret is not shown.
    value: Option<String>,
    /// `environment`, or `default` where it is not set.
    source: &'static str,
    meaning: &'static str,
}

/// Prints what is found.
pub(crate) fn run(args: &EnvArgs) -> Result<ExitCode, Failure> {
    let document = Document {
        version: env!("CARGO_PKG_VERSION"),
        settings: settings(),
        machine: machine::Machine::found(),
        gpu: gpu::Found::here(),
    };
    match args.format {
        Format::Json => {
            let text = serde_json::to_string_pretty(&document).expect("invariant: plain data");
            output::print(&(text + "\n"))?;
        }
        Format::Text => output::print(&text(&document))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// `15.3 GiB`
fn size(bytes: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} B"),
    }
}

fn settings() -> Vec<Setting> {
    let setting = |(name, meaning): (&'static str, &'static str)| {
        let value = std::env::var_os(name).map(|value| match environment::is_secret(name) {
            true => "(not shown)".to_string(),
            false => value.to_string_lossy().into_owned(),
        });
        let source = if value.is_some() { "environment" } else { "default" };
        Setting { name, value, source, meaning }
    };
    environment::variables().map(setting).collect()
}

fn text(document: &Document) -> String {
    let mut text =
        format!("collc {}\n\nsettings (variables; options say more with each command)\n", document.version);
    for Setting { name, value, source, meaning } in &document.settings {
        let value = match value {
            Some(value) => format!("`{value}`, from the {source}"),
            None => "not set".to_string(),
        };
        text += &format!("  {name:<19} {value}\n      {meaning}\n");
    }
    text += "\nmachine\n";
    for (what, value) in document.machine.lines() {
        text += &format!("  {what:<26} {value}\n");
    }
    text += "\nGPUs\n";
    for line in document.gpu.lines() {
        text += &format!("  {line}\n");
    }
    text
}
