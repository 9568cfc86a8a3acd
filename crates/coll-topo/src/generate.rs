//! Topologies by a word: `ring:8`, `torus:4x4`, `dgx-h100:4`, with options behind commas: `ring:8,bw=50GB/s,lat=2us`.
//!
//! A generator makes the description that one could have written as a file, so it can be written out and changed.

mod machines;
mod networks;
mod words;

use crate::description::Description;
use coll_base::{Diagnostic, FileId, Span};
use words::Words;

/// Each with the form of its text, and what it makes.
pub const GENERATORS: [(&str, &str, &str); 10] = [
    ("ring", "ring:N", "N hosts, each joined with the next"),
    ("torus", "torus:AxB or torus:AxBxC", "a grid whose ends are joined"),
    ("mesh", "mesh:AxB or mesh:AxBxC", "a grid"),
    ("full", "full:N", "N hosts, each joined with each"),
    ("switch", "switch:N", "N hosts on one switch"),
    (
        "fat-tree",
        "fat-tree:k=K or fat-tree:LxH",
        "three layers of switches with K ports, K³/4 hosts; or L leaves of H hosts, and H spines (`spines=S`)",
    ),
    (
        "dragonfly",
        "dragonfly:PxAxH",
        "AH + 1 groups of A routers, each with P hosts and H links to other groups",
    ),
    ("nvswitch", "nvswitch:N", "one machine of N GPUs on NVSwitch, as in an HGX H100"),
    ("dgx-h100", "dgx-h100:M", "M machines of 8 H100 GPUs on NVSwitch, with 8 NICs of 400 Gb/s on 8 rails"),
    ("dgx-a100", "dgx-a100:M", "M machines of 8 A100 GPUs on NVSwitch, with 8 NICs of 200 Gb/s on 8 rails"),
];

/// The most devices that a generator makes.
pub const DEVICES_MAX: u64 = 200_000;

/// Whether a text is meant as a generator's: a generator's name and a colon.
pub fn is_generator(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or("").trim();
    text.contains(':') && GENERATORS.iter().any(|(known, ..)| *known == name)
}

/// Makes what a text asks for.
pub(crate) fn generate(file: FileId, text: &str) -> Result<Description, Vec<Diagnostic>> {
    let span = Span::new(file, 0, text.len());
    let mut words = Words::new(text, span).map_err(|fault| vec![fault])?;
    let made = match words.name.as_str() {
        "ring" => networks::ring(&mut words),
        "torus" => networks::grid(&mut words, true),
        "mesh" => networks::grid(&mut words, false),
        "full" => networks::full(&mut words),
        "switch" => networks::switch(&mut words),
        "fat-tree" => networks::fat_tree(&mut words),
        "dragonfly" => networks::dragonfly(&mut words),
        "nvswitch" => machines::nvswitch(&mut words),
        "dgx-h100" => machines::dgx(&mut words, &machines::H100),
        _ => machines::dgx(&mut words, &machines::A100),
    };
    let mut description = made.map_err(|fault| vec![fault])?;
    words.device_figures(&mut description.figures).map_err(|fault| vec![fault])?;
    words.end().map_err(|fault| vec![fault])?;
    description.name = Some(text.trim().to_string());
    Ok(description)
}
