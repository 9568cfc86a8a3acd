//! `collc topo import`: a topology of any kind as a file that can be changed.

use crate::args::TopoImportArgs;
use crate::failure::Failure;
use crate::output;
use coll_topo::{Description, Format, Kind, Topology};
use std::process::ExitCode;

/// Writes the file; what was not used is told on standard error.
pub(super) fn run(args: &TopoImportArgs) -> Result<ExitCode, Failure> {
    let name = &args.text.topology;
    let (topology, loaded) = match super::topology(name)? {
        Ok(found) => found,
        Err(code) => return Ok(code),
    };
    let Some(mut description) = loaded.description else { return Ok(ExitCode::from(2)) };
    let mut comments = vec![format!("Imported from {name}: {}.", loaded.format.name())];
    let warnings = loaded.diagnostics.len();
    if warnings > 0 {
        comments.push("Not used, or assumed:".to_string());
    }
    for told in &loaded.diagnostics {
        let line = told.primary.as_ref().map_or(0, |label| loaded.sources.line_of(label.span));
        let more = told.notes.iter().map(|note| format!(" ({note})")).collect::<String>();
        comments.push(format!("- line {line}: {}{more}", told.message));
    }
    let mut topology = topology;
    if let Some(machines) = args.machines {
        repeat(&mut description, loaded.format, machines)?;
        comments[0] += &format!(" {machines} machines of the one that it describes.");
    }
    let text = coll_topo::write(&description, &comments);
    if args.machines.is_some() {
        let again = coll_topo::load(name, &text);
        let fault = again.first_error();
        topology = again.topology.ok_or_else(|| {
            Failure::unusable(format!("so many machines make no topology: {}", fault))
                .help("machines are joined by their NICs; without NICs there is nothing to join them by")
        })?;
    }
    match &args.output {
        None => output::print(&text)?,
        Some(path) => {
            output::write_file(path, text.as_bytes())?;
            output::print(&format!("written to {}: {}\n", path.display(), summary(&topology, warnings)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// More of the one machine that an imported file describes.
fn repeat(description: &mut Description, format: Format, machines: u32) -> Result<(), Failure> {
    match (&mut description.machines[..], format) {
        ([machine], Format::NcclXml | Format::SmiMatrix) => machine.count = Some(machines),
        _ => {
            return Err(Failure::unusable(format!("`--machines` does not apply to {}", format.name()))
                .help("change `count` in the file, or the generator's numbers"));
        }
    }
    Ok(())
}

fn summary(topology: &Topology, warnings: usize) -> String {
    let (devices, nics) = (topology.count(Kind::Device), topology.count(Kind::Nic));
    let told = match warnings {
        0 => "everything was used".to_string(),
        1 => "one warning tells what was not used or assumed".to_string(),
        count => format!("{count} warnings tell what was not used or assumed"),
    };
    format!("{devices} devices, {nics} NICs, {} links; {told}", topology.wires.len())
}
