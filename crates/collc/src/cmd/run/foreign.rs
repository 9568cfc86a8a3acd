//! `collc run FILE` where the file is a schedule of another tool.

use crate::args::RunArgs;
use crate::cmd::foreign;
use crate::failure::Failure;
use crate::output;
use coll::foreign::Examined;
use coll_plan::Plan;

/// Its plan, if it serves what is asked. What its own runtime would say to the call is told and does not keep it.
pub(super) fn plan(args: &RunArgs, examined: Examined, ranks: Option<u32>) -> Result<Plan, Failure> {
    let schedule = foreign::right(&args.target, examined)?;
    let world = schedule.plan.world();
    if let Some(ranks) = ranks.filter(|&ranks| ranks != world) {
        return Err(Failure::unusable(format!(
            "`{}` is a schedule for {world} ranks, not {ranks}",
            args.target
        ))
        .help(format!("run it with `--ranks {world}`, or without `--ranks`")));
    }
    if !args.choice.define.is_empty() || args.choice.schedule.is_some() {
        return Err(Failure::unusable("`-D` and `--schedule` are for schedules in the coll language"));
    }
    super::prepare::refuse_passes(args)?;
    for remark in foreign::remarks(&args.target, &schedule, (args.bytes.0, args.dtype), args.in_place) {
        output::complain_raw(&format!("note: {remark}\n"));
    }
    Ok(schedule.plan)
}
