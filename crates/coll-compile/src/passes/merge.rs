//! Puts what one rank sends to another in one step into one message, where that costs no time: fewer messages, the
//! same bytes.
//!
//! It does cost time where chunks are a pipeline: a chain of ranks passes chunk 1 on while chunk 2 arrives, and
//! merged it could not. So the whole program is weighed both ways: the longest path through its messages, each as
//! long as its bytes, against the bytes of the busiest rank, which no merging changes. If the larger of the two
//! does not grow by more than a hundredth, everything is merged, otherwise nothing.
//!
//! Within a message, runs of adjacent pieces that go from one block to one other become one transfer. Pieces that
//! several transfers of a step reduce into keep the order of those transfers: where merging would turn it round,
//! nothing that goes to that rank in that step is merged.

use super::{Grouped, renumber, steps};
use coll_ir::{Cells, Dependence, Dependences, Kind, Program, Transfer};
use std::ops::Range;

/// What was decided, and why.
pub(crate) struct Merging {
    /// Messages before.
    pub(crate) before: u64,
    /// Messages after.
    pub(crate) after: u64,
    /// Time in blocks, `(unmerged, merged)`: none if there was nothing to weigh.
    pub(crate) weighed: Option<(f64, f64)>,
}

/// How much longer merged may take.
const SLACK: f64 = 1.01;

pub(crate) fn run(grouped: &mut Grouped<'_>, forced: Option<bool>) -> Merging {
    let program = &*grouped.program;
    let messages = program.transfers.iter().filter(|t| is_message(t)).count() as u64;
    let mut merging = Merging { before: messages, after: messages, weighed: None };
    if forced == Some(false) {
        return merging;
    }
    let plan = Groups::of(program);
    let merged =
        program.transfers.iter().zip(0..).filter(|&(t, id)| is_message(t) && plan.message[id] != id as u32);
    let saved = merged.count() as u64;
    if saved == 0 {
        return merging;
    }
    if forced.is_none() {
        let dependences = Dependences::of(program);
        let busiest = busiest(program);
        let unmerged = longest(program, &dependences, &grouped.message).max(busiest);
        let merged = longest(program, &dependences, &plan.message).max(busiest);
        merging.weighed = Some((unmerged, merged));
        if merged > unmerged * SLACK {
            return merging;
        }
    }
    merging.after -= saved;
    let Groups { message, shared, .. } = plan;
    grouped.message = message;
    join_adjacent(grouped, &shared);
    merging
}

/// Merges one rank's part of a program, where it is known that merging pays and that no two transfers of a step
/// write one piece of any rank.
pub(crate) fn run_of_rank(grouped: &mut Grouped<'_>) {
    let program = &*grouped.program;
    let transfers = &program.transfers;
    let mut message: Vec<u32> = (0..transfers.len() as u32).collect();
    let mut order = Vec::new();
    for step in steps(transfers) {
        group(transfers, step, &mut message, &mut order);
    }
    let shared = vec![false; transfers.len()];
    grouped.message = message;
    join_adjacent(grouped, &shared);
}

fn is_message(transfer: &Transfer) -> bool {
    !transfer.is_local() && transfer.kind != Kind::Drop
}

/// The grouping if everything is merged.
struct Groups {
    message: Vec<u32>,
    /// Transfers whose target some other transfer of the step writes too.
    shared: Vec<bool>,
    cells: Cells,
    /// For each cell, the transfer that wrote it last.
    writer: Vec<u32>,
}

impl Groups {
    fn of(program: &Program) -> Groups {
        let cells = Cells::of(program);
        let transfers = &program.transfers;
        let mut groups = Groups {
            message: (0..transfers.len() as u32).collect(),
            shared: vec![false; transfers.len()],
            writer: vec![u32::MAX; cells.count()],
            cells,
        };
        let mut order = Vec::new();
        for step in steps(transfers) {
            group(transfers, step.clone(), &mut groups.message, &mut order);
            groups.keep_order(transfers, step);
        }
        groups
    }

    /// Takes back what would turn the order of reductions into one piece round.
    fn keep_order(&mut self, transfers: &[Transfer], step: Range<usize>) {
        let mut turned = Vec::new();
        for id in step.clone().filter(|&id| transfers[id].carries_data()) {
            for cell in self.cells.target(&transfers[id]) {
                let before = self.writer[cell] as usize;
                if step.contains(&before) {
                    self.shared[id] = true;
                    self.shared[before] = true;
                    if self.message[before] >= self.message[id] {
                        turned.push(transfers[id].target.rank);
                    }
                }
                self.writer[cell] = id as u32;
            }
        }
        turned.sort_unstable();
        for id in step.filter(|&id| turned.binary_search(&transfers[id].target.rank).is_ok()) {
            self.message[id] = id as u32;
        }
    }
}

/// One message for each pair of ranks and kind.
fn group(transfers: &[Transfer], step: Range<usize>, message: &mut [u32], order: &mut Vec<u32>) {
    order.clear();
    order.extend(step.filter(|&id| is_message(&transfers[id])).map(|id| id as u32));
    let key = |id: &u32| {
        let transfer = &transfers[*id as usize];
        (transfer.source.rank, transfer.target.rank, transfer.kind as u8)
    };
    order.sort_by_key(key);
    for together in order.chunk_by(|a, b| key(a) == key(b)) {
        for &id in together {
            message[id as usize] = together[0];
        }
    }
}

/// Bytes of the busiest sender or receiver, in blocks.
fn busiest(program: &Program) -> f64 {
    let mut sent = vec![0.0f64; program.ranks() as usize];
    let mut received = sent.clone();
    for transfer in program.transfers.iter().filter(|t| is_message(t)) {
        let length = length(program, transfer);
        sent[transfer.source.rank as usize] += length;
        received[transfer.target.rank as usize] += length;
    }
    sent.into_iter().chain(received).fold(0.0, f64::max)
}

/// The longest path through the messages: one starts when all that it reads is there, and takes as long as its bytes.
fn longest(program: &Program, dependences: &Dependences, message: &[u32]) -> f64 {
    let transfers = &program.transfers;
    let mut start = vec![0.0f64; transfers.len()];
    let mut weight = vec![0.0f64; transfers.len()];
    let mut ready = vec![0.0f64; transfers.len()];
    for step in steps(transfers) {
        for id in step.clone() {
            let reads = dependences.before(id as u32).filter(|&(_, why)| why == Dependence::Reads);
            let from = reads.map(|(before, _)| ready[before as usize]).fold(0.0, f64::max);
            let message = message[id] as usize;
            start[message] = from.max(start[message]);
            if is_message(&transfers[id]) {
                weight[message] += length(program, &transfers[id]);
            }
        }
        for id in step {
            let builds = dependences.before(id as u32).filter(|&(_, why)| why == Dependence::Builds);
            let onto = builds.map(|(before, _)| ready[before as usize]).fold(0.0, f64::max);
            let message = message[id] as usize;
            ready[id] = onto.max(start[message] + weight[message]);
        }
    }
    ready.into_iter().fold(0.0, f64::max)
}

fn length(program: &Program, transfer: &Transfer) -> f64 {
    program.cuts.0[transfer.high as usize].to_f64() - program.cuts.0[transfer.low as usize].to_f64()
}

/// Makes one transfer of those that move adjacent pieces in one message.
fn join_adjacent(grouped: &mut Grouped<'_>, shared: &[bool]) {
    let program = &*grouped.program;
    let transfers = &program.transfers;
    let slot = |transfer: &Transfer| {
        program.is_scratch(transfer.source.buffer) || program.is_scratch(transfer.target.buffer)
    };
    let mut open = vec![usize::MAX; transfers.len()];
    let mut new: Vec<Transfer> = Vec::with_capacity(transfers.len());
    let mut message = Vec::with_capacity(transfers.len());
    for (id, transfer) in transfers.iter().enumerate() {
        let group = grouped.message[id] as usize;
        let joinable = transfer.carries_data() && !shared[id] && !slot(transfer) && is_message(transfer);
        if joinable && let Some(last) = new.get_mut(open[group]) {
            let same =
                (last.source, last.target, last.class) == (transfer.source, transfer.target, transfer.class);
            if same && last.high == transfer.low {
                last.high = transfer.high;
                continue;
            }
        }
        if transfer.kind == Kind::Signal && open[group] != usize::MAX {
            continue;
        }
        open[group] = if joinable || transfer.kind == Kind::Signal { new.len() } else { usize::MAX };
        new.push(*transfer);
        message.push(grouped.message[id]);
    }
    if new.len() < transfers.len() {
        grouped.program.to_mut().transfers = new;
        grouped.message = message;
    }
    renumber(&mut grouped.message);
}
