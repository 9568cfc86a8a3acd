//! Collectives on CUDA devices: all ranks in this process, each with memory and a stream of its own; schedules are chosen,
//! proved and kept as for any call.

use crate::Op;
use crate::Outcome;
use crate::select::{ChooseError, Chooser, Question};
use crate::trial::placements;
use coll_base::DType;
use coll_contract::BufferRole;
use coll_cost::{Layout, Tuning};
use coll_gpu::{BufferPointers, Call, Group, GroupError, Pointer, Prepared, StreamHandle};
use coll_plan::Plan;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Constants that schedules are chosen by: devices have none of their own yet.
const CONSTANTS: &str = "threads";

/// Calls that are kept ready; beyond, all are forgotten when they are done.
const KEPT_MAX: usize = 64;

/// Ranks on devices of this process.
///
/// ```no_run
/// use coll::{DType, DeviceCall, Devices, RankPointers, RedOp};
/// use coll_gpu::{DeviceBuffer, Group, Stream};
///
/// let mut devices = Devices::new(Group::new(&[0, 0])?);
/// let group = devices.group();
/// let mut buffers = Vec::new();
/// let mut streams = Vec::new();
/// for rank in 0..2 {
///     let device = group.device(rank).unwrap();
///     buffers.push(DeviceBuffer::of(device, &[0; 4096])?);
///     streams.push(Stream::new(device)?);
/// }
/// let pointers: Vec<_> = buffers.iter().map(|buffer| RankPointers::in_place(buffer.pointer())).collect();
/// let handles: Vec<_> = streams.iter().map(Stream::handle).collect();
/// let call = DeviceCall::all_reduce(1024, DType::F32, RedOp::Sum).in_place();
/// devices.launch(&call, &pointers, &handles)?;
/// devices.wait(std::time::Duration::from_secs(30))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Devices {
    group: Group,
    chooser: Arc<Chooser>,
    ready: HashMap<Key, Ready>,
}

/// A call that is kept ready.
#[derive(Debug)]
struct Ready {
    prepared: Prepared,
    roles: Vec<BufferRole>,
}

/// A rank's memory in a call. What the operation does not give or promise the rank may be [`Pointer::NOWHERE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankPointers {
    /// What the rank puts in.
    pub input: Pointer,
    /// What it gets; in place, all of the buffer.
    pub output: Pointer,
}

impl RankPointers {
    /// Out of place.
    pub fn new(input: Pointer, output: Pointer) -> RankPointers {
        RankPointers { input, output }
    }

    /// In place.
    pub fn in_place(all: Pointer) -> RankPointers {
        RankPointers { input: Pointer::NOWHERE, output: all }
    }
}

/// What is to be done: the operation, elements, their type, operator and root.
#[derive(Clone, Debug)]
pub struct DeviceCall {
    operation: &'static str,
    count: u64,
    /// `count` is of one rank's block, of which the sized buffer has one for each rank.
    by_rank: bool,
    dtype: DType,
    op: Option<Op>,
    root: u32,
    in_place: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    operation: &'static str,
    elements: u64,
    dtype: DType,
    op: crate::comm::OpId,
    root: u32,
    in_place: bool,
}

/// Why a call on devices failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesError {
    /// No schedule serves.
    #[error(transparent)]
    Choose(#[from] ChooseError),
    /// The operator does not work on the type.
    #[error(transparent)]
    Unsupported(#[from] coll_kernel::Unsupported),
    /// The call cannot be made so.
    #[error("{what}")]
    Call {
        /// What is wrong with it.
        what: String,
    },
    /// The devices failed, or what was given them is not what was bound.
    #[error(transparent)]
    Group(#[from] GroupError),
}

impl std::fmt::Debug for Devices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Devices({:?})", self.group.layout().devices)
    }
}

impl DeviceCall {
    fn new(operation: &'static str, count: u64, by_rank: bool, dtype: DType) -> DeviceCall {
        DeviceCall { operation, count, by_rank, dtype, op: None, root: 0, in_place: false }
    }

    fn op(self, op: impl Into<Op>) -> DeviceCall {
        DeviceCall { op: Some(op.into()), ..self }
    }

    fn root(self, root: u32) -> DeviceCall {
        DeviceCall { root, ..self }
    }

    /// Every rank gets the reduction of all ranks' `count` elements.
    pub fn all_reduce(count: u64, dtype: DType, op: impl Into<Op>) -> DeviceCall {
        DeviceCall::new("allreduce", count, false, dtype).op(op)
    }

    /// The root gets the reduction of all ranks' `count` elements.
    pub fn reduce(count: u64, dtype: DType, op: impl Into<Op>, root: u32) -> DeviceCall {
        DeviceCall::new("reduce", count, false, dtype).op(op).root(root)
    }

    /// Every rank gets the root's `count` elements.
    pub fn broadcast(count: u64, dtype: DType, root: u32) -> DeviceCall {
        DeviceCall::new("broadcast", count, false, dtype).root(root)
    }

    /// Every rank gets all ranks' blocks of `count` elements, in order.
    pub fn all_gather(count: u64, dtype: DType) -> DeviceCall {
        DeviceCall::new("allgather", count, true, dtype)
    }

    /// The root gets all ranks' blocks of `count` elements, in order.
    pub fn gather(count: u64, dtype: DType, root: u32) -> DeviceCall {
        DeviceCall::new("gather", count, true, dtype).root(root)
    }

    /// Every rank gets its block of `count` elements from the root.
    pub fn scatter(count: u64, dtype: DType, root: u32) -> DeviceCall {
        DeviceCall::new("scatter", count, true, dtype).root(root)
    }

    /// Every rank gets its block of `count` elements of the reduction of all ranks' blocks.
    pub fn reduce_scatter(count: u64, dtype: DType, op: impl Into<Op>) -> DeviceCall {
        DeviceCall::new("reduce_scatter", count, true, dtype).op(op)
    }

    /// Every rank gets a block of `count` elements from every other.
    pub fn all_to_all(count: u64, dtype: DType) -> DeviceCall {
        DeviceCall::new("alltoall", count, true, dtype)
    }

    /// Every rank gets the reduction of `count` elements of all ranks up to its own.
    pub fn scan(count: u64, dtype: DType, op: impl Into<Op>) -> DeviceCall {
        DeviceCall::new("scan", count, false, dtype).op(op)
    }

    /// Every rank but the first gets the reduction of `count` elements of all ranks before it.
    pub fn exscan(count: u64, dtype: DType, op: impl Into<Op>) -> DeviceCall {
        DeviceCall::new("exscan", count, false, dtype).op(op)
    }

    /// No stream goes on before all have come so far.
    pub fn barrier() -> DeviceCall {
        DeviceCall::new("barrier", 0, false, DType::U8)
    }

    /// Buffers that are input and output are one memory.
    pub fn in_place(self) -> DeviceCall {
        DeviceCall { in_place: true, ..self }
    }
}

impl Devices {
    /// Calls on a group's devices, with the shipped constants.
    pub fn new(group: Group) -> Devices {
        Devices { group, chooser: Arc::new(Chooser::new(Tuning::shipped())), ready: HashMap::new() }
    }

    /// Chooses schedules by another chooser.
    pub fn chooser(self, chooser: Arc<Chooser>) -> Devices {
        Devices { chooser, ready: HashMap::new(), ..self }
    }

    /// The ranks' devices, and calls of plans of one's own.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Puts a call on the ranks' streams and returns at once; see [`Prepared::launch`]. The first call of its kind chooses and
    /// proves a schedule and allocates; later ones allocate nothing.
    ///
    /// # Errors
    /// The call cannot be made, or a device refuses it.
    pub fn launch(
        &mut self,
        call: &DeviceCall,
        pointers: &[RankPointers],
        streams: &[StreamHandle],
    ) -> Result<(), DevicesError> {
        let key = self.key(call)?;
        if !self.ready.contains_key(&key) {
            if self.ready.len() >= KEPT_MAX {
                self.ready.clear();
            }
            let ready = self.prepare(&key, call.op.as_ref())?;
            self.ready.insert(key.clone(), ready);
        }
        let ready = self.ready.get_mut(&key).expect("invariant: it was just put there");
        let buffers: Vec<Vec<BufferPointers>> = pointers
            .iter()
            .map(|rank| ready.roles.iter().map(|role| buffer(*role, rank)).collect())
            .collect();
        Ok(ready.prepared.launch(&buffers, streams)?)
    }

    /// Waits until all calls are done.
    ///
    /// # Errors
    /// One of them is not done in time, or a device has failed.
    pub fn wait(&mut self, limit: Duration) -> Result<(), DevicesError> {
        let start = std::time::Instant::now();
        for ready in self.ready.values_mut() {
            ready.prepared.wait(limit.saturating_sub(start.elapsed()))?;
        }
        Ok(())
    }

    fn key(&self, call: &DeviceCall) -> Result<Key, DevicesError> {
        let wrong = |what: String| Err(DevicesError::Call { what });
        let ranks = self.group.ranks();
        if call.root >= ranks {
            return wrong(format!("root {} is no rank among {ranks}", call.root));
        }
        let blocks = if call.by_rank { u64::from(ranks) } else { 1 };
        let Some(elements) = call.count.checked_mul(blocks) else {
            return wrong(format!("{ranks} blocks of {} elements are more than can be counted", call.count));
        };
        Ok(Key {
            operation: call.operation,
            elements,
            dtype: call.dtype,
            op: call.op.as_ref().map_or(crate::comm::OpId::None, Op::id),
            root: call.root,
            in_place: call.in_place,
        })
    }

    fn prepare(&self, key: &Key, op: Option<&Op>) -> Result<Ready, DevicesError> {
        let plan = self.plan(key, op)?;
        let wrong = |what: String| DevicesError::Call { what };
        let counts = plan.contract.counts(key.elements).map_err(|error| wrong(error.to_string()))?;
        let reducer = op.map(|op| op.reducer(key.dtype)).transpose()?;
        let placements = placements(&plan.contract, key.in_place);
        let call = Call {
            plan: &plan,
            counts: &counts,
            dtype: key.dtype,
            reducer: reducer.as_ref(),
            placements: &placements,
            spreads: &[],
        };
        let roles = plan.contract.buffers.iter().map(|buffer| buffer.role);
        Ok(Ready { prepared: self.group.prepare(&call)?, roles: roles.collect() })
    }

    fn plan(&self, key: &Key, op: Option<&Op>) -> Result<Plan, DevicesError> {
        let ranks = self.group.ranks();
        let question = Question {
            root: key.root,
            dtype: key.dtype,
            commutative: op.is_none_or(Op::is_commutative),
            user_operator: op.is_some_and(Op::is_users),
            transport: CONSTANTS,
            layout: Layout::one_host(ranks),
            ..Question::new(key.operation, ranks, key.elements.saturating_mul(key.dtype.size_bytes()))
        };
        let candidate = self.chooser.choose(&question)?.candidate;
        match candidate.prove(ranks, key.root) {
            Outcome::Right(proved) => Ok(proved.plan),
            Outcome::DoesNotApply { reason, .. } => Err(DevicesError::Call {
                what: format!("{candidate} does not serve {ranks} ranks: {reason}"),
            }),
            Outcome::Wrong(_) => {
                Err(DevicesError::Call { what: format!("{candidate} is wrong on {ranks} ranks") })
            }
        }
    }
}

/// Which of a rank's memories a buffer is.
fn buffer(role: BufferRole, rank: &RankPointers) -> BufferPointers {
    match role {
        BufferRole::In => BufferPointers::new(rank.input, Pointer::NOWHERE),
        BufferRole::Out => BufferPointers::new(Pointer::NOWHERE, rank.output),
        BufferRole::InOut => BufferPointers::new(rank.input, rank.output),
    }
}
