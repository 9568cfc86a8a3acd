//! `collc run FILE` where the file is a schedule of another tool: other ranks and calls that are in place or not are refused by
//! the limit's name, unless the user says that it is to be ignored. A size that the file is not for is told and run: its limits
//! are for those who choose among files, and here one is named.

use super::counts;
use super::prepare::{BYTES, Call};
use crate::args::RunArgs;
use crate::cmd::foreign;
use crate::failure::Failure;
use crate::output;
use coll::foreign::{Examined, ForeignSchedule};
use coll_plan::Plan;

/// Its plan, if it serves what is asked, and the call that it is to serve.
pub(super) fn plan(args: &RunArgs, examined: Examined, ranks: Option<u32>) -> Result<(Plan, Call), Failure> {
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
    let call = call(args, &schedule)?;
    for remark in remarks(args, &schedule, &call) {
        output::complain_raw(&format!("note: {remark}\n"));
    }
    Ok((schedule.plan, call))
}

/// The call that is asked for, as far as it is; where it is not, one that the file is for.
fn call(args: &RunArgs, schedule: &ForeignSchedule) -> Result<Call, Failure> {
    let (limits, size_bytes) = (&schedule.limits, args.dtype.size_bytes());
    if let Some(counts) = schedule.counts(size_bytes) {
        return own_sizes(args, &schedule.plan, counts);
    }
    let counted = counts::given(args)?.and_then(|rows| rows.elements());
    let bytes = match args.bytes {
        Some(bytes) => bytes.0,
        None if counted.is_some() => counted.unwrap_or(0).saturating_mul(size_bytes),
        None if args.ignore_limits => BYTES,
        // Whole elements, rounded such that they stay within the limits.
        None => limits.nearest(BYTES).map_or(BYTES, |bytes| match bytes > BYTES {
            true => bytes.next_multiple_of(size_bytes),
            false => bytes / size_bytes * size_bytes,
        }),
    };
    let in_place = match limits.only_in_place() {
        Some(true) if !args.ignore_limits => true,
        _ => args.in_place,
    };
    let call = Call { bytes, in_place, counts: None };
    let reasons = limits.exclude_placement(in_place);
    if reasons.is_empty() || args.ignore_limits {
        return Ok(call);
    }
    let message = format!("`{}` is not for this call: {}", args.target, reasons.join("; "));
    Err(Failure::unusable(message).help(format!(
        "it is for {}; ask for such a call, or run it all the same with `--ignore-limits`",
        limits.words()
    )))
}

/// The call of a file that says its sizes: that of its largest rank.
fn own_sizes(args: &RunArgs, plan: &Plan, counts: Vec<u64>) -> Result<Call, Failure> {
    let given = [
        ("--bytes", args.bytes.is_some()),
        ("--counts", args.counts.is_some()),
        ("--in-place", args.in_place),
        ("--ignore-limits", args.ignore_limits),
    ];
    if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
        let message = format!("`{name}` is not for `{}`, which says what is sent", args.target);
        return Err(Failure::unusable(message)
            .help("leave it out; a plan that is imported of the file takes other sizes"));
    }
    let most = (0..plan.world()).map(|rank| plan.contract.elements(rank, 0, &counts)).max().unwrap_or(0);
    Ok(Call { bytes: most.saturating_mul(args.dtype.size_bytes()), in_place: false, counts: Some(counts) })
}

/// What is to be known of the run: what its own runtime would say to it, what was assumed, and what was put in.
fn remarks(args: &RunArgs, schedule: &ForeignSchedule, call: &Call) -> Vec<String> {
    let (limits, size_bytes) = (&schedule.limits, args.dtype.size_bytes());
    let elements = call.bytes / size_bytes;
    if let Some(sizes) = &schedule.sizes_bytes {
        let rounded = sizes.iter().any(|size| size % size_bytes != 0);
        let remark = format!(
            "sizes of `{}` are rounded up to whole elements of {}; with `--dtype u8` they are what they are",
            args.target, args.dtype
        );
        return rounded.then_some(remark).into_iter().collect();
    }
    let mut remarks = Vec::new();
    let told = |reason, why| format!("`{}` is not for this call: {reason}; it runs, as {why}", args.target);
    let of_size = limits.exclude_size(elements, size_bytes).into_iter();
    remarks.extend(of_size.map(|reason| told(reason, "it was asked for by its name")));
    let of_placement = limits.exclude_placement(call.in_place).into_iter();
    remarks.extend(of_placement.map(|reason| told(reason, "`--ignore-limits` says")));
    if call.in_place && !args.in_place {
        remarks.push(format!(
            "`{}` is for calls in place alone ({}), and so it runs in place",
            args.target,
            limits.why_only_in_place()
        ));
    }
    if args.bytes.is_none() && args.counts.is_none() && call.bytes != BYTES {
        remarks.push(format!("{} B, as `{}` is for {}", call.bytes, args.target, limits.words()));
    }
    if args.counts.is_none() {
        remarks.extend(limits.uneven(elements, size_bytes).map(|reason| {
            format!(
                "{reason}; the runtime that `{}` is for would pass it over, here chunks differ by an element",
                args.target
            )
        }));
    }
    remarks.extend(foreign::copies(schedule));
    remarks
}
