//! Where a running plan stands: each lane at an operation, each link at a message, and a queue of who can go on.

use crate::bind::allocate;
use crate::code::{BoundOp, Code, Kind};
use crate::error::BindError;
use crate::frame::{CHECKSUM_BYTES, FIRST_HEADER_BYTES};
use crate::inbox::Inbox;
use crate::journal::Journal;
use crate::lend::LoanState;
use crate::ready::Ready;
use crate::share::ShareState;
use crate::sight::Shows;
use crate::{Interest, Link, RunOptions};
use coll_plan::OpId;

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
    /// Messages that several sends have in common.
    pub(crate) shares: Vec<ShareState>,
    /// For each operation, how many others it still waits for.
    pub(crate) missing: Vec<u32>,
    /// Operations that are not done, as bits, as long as the plan is run straight through.
    pub(crate) todo: u64,
    /// Operations that are not done.
    pub(crate) remaining: usize,
    /// What threads of this process may read of this run.
    pub(crate) shows: Shows,
    /// Messages sent in this run.
    pub(crate) sent_messages: u64,
    /// When operations begin and end, if somebody asked for it.
    pub(crate) journal: Option<Journal>,
    /// Tasks that may be able to go on.
    ready: Ready,
    /// Tasks that the transport has stopped.
    blocked: Ready,
    /// What each of them waits for.
    interest: Vec<Interest>,
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
    pub(crate) header: [u8; FIRST_HEADER_BYTES],
    pub(crate) header_bytes: usize,
    /// Whether the message is lent, and the loan of it that is under way.
    pub(crate) lent: bool,
    /// Of a sender: what is lent lies in the transport's stage.
    pub(crate) shared: bool,
    pub(crate) loan: LoanState,
    /// The checksum of the payload up to here, and how much of what follows the payload has gone or come.
    pub(crate) checksum: u32,
    pub(crate) trailer_bytes: usize,
    pub(crate) trailer: [u8; CHECKSUM_BYTES],
    /// The first bytes of an element whose last bytes have not come. Of a sender that makes other elements, only how many
    /// have gone.
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

/// Where no interest has been noted yet.
const NOTHING: Interest =
    Interest { link: Link { peer: 0, channel: 0 }, readable: false, writable: false, returned: false };

impl State {
    pub(crate) fn new(code: &Code, slots: u32) -> Result<State, BindError> {
        let tasks = code.lanes.len() + code.links.len();
        let mut inboxes = Vec::new();
        if slots > 0 {
            for link in &code.links {
                let sizes =
                    link.receives.ops.iter().map(|&op| code.message_bytes(code.ops[op as usize].bytes));
                inboxes.push(Inbox::new(slots, sizes, allocate)?);
            }
        }
        Ok(State {
            options: RunOptions::default(),
            lanes: vec![LaneState::at(0); code.lanes.len()],
            links: vec![LinkState::default(); code.links.len()],
            inboxes,
            shares: vec![ShareState::default(); code.shares.len()],
            missing: code.missing.clone(),
            todo: 0,
            remaining: 0,
            shows: Shows::default(),
            sent_messages: 0,
            journal: None,
            ready: Ready::new(tasks),
            blocked: Ready::new(tasks),
            interest: vec![NOTHING; tasks],
            interests: Vec::with_capacity(tasks),
            waiting: Vec::with_capacity(tasks),
        })
    }

    /// Starts anew, to be run straight through.
    #[inline]
    pub(crate) fn begin_short(&mut self, todo: u64, options: RunOptions) {
        self.options = options;
        self.todo = todo;
        self.sent_messages = 0;
        self.interests.clear();
        self.waiting.clear();
    }

    /// Starts anew.
    #[inline]
    pub(crate) fn begin(&mut self, code: &Code, options: RunOptions) {
        self.options = options;
        for (state, lane) in self.lanes.iter_mut().zip(&code.lanes) {
            state.stand_at(lane.start);
        }
        self.links.fill(LinkState::default());
        self.inboxes.iter_mut().for_each(Inbox::begin);
        self.begin_shares();
        self.missing.copy_from_slice(&code.missing);
        self.todo = 0;
        self.remaining = code.ops.len();
        self.sent_messages = 0;
        if let Some(journal) = &mut self.journal {
            journal.begin();
        }
        self.ready.clear();
        self.blocked.clear();
        self.interests.clear();
        self.waiting.clear();
        code.starts.iter().for_each(|&lane| self.push(lane));
        (0..self.inboxes.len()).for_each(|link| self.push((code.lanes.len() + link) as Task));
    }

    /// Notes that a task may be able to go on.
    #[inline]
    pub(crate) fn push(&mut self, task: Task) {
        self.ready.insert(task);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Task> {
        let task = self.ready.pop()?;
        self.blocked.remove(task);
        Some(task)
    }

    /// Notes that the transport has stopped a task.
    #[inline]
    pub(crate) fn block(&mut self, task: Task, interest: Interest) {
        self.interest[task as usize] = interest;
        self.blocked.insert(task);
    }

    /// Turns what is blocked into interests, and queues it for when they are met.
    #[inline]
    pub(crate) fn collect_interests(&mut self) {
        self.interests.clear();
        self.waiting.clear();
        while let Some(task) = self.blocked.pop() {
            self.interests.push(self.interest[task as usize]);
            self.waiting.push(task);
            self.ready.insert(task);
        }
    }

    /// Pushes the lane of an operation if that can go on.
    #[inline]
    pub(crate) fn wake(&mut self, code: &Code, op: OpId) {
        let lane = code.lane_of[op as usize];
        if self.lanes[lane as usize].at == op && self.missing[op as usize] == 0 {
            self.push(lane);
        }
    }

    /// Payload bytes that an operation has moved.
    #[inline]
    pub(crate) fn progress(&self, code: &Code, op: OpId) -> u64 {
        let lane = &self.lanes[code.lane_of[op as usize] as usize];
        match lane.at.cmp(&op) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => lane.cursor.moved,
            std::cmp::Ordering::Greater => code.ops[op as usize].bytes,
        }
    }

    /// Ends a lane's operation: the link's turn passes on, and all that waited is woken.
    #[inline]
    pub(crate) fn complete(&mut self, code: &Code, lane: u32) {
        let op = self.lanes[lane as usize].at;
        if let Some(journal) = &mut self.journal {
            journal.ended(op);
        }
        self.lanes[lane as usize].stand_at(op + 1);
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
    #[inline]
    pub(crate) fn wake_followers(&mut self, code: &Code, op: OpId) {
        for index in code.followers.run(op) {
            self.wake(code, code.followers.at(index));
        }
    }

    #[inline]
    fn wake_message(&mut self, code: &Code, op: Option<OpId>) {
        if let Some(op) = op {
            self.wake(code, op);
        }
    }

    /// The operation that a lane stands at, if it can run.
    #[inline]
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
            header: [0; FIRST_HEADER_BYTES],
            header_bytes: 0,
            lent: false,
            shared: false,
            loan: LoanState::none(),
            checksum: 0,
            trailer_bytes: 0,
            trailer: [0; CHECKSUM_BYTES],
            carry: [0; ELEMENT_BYTES_MAX],
            carry_bytes: 0,
        }
    }

    /// At the start of an operation: what its counts say is not there need not be cleared.
    #[inline]
    fn stand_at(&mut self, op: OpId) {
        self.at = op;
        self.cursor = Cursor::default();
        self.header_bytes = 0;
        self.lent = false;
        self.shared = false;
        self.loan.clear();
        self.checksum = 0;
        self.trailer_bytes = 0;
        self.carry_bytes = 0;
    }
}

impl Cursor {
    /// Moves on by bytes that lie within the segment.
    #[inline]
    pub(crate) fn advance(&mut self, segment_bytes: usize, bytes: usize) {
        self.offset += bytes;
        self.moved += bytes as u64;
        if self.offset >= segment_bytes {
            self.segment += 1;
            self.offset = 0;
        }
    }
}
