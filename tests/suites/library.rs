//! The library, one trial for each schedule: it is proved at both levels for 1..=33 ranks and every root, and both proofs
//! find the same of its reductions' order and trees; its head
//! comment names its cost and its source, it is formatted, and it checks at 8 ranks as it stands.

use coll::{Instance, Outcome, Source, library};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let trials = library::entries()
        .map(|entry| Trial::test(format!("{}.{}", entry.collective, entry.schedule), move || check(&entry)));
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

fn check(entry: &library::Entry) -> Result<(), Failed> {
    head_comment(entry)?;
    let source = Source::from_text(entry.file_name(), entry.text);
    if source.has_errors() {
        return Err(format!("{:#?}", source.diagnostics).into());
    }
    let formatted = coll_syntax::format(source.main, entry.text).map_err(|errors| format!("{errors:#?}"))?;
    if formatted != entry.text {
        return Err("it is not formatted: run `collc fmt`".into());
    }
    let schedule = source.schedules().iter().position(|info| info.name == entry.schedule);
    let schedule = schedule.ok_or_else(|| format!("it declares no schedule `{}`", entry.schedule))?;
    let info = &source.schedules()[schedule];
    if info.collective != entry.collective {
        return Err(format!("it is for {}", info.collective).into());
    }
    for n in 1..=33 {
        for root in if info.rooted { 0..n } else { 0..1 } {
            let applies = prove(&source, schedule, n, root)?;
            if n == 8 && !applies {
                return Err("it does not apply to 8 ranks as it stands".into());
            }
        }
    }
    Ok(())
}

/// Schedules that keep operands in rank order, in the program and in the plan, for every count and root.
const ORDERED: [&str; 12] = [
    "allreduce.butterfly",
    "allreduce.one_shot",
    "allreduce.recursive_doubling",
    "allreduce.reduce_broadcast",
    "allreduce.two_shot",
    "exscan.chain",
    "exscan.doubling",
    "reduce.chain",
    "reduce.linear",
    "reduce_scatter.direct",
    "scan.chain",
    "scan.doubling",
];

/// False if a `require` excludes the rank count.
fn prove(source: &Source, schedule: usize, ranks: u32, root: u32) -> Result<bool, Failed> {
    let instance = Instance { ranks, root, params: Vec::new() };
    match coll::prove(source, schedule, &instance, &Default::default()) {
        Outcome::Right(proved) if proved.found[0] != proved.found[1] => Err(format!(
            "n = {ranks}, root = {root}: the program has {:?}, and its plan {:?}",
            proved.found[0], proved.found[1]
        )
        .into()),
        Outcome::Right(proved)
            if !proved.properties.ordered && ORDERED.contains(&proved.plan.name.as_str()) =>
        {
            Err(format!("n = {ranks}, root = {root}: operands are not in rank order").into())
        }
        Outcome::Right(proved) if proved.warnings.is_empty() => Ok(true),
        Outcome::Right(proved) => Err(format!("n = {ranks}, root = {root}: {:#?}", proved.warnings).into()),
        Outcome::DoesNotApply { .. } => Ok(false),
        Outcome::Wrong(diagnostics) => Err(format!("n = {ranks}, root = {root}: {diagnostics:#?}").into()),
    }
}

fn head_comment(entry: &library::Entry) -> Result<(), Failed> {
    let head: Vec<&str> = entry.text.lines().take_while(|line| line.starts_with("//!")).collect();
    if !head.iter().any(|line| line.starts_with("//! Cost:")) {
        return Err("its head comment has no line `Cost: …`".into());
    }
    match head.len() >= 3 {
        true => Ok(()),
        false => Err("its head comment says too little: what it is, its paper, its cost".into()),
    }
}
