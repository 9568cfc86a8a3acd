//! A stream plan made ready: kernels found, addresses as offsets from the bases of buffers, so that putting it on streams
//! looks nothing up and allocates nothing.

use crate::GpuError;
use crate::driver::{
    ARGUMENTS_MAX, Argument, Current, Device, Event, Kernel, Pointer, StreamHandle, copy, wait_word,
    write_word,
};
use crate::kernels::{Loader, Wanted};
use crate::stream_plan::{Deed, Launch, Spot, StreamPlan};
use coll_exec::Memory;
use std::sync::Arc;

/// Threads of a block.
const BLOCK: u32 = 256;

/// Bytes that a thread moves before its block is worth another one: four accesses of 16 bytes.
const THREAD_BYTES: u64 = 64;

/// Blocks for each multiprocessor; more would only take turns.
const BLOCKS_PER_PROCESSOR: u32 = 8;

/// One piece of work.
#[derive(Debug)]
struct Command {
    stream: u32,
    deed: Do,
}

#[derive(Debug)]
enum Do {
    Copy {
        target: Address,
        source: Address,
        bytes: u64,
    },
    Launch {
        kernel: Kernel,
        arguments: Box<[Given]>,
        grid: u32,
    },
    Record(u32),
    Wait(u32),
    /// Writes into a word of another rank.
    Signal(Address),
    /// Waits for a word of the rank's own.
    Await(Address),
}

/// What stands in the words by which streams of several processes wait for each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Words {
    /// The number of the run.
    Number(u32),
    /// 1, which whoever waited sets back to 0: a graph writes the same in every run. A word is not written again before it
    /// was heard, for what it tells of the next run comes after the end of this one on the rank that waits.
    Flag,
}

impl Words {
    fn told(self) -> u32 {
        match self {
            Words::Number(number) => number,
            Words::Flag => 1,
        }
    }
}

/// An argument of a kernel, before buffers are known.
#[derive(Clone, Copy, Debug)]
enum Given {
    Address(Address),
    Count(u64),
    Number(f64),
}

/// A place in one of the memories.
#[derive(Clone, Copy, Debug)]
struct Address {
    rank: u32,
    base: u32,
    offset: u64,
}

/// All of a stream plan, as commands.
#[derive(Debug)]
pub(crate) struct Commands {
    commands: Vec<Command>,
    /// The device of each stream.
    stream_devices: Vec<Arc<Device>>,
    rank_devices: Vec<Arc<Device>>,
}

/// Bases before those of a rank: its scratch, then input and output of each buffer.
pub(crate) fn first_base(stream_plan: &StreamPlan, rank: usize) -> usize {
    stream_plan.ranks[..rank].iter().map(|part| 1 + 2 * part.outline.buffers.len()).sum()
}

/// All bases where ranks are processes: those of buffers, the words of each rank's events, and those of parcels.
pub(crate) fn bases(stream_plan: &StreamPlan) -> usize {
    let ranks = stream_plan.ranks.len();
    first_base(stream_plan, ranks) + ranks + 1
}

/// Where a place of a rank's memory lies, among bases of which the rank's first is `first`.
pub(crate) fn base_of(first: usize, memory: Memory) -> usize {
    first
        + match memory {
            Memory::Scratch => 0,
            Memory::Input(buffer) => 1 + 2 * buffer as usize,
            Memory::Output(buffer) => 2 + 2 * buffer as usize,
        }
}

impl Commands {
    pub(crate) fn new(
        stream_plan: &StreamPlan,
        devices: &[Arc<Device>],
        loader: &mut Loader<'_>,
    ) -> Result<Commands, (usize, GpuError)> {
        let firsts: Vec<u32> =
            (0..stream_plan.ranks.len()).map(|rank| first_base(stream_plan, rank) as u32).collect();
        let device_of = |stream: u32| &devices[stream_plan.streams[stream as usize].rank as usize];
        let mut commands = Vec::with_capacity(stream_plan.work.len());
        for (at, work) in stream_plan.work.iter().enumerate() {
            let maker = Maker { stream_plan, firsts: &firsts, device: device_of(work.stream) };
            if let Some(deed) = maker.deed(work.stream, &work.deed, loader).map_err(|error| (at, error))? {
                commands.push(Command { stream: work.stream, deed });
            } else {
                // Work that turned out to be none keeps its place, so that errors find where they are from.
                commands.push(Command { stream: work.stream, deed: maker.nothing() });
            }
        }
        let stream_devices = (0..stream_plan.streams.len() as u32).map(|stream| device_of(stream).clone());
        Ok(Commands { commands, stream_devices: stream_devices.collect(), rank_devices: devices.to_vec() })
    }

    /// Puts all of it on streams. Of an error, the work at which it was.
    pub(crate) fn enqueue(
        &self,
        bases: &[Pointer],
        streams: &[StreamHandle],
        events: &[Event],
        words: Words,
        current: &mut Current,
    ) -> Result<(), (usize, GpuError)> {
        let put = |command: &Command, current: &mut Current| -> Result<(), GpuError> {
            let stream = streams[command.stream as usize];
            let at = |address: &Address| bases[address.base as usize].moved(address.offset);
            let device = &self.stream_devices[command.stream as usize];
            current.switch(device)?;
            match &command.deed {
                Do::Copy { bytes: 0, .. } => Ok(()),
                Do::Copy { target, source, bytes } => {
                    let device = |address: &Address| &*self.rank_devices[address.rank as usize];
                    copy((at(target), device(target)), (at(source), device(source)), *bytes, stream)
                }
                Do::Launch { kernel, arguments, grid } => {
                    let mut given = [Argument::Count(0); ARGUMENTS_MAX];
                    for (place, argument) in given.iter_mut().zip(arguments) {
                        *place = match argument {
                            Given::Address(address) => Argument::Address(at(address).address()),
                            Given::Count(count) => Argument::Count(*count),
                            Given::Number(number) => Argument::Number(*number),
                        };
                    }
                    kernel.launch(&given[..arguments.len()], *grid, BLOCK, stream)
                }
                Do::Record(event) => events[*event as usize].record(stream),
                Do::Wait(event) => stream.wait(&events[*event as usize]),
                Do::Signal(word) => write_word(stream, at(word), words.told(), device),
                Do::Await(word) => {
                    wait_word(stream, at(word), words.told(), device)?;
                    match words {
                        Words::Number(_) => Ok(()),
                        Words::Flag => write_word(stream, at(word), 0, device),
                    }
                }
            }
        };
        let mut all = self.commands.iter().enumerate();
        all.try_for_each(|(at, command)| put(command, current).map_err(|error| (at, error)))
    }
}

struct Maker<'a> {
    stream_plan: &'a StreamPlan,
    firsts: &'a [u32],
    device: &'a Arc<Device>,
}

impl Maker<'_> {
    /// None if there is nothing to do.
    fn deed(&self, stream: u32, deed: &Deed, loader: &mut Loader<'_>) -> Result<Option<Do>, GpuError> {
        Ok(match deed {
            Deed::Record(event) => Some(Do::Record(*event)),
            Deed::Wait(event) => Some(Do::Wait(*event)),
            Deed::Signal { event, rank } => Some(Do::Signal(self.word(*rank, *event))),
            Deed::Await(event) => {
                Some(Do::Await(self.word(self.stream_plan.streams[stream as usize].rank, *event)))
            }
            Deed::Post(parcel) => Some(Do::Signal(self.parcel_word(2 * *parcel))),
            Deed::Collect(parcel) => Some(Do::Await(self.parcel_word(2 * *parcel + 1))),
            Deed::Copy { target, source, bytes } => Some(self.copy(*target, *source, *bytes)),
            Deed::Launch(launch) => self.launch(launch, loader)?,
        })
    }

    fn launch(&self, launch: &Launch, loader: &mut Loader<'_>) -> Result<Option<Do>, GpuError> {
        let arithmetic = self.stream_plan.arithmetic.as_ref();
        let working_bytes = arithmetic.map_or(1, |arithmetic| arithmetic.working_bytes());
        let ranks = arithmetic.map_or(1, |arithmetic| u64::from(arithmetic.ranks()));
        let kernel = loader.kernel(self.device, Wanted::of(launch))?;
        let address = |spot: &Spot| Given::Address(self.address(*spot));
        let (mut arguments, bytes) = match launch {
            Launch::Combine { target, sources, count } => {
                let mut arguments = vec![address(target)];
                arguments.extend(sources.iter().map(address));
                arguments.push(Given::Count(*count));
                (arguments, count * working_bytes)
            }
            Launch::Prepare { working: to, input: from, count }
            | Launch::Finish { output: to, working: from, count, .. } => {
                if kernel.is_none() {
                    let bytes = count * working_bytes;
                    return Ok((to != from).then(|| self.copy(*to, *from, bytes)));
                }
                (vec![address(to), address(from), Given::Count(*count)], count * working_bytes)
            }
            Launch::Cast { target, source, count, from, to } => {
                let bytes = count * from.size_bytes().max(to.size_bytes());
                (vec![address(target), address(source), Given::Count(*count)], bytes)
            }
        };
        if !loader.is_user() {
            match launch {
                Launch::Prepare { .. } => {
                    let factor = arithmetic.map_or(1.0, |arithmetic| arithmetic.factor());
                    arguments.extend([Given::Count(ranks), Given::Number(factor)]);
                }
                Launch::Finish { leaves, .. } => {
                    arguments.extend([Given::Count(ranks), Given::Count(*leaves)]);
                }
                Launch::Combine { .. } | Launch::Cast { .. } => {}
            }
        }
        let grid = self.grid(bytes)?;
        Ok(kernel.map(|kernel| Do::Launch { kernel, arguments: arguments.into(), grid }))
    }

    fn copy(&self, target: Spot, source: Spot, bytes: u64) -> Do {
        Do::Copy { target: self.address(target), source: self.address(source), bytes }
    }

    fn nothing(&self) -> Do {
        let nowhere = Address { rank: 0, base: 0, offset: 0 };
        Do::Copy { target: nowhere, source: nowhere, bytes: 0 }
    }

    fn address(&self, spot: Spot) -> Address {
        let base = base_of(self.firsts[spot.rank as usize] as usize, spot.memory) as u32;
        Address { rank: spot.rank, base, offset: spot.offset }
    }

    /// The word of an event in a rank's memory; words lie behind all other bases.
    fn word(&self, rank: u32, event: u32) -> Address {
        let base = first_base(self.stream_plan, self.stream_plan.ranks.len()) as u32 + rank;
        Address { rank, base, offset: 4 * u64::from(event) }
    }

    /// A word that streams and the porter share; they lie behind those of events.
    fn parcel_word(&self, number: u32) -> Address {
        let base = bases(self.stream_plan) as u32 - 1;
        Address { rank: 0, base, offset: 4 * u64::from(number) }
    }

    fn grid(&self, bytes: u64) -> Result<u32, GpuError> {
        let most = self.device.processors()?.max(1).saturating_mul(BLOCKS_PER_PROCESSOR);
        let blocks = bytes.div_ceil(THREAD_BYTES * u64::from(BLOCK)).max(1);
        Ok(u32::try_from(blocks).unwrap_or(u32::MAX).min(most))
    }
}
