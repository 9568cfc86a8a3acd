//! Plans on the streams of devices, whose times are those of a launch and of the wait for it.

mod way;

pub(super) use way::{Alone, Together, Way};

use super::cell;
use super::control::Control;
use super::pattern::{Pattern, Side};
use super::settings::{Cell, Settings};
use super::subject::{Prepared, Subject, block_elements};
use super::{Hear, over_plans};
use crate::failure::Failure;
use coll::Options;
use coll::select::Chooser;
use coll::trial::placements;
use coll_base::Fraction;
use coll_exec::{Binding, Outline, Placement};
use coll_gpu::{BufferPointers, Call, DeviceBuffer, GpuError, Stream, StreamHandle};
use coll_kernel::Reducer;
use coll_plan::Plan;
use std::collections::BTreeMap;
use std::time::Duration;

/// The name of this transport.
pub(super) const CUDA: &str = "cuda";
/// That of the constants that schedules are chosen by: memory of one process, for devices have none of their own yet.
pub(super) const CONSTANTS: &str = super::wire::THREADS;

/// Runs all cells, all ranks in this process, and hears of each as it is done.
pub(super) fn measure(settings: &Settings, hear: &mut Hear<'_>) -> Result<(), Failure> {
    let patience = Duration::from_secs_f64(settings.time_limit_s);
    // Ranks are streams: one thread times them all.
    let control = Control::open(&settings.control, 1, 0, patience)?;
    let mut subject = OverDevices::<Together>::on(settings)?;
    for number in 0..settings.cells.len() {
        if let Some(measured) = cell::measure(&mut subject, &control, settings, number)? {
            hear(&settings.cells, measured)?;
        }
    }
    Ok(())
}

/// The ranks of a job that are in this process.
pub(super) struct OverDevices<W: Way> {
    settings: Settings,
    chooser: Chooser,
    reducer: Reducer,
    streams: Vec<Stream>,
    /// Plans that were made, each with its bus factor.
    plans: BTreeMap<String, (Plan, f64)>,
    bound: Option<Bind<W>>,
    way: W,
}

/// A cell's plan, ready.
struct Bind<W: Way> {
    schedule: String,
    counts: Vec<u64>,
    placements: Vec<Placement>,
    ready: W::Ready,
    pointers: Vec<Vec<BufferPointers>>,
    // After what uses them.
    buffers: Vec<Vec<[DeviceBuffer; 2]>>,
}

impl<W: Way> OverDevices<W> {
    pub(super) fn on(settings: &Settings) -> Result<OverDevices<W>, Failure> {
        let chooser = settings.chooser()?;
        let reducer = Reducer::builtin(settings.op, settings.dtype)
            .map_err(|error| Failure::unusable(error.to_string()))?;
        let way = W::join(settings, chooser.fingerprint())?;
        let streams = way.ranks().map(|rank| Stream::new(&way.device(rank))).collect::<Result<_, _>>();
        let streams = streams.map_err(|error| Failure::unusable(error.to_string()))?;
        let settings = settings.clone();
        Ok(OverDevices { settings, chooser, reducer, streams, plans: BTreeMap::new(), bound: None, way })
    }

    /// Memory of a rank, as a call has it bound.
    fn memory(&self, call: &Call<'_>, rank: u32) -> Result<Vec<[DeviceBuffer; 2]>, Failure> {
        let Call { plan, counts, dtype, reducer, placements, .. } = *call;
        let element_size_bytes = dtype.size_bytes();
        let binding = Binding { plan, rank, counts, element_size_bytes, reducer, placements };
        let unusable = |error: &dyn std::fmt::Display| Failure::unusable(error.to_string());
        let outline = Outline::new(binding, dtype, &[]).map_err(|error| unusable(&error))?;
        let device = self.way.device(rank);
        let pair = |buffer: &coll_exec::Buffer| -> Result<[DeviceBuffer; 2], GpuError> {
            let [input, output] = buffer.bytes;
            Ok([DeviceBuffer::new(&device, input)?, DeviceBuffer::new(&device, output)?])
        };
        outline.buffers.iter().map(pair).collect::<Result<_, _>>().map_err(|error| unusable(&error))
    }

    /// Gives back what is ready, if something is.
    fn close(&mut self) -> Result<(), Failure> {
        let Some(Bind { ready, buffers, .. }) = self.bound.take() else { return Ok(()) };
        let closed = self.way.close(ready);
        drop(buffers);
        closed.map_err(|error| Failure::wrong(error.to_string()))
    }
}

impl<W: Way> Subject for OverDevices<W> {
    fn prepare(&mut self, cell: &Cell) -> Result<Prepared, Failure> {
        let Settings { world, dtype, root, accumulate, wire, .. } = self.settings;
        self.close()?;
        let candidate = over_plans::candidate(&self.settings, &self.chooser, CONSTANTS, cell)?;
        let key = candidate.to_string();
        if !self.plans.contains_key(&key) {
            let options = Options { accumulate, wire, ..Options::default() };
            let proved = over_plans::proved(&candidate, world, root, &options)?;
            let bounds = &proved.properties.bounds;
            let bus_factor = Fraction::to_f64(bounds.sent_max.max(bounds.received_max));
            self.plans.insert(key.clone(), (proved.plan, bus_factor));
        }
        let (plan, bus_factor) = &self.plans[&key];
        let elements = block_elements(&plan.contract, cell.bytes, dtype);
        let counts = plan.contract.counts(elements).map_err(|error| Failure::unusable(error.to_string()))?;
        let placements = placements(&plan.contract, cell.in_place);
        let call = Call {
            plan,
            counts: &counts,
            dtype,
            reducer: plan.reduces.then_some(&self.reducer),
            placements: &placements,
            spreads: &[],
        };
        let buffers = self.way.ranks().map(|rank| self.memory(&call, rank));
        let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
        let pointers = |rank: &Vec<[DeviceBuffer; 2]>| {
            rank.iter().map(|[a, b]| BufferPointers::new(a.pointer(), b.pointer())).collect()
        };
        let pointers: Vec<Vec<BufferPointers>> = buffers.iter().map(pointers).collect();
        let ready = self.way.prepare(&call, &pointers);
        let ready = ready.map_err(|error| Failure::unusable(error.to_string()))?;
        let (reduces, root, bus_factor) = (plan.reduces, plan.root, *bus_factor);
        self.bound = Some(Bind { schedule: key, counts, placements, ready, pointers, buffers });
        Ok(Prepared { elements, actual_bytes: elements * dtype.size_bytes(), reduces, root, bus_factor })
    }

    fn fill(&mut self) {
        let Some(mut bound) = self.bound.take() else { return };
        for (rank, buffers) in self.way.ranks().zip(&mut bound.buffers) {
            for (at, [input, output]) in buffers.iter_mut().enumerate() {
                let plan = &self.plans[&bound.schedule].0;
                let side = side(&self.settings, plan, &bound.counts, rank, bound.placements[at]);
                let given = if side.in_place { &mut *output } else { input };
                let mut bytes = vec![0; given.bytes() as usize];
                side.fill(at as u32, &mut bytes);
                // What cannot be written shows as wrong elements.
                let _ = given.write(&bytes);
                if !side.in_place {
                    let _ = output.fill(0);
                }
            }
        }
        self.bound = Some(bound);
    }

    fn wrong(&self) -> u64 {
        let Some(bound) = &self.bound else { return 0 };
        let mut wrong = 0;
        for (rank, buffers) in self.way.ranks().zip(&bound.buffers) {
            for (at, [_, output]) in buffers.iter().enumerate() {
                let plan = &self.plans[&bound.schedule].0;
                let side = side(&self.settings, plan, &bound.counts, rank, bound.placements[at]);
                let mut bytes = vec![0; output.bytes() as usize];
                wrong += match output.read(&mut bytes) {
                    Ok(()) => side.wrong(at as u32, &bytes).0,
                    Err(_) => output.bytes() / self.settings.dtype.size_bytes(),
                };
            }
        }
        wrong
    }

    fn schedule(&mut self) -> String {
        self.bound.as_ref().map_or(String::new(), |bound| bound.schedule.clone())
    }

    fn run(&mut self) -> Result<(), Failure> {
        let limit = Duration::from_secs_f64(self.settings.time_limit_s);
        let Some(bound) = &mut self.bound else { return Ok(()) };
        let handles: Vec<StreamHandle> = self.streams.iter().map(Stream::handle).collect();
        let ran = self.way.run(&mut bound.ready, &bound.pointers, &handles, limit);
        ran.map_err(|error| Failure::wrong(error.to_string()))
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.way.meet()
    }

    fn leave(mut self) {
        // All has been measured; whoever does not come says why itself.
        let _ = self.close();
    }

    fn abort(mut self, reason: &str) {
        self.way.abort(reason);
    }
}

fn side<'c>(
    settings: &Settings,
    plan: &'c Plan,
    counts: &'c [u64],
    rank: u32,
    placement: Placement,
) -> Side<'c> {
    Side {
        pattern: Pattern::of(settings),
        contract: &plan.contract,
        counts,
        rank,
        in_place: placement == Placement::InPlace,
    }
}
