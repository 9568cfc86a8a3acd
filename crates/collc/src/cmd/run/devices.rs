//! `--transport cuda`: ranks as streams over the devices there are, all in this process, or with `--processes` each in one of
//! its own. What they give is judged as on any other transport.

pub(crate) mod apart;
pub(crate) mod machines;
mod processes;
mod trial;

pub(super) use processes::rank;

use crate::cmd::place::shown;
use crate::failure::Failure;
use crate::output;
use coll::trial::{RankReport, Settings, placements};
use coll_exec::Placement;
use coll_gpu::{BufferPointers, Call, Group, Prepared, StreamHandle};
use coll_kernel::Reducer;
use coll_plan::Plan;
use indicatif::ProgressBar;
use std::time::Duration;
use trial::{Ready, Trial};

/// `--processes` where it says nothing.
pub(crate) fn no_processes(transport: &str) -> Failure {
    Failure::unusable(format!("`--processes` is for ranks on devices, and these go by {transport}"))
        .help("give `--transport cuda`, or leave it out: ranks by tcp and shm are processes anyway")
}

/// The device of each rank: that which a topology has it on, if this machine has so many, else they are dealt out in equal runs.
/// With it, if they are dealt out though a topology says where they are, how many devices there are.
pub(crate) fn dealt(world: u32, order: Option<&[u32]>) -> Result<(Vec<u32>, Option<u64>), Failure> {
    let found = coll_gpu::probe().map_err(|error| Failure::unusable(error.to_string()))?;
    let count = found.devices.len() as u64;
    let device = |rank: u32| (u64::from(rank) * count.min(world.into()) / u64::from(world)) as u32;
    let devices = (0..world).map(device).collect();
    Ok(match order {
        Some(order) if order.iter().all(|&device| u64::from(device) < count) => (order.to_vec(), None),
        Some(_) => (devices, Some(count)),
        None => (devices, None),
    })
}

/// The same, and it is said if a topology has ranks on more devices than there are.
pub(crate) fn told(world: u32, order: Option<&[u32]>) -> Result<Vec<u32>, Failure> {
    let (devices, too_few) = dealt(world, order)?;
    if let Some(count) = too_few {
        output::complain_raw(&format!(
            "note: the topology has ranks on more devices than the {count} that this machine has, so they are dealt out in equal runs: \
             {}\n",
            shown(&devices)
        ));
    }
    Ok(devices)
}

/// Where a topology has ranks. Without one a plan's own order is only told: it need not be of this machine.
pub(super) fn order<'p>(settings: &Settings, plan: &'p Plan) -> Option<&'p [u32]> {
    let stands = plan.placement.as_ref().filter(|_| !settings.machines.is_empty());
    stands.map(|placement| &placement.order[..])
}

/// What the settings ask for of a plan.
fn call<'a>(
    settings: &'a Settings,
    plan: &'a Plan,
    reducer: &'a Reducer,
    placements: &'a [Placement],
) -> Call<'a> {
    Call {
        plan,
        counts: &settings.counts,
        dtype: settings.dtype,
        reducer: settings.reduces.then_some(reducer),
        placements,
        spreads: &[],
    }
}

/// The ranks on their devices.
pub(crate) fn group(world: u32, order: Option<&[u32]>) -> Result<Group, Failure> {
    Group::new(&told(world, order)?).map_err(|error| Failure::unusable(error.to_string()))
}

/// Runs all iterations, all ranks in this process, and gives a report for each.
pub(super) fn run(settings: &Settings, plan: &Plan, bar: &ProgressBar) -> Result<Vec<RankReport>, Failure> {
    let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
    let group = group(plan.world(), order(settings, plan))?;
    let reducer = settings.operator.reducer(settings.dtype).map_err(|error| unusable(&error))?;
    let placements = placements(&plan.contract, settings.in_place);
    let call = call(settings, plan, &reducer, &placements);
    let prepared = group.prepare(&call).map_err(|error| unusable(&error))?;
    let device = |rank| group.device(rank).expect("invariant: the group has every rank of the plan").clone();
    let mut trial = Trial::new(settings, plan, 0..plan.world(), device)?;
    let mut together = Together { prepared, buffers: trial.pointers(), streams: trial.streams() };
    let reports = trial.run(&mut together, &mut |done| bar.set_position(u64::from(done)));
    bar.finish_and_clear();
    reports
}

/// All ranks, ready.
struct Together {
    prepared: Prepared,
    buffers: Vec<Vec<BufferPointers>>,
    streams: Vec<StreamHandle>,
}

impl Ready for Together {
    fn meet(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn run(&mut self, limit: Duration) -> Result<(), Failure> {
        let ran = self.prepared.launch(&self.buffers, &self.streams).and_then(|()| self.prepared.wait(limit));
        ran.map_err(|error| Failure::wrong(error.to_string()))
    }
}
