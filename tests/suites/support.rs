//! Shared by suites: a library schedule's plan, and a run of it in a seeded world against the serial oracle.
#![allow(dead_code, unreachable_pub, clippy::print_stdout)]

use coll::library::Entry;
use coll::trial::{Inputs, Judge, Operator};
use coll::{Instance, Outcome, Source};
use coll_base::{DType, RedOp};
use coll_contract::{BufferRole, Leaf};
use coll_exec::world::World;
use coll_exec::{Binding, Bound, BufferMemory, Placement};
use coll_plan::Plan;

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
            operator: Operator::Builtin(op),
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

/// One rank's memory for one buffer: input and output, or in place output alone.
struct Memory {
    placement: Placement,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// Runs a plan's ranks in a world and judges every element.
pub fn run_world(plan: &Plan, case: &Case) -> Result<(), String> {
    let (reducer, _) = case.operator.compiled(case.dtype, true).map_err(|error| error.to_string())?;
    let reference = case.operator.reducer(case.dtype).map_err(|error| error.to_string())?;
    let counts = plan.contract.counts(case.elements).map_err(|error| error.to_string())?;
    let near_one = case.operator.builtin() == Some(RedOp::Prod);
    let inputs = Inputs { seed: case.seed, dtype: case.dtype, near_one };
    let placement = |role| match role {
        BufferRole::InOut if case.in_place => Placement::InPlace,
        _ => Placement::Separate,
    };
    let placements: Vec<Placement> =
        plan.contract.buffers.iter().map(|buffer| placement(buffer.role)).collect();
    let bind = |rank| {
        Bound::new(Binding {
            plan,
            rank,
            counts: &counts,
            element_size_bytes: case.dtype.size_bytes(),
            reducer: plan.contract.reduces().then_some(&reducer),
            placements: &placements,
        })
    };
    let mut bounds: Vec<Bound> =
        (0..plan.world()).map(bind).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let mut world = World::new(case.seed).link_bytes(case.link_bytes).piece_bytes_max(case.link_bytes.max(7));
    // In place an operation consumes its input, so each has its own; out of place they follow without a pause.
    let operations = if case.in_place { 1 } else { case.operations };
    let mut memories: Vec<Vec<Memory>> =
        (0..plan.world()).map(|rank| memory(plan, rank, &placements, &counts, &inputs)).collect();
    let untouched: Vec<Vec<Vec<u8>>> =
        memories.iter().map(|buffers| buffers.iter().map(|buffer| buffer.input.clone()).collect()).collect();
    let mut buffers: Vec<Vec<BufferMemory<'_>>> =
        memories.iter_mut().map(|buffers| buffers.iter_mut().map(Memory::bound).collect()).collect();
    for ended in world.run(&mut bounds, &mut buffers, 0..operations) {
        ended.map_err(|error| error.to_string())?;
    }
    drop(buffers);
    let judge = Judge {
        contract: &plan.contract,
        counts: &counts,
        inputs,
        op: case.operator.builtin(),
        reducer: &reference,
    };
    let mut digests = std::collections::BTreeMap::new();
    for (rank, buffers) in memories.iter().enumerate() {
        let outputs: Vec<Vec<u8>> = buffers
            .iter()
            .enumerate()
            .map(|(at, buffer)| ensured(plan, rank as u32, at as u32, buffer, &counts, case))
            .collect();
        let verdict = judge.verdict(rank as u32, &outputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
        if let Some(first) = verdict.first {
            return Err(format!("{} elements are wrong: {first}", verdict.wrong));
        }
        for (key, digest) in verdict.digests {
            if *digests.entry(key).or_insert(digest) != digest && case.same_bits {
                return Err(format!("rank {rank} has other bits than a rank before it"));
            }
        }
        if case.check_inputs
            && buffers.iter().zip(&untouched[rank]).any(|(buffer, before)| buffer.input != *before)
        {
            return Err(format!("rank {rank}: its input was changed"));
        }
    }
    Ok(())
}

impl Memory {
    fn bound(&mut self) -> BufferMemory<'_> {
        match self.placement {
            Placement::Separate => BufferMemory::Separate { input: &self.input, output: &mut self.output },
            Placement::InPlace => BufferMemory::InPlace(&mut self.output),
        }
    }
}

fn memory(plan: &Plan, rank: u32, placements: &[Placement], counts: &[u64], inputs: &Inputs) -> Vec<Memory> {
    let contract = &plan.contract;
    let one = |buffer: u32| {
        let placement = placements[buffer as usize];
        let (mut input, mut output) = (Vec::new(), Vec::new());
        for block in 0..contract.buffers[buffer as usize].blocks {
            let count = counts[contract.class(rank, buffer, block) as usize];
            let bytes = (count * inputs.dtype.size_bytes()) as usize;
            let given = contract.is_given(rank, buffer, block);
            let leaf = Leaf { rank, buffer, block };
            match placement {
                Placement::InPlace if given => inputs.fill(leaf, 0, count, &mut output),
                Placement::InPlace => output.resize(output.len() + bytes, 0xA5),
                Placement::Separate => {
                    if given {
                        inputs.fill(leaf, 0, count, &mut input);
                    }
                    if contract.ensured(rank, buffer, block).is_some() {
                        output.resize(output.len() + bytes, 0xA5);
                    }
                }
            }
        }
        Memory { placement, input, output }
    };
    (0..contract.buffers.len() as u32).map(one).collect()
}

/// The ensured blocks of a buffer, one after the other.
fn ensured(plan: &Plan, rank: u32, buffer: u32, memory: &Memory, counts: &[u64], case: &Case) -> Vec<u8> {
    if memory.placement == Placement::Separate {
        return memory.output.clone();
    }
    let (mut kept, mut offset) = (Vec::new(), 0);
    for block in 0..plan.contract.buffers[buffer as usize].blocks {
        let count = counts[plan.contract.class(rank, buffer, block) as usize];
        let bytes = (count * case.dtype.size_bytes()) as usize;
        if plan.contract.ensured(rank, buffer, block).is_some() {
            kept.extend_from_slice(&memory.output[offset..offset + bytes]);
        }
        offset += bytes;
    }
    kept
}
