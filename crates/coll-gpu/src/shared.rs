//! Ranks that are processes of one machine, each with a device: they open each other's memory, and their streams wait for
//! each other by words in it.
//!
//! Every process makes the stream plan of all ranks, which is the same everywhere, and puts its own rank's part on streams. An
//! event that another process waits for is a word in that process's memory, which the stream that records it writes with the
//! number of the run. A stream waits for words in its own memory only.
//!
//! Ranks of other machines are reached by a [`Network`], for messages to which a porter is there; see `porter.rs`.

mod graph;

pub use graph::SharedGraph;

use crate::across::{Across, fingerprint};
use crate::commands::{Commands, Words, bases, first_base};
use crate::driver::{
    Current, Device, DeviceBuffer, Driver, Event, Opened, Pointer, SHARE_BYTES, Share, Stream, StreamHandle,
};
use crate::kernels::{Compile, Loader, Shelf, WithNvrtc};
use crate::porter::Carriage;
use crate::prepared::{BufferPointers, check_buffers, located};
use crate::stream_plan::{Layout, StreamPlan};
use crate::{Call, GpuError, GroupError, Network};
use coll_exec::FINGERPRINT_BYTES;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How processes tell each other a few bytes, whatever it goes by.
pub trait Exchange: Send {
    /// Gives this process's bytes, and gets those of every rank, in order. Every process calls it as often.
    ///
    /// # Errors
    /// In words, if a process does not answer.
    fn exchange(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, String>;
}

/// This process's rank among processes of one machine, or of several.
pub struct Shared {
    rank: u32,
    ranks: u32,
    device: Arc<Device>,
    exchange: Box<dyn Exchange>,
    compiler: Arc<dyn Compile>,
    shelf: Shelf,
    /// What there is for ranks of other machines.
    across: Option<Across>,
}

/// A call that is ready on this process's rank, on buffers that all ranks know.
///
/// Its buffers and those of the other ranks must stay where they are until [`Shared::close`] gives it back.
pub struct SharedCall {
    rank: u32,
    stream_plan: StreamPlan,
    commands: Commands,
    device: Arc<Device>,
    events: Vec<Event>,
    own: Vec<Stream>,
    handles: Vec<StreamHandle>,
    bases: Vec<Pointer>,
    /// For each stream of its own that has work, that all of it is done: what a lane did last may be heard of by another rank
    /// alone, and must be over before anything is given back.
    joins: Vec<(usize, Event)>,
    end: Event,
    last: Option<StreamHandle>,
    operation: u64,
    failed: Option<GroupError>,
    /// What goes between machines.
    carriage: Option<Carriage>,
    // What others read and write, and what of theirs is opened here; last, so that nothing runs when it goes.
    words: DeviceBuffer,
    _scratch: DeviceBuffer,
    opened: BTreeMap<(u32, [u8; 64]), Opened>,
}

impl Shared {
    /// Joins: this process is a rank, on a device.
    ///
    /// # Errors
    /// There is no driver, or no such device.
    pub fn join(rank: u32, ranks: u32, device: u32, exchange: Box<dyn Exchange>) -> Result<Shared, GpuError> {
        let device = Device::open(Driver::open()?, device)?;
        let (compiler, shelf) = (Arc::new(WithNvrtc), Shelf::default());
        Ok(Shared { rank, ranks, device, exchange, compiler, shelf, across: None })
    }

    /// Says which machine each rank is on: those of others are reached by a network. What goes to them is copied through pinned
    /// memory of the host, slice by slice, and sent by a thread of this process. Their links are those of the plans that are
    /// run, and must be there before.
    ///
    /// # Errors
    /// Not as many machines as ranks; the system has no thread left.
    pub fn across(self, machines: Vec<u32>, network: Box<dyn Network>) -> Result<Shared, GroupError> {
        let across = Some(Across::new((self.rank, self.ranks), machines, network)?);
        Ok(Shared { across, ..self })
    }

    /// How long the slices are in which messages to other machines are copied and sent, in bytes; 512 KiB if it is not said.
    pub fn slice_bytes(mut self, bytes: usize) -> Shared {
        if let Some(across) = &mut self.across {
            across.slice_bytes = bytes.max(1);
        }
        self
    }

    /// Has operators of one's own compiled by something else than NVRTC.
    pub fn compiler(self, compiler: Arc<dyn Compile>) -> Shared {
        Shared { compiler, ..self }
    }

    /// This process's device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Waits until all ranks have come here. Before a rank's buffers change or go, the others must be done with them.
    ///
    /// # Errors
    /// A rank does not answer.
    pub fn meet(&mut self) -> Result<(), GroupError> {
        self.settle();
        let met = self.exchange.exchange(Told::Memory(Vec::new()).to_bytes());
        met.map(|_| ()).map_err(|what| GroupError::Exchange { rank: self.rank, what })
    }

    /// Gives a call back. All ranks do so for the same call, in the same order: what others have opened may only be freed once
    /// they have closed it, which dropping a call does not wait for.
    ///
    /// # Errors
    /// A rank does not answer.
    pub fn close(&mut self, call: impl Into<SharedCall>) -> Result<(), GroupError> {
        let mut call = call.into();
        call.settle();
        call.opened.clear();
        self.meet()
    }

    /// Makes a call ready on these buffers of this rank. All ranks do so for the same call, in the same order.
    ///
    /// # Errors
    /// As [`Group::prepare`](crate::Group::prepare); memory of another rank that cannot be opened here; a rank that does not
    /// answer. A rank that fails tells the others, and all fail.
    pub fn prepare(&mut self, call: &Call<'_>, buffers: &[BufferPointers]) -> Result<SharedCall, GroupError> {
        let stream_plan = self.stream_plan(call);
        self.ready(stream_plan, buffers)
    }

    /// The stream work of a call, of all ranks.
    pub fn stream_plan(&self, call: &Call<'_>) -> Result<StreamPlan, GroupError> {
        // Whoever opens another's memory reaches it.
        let machines = self.across.as_ref().map_or(Vec::new(), |across| across.machines.clone());
        let layout = Layout { machines, ..Layout::one_device(self.ranks) };
        Ok(StreamPlan::new(call.outlines(self.ranks)?, &layout)?)
    }

    /// Makes a stream plan ready that was made by [`Shared::stream_plan`], or changed since in the same way on all ranks.
    pub fn prepare_stream_plan(
        &mut self,
        stream_plan: StreamPlan,
        buffers: &[BufferPointers],
    ) -> Result<SharedCall, GroupError> {
        self.ready(Ok(stream_plan), buffers)
    }

    /// What is under way to other machines ends first, for the network may be what ranks tell each other by.
    fn settle(&self) {
        if let Some(across) = &self.across {
            across.porter.settle();
        }
    }

    fn is_near(&self, rank: u32) -> bool {
        let machine = |rank: u32| self.across.as_ref().map(|across| across.machines[rank as usize]);
        machine(rank) == machine(self.rank)
    }

    fn ready(
        &mut self,
        stream_plan: Result<StreamPlan, GroupError>,
        buffers: &[BufferPointers],
    ) -> Result<SharedCall, GroupError> {
        let made = stream_plan.and_then(|stream_plan| self.make(stream_plan, buffers));
        self.settle();
        let told = match &made {
            Ok(parts) => Told::Memory(parts.shares.clone()),
            Err(error) => Told::Failed(error.to_string()),
        };
        let all = self.exchange.exchange(told.to_bytes());
        let all = all.map_err(|what| GroupError::Exchange { rank: self.rank, what })?;
        let mut shares = Vec::with_capacity(all.len());
        for (rank, bytes) in (0u32..).zip(&all) {
            match Told::from_bytes(bytes) {
                Some(Told::Memory(memory)) => shares.push(memory),
                Some(Told::Failed(what)) if rank != self.rank => {
                    return Err(GroupError::Exchange { rank, what });
                }
                Some(Told::Failed(_)) => shares.push(Vec::new()),
                None => {
                    let what =
                        "it says what cannot be read: do all processes run the same program?".to_string();
                    return Err(GroupError::Exchange { rank, what });
                }
            }
        }
        let parts = made?;
        let opened = self.open(parts, &shares);
        // Nobody runs before all have opened what they need.
        self.agree(opened)
    }

    /// Every rank tells whether it goes on, and gives up if another does.
    fn agree<T>(&mut self, done: Result<T, GroupError>) -> Result<T, GroupError> {
        let told =
            done.as_ref().err().map_or(Told::Memory(Vec::new()), |error| Told::Failed(error.to_string()));
        let all = self.exchange.exchange(told.to_bytes());
        let all = all.map_err(|what| GroupError::Exchange { rank: self.rank, what })?;
        let done = done?;
        for (rank, bytes) in (0u32..).zip(&all) {
            if let Some(Told::Failed(what)) = Told::from_bytes(bytes) {
                return Err(GroupError::Exchange { rank, what });
            }
        }
        Ok(done)
    }

    fn make(&self, stream_plan: StreamPlan, buffers: &[BufferPointers]) -> Result<Parts, GroupError> {
        let fingerprint = fingerprint(&stream_plan);
        let mut stream_plan = stream_plan.of_rank(self.rank);
        stream_plan.ranks.iter_mut().for_each(|part| part.device = self.device.number());
        let at = self.rank as usize;
        check_buffers(&stream_plan, at, buffers)?;
        let on_rank = |error| located(&stream_plan, 0, at, None, error);
        let scratch =
            DeviceBuffer::new(&self.device, stream_plan.ranks[at].scratch_bytes).map_err(on_rank)?;
        let words = (u64::from(stream_plan.events) * 4).max(4);
        let mut words = DeviceBuffer::new(&self.device, words).map_err(on_rank)?;
        words.fill(0).map_err(on_rank)?;
        let is_alone = (0..self.ranks).all(|rank| rank == self.rank || !self.is_near(rank));
        let share = |pointer: Pointer| match pointer {
            Pointer::NOWHERE => Ok(None),
            _ if is_alone => Ok(None),
            pointer => Share::of(&self.device, pointer).map(Some),
        };
        let mine = [scratch.pointer(), words.pointer()];
        let theirs = buffers.iter().flat_map(|buffer| [buffer.input, buffer.output]);
        let pointers: Vec<Pointer> = mine.into_iter().chain(theirs).collect();
        let shares =
            pointers.iter().map(|&pointer| share(pointer)).collect::<Result<_, _>>().map_err(on_rank)?;
        Ok(Parts { stream_plan, scratch, words, pointers, shares, fingerprint })
    }

    fn open(&self, parts: Parts, shares: &[Vec<Option<Share>>]) -> Result<SharedCall, GroupError> {
        let Parts { stream_plan, scratch, words, pointers, fingerprint, .. } = parts;
        let at = self.rank as usize;
        let on_rank = |error| located(&stream_plan, 0, at, None, error);
        let total = first_base(&stream_plan, stream_plan.ranks.len());
        let mut bases = vec![Pointer::NOWHERE; bases(&stream_plan)];
        let mut opened: BTreeMap<(u32, [u8; 64]), Opened> = BTreeMap::new();
        for (rank, shares) in shares.iter().enumerate().filter(|(rank, _)| self.is_near(*rank as u32)) {
            let first = first_base(&stream_plan, rank);
            // Scratch and words come first, then the buffers.
            let place = |number: usize| match number {
                0 => first,
                1 => total + rank,
                buffer => first + buffer - 1,
            };
            if rank == at {
                pointers.iter().enumerate().for_each(|(number, &pointer)| bases[place(number)] = pointer);
                continue;
            }
            for (number, share) in shares.iter().enumerate().filter_map(|(n, s)| s.map(|share| (n, share))) {
                let key = (rank as u32, share.allocation());
                if let std::collections::btree_map::Entry::Vacant(vacant) = opened.entry(key) {
                    let memory = Opened::new(&self.device, share.allocation(), rank as u32);
                    vacant.insert(memory.map_err(on_rank)?);
                }
                if let Some(base) = bases.get_mut(place(number)) {
                    *base = share.within(&opened[&key]);
                }
            }
        }
        let mut loader = Loader::new(&self.shelf, &*self.compiler, stream_plan.arithmetic.as_ref())?;
        let devices = vec![self.device.clone(); stream_plan.ranks.len()];
        let commands = Commands::new(&stream_plan, &devices, &mut loader).map_err(|(work, error)| {
            located(&stream_plan, 0, at, stream_plan.place(&stream_plan.work[work]), error)
        })?;
        let carriage = match &self.across {
            None => None,
            Some(across) => {
                let place = (self.rank, &self.device);
                let (carriage, words) =
                    across.take(&stream_plan, place, &bases, fingerprint).map_err(on_rank)?;
                *bases.last_mut().expect("invariant: the last base is theirs") = words;
                Some(carriage)
            }
        };
        let make = || -> Result<_, GpuError> {
            let events =
                (0..stream_plan.events).map(|_| Event::new(&self.device)).collect::<Result<_, _>>()?;
            let streams = stream_plan.ranks[at].streams.clone().skip(1);
            let own = streams.map(|_| Stream::new(&self.device)).collect::<Result<Vec<_>, _>>()?;
            Ok((events, own, Event::new(&self.device)?))
        };
        let (events, own, end) = make().map_err(on_rank)?;
        let lanes = graph::lanes(&stream_plan, at).into_iter();
        let joins = lanes.map(|lane| Ok((lane, Event::new(&self.device)?))).collect::<Result<_, _>>();
        let joins = joins.map_err(on_rank)?;
        let mut handles = vec![StreamHandle::DEFAULT; stream_plan.streams.len()];
        let first = stream_plan.ranks[at].streams.start as usize;
        own.iter().enumerate().for_each(|(lane, stream)| handles[first + 1 + lane] = stream.handle());
        Ok(SharedCall {
            rank: self.rank,
            commands,
            device: self.device.clone(),
            events,
            own,
            handles,
            bases,
            joins,
            end,
            last: None,
            operation: 0,
            failed: None,
            carriage,
            words,
            _scratch: scratch,
            opened,
            stream_plan,
        })
    }
}

/// What a rank has before it knows of others.
struct Parts {
    stream_plan: StreamPlan,
    scratch: DeviceBuffer,
    words: DeviceBuffer,
    /// Scratch, words, then input and output of each buffer.
    pointers: Vec<Pointer>,
    shares: Vec<Option<Share>>,
    fingerprint: [u8; FINGERPRINT_BYTES],
}

/// What a rank tells the others.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Memory(Vec<Option<Share>>),
    Failed(String),
}

impl Told {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Told::Failed(what) => [b"!", what.as_bytes()].concat(),
            Told::Memory(shares) => {
                let mut bytes = vec![b'M'];
                for share in shares {
                    bytes.push(share.is_some().into());
                    bytes.extend(share.map_or([0; SHARE_BYTES], Share::to_bytes));
                }
                bytes
            }
        }
    }

    /// None of what no rank says.
    fn from_bytes(bytes: &[u8]) -> Option<Told> {
        match bytes.split_first()? {
            (b'!', what) => Some(Told::Failed(String::from_utf8_lossy(what).into_owned())),
            (b'M', shares) if shares.len().is_multiple_of(SHARE_BYTES + 1) => {
                let share = |bytes: &[u8]| {
                    let (&there, share) = bytes.split_first()?;
                    Some((there == 1).then_some(Share::from_bytes(share.first_chunk()?)))
                };
                shares.chunks(SHARE_BYTES + 1).map(share).collect::<Option<_>>().map(Told::Memory)
            }
            _ => None,
        }
    }
}

impl SharedCall {
    /// Puts a run of this rank's part on a stream, and returns at once; see
    /// [`Prepared::launch`](crate::Prepared::launch). Every rank runs it as often.
    ///
    /// # Errors
    /// The device refuses it; every later call then gives that error again.
    pub fn launch(&mut self, stream: StreamHandle) -> Result<(), GroupError> {
        self.failed.clone().map_or(Ok(()), Err)?;
        self.operation += 1;
        let first = self.stream_plan.ranks[self.rank as usize].streams.start as usize;
        self.handles[first] = stream;
        let done = self.put(stream);
        if let Err(error) = &done {
            self.failed.get_or_insert_with(|| error.clone());
            self.give_up(Duration::ZERO);
        }
        done
    }

    fn put(&mut self, stream: StreamHandle) -> Result<(), GroupError> {
        let at = self.rank as usize;
        let on_rank = |error| located(&self.stream_plan, self.operation, at, None, error);
        let mut current = Current::of(&self.device)?;
        if self.last.is_some_and(|last| last != stream) {
            stream.wait(&self.end).map_err(on_rank)?;
        }
        // Words are compared in a circle, so a number that wraps is no end.
        let run = self.operation as u32;
        if let Some(carriage) = &self.carriage {
            carriage.run(run);
        }
        self.enqueue(Words::Number(run), &mut current)?;
        self.join(stream).map_err(on_rank)?;
        self.end.record(stream).map_err(on_rank)?;
        self.last = Some(stream);
        Ok(())
    }

    /// Has a stream go on when all others of the rank are done.
    fn join(&self, stream: StreamHandle) -> Result<(), GpuError> {
        self.joins.iter().try_for_each(|(lane, join)| {
            join.record(self.handles[*lane])?;
            stream.wait(join)
        })
    }

    /// Puts all work on the streams that are in `handles`.
    fn enqueue(&self, words: Words, current: &mut Current) -> Result<(), GroupError> {
        let done = self.commands.enqueue(&self.bases, &self.handles, &self.events, words, current);
        done.map_err(|(work, error)| {
            let place = self.stream_plan.place(&self.stream_plan.work[work]);
            located(&self.stream_plan, self.operation, self.rank as usize, place, error)
        })
    }

    /// Waits until this rank's part of the last run is done.
    ///
    /// # Errors
    /// It takes longer than `limit`: another rank has not come, or is gone. The call is of no use any more then; streams that
    /// wait for the others are let go on, and what is in the outputs is no result.
    pub fn wait(&mut self, limit: Duration) -> Result<(), GroupError> {
        self.wait_unless(limit, &mut || None)
    }

    /// The same, but it ends early where `ended` says, in words, that another rank will not come: it is asked now and then.
    ///
    /// # Errors
    /// As [`SharedCall::wait`], and what `ended` says.
    pub fn wait_unless(
        &mut self,
        limit: Duration,
        ended: &mut dyn FnMut() -> Option<String>,
    ) -> Result<(), GroupError> {
        self.failed.clone().map_or(Ok(()), Err)?;
        let start = Instant::now();
        let at = self.rank as usize;
        while self.last.is_some() {
            let done = self.end.is_done();
            if let Some(error) = self.carriage.as_ref().and_then(Carriage::failure) {
                self.failed = Some(error.clone());
                self.let_go();
                return Err(error);
            }
            if done.map_err(|error| located(&self.stream_plan, self.operation, at, None, error))? {
                break;
            }
            let late = start.elapsed() >= limit;
            let error = match ended() {
                Some(what) => GroupError::Exchange { rank: self.rank, what },
                None if late => self.timed_out(limit),
                None => {
                    std::thread::sleep(LOOK.min(limit));
                    continue;
                }
            };
            self.failed = Some(error.clone());
            self.give_up(limit);
            self.let_go();
            return Err(error);
        }
        Ok(())
    }

    /// What goes between machines ends, and streams that wait for it go on.
    fn give_up(&self, limit: Duration) {
        if let Some(carriage) = &self.carriage {
            carriage.give_up(limit, self.operation as u32);
        }
    }

    fn timed_out(&self, limit: Duration) -> GroupError {
        GroupError::TimedOut {
            rank: self.rank,
            operation: self.operation,
            name: self.stream_plan.name.clone(),
            place: None,
            device: self.device.number(),
            limit,
        }
    }

    /// Comes back when nothing runs any more.
    fn settle(&mut self) {
        if self.last.is_some() {
            let is_lost = || self.carriage.as_ref().is_some_and(|carriage| carriage.failure().is_some());
            while self.failed.is_none() && !is_lost() && matches!(self.end.is_done(), Ok(false)) {
                std::thread::sleep(Duration::from_micros(50));
            }
            if self.failed.is_some() || is_lost() {
                self.let_go();
            }
            let _ = self.end.synchronize();
        }
    }

    /// Every word comes to a value that no wait is beyond: what hangs on others that do not come goes on. A graph sets a word
    /// back once it was heard, so several runs need it as often.
    fn let_go(&mut self) {
        let start = Instant::now();
        // By a stream of its own, for all others may hang. If even that fails the device is lost, and what hangs on it as well.
        let Ok(stream) = Stream::new(&self.device) else { return };
        while matches!(self.end.is_done(), Ok(false)) && start.elapsed() < LET_GO {
            let filled = match stream.handle().is_idle(&self.device) {
                Ok(true) => self.words.fill_on(0x7f, &stream),
                other => other.map(drop),
            };
            if filled.is_err() {
                return;
            }
            std::thread::sleep(LOOK);
        }
        // The last fill may still be under way, and the words go soon. Nothing hangs any more, so this does not.
        if matches!(self.end.is_done(), Ok(true)) {
            let _ = stream.synchronize();
        }
    }
}

/// How often a wait looks whether all is done.
const LOOK: Duration = Duration::from_micros(50);

/// What still hangs after so long does not hang on other ranks.
const LET_GO: Duration = Duration::from_secs(2);

impl Drop for SharedCall {
    fn drop(&mut self) {
        self.settle();
        self.own.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ranks_tell_each_other_reads_back() {
        let share = Share::from_bytes(&std::array::from_fn(|at| at as u8));
        for told in
            [Told::Memory(vec![Some(share), None]), Told::Memory(Vec::new()), Told::Failed("no".into())]
        {
            assert_eq!(Told::from_bytes(&told.to_bytes()), Some(told));
        }
        for bytes in [&b""[..], b"x", b"M1", &[b'M'; 40]] {
            assert_eq!(Told::from_bytes(bytes), None);
        }
    }
}
