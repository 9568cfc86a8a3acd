//! `collc topo check`: what is wrong with a topology, for people or for tools.

use crate::args::{Format, TopoCheckArgs};
use crate::failure::Failure;
use crate::output;
use crate::render::{self, JsonDiagnostic};
use coll_topo::{Kind, Loaded};
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Document {
    ok: bool,
    devices: usize,
    nics: usize,
    switches: usize,
    /// Machines.
    nodes: usize,
    links: usize,
    diagnostics: Vec<JsonDiagnostic>,
}

/// Exit code 0 if it can be used, else 2.
pub(super) fn run(args: &TopoCheckArgs) -> Result<ExitCode, Failure> {
    let loaded = match super::load(&args.text.topology) {
        Ok(loaded) => loaded,
        Err(failure) if args.format == Format::Json => {
            output::print(&unreadable(&args.text.topology, failure.message()))?;
            return Ok(ExitCode::from(2));
        }
        Err(failure) => return Err(failure),
    };
    let document = document(&loaded);
    match args.format {
        Format::Json => {
            let text = serde_json::to_string_pretty(&document).expect("invariant: a document is plain data");
            output::print(&(text + "\n"))?;
        }
        Format::Text => {
            output::complain_raw(&render::render(&loaded.sources, &loaded.diagnostics, output::colours()));
            if document.ok {
                output::print(&line(&args.text.topology, &loaded, &document))?;
            }
        }
    }
    Ok(if document.ok { ExitCode::SUCCESS } else { ExitCode::from(2) })
}

/// What cannot even be read has a document too.
fn unreadable(name: &str, message: &str) -> String {
    let diagnostics = serde_json::json!([{
        "code": null, "severity": "error", "message": message, "file": name, "line": null, "column": null, "label": "",
        "expected": null, "found": null, "notes": [], "help": null,
    }]);
    let document = serde_json::json!({
        "ok": false, "devices": 0, "nics": 0, "switches": 0, "nodes": 0, "links": 0, "diagnostics": diagnostics,
    });
    serde_json::to_string_pretty(&document).expect("invariant: a document is plain data") + "\n"
}

fn document(loaded: &Loaded) -> Document {
    let count = |kind| loaded.topology.as_ref().map_or(0, |topology| topology.count(kind));
    let of = |size: fn(&coll_topo::Topology) -> usize| loaded.topology.as_ref().map_or(0, size);
    Document {
        ok: loaded.topology.is_some(),
        devices: count(Kind::Device),
        nics: count(Kind::Nic),
        switches: count(Kind::Switch),
        nodes: of(|topology| topology.machines.len()),
        links: of(|topology| topology.wires.len()),
        diagnostics: loaded
            .diagnostics
            .iter()
            .map(|told| JsonDiagnostic::new(&loaded.sources, told))
            .collect(),
    }
}

fn line(name: &str, loaded: &Loaded, document: &Document) -> String {
    let Document { devices, nics, switches, nodes, links, .. } = document;
    let format = loaded.format.name();
    format!(
        "{name} is right: {format}; machines {nodes}, devices {devices}, NICs {nics}, switches {switches}, links {links}\n"
    )
}
