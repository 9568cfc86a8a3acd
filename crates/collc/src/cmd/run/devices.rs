//! `--transport cuda`: all ranks as streams over the devices there are, in this process. What they give is judged as on any
//! other transport.

use crate::cmd::place::shown;
use crate::failure::Failure;
use crate::output;
use coll::trial::{
    Inputs, Judge, NoMemory, OperatorCode, RankReport, RunMemory, Settings, Verdict, placements, travels_as,
};
use coll_base::RedOp;
use coll_exec::BufferMemory;
use coll_gpu::{BufferPointers, Call, DeviceBuffer, Group, Prepared, Stream, StreamHandle};
use coll_kernel::Reducer;
use coll_plan::Plan;
use indicatif::ProgressBar;
use std::time::{Duration, Instant};

/// The ranks on their devices: those that a topology has them on, if this machine has so many, else dealt out in equal runs.
pub(crate) fn group(world: u32, order: Option<&[u32]>) -> Result<Group, Failure> {
    let found = coll_gpu::probe().map_err(|error| Failure::unusable(error.to_string()))?;
    let count = found.devices.len() as u64;
    let device = |rank: u32| (u64::from(rank) * count.min(world.into()) / u64::from(world)) as u32;
    let mut devices: Vec<u32> = (0..world).map(device).collect();
    match order {
        Some(order) if order.iter().all(|&device| u64::from(device) < count) => devices = order.to_vec(),
        Some(_) => output::complain_raw(&format!(
            "note: the topology has ranks on more devices than the {count} that this machine has, so they are dealt out in equal runs: \
             {}\n",
            shown(&devices)
        )),
        None => {}
    }
    Group::new(&devices).map_err(|error| Failure::unusable(error.to_string()))
}

/// Runs all iterations, and gives a report for each rank.
pub(super) fn run(settings: &Settings, plan: &Plan, bar: &ProgressBar) -> Result<Vec<RankReport>, Failure> {
    let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
    // Without a topology a plan's own order is only told: it need not be of this machine.
    let stands = plan.placement.as_ref().filter(|_| !settings.machines.is_empty());
    let group = group(plan.world(), stands.map(|placement| &placement.order[..]))?;
    let reducer = settings.operator.reducer(settings.dtype).map_err(|error| unusable(&error))?;
    let reference = settings.operator.reference(settings.dtype, plan).map_err(|error| unusable(&error))?;
    let placements = placements(&plan.contract, settings.in_place);
    let call = Call {
        plan,
        counts: &settings.counts,
        dtype: settings.dtype,
        reducer: settings.reduces.then_some(&reducer),
        placements: &placements,
        spreads: &[],
    };
    let mut trial = Trial {
        settings,
        plan,
        reference,
        prepared: group.prepare(&call).map_err(|error| unusable(&error))?,
        memory: memory(settings, plan)?,
        buffers: Vec::new(),
        streams: Vec::new(),
    };
    trial.allocate(&group)?;
    let reports = trial.run(bar);
    bar.finish_and_clear();
    reports
}

fn memory<'p>(settings: &Settings, plan: &'p Plan) -> Result<Vec<RunMemory<'p>>, Failure> {
    let size = settings.dtype.size_bytes();
    let of = |rank| RunMemory::new(&plan.contract, rank, &settings.counts, size, settings.in_place);
    let all: Result<_, NoMemory> = (0..plan.world()).map(of).collect();
    all.map_err(|NoMemory { bytes }| Failure::unusable(format!("no memory for {bytes} bytes of buffers")))
}

struct Trial<'p> {
    settings: &'p Settings,
    plan: &'p Plan,
    reference: Reducer,
    prepared: Prepared,
    memory: Vec<RunMemory<'p>>,
    /// For each rank and buffer, input and output.
    buffers: Vec<Vec<[DeviceBuffer; 2]>>,
    streams: Vec<Stream>,
}

impl Trial<'_> {
    fn allocate(&mut self, group: &Group) -> Result<(), Failure> {
        let unusable = |error: coll_gpu::GpuError| Failure::unusable(error.to_string());
        for (rank, memory) in (0u32..).zip(&mut self.memory) {
            let device = group.device(rank).expect("invariant: the group has every rank of the plan");
            let buffer = |bytes: usize| DeviceBuffer::new(device, bytes as u64);
            let pair = |memory: &BufferMemory<'_>| match memory {
                BufferMemory::Separate { input, output } => Ok([buffer(input.len())?, buffer(output.len())?]),
                BufferMemory::InPlace(all) => Ok([buffer(0)?, buffer(all.len())?]),
            };
            let pairs = memory.bound().iter().map(pair).collect::<Result<_, _>>();
            self.buffers.push(pairs.map_err(unusable)?);
            self.streams.push(Stream::new(device).map_err(unusable)?);
        }
        Ok(())
    }

    fn run(&mut self, bar: &ProgressBar) -> Result<Vec<RankReport>, Failure> {
        let total = self.settings.warmup.saturating_add(self.settings.iters);
        let limit = Duration::try_from_secs_f64(self.settings.time_limit_s).unwrap_or(Duration::MAX);
        let pointers: Vec<Vec<BufferPointers>> = self
            .buffers
            .iter()
            .map(|rank| rank.iter().map(|[a, b]| BufferPointers::new(a.pointer(), b.pointer())).collect())
            .collect();
        let handles: Vec<StreamHandle> = self.streams.iter().map(Stream::handle).collect();
        let mut verdicts = vec![Verdict::default(); self.memory.len()];
        let mut times_us = Vec::with_capacity(self.settings.iters as usize);
        for iteration in 0..total {
            self.fill(iteration > 0).map_err(|error| Failure::wrong(error.to_string()))?;
            let start = Instant::now();
            let ran = self.prepared.launch(&pointers, &handles).and_then(|()| self.prepared.wait(limit));
            let elapsed = start.elapsed();
            ran.map_err(|error| Failure::wrong(error.to_string()))?;
            if iteration >= self.settings.warmup {
                times_us.push(elapsed.as_secs_f64() * 1e6);
            }
            if iteration == 0 || iteration + 1 == total {
                self.fetch().map_err(|error| Failure::wrong(error.to_string()))?;
                for (rank, verdict) in (0u32..).zip(&mut verdicts) {
                    verdict.take(self.judge(rank));
                }
            }
            bar.set_position(u64::from(iteration) + 1);
        }
        let operator_code = match self.settings.operator.builtin() {
            Some(_) => OperatorCode::Builtin,
            None => OperatorCode::Native,
        };
        let report = |(rank, verdict): (u32, Verdict)| RankReport {
            rank,
            times_us: times_us.clone(),
            operator_code: operator_code.clone(),
            wrong: verdict.wrong,
            first_wrong: verdict.first,
            digests: verdict.digests,
            timeline: None,
        };
        Ok((0u32..).zip(verdicts).map(report).collect())
    }

    /// Inputs, and what is no value, on the devices.
    fn fill(&mut self, again: bool) -> Result<(), coll_gpu::GpuError> {
        let inputs = self.inputs();
        for (memory, buffers) in self.memory.iter_mut().zip(&mut self.buffers) {
            memory.fill(&inputs, again);
            for (memory, [input, output]) in memory.bound().iter().zip(buffers) {
                match memory {
                    BufferMemory::Separate { input: given, output: none } => {
                        input.write(given)?;
                        output.write(none)?;
                    }
                    BufferMemory::InPlace(all) => output.write(all)?,
                }
            }
        }
        Ok(())
    }

    /// Results from the devices.
    fn fetch(&mut self) -> Result<(), coll_gpu::GpuError> {
        for (memory, buffers) in self.memory.iter_mut().zip(&self.buffers) {
            for (memory, [_, output]) in memory.bound().iter_mut().zip(buffers) {
                match memory {
                    BufferMemory::Separate { output: into, .. } | BufferMemory::InPlace(into) => {
                        output.read(into)?
                    }
                }
            }
        }
        Ok(())
    }

    fn inputs(&self) -> Inputs {
        let near_one = self.settings.operator.builtin() == Some(RedOp::Prod);
        Inputs { seed: self.settings.seed, dtype: self.settings.dtype, near_one }
    }

    fn judge(&self, rank: u32) -> Verdict {
        let judge = Judge {
            contract: &self.plan.contract,
            counts: &self.settings.counts,
            inputs: self.inputs(),
            op: self.settings.operator.builtin(),
            reducer: &self.reference,
            wire: travels_as(self.plan, self.settings.dtype, &self.reference),
        };
        let outputs = self.memory[rank as usize].outputs();
        judge.verdict(rank, &outputs.iter().map(|output| &output[..]).collect::<Vec<_>>())
    }
}
