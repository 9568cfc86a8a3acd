//! Topologies from texts of every kind, the ways in them, and the placement of ranks on them.

mod files;
mod generators;
mod imports;
mod manual;
mod pictures;
mod placement;
mod ways;

use coll_topo::{Kind, Loaded, Network, Topology, load};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The topology of a text without faults.
#[track_caller]
fn topology(text: &str) -> Topology {
    let loaded = load("test", text);
    assert!(loaded.topology.is_some(), "{}", loaded.first_error());
    loaded.topology.expect("it was looked at")
}

#[track_caller]
fn network(text: &str) -> Network {
    topology(text).network()
}

/// The one fault of a text: its code, and one line.
#[track_caller]
fn fault(text: &str) -> (&'static str, String) {
    let loaded = load("test", text);
    assert!(loaded.topology.is_none(), "it is taken: {text}");
    let faults: Vec<_> = loaded.diagnostics.iter().filter(|told| told.is_error()).collect();
    assert!(!faults.is_empty(), "{text}");
    (faults[0].code.0, loaded.first_error())
}

/// It is refused with that code, at that place, and with that word.
#[track_caller]
fn refused(text: &str, code: &str, place: &str, word: &str) {
    let (found, line) = fault(text);
    assert_eq!(found, code, "{line}");
    assert!(line.starts_with(&format!("test:{place}: ")), "not at {place}: {line}");
    assert!(line.contains(word), "no `{word}`: {line}");
    assert!(!line.contains('\n'), "{line}");
}

/// Devices, NICs, switches, machines, wires.
fn counts(topology: &Topology) -> [usize; 5] {
    let kinds = [Kind::Device, Kind::Nic, Kind::Switch].map(|kind| topology.count(kind));
    [kinds[0], kinds[1], kinds[2], topology.machines.len(), topology.wires.len()]
}

/// Warnings as lines: `line: message`.
fn warnings(loaded: &Loaded) -> Vec<String> {
    let line = |told: &coll_base::Diagnostic| {
        let span = told.primary.as_ref().expect("it has a place").span;
        format!("{}: {}", loaded.sources.line_of(span), told.message)
    };
    loaded.diagnostics.iter().map(line).collect()
}

/// The names of the links of a way.
fn way(network: &Network, from: u32, to: u32) -> Vec<String> {
    let mut way = Vec::new();
    network.routes.route(from, to, &mut way);
    way.iter().map(|&link| network.links[link as usize].name.clone()).collect()
}
