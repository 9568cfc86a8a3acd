//! What narrow floats are reduced in and what wider ones travel as, said by a builder, a communicator or a call: every narrow
//! float, against the oracle, by every way that ranks reach each other.

#[path = "comm/world.rs"]
mod ranks;

use coll::{CommError, Communicator, RedOp, Request, View, ViewMut};
use coll_base::DType;
use coll_kernel::oracle::{self, Expected, Scalar};
use coll_kernel::{Cast, Reducer};
use half::bf16;
use ranks::{badly, well, world, world_of};

/// What is called on which elements.
#[derive(Clone, Copy, Debug)]
struct Case {
    dtype: DType,
    op: RedOp,
    accumulate: Option<DType>,
    wire: Option<DType>,
}

/// Blocks of so many elements: more than a short message holds, and no multiple of anything.
const LEN: usize = 331;

/// What a rank puts in at an index, as its type holds it.
fn scalar(dtype: DType, rank: u32, index: usize) -> Scalar {
    let value = ((rank as usize * 7 + index * 5) % 23) as f64 / 8.0 + 0.25;
    let mut held = Vec::new();
    let any = if dtype.is_complex() { Scalar::Complex(value, -value) } else { Scalar::Float(value) };
    oracle::write(dtype, any, &mut held);
    oracle::read(dtype, &held).expect("a whole element was written")
}

fn filled(dtype: DType, rank: u32, indices: std::ops::Range<usize>) -> Vec<u8> {
    let mut bytes = Vec::new();
    indices.for_each(|index| oracle::write(dtype, scalar(dtype, rank, index), &mut bytes));
    bytes
}

impl Case {
    /// What is due of the leaves of an element, which are reduced or, if it is one, moved.
    fn due(self, leaves: &[Scalar], reduces: bool) -> Expected {
        let reducer = Reducer::builtin(self.op, self.dtype).expect("it works on floats");
        let reducer = self.accumulate.and_then(|_| reducer.in_f32()).unwrap_or(reducer);
        let due = match (reduces, leaves[0]) {
            (true, _) if reducer.is_in_f32() => oracle::expected_in_f32(self.dtype, self.op, &[], leaves),
            (true, _) => oracle::expected(self.dtype, self.op, leaves),
            (false, Scalar::Complex(real, imaginary)) => {
                Some(Expected::Complex { real, imaginary, bounds: [0.0; 2] })
            }
            (false, Scalar::Float(value)) => Some(Expected::Float { value, bound: 0.0 }),
            _ => None,
        };
        let due = due.expect("floats are reduced and moved");
        let memory = if reduces { reducer.working_dtype() } else { Some(self.dtype) };
        let narrows = |wire: &DType| memory.and_then(|memory| Cast::narrowing(memory, *wire)).is_some();
        let Some(wire) = self.wire.filter(narrows) else { return due };
        let share = if reduces && self.op == RedOp::Avg { 1.0 / leaves.len() as f64 } else { 1.0 };
        let put_in = |leaf: &Scalar| match *leaf {
            Scalar::Float(x) => Scalar::Float(x * share),
            Scalar::Complex(x, y) => Scalar::Complex(x * share, y * share),
            other => other,
        };
        let put_in: Vec<Scalar> = leaves.iter().map(put_in).collect();
        oracle::over_wire(wire, reduces.then_some(self.op), &put_in, due)
    }

    /// Looks at every element: `leaves` says which ranks' values at which index it is made of.
    fn check(self, what: &str, found: &[u8], reduces: bool, leaves: impl Fn(usize) -> Vec<(u32, usize)>) {
        for (index, element) in found.chunks(self.dtype.size_bytes() as usize).enumerate() {
            let column: Vec<Scalar> =
                leaves(index).into_iter().map(|(rank, index)| scalar(self.dtype, rank, index)).collect();
            let (due, found) = (self.due(&column, reduces), oracle::read(self.dtype, element));
            assert!(
                found.is_some_and(|found| due.accepts(found)),
                "{what}, {self:?}: {index}: {found:?}, {due:?}"
            );
        }
    }

    /// Every operation once; `run` says how.
    fn operations(
        self,
        comm: &mut Communicator,
        run: &dyn Fn(&mut Communicator, Request<'_>) -> Result<(), CommError>,
    ) -> Result<(), CommError> {
        let Case { dtype, op, .. } = self;
        let (rank, n) = (comm.rank(), comm.world());
        let (size, last) = (dtype.size_bytes() as usize, n - 1);
        let room = |elements: usize| vec![0u8; elements * size];
        let mine = filled(dtype, rank, 0..LEN);
        let all_of_mine = filled(dtype, rank, 0..LEN * n as usize);
        let of_all = |index: usize| (0..n).map(|rank| (rank, index)).collect::<Vec<_>>();
        let read = |bytes| View::new(dtype, bytes);
        fn write(dtype: DType, bytes: &mut [u8]) -> ViewMut<'_> {
            ViewMut::new(dtype, bytes)
        }

        let mut out = room(LEN);
        run(comm, Request::all_reduce(read(&mine), write(dtype, &mut out), op))?;
        self.check("all-reduce", &out, true, of_all);

        let mut data = mine.clone();
        run(comm, Request::all_reduce_in_place(write(dtype, &mut data), op))?;
        self.check("all-reduce in place", &data, true, of_all);

        let mut out = room(LEN);
        let at_root = (rank == last).then(|| write(dtype, &mut out));
        run(comm, Request::reduce(read(&mine), at_root, op, last))?;
        if rank == last {
            self.check("reduce", &out, true, of_all);
        }

        let mut out = room(LEN);
        run(comm, Request::reduce_scatter(read(&all_of_mine), write(dtype, &mut out), op))?;
        self.check("reduce-scatter", &out, true, |index| of_all(rank as usize * LEN + index));

        let mut out = room(LEN);
        run(comm, Request::scan(read(&mine), write(dtype, &mut out), op))?;
        self.check("scan", &out, true, |index| (0..=rank).map(|rank| (rank, index)).collect());

        let mut out = room(LEN * n as usize);
        run(comm, Request::all_gather(read(&mine), write(dtype, &mut out)))?;
        self.check("all-gather", &out, false, |index| vec![((index / LEN) as u32, index % LEN)]);

        let mut out = room(LEN * n as usize);
        run(comm, Request::all_to_all(read(&all_of_mine), write(dtype, &mut out)))?;
        let from = |index: usize| vec![((index / LEN) as u32, rank as usize * LEN + index % LEN)];
        self.check("all-to-all", &out, false, from);

        let mut data = if rank == last { mine.clone() } else { room(LEN) };
        run(comm, Request::broadcast(write(dtype, &mut data), last))?;
        self.check("broadcast", &data, false, |index| vec![(last, index)]);

        if rank == 0 {
            run(comm, Request::send(read(&mine), last))?;
        } else if rank == last {
            let mut data = room(LEN);
            run(comm, Request::receive(write(dtype, &mut data), 0))?;
            self.check("message", &data, false, |index| vec![(0, index)]);
        }
        Ok(())
    }
}

/// Every narrow float is accumulated, every float that is wider than some type travels as it.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_narrow_float()) {
        for op in [RedOp::Sum, RedOp::Avg, RedOp::Max] {
            cases.push(Case { dtype, op, accumulate: Some(DType::F32), wire: None });
        }
        cases.push(Case { dtype, op: RedOp::Sum, accumulate: Some(DType::F32), wire: Some(DType::Bf16) });
    }
    for dtype in [DType::F32, DType::F64, DType::C64] {
        for wire in DType::WIRE {
            cases.push(Case { dtype, op: RedOp::Sum, accumulate: None, wire: Some(wire) });
        }
    }
    cases
}

#[test]
fn what_a_call_asks_for_is_done_by_every_way() {
    for n in [2, 5] {
        well(n, |comm| {
            for case in cases() {
                case.operations(comm, &|comm, request| {
                    comm.run(request.accumulate(case.accumulate).wire(case.wire))
                })?;
            }
            Ok(())
        });
    }
}

#[test]
fn what_a_communicator_was_told_holds_for_its_calls_and_for_those_split_off_it() {
    let case = Case { dtype: DType::Bf16, op: RedOp::Sum, accumulate: Some(DType::F32), wire: None };
    let wide = Case { dtype: DType::F64, op: RedOp::Sum, accumulate: None, wire: Some(DType::F16) };
    let plainly = |comm: &mut Communicator, request: Request<'_>| comm.run(request);
    let builder = Communicator::builder().accumulate(DType::F32).wire(DType::F16);
    for result in world_of(builder, 3, move |comm| {
        case.operations(comm, &plainly)?;
        wide.operations(comm, &plainly)?;
        let mut half = comm.duplicate()?;
        wide.operations(&mut half, &plainly)?;
        // What a call says goes before that, and none is what it is without.
        let exact = Case { wire: None, ..wide };
        exact.operations(&mut half, &|comm, request| comm.run(request.wire(None)))?;
        half.set_wire(None)?;
        exact.operations(&mut half, &plainly)?;
        assert!(half.set_wire(DType::I32).is_err() && half.set_accumulate(DType::F64).is_err());
        exact.operations(&mut half, &plainly)
    }) {
        result.unwrap_or_else(|error: CommError| panic!("{error}"));
    }
}

/// Terms that bf16 forgets: to 256 it adds ones, and has 256 again.
fn small_terms(comm: &mut Communicator) -> [bf16; 3] {
    [bf16::from_f32(if comm.rank() == 0 { 256.0 } else { 1.0 }); 3]
}

#[test]
fn small_terms_are_kept_where_that_is_asked_for_in_every_way_to_call() {
    let due = [bf16::from_f32(260.0); 3];
    for result in world(5, move |comm| {
        let (mine, mut sum) = (small_terms(comm), [bf16::ZERO; 3]);
        comm.all_reduce(&mine, &mut sum, RedOp::Sum)?;
        assert_ne!(sum, due, "it shows nothing");
        comm.group(|group| {
            group.add(Request::all_reduce(&mine, &mut sum, RedOp::Sum).accumulate(DType::F32));
        })?;
        assert_eq!(sum, due);
        sum.fill(bf16::ZERO);
        let asked = Request::all_reduce(&mine, &mut sum, RedOp::Sum).accumulate(DType::F32);
        let prepared = comm.prepare(asked)?;
        prepared.run(comm, &mine, &mut sum)?;
        assert_eq!(sum, due);
        comm.set_accumulate(DType::F32)?;
        sum.fill(bf16::ZERO);
        comm.prepare_all_reduce::<bf16>(3, RedOp::Sum)?.run(comm, &mine, &mut sum)?;
        assert_eq!(sum, due);
        let (_, sum) = comm
            .start((mine, [bf16::ZERO; 3]), |comm, (mine, sum)| {
                comm.all_reduce(&mine[..], &mut sum[..], RedOp::Sum)
            })?
            .wait()?;
        assert_eq!(sum, due);
        let recorded = comm.flight_record();
        let [plain, .., asked] = &recorded[..] else { panic!("{recorded:?}") };
        assert_ne!(plain.plan, asked.plan, "the plan says it");
        Ok::<(), CommError>(())
    }) {
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn what_cannot_be_is_refused_and_nothing_ends() {
    for result in world(2, |comm| {
        let sum = |comm: &mut Communicator, accumulate: Option<DType>, wire: Option<DType>| {
            let (input, mut output) = ([1.5f32; 4], [0f32; 4]);
            let request = Request::all_reduce(&input, &mut output, RedOp::Sum);
            comm.run(request.accumulate(accumulate).wire(wire)).map(|()| output)
        };
        let refused = |result: Result<[f32; 4], CommError>, what: &str| {
            let message = result.expect_err("it cannot be").to_string();
            assert!(message.contains(what), "{message}");
        };
        refused(sum(comm, Some(DType::F64), None), "nothing can be accumulated in f64");
        refused(sum(comm, None, Some(DType::I8)), "nothing can travel as i8; there are");
        comm.set_deterministic(true);
        refused(sum(comm, None, Some(DType::Bf16)), "leave one of the two out");
        // What it means nothing for is as ever.
        assert_eq!(sum(comm, Some(DType::F32), None)?, [3.0; 4]);
        comm.broadcast(&mut [0f64; 4], 0)
    }) {
        result.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// B071.
#[test]
fn ranks_that_ask_for_other_types_are_told_so() {
    for second in [Some(DType::Bf16), None] {
        let messages = badly(3, move |comm| {
            comm.barrier()?;
            let (input, mut output) = ([1.5f32; 64], [0f32; 64]);
            let wire = if comm.rank() == 1 { second } else { Some(DType::F16) };
            comm.run(Request::all_reduce(&input, &mut output, RedOp::Sum).wire(wire))?;
            comm.barrier()
        });
        let all = messages.join("\n");
        assert!(all.contains("travel as f16"), "{all}");
        assert!(second.is_none() || all.contains("travel as bf16"), "{all}");
    }
}
