//! The library as its callers have it: blocking calls of a communicator.

use super::pages::Pages;
use super::pattern::{Pattern, Side};
use super::settings::{Cell, Settings};
use super::subject::{Prepared, Subject, block_elements};
use crate::failure::Failure;
use coll::select::Candidate;
use coll::{Communicator, Outcome, Request, Via, View, ViewMut, library};
use coll_base::Fraction;
use coll_contract::Contract;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// One rank of a job.
pub(super) struct OverComm {
    settings: Settings,
    comm: Communicator,
    /// Each operation's contract, and the least that the busiest rank must move.
    contracts: BTreeMap<String, (Contract, f64)>,
    cell: Cell,
    counts: Vec<u64>,
    input: Pages,
    output: Pages,
}

impl OverComm {
    /// Joins the others.
    pub(super) fn join(settings: &Settings) -> Result<OverComm, Failure> {
        let via = match settings.transport.as_str() {
            super::wire::SHM => Via::Shm,
            _ => Via::Tcp,
        };
        let comm = Communicator::builder()
            .rank(settings.rank, settings.world)
            .rendezvous(settings.rendezvous.clone())
            .rendezvous_is_hosted()
            .token(settings.token.clone())
            .tls(settings.tls)
            .time_limit(Duration::from_secs_f64(settings.time_limit_s))
            .via(via)
            .chooser(Arc::new(settings.chooser()?))
            .checksums(settings.checksums)
            .deterministic(settings.deterministic)
            .accumulate(settings.accumulate)
            .wire(settings.wire)
            .build();
        Ok(OverComm::on(settings, comm.map_err(|error| Failure::wrong(error.to_string()))?))
    }

    /// Runs calls of a communicator that there is already.
    pub(super) fn on(settings: &Settings, comm: Communicator) -> OverComm {
        OverComm {
            settings: settings.clone(),
            comm,
            contracts: BTreeMap::new(),
            cell: Cell { operation: String::new(), bytes: 0, in_place: false, schedule: None },
            counts: Vec::new(),
            input: Pages::new(settings.shared_memory),
            output: Pages::new(settings.shared_memory),
        }
    }
}

impl Subject for OverComm {
    fn prepare(&mut self, cell: &Cell) -> Result<Prepared, Failure> {
        let Settings { world, rank, dtype, root, .. } = self.settings;
        if !self.contracts.contains_key(&cell.operation) {
            let found = contract(&cell.operation, world, root, rank)
                .ok_or_else(|| Failure::unusable(format!("no schedule of {} serves", cell.operation)))?;
            self.contracts.insert(cell.operation.clone(), found);
        }
        let (contract, bus_factor) = &self.contracts[&cell.operation];
        let elements = block_elements(contract, cell.bytes, dtype);
        self.counts = contract.counts(elements).map_err(|error| Failure::unusable(error.to_string()))?;
        let size = |wanted: &dyn Fn(u32, u32) -> bool| -> usize {
            let blocks = contract
                .buffers
                .iter()
                .zip(0u32..)
                .flat_map(|(buffer, number)| (0..buffer.blocks).map(move |block| (number, block)));
            let of = |(buffer, block): (u32, u32)| self.counts[contract.class(rank, buffer, block) as usize];
            let counts: u64 = blocks.filter(|&(buffer, block)| wanted(buffer, block)).map(of).sum();
            (counts * dtype.size_bytes()) as usize
        };
        match cell.in_place {
            true => {
                self.input.set_len(0)?;
                self.output.set_len(size(&|_, _| true))?;
            }
            false => {
                self.input.set_len(size(&|buffer, block| contract.is_given(rank, buffer, block)))?;
                let ensured = size(&|buffer, block| contract.ensured(rank, buffer, block).is_some());
                // Of the first rank of an exclusive scan nothing is asked, but it brings its buffer.
                let least = if cell.operation == "exscan" { self.input.bytes().len() } else { 0 };
                self.output.set_len(ensured.max(least))?;
            }
        }
        self.cell = cell.clone();
        let rooted = matches!(cell.operation.as_str(), "broadcast" | "reduce" | "gather" | "scatter");
        Ok(Prepared {
            elements,
            actual_bytes: elements * dtype.size_bytes(),
            reduces: contract.reduces() || cell.operation == "exscan",
            root: rooted.then_some(root),
            bus_factor: *bus_factor,
        })
    }

    fn fill(&mut self) {
        self.output.bytes_mut().fill(0);
        let OverComm { settings, contracts, cell, counts, input, output, .. } = self;
        let Some(side) = side(settings, contracts, cell, counts) else { return };
        let mut rest = if cell.in_place { output.bytes_mut() } else { input.bytes_mut() };
        for buffer in 0..side.contract.buffers.len() as u32 {
            let used = side.fill(buffer, rest);
            rest = &mut rest[used..];
        }
    }

    fn wrong(&self) -> u64 {
        let Some(side) = side(&self.settings, &self.contracts, &self.cell, &self.counts) else { return 0 };
        let (mut rest, mut wrong) = (self.output.bytes(), 0);
        for buffer in 0..side.contract.buffers.len() as u32 {
            let (found, used) = side.wrong(buffer, rest);
            wrong += found;
            rest = &rest[used..];
        }
        wrong
    }

    fn schedule(&mut self) -> String {
        let records = self.comm.flight_record();
        records.last().map_or(String::new(), |record| record.schedule.clone())
    }

    fn run(&mut self) -> Result<(), Failure> {
        let Settings { dtype, op, root, rank, .. } = self.settings;
        let input = View::new(dtype, self.input.bytes());
        let output = ViewMut::new(dtype, self.output.bytes_mut());
        let is_root = rank == root;
        let request = match (self.cell.operation.as_str(), self.cell.in_place) {
            ("barrier", _) => Request::barrier(),
            ("broadcast", _) => Request::broadcast(output, root),
            ("reduce", _) => Request::reduce(input, is_root.then_some(output), op, root),
            ("allreduce", false) => Request::all_reduce(input, output, op),
            ("allreduce", true) => Request::all_reduce_in_place(output, op),
            ("gather", _) => Request::gather(input, is_root.then_some(output), root),
            ("scatter", _) => Request::scatter(is_root.then_some(input), output, root),
            ("allgather", false) => Request::all_gather(input, output),
            ("allgather", true) => Request::all_gather_in_place(output),
            ("reduce_scatter", false) => Request::reduce_scatter(input, output, op),
            ("reduce_scatter", true) => Request::reduce_scatter_in_place(output, op),
            ("alltoall", _) => Request::all_to_all(input, output),
            ("scan", _) => Request::scan(input, output, op),
            ("exscan", _) => Request::exscan(input, output, op),
            (other, _) => return Err(Failure::unusable(format!("no operation `{other}`"))),
        };
        self.comm.run(request).map_err(|error| Failure::wrong(error.to_string()))
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.comm.barrier().map_err(|error| Failure::wrong(error.to_string()))
    }

    fn leave(self) {
        // Dropping a communicator leaves in good order.
    }

    fn abort(mut self, reason: &str) {
        self.comm.abort(reason);
    }
}

fn side<'c>(
    settings: &Settings,
    contracts: &'c BTreeMap<String, (Contract, f64)>,
    cell: &Cell,
    counts: &'c [u64],
) -> Option<Side<'c>> {
    let (contract, _) = contracts.get(&cell.operation)?;
    let pattern = Pattern::of(settings);
    Some(Side { pattern, contract, counts, rank: settings.rank, in_place: cell.in_place })
}

/// An operation's contract on this rank, and its bus factor, of any of its schedules.
fn contract(operation: &str, world: u32, root: u32, rank: u32) -> Option<(Contract, f64)> {
    let entries = library::entries().filter(|entry| entry.collective == operation);
    let mut proved = entries.filter_map(|entry| {
        let candidate =
            Candidate { operation: entry.collective, schedule: entry.schedule, params: Vec::new() };
        match candidate.prove(world, root) {
            Outcome::Right(proved) => Some(proved),
            _ => None,
        }
    });
    let proved = proved.next()?;
    let bounds = &proved.properties.bounds;
    let factor = Fraction::to_f64(bounds.sent_max.max(bounds.received_max));
    Some((proved.plan.contract.slice(rank), factor))
}
