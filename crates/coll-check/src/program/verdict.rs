//! Compares what every rank ends with to what the contract asks for.

use super::leaf_sets::LeafSet;
use super::memory::Cell;
use super::run::Outcome;
use super::values::{NOTHING, NodeId, POISON, Trees};
use coll_contract::{Contract, Ensure, Value};
use coll_ir::{Place, Program};

/// What the end state is worth.
pub(super) struct Verdict {
    /// The first violation of each kind, by rank, and how many there are.
    pub(super) violations: Vec<Violation>,
    /// The first rank that may leave too early with the rank it does not wait for, and how many such pairs there are.
    pub(super) early: Option<(u32, u32, u64)>,
    /// Every reduction keeps the contract's order.
    pub(super) ordered: bool,
    /// Every rank that ends with one value has made it by one reduction tree.
    pub(super) same_tree: bool,
    /// All pieces of a block have made their value by one reduction tree.
    pub(super) same_tree_within: bool,
}

/// The first place of a kind that breaks the contract.
#[derive(Clone, Copy)]
pub(super) struct Violation {
    pub(super) fault: Fault,
    /// Index into [`Contract::ensures`].
    pub(super) ensure: u32,
    /// The pieces that hold the wrong value.
    pub(super) low: u32,
    pub(super) high: u32,
    /// The value.
    pub(super) found: NodeId,
    /// Pieces with such a fault.
    pub(super) count: u64,
}

/// How a value can be wrong, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// There is nothing.
    Nothing,
    /// A leaf is in it twice.
    Twice,
    /// A leaf is in it that does not belong.
    Foreign,
    /// A leaf is not in it.
    Missing,
    /// One leaf is asked for, and this is not it.
    Other,
}

/// Judges the end state of a run.
pub(super) fn judge(program: &Program, outcome: &mut Outcome) -> Verdict {
    let contract = &program.contract;
    let wanted = wanted(contract, outcome);
    let mut judge = Judge {
        program,
        wanted,
        verdict: Verdict {
            violations: Vec::new(),
            early: None,
            ordered: true,
            same_tree: true,
            same_tree_within: true,
        },
        trees: None,
        first_nodes: vec![Vec::new(); contract.values.len()],
    };
    let mut cells: Vec<Cell> = Vec::new();
    for (index, ensure) in (0..).zip(&contract.ensures) {
        cells.clear();
        let place = Place { rank: ensure.rank, buffer: ensure.buffer, block: ensure.block };
        outcome.memory.read(place, 0, program.cuts.pieces(), &mut cells);
        judge.ensure(outcome, index, *ensure, &cells);
    }
    judge.verdict.early = early(contract, outcome);
    judge.verdict.violations.sort_by_key(|violation| violation.fault);
    judge.verdict
}

/// A value of the contract, ready to be compared.
enum Wanted {
    /// This leaf.
    Leaf(NodeId),
    /// These leaves in this order. `ascending` if the order is that of the ranks.
    Leaves { set: LeafSet, order: Vec<u32>, ascending: bool },
}

fn wanted(contract: &Contract, outcome: &mut Outcome) -> Vec<Wanted> {
    let values = &mut outcome.values;
    let each = contract.values.iter().map(|value| match value.leaves() {
        [leaf] => Wanted::Leaf(values.leaf(*leaf)),
        leaves => {
            let order: Vec<u32> = leaves.iter().map(|&leaf| values.leaves.number(leaf)).collect();
            let ascending = order.is_sorted_by_key(|&number| values.leaves.order(number));
            let set = values.sets.of(&order);
            Wanted::Leaves { set, order: if ascending { Vec::new() } else { order }, ascending }
        }
    });
    each.collect()
}

struct Judge<'p> {
    program: &'p Program,
    wanted: Vec<Wanted>,
    verdict: Verdict,
    trees: Option<Trees>,
    /// For each reduction of the contract, and each piece, what the first rank that wants it has: one value stands for
    /// all pieces. Empty until it is known.
    first_nodes: Vec<Vec<NodeId>>,
}

impl Judge<'_> {
    fn ensure(&mut self, outcome: &mut Outcome, index: u32, ensure: Ensure, cells: &[Cell]) {
        let pieces = self.program.cuts.pieces();
        let is_reduction = matches!(self.program.contract.values[ensure.value as usize], Value::Reduce(_));
        if is_reduction {
            self.compare_trees(outcome, ensure, cells);
            self.compare_pieces(outcome, cells);
        }
        for (piece, cell) in (0..).zip(cells) {
            let Some(fault) = self.fault(outcome, ensure, cell.value) else { continue };
            let (low, high) = if cells.len() == 1 { (0, pieces) } else { (piece, piece + 1) };
            match self.verdict.violations.iter_mut().find(|violation| violation.fault == fault) {
                Some(violation) => violation.count += 1,
                None => self.verdict.violations.push(Violation {
                    fault,
                    ensure: index,
                    low,
                    high,
                    found: cell.value,
                    count: 1,
                }),
            }
        }
    }

    /// What is wrong with a value, if anything. What was made of nothing has been told of already.
    fn fault(&mut self, outcome: &mut Outcome, ensure: Ensure, found: NodeId) -> Option<Fault> {
        match &self.wanted[ensure.value as usize] {
            _ if found == POISON => None,
            _ if found == NOTHING => Some(Fault::Nothing),
            Wanted::Leaf(leaf) => (found != *leaf).then_some(Fault::Other),
            Wanted::Leaves { .. } if outcome.values.is_twice(found) => Some(Fault::Twice),
            Wanted::Leaves { set, order, ascending } => {
                let found_set = outcome.values.set(found);
                if found_set == *set {
                    self.verdict.ordered &= if *ascending {
                        outcome.values.is_in_order(found)
                    } else {
                        outcome.values.sequence(found, order.len()) == *order
                    };
                    return None;
                }
                let more = outcome.values.sets.union(found_set, *set).0 != *set;
                Some(if more { Fault::Foreign } else { Fault::Missing })
            }
        }
    }

    fn compare_pieces(&mut self, outcome: &Outcome, cells: &[Cell]) {
        let Some((first, rest)) = cells.split_first() else { return };
        for cell in rest {
            if cell.value != first.value && self.verdict.same_tree_within {
                let trees = self.trees.get_or_insert_with(|| outcome.values.trees());
                self.verdict.same_tree_within = trees.of(cell.value) == trees.of(first.value);
            }
        }
    }

    fn compare_trees(&mut self, outcome: &Outcome, ensure: Ensure, cells: &[Cell]) {
        let first = &mut self.first_nodes[ensure.value as usize];
        if first.is_empty() {
            return first.extend(cells.iter().map(|cell| cell.value));
        }
        for at in 0..first.len().max(cells.len()) {
            let (a, b) = (first[at.min(first.len() - 1)], cells[at.min(cells.len() - 1)].value);
            if a != b && self.verdict.same_tree {
                let trees = self.trees.get_or_insert_with(|| outcome.values.trees());
                self.verdict.same_tree = trees.of(a) == trees.of(b);
            }
        }
    }
}

fn early(contract: &Contract, outcome: &Outcome) -> Option<(u32, u32, u64)> {
    let unknown = |&&(rank, other): &&(u32, u32)| {
        !outcome.token_sets.contains(outcome.tokens[rank as usize].ranks, other)
    };
    let mut pairs = contract.after.iter().filter(unknown);
    let &(rank, other) = pairs.next()?;
    Some((rank, other, 1 + pairs.count() as u64))
}
