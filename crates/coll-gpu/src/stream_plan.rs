//! All ranks of a plan as work on streams: pure data, made without any driver.
//!
//! Every rank has a device. The first of its streams is the caller's; lanes beyond the first have streams of their own,
//! which begin after what is on the caller's and which it waits for at the end. A send and its receive are one thing: the
//! receiver's stream waits until the source is ready, and reads it where it lies; whatever follows the send on its rank
//! waits until that is done.
//!
//! The work stands in one order in which it may be enqueued: an event is recorded before it is waited for. How to read
//! it: `order` finds that order, `lower` says what each operation is, `clocks` which waits are needed, `pieces` joins
//! what lies side by side. What goes between machines is in `parcels`.

mod arithmetic;
mod clocks;
mod fuse;
mod lower;
mod order;
mod parcels;
mod pieces;
mod staging;

pub use arithmetic::Arithmetic;
pub use parcels::{Heading, Parcel};

use coll_base::DType;
use coll_exec::{Memory, Outline, Place};
use coll_plan::OpId;

/// Where ranks run, and which devices reach each other's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The device of each rank.
    pub devices: Vec<u32>,
    /// Pairs of devices of which the first may read memory of the second. A device reaches its own.
    pub reaches: Vec<(u32, u32)>,
    /// The most streams that a rank has; lanes beyond share them. At least 1.
    pub streams_per_rank_max: u32,
    /// The machine of each rank; nothing if they all are on one.
    pub machines: Vec<u32>,
}

impl Layout {
    /// All ranks on one device.
    pub fn one_device(ranks: u32) -> Layout {
        Layout::over(ranks, 1)
    }

    /// Ranks dealt out to devices `0..devices` in equal runs, which all reach each other.
    pub fn over(ranks: u32, devices: u32) -> Layout {
        let devices = devices.clamp(1, ranks.max(1));
        let device = |rank: u32| (u64::from(rank) * u64::from(devices) / u64::from(ranks.max(1))) as u32;
        let pairs = (0..devices).flat_map(|a| (0..devices).map(move |b| (a, b)));
        Layout {
            devices: (0..ranks).map(device).collect(),
            reaches: pairs.filter(|(a, b)| a != b).collect(),
            streams_per_rank_max: STREAMS_PER_RANK_MAX,
            machines: Vec::new(),
        }
    }

    /// Whether kernels on one device may read memory of another.
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        from == to || self.reaches.contains(&(from, to))
    }

    /// Whether kernels of one rank may read memory of another.
    pub(crate) fn reads(&self, rank: u32, other: u32) -> bool {
        let device = |rank: u32| self.devices[rank as usize];
        self.is_near(rank, other) && self.reaches(device(rank), device(other))
    }

    /// Whether two ranks are on one machine.
    pub fn is_near(&self, rank: u32, other: u32) -> bool {
        self.machines.is_empty() || self.machines[rank as usize] == self.machines[other as usize]
    }
}

/// Streams that a rank has if nothing else is said: what is on more of them does not overlap more on a device.
pub const STREAMS_PER_RANK_MAX: u32 = 8;

/// Stream work of all ranks of a plan.
#[derive(Clone, Debug)]
pub struct StreamPlan {
    /// The plan's name.
    pub name: String,
    /// What each rank has and needs.
    pub ranks: Vec<RankPart>,
    /// All streams; [`RankPart::streams`] says whose they are.
    pub streams: Vec<StreamPart>,
    /// Events `0..events`; each is recorded at one place.
    pub events: u32,
    /// Messages between machines, a side each.
    pub parcels: Vec<Parcel>,
    /// The work, in an order in which it may be enqueued.
    pub work: Vec<Work>,
    /// What its kernels compute with.
    pub arithmetic: Option<Arithmetic>,
}

/// One rank's part.
#[derive(Clone, Debug)]
pub struct RankPart {
    /// Its device.
    pub device: u32,
    /// Its streams, of which the first is the caller's.
    pub streams: std::ops::Range<u32>,
    /// Bytes of device memory beside the caller's buffers.
    pub scratch_bytes: u64,
    /// The rank, bound. Buffers, and where operations come from.
    pub outline: Outline,
}

/// A stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPart {
    /// Whose it is.
    pub rank: u32,
    /// Where it is.
    pub device: u32,
}

/// One thing that is put on a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// The stream.
    pub stream: u32,
    /// What it does.
    pub deed: Deed,
    /// Where it comes from.
    pub origin: Origin,
}

impl Work {
    fn is_wait(&self) -> bool {
        matches!(self.deed, Deed::Wait(_) | Deed::Collect(_))
    }
}

/// Where work comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The inputs are made working elements, before the first operation.
    Prepare,
    /// An operation of the stream's rank.
    Op(OpId),
    /// Results are made of working elements, after the last operation.
    Finish,
}

/// What work does.
#[derive(Clone, Debug, PartialEq)]
pub enum Deed {
    /// Moves bytes between memories that do not overlap, of one device or two.
    Copy {
        /// Where to.
        target: Spot,
        /// Where from.
        source: Spot,
        /// How many.
        bytes: u64,
    },
    /// Runs a kernel.
    Launch(Launch),
    /// Records an event.
    Record(u32),
    /// Waits for an event.
    Wait(u32),
    /// Tells another process's rank that an event has come.
    Signal {
        /// The event.
        event: u32,
        /// Whom.
        rank: u32,
    },
    /// Waits until another process tells that an event has come.
    Await(u32),
    /// Tells the rank's porter that a parcel's bytes may be read, or written.
    Post(u32),
    /// Waits until the porter has read, or written, a parcel's bytes.
    Collect(u32),
}

/// A kernel with its arguments. Counts are elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Launch {
    /// `target := sources[0] ⊕ sources[1] ⊕ …`, from left to right, on working elements; the target may be one of them.
    Combine {
        /// Where to.
        target: Spot,
        /// The operands, two at least.
        sources: Vec<Spot>,
        /// Working elements.
        count: u64,
    },
    /// Elements as the operator takes them.
    Prepare {
        /// Where to.
        working: Spot,
        /// Where from; it may be the same place.
        input: Spot,
        /// Elements.
        count: u64,
    },
    /// Results of finished values.
    Finish {
        /// Where to.
        output: Spot,
        /// Where from; it may be the same place.
        working: Spot,
        /// Elements.
        count: u64,
        /// Values that each is made of.
        leaves: u64,
    },
    /// Floats of one width as floats of another.
    Cast {
        /// Where to.
        target: Spot,
        /// Where from.
        source: Spot,
        /// Floats, of which a complex element has two.
        count: u64,
        /// The type that is read.
        from: DType,
        /// The type that is written.
        to: DType,
    },
}

/// A place in a rank's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// Whose memory.
    pub rank: u32,
    /// Which one. What lies in [`Memory::Scratch`] beyond what the outline has is staging.
    pub memory: Memory,
    /// The byte.
    pub offset: u64,
}

/// Why ranks do not make a stream plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamPlanError {
    /// Outlines are those of all ranks of one plan, in order.
    #[error("{what}: a stream plan is made of all ranks of one plan, in order, bound to the same counts")]
    Unlike {
        /// What does not fit.
        what: String,
    },
    /// Operations wait for each other in a ring.
    #[error(
        "nothing can go on in {name} before {waits}; the plan needs {slots} message slots, or is none that was proved"
    )]
    Stuck {
        /// The plan's name.
        name: String,
        /// An operation that is never reached.
        waits: String,
        /// Message slots of the plan.
        slots: u32,
    },
}

impl StreamPlan {
    /// Puts all ranks of a plan on streams.
    ///
    /// # Errors
    /// Outlines that are not of one plan, and plans that wait for themselves.
    pub fn new(outlines: Vec<Outline>, layout: &Layout) -> Result<StreamPlan, StreamPlanError> {
        check(&outlines, layout)?;
        let order = order::Order::new(&outlines)?;
        Ok(fuse::fuse(lower::lower(outlines, layout, &order)))
    }

    /// How many waits there are, for events and for parcels.
    pub fn waits(&self) -> usize {
        self.work.iter().filter(|work| work.is_wait()).count()
    }

    /// The same without one of its waits: what tests of tests run. Nothing if there are not so many.
    pub fn without_wait(&self, number: usize) -> Option<StreamPlan> {
        let waits = self.work.iter().enumerate().filter(|(_, work)| work.is_wait());
        let (at, _) = waits.clone().nth(number)?;
        let mut less = self.clone();
        less.work.remove(at);
        Some(less)
    }

    /// Where work is in its rank's plan, if it is of an operation.
    pub fn place(&self, work: &Work) -> Option<Place> {
        let rank = &self.ranks[self.streams[work.stream as usize].rank as usize];
        match work.origin {
            Origin::Op(op) => rank.outline.place(op),
            Origin::Prepare | Origin::Finish => None,
        }
    }
}

fn check(outlines: &[Outline], layout: &Layout) -> Result<(), StreamPlanError> {
    let unlike = |what: String| Err(StreamPlanError::Unlike { what });
    let Some(first) = outlines.first() else { return unlike("there is no rank".to_string()) };
    if !layout.machines.is_empty() && layout.machines.len() != outlines.len() {
        return unlike(format!("{} ranks have machines, of {}", layout.machines.len(), outlines.len()));
    }
    if outlines.len() != first.world as usize || layout.devices.len() != outlines.len() {
        let (ranks, devices, world) = (outlines.len(), layout.devices.len(), first.world);
        return unlike(format!("{ranks} ranks and devices of {devices} are given, and the plan has {world}"));
    }
    for (rank, outline) in (0u32..).zip(outlines) {
        if outline.rank != rank {
            return unlike(format!("rank {} stands in the place of rank {rank}", outline.rank));
        }
        if (&outline.name, outline.world, outline.cast) != (&first.name, first.world, first.cast) {
            return unlike(format!("rank {rank} runs {}, and rank 0 {}", outline.name, first.name));
        }
    }
    Ok(())
}
