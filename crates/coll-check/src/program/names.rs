//! Words for places, values and transfers, as a person who wrote the schedule would say them.

use super::values::{NOTHING, NodeId, Values};
use coll_base::{Code, Diagnostic, Fraction, Label};
use coll_contract::Leaf;
use coll_ir::{Kind, OriginId, Place, Program, Transfer};

/// Pieces of a place, without its rank: `data[1]`, `data[3, 0..2]`, `data 1/4..1/2`, `tmp[0, 2]`.
pub(super) fn place(program: &Program, place: Place, low: u32, high: u32) -> String {
    let name = program.buffer_name(place.buffer);
    let block = if program.is_scratch(place.buffer) {
        let scratch = &program.scratch[place.buffer as usize - program.contract.buffers.len()];
        return format!("{name}{}", brackets(&slot_index(place.block, &scratch.extents)));
    } else if program.block_count(place.buffer) == 1 {
        None
    } else {
        Some(place.block.to_string())
    };
    let pieces = program.cuts.pieces();
    if (low, high) == (0, pieces) {
        return format!("{name}{}", brackets(&Vec::from_iter(block)));
    }
    let cuts = &program.cuts.0;
    let uniform = (0..).zip(cuts).all(|(i, &cut)| cut == Fraction::new(i, pieces as u64));
    if !uniform {
        let block = brackets(&Vec::from_iter(block));
        return format!("{name}{block} {}..{}", cuts[low as usize], cuts[high as usize]);
    }
    let piece = if high == low + 1 { low.to_string() } else { format!("{low}..{high}") };
    format!("{name}{}", brackets(&block.into_iter().chain([piece]).collect::<Vec<_>>()))
}

fn slot_index(slot: u32, extents: &[u32]) -> Vec<String> {
    let mut rest = slot;
    let mut index = Vec::new();
    for &extent in extents.iter().rev() {
        index.push((rest % extent.max(1)).to_string());
        rest /= extent.max(1);
    }
    index.reverse();
    index
}

fn brackets(index: &[String]) -> String {
    if index.is_empty() { String::new() } else { format!("[{}]", index.join(", ")) }
}

/// How leaves are written in one message: `x3` where all are of one block, or else `3.data[1]`.
pub(super) struct LeafNames<'p> {
    program: &'p Program,
    /// The block that `x` stands for, and its pieces.
    block: Option<(u32, u32)>,
    low: u32,
    high: u32,
}

impl<'p> LeafNames<'p> {
    /// Names for these leaves, of which pieces `low..high` are spoken of.
    pub(super) fn new(program: &'p Program, leaves: &[Leaf], low: u32, high: u32) -> LeafNames<'p> {
        let block = match leaves {
            [first, others @ ..] if !others.is_empty() => others
                .iter()
                .all(|leaf| (leaf.buffer, leaf.block) == (first.buffer, first.block))
                .then_some((first.buffer, first.block)),
            _ => None,
        };
        LeafNames { program, block, low, high }
    }

    /// One leaf.
    pub(super) fn leaf(&self, leaf: Leaf) -> String {
        match self.block {
            Some(_) => format!("x{}", leaf.rank),
            None => {
                let at = Place { rank: leaf.rank, buffer: leaf.buffer, block: leaf.block };
                format!("{}.{}", leaf.rank, place(self.program, at, self.low, self.high))
            }
        }
    }

    /// A value as a sum of leaves by rank, shortened in the middle.
    pub(super) fn sum(&self, values: &Values, node: NodeId) -> String {
        if node == NOTHING {
            return "nothing".into();
        }
        let terms: Vec<(u32, u64)> = values.multiplicities(node).into_iter().collect();
        let count = terms.iter().fold(0u64, |sum, &(_, times)| sum.saturating_add(times));
        let term = |&(number, times): &(u32, u64)| {
            let name = self.leaf(values.leaves.leaf(number));
            match times {
                1 => name,
                2 => format!("{name} + {name}"),
                _ => format!("{times}·{name}"),
            }
        };
        shortened(&terms.iter().map(term).collect::<Vec<_>>(), count)
    }

    /// What `x` means, if it is used.
    pub(super) fn legend(&self) -> Option<String> {
        let (buffer, block) = self.block?;
        let at = place(self.program, Place { rank: 0, buffer, block }, self.low, self.high);
        Some(format!("xR is what {at} of rank R holds at the start"))
    }
}

/// `step 4 (s = 3, r = 0)`
pub(super) fn step(program: &Program, transfer: &Transfer) -> String {
    let bindings = program.origins.describe(transfer.origin);
    let step = transfer.step;
    if bindings.is_empty() { format!("step {step}") } else { format!("step {step} ({bindings})") }
}

/// Terms with plus signs, shortened in the middle; there are `count`, as some terms are several.
pub(super) fn shortened(terms: &[String], count: u64) -> String {
    match terms {
        [first, second, .., last] if terms.len() > 8 => {
            format!("{first} + {second} + … + {last} ({count} terms)")
        }
        _ => terms.join(" + "),
    }
}

/// `this send, in step 4 (s = 3), from rank 0 to rank 1`
pub(super) fn this(program: &Program, transfer: &Transfer) -> String {
    let (verb, step) = (verb(transfer), step(program, transfer));
    let (from, to) = (transfer.source.rank, transfer.target.rank);
    match transfer.kind {
        Kind::Drop => format!("this call's contract, which says nothing of it, after {step}"),
        _ if from == to => format!("this {verb}, in {step}, on rank {to}"),
        _ => format!("this {verb}, in {step}, from rank {from} to rank {to}"),
    }
}

/// A message about a statement, with the calls that led to it.
pub(super) fn at(program: &Program, code: Code, origin: OriginId, message: String) -> Diagnostic {
    Diagnostic::new(code, program.origins.span(origin), message).called_by(program.origins.calls_of(origin))
}

/// True for a transfer of the library, which its caller cannot mend.
pub(super) fn is_library(program: &Program, transfer: &Transfer) -> bool {
    program.origins.span(transfer.origin).file != program.origins.schedule.file
}

/// Adds what a transfer of another statement did. If it is the library's, the own file's call that led to it is pointed
/// at as well.
pub(super) fn also(program: &Program, told: Diagnostic, transfer: &Transfer, text: String) -> Diagnostic {
    let span = program.origins.span(transfer.origin);
    let own =
        |calls: &[Label]| calls.iter().find(|call| call.span.file == program.origins.schedule.file).cloned();
    let call = own(&program.origins.calls_of(transfer.origin));
    let same = call == own(&told.calls);
    let told = told.also(span, text);
    match call {
        Some(call) if !same && is_library(program, transfer) => {
            let with = if call.text.is_empty() { String::new() } else { format!(", with {}", call.text) };
            told.also(call.span, format!("step {} is of this call{with}", transfer.step))
        }
        _ => told,
    }
}

/// A message about the end of the schedule: at its last step, if it has one.
pub(super) fn at_the_end(program: &Program, code: Code, message: String) -> Diagnostic {
    match program.steps.last() {
        Some(step) => at(program, code, step.origin, message).label("the last step is this"),
        None => Diagnostic::new(code, program.origins.schedule, message)
            .label(format!("with n = {} it has no steps", program.ranks())),
    }
}

/// What a transfer is called: `send`, `copy`, `reduce` or `signal`.
pub(super) fn verb(transfer: &Transfer) -> &'static str {
    match transfer.kind {
        Kind::Signal => "signal",
        Kind::Drop => "call",
        _ if !transfer.is_local() => "send",
        Kind::Move => "copy",
        Kind::Reduce | Kind::ReduceLeft => "reduce",
    }
}

/// `rank 3`, `ranks 0, 1 and 3`, `ranks 0, 1, 2, 3 and 9 others`
pub(super) fn ranks(ranks: &[u32]) -> String {
    let list = |ranks: &[u32]| ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match ranks {
        [] => "no rank".into(),
        [rank] => format!("rank {rank}"),
        [first @ .., last] if ranks.len() <= 6 => format!("ranks {} and {last}", list(first)),
        _ => format!("ranks {} and {} others", list(&ranks[..4]), ranks.len() - 4),
    }
}

/// ` and 11 other places`, or nothing for 0.
pub(super) fn others(count: u64, one: &str, many: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("the same is true of 1 other {one}")),
        _ => Some(format!("the same is true of {count} other {many}")),
    }
}
