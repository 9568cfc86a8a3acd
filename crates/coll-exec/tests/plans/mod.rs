//! Plans written by hand, and the one way in which the tests run them: every rank in a world from a seed, every ensured
//! block against the serial oracle.

#![allow(dead_code)]

pub(crate) mod library;

use coll_base::{DType, Fraction, RedOp};
use coll_contract::{
    Blocks, BufferDecl, BufferRole, ClassId, Classes, Contract, Ensure, Leaf, Value, ValueId,
};
use coll_exec::world::World;
use coll_exec::{Binding, Bound, BufferMemory, Fault, Interest, Link, Placement, RunError, Transport};
use coll_kernel::Reducer;
use coll_kernel::oracle::{self, Scalar};
use coll_plan::{Action, Lane, Line, Op, OpId, Plan, RankPlan, Region, Run, Shape, SlotDecl, Store, Wait};

/// A contract under construction.
pub(crate) struct Promise {
    pub(crate) contract: Contract,
}

impl Promise {
    pub(crate) fn new(collective: &str, ranks: u32) -> Promise {
        let classes = Classes { count: 0, table: Vec::new() };
        Promise {
            contract: Contract {
                collective: collective.into(),
                ranks,
                only: None,
                buffers: Vec::new(),
                given: Vec::new(),
                ensures: Vec::new(),
                values: Vec::new(),
                after: Vec::new(),
                classes,
            },
        }
    }

    pub(crate) fn buffer(mut self, name: &str, role: BufferRole, blocks: u32, given: Blocks) -> Promise {
        self.contract.buffers.push(BufferDecl { name: name.into(), role, blocks });
        self.contract.given.push(given);
        self
    }

    pub(crate) fn ensure(&mut self, rank: u32, buffer: u32, block: u32, value: Value) {
        let known = self.contract.values.iter().position(|other| *other == value);
        let value = known.unwrap_or_else(|| {
            self.contract.values.push(value);
            self.contract.values.len() - 1
        }) as ValueId;
        self.contract.ensures.push(Ensure { rank, buffer, block, value });
    }

    /// Ends with the class of each block on each rank; ids are numbered anew by first appearance.
    pub(crate) fn classes(mut self, class: impl Fn(u32, u32, u32) -> u32) -> Contract {
        let mut known: Vec<u32> = Vec::new();
        for rank in 0..self.contract.ranks {
            for (buffer, decl) in self.contract.buffers.clone().iter().enumerate() {
                for block in 0..decl.blocks {
                    let key = class(rank, buffer as u32, block);
                    let id = known.iter().position(|other| *other == key).unwrap_or_else(|| {
                        known.push(key);
                        known.len() - 1
                    });
                    self.contract.classes.table.push(id as ClassId);
                }
            }
        }
        self.contract.classes.count = known.len() as u32;
        self.contract.ensures.sort_by_key(|ensure| (ensure.rank, ensure.buffer, ensure.block));
        self.contract
    }
}

pub(crate) fn leaf(rank: u32, buffer: u32, block: u32) -> Leaf {
    Leaf { rank, buffer, block }
}

/// A rank's part under construction. Operations are added lane by lane.
pub(crate) struct Part {
    pub(crate) part: RankPlan,
    step: u32,
}

impl Part {
    pub(crate) fn new(rank: u32) -> Part {
        let part = RankPlan {
            rank,
            slots: Vec::new(),
            lanes: Vec::new(),
            ops: Vec::new(),
            regions: Vec::new(),
            waits: Vec::new(),
        };
        Part { part, step: 0 }
    }

    pub(crate) fn lane(&mut self) -> &mut Part {
        let at = self.part.ops.len() as OpId;
        self.part.lanes.push(Lane { start: at, end: at });
        self
    }

    pub(crate) fn step(&mut self, step: u32) -> &mut Part {
        self.step = step;
        self
    }

    pub(crate) fn slot(&mut self, class: ClassId, low: u32, high: u32) {
        self.part.slots.push(SlotDecl { shapes: vec![Shape { class, low, high }] });
    }

    pub(crate) fn send(&mut self, peer: u32, source: &[Region], waits: &[Wait]) -> OpId {
        self.op(Action::Send { peer, channel: 0 }, [source, &[], &[]], waits)
    }

    pub(crate) fn recv(&mut self, peer: u32, target: &[Region], waits: &[Wait]) -> OpId {
        self.op(Action::Recv { peer, channel: 0 }, [&[], &[], target], waits)
    }

    /// Receives and reduces.
    pub(crate) fn fold(
        &mut self,
        peer: u32,
        left: bool,
        operand: &[Region],
        target: &[Region],
        waits: &[Wait],
    ) -> OpId {
        self.op(Action::RecvReduce { peer, channel: 0, left }, [&[], operand, target], waits)
    }

    pub(crate) fn op(&mut self, action: Action, sides: [&[Region]; 3], waits: &[Wait]) -> OpId {
        let [source, operand, target] = sides.map(|regions| {
            let start = self.part.regions.len() as u32;
            self.part.regions.extend(regions);
            Run { start, end: self.part.regions.len() as u32 }
        });
        let start = self.part.waits.len() as u32;
        self.part.waits.extend(waits);
        let waits = Run { start, end: self.part.waits.len() as u32 };
        self.part.ops.push(Op { action, source, operand, target, waits, step: self.step, line: self.step });
        let end = self.part.ops.len() as OpId;
        self.part.lanes.last_mut().unwrap().end = end;
        end - 1
    }
}

pub(crate) fn region(store: Store, block: u32, pieces: std::ops::Range<u32>, class: ClassId) -> Region {
    Region { store, block, low: pieces.start, high: pieces.end, class }
}

pub(crate) fn after(op: OpId) -> Wait {
    Wait { op, along: false }
}

pub(crate) fn along(op: OpId) -> Wait {
    Wait { op, along: true }
}

/// Line k of `hand.coll` is step k's.
pub(crate) fn plan(name: &str, contract: Contract, pieces: u32, parts: Vec<Part>) -> Plan {
    let lines = (0..64).map(|line| Line { file: "hand.coll".into(), line: line + 1 }).collect();
    Plan {
        name: name.into(),
        params: Vec::new(),
        root: None,
        reduces: contract.reduces(),
        claims: Default::default(),
        contract,
        cuts: (0..=pieces).map(|cut| Fraction::new(cut.into(), pieces.into())).collect(),
        channels: 1,
        slices: 1,
        accumulate: None,
        wire: None,
        slots: 0,
        lines,
        ranks: parts.into_iter().map(|part| part.part).collect(),
        origin: None,
        proof: None,
        placement: None,
    }
}

/// A call of a plan on all ranks.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) dtype: DType,
    pub(crate) op: RedOp,
    pub(crate) counts: &'a [u64],
    pub(crate) in_place: bool,
}

/// One buffer of one rank, with guard bytes beyond both ends.
struct OwnedBuffer {
    input: Vec<u8>,
    output: Vec<u8>,
}

const GUARD: usize = 3;
const GUARD_BYTE: u8 = 0xa5;

impl Call<'_> {
    /// Runs operations 0..rounds in a world and checks every ensured element and every byte that must not change.
    pub(crate) fn check(&self, world: World, rounds: u64) {
        let (results, buffers) = self.run(world, rounds);
        for result in results {
            result.unwrap_or_else(|error| panic!("{}: {error}", self.title()));
        }
        for (rank, buffers) in buffers.iter().enumerate() {
            for (buffer, owned) in buffers.iter().enumerate() {
                self.check_buffer(rank as u32, buffer as u32, owned);
            }
        }
    }

    /// Runs it with something amiss of rank `culprit`: each rank ends with right results, or with an error that names that
    /// rank. Says how many ended well.
    pub(crate) fn right_or_named(&self, world: World, culprit: u32, about: &str) -> usize {
        let (results, buffers) = self.run(world, 1);
        let mut well = 0;
        for (rank, (result, buffers)) in results.into_iter().zip(&buffers).enumerate() {
            match result {
                Ok(()) => {
                    well += 1;
                    for (buffer, owned) in buffers.iter().enumerate() {
                        self.check_buffer(rank as u32, buffer as u32, owned);
                    }
                }
                Err(error) => {
                    let named = error.to_string().contains(&format!("rank {culprit}"));
                    assert!(named, "{about}, {} on rank {rank}: {error}", self.plan.name);
                }
            }
        }
        well
    }

    /// Runs it and says how each rank ended.
    pub(crate) fn ends(&self, world: World) -> Vec<Result<(), RunError>> {
        self.run(world, 1).0
    }

    fn run(&self, mut world: World, rounds: u64) -> (Vec<Result<(), RunError>>, Vec<Vec<OwnedBuffer>>) {
        let ranks = self.plan.world();
        let mut owned: Vec<Vec<OwnedBuffer>> = (0..ranks).map(|rank| self.buffers(rank)).collect();
        let mut bounds: Vec<Bound> = (0..ranks).map(|rank| self.bind(rank)).collect();
        let mut memories: Vec<Vec<BufferMemory<'_>>> = owned
            .iter_mut()
            .map(|buffers| buffers.iter_mut().enumerate().map(|(at, owned)| self.memory(at, owned)).collect())
            .collect();
        let results = world.run(&mut bounds, &mut memories, 0..rounds);
        if results.iter().all(Result::is_ok) {
            assert_eq!(world.open_stages(), 0, "{}: a stage is not given back", self.title());
        }
        (results, owned)
    }

    pub(crate) fn bind(&self, rank: u32) -> Bound {
        let reducer = Reducer::builtin_with(self.op, self.dtype, params(self.op)).unwrap();
        let placements: Vec<Placement> =
            (0..self.plan.contract.buffers.len()).map(|at| self.placement(at)).collect();
        let reduces = self.plan.contract.reduces();
        // Odd ranks run their slice of the plan.
        let slice = self.plan.slice(rank).unwrap();
        let bound = Bound::new(Binding {
            plan: if rank % 2 == 1 { &slice } else { self.plan },
            rank,
            counts: self.counts,
            element_size_bytes: self.dtype.size_bytes(),
            reducer: reduces.then_some(&reducer),
            placements: &placements,
        });
        bound.unwrap_or_else(|error| panic!("{}: {error}", self.title()))
    }

    pub(crate) fn placement(&self, buffer: usize) -> Placement {
        match self.plan.contract.buffers[buffer].role {
            BufferRole::InOut if self.in_place => Placement::InPlace,
            _ => Placement::Separate,
        }
    }

    fn memory<'a>(&self, buffer: usize, owned: &'a mut OwnedBuffer) -> BufferMemory<'a> {
        let end = owned.output.len() - GUARD;
        let output = &mut owned.output[GUARD..end];
        match self.placement(buffer) {
            Placement::InPlace => BufferMemory::InPlace(output),
            Placement::Separate => BufferMemory::Separate { input: &owned.input, output },
        }
    }

    fn buffers(&self, rank: u32) -> Vec<OwnedBuffer> {
        let contract = &self.plan.contract;
        let buffers = contract.buffers.iter().enumerate();
        let owned = buffers.map(|(buffer, decl)| {
            let in_place = self.placement(buffer) == Placement::InPlace;
            let (mut input, mut output) = (Vec::new(), vec![GUARD_BYTE; GUARD]);
            for block in 0..decl.blocks {
                let leaf = leaf(rank, buffer as u32, block);
                let given = contract.is_given(rank, buffer as u32, block);
                let ensured = contract.ensured(rank, buffer as u32, block).is_some();
                for element in 0..self.count(leaf) {
                    if given {
                        oracle::write(
                            self.dtype,
                            self.value(leaf, element),
                            if in_place { &mut output } else { &mut input },
                        );
                    } else if in_place {
                        oracle::write(self.dtype, Scalar::Int(77), &mut output);
                    }
                    if !in_place && ensured {
                        oracle::write(self.dtype, Scalar::Int(99), &mut output);
                    }
                }
            }
            output.extend([GUARD_BYTE; GUARD]);
            OwnedBuffer { input, output }
        });
        owned.collect()
    }

    fn count(&self, leaf: Leaf) -> u64 {
        self.counts[self.plan.contract.class(leaf.rank, leaf.buffer, leaf.block) as usize]
    }

    /// Values differ by rank, buffer, block and element.
    fn value(&self, leaf: Leaf, element: u64) -> Scalar {
        let place = u64::from(leaf.rank) * 7919 + u64::from(leaf.buffer) * 31 + u64::from(leaf.block) * 613;
        let mixed = ((place + element * 104_729 + 13) % 251) as i128;
        let float = (mixed - 125) as f64 / 16.0;
        match self.dtype {
            DType::Bool => Scalar::Int(mixed % 2),
            DType::C64 | DType::C128 => Scalar::Complex(float, 2.0 - float),
            DType::I32I32 | DType::I64I64 => Scalar::IntAt(mixed % 7, place as i64),
            DType::F32I32 | DType::F64I64 => Scalar::FloatAt((mixed % 7) as f64, place as i64),
            dtype if dtype.is_float() => Scalar::Float(float),
            _ => Scalar::Int((mixed - 125) * 70_000_000_000_000_003),
        }
    }

    fn check_buffer(&self, rank: u32, buffer: u32, owned: &OwnedBuffer) {
        let contract = &self.plan.contract;
        let in_place = self.placement(buffer as usize) == Placement::InPlace;
        let (guards, size) = (owned.output.len() - GUARD, self.dtype.size_bytes() as usize);
        assert!(owned.output[..GUARD].iter().chain(&owned.output[guards..]).all(|byte| *byte == GUARD_BYTE));
        let mut elements = owned.output[GUARD..guards].chunks(size);
        for block in 0..contract.buffers[buffer as usize].blocks {
            let value = contract.ensured(rank, buffer, block);
            if value.is_none() && !in_place {
                continue;
            }
            for element in 0..self.count(leaf(rank, buffer, block)) {
                let found = oracle::read(self.dtype, elements.next().unwrap()).unwrap();
                if let Some(value) = value {
                    self.check_element(rank, block, element, value, found);
                }
            }
        }
        assert_eq!(elements.next(), None, "no bytes are left over");
    }

    fn check_element(&self, rank: u32, block: u32, element: u64, value: &Value, found: Scalar) {
        let held = value.leaves().iter().map(|leaf| {
            let mut bytes = Vec::new();
            oracle::write(self.dtype, self.value(*leaf, element), &mut bytes);
            oracle::read(self.dtype, &bytes).unwrap()
        });
        let held: Vec<Scalar> = held.collect();
        if !value.is_reduction() {
            assert_eq!(found, held[0], "{}: rank {rank}, block {block}, element {element}", self.title());
            return;
        }
        let due = oracle::expected_with(self.dtype, self.op, params(self.op), &held).unwrap();
        let title = self.title();
        assert!(
            due.accepts(found),
            "{title}: rank {rank}, block {block}, element {element}: {found:?}, due {due:?}"
        );
    }

    fn title(&self) -> String {
        let place = if self.in_place { "in place" } else { "out of place" };
        format!("{} {} of {}, counts {:?}, {place}", self.plan.name, self.op, self.dtype, self.counts)
    }
}

/// Values of an operator's parameters.
fn params(op: RedOp) -> &'static [f64] {
    if op == RedOp::PremulSum { &[3.0] } else { &[] }
}

/// Whether an operator works on a type.
pub(crate) fn works(op: RedOp, dtype: DType) -> bool {
    Reducer::builtin_with(op, dtype, params(op)).is_ok()
}

/// A transport without links, for plans of one rank.
pub(crate) struct Nothing;

impl Transport for Nothing {
    fn try_send(&mut self, link: Link, _: &[&[u8]]) -> Result<usize, Fault> {
        Err(Fault::NoLink { peer: link.peer, channel: link.channel })
    }

    fn try_recv(&mut self, link: Link, _: &mut [u8]) -> Result<usize, Fault> {
        Err(Fault::NoLink { peer: link.peer, channel: link.channel })
    }

    fn wait(&mut self, _: &[Interest]) -> Result<(), Fault> {
        Ok(())
    }
}
