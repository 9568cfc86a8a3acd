//! A trial whose ranks are threads of this process.

use crate::trial::rank::run_rank_of;
use crate::trial::{Milestone, RankReport, Settings, TrialError};
use coll_plan::{Plan, Proof};
use std::thread;

/// Runs all ranks of a whole plan as threads, and gives each rank's end, in order of rank. `hear` is told how each goes.
pub fn run_threads(
    settings: &Settings,
    plan: &Plan,
    hear: impl Fn(u32, Milestone) + Sync,
) -> Result<Vec<Result<Vec<RankReport>, TrialError>>, std::io::Error> {
    let Settings { ranks_per_host, machines, .. } = settings;
    let options = coll_shm::Options {
        ranks_per_host: *ranks_per_host,
        machines: machines.clone(),
        ..Default::default()
    };
    let memories = coll_shm::threads::world_with(plan.world(), &options)?;
    let run = |(rank, memory)| {
        let settings = Settings { rank, ..settings.clone() };
        let mut part = plan.slice(rank).expect("invariant: a whole plan has every rank");
        // A plan that was written by hand names no proof; it was proved when it was read, and its ranks compare the whole.
        part.proof = Some(Proof::Whole(settings.plan_hash.clone()));
        run_rank_of(&settings, &part, Some(memory), &mut |milestone| hear(rank, milestone))
    };
    let run = &run;
    Ok(thread::scope(|scope| {
        let ranks: Vec<_> = (0..).zip(memories).map(|place| scope.spawn(move || run(place))).collect();
        let join = |(rank, thread): (u32, thread::ScopedJoinHandle<'_, _>)| {
            let panicked = |_| Err(TrialError::Meet { rank, what: "it panicked".to_string() });
            thread.join().unwrap_or_else(panicked)
        };
        (0..).zip(ranks).map(join).collect()
    }))
}
