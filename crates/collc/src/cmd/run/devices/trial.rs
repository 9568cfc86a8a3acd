//! Iterations of ranks that have their memory on devices: filled, run, timed and judged, whoever runs them.

use crate::failure::Failure;
use coll::trial::{
    Inputs, Judge, NoMemory, OperatorCode, RankReport, RunMemory, Settings, Verdict, travels_as,
};
use coll_base::RedOp;
use coll_exec::BufferMemory;
use coll_gpu::{BufferPointers, Device, DeviceBuffer, GpuError, Stream, StreamHandle};
use coll_kernel::Reducer;
use coll_plan::Plan;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A call that is ready on the trial's buffers and streams.
pub(super) trait Ready {
    /// Comes back when all ranks are about to run.
    fn meet(&mut self) -> Result<(), Failure>;

    /// Runs it once, to the end.
    fn run(&mut self, limit: Duration) -> Result<(), Failure>;
}

/// The ranks of this process.
pub(super) struct Trial<'p> {
    settings: &'p Settings,
    plan: &'p Plan,
    reference: Reducer,
    ranks: Range<u32>,
    memory: Vec<RunMemory<'p>>,
    /// For each rank and buffer, input and output.
    buffers: Vec<Vec<[DeviceBuffer; 2]>>,
    streams: Vec<Stream>,
}

impl<'p> Trial<'p> {
    /// Memory and a stream for each of some ranks.
    pub(super) fn new(
        settings: &'p Settings,
        plan: &'p Plan,
        ranks: Range<u32>,
        device: impl Fn(u32) -> Arc<Device>,
    ) -> Result<Trial<'p>, Failure> {
        let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
        let reference =
            settings.operator.reference(settings.dtype, plan).map_err(|error| unusable(&error))?;
        let size = settings.dtype.size_bytes();
        let of = |rank| RunMemory::new(&plan.contract, rank, &settings.counts, size, settings.in_place);
        let memory: Result<Vec<_>, NoMemory> = ranks.clone().map(of).collect();
        let memory = memory.map_err(|NoMemory { bytes }| {
            Failure::unusable(format!("no memory for {bytes} bytes of buffers"))
        })?;
        let (buffers, streams) = (Vec::new(), Vec::new());
        let mut trial = Trial { settings, plan, reference, ranks: ranks.clone(), memory, buffers, streams };
        for rank in ranks {
            trial.allocate(rank, &device(rank)).map_err(|error| unusable(&error))?;
        }
        Ok(trial)
    }

    fn allocate(&mut self, rank: u32, device: &Arc<Device>) -> Result<(), GpuError> {
        let buffer = |bytes: usize| DeviceBuffer::new(device, bytes as u64);
        let pair = |memory: &BufferMemory<'_>| match memory {
            BufferMemory::Separate { input, output } => Ok([buffer(input.len())?, buffer(output.len())?]),
            BufferMemory::InPlace(all) => Ok([buffer(0)?, buffer(all.len())?]),
        };
        let memory = &mut self.memory[(rank - self.ranks.start) as usize];
        self.buffers.push(memory.bound().iter().map(pair).collect::<Result<_, _>>()?);
        self.streams.push(Stream::new(device)?);
        Ok(())
    }

    /// Where each rank's buffers lie.
    pub(super) fn pointers(&self) -> Vec<Vec<BufferPointers>> {
        let of = |[input, output]: &[DeviceBuffer; 2]| BufferPointers::new(input.pointer(), output.pointer());
        self.buffers.iter().map(|rank| rank.iter().map(of).collect()).collect()
    }

    /// Each rank's stream.
    pub(super) fn streams(&self) -> Vec<StreamHandle> {
        self.streams.iter().map(Stream::handle).collect()
    }

    /// Runs all iterations, and gives a report for each rank; `hear` is told how many are done.
    pub(super) fn run(
        &mut self,
        ready: &mut impl Ready,
        hear: &mut dyn FnMut(u32),
    ) -> Result<Vec<RankReport>, Failure> {
        let total = self.settings.warmup.saturating_add(self.settings.iters);
        let limit = Duration::try_from_secs_f64(self.settings.time_limit_s).unwrap_or(Duration::MAX);
        let mut verdicts = vec![Verdict::default(); self.memory.len()];
        let mut times_us = Vec::with_capacity(self.settings.iters as usize);
        for iteration in 0..total {
            self.fill(iteration > 0).map_err(|error| Failure::wrong(error.to_string()))?;
            ready.meet()?;
            let start = Instant::now();
            ready.run(limit)?;
            let elapsed = start.elapsed();
            if iteration >= self.settings.warmup {
                times_us.push(elapsed.as_secs_f64() * 1e6);
            }
            if iteration == 0 || iteration + 1 == total {
                self.fetch().map_err(|error| Failure::wrong(error.to_string()))?;
                for (rank, verdict) in self.ranks.clone().zip(&mut verdicts) {
                    verdict.take(self.judge(rank));
                }
            }
            hear(iteration + 1);
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
        Ok(self.ranks.clone().zip(verdicts).map(report).collect())
    }

    /// Inputs, and what is no value, on the devices.
    fn fill(&mut self, again: bool) -> Result<(), GpuError> {
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
    fn fetch(&mut self) -> Result<(), GpuError> {
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
        let outputs = self.memory[(rank - self.ranks.start) as usize].outputs();
        judge.verdict(rank, &outputs.iter().map(|output| &output[..]).collect::<Vec<_>>())
    }
}
