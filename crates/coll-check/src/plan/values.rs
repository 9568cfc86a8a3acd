//! What every piece holds, in one order of running: the exact contributions.
//!
//! A value is a leaf (what a block held at the start) or the sum of two values, kept once each and numbered, so that
//! copying is copying a number. A sum is unfolded only where a block ends with it, and then may name each leaf of the
//! promised value once and no other. Two things more are found out there: whether it names them in the promised order,
//! and whether all ranks that end with one value have the same sum, but for the sides of operands.
//!
//! One run serves both ways of calling. Out of place, `.in` holds the leaf and `.out` nothing at the start; in place
//! both are one memory. Every block has one writable store, so one cell for each piece is enough: a read of `.in`
//! must find the cell unwritten, or holding just the leaf; any other read must find it written.

use super::codes::{OVERWRITTEN, READS_NOTHING};
use super::likeness::Likeness;
use super::pairing::Messages;
use super::sums::{SPOILT, Sums, Symbol};
use super::verdict::{Judge, wrong_end};
use super::whole::{NONE, OpKey, TOLD_MAX, Whole};
use coll_base::Diagnostic;
use coll_contract::Leaf;
use coll_plan::{Action, Claims, Region, Run, Shape, Store};
use std::collections::HashMap;

/// Runs the plan in `order` on symbols and compares what is there at the end with what was promised. Says besides what
/// the plan may claim, if nothing is wrong.
pub(super) fn check(whole: &Whole, messages: &Messages, order: &[OpKey]) -> (Vec<Diagnostic>, Claims) {
    let mut run = SymbolRun::new(whole);
    let mut under_way: HashMap<u32, Vec<Symbol>> = HashMap::new();
    let mut spare: Vec<Vec<Symbol>> = Vec::new();
    let (mut sources, mut operands) = (Vec::new(), Vec::new());
    for &key in order {
        let op = whole.op(key);
        sources.clear();
        operands.clear();
        match op.action {
            Action::Send { .. } => {
                let mut message = spare.pop().unwrap_or_default();
                message.clear();
                run.read(key, op.source, &mut message);
                under_way.insert(messages.at(key) as u32, message);
                continue;
            }
            Action::Recv { .. } | Action::RecvReduce { .. } => {
                let message = under_way.remove(&(messages.at(key) as u32)).unwrap_or_default();
                sources.extend_from_slice(&message);
                spare.push(message);
            }
            Action::Copy | Action::Reduce { .. } => run.read(key, op.source, &mut sources),
        }
        if !op.operand.is_empty() {
            run.read(key, op.operand, &mut operands);
            for (symbol, &operand) in sources.iter_mut().zip(&operands) {
                *symbol = match op.action {
                    Action::RecvReduce { left: true, .. } | Action::Reduce { left: true } => {
                        run.sums.sum(key, *symbol, operand)
                    }
                    _ => run.sums.sum(key, operand, *symbol),
                };
            }
        }
        run.write(key, op.target, &sources);
    }
    let claims = run.compare();
    (run.told, claims)
}

/// The symbolic memory of all ranks.
struct SymbolRun<'a> {
    whole: &'a Whole<'a>,
    sums: Sums,
    /// For each rank, block and piece.
    cells: Vec<Symbol>,
    writer: Vec<OpKey>,
    /// For each rank, where its slots start in `held` and `slot_cells`.
    slots: Vec<Vec<SlotCells>>,
    told: Vec<Diagnostic>,
}

/// What a slot holds: the shape last written, and its pieces.
#[derive(Default)]
struct SlotCells {
    shape: Option<Shape>,
    cells: Vec<Symbol>,
}

impl<'a> SymbolRun<'a> {
    fn new(whole: &'a Whole<'a>) -> SymbolRun<'a> {
        let leaves = whole.width as usize * whole.plan.ranks.len();
        let cells = leaves * whole.plan.pieces() as usize;
        let slots =
            whole.plan.ranks.iter().map(|part| part.slots.iter().map(|_| SlotCells::default()).collect());
        SymbolRun {
            whole,
            sums: Sums::new(leaves as u32),
            cells: vec![NONE; cells],
            writer: vec![NONE; cells],
            slots: slots.collect(),
            told: Vec::new(),
        }
    }

    fn tell(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if self.told.len() < TOLD_MAX {
            self.told.push(diagnostic());
        }
    }

    /// The cells of a block's pieces from the first on.
    fn at(&self, rank: u32, buffer: u32, region: &Region) -> usize {
        let block =
            rank as usize * self.whole.width as usize + self.whole.block(buffer, region.block) as usize;
        block * self.whole.plan.pieces() as usize + region.low as usize
    }

    fn read(&mut self, key: OpKey, run: Run, into: &mut Vec<Symbol>) {
        let whole = self.whole;
        let rank = whole.rank_of(key);
        for region in whole.part(key).regions(run) {
            match region.store {
                Store::In(buffer) => self.read_given(key, rank, buffer, region, into),
                Store::Out(buffer) | Store::Tmp(buffer) => {
                    let at = self.at(rank, buffer, region);
                    let from = into.len();
                    into.extend_from_slice(&self.cells[at..at + (region.high - region.low) as usize]);
                    self.found(key, region, &mut into[from..]);
                }
                Store::Slot => self.read_slot(key, rank, region, into),
            }
        }
    }

    fn read_given(&mut self, key: OpKey, rank: u32, buffer: u32, region: &Region, into: &mut Vec<Symbol>) {
        let at = self.at(rank, buffer, region);
        let leaf = self.whole.leaf(Leaf { rank, buffer, block: region.block });
        for cell in at..at + (region.high - region.low) as usize {
            let in_place = self.cells[cell];
            if in_place != NONE && in_place != leaf && in_place != SPOILT {
                let (whole, writer) = (self.whole, self.writer[cell]);
                self.tell(|| {
                    let words = whole.region_words(rank, region);
                    Diagnostic::unplaced(OVERWRITTEN, format!("{} reads {words} after it is overwritten", whole.name(key)))
                        .expected(format!("{words} as it was given, also when the plan runs in place"))
                        .found("in place, `.in`, `.out` and `.tmp` of a block are one memory, and it was written before")
                        .note(format!("written by {}", whole.words(writer)))
                        .note(format!("read by {}", whole.words(key)))
                        .help("read it before it is written, or write the new value into a slot first")
                });
                into.resize(into.len() + (at + (region.high - region.low) as usize - cell), SPOILT);
                return;
            }
            into.push(leaf);
        }
    }

    fn read_slot(&mut self, key: OpKey, rank: u32, region: &Region, into: &mut Vec<Symbol>) {
        let (from, shape) = (into.len(), shape_of(region));
        let slot = &self.slots[rank as usize][region.block as usize];
        match slot.shape {
            Some(held) if held == shape => into.extend_from_slice(&slot.cells),
            held => {
                let whole = self.whole;
                into.resize(from + (region.high - region.low) as usize, SPOILT);
                self.tell(|| {
                    let found = match held {
                        None => "nothing".to_string(),
                        Some(held) => format!("c{}[{}..{}]", held.class, held.low, held.high),
                    };
                    reads_nothing(whole, key, region).found(format!("slot {} holds {found}", region.block))
                });
            }
        }
        self.found(key, region, &mut into[from..]);
    }

    /// What was read must be something.
    fn found(&mut self, key: OpKey, region: &Region, symbols: &mut [Symbol]) {
        let Some(at) = symbols.iter().position(|&symbol| symbol == NONE) else { return };
        let whole = self.whole;
        symbols.iter_mut().filter(|symbol| **symbol == NONE).for_each(|symbol| *symbol = SPOILT);
        self.tell(|| {
            let piece = region.low as usize + at;
            reads_nothing(whole, key, region).found(format!("nothing was written to piece {piece} before"))
        });
    }

    fn write(&mut self, key: OpKey, run: Run, symbols: &[Symbol]) {
        let rank = self.whole.rank_of(key);
        let mut rest = symbols;
        for region in self.whole.part(key).regions(run) {
            let (now, after) = rest.split_at((region.high - region.low) as usize);
            rest = after;
            match region.store {
                Store::Slot => {
                    let slot = &mut self.slots[rank as usize][region.block as usize];
                    slot.shape = Some(shape_of(region));
                    slot.cells.clear();
                    slot.cells.extend_from_slice(now);
                }
                Store::In(buffer) | Store::Out(buffer) | Store::Tmp(buffer) => {
                    let at = self.at(rank, buffer, region);
                    self.cells[at..at + now.len()].copy_from_slice(now);
                    self.writer[at..at + now.len()].fill(key);
                }
            }
        }
    }

    /// The promised values against what is there. Says what may be claimed.
    fn compare(&mut self) -> Claims {
        let whole = self.whole;
        let pieces = whole.plan.pieces();
        let mut judge = Judge::new(self.sums.leaf_count());
        let mut likeness = Likeness::new(whole.plan.contract.values.len());
        for ensure in &whole.plan.contract.ensures {
            let region = Region {
                store: Store::Out(ensure.buffer),
                block: ensure.block,
                low: 0,
                high: pieces,
                class: 0,
            };
            let at = self.at(ensure.rank, ensure.buffer, &region);
            let mut low = 0;
            while low < pieces {
                let symbol = self.cells[at + low as usize];
                let run =
                    self.cells[at + low as usize..at + pieces as usize].iter().take_while(|&&s| s == symbol);
                let high = low + run.count() as u32;
                if symbol != SPOILT && !judge.is_right(whole, &self.sums, symbol, ensure.value) {
                    let writer = self.writer[at + low as usize];
                    let told = wrong_end(whole, &self.sums, ensure, (low, high), symbol, writer);
                    self.tell(|| told);
                }
                if self.told.len() >= TOLD_MAX {
                    return Claims::default();
                }
                low = high;
            }
            if whole.plan.contract.values[ensure.value as usize].is_reduction() {
                likeness.add(&self.sums, ensure.value, &self.cells[at..at + pieces as usize]);
            }
        }
        Claims { ordered: judge.ordered(), same_reduction_tree: likeness.holds() }
    }
}

fn shape_of(region: &Region) -> Shape {
    Shape { class: region.class, low: region.low, high: region.high }
}

fn reads_nothing(whole: &Whole, key: OpKey, region: &Region) -> Diagnostic {
    let words = whole.region_words(whole.rank_of(key), region);
    Diagnostic::unplaced(READS_NOTHING, format!("{} reads {words}, which holds nothing", whole.name(key)))
        .expected(format!("a write of {words} before"))
        .note(format!("read by {}", whole.words(key)))
        .help("write it first, or read the block's given value from `.in`")
}
