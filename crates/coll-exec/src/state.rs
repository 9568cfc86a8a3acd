//! Where a running plan stands: each lane at an operation, each link at a message, and a queue of who can go on.

use crate::bind::allocate;
use crate::code::{BoundOp, Code, Kind};
use crate::error::BindError;
use crate::frame::HEADER_BYTES;
use crate::inbox::Inbox;
use crate::{Interest, RunOptions};
use coll_plan::OpId;
use std::collections::VecDeque;

/// Lanes are tasks `0..lanes`; the task of link k's message slots is `lanes + k`.
pub(crate) type Task = u32;

/// The widest working element, so that a part of one can be kept between two reads.
pub(crate) const ELEMENT_BYTES_MAX: usize = 16;

/// The state of a run. Everything is as large as it will ever be from the start.
pub(crate) struct State {
    pub(crate) options: RunOptions,
    pub(crate) lanes: Vec<LaneState>,
    pub(crate) links: Vec<LinkState>,
    pub(crate) inboxes: Vec<Inbox>,
    /// For each operation, how many others it still waits for.
    pub(crate) missing: Vec<u32>,
    /// Operations that are not done.
    pub(crate) remaining: usize,
    /// Messages sent in this run.
    pub(crate) sent_messages: u64,
    /// Tasks that may be able to go on, and whether each is among them.
    queue: VecDeque<Task>,
    queued: Vec<bool>,
    /// Tasks that the transport has stopped.
    blocked: Vec<Task>,
    /// What each task waits for of the transport, if it does.
    interest: Vec<Option<Interest>>,
    pub(crate) interests: Vec<Interest>,
    /// The tasks behind `interests`.
    pub(crate) waiting: Vec<Task>,
}

/// A lane's operation, and how far it is.
#[derive(Clone, Copy)]
pub(crate) struct LaneState {
    pub(crate) at: OpId,
    pub(crate) cursor: Cursor,
    /// The header as far as it has come; a sender makes its own.
    pub(crate) header: [u8; HEADER_BYTES],
    pub(crate) header_bytes: usize,
    /// The first bytes of an element whose last bytes have not come.
    pub(crate) carry: [u8; ELEMENT_BYTES_MAX],
    pub(crate) carry_bytes: usize,
}

/// A place in a list of segments.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cursor {
    /// Index into the list.
    pub(crate) segment: usize,
    /// Bytes into the segment.
    pub(crate) offset: usize,
    /// Payload bytes up to here.
    pub(crate) moved: u64,
}

/// The next message in each direction.
#[derive(Clone, Copy, Default)]
pub(crate) struct LinkState {
    pub(crate) sent: u32,
    pub(crate) received: u32,
}

impl State {
    pub(crate) fn new(code: &Code, slots: u32) -> Result<State, BindError> {
        let tasks = code.lanes.len() + code.links.len();
        let mut inboxes = Vec::new();
        if slots > 0 {
            for link in &code.links {
                let sizes = link.receives.ops.iter().map(|&op| code.ops[op as usize].bytes);
                inboxes.push(Inbox::new(slots, sizes, allocate)?);
            }
        }
        Ok(State {
            options: RunOptions::default(),
            lanes: vec![LaneState::at(0); code.lanes.len()],
            links: vec![LinkState::default(); code.links.len()],
            inboxes,
            missing: code.missing.clone(),
            remaining: 0,
            sent_messages: 0,
            queue: VecDeque::with_capacity(tasks),
            queued: vec![false; tasks],
            blocked: Vec::with_capacity(tasks),
            interest: vec![None; tasks],
            interests: Vec::with_capacity(tasks),
            waiting: Vec::with_capacity(tasks),
        })
    }

    /// Starts anew.
    pub(crate) fn begin(&mut self, code: &Code, options: RunOptions) {
        self.options = options;
        for (state, lane) in self.lanes.iter_mut().zip(&code.lanes) {
            *state = LaneState::at(lane.start);
        }
        self.links.fill(LinkState::default());
        self.inboxes.iter_mut().for_each(Inbox::begin);
        self.missing.copy_from_slice(&code.missing);
        self.remaining = code.ops.len();
        self.sent_messages = 0;
        self.queue.clear();
        self.queued.fill(false);
        self.blocked.clear();
        self.interest.fill(None);
        self.interests.clear();
        self.waiting.clear();
        let links = if self.inboxes.is_empty() { 0 } else { code.links.len() };
        (0..(code.lanes.len() + links) as Task).for_each(|task| self.push(task));
    }

    /// Puts a task into the queue, unless it is there.
    pub(crate) fn push(&mut self, task: Task) {
        if !std::mem::replace(&mut self.queued[task as usize], true) {
            self.queue.push_back(task);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Task> {
        let task = self.queue.pop_front()?;
        self.queued[task as usize] = false;
        self.interest[task as usize] = None;
        Some(task)
    }

    /// Notes that the transport has stopped a task.
    pub(crate) fn block(&mut self, task: Task, interest: Interest) {
        self.interest[task as usize] = Some(interest);
        self.blocked.push(task);
    }

    /// Turns what is blocked into interests, and queues it for when they are met.
    pub(crate) fn collect_interests(&mut self) {
        self.interests.clear();
        self.waiting.clear();
        while let Some(task) = self.blocked.pop() {
            // A task that has gone on since, and may have been stopped anew, stands here twice.
            if let Some(interest) = self.interest[task as usize].take() {
                self.interests.push(interest);
                self.waiting.push(task);
                self.push(task);
            }
        }
    }

    /// Pushes the lane of an operation if that can go on.
    pub(crate) fn wake(&mut self, code: &Code, op: OpId) {
        let lane = code.lane_of[op as usize];
        if self.lanes[lane as usize].at == op && self.missing[op as usize] == 0 {
            self.push(lane);
        }
    }

    /// Payload bytes that an operation has moved.
    pub(crate) fn progress(&self, code: &Code, op: OpId) -> u64 {
        let lane = &self.lanes[code.lane_of[op as usize] as usize];
        match lane.at.cmp(&op) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => lane.cursor.moved,
            std::cmp::Ordering::Greater => code.ops[op as usize].bytes,
        }
    }

    /// Ends a lane's operation: the link's turn passes on, and all that waited is woken.
    pub(crate) fn complete(&mut self, code: &Code, lane: u32) {
        let op = self.lanes[lane as usize].at;
        self.lanes[lane as usize] = LaneState::at(op + 1);
        self.remaining -= 1;
        match code.ops[op as usize].kind {
            Kind::Send { link, .. } => {
                self.sent_messages += 1;
                self.links[link as usize].sent += 1;
                let next = self.links[link as usize].sent;
                self.wake_message(code, code.links[link as usize].sends.ops.get(next as usize).copied());
            }
            Kind::Recv { link, .. } => {
                self.links[link as usize].received += 1;
                let next = self.links[link as usize].received;
                self.wake_message(code, code.links[link as usize].receives.ops.get(next as usize).copied());
                if let Some(inbox) = self.inboxes.get_mut(link as usize) {
                    inbox.take_out();
                    self.push(code.lanes.len() as Task + link);
                }
            }
            Kind::Copy | Kind::Reduce(_) => {}
        }
        for index in code.dependents.run(op) {
            let dependent = code.dependents.at(index);
            self.missing[dependent as usize] -= 1;
            self.wake(code, dependent);
        }
        self.wake_followers(code, op);
    }

    /// Lets the sends that follow a receive look how far it is.
    pub(crate) fn wake_followers(&mut self, code: &Code, op: OpId) {
        for index in code.followers.run(op) {
            self.wake(code, code.followers.at(index));
        }
    }

    fn wake_message(&mut self, code: &Code, op: Option<OpId>) {
        if let Some(op) = op {
            self.wake(code, op);
        }
    }

    /// The operation that a lane stands at, if it can run.
    pub(crate) fn current<'c>(&self, code: &'c Code, lane: u32) -> Option<(OpId, &'c BoundOp)> {
        let op = self.lanes[lane as usize].at;
        let ready = op < code.lanes[lane as usize].end && self.missing[op as usize] == 0;
        ready.then(|| (op, &code.ops[op as usize]))
    }
}

impl LaneState {
    fn at(op: OpId) -> LaneState {
        LaneState {
            at: op,
            cursor: Cursor::default(),
            header: [0; HEADER_BYTES],
            header_bytes: 0,
            carry: [0; ELEMENT_BYTES_MAX],
            carry_bytes: 0,
        }
    }
}

impl Cursor {
    /// Moves on by bytes that lie within the segment.
    pub(crate) fn advance(&mut self, segment_bytes: usize, bytes: usize) {
        self.offset += bytes;
        self.moved += bytes as u64;
        if self.offset >= segment_bytes {
            self.segment += 1;
            self.offset = 0;
        }
    }
}
