//! All ranks of a communicator in one process, each on a device; several may share one.

use crate::driver::{Device, Driver, StreamHandle};
use crate::kernels::{Compile, Loader, Shelf, WithNvrtc};
use crate::prepared::{BufferPointers, Prepared};
use crate::stream_plan::{Layout, STREAMS_PER_RANK_MAX, StreamPlan};
use crate::{GpuError, GroupError};
use coll_base::DType;
use coll_exec::{Binding, Outline, Placement, Spread};
use coll_kernel::Reducer;
use coll_plan::Plan;
use std::sync::Arc;
use std::time::Duration;

/// What is called: the same on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The plan, of all ranks.
    pub plan: &'a Plan,
    /// Elements of a block of each count class.
    pub counts: &'a [u64],
    /// The element type.
    pub dtype: DType,
    /// The operator, exactly if the collective reduces.
    pub reducer: Option<&'a Reducer>,
    /// How each buffer is given.
    pub placements: &'a [Placement],
    /// For each rank, where blocks lie that do not follow each other; nothing if they all do.
    pub spreads: &'a [Vec<Spread<'a>>],
}

/// Ranks on devices of this process.
#[derive(Debug)]
pub struct Group {
    devices: Vec<Arc<Device>>,
    layout: Layout,
    unreached: Vec<GpuError>,
    compiler: Arc<dyn Compile>,
    shelf: Shelf,
}

impl Call<'_> {
    /// Every rank's part, bound, for a group of so many ranks.
    pub(crate) fn outlines(&self, ranks: u32) -> Result<Vec<Outline>, GroupError> {
        let found = self.plan.world();
        if found != ranks {
            let (found, ranks) = (found as usize, ranks as usize);
            return Err(GroupError::Ranks { what: "ranks of a plan", found, ranks });
        }
        let outline = |rank: u32| {
            let binding = Binding {
                plan: self.plan,
                rank,
                counts: self.counts,
                element_size_bytes: self.dtype.size_bytes(),
                reducer: self.reducer,
                placements: self.placements,
            };
            let spreads = self.spreads.get(rank as usize).map_or(&[][..], Vec::as_slice);
            Outline::new(binding, self.dtype, spreads)
        };
        Ok((0..ranks).map(outline).collect::<Result<_, _>>()?)
    }
}

impl Group {
    /// A rank on each of these devices, in order; a device may be named more than once. Devices get access to each other's
    /// memory as far as they can.
    ///
    /// # Errors
    /// There is no driver, or no such device: see [`probe`](crate::probe).
    pub fn new(devices: &[u32]) -> Result<Group, GpuError> {
        let driver = Driver::open()?;
        let mut opened: Vec<Arc<Device>> = Vec::with_capacity(devices.len());
        for &number in devices {
            let known = opened.iter().find(|device| device.number() == number).cloned();
            opened.push(known.map_or_else(|| Device::open(driver, number), Ok)?);
        }
        let mut different = opened.clone();
        different.sort_by_key(|device| device.number());
        different.dedup_by_key(|device| device.number());
        let (mut reaches, mut unreached) = (Vec::new(), Vec::new());
        for from in &different {
            for to in different.iter().filter(|to| to.number() != from.number()) {
                match reach(from, to) {
                    Ok(()) => reaches.push((from.number(), to.number())),
                    Err(error @ GpuError::PeerAccess { .. }) => unreached.push(error),
                    Err(error) => return Err(error),
                }
            }
        }
        let layout = Layout {
            devices: devices.to_vec(),
            reaches,
            streams_per_rank_max: STREAMS_PER_RANK_MAX,
            machines: Vec::new(),
        };
        Ok(Group {
            devices: opened,
            layout,
            unreached,
            compiler: Arc::new(WithNvrtc),
            shelf: Shelf::default(),
        })
    }

    /// Has operators of one's own compiled by something else than NVRTC.
    pub fn compiler(self, compiler: Arc<dyn Compile>) -> Group {
        Group { compiler, ..self }
    }

    /// Limits the streams of each rank; lanes beyond share them. At least 1.
    pub fn streams_per_rank_max(mut self, streams: u32) -> Group {
        self.layout.streams_per_rank_max = streams.max(1);
        self
    }

    /// How many ranks there are.
    pub fn ranks(&self) -> u32 {
        self.devices.len() as u32
    }

    /// A rank's device.
    pub fn device(&self, rank: u32) -> Option<&Arc<Device>> {
        self.devices.get(rank as usize)
    }

    /// Where ranks are, and which devices reach each other.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Why devices do not reach each other's memory, where they do not. Messages between them are copied by the driver.
    pub fn unreached(&self) -> &[GpuError] {
        &self.unreached
    }

    /// An error if some device does not reach another's memory.
    pub fn require_peer_access(&self) -> Result<(), GpuError> {
        self.unreached.first().cloned().map_or(Ok(()), Err)
    }

    /// Makes a call ready: everything is allocated here, and nothing when it runs.
    ///
    /// # Errors
    /// The plan is not one for these ranks, counts and operator; kernels, memory or a compiler are missing.
    pub fn prepare(&self, call: &Call<'_>) -> Result<Prepared, GroupError> {
        self.prepare_stream_plan(self.stream_plan(call)?)
    }

    /// The stream work of a call.
    pub fn stream_plan(&self, call: &Call<'_>) -> Result<StreamPlan, GroupError> {
        Ok(StreamPlan::new(call.outlines(self.ranks())?, &self.layout)?)
    }

    /// Makes a stream plan ready that was made by [`Group::stream_plan`], or changed since.
    pub fn prepare_stream_plan(&self, stream_plan: StreamPlan) -> Result<Prepared, GroupError> {
        let mut loader = Loader::new(&self.shelf, &*self.compiler, stream_plan.arithmetic.as_ref())?;
        Prepared::new(stream_plan, &self.devices, &mut loader)
    }

    /// Prepares a call, runs it once and waits until it is done.
    ///
    /// # Errors
    /// Those of preparing, launching and waiting.
    pub fn run(
        &self,
        call: &Call<'_>,
        buffers: &[Vec<BufferPointers>],
        streams: &[StreamHandle],
        limit: Duration,
    ) -> Result<(), GroupError> {
        let mut prepared = self.prepare(call)?;
        prepared.launch(buffers, streams)?;
        prepared.wait(limit)
    }
}

fn reach(from: &Device, to: &Device) -> Result<(), GpuError> {
    if from.can_reach(to)? {
        return from.reach(to);
    }
    let why = "the machine has no way between them".to_string();
    Err(GpuError::PeerAccess { from: from.number(), to: to.number(), why })
}
