//! Plans over a transport: each cell's schedule is chosen, proved and bound on each rank, and run over connections that
//! are made once.

use super::pages::Pages;
use super::pattern::{Pattern, Side};
use super::settings::{Cell, Settings};
use super::subject::{Prepared, Subject, block_elements};
use super::wire::Wire;
use crate::failure::Failure;
use coll::select::{Candidate, Chooser, Question};
use coll::{Options, Outcome, Proved};
use coll_base::{DType, Fraction};
use coll_contract::{BufferRole, Contract};
use coll_cost::Layout;
use coll_exec::{Binding, Bound, BufferMemory, Placement, RunOptions};
use coll_kernel::Reducer;
use coll_plan::Plan;
use std::collections::BTreeMap;
use std::time::Duration;

/// One rank of a job.
pub(super) struct OverPlans<W> {
    settings: Settings,
    chooser: Chooser,
    reducer: Reducer,
    wire: W,
    barrier: Bound,
    operation: u64,
    /// Plans that were made.
    plans: BTreeMap<String, Made>,
    cell: Option<Bind>,
    memory: Vec<Memory>,
}

/// A plan that was made.
struct Made {
    slice: Plan,
    /// The whole plan's contract: a slice knows no lengths of blocks that only pass through its rank.
    whole: Contract,
    bus_factor: f64,
}

/// A cell's plan, bound.
struct Bind {
    schedule: String,
    bound: Bound,
    contract: Contract,
    counts: Vec<u64>,
    placements: Vec<Placement>,
}

impl Bind {
    fn side(&self, settings: &Settings, placement: Placement) -> Side<'_> {
        Side {
            pattern: Pattern::of(settings),
            contract: &self.contract,
            counts: &self.counts,
            rank: settings.rank,
            in_place: placement == Placement::InPlace,
        }
    }
}

/// Memory of one buffer, kept from cell to cell.
struct Memory {
    input: Pages,
    output: Pages,
}

impl<W: Wire> OverPlans<W> {
    /// Runs plans over what `meet` gives; it is told a number that is equal where choices are.
    pub(super) fn on(
        settings: &Settings,
        meet: impl FnOnce(u64) -> Result<W, Failure>,
    ) -> Result<OverPlans<W>, Failure> {
        let chooser = settings.chooser()?;
        let reducer = Reducer::builtin(settings.op, settings.dtype)
            .map_err(|error| Failure::unusable(error.to_string()))?;
        let (world, rank) = (settings.world, settings.rank);
        let wire = meet(chooser.fingerprint())?;
        let barrier = Candidate { operation: "barrier", schedule: "dissemination", params: Vec::new() };
        let made = slice(&barrier, world, 0, rank, &Options::default())?;
        let barrier = bind(&made.slice, rank, &[], settings.dtype, None, &[])?;
        Ok(OverPlans {
            settings: settings.clone(),
            chooser,
            reducer,
            wire,
            barrier,
            operation: 0,
            plans: BTreeMap::new(),
            cell: None,
            memory: Vec::new(),
        })
    }
}

impl<W: Wire> Subject for OverPlans<W> {
    fn prepare(&mut self, cell: &Cell) -> Result<Prepared, Failure> {
        let Settings { world, rank, dtype, root, accumulate, wire, .. } = self.settings;
        let candidate = candidate(&self.settings, &self.chooser, W::NAME, cell)?;
        let key = candidate.to_string();
        if !self.plans.contains_key(&key) {
            let options = Options { accumulate, wire, ..Options::default() };
            self.plans.insert(key.clone(), slice(&candidate, world, root, rank, &options)?);
        }
        let Made { slice: plan, whole, bus_factor } = &self.plans[&key];
        let contract = plan.contract.clone();
        let elements = block_elements(&contract, cell.bytes, dtype);
        let counts = whole.counts(elements).map_err(|error| Failure::unusable(error.to_string()))?;
        let placement = |role| match role {
            BufferRole::InOut if cell.in_place => Placement::InPlace,
            _ => Placement::Separate,
        };
        let placements: Vec<Placement> = contract.buffers.iter().map(|b| placement(b.role)).collect();
        let reduces = reduces(&candidate);
        let reducer = reduces.then_some(&self.reducer);
        let bound = bind(plan, rank, &counts, dtype, reducer, &placements)?;
        let shared = self.settings.shared_memory;
        let none = || Memory { input: Pages::new(shared), output: Pages::new(shared) };
        self.memory.resize_with(self.memory.len().max(placements.len()), none);
        for (at, memory) in self.memory.iter_mut().enumerate().take(placements.len()) {
            let [input, output] = bound.buffer_bytes(at).unwrap_or_default();
            memory.input.set_len(input as usize)?;
            memory.output.set_len(output as usize)?;
        }
        let root = plan.root;
        let (bus_factor, actual_bytes) = (*bus_factor, elements * dtype.size_bytes());
        self.cell = Some(Bind { schedule: key, bound, contract, counts, placements });
        Ok(Prepared { elements, actual_bytes, reduces, root, bus_factor })
    }

    fn fill(&mut self) {
        let Some(cell) = &self.cell else { return };
        for (at, placement) in cell.placements.iter().enumerate() {
            let (memory, side) = (&mut self.memory[at], cell.side(&self.settings, *placement));
            memory.output.bytes_mut().fill(0);
            let given = if side.in_place { &mut memory.output } else { &mut memory.input };
            side.fill(at as u32, given.bytes_mut());
        }
    }

    fn wrong(&self) -> u64 {
        let Some(cell) = &self.cell else { return 0 };
        let of = |(at, placement): (usize, &Placement)| {
            cell.side(&self.settings, *placement).wrong(at as u32, self.memory[at].output.bytes()).0
        };
        cell.placements.iter().enumerate().map(of).sum()
    }

    fn schedule(&mut self) -> String {
        self.cell.as_ref().map_or(String::new(), |cell| cell.schedule.clone())
    }

    fn run(&mut self) -> Result<(), Failure> {
        let Some(cell) = &mut self.cell else { return Ok(()) };
        let mut buffers: Vec<BufferMemory<'_>> = self
            .memory
            .iter_mut()
            .zip(&cell.placements)
            .map(|(memory, placement)| match placement {
                Placement::Separate => {
                    BufferMemory::Separate { input: memory.input.bytes(), output: memory.output.bytes_mut() }
                }
                Placement::InPlace => BufferMemory::InPlace(memory.output.bytes_mut()),
            })
            .collect();
        self.operation += 1;
        let options = RunOptions { operation: self.operation, ..RunOptions::default() };
        let ran = cell.bound.run(&mut self.wire, &mut buffers, options);
        ran.map_err(|error| Failure::wrong(error.to_string()))
    }

    fn leave(self) {
        self.wire.leave();
    }

    fn abort(mut self, reason: &str) {
        self.wire.abort(reason);
        self.wire.leave();
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.wire.begin(Duration::from_secs_f64(self.settings.time_limit_s));
        self.operation += 1;
        let options = RunOptions { operation: self.operation, ..RunOptions::default() };
        let ran = self.barrier.run(&mut self.wire, &mut [], options);
        ran.map_err(|error| Failure::wrong(error.to_string()))
    }
}

/// The schedule that a cell takes, on the constants of a transport.
pub(super) fn candidate(
    settings: &Settings,
    chooser: &Chooser,
    transport: &'static str,
    cell: &Cell,
) -> Result<Candidate, Failure> {
    let operation = coll::canonical_operation(&cell.operation)
        .ok_or_else(|| Failure::unusable(format!("no operation `{}`", cell.operation)))?;
    if let Some(named) = &cell.schedule {
        let forced: coll::select::Forced =
            named.parse().map_err(|error| Failure::unusable(format!("{error}")))?;
        let forced = forced.of(operation).cloned();
        return forced.ok_or_else(|| Failure::unusable(format!("`{named}` is no {operation}")));
    }
    let question = Question {
        root: settings.root,
        dtype: settings.dtype,
        accumulate: settings.accumulate.is_some(),
        wire: settings.wire,
        deterministic: settings.deterministic,
        transport,
        layout: Layout::one_host(settings.cores),
        ..Question::new(operation, settings.world, cell.bytes)
    };
    let choice = chooser.choose(&question);
    Ok(choice.map_err(|error| Failure::unusable(error.to_string()))?.candidate)
}

/// A candidate's plan, proved.
pub(super) fn proved(
    candidate: &Candidate,
    world: u32,
    root: u32,
    options: &Options,
) -> Result<Box<Proved>, Failure> {
    match candidate.prove_with(world, root, options) {
        Outcome::Right(proved) => Ok(proved),
        Outcome::DoesNotApply { reason, .. } => {
            Err(Failure::unusable(format!("{candidate} does not serve {world} ranks: {reason}")))
        }
        Outcome::Wrong(_) => Err(Failure::wrong(format!("{candidate} is wrong on {world} ranks"))),
    }
}

/// This rank's part of a proved plan, and the plan's bus factor: the least that the busiest rank must move.
fn slice(
    candidate: &Candidate,
    world: u32,
    root: u32,
    rank: u32,
    options: &Options,
) -> Result<Made, Failure> {
    let proved = proved(candidate, world, root, options)?;
    let bounds = &proved.properties.bounds;
    let bus_factor = Fraction::to_f64(bounds.sent_max.max(bounds.received_max));
    let slice = proved.plan.slice(rank).expect("invariant: a whole plan has every rank");
    Ok(Made { slice, whole: proved.plan.contract.clone(), bus_factor })
}

/// Whether the operation reduces: a rank's slice cannot always tell.
fn reduces(candidate: &Candidate) -> bool {
    match candidate.prove(2, 0) {
        Outcome::Right(proved) => proved.plan.contract.reduces(),
        _ => false,
    }
}

fn bind(
    plan: &Plan,
    rank: u32,
    counts: &[u64],
    dtype: DType,
    reducer: Option<&Reducer>,
    placements: &[Placement],
) -> Result<Bound, Failure> {
    let element_size_bytes = dtype.size_bytes();
    let binding = Binding { plan, rank, counts, element_size_bytes, reducer, placements };
    Bound::typed(binding, dtype).map_err(|error| Failure::unusable(error.to_string()))
}
