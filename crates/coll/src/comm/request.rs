//! A call as a value: what is to be done with which buffers. Blocking, grouped, prepared and background calls all begin
//! as one.

use crate::comm::custom::{Buffer, Custom};
use crate::comm::types::Asked;
use crate::comm::{Op, View, ViewMut};
use coll_base::DType;

/// A call as a value, for [`Communicator::run`](crate::Communicator::run) and [`Group::add`](crate::Group::add). The
/// methods of [`Communicator`](crate::Communicator) say what each does; here buffers are anything that becomes a
/// [`View`], so that the element type may be known at run time only.
///
/// ```
/// use coll::{Communicator, RedOp, Request, View, ViewMut};
/// use coll_base::DType;
///
/// let mut comm = Communicator::alone()?;
/// let (input, mut output) = (1.5f64.to_ne_bytes(), [0; 8]);
/// comm.run(Request::all_reduce(
///     View::new(DType::F64, &input),
///     ViewMut::new(DType::F64, &mut output),
///     RedOp::Sum,
/// ))?;
/// assert_eq!(f64::from_ne_bytes(output), 1.5);
/// # Ok::<(), coll::CommError>(())
/// ```
#[derive(Debug)]
pub struct Request<'a> {
    pub(crate) what: What,
    pub(crate) input: Option<View<'a>>,
    /// In place, the memory.
    pub(crate) output: Option<ViewMut<'a>>,
    pub(crate) in_place: bool,
    pub(crate) op: Option<Op>,
    /// The root, or the peer.
    pub(crate) root: u32,
    pub(crate) counts: Counts<'a>,
    pub(crate) displacements: Displacements<'a>,
    pub(crate) types: Asked,
    pub(crate) custom: Option<(&'a Custom, Vec<Buffer<'a>>)>,
}

/// Where blocks begin, where they do not lie one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Displacements<'a> {
    /// In the input.
    pub(crate) input: Option<&'a [usize]>,
    /// In the output.
    pub(crate) output: Option<&'a [usize]>,
}

impl Displacements<'_> {
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.input.is_some() || self.output.is_some()
    }
}

/// Which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Barrier,
    Broadcast,
    Reduce,
    AllReduce,
    Gather,
    Scatter,
    AllGather,
    ReduceScatter,
    AllToAll,
    Scan,
    ExScan,
    Send,
    Receive,
    Custom,
}

/// Elements of each block, where blocks differ.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Counts<'a> {
    /// All blocks are alike.
    Even,
    /// Known on every rank: those of block 0, 1, …
    Shared(&'a [usize]),
    /// Known at the root alone; none elsewhere.
    AtRoot(Option<&'a [usize]>),
    /// To and from each rank.
    Pairs { send: &'a [usize], receive: &'a [usize] },
    /// By count class.
    Classes(&'a [u64]),
}

impl What {
    /// The collective's name in the library, where it is one.
    pub(crate) fn collective(self) -> Option<&'static str> {
        Some(match self {
            What::Barrier => "barrier",
            What::Broadcast => "broadcast",
            What::Reduce => "reduce",
            What::AllReduce => "allreduce",
            What::Gather => "gather",
            What::Scatter => "scatter",
            What::AllGather => "allgather",
            What::ReduceScatter => "reduce_scatter",
            What::AllToAll => "alltoall",
            What::Scan => "scan",
            What::ExScan => "exscan",
            What::Send | What::Receive | What::Custom => return None,
        })
    }

    /// True if it concerns two ranks only.
    pub(crate) fn is_between_two(self) -> bool {
        matches!(self, What::Send | What::Receive)
    }

    /// True if its buffers have a block for each rank.
    pub(crate) fn has_blocks(self) -> bool {
        use What::{AllGather, AllToAll, Gather, ReduceScatter, Scatter};
        matches!(self, Gather | Scatter | AllGather | ReduceScatter | AllToAll)
    }

    pub(crate) fn reduces(self) -> bool {
        use What::{AllReduce, ExScan, Reduce, ReduceScatter, Scan};
        matches!(self, Reduce | AllReduce | ReduceScatter | Scan | ExScan)
    }

    pub(crate) fn has_root(self) -> bool {
        matches!(self, What::Broadcast | What::Reduce | What::Gather | What::Scatter)
    }
}

impl<'a> Request<'a> {
    #[inline]
    fn new(what: What) -> Request<'a> {
        Request {
            what,
            input: None,
            output: None,
            in_place: false,
            op: None,
            root: 0,
            counts: Counts::Even,
            displacements: Displacements { input: None, output: None },
            types: Asked { accumulate: None, wire: None },
            custom: None,
        }
    }

    #[inline]
    fn separate(what: What, input: impl Into<View<'a>>, output: impl Into<ViewMut<'a>>) -> Request<'a> {
        Request { input: Some(input.into()), output: Some(output.into()), ..Request::new(what) }
    }

    #[inline]
    fn in_place(what: What, memory: impl Into<ViewMut<'a>>) -> Request<'a> {
        Request { output: Some(memory.into()), in_place: true, ..Request::new(what) }
    }

    /// See [`Communicator::barrier`](crate::Communicator::barrier).
    pub fn barrier() -> Request<'a> {
        Request::new(What::Barrier)
    }

    /// See [`Communicator::broadcast`](crate::Communicator::broadcast).
    pub fn broadcast(data: impl Into<ViewMut<'a>>, root: u32) -> Request<'a> {
        Request { root, ..Request::in_place(What::Broadcast, data) }
    }

    /// See [`Communicator::reduce`](crate::Communicator::reduce).
    pub fn reduce<O: Into<ViewMut<'a>>>(
        input: impl Into<View<'a>>,
        output: Option<O>,
        op: impl Into<Op>,
        root: u32,
    ) -> Request<'a> {
        Request {
            input: Some(input.into()),
            output: output.map(Into::into),
            op: Some(op.into()),
            root,
            ..Request::new(What::Reduce)
        }
    }

    /// See [`Communicator::reduce_in_place`](crate::Communicator::reduce_in_place).
    pub fn reduce_in_place(data: impl Into<ViewMut<'a>>, op: impl Into<Op>, root: u32) -> Request<'a> {
        Request { op: Some(op.into()), root, ..Request::in_place(What::Reduce, data) }
    }

    /// See [`Communicator::all_reduce`](crate::Communicator::all_reduce).
    #[inline]
    pub fn all_reduce(
        input: impl Into<View<'a>>,
        output: impl Into<ViewMut<'a>>,
        op: impl Into<Op>,
    ) -> Request<'a> {
        Request { op: Some(op.into()), ..Request::separate(What::AllReduce, input, output) }
    }

    /// See [`Communicator::all_reduce_in_place`](crate::Communicator::all_reduce_in_place).
    #[inline]
    pub fn all_reduce_in_place(data: impl Into<ViewMut<'a>>, op: impl Into<Op>) -> Request<'a> {
        Request { op: Some(op.into()), ..Request::in_place(What::AllReduce, data) }
    }

    /// See [`Communicator::gather`](crate::Communicator::gather).
    pub fn gather<O: Into<ViewMut<'a>>>(mine: impl Into<View<'a>>, all: Option<O>, root: u32) -> Request<'a> {
        let (input, output) = (Some(mine.into()), all.map(Into::into));
        Request { input, output, root, ..Request::new(What::Gather) }
    }

    /// See [`Communicator::gather_in_place`](crate::Communicator::gather_in_place).
    pub fn gather_in_place(data: impl Into<ViewMut<'a>>, root: u32) -> Request<'a> {
        Request { root, ..Request::in_place(What::Gather, data) }
    }

    /// See [`Communicator::gather_v`](crate::Communicator::gather_v).
    pub fn gather_v<O: Into<ViewMut<'a>>>(
        mine: impl Into<View<'a>>,
        all: Option<(O, &'a [usize])>,
        root: u32,
    ) -> Request<'a> {
        let (all, counts) = all.unzip();
        Request { counts: Counts::AtRoot(counts), ..Request::gather(mine, all, root) }
    }

    /// See [`Communicator::scatter`](crate::Communicator::scatter).
    pub fn scatter<I: Into<View<'a>>>(
        all: Option<I>,
        mine: impl Into<ViewMut<'a>>,
        root: u32,
    ) -> Request<'a> {
        let (input, output) = (all.map(Into::into), Some(mine.into()));
        Request { input, output, root, ..Request::new(What::Scatter) }
    }

    /// See [`Communicator::scatter_in_place`](crate::Communicator::scatter_in_place).
    pub fn scatter_in_place(data: impl Into<ViewMut<'a>>, root: u32) -> Request<'a> {
        Request { root, ..Request::in_place(What::Scatter, data) }
    }

    /// See [`Communicator::scatter_v`](crate::Communicator::scatter_v).
    pub fn scatter_v<I: Into<View<'a>>>(
        all: Option<(I, &'a [usize])>,
        mine: impl Into<ViewMut<'a>>,
        root: u32,
    ) -> Request<'a> {
        let (all, counts) = all.unzip();
        Request { counts: Counts::AtRoot(counts), ..Request::scatter(all, mine, root) }
    }

    /// See [`Communicator::all_gather`](crate::Communicator::all_gather).
    pub fn all_gather(mine: impl Into<View<'a>>, all: impl Into<ViewMut<'a>>) -> Request<'a> {
        Request::separate(What::AllGather, mine, all)
    }

    /// See [`Communicator::all_gather_in_place`](crate::Communicator::all_gather_in_place).
    pub fn all_gather_in_place(all: impl Into<ViewMut<'a>>) -> Request<'a> {
        Request::in_place(What::AllGather, all)
    }

    /// See [`Communicator::all_gather_v`](crate::Communicator::all_gather_v).
    pub fn all_gather_v(
        mine: impl Into<View<'a>>,
        all: impl Into<ViewMut<'a>>,
        counts: &'a [usize],
    ) -> Request<'a> {
        Request { counts: Counts::Shared(counts), ..Request::all_gather(mine, all) }
    }

    /// See [`Communicator::all_gather_v_in_place`](crate::Communicator::all_gather_v_in_place).
    pub fn all_gather_v_in_place(all: impl Into<ViewMut<'a>>, counts: &'a [usize]) -> Request<'a> {
        Request { counts: Counts::Shared(counts), ..Request::all_gather_in_place(all) }
    }

    /// See [`Communicator::reduce_scatter`](crate::Communicator::reduce_scatter).
    pub fn reduce_scatter(
        all: impl Into<View<'a>>,
        mine: impl Into<ViewMut<'a>>,
        op: impl Into<Op>,
    ) -> Request<'a> {
        Request { op: Some(op.into()), ..Request::separate(What::ReduceScatter, all, mine) }
    }

    /// See [`Communicator::reduce_scatter_in_place`](crate::Communicator::reduce_scatter_in_place).
    pub fn reduce_scatter_in_place(all: impl Into<ViewMut<'a>>, op: impl Into<Op>) -> Request<'a> {
        Request { op: Some(op.into()), ..Request::in_place(What::ReduceScatter, all) }
    }

    /// See [`Communicator::reduce_scatter_v`](crate::Communicator::reduce_scatter_v).
    pub fn reduce_scatter_v(
        all: impl Into<View<'a>>,
        mine: impl Into<ViewMut<'a>>,
        op: impl Into<Op>,
        counts: &'a [usize],
    ) -> Request<'a> {
        Request { counts: Counts::Shared(counts), ..Request::reduce_scatter(all, mine, op) }
    }

    /// See [`Communicator::reduce_scatter_v_in_place`](crate::Communicator::reduce_scatter_v_in_place).
    pub fn reduce_scatter_v_in_place(
        all: impl Into<ViewMut<'a>>,
        op: impl Into<Op>,
        counts: &'a [usize],
    ) -> Request<'a> {
        Request { counts: Counts::Shared(counts), ..Request::reduce_scatter_in_place(all, op) }
    }

    /// See [`Communicator::all_to_all`](crate::Communicator::all_to_all).
    pub fn all_to_all(input: impl Into<View<'a>>, output: impl Into<ViewMut<'a>>) -> Request<'a> {
        Request::separate(What::AllToAll, input, output)
    }

    /// See [`Communicator::all_to_all_v`](crate::Communicator::all_to_all_v).
    pub fn all_to_all_v(
        input: impl Into<View<'a>>,
        send: &'a [usize],
        output: impl Into<ViewMut<'a>>,
        receive: &'a [usize],
    ) -> Request<'a> {
        Request { counts: Counts::Pairs { send, receive }, ..Request::all_to_all(input, output) }
    }

    /// Where the blocks of the buffer that holds all of them begin, in elements, by rank: for the calls with counts but
    /// [`Request::all_to_all_v`]. They may lie in any order and with gaps between, which are left as they are. What is read may
    /// overlap; blocks that are written and overlap are refused. A rank's displacements are its own matter: others need not
    /// have the same. MPI calls them `displs`.
    ///
    /// ```
    /// # use coll::{Communicator, Request};
    /// # let threads: Vec<_> = Communicator::local(2)?.into_iter().map(|mut comm| std::thread::spawn(move || {
    /// let (mine, mut all) = (vec![comm.rank() as i32; 2], [9; 6]);
    /// comm.run(Request::all_gather_v(&mine, &mut all, &[2, 2]).at(&[4, 1]))?;
    /// assert_eq!(all, [9, 1, 1, 9, 0, 0]);
    /// # Ok::<(), coll::CommError>(())
    /// # })).collect();
    /// # for thread in threads { thread.join().unwrap()?; }
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn at(mut self, displacements: &'a [usize]) -> Request<'a> {
        match self.what {
            What::Scatter | What::ReduceScatter => self.displacements.input = Some(displacements),
            _ => self.displacements.output = Some(displacements),
        }
        self
    }

    /// Where blocks begin in the input and in the output of [`Request::all_to_all_v`], in elements: see [`Request::at`].
    pub fn at_both(mut self, input: &'a [usize], output: &'a [usize]) -> Request<'a> {
        self.displacements = Displacements { input: Some(input), output: Some(output) };
        self
    }

    /// What narrow floats are reduced in, in this call alone: see [`Builder::accumulate`](crate::Builder::accumulate). None is
    /// their own type, whatever the communicator was told.
    ///
    /// ```
    /// # use coll::{Communicator, RedOp, Request, View, ViewMut};
    /// # use coll_base::DType;
    /// # let mut comm = Communicator::alone()?;
    /// let (gradients, mut sum) = ([0u8; 1000], [0u8; 1000]);
    /// let (gradients, sum) = (View::new(DType::Bf16, &gradients), ViewMut::new(DType::Bf16, &mut sum));
    /// comm.run(Request::all_reduce(gradients, sum, RedOp::Sum).accumulate(DType::F32))?;
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn accumulate(mut self, dtype: impl Into<Option<DType>>) -> Request<'a> {
        self.types.accumulate = Some(dtype.into());
        self
    }

    /// What wider floats travel as, in this call alone: see [`Builder::wire`](crate::Builder::wire). None is what they are,
    /// whatever the communicator was told.
    pub fn wire(mut self, dtype: impl Into<Option<DType>>) -> Request<'a> {
        self.types.wire = Some(dtype.into());
        self
    }

    /// See [`Communicator::scan`](crate::Communicator::scan).
    pub fn scan(
        input: impl Into<View<'a>>,
        output: impl Into<ViewMut<'a>>,
        op: impl Into<Op>,
    ) -> Request<'a> {
        Request { op: Some(op.into()), ..Request::separate(What::Scan, input, output) }
    }

    /// See [`Communicator::scan_in_place`](crate::Communicator::scan_in_place).
    pub fn scan_in_place(data: impl Into<ViewMut<'a>>, op: impl Into<Op>) -> Request<'a> {
        Request { op: Some(op.into()), ..Request::in_place(What::Scan, data) }
    }

    /// See [`Communicator::exscan`](crate::Communicator::exscan).
    pub fn exscan(
        input: impl Into<View<'a>>,
        output: impl Into<ViewMut<'a>>,
        op: impl Into<Op>,
    ) -> Request<'a> {
        Request { op: Some(op.into()), ..Request::separate(What::ExScan, input, output) }
    }

    /// See [`Communicator::exscan_in_place`](crate::Communicator::exscan_in_place).
    pub fn exscan_in_place(data: impl Into<ViewMut<'a>>, op: impl Into<Op>) -> Request<'a> {
        Request { op: Some(op.into()), ..Request::in_place(What::ExScan, data) }
    }

    /// See [`Communicator::send`](crate::Communicator::send).
    pub fn send(data: impl Into<View<'a>>, to: u32) -> Request<'a> {
        Request { input: Some(data.into()), root: to, ..Request::new(What::Send) }
    }

    /// See [`Communicator::receive`](crate::Communicator::receive).
    pub fn receive(data: impl Into<ViewMut<'a>>, from: u32) -> Request<'a> {
        Request { output: Some(data.into()), root: from, ..Request::new(What::Receive) }
    }

    /// See [`Communicator::run_custom`](crate::Communicator::run_custom).
    pub fn custom(
        custom: &'a Custom,
        counts: &'a [u64],
        buffers: Vec<Buffer<'a>>,
        op: Option<Op>,
    ) -> Request<'a> {
        Request {
            op,
            counts: Counts::Classes(counts),
            custom: Some((custom, buffers)),
            ..Request::new(What::Custom)
        }
    }
}
