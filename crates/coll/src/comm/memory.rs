//! Buffers that peers read where they lie.

use crate::comm::{CommError, Communicator, Element, View, ViewMut};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A buffer that ranks which share memory with this one read in place when it is sent or reduced, where an ordinary one is
/// copied to them: see [`Communicator::alloc`]. It is a slice like any other, and outlives its communicator if need be.
///
/// Only its owner ever writes to it. A call that sends from it returns when every peer has read what it needs, as a call on
/// ordinary memory returns when it is copied.
#[derive(Debug)]
pub struct Memory<T> {
    bytes: coll_shm::Memory,
    elements: PhantomData<T>,
}

impl Communicator {
    /// A buffer of `len` zeros that peers can read in place, for any call of any communicator of this process. Large
    /// messages gain by it: a rank on the same machine reduces straight out of it, or copies once instead of twice. Ranks on
    /// other machines are sent what lies in it as ever. Some buffers of a call may be such and others ordinary, on some ranks
    /// and not on others.
    ///
    /// It takes one open file. Where the system gives no memory that can be shared it is ordinary memory.
    ///
    /// ```
    /// # use coll::{Communicator, RedOp};
    /// let mut comm = Communicator::alone()?;
    /// let mut gradients = comm.alloc::<f32>(1000)?;
    /// gradients[3] = 1.5;
    /// comm.all_reduce_in_place(&mut gradients, RedOp::Avg)?;
    /// assert_eq!(gradients[..4], [0.0, 0.0, 0.0, 1.5]);
    /// # Ok::<(), coll::CommError>(())
    /// ```
    ///
    /// # Errors
    /// If there is not so much memory. Nothing else is the matter then: this concerns no other rank.
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Memory<T>, CommError> {
        let bytes = len.checked_mul(size_of::<T>());
        let memory = bytes.and_then(|bytes| coll_shm::Memory::new(bytes).ok());
        let memory = memory.ok_or_else(|| CommError::Setup {
            what: format!("rank {}: no memory for {len} elements of {}", self.rank(), T::DTYPE),
        })?;
        Ok(Memory { bytes: memory, elements: PhantomData })
    }
}

impl<T> Memory<T> {
    /// Whether peers can read it in place: false for a buffer of no elements, and where the system gives no such memory.
    pub fn is_shared(&self) -> bool {
        self.bytes.is_shared()
    }
}

impl<T: Element> Deref for Memory<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // Memory starts at a page; no memory starts anywhere.
        if self.bytes.is_empty() { &[] } else { bytemuck::cast_slice(&self.bytes) }
    }
}

impl<T: Element> DerefMut for Memory<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        if self.bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(&mut self.bytes) }
    }
}

impl<T: Element> AsRef<[T]> for Memory<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: Element> AsMut<[T]> for Memory<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<'a, T: Element> From<&'a Memory<T>> for View<'a> {
    fn from(memory: &'a Memory<T>) -> View<'a> {
        View::from(&memory[..])
    }
}

impl<'a, T: Element> From<&'a mut Memory<T>> for ViewMut<'a> {
    fn from(memory: &'a mut Memory<T>) -> ViewMut<'a> {
        ViewMut::from(&mut memory[..])
    }
}
