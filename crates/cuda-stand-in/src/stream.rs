//! Streams: queues of work, and what puts work into them.

use crate::clock::Clock;
use crate::code::{Answer, Code};
use crate::driver::Driver;
use crate::work::{Record, Touch, Work};
use std::collections::VecDeque;
use std::sync::Arc;

/// What a stream is to its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Stream 0, which is ordered with all blocking ones.
    Default,
    Blocking,
    NonBlocking,
    /// A branch of a graph that was launched.
    Branch,
}

/// An operation in a queue.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) work: Work,
    /// What the host knew as it enqueued it.
    pub(crate) host: Arc<Clock>,
    /// The operation and its stream, for reports.
    pub(crate) what: Arc<str>,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) context: u64,
    pub(crate) actor: usize,
    pub(crate) role: Role,
    pub(crate) label: String,
    pub(crate) priority: i32,
    /// What is known after all that has been done.
    pub(crate) clock: Clock,
    pub(crate) queue: VecDeque<Operation>,
    /// One of its operations is being done, without the lock.
    pub(crate) busy: bool,
    /// It ends once its work has been done.
    pub(crate) dying: bool,
    /// The capture that it is part of.
    pub(crate) capture: Option<u64>,
    /// Operations that a caller enqueued.
    asked: u64,
    /// How many of them the default stream waits for, or, of the default stream, this one.
    seen_by_default: u64,
    seen_of_default: u64,
    /// How readily the scheduler takes it.
    pub(crate) weight: u64,
    /// The thread whose own default stream it is.
    pub(crate) thread: Option<usize>,
}

impl Stream {
    pub(crate) fn new(actor: usize, context: u64, label: String, role: Role) -> Stream {
        Stream {
            context,
            actor,
            role,
            label,
            priority: 0,
            clock: Clock::default(),
            queue: VecDeque::new(),
            busy: false,
            dying: false,
            capture: None,
            asked: 0,
            seen_by_default: 0,
            seen_of_default: 0,
            weight: 0,
            thread: None,
        }
    }

    /// True for one that a caller made and has not destroyed.
    pub(crate) fn is_callers(&self) -> bool {
        matches!(self.role, Role::Blocking | Role::NonBlocking) && !self.dying && self.thread.is_none()
    }
}

/// Handles that mean a stream of the current context.
const LEGACY: u64 = 1;
const PER_THREAD: u64 = 2;

impl Driver {
    /// A new stream of a context.
    pub(crate) fn create_stream(&mut self, context: u64, role: Role, priority: i32) -> Answer<u64> {
        let device = self.context(context)?.device;
        let handle = self.handle();
        let label = format!("stream {handle:#x} of device {device}");
        let mut stream = Stream::new(self.actor(), context, label, role);
        stream.priority = priority;
        stream.weight = self.random.next();
        self.streams.insert(handle, stream);
        Ok(handle)
    }

    /// The stream that a caller means.
    pub(crate) fn stream(&mut self, handle: u64) -> Answer<u64> {
        let meant = match handle {
            0 | LEGACY => {
                let context = self.current_context()?;
                self.context(context)?.default
            }
            PER_THREAD => self.stream_of_thread()?,
            handle => handle,
        };
        match self.streams.get(&meant) {
            Some(stream) if !stream.dying && stream.role != Role::Branch => {
                let context = stream.context;
                self.sound(context)?;
                Ok(meant)
            }
            Some(_) => Err(self.wrong(Code::INVALID_HANDLE, format!("stream {handle:#x} was destroyed"))),
            None => Err(self.wrong(Code::INVALID_HANDLE, format!("{handle:#x} is no stream"))),
        }
    }

    fn stream_of_thread(&mut self) -> Answer<u64> {
        let (context, thread) = (self.current_context()?, crate::driver::thread());
        let mine = |stream: &Stream| stream.thread == Some(thread) && stream.context == context;
        if let Some((&handle, _)) = self.streams.iter().find(|(_, stream)| mine(stream)) {
            return Ok(handle);
        }
        let handle = self.create_stream(context, Role::Blocking, 0)?;
        self.streams.entry(handle).and_modify(|stream| stream.thread = Some(thread));
        Ok(handle)
    }

    /// Puts work at the end of a stream's queue, or of its capture.
    pub(crate) fn enqueue(&mut self, stream: u64, work: Work) -> Answer {
        self.may_enqueue(stream)?;
        if let Some(capture) = self.streams[&stream].capture {
            return self.add_to_capture(capture, stream, work);
        }
        self.order_with_default(stream);
        self.push(stream, work);
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.asked += 1;
        }
        Ok(())
    }

    /// Stream 0 may not be used while a blocking stream of its context is capturing, nor the other way round.
    pub(crate) fn may_enqueue(&mut self, stream: u64) -> Answer {
        let (role, context) = (self.streams[&stream].role, self.streams[&stream].context);
        let captures = |other: &Stream| {
            other.context == context && other.role == Role::Blocking && other.capture.is_some()
        };
        if role != Role::Default || !self.streams.values().any(captures) {
            return Ok(());
        }
        let caught: Vec<u64> =
            self.streams.values().filter(|s| captures(s)).filter_map(|s| s.capture).collect();
        caught.into_iter().for_each(|capture| self.invalidate(capture));
        Err(self.wrong(Code::STREAM_CAPTURE_IMPLICIT, "stream 0 waits for a stream that is capturing"))
    }

    /// Puts work at the end of a queue, whatever it is.
    pub(crate) fn push(&mut self, stream: u64, work: Work) {
        self.operations += 1;
        let number = self.operations;
        let host = self.host_clock();
        let Some(stream) = self.streams.get_mut(&stream) else { return };
        let what = format!("{} (operation {number} in {})", work.told(), stream.label).into();
        stream.queue.push_back(Operation { work, host, what });
        self.full |= stream.queue.len() > self.config.depth;
    }

    /// A point after all that a stream has to do now.
    pub(crate) fn mark(&mut self, stream: u64) -> Arc<Record> {
        let record = Arc::new(Record::default());
        self.push(stream, Work::Record(record.clone()));
        record
    }

    /// Stream 0 waits for what blocking streams of its context have been given, and they for it.
    pub(crate) fn order_with_default(&mut self, handle: u64) {
        let Some(stream) = self.streams.get(&handle) else { return };
        let (role, context) = (stream.role, stream.context);
        let Some(default) = self.contexts.get(&context).map(|context| context.default) else { return };
        match role {
            Role::NonBlocking | Role::Branch => {}
            Role::Blocking => {
                let asked = self.streams[&default].asked;
                if asked > self.streams[&handle].seen_of_default {
                    let record = self.mark(default);
                    self.push(handle, Work::Wait(record));
                    self.streams.entry(handle).and_modify(|stream| stream.seen_of_default = asked);
                }
            }
            Role::Default => {
                let news = |stream: &Stream| {
                    stream.context == context
                        && stream.role == Role::Blocking
                        && stream.asked > stream.seen_by_default
                };
                let others: Vec<u64> =
                    self.streams.iter().filter(|(_, stream)| news(stream)).map(|(&other, _)| other).collect();
                for other in others {
                    let record = self.mark(other);
                    self.push(handle, Work::Wait(record));
                    self.streams.entry(other).and_modify(|stream| stream.seen_by_default = stream.asked);
                }
            }
        }
    }

    /// Looks up what an operation would touch as it is enqueued; what is wrong already now is said now. `kernel` is set for
    /// work that uses memory itself, for which it needs a way to it; copies are the driver's.
    pub(crate) fn look_up(&mut self, context: u64, touch: Touch, kernel: bool) -> Result<(), String> {
        let Touch { at, bytes, writes } = touch;
        if bytes == 0 {
            return Ok(());
        }
        let does = if writes { "writes" } else { "reads" };
        let allocation = self.memory.within(at, bytes).map_err(|text| format!("it {does} {text}"))?;
        match allocation {
            None if kernel => {
                Err(format!("it {does} {at:#x}, which is memory of the host that no device can reach"))
            }
            Some(allocation) if kernel && !self.may_use(context, allocation) => {
                let device = self.contexts.get(&context).map_or(0, |context| context.device);
                Err(format!("it {does} {allocation} from device {device}, without access between the two"))
            }
            _ => Ok(()),
        }
    }
}
