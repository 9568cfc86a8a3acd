//! Calls that are bound once and run many times.

use crate::comm::error::Refusal;
use crate::comm::op::OpId;
use crate::comm::request::{Counts, What};
use crate::comm::resolve::{Key, Memories, Resolved, memories};
use crate::comm::{CommError, Communicator, Element, Op, View, ViewMut};
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
    _held: Arc<()>,
}

impl Prepared {
    /// Runs a call that was prepared out of place.
    pub fn run<'a>(
        &self,
        comm: &mut Communicator,
        input: impl Into<View<'a>>,
        output: impl Into<ViewMut<'a>>,
    ) -> Result<(), CommError> {
        let (input, output) = (input.into(), output.into());
        self.check(comm, input.dtype, false)?;
        self.check(comm, output.dtype, false)?;
        let memory = memories(self.key.what, Some(input), Some(output), false, comm.rank(), self.key.root);
        self.run_memories(comm, memory)
    }

    /// Runs a call that was prepared in place.
    pub fn run_in_place<'a>(
        &self,
        comm: &mut Communicator,
        memory: impl Into<ViewMut<'a>>,
    ) -> Result<(), CommError> {
        let memory = memory.into();
        self.check(comm, memory.dtype, true)?;
        self.run_memories(comm, Memories::Few([BufferMemory::InPlace(memory.bytes), none()], 1))
    }

    fn run_memories(&self, comm: &mut Communicator, mut memory: Memories<'_>) -> Result<(), CommError> {
        let engine = comm.engine();
        engine.check_alive()?;
        engine.run_at(self.place, memory.as_mut_slice())
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
        } else if in_place != self.key.in_place {
            format!("it runs {}, and was prepared to run {}", how(in_place), how(self.key.in_place))
        } else {
            return Ok(());
        };
        Err(comm.engine().refuse(Refusal::Here(reason), "a prepared call".to_string()))
    }
}

fn none<'a>() -> BufferMemory<'a> {
    BufferMemory::InPlace(&mut [])
}

impl Communicator {
    /// Prepares [`Communicator::all_reduce`] of `count` elements. Like every preparation it is a collective call: all ranks
    /// make it, at the same place among their calls.
    pub fn prepare_all_reduce<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
    ) -> Result<Prepared, CommError> {
        self.prepare::<T>(What::AllReduce, false, count, 0, Some(op.into()))
    }

    /// Prepares [`Communicator::all_reduce_in_place`] of `count` elements.
    pub fn prepare_all_reduce_in_place<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
    ) -> Result<Prepared, CommError> {
        self.prepare::<T>(What::AllReduce, true, count, 0, Some(op.into()))
    }

    /// Prepares [`Communicator::broadcast`] of `count` elements; it runs in place.
    pub fn prepare_broadcast<T: Element>(&mut self, count: usize, root: u32) -> Result<Prepared, CommError> {
        self.prepare::<T>(What::Broadcast, true, count, root, None)
    }

    /// Prepares [`Communicator::all_gather`] of `count` elements of each rank.
    pub fn prepare_all_gather<T: Element>(&mut self, count: usize) -> Result<Prepared, CommError> {
        self.prepare::<T>(What::AllGather, false, count, 0, None)
    }

    /// Prepares [`Communicator::reduce_scatter`] to `count` elements for each rank.
    pub fn prepare_reduce_scatter<T: Element>(
        &mut self,
        count: usize,
        op: impl Into<Op>,
    ) -> Result<Prepared, CommError> {
        self.prepare::<T>(What::ReduceScatter, false, count, 0, Some(op.into()))
    }

    /// Prepares [`Communicator::all_to_all`] of `count` elements for each pair of ranks.
    pub fn prepare_all_to_all<T: Element>(&mut self, count: usize) -> Result<Prepared, CommError> {
        self.prepare::<T>(What::AllToAll, false, count, 0, None)
    }

    fn prepare<T: Element>(
        &mut self,
        what: What,
        in_place: bool,
        count: usize,
        root: u32,
        op: Option<Op>,
    ) -> Result<Prepared, CommError> {
        let (rank, world) = (self.rank, self.world);
        let engine = self.engine();
        let communicator = engine.id;
        engine.check_alive()?;
        let key = Key {
            what,
            dtype: T::DTYPE,
            in_place,
            unequal: false,
            root,
            copy: 0,
            op: op.as_ref().map_or(OpId::None, Op::id),
            count: count as u64,
            custom: 0,
        };
        // Binding looks at how buffers are given, not at their lengths.
        let memory = match in_place {
            true => Memories::Few([none(), none()], 1),
            false => memories(what, None, None, false, rank, root),
        };
        if what.has_root() && root >= world {
            let reason = format!("root {root} is no rank; ranks are 0..={}", world - 1);
            return Err(engine.refuse(Refusal::Everywhere(reason), "a call to prepare".to_string()));
        }
        let own = count as u64;
        let resolved = Resolved { key, counts: Counts::Even, own, op, custom: None, memory };
        let place = engine.place(&resolved)?;
        let held = engine.cache.get_mut(place).map(|entry| Arc::clone(&entry.held)).unwrap_or_default();
        engine.connect(&[place], None)?;
        Ok(Prepared { communicator, place, key, _held: held })
    }
}
