//! The loop. Lanes are state machines that move bytes until the transport, another lane or their turn stops them; a
//! queue holds those that may go on, so that no event looks at lanes that it does not concern.

use crate::bind::Bound;
use crate::code::{Code, Kind};
use crate::error::{Place, RunError};
use crate::frame::FINGERPRINT_BYTES;
use crate::layout::BufferLayout;
use crate::memory::{BufferMemory, Memory, Placement};
use crate::short::ShortTurn;
use crate::sight::{self, Shows};
use crate::state::{State, Task};
use crate::{Fault, Interest, Transport};
use coll_kernel::Reducer;
use coll_plan::OpId;

/// Bytes that a lane moves before the others have their turn.
pub(crate) const TURN_BYTES: usize = 1 << 20;

/// What distinguishes one run from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// The communicator's generation; equal on every rank.
    pub generation: u32,
    /// The operation's number; equal on every rank.
    pub operation: u64,
    /// What tells the call from others, such as a hash of all that the ranks must have in common. It goes with the
    /// first message of each link and is compared there.
    pub fingerprint: [u8; FINGERPRINT_BYTES],
}

/// How far [`Running::advance`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The operation is done, and results are in place.
    Done,
    /// Nothing can go on before one of [`Running::interests`] is met.
    Blocked,
}

/// An operation that has begun. After an error it does nothing more than tell it again.
#[derive(Debug)]
pub struct Running<'b, 'a> {
    bound: &'b mut Bound,
    buffers: &'b mut [BufferMemory<'a>],
    ended: Option<Result<(), RunError>>,
}

impl Bound {
    /// Runs to the end, sleeping in the transport where there is nothing to do.
    ///
    /// After an error the links hold parts of messages: the transport is of no use any more, the binding is.
    pub fn run(
        &mut self,
        transport: &mut impl Transport,
        buffers: &mut [BufferMemory<'_>],
        options: RunOptions,
    ) -> Result<(), RunError> {
        let mut running = self.begin(buffers, options)?;
        let ended = sight::shown(&mut running, |running| running.drive(transport));
        if ended.is_err() {
            transport.revoke();
        }
        ended
    }

    /// Begins an operation that the caller drives: `buffers` are those of the contract, in order. If it fails or is not
    /// driven to its end, [`Transport::revoke`] comes before anything else is done with the buffers.
    pub fn begin<'b, 'a>(
        &'b mut self,
        buffers: &'b mut [BufferMemory<'a>],
        options: RunOptions,
    ) -> Result<Running<'b, 'a>, RunError> {
        self.start(buffers, options)?;
        Ok(Running { bound: self, buffers, ended: None })
    }

    /// Checks the buffers, prepares the inputs and puts every lane at its start.
    pub(crate) fn start(
        &mut self,
        buffers: &mut [BufferMemory<'_>],
        options: RunOptions,
    ) -> Result<(), RunError> {
        match &self.short {
            Some(short) => self.state.begin_short(short.all(), options),
            None => self.state.begin(&self.code, options),
        }
        check_buffers(&self.layout.buffers, buffers).map_err(|fault| self.error(None, fault))?;
        if let Some(reducer) = self.reducer.as_ref().filter(|_| self.prepared) {
            let mut memory = Memory { buffers, scratch: &mut self.scratch };
            for block in &self.layout.prepares {
                let (working, input) = memory.pair(block.working, block.user);
                reducer.prepare(self.world.into(), input, working);
            }
        }
        Ok(())
    }

    /// Moves all that can be moved; the buffers are those that it was started with.
    pub(crate) fn step(
        &mut self,
        transport: &mut impl Transport,
        buffers: &mut [BufferMemory<'_>],
    ) -> Result<Progress, RunError> {
        let mut engine = Engine {
            code: &self.code,
            state: &mut self.state,
            memory: Memory { buffers, scratch: &mut self.scratch },
            staging: &mut self.staging,
            reducer: self.reducer.as_ref(),
            prepared: self.prepared,
            element_bytes: self.element_bytes,
            transport: &mut *transport,
        };
        if let Some(short) = self.short.as_ref().filter(|_| engine.state.todo != 0) {
            let mut todo = engine.state.todo;
            match engine.drive_short(short, &mut todo) {
                Ok(ShortTurn::Done) => return self.finish(transport, buffers),
                Ok(ShortTurn::Blocked(blocked)) => {
                    self.state.todo = todo;
                    short.note_interests(&self.code, &mut self.state, blocked);
                    return Ok(Progress::Blocked);
                }
                Ok(ShortTurn::HandOver(sent)) => engine.take_over(short, todo, sent),
                Err((op, fault)) => {
                    short.hand_over(&self.code, &mut self.state, todo);
                    return Err(self.error(Some(self.code.lane_of[op as usize]), fault));
                }
            }
        }
        engine.drive().map_err(|(task, fault)| self.error(task, fault))?;
        if self.state.remaining > 0 {
            self.state.collect_interests();
            if self.state.interests.is_empty() {
                let waits = self.stuck_lanes();
                return Err(self.error(None, Fault::Stuck { waits }));
            }
            return Ok(Progress::Blocked);
        }
        self.finish(transport, buffers)
    }

    /// All operations are done.
    fn finish(
        &mut self,
        transport: &mut impl Transport,
        buffers: &mut [BufferMemory<'_>],
    ) -> Result<Progress, RunError> {
        transport.flush();
        if let Some(reducer) = self.reducer.as_ref().filter(|_| self.prepared) {
            let mut memory = Memory { buffers, scratch: &mut self.scratch };
            for block in &self.layout.finishes {
                let (output, working) = memory.pair(block.user, block.working);
                reducer.finish(self.world.into(), block.leaves, working, output);
            }
        }
        Ok(Progress::Done)
    }

    /// A fault with all that is known of where it was.
    pub(crate) fn error(&self, task: Option<Task>, fault: Fault) -> RunError {
        RunError {
            rank: self.rank,
            operation: self.state.options.operation,
            name: self.name.clone(),
            place: task.and_then(|task| self.place(task)).map(Box::new),
            fault,
        }
    }

    /// A fault of the transport while it was waited for: told at what waits for that peer, or else at the first.
    pub(crate) fn wait_error(&self, fault: Fault) -> RunError {
        let peer = match fault {
            Fault::PeerLost { peer, .. } | Fault::NoLink { peer, .. } => Some(peer),
            _ => None,
        };
        let mut tasks = self.state.waiting.iter().zip(&self.state.interests);
        let with_peer = tasks.clone().find(|(_, interest)| Some(interest.link.peer) == peer);
        let task = with_peer.or(tasks.next()).map(|(&task, _)| task);
        self.error(task, fault)
    }

    /// What every waiting task waits for, for people.
    pub(crate) fn waits(&self) -> Vec<String> {
        let mut tasks = self.state.waiting.clone();
        tasks.sort_unstable();
        let places = tasks.into_iter().filter_map(|task| self.place(task));
        places.map(|place| format!("rank {} waits in {place}", self.rank)).collect()
    }

    fn stuck_lanes(&self) -> String {
        let lanes = (0..self.code.lanes.len() as Task)
            .filter(|&lane| self.state.lanes[lane as usize].at < self.code.lanes[lane as usize].end);
        let places = lanes.filter_map(|lane| self.place(lane));
        let shown: Vec<String> = places.take(8).map(|place| place.to_string()).collect();
        format!("every lane waits for another one; lanes stand at {}", shown.join("; "))
    }

    fn place(&self, task: Task) -> Option<Place> {
        let op = match (task as usize).checked_sub(self.code.lanes.len()) {
            None => Some(self.state.lanes[task as usize].at),
            Some(link) => {
                let next = self.state.links[link].received as usize;
                self.code.links[link].receives.ops.get(next).copied()
            }
        };
        let op = op.filter(|&op| (op as usize) < self.code.ops.len())?;
        let bound = &self.code.ops[op as usize];
        let peer_of = |link: u32| self.code.links[link as usize].link.peer;
        let (what, peer) = match bound.kind {
            Kind::Send { link, .. } => (format!("send to rank {}", peer_of(link)), Some(peer_of(link))),
            Kind::Recv { link, .. } => (format!("receive from rank {}", peer_of(link)), Some(peer_of(link))),
            Kind::Copy => ("copy".to_string(), None),
            Kind::Reduce(_) => ("reduction".to_string(), None),
        };
        let line = self.lines.get(self.line_of[op as usize] as usize).cloned();
        Some(Place { op, what, step: bound.step, line, peer })
    }
}

impl Running<'_, '_> {
    /// What it shows to threads of this process.
    pub(crate) fn shows(&mut self) -> &mut Shows {
        &mut self.bound.state.shows
    }

    fn drive(&mut self, transport: &mut impl Transport) -> Result<(), RunError> {
        while self.advance(transport)? == Progress::Blocked {
            let slept = transport.wait(self.interests());
            slept.map_err(|fault| self.fail(fault))?;
        }
        Ok(())
    }

    /// Moves all that can be moved without waiting.
    pub fn advance(&mut self, transport: &mut impl Transport) -> Result<Progress, RunError> {
        if let Some(ended) = &self.ended {
            return ended.clone().map(|()| Progress::Done);
        }
        let progress = self.bound.step(transport, self.buffers);
        match &progress {
            Ok(Progress::Done) => self.ended = Some(Ok(())),
            Ok(Progress::Blocked) => {}
            Err(error) => self.ended = Some(Err(error.clone())),
        }
        progress
    }

    /// What it waits for, after [`Progress::Blocked`].
    pub fn interests(&self) -> &[Interest] {
        &self.bound.state.interests
    }

    /// Ends it with what [`Transport::wait`] said.
    pub fn fail(&mut self, fault: Fault) -> RunError {
        let error = self.bound.wait_error(fault);
        self.ended = Some(Err(error.clone()));
        error
    }
}

/// Everything that a lane needs to go on.
pub(crate) struct Engine<'e, 'm, 'a, T> {
    pub(crate) code: &'e Code,
    pub(crate) state: &'e mut State,
    pub(crate) memory: Memory<'m, 'a>,
    pub(crate) staging: &'e mut [u8],
    pub(crate) reducer: Option<&'e Reducer>,
    pub(crate) prepared: bool,
    /// Bytes of the operator's working element.
    pub(crate) element_bytes: usize,
    pub(crate) transport: &'e mut T,
}

/// Why a task stops.
pub(crate) enum Turn {
    /// The operation is done.
    Done,
    /// It has had its turn, and can go on.
    Again,
    /// Another task will wake it.
    Parked,
    /// The transport takes or has no more.
    Blocked(Interest),
}

impl<T: Transport> Engine<'_, '_, '_, T> {
    /// Runs tasks until none can go on.
    fn drive(&mut self) -> Result<(), (Option<Task>, Fault)> {
        while let Some(task) = self.state.pop() {
            let turn = match (task as usize).checked_sub(self.code.lanes.len()) {
                None => self.lane(task),
                Some(link) => self.pump(link),
            };
            match turn.map_err(|fault| (Some(task), fault))? {
                Turn::Again => self.state.push(task),
                Turn::Blocked(interest) => self.state.block(task, interest),
                Turn::Parked | Turn::Done => {}
            }
        }
        Ok(())
    }

    /// Runs a lane's operations one after the other.
    fn lane(&mut self, lane: u32) -> Result<Turn, Fault> {
        while let Some((op, bound)) = self.state.current(self.code, lane) {
            if let Some(journal) = &mut self.state.journal {
                journal.began(op);
            }
            let turn = self.operation(lane, op)?;
            if !matches!(turn, Turn::Done) {
                return Ok(turn);
            }
            debug_assert_eq!(self.state.lanes[lane as usize].cursor.moved, bound.bytes);
            self.state.complete(self.code, lane);
        }
        Ok(Turn::Parked)
    }

    fn operation(&mut self, lane: u32, op: OpId) -> Result<Turn, Fault> {
        let bound = &self.code.ops[op as usize];
        match bound.kind {
            Kind::Send { link, message } => self.send(lane, bound, link, message),
            Kind::Recv { link, message, reduces } => self.receive(lane, op, link, message, reduces),
            Kind::Copy => Ok(self.copy(lane, bound)),
            Kind::Reduce(side) => Ok(self.reduce(lane, bound, side)),
        }
    }
}

fn check_buffers(layout: &[BufferLayout], buffers: &[BufferMemory<'_>]) -> Result<(), Fault> {
    if layout.len() != buffers.len() {
        let (expected, found) = (format!("{} buffers", layout.len()), format!("{} buffers", buffers.len()));
        return Err(Fault::Buffers { expected, found });
    }
    for (bound, buffer) in layout.iter().zip(buffers) {
        let parts = match (bound.placement, buffer) {
            (Placement::Separate, BufferMemory::Separate { input, output }) => {
                [("the input", input.len(), bound.sizes[0]), ("the output", output.len(), bound.sizes[1])]
            }
            (Placement::InPlace, BufferMemory::InPlace(all)) => {
                [("the memory", all.len(), bound.sizes[1]), ("the input", 0, 0)]
            }
            (Placement::Separate, _) => {
                let expected = format!("separate input and output of buffer `{}`", bound.name);
                return Err(Fault::Buffers { expected, found: "one memory".into() });
            }
            (Placement::InPlace, _) => {
                let expected = format!("one memory of buffer `{}`", bound.name);
                return Err(Fault::Buffers { expected, found: "separate input and output".into() });
            }
        };
        for (part, found, expected_bytes) in parts {
            let found_bytes = found as u64;
            if found_bytes != expected_bytes {
                let buffer = bound.name.clone();
                return Err(Fault::BufferLength { buffer, part, expected_bytes, found_bytes });
            }
        }
    }
    Ok(())
}
