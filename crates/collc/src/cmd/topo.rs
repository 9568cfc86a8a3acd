//! `collc topo`: topologies, looked at, checked, imported, drawn and measured.
//!
//! Every command that needs a topology takes it as a text of any kind and reads it here: a file (TOML, NCCL's XML, the matrix
//! of `nvidia-smi topo -m`), or a generator's text.

mod check;
mod draw;
mod import;
mod probe;
mod show;

use crate::args::{TopoArgs, TopoCommand};
use crate::failure::Failure;
use crate::output;
use crate::render;
use coll_topo::{Loaded, Topology};
use std::process::ExitCode;

pub(crate) use probe::rank as probe_rank;

/// Runs one of the commands.
pub(crate) fn run(args: &TopoArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        TopoCommand::Show(args) => show::run(args),
        TopoCommand::Check(args) => check::run(args),
        TopoCommand::Import(args) => import::run(args),
        TopoCommand::Draw(args) => draw::run(args),
        TopoCommand::Probe(args) => probe::run(args),
    }
}

/// Reads a topology, whatever is wrong with it.
pub(crate) fn load(text: &str) -> Result<Loaded, Failure> {
    Ok(coll::load_topology(text)?)
}

/// Reads a topology that must be right. Warnings and errors are told on standard error.
pub(super) fn topology(text: &str) -> Result<Result<(Topology, Loaded), ExitCode>, Failure> {
    let mut loaded = load(text)?;
    output::complain_raw(&render::render(&loaded.sources, &loaded.diagnostics, output::colours()));
    Ok(match loaded.topology.take() {
        Some(topology) => Ok((topology, loaded)),
        None => Err(ExitCode::from(2)),
    })
}
