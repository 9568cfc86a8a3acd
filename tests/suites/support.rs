//! Shared by suites: a library schedule's plan, and a run of it in a seeded world against the serial oracle.
#![allow(dead_code, unreachable_pub, clippy::print_stdout)]

use coll::library::Entry;
use coll::trial::{Inputs, Judge, Operator, RunMemory, placements, travels_as};
use coll::{Instance, Outcome, Source};
use coll_base::{DType, RedOp};
use coll_exec::world::World;
use coll_exec::{Binding, Bound, BufferMemory, RunError};
use coll_kernel::Reducer;
use coll_plan::Plan;
use std::ops::Range;

/// What a plan is run on.
#[derive(Clone, Debug)]
pub struct Case {
    pub operator: Operator,
    pub dtype: DType,
    pub elements: u64,
    pub in_place: bool,
    pub seed: u64,
    /// Bytes that a link holds.
    pub link_bytes: usize,
    /// Operations in a row, without a barrier between them.
    pub operations: u64,
    /// Blocks that hold one value must be bit-equal on all ranks.
    pub same_bits: bool,
    /// Inputs must be what they were.
    pub check_inputs: bool,
}

impl Case {
    pub fn new(op: RedOp, dtype: DType) -> Case {
        Case {
            operator: match op {
                RedOp::PremulSum => Operator::PremulSum(3.0),
                op => Operator::Builtin(op),
            },
            dtype,
            elements: 100,
            in_place: false,
            seed: 1,
            link_bytes: 4096,
            operations: 1,
            same_bits: false,
            check_inputs: false,
        }
    }
}

/// The seed of random choices: that of `COLLC_TEST_SEED`, or a new one, printed so that it can be replayed.
pub fn seed() -> u64 {
    let given = std::env::var("COLLC_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let now = || {
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |d| d.as_nanos() as u64)
    };
    let seed = given.unwrap_or_else(|| now() % 1_000_000);
    println!("COLLC_TEST_SEED={seed} replays this run");
    seed
}

/// A library schedule's proved plan, or nothing if a `require` excludes the rank count.
pub fn library_plan(entry: &Entry, ranks: u32, root: u32) -> Option<Plan> {
    let source = Source::from_text(entry.file_name(), entry.text);
    let schedule =
        source.schedules().iter().position(|info| info.name == entry.schedule).expect("it is declared");
    let root = if source.schedules()[schedule].rooted { root } else { 0 };
    let instance = Instance { ranks, root, params: Vec::new() };
    match coll::prove(&source, schedule, &instance, &Default::default()) {
        Outcome::Right(proved) => Some(proved.plan),
        Outcome::DoesNotApply { .. } => None,
        Outcome::Wrong(diagnostics) => panic!("{} at {ranks} ranks: {diagnostics:#?}", entry.file_name()),
    }
}

/// One plan's ranks, bound and with memory, ready to run in a world.
pub struct Call<'p> {
    plan: &'p Plan,
    case: Case,
    /// What results are judged by: the interpreter, where a user's operator ran as machine code.
    reference: Reducer,
    counts: Vec<u64>,
    bounds: Vec<Bound>,
    memory: Vec<RunMemory<'p>>,
}

impl<'p> Call<'p> {
    pub fn new(plan: &'p Plan, case: &Case) -> Result<Call<'p>, String> {
        let (reducer, _) = case.operator.compiled(case.dtype, true).map_err(|error| error.to_string())?;
        let reference = case.operator.reference(case.dtype, plan).map_err(|error| error.to_string())?;
        let counts = plan.contract.counts(case.elements).map_err(|error| error.to_string())?;
        let element_size_bytes = case.dtype.size_bytes();
        let placements = placements(&plan.contract, case.in_place);
        let bind = |rank| {
            let binding = Binding {
                plan,
                rank,
                counts: &counts,
                element_size_bytes,
                reducer: plan.reduces.then_some(&reducer),
                placements: &placements,
            };
            Bound::typed(binding, case.dtype)
        };
        let bounds = (0..plan.world()).map(bind).collect::<Result<_, _>>();
        let bounds = bounds.map_err(|error| error.to_string())?;
        let memory = |rank| RunMemory::new(&plan.contract, rank, &counts, element_size_bytes, case.in_place);
        let memory: Result<Vec<_>, _> = (0..plan.world()).map(memory).collect();
        let memory = memory.map_err(|error| format!("{error:?}"))?;
        Ok(Call { plan, case: case.clone(), reference, counts, bounds, memory })
    }

    fn inputs(&self) -> Inputs {
        let near_one = self.case.operator.builtin() == Some(RedOp::Prod);
        Inputs { seed: self.case.seed, dtype: self.case.dtype, near_one }
    }

    /// Runs operations with these numbers in a world and judges what the last leaves.
    pub fn run(&mut self, world: &mut World, operations: Range<u64>) -> Result<(), String> {
        self.run_by(|bounds, buffers| world.run(bounds, buffers, operations))
    }

    /// Lets `run` run the ranks, which says how each ended, and judges what that leaves.
    pub fn run_by(
        &mut self,
        run: impl FnOnce(&mut [Bound], &mut [Vec<BufferMemory<'_>>]) -> Vec<Result<(), RunError>>,
    ) -> Result<(), String> {
        let inputs = self.inputs();
        self.memory.iter_mut().for_each(|memory| memory.fill(&inputs, false));
        let untouched: Vec<Vec<Vec<u8>>> =
            self.memory.iter().map(|memory| memory.inputs().map(<[u8]>::to_vec).collect()).collect();
        let mut buffers: Vec<_> = self.memory.iter_mut().map(RunMemory::bound).collect();
        for ended in run(&mut self.bounds, &mut buffers) {
            ended.map_err(|error| error.to_string())?;
        }
        drop(buffers);
        self.judge()?;
        let changed = |(memory, before): (&RunMemory<'_>, &Vec<Vec<u8>>)| {
            memory.inputs().zip(before).any(|(now, before)| now != before)
        };
        match self.memory.iter().zip(&untouched).position(changed) {
            Some(rank) if self.case.check_inputs => Err(format!("rank {rank}: its input was changed")),
            _ => Ok(()),
        }
    }

    fn judge(&self) -> Result<(), String> {
        let judge = Judge {
            contract: &self.plan.contract,
            counts: &self.counts,
            inputs: self.inputs(),
            op: self.case.operator.builtin(),
            reducer: &self.reference,
            wire: travels_as(self.plan, self.case.dtype, &self.reference),
        };
        let mut digests = std::collections::BTreeMap::new();
        for (rank, memory) in self.memory.iter().enumerate() {
            let outputs = memory.outputs();
            let outputs: Vec<&[u8]> = outputs.iter().map(|output| &output[..]).collect();
            let verdict = judge.verdict(rank as u32, &outputs);
            if let Some(first) = verdict.first {
                return Err(format!("{} elements are wrong: {first}", verdict.wrong));
            }
            for (key, digest) in verdict.digests {
                if *digests.entry(key).or_insert(digest) != digest && self.case.same_bits {
                    return Err(format!("rank {rank} has other bits than a rank before it"));
                }
            }
        }
        Ok(())
    }

    /// The bytes of every rank's ensured blocks, buffer after buffer.
    pub fn results(&self) -> Vec<Vec<u8>> {
        self.memory.iter().map(|memory| memory.outputs().concat()).collect()
    }
}

/// A world with links as the case has them.
pub fn world(case: &Case) -> World {
    World::new(case.seed).link_bytes(case.link_bytes).piece_bytes_max(case.link_bytes.max(7))
}

/// Runs a plan's ranks in a world and judges every element.
pub fn run_world(plan: &Plan, case: &Case) -> Result<(), String> {
    // In place an operation consumes its input, so each has its own; out of place they follow without a pause.
    let operations = if case.in_place { 1 } else { case.operations };
    Call::new(plan, case)?.run(&mut world(case), 0..operations)
}
