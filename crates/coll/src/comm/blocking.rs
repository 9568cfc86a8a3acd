//! The operations as blocking calls on slices. Each is a [`Request`] that is run at once.
//!
//! In what follows, n is the number of ranks, r this rank, and lengths are in elements.

use crate::comm::{CommError, Communicator, Element, Op, Request};

impl Communicator {
    /// Returns when every rank has called it.
    pub fn barrier(&mut self) -> Result<(), CommError> {
        self.run(Request::barrier())
    }

    /// Every rank's `data` becomes the root's. Equal lengths on all ranks.
    pub fn broadcast<T: Element>(&mut self, data: &mut [T], root: u32) -> Result<(), CommError> {
        self.run(Request::broadcast(data, root))
    }

    /// The root's `output` becomes the reduction of all ranks' `input`. Equal lengths on all ranks; the root must give an
    /// output, and that of another rank is left as it is.
    pub fn reduce<T: Element>(
        &mut self,
        input: &[T],
        output: Option<&mut [T]>,
        op: impl Into<Op>,
        root: u32,
    ) -> Result<(), CommError> {
        self.run(Request::reduce(input, output, op, root))
    }

    /// [`Communicator::reduce`] with one memory: the root's `data` becomes the reduction of all ranks' `data`; that of another
    /// rank is left as it is. Equal lengths on all ranks.
    pub fn reduce_in_place<T: Element>(
        &mut self,
        data: &mut [T],
        op: impl Into<Op>,
        root: u32,
    ) -> Result<(), CommError> {
        self.run(Request::reduce_in_place(data, op, root))
    }

    /// Every rank's `output` becomes the reduction of all ranks' `input`. Equal lengths on all ranks.
    #[inline]
    pub fn all_reduce<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        op: impl Into<Op>,
    ) -> Result<(), CommError> {
        self.run(Request::all_reduce(input, output, op))
    }

    /// [`Communicator::all_reduce`] with one memory for input and output.
    #[inline]
    pub fn all_reduce_in_place<T: Element>(
        &mut self,
        data: &mut [T],
        op: impl Into<Op>,
    ) -> Result<(), CommError> {
        self.run(Request::all_reduce_in_place(data, op))
    }

    /// The root's `all`, n times as long as `mine`, becomes the ranks' `mine` one after the other. Equal lengths of `mine` on
    /// all ranks. The root must give `all`; that of another rank is left as it is.
    pub fn gather<T: Element>(
        &mut self,
        mine: &[T],
        all: Option<&mut [T]>,
        root: u32,
    ) -> Result<(), CommError> {
        self.run(Request::gather(mine, all, root))
    }

    /// [`Communicator::gather`] with one memory: the root gives all n blocks, of which its own lies at its place already; another
    /// rank gives its block, which is left as it is. Equal blocks on all ranks.
    ///
    /// ```
    /// # let threads: Vec<_> = coll::Communicator::local(2)?.into_iter().map(|mut comm| std::thread::spawn(move || {
    /// let mut data = if comm.rank() == 1 { vec![0, 20] } else { vec![10] };
    /// comm.gather_in_place(&mut data, 1)?;
    /// assert_eq!(data, if comm.rank() == 1 { vec![10, 20] } else { vec![10] });
    /// # Ok::<(), coll::CommError>(())
    /// # })).collect();
    /// # for thread in threads { thread.join().unwrap()?; }
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn gather_in_place<T: Element>(&mut self, data: &mut [T], root: u32) -> Result<(), CommError> {
        self.run(Request::gather_in_place(data, root))
    }

    /// Every rank's `all`, n times as long as `mine`, becomes the ranks' `mine` one after the other. Equal lengths of `mine`
    /// on all ranks.
    ///
    /// ```
    /// # let threads: Vec<_> = coll::Communicator::local(2)?.into_iter().map(|mut comm| std::thread::spawn(move || {
    /// let mut all = [0; 4];
    /// comm.all_gather(&[comm.rank() as u8, 7], &mut all)?;
    /// assert_eq!(all, [0, 7, 1, 7]);
    /// # Ok::<(), coll::CommError>(())
    /// # })).collect();
    /// # for thread in threads { thread.join().unwrap()?; }
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn all_gather<T: Element>(&mut self, mine: &[T], all: &mut [T]) -> Result<(), CommError> {
        self.run(Request::all_gather(mine, all))
    }

    /// [`Communicator::all_gather`] of the block that lies at its place in `all` already: the rth of n.
    pub fn all_gather_in_place<T: Element>(&mut self, all: &mut [T]) -> Result<(), CommError> {
        self.run(Request::all_gather_in_place(all))
    }

    /// Rank q's `mine` becomes block q of the root's `all`, which is n times as long. Equal lengths of `mine` on all ranks.
    /// The root must give `all`; that of another rank is not read.
    pub fn scatter<T: Element>(
        &mut self,
        all: Option<&[T]>,
        mine: &mut [T],
        root: u32,
    ) -> Result<(), CommError> {
        self.run(Request::scatter(all, mine, root))
    }

    /// [`Communicator::scatter`] with one memory: the root gives all n blocks, which are left as they are, its own at its place;
    /// another rank's `data` becomes its block. Equal blocks on all ranks.
    pub fn scatter_in_place<T: Element>(&mut self, data: &mut [T], root: u32) -> Result<(), CommError> {
        self.run(Request::scatter_in_place(data, root))
    }

    /// `mine` becomes the reduction of block r of all ranks' `all`, which is n times as long. Equal lengths on all ranks.
    pub fn reduce_scatter<T: Element>(
        &mut self,
        all: &[T],
        mine: &mut [T],
        op: impl Into<Op>,
    ) -> Result<(), CommError> {
        self.run(Request::reduce_scatter(all, mine, op))
    }

    /// [`Communicator::reduce_scatter`] with one memory: block r of `all` becomes the result, and what the other blocks hold
    /// then is anything.
    pub fn reduce_scatter_in_place<T: Element>(
        &mut self,
        all: &mut [T],
        op: impl Into<Op>,
    ) -> Result<(), CommError> {
        self.run(Request::reduce_scatter_in_place(all, op))
    }

    /// Block q of `output` becomes block r of rank q's `input`; both have n equal blocks. Equal lengths on all ranks.
    pub fn all_to_all<T: Element>(&mut self, input: &[T], output: &mut [T]) -> Result<(), CommError> {
        self.run(Request::all_to_all(input, output))
    }

    /// `output` becomes the reduction of the inputs of ranks 0 to r. Equal lengths on all ranks.
    pub fn scan<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        op: impl Into<Op>,
    ) -> Result<(), CommError> {
        self.run(Request::scan(input, output, op))
    }

    /// [`Communicator::scan`] with one memory for input and output.
    pub fn scan_in_place<T: Element>(&mut self, data: &mut [T], op: impl Into<Op>) -> Result<(), CommError> {
        self.run(Request::scan_in_place(data, op))
    }

    /// `output` becomes the reduction of the inputs of the ranks before r; that of rank 0 is left as it is. Equal lengths on
    /// all ranks.
    pub fn exscan<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        op: impl Into<Op>,
    ) -> Result<(), CommError> {
        self.run(Request::exscan(input, output, op))
    }

    /// [`Communicator::exscan`] with one memory for input and output; that of rank 0 is left as it is.
    pub fn exscan_in_place<T: Element>(
        &mut self,
        data: &mut [T],
        op: impl Into<Op>,
    ) -> Result<(), CommError> {
        self.run(Request::exscan_in_place(data, op))
    }

    /// [`Communicator::gather`] of blocks of any lengths. The root gives `all` and the length of each rank's block, which
    /// must add up to it; other ranks need know their own length only. A rank whose block is not as long as the root says is
    /// an error on all ranks.
    ///
    /// ```
    /// # let threads: Vec<_> = coll::Communicator::local(3)?.into_iter().map(|mut comm| std::thread::spawn(move || {
    /// let mine = vec![comm.rank() as i64; comm.rank() as usize];
    /// let mut all = [9; 3];
    /// let at_root = (comm.rank() == 0).then_some((&mut all[..], &[0, 1, 2][..]));
    /// comm.gather_v(&mine, at_root, 0)?;
    /// assert_eq!(all, if comm.rank() == 0 { [1, 2, 2] } else { [9; 3] });
    /// # Ok::<(), coll::CommError>(())
    /// # })).collect();
    /// # for thread in threads { thread.join().unwrap()?; }
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn gather_v<T: Element>(
        &mut self,
        mine: &[T],
        all: Option<(&mut [T], &[usize])>,
        root: u32,
    ) -> Result<(), CommError> {
        self.run(Request::gather_v(mine, all, root))
    }

    /// [`Communicator::scatter`] of blocks of any lengths. The root gives `all` and the length of each rank's block, which
    /// must add up to it; other ranks need know their own length only. A rank whose block is not as long as the root says is
    /// an error on all ranks.
    pub fn scatter_v<T: Element>(
        &mut self,
        all: Option<(&[T], &[usize])>,
        mine: &mut [T],
        root: u32,
    ) -> Result<(), CommError> {
        self.run(Request::scatter_v(all, mine, root))
    }

    /// [`Communicator::all_gather`] of blocks of any lengths. Every rank gives the lengths of all blocks, which are compared
    /// between ranks; they add up to `all`, and the rth is that of `mine`.
    pub fn all_gather_v<T: Element>(
        &mut self,
        mine: &[T],
        all: &mut [T],
        counts: &[usize],
    ) -> Result<(), CommError> {
        self.run(Request::all_gather_v(mine, all, counts))
    }

    /// [`Communicator::all_gather_v`] of the block that lies at its place in `all` already.
    pub fn all_gather_v_in_place<T: Element>(
        &mut self,
        all: &mut [T],
        counts: &[usize],
    ) -> Result<(), CommError> {
        self.run(Request::all_gather_v_in_place(all, counts))
    }

    /// [`Communicator::reduce_scatter`] to blocks of any lengths. Every rank gives the lengths of all blocks, which are
    /// compared between ranks; they add up to `all`, and the rth is that of `mine`.
    pub fn reduce_scatter_v<T: Element>(
        &mut self,
        all: &[T],
        mine: &mut [T],
        op: impl Into<Op>,
        counts: &[usize],
    ) -> Result<(), CommError> {
        self.run(Request::reduce_scatter_v(all, mine, op, counts))
    }

    /// [`Communicator::reduce_scatter_v`] with one memory: block r of `all` becomes the result, and what the other blocks hold
    /// then is anything.
    pub fn reduce_scatter_v_in_place<T: Element>(
        &mut self,
        all: &mut [T],
        op: impl Into<Op>,
        counts: &[usize],
    ) -> Result<(), CommError> {
        self.run(Request::reduce_scatter_v_in_place(all, op, counts))
    }

    /// [`Communicator::all_to_all`] of blocks of any lengths: `send[q]` elements go to rank q and `receive[q]` come from it;
    /// blocks lie one after the other. What a rank sends to another and what that expects of it must agree: if not, it is an
    /// error on all ranks.
    ///
    /// ```
    /// # let threads: Vec<_> = coll::Communicator::local(2)?.into_iter().map(|mut comm| std::thread::spawn(move || {
    /// // Rank 0 keeps 1 and gives 2; rank 1 gives nothing and keeps 3.
    /// let (send, receive) = if comm.rank() == 0 { ([1, 2], [1, 0]) } else { ([0, 3], [2, 3]) };
    /// let input = vec![comm.rank() as f64; send.iter().sum()];
    /// let mut output = vec![0.5; receive.iter().sum()];
    /// comm.all_to_all_v(&input, &send, &mut output, &receive)?;
    /// assert_eq!(output, if comm.rank() == 0 { vec![0.0] } else { vec![0.0, 0.0, 1.0, 1.0, 1.0] });
    /// # Ok::<(), coll::CommError>(())
    /// # })).collect();
    /// # for thread in threads { thread.join().unwrap()?; }
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn all_to_all_v<T: Element>(
        &mut self,
        input: &[T],
        send: &[usize],
        output: &mut [T],
        receive: &[usize],
    ) -> Result<(), CommError> {
        self.run(Request::all_to_all_v(input, send, output, receive))
    }

    /// Sends `data` to another rank, which must receive as many elements of the same type. Messages between two ranks arrive
    /// in the order in which they are sent; there are no tags.
    ///
    /// It may wait until the other receives, as the first message between two ranks over TCP does, and it may return before
    /// that: nothing may rest on either. Two ranks that send to each other put that into a [`Communicator::group`].
    pub fn send<T: Element>(&mut self, data: &[T], to: u32) -> Result<(), CommError> {
        self.run(Request::send(data, to))
    }

    /// Receives the next message of another rank.
    pub fn receive<T: Element>(&mut self, data: &mut [T], from: u32) -> Result<(), CommError> {
        self.run(Request::receive(data, from))
    }

    /// Exchanges messages with some ranks at once: each entry of `sends` goes to a rank, each of `receives` comes from one.
    /// The others must have the matching halves, and that is all that they need agree on: lengths may differ from pair to
    /// pair, and a rank may stand in only one of the lists or in none. If a rank stands in one several times, those messages
    /// keep their order.
    ///
    /// ```
    /// # let threads: Vec<_> = coll::Communicator::local(4)?.into_iter().map(|mut comm| std::thread::spawn(move || {
    /// // A line of ranks, each of which wants its neighbours' values.
    /// let (rank, last) = (comm.rank(), comm.world() - 1);
    /// let (mine, mut left, mut right) = ([rank as i32], [-1], [-1]);
    /// let neighbours = [rank.checked_sub(1), (rank < last).then_some(rank + 1)];
    /// let sends: Vec<_> = neighbours.iter().flatten().map(|&peer| (peer, &mine[..])).collect();
    /// let halves = neighbours.into_iter().zip([&mut left[..], &mut right[..]]);
    /// let mut receives: Vec<_> = halves.filter_map(|(peer, half)| Some((peer?, half))).collect();
    /// comm.neighbour_exchange(&sends, &mut receives)?;
    /// assert_eq!(left[0], rank as i32 - 1);
    /// assert_eq!(right[0], if rank < last { rank as i32 + 1 } else { -1 });
    /// # Ok::<(), coll::CommError>(())
    /// # })).collect();
    /// # for thread in threads { thread.join().unwrap()?; }
    /// # Ok::<(), coll::CommError>(())
    /// ```
    pub fn neighbour_exchange<T: Element>(
        &mut self,
        sends: &[(u32, &[T])],
        receives: &mut [(u32, &mut [T])],
    ) -> Result<(), CommError> {
        self.group(|group| {
            for &(to, data) in sends {
                group.send(data, to);
            }
            for (from, data) in receives {
                group.receive(data, *from);
            }
        })
    }
}
