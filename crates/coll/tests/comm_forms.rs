//! Every operation in every way to call it: blocking, in a group, prepared, in the background, and after the communicator
//! has ended; counts with zero and one, and counts that do not divide; by every way that ranks reach each other.

#[path = "comm/world.rs"]
mod ranks;

use coll::{Buffer, Builder, CommError, Communicator, RedOp, Request, Source, Via};
use ranks::{well, world_of};

macro_rules! kinds {
    ($($kind:ident,)*) => {
        /// An operation with a way to lay out its buffers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Kind {
            $($kind,)*
        }

        const KINDS: [Kind; [$(stringify!($kind)),*].len()] = [$($kind,)*];
    };
}

use Kind::*;

kinds! {
    Barrier,
    Broadcast,
    Reduce,
    AllReduce,
    AllReduceInPlace,
    Gather,
    Scatter,
    AllGather,
    AllGatherInPlace,
    ReduceScatter,
    ReduceScatterInPlace,
    AllToAll,
    Scan,
    ExScan,
    GatherV,
    ScatterV,
    AllGatherV,
    ReduceScatterV,
    AllToAllV,
    ReduceInPlace,
    GatherInPlace,
    ScatterInPlace,
    ScanInPlace,
    ExScanInPlace,
    AllGatherVInPlace,
    ReduceScatterVInPlace,
}

/// What outputs hold before, and keep where nothing is promised.
const UNTOUCHED: i64 = -1;

/// What a rank puts in at an index: no two ranks and no two indices alike.
fn value(rank: u32, index: usize) -> i64 {
    i64::from(rank + 1) * 1_000_003 + index as i64 * 7
}

/// One call of a rank, with all that it needs but its buffers.
#[derive(Clone, Debug)]
struct Call {
    kind: Kind,
    rank: u32,
    n: u32,
    root: u32,
    /// Elements of an even block.
    len: usize,
    /// Of each rank's block, where they differ; of what goes to each rank, in an all-to-all.
    counts: Vec<usize>,
    receive: Vec<usize>,
}

/// Elements that one rank sends to another where blocks differ: some send nothing.
fn length(from: u32, to: u32, len: usize) -> usize {
    (from as usize * 3 + to as usize * 5) % 4 * len
}

impl Call {
    fn new(kind: Kind, comm: &Communicator, len: usize) -> Call {
        let (rank, n) = (comm.rank(), comm.world());
        let counts: Vec<usize> = match kind {
            AllToAllV => (0..n).map(|to| length(rank, to, len)).collect(),
            _ => (0..n as usize).map(|block| [3, 0, 7, 1][block % 4] * len).collect(),
        };
        let receive = (0..n).map(|from| length(from, rank, len)).collect();
        Call { kind, rank, n, root: n - 1, len, counts, receive }
    }

    fn at_root(&self) -> bool {
        self.rank == self.root
    }

    fn in_place(&self) -> bool {
        matches!(
            self.kind,
            Broadcast
                | AllReduceInPlace
                | AllGatherInPlace
                | ReduceScatterInPlace
                | ReduceInPlace
                | GatherInPlace
                | ScatterInPlace
                | ScanInPlace
                | ExScanInPlace
                | AllGatherVInPlace
                | ReduceScatterVInPlace
        )
    }

    /// Elements of the input and of the output; in place, of the memory alone.
    fn lens(&self) -> (usize, usize) {
        let (len, all, r) = (self.len, self.len * self.n as usize, self.rank as usize);
        let (own, every) = (self.counts[r], self.counts.iter().sum::<usize>());
        let if_root = |elements| if self.at_root() { elements } else { 0 };
        match self.kind {
            Barrier => (0, 0),
            Broadcast | AllReduceInPlace | ReduceInPlace | ScanInPlace | ExScanInPlace => (0, len),
            GatherInPlace | ScatterInPlace => (0, if self.at_root() { all } else { len }),
            AllGatherVInPlace | ReduceScatterVInPlace => (0, every),
            AllGatherInPlace | ReduceScatterInPlace => (0, all),
            Reduce | AllReduce | Scan | ExScan => (len, len),
            Gather => (len, if_root(all)),
            Scatter => (if_root(all), len),
            AllGather => (len, all),
            ReduceScatter => (all, len),
            AllToAll => (all, all),
            GatherV => (own, if_root(every)),
            ScatterV => (if_root(every), own),
            AllGatherV => (own, every),
            ReduceScatterV => (every, own),
            AllToAllV => (every, self.receive.iter().sum()),
        }
    }

    /// Buffers as they are before the call.
    fn buffers(&self, salt: usize) -> (Vec<i64>, Vec<i64>) {
        let (input, output) = self.lens();
        let filled = |elements: usize| (0..elements).map(|index| value(self.rank, index + salt)).collect();
        match self.in_place() {
            true => (Vec::new(), filled(output)),
            false => (filled(input), vec![UNTOUCHED; output]),
        }
    }

    fn request<'a>(&'a self, input: &'a [i64], output: &'a mut [i64]) -> Request<'a> {
        let (root, sum, counts) = (self.root, RedOp::Sum, &self.counts[..]);
        match self.kind {
            Barrier => Request::barrier(),
            Broadcast => Request::broadcast(output, root),
            Reduce => Request::reduce(input, self.at_root().then_some(output), sum, root),
            AllReduce => Request::all_reduce(input, output, sum),
            AllReduceInPlace => Request::all_reduce_in_place(output, sum),
            Gather => Request::gather(input, self.at_root().then_some(output), root),
            Scatter => Request::scatter(self.at_root().then_some(input), output, root),
            AllGather => Request::all_gather(input, output),
            AllGatherInPlace => Request::all_gather_in_place(output),
            ReduceScatter => Request::reduce_scatter(input, output, sum),
            ReduceScatterInPlace => Request::reduce_scatter_in_place(output, sum),
            AllToAll => Request::all_to_all(input, output),
            Scan => Request::scan(input, output, sum),
            ExScan => Request::exscan(input, output, sum),
            GatherV => Request::gather_v(input, self.at_root().then_some((output, counts)), root),
            ScatterV => Request::scatter_v(self.at_root().then_some((input, counts)), output, root),
            AllGatherV => Request::all_gather_v(input, output, counts),
            ReduceScatterV => Request::reduce_scatter_v(input, output, sum, counts),
            AllToAllV => Request::all_to_all_v(input, counts, output, &self.receive),
            ReduceInPlace => Request::reduce_in_place(output, sum, root),
            GatherInPlace => Request::gather_in_place(output, root),
            ScatterInPlace => Request::scatter_in_place(output, root),
            ScanInPlace => Request::scan_in_place(output, sum),
            ExScanInPlace => Request::exscan_in_place(output, sum),
            AllGatherVInPlace => Request::all_gather_v_in_place(output, counts),
            ReduceScatterVInPlace => Request::reduce_scatter_v_in_place(output, sum, counts),
        }
    }

    /// What an element of the output must be; nothing where anything may be.
    fn due(&self, index: usize, salt: usize) -> Option<i64> {
        let (n, len, r) = (self.n, self.len, self.rank as usize);
        let sum = |ranks: std::ops::Range<u32>, index: usize| {
            ranks.map(|rank| value(rank, index + salt)).sum::<i64>()
        };
        let before = |counts: &[usize], block: usize| counts[..block].iter().sum::<usize>();
        // The block that an index of all blocks lies in, and where in it.
        let within = |counts: &[usize]| {
            let block = (0..counts.len()).rfind(|&block| before(counts, block) <= index && counts[block] > 0);
            let block = block.expect("there is such an element");
            (block as u32, index - before(counts, block))
        };
        let of = |(rank, index): (u32, usize)| value(rank, index + salt);
        Some(match self.kind {
            Barrier => return None,
            Broadcast => of((self.root, index)),
            Reduce if !self.at_root() => UNTOUCHED,
            // What is given in place is left alone where nothing is promised.
            ReduceInPlace | GatherInPlace if !self.at_root() => of((self.rank, index)),
            ExScanInPlace if r == 0 => of((0, index)),
            ScatterInPlace if self.at_root() => of((self.rank, index)),
            Reduce | AllReduce | AllReduceInPlace | ReduceInPlace => sum(0..n, index),
            // In place a block is what its rank has there: the root's at its own place among all.
            GatherInPlace if index / len == r => of((self.rank, index)),
            AllGatherVInPlace => of((within(&self.counts).0, index)),
            ReduceScatterVInPlace if within(&self.counts).0 as usize != r => return None,
            ReduceScatterVInPlace => sum(0..n, index),
            Gather | GatherInPlace | AllGather => of(((index / len) as u32, index % len)),
            AllGatherInPlace => of(((index / len) as u32, index)),
            Scatter | ScatterInPlace => of((self.root, r * len + index)),
            ReduceScatter => sum(0..n, r * len + index),
            ReduceScatterInPlace if index / len != r => return None,
            ReduceScatterInPlace => sum(0..n, index),
            AllToAll => of(((index / len) as u32, r * len + index % len)),
            Scan | ScanInPlace => sum(0..self.rank + 1, index),
            ExScan if r == 0 => UNTOUCHED,
            ExScan | ExScanInPlace => sum(0..self.rank, index),
            GatherV | AllGatherV => of(within(&self.counts)),
            ScatterV => of((self.root, before(&self.counts, r) + index)),
            ReduceScatterV => sum(0..n, before(&self.counts, r) + index),
            AllToAllV => {
                let (from, at) = within(&self.receive);
                let sent: Vec<usize> = (0..n).map(|to| length(from, to, len)).collect();
                of((from, before(&sent, r) + at))
            }
        })
    }

    fn check(&self, way: &str, output: &[i64], salt: usize) {
        for (index, &found) in output.iter().enumerate() {
            if let Some(due) = self.due(index, salt) {
                assert_eq!(found, due, "{way}: element {index} of {self:?}");
            }
        }
    }
}

fn blocking(comm: &mut Communicator, call: &Call) -> Result<(), CommError> {
    let (input, mut output) = call.buffers(1);
    comm.run(call.request(&input, &mut output))?;
    call.check("blocking", &output, 1);
    Ok(())
}

/// Three of them at once, and a message round the ring between.
fn grouped(comm: &mut Communicator, call: &Call) -> Result<(), CommError> {
    let (rank, n) = (comm.rank(), comm.world());
    let mut all: Vec<_> = (0..3).map(|salt| call.buffers(salt)).collect();
    let (mine, mut theirs) = ([value(rank, 5)], [UNTOUCHED]);
    comm.group(|group| {
        let mut requests = all.iter_mut().map(|(input, output)| call.request(input, output));
        group.add(requests.next().expect("there are three"));
        if n > 1 {
            group.send(&mine, (rank + 1) % n).receive(&mut theirs, (rank + n - 1) % n);
        }
        requests.for_each(|request| {
            group.add(request);
        });
    })?;
    all.iter().enumerate().for_each(|(salt, (_, output))| call.check("grouped", output, salt));
    assert!(n == 1 || theirs == [value((rank + n - 1) % n, 5)]);
    Ok(())
}

fn prepared(comm: &mut Communicator, call: &Call) -> Result<(), CommError> {
    let (input, mut output) = call.buffers(0);
    let prepared = comm.prepare(call.request(&input, &mut output))?;
    for salt in 0..3 {
        let (input, mut output) = call.buffers(salt);
        match (call.kind, call.in_place()) {
            (Barrier, _) => prepared.run_barrier(comm)?,
            (_, true) => prepared.run_in_place(comm, &mut output)?,
            (_, false) => prepared.run(comm, &input, &mut output)?,
        }
        call.check("prepared", &output, salt);
    }
    Ok(())
}

/// Two under way, and the handle of one waited for before it is done.
fn background(comm: &mut Communicator, call: &Call) -> Result<(), CommError> {
    let start = |comm: &mut Communicator, salt| {
        let call = call.clone();
        comm.start(call.buffers(salt), move |comm, (input, output)| comm.run(call.request(input, output)))
    };
    let (first, second) = (start(comm, 1)?, start(comm, 2)?);
    let (_, output) = second.wait()?;
    call.check("background", &output, 2);
    assert!(first.test(), "calls keep their order");
    let (_, output) = first.wait()?;
    call.check("background", &output, 1);
    Ok(())
}

type Way = fn(&mut Communicator, &Call) -> Result<(), CommError>;

const WAYS: [Way; 4] = [blocking, grouped, prepared, background];

fn every_way(comm: &mut Communicator) -> Result<(), CommError> {
    let n = comm.world() as usize;
    let mut lens = vec![0, 1, n - 1, n + 1, 700];
    lens.dedup();
    for kind in KINDS {
        for &len in &lens {
            let call = Call::new(kind, comm, len);
            WAYS.iter().try_for_each(|way| way(comm, &call))?;
        }
    }
    Ok(())
}

#[test]
fn every_operation_in_every_way() {
    for n in [1, 2, 3, 5] {
        well(n, every_way);
    }
}

#[test]
fn every_operation_in_every_way_across_machines() {
    let results = world_of(Builder::default().ranks_per_host(2), 5, every_way);
    results.into_iter().for_each(|result| result.unwrap_or_else(|error| panic!("{error}")));
}

/// Messages and collectives of one's own are prepared like the library's.
#[test]
fn messages_and_collectives_of_ones_own_are_prepared_too() {
    well(3, |comm| {
        let (rank, n) = (comm.rank(), comm.world());
        let text = "schedule star: allreduce {
            step each r in 1..n { send data to 0 reduce }
            step each r in 1..n { recv data from 0 }
        }";
        let star = comm.load(&Source::from_text("own.coll", text), Some("star"), &[], 0)?;
        let counts = star.counts(2)?;
        let (mine, mut sum) = ([1i64, 2], [0i64; 2]);
        let op = || Some(RedOp::Sum.into());
        let apart =
            comm.prepare(Request::custom(&star, &counts, vec![Buffer::separate(&mine, &mut sum)], op()))?;
        let in_place =
            comm.prepare(Request::custom(&star, &counts, vec![Buffer::in_place(&mut sum)], op()))?;
        let pairs =
            comm.load(&Source::builtin("alltoall", "pairwise").expect("it is there"), None, &[], 0)?;
        let each = pairs.counts(3)?;
        let (give, mut take) = ([rank; 3], [9u32; 3]);
        let buffers = vec![Buffer::input(&give), Buffer::output(&mut take)];
        let exchange = comm.prepare(Request::custom(&pairs, &each, buffers, None))?;
        let (next, before) = ((rank + 1) % n, (rank + n - 1) % n);
        // Round a line, so that no rank waits for one that waits for it.
        let mut theirs = [0u8; 2];
        let send = if rank + 1 < n { Some(comm.prepare(Request::send(&[7u8; 2], next))?) } else { None };
        let receive =
            if rank > 0 { Some(comm.prepare(Request::receive(&mut theirs, before))?) } else { None };
        for round in 0..4i64 {
            apart.run(comm, &[round, i64::from(rank)], &mut sum)?;
            assert_eq!(sum, [3 * round, 3]);
            in_place.run_in_place(comm, &mut sum)?;
            assert_eq!(sum, [9 * round, 9]);
            exchange.run(comm, &give, &mut take)?;
            assert_eq!(take, [0, 1, 2]);
            if let Some(receive) = &receive {
                receive.run(comm, &[0u8; 0], &mut theirs)?;
                assert_eq!(theirs, [before as u8, round as u8]);
            }
            if let Some(send) = &send {
                send.run(comm, &[rank as u8, round as u8], &mut [0u8; 0])?;
            }
        }
        Ok(())
    });
}

/// Once a communicator has ended, no operation does anything, whichever way it is called.
#[test]
fn no_operation_does_anything_after_the_end() {
    for via in [Via::Fastest, Via::Tcp] {
        world_of(Builder::default().via(via), 3, |comm| {
            let prepared: Vec<_> = KINDS
                .iter()
                .map(|&kind| {
                    let call = Call::new(kind, comm, 2);
                    let (input, mut output) = call.buffers(0);
                    (comm.prepare(call.request(&input, &mut output)).expect("all is well"), call)
                })
                .collect();
            if comm.rank() == 1 {
                comm.abort("enough");
            }
            while comm.barrier().is_ok() {}
            for (prepared, call) in prepared {
                let (input, mut output) = call.buffers(0);
                let before = output.clone();
                let ended = |result: Result<(), CommError>| {
                    let error = result.expect_err("it has ended");
                    assert!(matches!(error, CommError::Ended { .. }), "{call:?}: {error:?}");
                    assert!(error.to_string().contains("enough"), "{call:?}: {error}");
                };
                ended(comm.run(call.request(&input, &mut output)));
                ended(comm.group(|group| {
                    group.add(call.request(&input, &mut output));
                }));
                ended(comm.prepare(call.request(&input, &mut output)).map(|_| ()));
                ended(match (call.kind, call.in_place()) {
                    (Barrier, _) => prepared.run_barrier(comm),
                    (_, true) => prepared.run_in_place(comm, &mut output),
                    (_, false) => prepared.run(comm, &input, &mut output),
                });
                let theirs = call.clone();
                let started = comm.start((input, output), move |comm, (input, output)| {
                    comm.run(theirs.request(input, output))
                });
                let ((_, output), result) = started.expect("there is a thread").outcome();
                ended(result);
                assert_eq!(output, before, "{call:?}");
            }
        });
    }
}
