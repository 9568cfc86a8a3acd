//! `collc topo draw`: a picture of a topology.

use crate::args::TopoDrawArgs;
use crate::failure::Failure;
use crate::output;
use std::process::ExitCode;

/// Draws by the ending of the file's name.
pub(super) fn run(args: &TopoDrawArgs) -> Result<ExitCode, Failure> {
    let path = &args.output;
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let draw = match ending.as_deref() {
        Some("svg") => coll_topo::svg,
        Some("dot" | "gv") => coll_topo::dot,
        _ => {
            return Err(Failure::unusable(format!("`{}` is no picture that can be written", path.display()))
                .help("name it `.svg`, or `.dot` for Graphviz"));
        }
    };
    let topology = match super::topology(&args.text.topology)? {
        Ok((topology, _)) => topology,
        Err(code) => return Ok(code),
    };
    let text = draw(&topology)
        .map_err(|error| Failure::unusable(error.to_string()).help("draw a smaller one of the same shape"))?;
    output::write_file(path, text.as_bytes())?;
    output::print(&format!("written to {}\n", path.display()))?;
    Ok(ExitCode::SUCCESS)
}
