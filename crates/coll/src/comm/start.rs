//! Calls in the background.

use crate::comm::background::Background;
use crate::comm::pending::Pending;
use crate::comm::{CommError, Communicator, Element, Op};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Communicator {
    /// Runs calls in the background: `calls` gets the communicator and the buffers, and makes whatever blocking calls it
    /// likes; [`Pending`] hands the buffers back. Nobody has them meanwhile, so this is sound whatever happens to the handle.
    ///
    /// Background calls run one after the other in the order in which they were started. A blocking call waits for them.
    ///
    /// ```
    /// # use coll::{Communicator, RedOp};
    /// let mut comm = Communicator::alone()?;
    /// let pending = comm.start((vec![1, 2, 3], vec![0; 3]), |comm, (input, output)| {
    ///     comm.all_reduce(input, output, RedOp::Max)
    /// })?;
    /// // … compute …
    /// let (_input, output) = pending.wait()?;
    /// assert_eq!(output, [1, 2, 3]);
    /// # Ok::<(), coll::CommError>(())
    /// ```
    ///
    /// # Errors
    /// Only if no thread can be had, and then the buffers are gone. Whether the calls can be made at all shows when they are.
    pub fn start<B: Send + 'static>(
        &mut self,
        mut buffers: B,
        calls: impl FnOnce(&mut Communicator, &mut B) -> Result<(), CommError> + Send + 'static,
    ) -> Result<Pending<B>, CommError> {
        let background = match &mut self.background {
            Some(background) => background,
            none => none.insert(Background::start(self.rank)?),
        };
        let (pending, slot) = Pending::new();
        let job = Box::new(move |engine| {
            let mut comm = Communicator::with_engine(engine);
            let ran = catch_unwind(AssertUnwindSafe(|| calls(&mut comm, &mut buffers)));
            let result = ran.unwrap_or_else(|panic| {
                let message = panic.downcast_ref::<&str>().map(ToString::to_string);
                let message = message.or_else(|| panic.downcast_ref::<String>().cloned());
                let message = message.unwrap_or_else(|| "no message".to_string());
                let error = CommError::Panicked { rank: comm.rank, message };
                comm.engine().end(error.clone(), &error.to_string());
                Err(error)
            });
            let engine = comm.into_engine();
            slot.fill(buffers, result);
            engine
        });
        background.push(job, self.engine.take());
        Ok(pending)
    }

    /// Takes the engine out; without it nothing is left to do when this is dropped.
    fn into_engine(mut self) -> Box<crate::comm::engine::Engine> {
        self.engine();
        self.engine.take().expect("invariant: it was just brought here")
    }

    /// [`Communicator::all_reduce_in_place`] in the background.
    pub fn start_all_reduce<T, B>(&mut self, data: B, op: impl Into<Op>) -> Result<Pending<B>, CommError>
    where
        T: Element,
        B: AsMut<[T]> + Send + 'static,
    {
        let op = op.into();
        self.start(data, move |comm, data| comm.all_reduce_in_place(data.as_mut(), op))
    }

    /// [`Communicator::broadcast`] in the background.
    pub fn start_broadcast<T, B>(&mut self, data: B, root: u32) -> Result<Pending<B>, CommError>
    where
        T: Element,
        B: AsMut<[T]> + Send + 'static,
    {
        self.start(data, move |comm, data| comm.broadcast(data.as_mut(), root))
    }

    /// [`Communicator::all_gather`] in the background.
    pub fn start_all_gather<T, A, B>(&mut self, mine: A, all: B) -> Result<Pending<(A, B)>, CommError>
    where
        T: Element,
        A: AsRef<[T]> + Send + 'static,
        B: AsMut<[T]> + Send + 'static,
    {
        self.start((mine, all), |comm, (mine, all)| comm.all_gather(mine.as_ref(), all.as_mut()))
    }

    /// [`Communicator::reduce_scatter`] in the background.
    pub fn start_reduce_scatter<T, A, B>(
        &mut self,
        all: A,
        mine: B,
        op: impl Into<Op>,
    ) -> Result<Pending<(A, B)>, CommError>
    where
        T: Element,
        A: AsRef<[T]> + Send + 'static,
        B: AsMut<[T]> + Send + 'static,
    {
        let op = op.into();
        self.start((all, mine), move |comm, (all, mine)| comm.reduce_scatter(all.as_ref(), mine.as_mut(), op))
    }

    /// [`Communicator::all_to_all`] in the background.
    pub fn start_all_to_all<T, A, B>(&mut self, input: A, output: B) -> Result<Pending<(A, B)>, CommError>
    where
        T: Element,
        A: AsRef<[T]> + Send + 'static,
        B: AsMut<[T]> + Send + 'static,
    {
        self.start((input, output), |comm, (input, output)| comm.all_to_all(input.as_ref(), output.as_mut()))
    }

    /// [`Communicator::send`] in the background.
    pub fn start_send<T, B>(&mut self, data: B, to: u32) -> Result<Pending<B>, CommError>
    where
        T: Element,
        B: AsRef<[T]> + Send + 'static,
    {
        self.start(data, move |comm, data| comm.send(data.as_ref(), to))
    }

    /// [`Communicator::receive`] in the background.
    pub fn start_receive<T, B>(&mut self, data: B, from: u32) -> Result<Pending<B>, CommError>
    where
        T: Element,
        B: AsMut<[T]> + Send + 'static,
    {
        self.start(data, move |comm, data| comm.receive(data.as_mut(), from))
    }

    /// [`Communicator::barrier`] in the background.
    pub fn start_barrier(&mut self) -> Result<Pending<()>, CommError> {
        self.start((), |comm, ()| comm.barrier())
    }
}
