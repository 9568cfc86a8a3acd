//! The communicator: ranks that run collectives together, from Rust.
//!
//! How to read it: `request` is a call as a value, `resolve` checks it on this rank, `entry` binds it to a plan, `engine`
//! runs it; around that, `blocking`, `group`, `prepared`, `start` and `pending` are the ways to call. `wires` alone knows how
//! ranks reach each other, `choice` alone which schedule serves.

mod abort;
mod background;
mod blocking;
mod builder;
mod cache;
mod choice;
mod clock;
mod custom;
mod element;
mod engine;
mod entry;
mod error;
mod group;
mod memory;
mod message;
mod op;
mod pending;
mod prepared;
mod record;
mod request;
mod resolve;
mod split;
mod start;
mod store;
mod types;
mod variables;
mod view;
mod wires;
mod words;

pub use abort::AbortHandle;
pub use builder::Builder;
pub(crate) use builder::host_name;
pub use custom::{Buffer, Custom};
pub use element::Element;
pub use error::{CommError, Failure};
pub use group::Group;
pub use memory::Memory;
pub use op::Op;
#[cfg(feature = "gpu")]
pub(crate) use op::OpId;
pub use pending::Pending;
pub use prepared::Prepared;
pub use record::Recorded;
pub use request::Request;
pub use view::{View, ViewMut};
pub use wires::Via;
pub(crate) use wires::{Meeting, Wires, WiresError};

use crate::{Bundle, Source};
use background::Background;
use coll_base::DType;
use engine::Engine;
use std::time::Duration;
use types::Types;

/// One rank's place among ranks that run collectives together.
///
/// ```
/// use coll::{Communicator, RedOp};
///
/// // Four ranks in one process; across processes each builds its own, with `Communicator::builder`.
/// let ranks = Communicator::local(4)?;
/// let threads: Vec<_> = ranks
///     .into_iter()
///     .map(|mut comm| {
///         std::thread::spawn(move || {
///             let mine = [comm.rank() as f32; 3];
///             let mut sum = [0.0; 3];
///             comm.all_reduce(&mine, &mut sum, RedOp::Sum)?;
///             assert_eq!(sum, [6.0; 3]);
///             Ok::<(), coll::CommError>(())
///         })
///     })
///     .collect();
/// for thread in threads {
///     thread.join().expect("no rank panics")?;
/// }
/// # Ok::<(), coll::CommError>(())
/// ```
///
/// # Which calls go together
/// Every rank makes the same collective calls in the same order, with equal element types, operators, roots and, except
/// where it says otherwise, lengths. Each call carries a fingerprint of all that; ranks whose calls differ end with an error,
/// not with wrong numbers. Messages ([`Communicator::send`]) are ordered by pair of ranks and direction, apart from
/// collective calls. Two communicators have nothing to do with each other, even where they have ranks in common.
///
/// # Lengths
/// are counted in elements, in 64 bits. Zero elements are as good as any, everywhere.
///
/// # Blocking
/// A call returns when this rank's part is done: results are in place, and inputs may be overwritten. It does not mean that
/// other ranks are done, except in [`Communicator::barrier`]. While it waits, the calling thread drives progress.
/// [`Communicator::start`] and its siblings return at once, and a thread of the communicator's own drives progress; calls
/// run in the order in which they were made, and a blocking call waits for those before it.
///
/// The first call of its kind finds a schedule, proves it for the ranks there are, and makes buffers: that takes
/// milliseconds. Later calls with equal lengths find all that ready, and allocate nothing.
///
/// # Threads
/// A call borrows its communicator exclusively, so two threads cannot be in calls of one at once: the compiler refuses it. Each
/// thread that makes calls of its own has a communicator of its own, by [`Communicator::duplicate`]; or they take turns
/// behind a lock, and then in one order on all ranks, or the calls do not match, which is an error.
///
/// ```compile_fail
/// fn both(comm: &coll::Communicator) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| comm.barrier());
///         scope.spawn(|| comm.barrier());
///     });
/// }
/// ```
///
/// # Errors
/// See [`CommError`]. What every rank can tell by itself (a root that does not exist, an operator that is not defined for
/// the type) is refused, and the communicator goes on. What only this rank knows (a buffer of the wrong length) is refused
/// here before anything is sent; the other ranks are told and get an error, and the communicator has ended. So it has after
/// a lost rank, a mismatch, or a call in which nothing has moved for the time limit. No call hangs.
///
/// # Dropping
/// leaves in good order, waits a second at most, and for no other rank. Calls in the background that are not done run to
/// their end first, behind the caller's back. A communicator dropped while its thread panics is a lost rank to the others.
#[derive(Debug)]
pub struct Communicator {
    rank: u32,
    world: u32,
    limit: Duration,
    /// None while the background thread has it.
    engine: Option<Box<Engine>>,
    background: Option<Background>,
}

impl Communicator {
    /// How to join: see [`Builder`].
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The communicator of one rank: every call is a copy at most.
    pub fn alone() -> Result<Communicator, CommError> {
        Communicator::builder().rank(0, 1).build()
    }

    /// Ranks of one process, each for a thread of its own, in order of rank.
    pub fn local(ranks: u32) -> Result<Vec<Communicator>, CommError> {
        Communicator::builder().local(ranks)
    }

    pub(crate) fn with_engine(engine: Box<Engine>) -> Communicator {
        Communicator {
            rank: engine.rank,
            world: engine.world,
            limit: engine.limit,
            engine: Some(engine),
            background: None,
        }
    }

    /// This rank, from 0.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// How many ranks there are.
    pub fn world(&self) -> u32 {
        self.world
    }

    /// How long nothing may move before a call fails.
    pub fn time_limit(&self) -> Duration {
        self.limit
    }

    /// Sets how long nothing may move before a call fails. Calls that are already in the background are waited for.
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.limit = limit;
        self.engine().limit = limit;
    }

    /// Whether the order of reductions depends on rank numbers alone: see [`Builder::deterministic`].
    pub fn is_deterministic(&mut self) -> bool {
        self.engine().settings.deterministic
    }

    /// Has the order of reductions depend on rank numbers alone from here on, or no longer: see [`Builder::deterministic`].
    /// Every rank says so at the same place among its calls; calls that are prepared stay as they are.
    pub fn set_deterministic(&mut self, deterministic: bool) {
        self.engine().settings.deterministic = deterministic;
    }

    /// Has narrow floats be reduced in another type from here on, or no longer: see [`Builder::accumulate`]. Every rank says so
    /// at the same place among its calls; calls that are prepared stay as they are.
    ///
    /// # Errors
    /// If nothing can be accumulated in the type; then all stays as it was.
    pub fn set_accumulate(&mut self, dtype: impl Into<Option<DType>>) -> Result<(), CommError> {
        let accumulate = dtype.into();
        self.set_types(|types| types.accumulate = accumulate)
    }

    /// Has wider floats travel as narrower ones from here on, or no longer: see [`Builder::wire`]. Every rank says so at the
    /// same place among its calls; calls that are prepared stay as they are.
    ///
    /// # Errors
    /// If nothing can travel as the type; then all stays as it was.
    pub fn set_wire(&mut self, dtype: impl Into<Option<DType>>) -> Result<(), CommError> {
        let wire = dtype.into();
        self.set_types(|types| types.wire = wire)
    }

    fn set_types(&mut self, set: impl FnOnce(&mut Types)) -> Result<(), CommError> {
        let types = &mut self.engine().settings.types;
        let mut changed = *types;
        set(&mut changed);
        match changed.fault() {
            Some(what) => Err(CommError::Setup { what }),
            None => {
                *types = changed;
                Ok(())
            }
        }
    }

    /// Runs any call, and returns when this rank's part of it is done.
    #[inline]
    pub fn run(&mut self, request: Request<'_>) -> Result<(), CommError> {
        self.engine().run(request)
    }

    /// Runs several calls as one: all are begun, and progress is made on whichever can go on, so that a send and a receive
    /// that cross those of a peer cannot deadlock. Returns when this rank's part of all of them is done.
    ///
    /// Collectives of a group are in the same order on all ranks, and so are the sends of one rank and the receives of the
    /// other for each pair of ranks. If one call of a group is refused, nothing of the group is sent.
    ///
    /// ```
    /// # let threads: Vec<_> = coll::Communicator::local(3)?.into_iter().map(|mut comm| std::thread::spawn(move || {
    /// // Every rank passes a value to the next, round a ring.
    /// let (mine, mut theirs) = ([comm.rank() as i32], [0]);
    /// let (next, last) = ((comm.rank() + 1) % comm.world(), (comm.rank() + comm.world() - 1) % comm.world());
    /// comm.group(|group| {
    ///     group.send(&mine, next).receive(&mut theirs, last);
    /// })?;
    /// assert_eq!(theirs, [last as i32]);
    /// # Ok::<(), coll::CommError>(())
    /// # })).collect();
    /// # for thread in threads { thread.join().unwrap()?; }
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn group<'a>(&mut self, build: impl FnOnce(&mut Group<'a>)) -> Result<(), CommError> {
        let mut group = Group::default();
        build(&mut group);
        self.engine().run_group(group.requests)
    }

    /// Gives up: this communicator has ended, and every rank's calls fail with this reason. It does not wait for the others.
    /// Calls that are already in the background come first; an [`AbortHandle`] waits for nothing.
    pub fn abort(&mut self, reason: &str) {
        let error = CommError::Aborted { rank: self.rank, reason: reason.to_string() };
        self.engine().end(error, &format!("aborted: {reason}"));
    }

    /// A handle that gives up from another thread, while this one is in a call.
    ///
    /// ```
    /// # use coll::Communicator;
    /// # use std::time::{Duration, Instant};
    /// let mut ranks = Communicator::local(2)?;
    /// let _late = ranks.pop();
    /// let mut comm = ranks.pop().expect("there are two");
    /// let handle = comm.abort_handle();
    /// std::thread::spawn(move || handle.abort("the user has had enough"));
    /// // The other rank never comes.
    /// let began = Instant::now();
    /// let error = comm.barrier().unwrap_err();
    /// assert!(error.to_string().contains("the user has had enough"), "{error}");
    /// assert!(began.elapsed() < Duration::from_secs(1));
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn abort_handle(&mut self) -> AbortHandle {
        AbortHandle::new(self.engine())
    }

    /// The error with which the communicator has ended, if it has.
    pub fn ended(&mut self) -> Option<CommError> {
        self.engine().check_alive().err()
    }

    /// Makes a schedule of one's own ready for these ranks: it is proved for them. Every rank loads the same, in no
    /// particular order. `schedule` may be none where the source declares only one; `root` is 0 where there is no root.
    ///
    /// ```
    /// use coll::{Buffer, Communicator, RedOp, Source};
    ///
    /// let source = Source::from_text(
    ///     "star.coll",
    ///     "schedule star: allreduce {
    ///          step each r in 1..n { send data to 0 reduce }
    ///          step each r in 1..n { recv data from 0 }
    ///      }",
    /// );
    /// # let source = std::sync::Arc::new(source);
    /// # let threads: Vec<_> = Communicator::local(3)?.into_iter().map(|mut comm| { let source = std::sync::Arc::clone(&source); std::thread::spawn(move || {
    /// let star = comm.load(&source, None, &[], 0)?;
    /// let counts = star.counts(2)?;
    /// let (mine, mut sum) = ([1i64, 2], [0i64; 2]);
    /// comm.run_custom(&star, &counts, vec![Buffer::separate(&mine, &mut sum)], Some(RedOp::Sum.into()))?;
    /// assert_eq!(sum, [3, 6]);
    /// # Ok::<(), coll::CommError>(())
    /// # })}).collect();
    /// # for thread in threads { thread.join().unwrap()?; }
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn load(
        &self,
        source: &Source,
        schedule: Option<&str>,
        params: &[(&str, i64)],
        root: u32,
    ) -> Result<Custom, CommError> {
        custom::of_source(source, schedule, params, root, (self.rank, self.world))
    }

    /// Like [`Communicator::load`], from a bundle.
    pub fn load_bundle(&self, bundle: &Bundle, root: u32) -> Result<Custom, CommError> {
        custom::of_bundle(bundle, root, (self.rank, self.world))
    }

    /// Like [`Communicator::load`], from a plan in any of its forms: whole, which is proved, or this rank's slice.
    pub fn load_plan(&self, plan: &[u8]) -> Result<Custom, CommError> {
        custom::of_plan(plan, (self.rank, self.world))
    }

    /// Runs a collective of one's own. `counts` are elements by count class, from [`Custom::counts`] or one's own; `buffers`
    /// are those of its contract, in order; an operator is needed if it reduces.
    pub fn run_custom(
        &mut self,
        custom: &Custom,
        counts: &[u64],
        buffers: Vec<Buffer<'_>>,
        op: Option<Op>,
    ) -> Result<(), CommError> {
        self.run(Request::custom(custom, counts, buffers, op))
    }

    /// The last operations, the oldest first: 256 unless [`Builder::recorded`] says otherwise.
    pub fn flight_record(&mut self) -> Vec<Recorded> {
        self.engine().record.recorded()
    }

    /// The last operations as a document of JSON, in the form of PyTorch's flight recorder.
    pub fn flight_record_json(&mut self) -> String {
        let engine = self.engine();
        let timeout_ms = u64::try_from(engine.limit.as_millis()).unwrap_or(u64::MAX);
        engine.record.to_json(engine.rank, engine.world, &engine.settings.name, timeout_ms)
    }

    /// The same in the form that PyTorch's analyser reads. Written by each rank to a file of a folder, named by a word and the
    /// rank (`record0`, `record1`), `torchfrtrace FOLDER` finds which rank made which call and which did not. To it all is NCCL's;
    /// scans and schedules of one's own are all-reduces with a name behind, and blocks that differ have no sizes.
    pub fn flight_record_pickle(&mut self) -> Vec<u8> {
        let engine = self.engine();
        let timeout_ms = u64::try_from(engine.limit.as_millis()).unwrap_or(u64::MAX);
        engine.record.to_pickle(engine.rank, engine.world, &engine.settings.name, timeout_ms)
    }

    /// The engine, once the background thread has done what it was asked to.
    #[inline]
    pub(crate) fn engine(&mut self) -> &mut Engine {
        if self.engine.is_none() {
            self.recall();
        }
        self.engine.as_mut().expect("invariant: it is here or with the background thread")
    }

    #[cold]
    fn recall(&mut self) {
        self.engine = self.background.as_ref().map(Background::recall);
    }
}
