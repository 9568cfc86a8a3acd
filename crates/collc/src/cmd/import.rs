//! `collc import`: a schedule of another tool becomes a proved plan.

use crate::args::ImportArgs;
use crate::cmd::foreign;
use crate::cmd::sim::ground;
use crate::failure::Failure;
use crate::output;
use std::process::ExitCode;

/// Imports one file.
pub(crate) fn run(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let name = args.file.display().to_string();
    let examined = match foreign::traces(&name)? {
        Some(examined) => Some(examined),
        None => foreign::of_bytes(&name, coll::read_bytes(&args.file, 1 << 30)?, args.root)?,
    };
    let Some(examined) = examined else {
        return Err(Failure::unusable(format!("`{name}` is no schedule of another tool"))
            .help("MSCCL XML begins with `<algo`, MSCCL++ JSON is an object with `gpus`, GOAL begins with `num_ranks`, Chakra traces are `NAME.0.et` and so on"));
    };
    let schedule = foreign::right(&name, examined)?;
    if let Some(topology) = &args.topology {
        foreign::shape::tell(&name, &schedule.plan, &ground::network(topology)?)?;
    }
    match &args.output {
        None => output::print(&coll_plan::to_text(&schedule.plan))?,
        Some(path) => {
            let is_source = std::fs::canonicalize(path).ok() == std::fs::canonicalize(&args.file).ok();
            if is_source && path.exists() {
                return Err(Failure::unusable(format!(
                    "`-o {}` would overwrite the file itself",
                    path.display()
                )));
            }
            output::write_file(path, &coll_plan::to_bytes(&schedule.plan))?;
            let text = foreign::summary(&schedule);
            output::print(&format!("{text}wrote {}\n", path.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
