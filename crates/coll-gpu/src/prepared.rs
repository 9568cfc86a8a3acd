//! A call that is ready to be put on streams, any number of times: events, streams, scratch and kernels are there.

use crate::commands::{Commands, Words, first_base};
use crate::driver::{Current, Device, DeviceBuffer, Event, Pointer, Stream, StreamHandle};
use crate::kernels::Loader;
use crate::stream_plan::{Deed, Origin, StreamPlan};
use crate::{GpuError, GroupError};
use coll_exec::{Place, Placement};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where one buffer of a rank lies. In place, all of it is output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferPointers {
    /// The rank's given blocks.
    pub input: Pointer,
    /// The rank's ensured blocks, or in place all blocks.
    pub output: Pointer,
}

impl BufferPointers {
    /// Of a buffer that is not in place.
    pub fn new(input: Pointer, output: Pointer) -> BufferPointers {
        BufferPointers { input, output }
    }

    /// Of one in place.
    pub fn in_place(all: Pointer) -> BufferPointers {
        BufferPointers { input: Pointer::NOWHERE, output: all }
    }
}

/// Looks at whether all is done that often, before it sleeps in between.
const LOOKS: u32 = 200;

/// The longest sleep between two looks.
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// A call of all ranks of a group, ready to run.
///
/// A run that follows another waits for it, whatever streams they are given. Dropping waits for what is running.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) stream_plan: StreamPlan,
    commands: Commands,
    pub(crate) devices: Vec<Arc<Device>>,
    events: Vec<Event>,
    /// Streams beside the callers'.
    own: Vec<Option<Stream>>,
    /// All streams of the stream plan; those of callers are put in when a run begins.
    handles: Vec<StreamHandle>,
    bases: Vec<Pointer>,
    firsts: Vec<usize>,
    /// The end of the last run on each rank, and the stream that it was on.
    ends: Vec<(Event, Option<StreamHandle>)>,
    operation: u64,
    failed: Option<GroupError>,
    // After the rest, so that nothing runs when it is freed.
    scratch: Vec<DeviceBuffer>,
}

impl Prepared {
    pub(crate) fn new(
        stream_plan: StreamPlan,
        devices: &[Arc<Device>],
        loader: &mut Loader<'_>,
    ) -> Result<Prepared, GroupError> {
        let on_rank = |rank: usize, error| located(&stream_plan, 0, rank, None, error);
        let mut events = Vec::with_capacity(stream_plan.events as usize);
        for work in stream_plan.work.iter() {
            if let Deed::Record(event) = work.deed {
                let rank = stream_plan.streams[work.stream as usize].rank as usize;
                events.push((event, Event::new(&devices[rank]).map_err(|error| on_rank(rank, error))?));
            }
        }
        events.sort_by_key(|(event, _)| *event);
        let (mut own, mut scratch, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (rank, part) in stream_plan.ranks.iter().enumerate() {
            let device = &devices[rank];
            let mut make = || -> Result<(), GpuError> {
                own.push(None);
                for _ in part.streams.clone().skip(1) {
                    own.push(Some(Stream::new(device)?));
                }
                scratch.push(DeviceBuffer::new(device, part.scratch_bytes)?);
                ends.push((Event::new(device)?, None));
                Ok(())
            };
            make().map_err(|error| on_rank(rank, error))?;
        }
        let commands = Commands::new(&stream_plan, devices, loader)
            .map_err(|(work, error)| at_work(&stream_plan, 0, work, error))?;
        let firsts: Vec<usize> =
            (0..stream_plan.ranks.len()).map(|rank| first_base(&stream_plan, rank)).collect();
        let mut bases = vec![Pointer::NOWHERE; first_base(&stream_plan, stream_plan.ranks.len())];
        for (rank, scratch) in scratch.iter().enumerate() {
            bases[firsts[rank]] = scratch.pointer();
        }
        let nowhere = StreamHandle::DEFAULT;
        let handles = own.iter().map(|stream| stream.as_ref().map_or(nowhere, Stream::handle)).collect();
        Ok(Prepared {
            stream_plan,
            commands,
            devices: devices.to_vec(),
            events: events.into_iter().map(|(_, event)| event).collect(),
            own,
            handles,
            bases,
            firsts,
            ends,
            operation: 0,
            failed: None,
            scratch,
        })
    }

    /// The work that it puts on streams.
    pub fn stream_plan(&self) -> &StreamPlan {
        &self.stream_plan
    }

    /// Bytes of device memory beside the caller's buffers, over all ranks.
    pub fn scratch_bytes(&self) -> u64 {
        self.scratch.iter().map(DeviceBuffer::bytes).sum()
    }

    /// Puts a run on streams, and returns at once. On each rank it begins when all that is on the caller's stream is
    /// done, and what is put on that stream afterwards begins when the rank's part is done: then results are there, and
    /// inputs may be overwritten.
    ///
    /// `buffers` are for each rank those of the contract, in order; `streams` one for each rank. It may be called while the
    /// streams are being captured into a graph.
    ///
    /// # Errors
    /// Buffers that are not as they were bound are refused, and nothing is put anywhere. After any other error every later
    /// call gives it again.
    pub fn launch(
        &mut self,
        buffers: &[Vec<BufferPointers>],
        streams: &[StreamHandle],
    ) -> Result<(), GroupError> {
        self.begin(buffers)?;
        self.check_streams(streams)?;
        let done = self.put(streams);
        self.note(done)
    }

    /// Waits until the last run is done on all ranks.
    ///
    /// # Errors
    /// It takes longer than `limit`, or a device has failed.
    pub fn wait(&mut self, limit: Duration) -> Result<(), GroupError> {
        self.check_failed()?;
        let done = self.wait_ends(limit);
        if matches!(done, Err(GroupError::TimedOut { .. })) { done } else { self.note(done) }
    }

    /// Takes the buffers of a run, if they are as they were bound.
    pub(crate) fn begin(&mut self, buffers: &[Vec<BufferPointers>]) -> Result<(), GroupError> {
        self.check_failed()?;
        let ranks = self.stream_plan.ranks.len();
        if buffers.len() != ranks {
            return Err(GroupError::Ranks { what: "lists of buffers", found: buffers.len(), ranks });
        }
        for (rank, given) in buffers.iter().enumerate() {
            check_buffers(&self.stream_plan, rank, given)?;
            for (at, pointers) in given.iter().enumerate() {
                let base = self.firsts[rank] + 1 + 2 * at;
                (self.bases[base], self.bases[base + 1]) = (pointers.input, pointers.output);
            }
        }
        Ok(())
    }

    pub(crate) fn check_streams(&self, streams: &[StreamHandle]) -> Result<(), GroupError> {
        let ranks = self.stream_plan.ranks.len();
        match streams.len() == ranks {
            true => Ok(()),
            false => Err(GroupError::Ranks { what: "streams", found: streams.len(), ranks }),
        }
    }

    fn check_failed(&self) -> Result<(), GroupError> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn note<T>(&mut self, done: Result<T, GroupError>) -> Result<T, GroupError> {
        if let Err(error) = &done {
            self.failed.get_or_insert_with(|| error.clone());
        }
        done
    }

    fn put(&mut self, streams: &[StreamHandle]) -> Result<(), GroupError> {
        self.operation += 1;
        let operation = self.operation;
        let located =
            |stream_plan: &StreamPlan, rank, error| located(stream_plan, operation, rank, None, error);
        for (rank, &stream) in streams.iter().enumerate() {
            let first = self.stream_plan.ranks[rank].streams.start;
            self.handles[first as usize] = stream;
        }
        let captures = |rank: usize| {
            let asked = streams[rank].is_capturing(&self.devices[rank]);
            asked.map_err(|error| located(&self.stream_plan, rank, error))
        };
        let captured = captures(0)?;
        let mut current = Current::caller()?;
        for (rank, (end, last)) in self.ends.iter().enumerate() {
            // A capture knows nothing of what ran before it.
            if !captured && last.is_some_and(|last| last != streams[rank]) {
                let waits = current.switch(&self.devices[rank]).and_then(|()| streams[rank].wait(end));
                waits.map_err(|error| located(&self.stream_plan, rank, error))?;
            }
        }
        self.enqueue(operation, &mut current)?;
        for (rank, (end, last)) in self.ends.iter_mut().enumerate().filter(|_| !captured) {
            let recorded = current.switch(&self.devices[rank]).and_then(|()| end.record(streams[rank]));
            recorded.map_err(|error| located(&self.stream_plan, rank, error))?;
            *last = Some(streams[rank]);
        }
        Ok(())
    }

    /// Puts all work on the streams that are in `handles`.
    pub(crate) fn enqueue(&self, operation: u64, current: &mut Current) -> Result<(), GroupError> {
        // Ranks of one process wait for events alone.
        let words = Words::Number(operation as u32);
        let done = self.commands.enqueue(&self.bases, &self.handles, &self.events, words, current);
        done.map_err(|(work, error)| at_work(&self.stream_plan, operation, work, error))
    }

    /// Takes streams of one's own for those of callers.
    pub(crate) fn take_streams(&mut self, streams: &[Stream]) {
        for (part, stream) in self.stream_plan.ranks.iter().zip(streams) {
            self.handles[part.streams.start as usize] = stream.handle();
        }
    }

    fn wait_ends(&self, limit: Duration) -> Result<(), GroupError> {
        let (start, mut looks) = (Instant::now(), 0u32);
        for (rank, (end, last)) in self.ends.iter().enumerate() {
            while last.is_some() {
                let failed =
                    |error| located(&self.stream_plan, self.operation, rank, self.stands_at(rank), error);
                if end.is_done().map_err(failed)? {
                    break;
                }
                if start.elapsed() >= limit {
                    return Err(self.timed_out(rank, limit));
                }
                looks = looks.saturating_add(1);
                if looks > LOOKS {
                    let sleep = Duration::from_micros(u64::from(looks - LOOKS)).min(SLEEP_MAX);
                    std::thread::sleep(sleep.min(limit.saturating_sub(start.elapsed())));
                }
            }
        }
        Ok(())
    }

    fn timed_out(&self, rank: usize, limit: Duration) -> GroupError {
        GroupError::TimedOut {
            rank: rank as u32,
            operation: self.operation,
            name: self.stream_plan.name.clone(),
            place: self.stands_at(rank).map(Box::new),
            device: self.devices[rank].number(),
            limit,
        }
    }

    /// The first operation of a rank of which the end is known and not reached.
    fn stands_at(&self, rank: usize) -> Option<Place> {
        let streams = &self.stream_plan.ranks[rank].streams;
        let open = self.stream_plan.work.iter().find(|work| match work.deed {
            Deed::Record(event) if streams.contains(&work.stream) => {
                work.origin != Origin::Prepare && matches!(self.events[event as usize].is_done(), Ok(false))
            }
            _ => false,
        })?;
        self.stream_plan.place(open)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // Work that is under way uses the streams, the events and the scratch that go now.
        for (end, last) in &self.ends {
            if last.is_some() {
                let _ = end.synchronize();
            }
        }
        debug_assert_eq!(self.own.len(), self.handles.len());
    }
}

/// What kernels want addresses of elements to be multiples of; 1 where bytes are copied only.
fn alignment(stream_plan: &StreamPlan, rank: usize) -> u64 {
    let outline = &stream_plan.ranks[rank].outline;
    let reduced = outline.reducer.as_ref().map(|reducer| reducer.dtype().part());
    let cast = outline.cast.map(|cast| cast.parts().0);
    // Where elements are prepared, it is working elements that travel.
    reduced.or(cast).map_or(1, |part| part.size_bytes())
}

/// Whether a rank's buffers are given as they were bound.
pub(crate) fn check_buffers(
    stream_plan: &StreamPlan,
    rank: usize,
    given: &[BufferPointers],
) -> Result<(), GroupError> {
    let bound = &stream_plan.ranks[rank].outline.buffers;
    let wrong = |buffer: &str, expected: String, found: String| {
        Err(GroupError::Buffer { rank: rank as u32, buffer: buffer.to_string(), expected, found })
    };
    if given.len() != bound.len() {
        let (expected, found) = (format!("{} buffers", bound.len()), format!("{}", given.len()));
        return wrong("all", expected, found);
    }
    let align = alignment(stream_plan, rank);
    for (buffer, pointers) in bound.iter().zip(given) {
        let parts = match buffer.placement {
            Placement::InPlace => {
                [("the memory", pointers.output, buffer.bytes[1]), ("", Pointer::NOWHERE, 0)]
            }
            Placement::Separate => [
                ("the input", pointers.input, buffer.bytes[0]),
                ("the output", pointers.output, buffer.bytes[1]),
            ],
        };
        for (part, pointer, bytes) in parts {
            if bytes > 0 && pointer == Pointer::NOWHERE {
                return wrong(&buffer.name, format!("{bytes} B of {part}"), "a null pointer".to_string());
            }
            if bytes > 0 && !pointer.address().is_multiple_of(align) {
                let found = format!("an address that is no multiple of it, {:#x},", pointer.address());
                return wrong(&buffer.name, format!("{part} aligned to its elements' {align} B"), found);
            }
        }
    }
    Ok(())
}

pub(crate) fn located(
    stream_plan: &StreamPlan,
    operation: u64,
    rank: usize,
    place: Option<Place>,
    fault: GpuError,
) -> GroupError {
    GroupError::Enqueue {
        rank: rank as u32,
        operation,
        name: stream_plan.name.clone(),
        place: place.map(Box::new),
        device: stream_plan.ranks[rank].device,
        fault: Box::new(fault),
    }
}

fn at_work(stream_plan: &StreamPlan, operation: u64, work: usize, fault: GpuError) -> GroupError {
    let work = &stream_plan.work[work];
    let rank = stream_plan.streams[work.stream as usize].rank as usize;
    located(stream_plan, operation, rank, stream_plan.place(work), fault)
}
