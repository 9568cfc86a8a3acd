//! Calls that are bound once and run many times.

use crate::comm::engine::Engine;
use crate::comm::error::Refusal;
use crate::comm::op::OpId;
use crate::comm::request::{Counts, Displacements, What};
use crate::comm::resolve::{Key, Memories, Resolved, memories};
use crate::comm::types::{Asked, Types};
use crate::comm::{CommError, Communicator, Element, Op, Request, View, ViewMut};
use coll_base::DType;
use coll_exec::BufferMemory;
use std::sync::Arc;

/// A call that is bound: its schedule is chosen, its links are made, its scratch is there, and stays as long as this lives.
/// Running it looks nothing up and allocates nothing.
///
/// ```
/// # use coll::{Communicator, RedOp};
/// let mut comm = Communicator::alone()?;
/// let sum = comm.prepare_all_reduce::<f32>(2, RedOp::Sum)?;
/// let mut output = [0.0; 2];
/// for round in 0..3 {
///     sum.run(&mut comm, &[round as f32; 2], &mut output)?;
///     assert_eq!(output, [round as f32; 2]);
/// }
/// # Ok::<(), coll::CommError>(())
/// ```
#[derive(Debug)]
pub struct Prepared {
    communicator: u64,
    place: usize,
    key: Key,
    shape: Shape,
    _held: Arc<()>,
}

/// How a call has its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// As the library's collectives and messages have them.
    Library,
    /// One buffer of a collective of one's own, out of place.
    Separate,
    /// The same in place.
    InPlace,
    /// An input and an output of a collective of one's own.
    InAndOut,
}

impl Shape {
    /// Nothing where buffers are others than a prepared call is run with.
    fn of(resolved: &Resolved<'_>) -> Option<Shape> {
        if resolved.custom.is_none() {
            return Some(Shape::Library);
        }
        let is_out = |output: &[u8]| !output.is_empty();
        match resolved.memory.as_slice() {
            [] | [BufferMemory::Separate { .. }] => Some(Shape::Separate),
            [BufferMemory::InPlace(_)] => Some(Shape::InPlace),
            [BufferMemory::Separate { output, .. }, BufferMemory::Separate { input, .. }]
                if !is_out(output) && input.is_empty() =>
            {
                Some(Shape::InAndOut)
            }
            _ => None,
        }
    }
}

impl Prepared {
    /// Runs a call that was prepared out of place. A buffer that this rank does not need, as the output of a reduction
    /// elsewhere than at the root, may be anything of the element type, such as `&mut [0f32; 0]`.
    pub fn run<'a>(
        &self,
        comm: &mut Communicator,
        input: impl Into<View<'a>>,
        output: impl Into<ViewMut<'a>>,
    ) -> Result<(), CommError> {
        let (input, output) = (input.into(), output.into());
        self.check(comm, input.dtype, false)?;
        self.check(comm, output.dtype, false)?;
        let memory = match self.shape {
            Shape::InAndOut => {
                Memories::Few([BufferMemory::input(input.bytes), BufferMemory::output(output.bytes)], 2)
            }
            _ => memories(self.key.what, Some(input), Some(output), false, comm.rank(), self.key.root),
        };
        self.run_memories(comm, memory)
    }

    /// Runs a prepared barrier, which has no buffers.
    pub fn run_barrier(&self, comm: &mut Communicator) -> Result<(), CommError> {
        let none: (&[u8], &mut [u8]) = (&[], &mut []);
        self.run(comm, none.0, none.1)
    }

    /// Runs a call that was prepared in place.
    pub fn run_in_place<'a>(
        &self,
        comm: &mut Communicator,
        memory: impl Into<ViewMut<'a>>,
    ) -> Result<(), CommError> {
        let memory = memory.into();
        self.check(comm, memory.dtype, true)?;
        let memory = memories(self.key.what, None, Some(memory), true, comm.rank(), self.key.root);
        self.run_memories(comm, memory)
    }

    fn run_memories(&self, comm: &mut Communicator, mut memory: Memories<'_>) -> Result<(), CommError> {
        let engine = comm.engine();
        engine.check_alive()?;
        engine.run_at(self.place, memory.as_mut_slice())
    }

    fn is_in_place(&self) -> bool {
        self.key.in_place || self.shape == Shape::InPlace
    }

    /// Mistakes that the others cannot know of end the communicator, as everywhere.
    fn check(&self, comm: &mut Communicator, dtype: DType, in_place: bool) -> Result<(), CommError> {
        if comm.engine().id != self.communicator {
            let what = "the prepared call belongs to another communicator".to_string();
            return Err(CommError::Setup { what });
        }
        let how = |in_place| if in_place { "in place" } else { "out of place" };
        let reason = if dtype != self.key.dtype {
            format!("a buffer of {dtype}, and the call was prepared for {}", self.key.dtype)
        } else if in_place != self.is_in_place() {
            format!("it runs {}, and was prepared to run {}", how(in_place), how(self.is_in_place()))
        } else {
            return Ok(());
        };
        Err(comm.engine().refuse(Refusal::Here(reason), "a prepared call".to_string()))
    }
}

impl Communicator {
    /// Prepares any call, also one with counts or displacements: it is given once with buffers of the lengths that it will run
    /// on, which are neither read nor written. Like every preparation it is a collective call: all ranks make it, at the same
    /// place among their calls; for a message, both its ranks do. A prepared message runs as [`Prepared::run`], with anything
    /// for the buffer that it does not have, and one of [`Request::custom`] too, if it has one buffer, or an input and an output.
    ///
    /// ```
    /// # use coll::{Communicator, Request};
    /// # let threads: Vec<_> = Communicator::local(2)?.into_iter().map(|mut comm| std::thread::spawn(move || {
    /// let counts = [1, 2];
    /// let (mine, mut all) = (vec![comm.rank() as i32; counts[comm.rank() as usize]], [9; 3]);
    /// let gather = comm.prepare(Request::all_gather_v(&mine, &mut all, &counts))?;
    /// for _ in 0..3 {
    ///     gather.run(&mut comm, &mine, &mut all)?;
    ///     assert_eq!(all, [0, 1, 1]);
    /// }
    /// # Ok::<(), coll::CommError>(())
    /// # })).collect();
    /// # for thread in threads { thread.join().unwrap()?; }
    /// # Ok::<(), coll::CommError>(())
    /// ```
    ///
    /// # Errors
    /// Those of the call; and a call of [`Request::custom`] with other buffers than that is not prepared: it is bound at its
    /// first run and kept.
    pub fn prepare(&mut self, request: Request<'_>) -> Result<Prepared, CommError> {
        let engine = self.engine();
        engine.check_alive()?;
        let resolved = engine.resolve(request)?;
        let Some(shape) = Shape::of(&resolved) else {
            let reason = "what is prepared has one buffer, or an input and an output; run this one as it is";
            return Err(
                engine.refuse(Refusal::Everywhere(reason.to_string()), "a call to prepare".to_string())
            );
        };
        engine.hold(&resolved, shape)
    }

    /// Prepares [`Communicator::barrier`]; [`Prepared::run_barrier`] runs it.
    pub fn prepare_barrier(&mut self) -> Result<Prepared, CommError> {
        self.prepare(Request::barrier())
    }

    /// Prepares [`Communicator::all_reduce`] of `count` elements.
    pub fn prepare_all_reduce<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
    ) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::AllReduce, false, count, 0, Some(op.into()))
    }

    /// Prepares [`Communicator::all_reduce_in_place`] of `count` elements.
    pub fn prepare_all_reduce_in_place<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
    ) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::AllReduce, true, count, 0, Some(op.into()))
    }

    /// Prepares [`Communicator::reduce`] of `count` elements.
    pub fn prepare_reduce<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
        root: u32,
    ) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::Reduce, false, count, root, Some(op.into()))
    }

    /// Prepares [`Communicator::broadcast`] of `count` elements; it runs in place.
    pub fn prepare_broadcast<T: Element>(&mut self, count: usize, root: u32) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::Broadcast, true, count, root, None)
    }

    /// Prepares [`Communicator::gather`] of `count` elements of each rank.
    pub fn prepare_gather<T: Element>(&mut self, count: usize, root: u32) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::Gather, false, count, root, None)
    }

    /// Prepares [`Communicator::scatter`] of `count` elements to each rank.
    pub fn prepare_scatter<T: Element>(&mut self, count: usize, root: u32) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::Scatter, false, count, root, None)
    }

    /// Prepares [`Communicator::all_gather`] of `count` elements of each rank.
    pub fn prepare_all_gather<T: Element>(&mut self, count: usize) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::AllGather, false, count, 0, None)
    }

    /// Prepares [`Communicator::all_gather_in_place`] of `count` elements of each rank.
    pub fn prepare_all_gather_in_place<T: Element>(&mut self, count: usize) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::AllGather, true, count, 0, None)
    }

    /// Prepares [`Communicator::reduce_scatter`] to `count` elements for each rank.
    pub fn prepare_reduce_scatter<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
    ) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::ReduceScatter, false, count, 0, Some(op.into()))
    }

    /// Prepares [`Communicator::reduce_scatter_in_place`] to `count` elements for each rank.
    pub fn prepare_reduce_scatter_in_place<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
    ) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::ReduceScatter, true, count, 0, Some(op.into()))
    }

    /// Prepares [`Communicator::all_to_all`] of `count` elements for each pair of ranks.
    pub fn prepare_all_to_all<T: Element>(&mut self, count: usize) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::AllToAll, false, count, 0, None)
    }

    /// Prepares [`Communicator::scan`] of `count` elements.
    pub fn prepare_scan<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
    ) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::Scan, false, count, 0, Some(op.into()))
    }

    /// Prepares [`Communicator::exscan`] of `count` elements.
    pub fn prepare_exscan<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
    ) -> Result<Prepared, CommError> {
        self.prepare_even::<T>(What::ExScan, false, count, 0, Some(op.into()))
    }

    /// Prepares a call whose blocks are alike. It needs no buffers: binding looks at how they are given, not at their lengths.
    fn prepare_even<T: Element>(
        &mut self,
        what: What,
        in_place: bool,
        count: usize,
        root: u32,
        op: Option<Op>,
    ) -> Result<Prepared, CommError> {
        let (rank, world) = (self.rank, self.world);
        let engine = self.engine();
        engine.check_alive()?;
        let mut key = Key {
            what,
            dtype: T::DTYPE,
            in_place,
            deterministic: false,
            types: Types::default(),
            unequal: false,
            root,
            copy: 0,
            op: op.as_ref().map_or(OpId::None, Op::id),
            count: count as u64,
            custom: 0,
        };
        engine.settle(&mut key, Asked::default())?;
        let memory = memories(what, None, None, in_place, rank, root);
        if what.has_root() && root >= world {
            let reason = format!("root {root} is no rank; ranks are 0..={}", world - 1);
            return Err(engine.refuse(Refusal::Everywhere(reason), "a call to prepare".to_string()));
        }
        let resolved = Resolved {
            key,
            counts: Counts::Even,
            displacements: Displacements::default(),
            lengths: [0; 2],
            own: count as u64,
            op,
            custom: None,
            memory,
        };
        engine.hold(&resolved, Shape::Library)
    }
}

impl Engine {
    /// Binds a call and keeps it bound.
    fn hold(&mut self, resolved: &Resolved<'_>, shape: Shape) -> Result<Prepared, CommError> {
        let place = self.place(resolved)?;
        let held = self.cache.get_mut(place).map(|entry| Arc::clone(&entry.held)).unwrap_or_default();
        self.connect(&[place], None)?;
        Ok(Prepared { communicator: self.id, place, key: resolved.key, shape, _held: held })
    }
}
