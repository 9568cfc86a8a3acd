//! What can be done only when all is known: pieces are numbered, drops that cannot matter go, and two writes to one
//! piece in one step are found.

use super::Elaborator;
use super::cutter::{Cut, Cutter};
use crate::codes;
use crate::module::{Instantiated, Refusal, values};
use crate::resolved::{GLOBAL_ROOT, Schedule};
use coll_base::{Diagnostic, Fraction, Span};
use coll_contract::Contract;
use coll_ir::{Cuts, Kind, Place, Program, Transfer};
use std::collections::HashMap;

/// The most pieces on all ranks for which drops are looked into; beyond, all are kept.
const PIECES_MAX: u64 = 1 << 31;

impl Elaborator<'_> {
    pub(super) fn finish(
        mut self,
        schedule: &Schedule,
        rooted: bool,
        globals: Vec<i64>,
    ) -> Result<Instantiated, Refusal> {
        let only = self.only.as_ref().map(|only| only.rank);
        if self.transfers.iter().any(|transfer| transfer.kind == Kind::Drop) && self.sink.is_empty() {
            let numbers = Numbers::of(&self.transfers, &self.cutter);
            keep_drops_that_matter(
                &mut self.transfers,
                &self.contract,
                &self.first_blocks,
                self.width,
                &numbers,
            );
        }
        if only.is_none() {
            self.leave_out_empty_steps();
        }
        let numbers = match only {
            None => Numbers::of(&self.transfers, &self.cutter),
            Some(_) => Numbers::all(&self.cutter),
        };
        for transfer in self.transfers.iter_mut().filter(|transfer| transfer.kind != Kind::Signal) {
            (transfer.low, transfer.high) = (numbers.piece(transfer.low), numbers.piece(transfer.high));
        }
        for (scratch, &parts) in self.scratch.iter_mut().zip(&self.scratch_parts) {
            if parts > 1 {
                scratch.slots *= parts;
                scratch.extents.insert(0, parts);
            }
        }
        self.refuse_two_writes(&numbers.cuts);
        if !self.sink.is_empty() {
            return Err(Refusal::Errors(self.sink.into_diagnostics()));
        }
        let program = Program {
            schedule: schedule.name.clone(),
            params: values(schedule, &globals),
            root: globals[GLOBAL_ROOT] as u32,
            rooted,
            contract: match only {
                Some(rank) => self.contract.slice(rank),
                None => self.contract,
            },
            scratch: self.scratch,
            cuts: numbers.cuts,
            steps: self.steps,
            transfers: self.transfers,
            stages: self.stages,
            origins: self.trace.into_origins(),
            tune: self.tune,
        };
        debug_assert!(only.is_some() || coll_ir::verify(&program) == Ok(()));
        Ok(Instantiated { program, warnings: self.warnings.into_diagnostics() })
    }

    /// Steps whose transfers are all gone go too, and stages without steps.
    fn leave_out_empty_steps(&mut self) {
        let mut full = vec![false; self.steps.len()];
        self.transfers.iter().for_each(|transfer| full[transfer.step as usize] = true);
        let mut numbers = Vec::with_capacity(full.len() + 1);
        let mut next = 0;
        for &full in &full {
            numbers.push(next);
            next += u32::from(full);
        }
        numbers.push(next);
        let mut kept = full.iter();
        self.steps.retain(|_| *kept.next().expect("invariant: one entry for each step"));
        for transfer in &mut self.transfers {
            transfer.step = numbers[transfer.step as usize];
        }
        for stage in &mut self.stages {
            (stage.start, stage.end) = (numbers[stage.start as usize], numbers[stage.end as usize]);
        }
        self.stages.retain(|stage| stage.start < stage.end);
    }

    /// `E0401` for each plain write beside another write to one piece in one step.
    fn refuse_two_writes(&mut self, cuts: &Cuts) {
        let buffers = self.contract.buffers.len();
        let mut writes: Vec<(Place, u32, u32, usize)> = Vec::new();
        // Statements that were told of, each with the place under which it was.
        let mut told: HashMap<Span, Span> = HashMap::new();
        let mut start = 0;
        while start < self.transfers.len() {
            let step = self.transfers[start].step;
            writes.clear();
            let mut end = start;
            while let Some(transfer) = self.transfers.get(end).filter(|transfer| transfer.step == step) {
                if transfer.carries_data() {
                    let target = transfer.target;
                    match (target.buffer as usize).checked_sub(buffers) {
                        None => writes.push((target, transfer.low, transfer.high, end)),
                        // A slot is written whole: its first part stands for all.
                        Some(scratch)
                            if target.block < self.scratch[scratch].slots / self.scratch_parts[scratch] =>
                        {
                            writes.push((target, 0, u32::MAX, end));
                        }
                        Some(_) => {}
                    }
                }
                end += 1;
            }
            writes.sort_unstable();
            for (first, second) in conflicts(&writes, &self.transfers) {
                let diagnostic = self.two_writes(first, second, cuts);
                let [one, other] =
                    [first, second].map(|at| self.trace.origins().span(self.transfers[at].origin));
                let key = told.get(&other).or_else(|| told.get(&one)).copied().unwrap_or(other);
                told.insert(one, key);
                told.insert(other, key);
                self.sink.push(Some(key), diagnostic);
            }
            start = end;
        }
    }

    fn two_writes(&self, first: usize, second: usize, cuts: &Cuts) -> Diagnostic {
        let (one, other) = (&self.transfers[first], &self.transfers[second]);
        let origins = self.trace.origins();
        let label = |transfer: &Transfer, word: &str| match origins.describe(transfer.origin) {
            values if values.is_empty() => word.to_string(),
            values => format!("{word}, with {values}"),
        };
        let place = self.shown(other, cuts);
        let message = format!("two writes to {place} of rank {} in one step", other.target.rank);
        let span = |transfer: &Transfer| -> Span { origins.span(transfer.origin) };
        Diagnostic::new(codes::TWO_WRITES, span(other), message)
            .label(label(other, "the second"))
            .also(span(one), label(one, "the first"))
            .note("the transfers of a step happen at once: which write would stay is not said")
            .help("put them into steps that follow one another, or let both `reduce`")
            .called_by(origins.calls_of(other.origin))
            .blame_call(origins.schedule.file)
    }

    /// What a transfer writes: `data[2] of 4 chunks`, or the fraction of a block.
    fn shown(&self, transfer: &Transfer, cuts: &Cuts) -> String {
        let place = transfer.target;
        let Some(decl) = self.contract.buffers.get(place.buffer as usize) else {
            let scratch = &self.scratch[place.buffer as usize - self.contract.buffers.len()];
            return if scratch.slots == 1 {
                scratch.name.clone()
            } else {
                format!("{}[{}]", scratch.name, place.block)
            };
        };
        let (low, high) = (cuts.0[transfer.low as usize], cuts.0[transfer.high as usize]);
        let block = (decl.blocks > 1).then(|| place.block.to_string());
        match chunk_of(low, high) {
            Some((_, 1)) => match block {
                Some(block) => format!("{}[{block}]", decl.name),
                None => decl.name.clone(),
            },
            Some((chunk, of)) => {
                let index = block.map_or(String::new(), |block| format!("{block}, "));
                format!("{}[{index}{chunk}] of {of} chunks", decl.name)
            }
            None => {
                let block = block.map_or(String::new(), |block| format!("[{block}]"));
                format!("{}{block}, {low}..{high},", decl.name)
            }
        }
    }
}

/// `(i, c)` if `low..high` is chunk i of c.
fn chunk_of(low: Fraction, high: Fraction) -> Option<(u64, u64)> {
    let length = high.minus(low).ok().filter(|length| length.numerator() == 1)?;
    let chunk = low.times(Fraction::new(length.denominator(), 1)).ok()?;
    (chunk.denominator() == 1).then_some((chunk.numerator(), length.denominator()))
}

/// Pairs of writes, first and second in the order of the step, of which one is plain and that share a piece. `writes`
/// are sorted by place and low.
fn conflicts(writes: &[(Place, u32, u32, usize)], transfers: &[Transfer]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut place = None;
    // The furthest reach so far in this place, of any write and of a plain one.
    let (mut any, mut plain) = ((0, 0), (0, 0));
    for &(target, low, high, at) in writes {
        if place != Some(target) {
            (any, plain, place) = ((0, 0), (0, 0), Some(target));
        }
        let is_plain = transfers[at].kind == Kind::Move;
        let (reach, other) = if is_plain { any } else { plain };
        if low < reach {
            found.push((at.min(other), at.max(other)));
        }
        any = any.max((high, at));
        if is_plain {
            plain = plain.max((high, at));
        }
    }
    found.sort_unstable_by_key(|&(first, second)| (second, first));
    found
}

/// The cuts that transfers use, in order, and the number of each.
struct Numbers {
    cuts: Cuts,
    of: Vec<u32>,
}

impl Numbers {
    fn of(transfers: &[Transfer], cutter: &Cutter) -> Numbers {
        let mut used = vec![false; cutter.len()];
        (used[Cutter::ZERO as usize], used[Cutter::ONE as usize]) = (true, true);
        for transfer in transfers.iter().filter(|transfer| transfer.kind != Kind::Signal) {
            (used[transfer.low as usize], used[transfer.high as usize]) = (true, true);
        }
        Numbers::where_used(&used, cutter)
    }

    /// Those that were made, which are used if other ranks' transfers use what this one's do not.
    fn all(cutter: &Cutter) -> Numbers {
        Numbers::where_used(&vec![true; cutter.len()], cutter)
    }

    fn where_used(used: &[bool], cutter: &Cutter) -> Numbers {
        let mut sorted: Vec<Cut> = (0..cutter.len() as Cut).filter(|&cut| used[cut as usize]).collect();
        sorted.sort_by_key(|&cut| cutter.fraction(cut));
        let mut of = vec![0; cutter.len()];
        for (&cut, number) in sorted.iter().zip(0..) {
            of[cut as usize] = number;
        }
        Numbers { cuts: Cuts(sorted.into_iter().map(|cut| cutter.fraction(cut)).collect()), of }
    }

    fn piece(&self, cut: Cut) -> u32 {
        self.of[cut as usize]
    }
}

/// Removes the drops of what nobody reads afterwards. In a right program these are all of them; those that stay are
/// why a wrong one is wrong. Goes backwards with the set of pieces whose value is still needed.
fn keep_drops_that_matter(
    transfers: &mut Vec<Transfer>,
    contract: &Contract,
    first_blocks: &[u32],
    width: u32,
    numbers: &Numbers,
) {
    let pieces = u64::from(numbers.cuts.pieces());
    let total = u64::from(contract.ranks) * u64::from(width) * pieces;
    if total > PIECES_MAX {
        return;
    }
    let mut needed = Bits(vec![0; total.div_ceil(64) as usize]);
    let start = |place: Place| {
        let block = u64::from(first_blocks[place.buffer as usize] + place.block);
        (u64::from(place.rank) * u64::from(width) + block) * pieces
    };
    for ensure in &contract.ensures {
        let place = start(Place { rank: ensure.rank, buffer: ensure.buffer, block: ensure.block });
        (place..place + pieces).for_each(|at| needed.set(at, true));
    }
    let buffers = first_blocks.len();
    let run = |place: Place, transfer: &Transfer| {
        let at = start(place);
        at + u64::from(numbers.piece(transfer.low))..at + u64::from(numbers.piece(transfer.high))
    };
    let is_contract = |place: Place| (place.buffer as usize) < buffers;
    let mut keep = vec![true; transfers.len()];
    let mut end = transfers.len();
    while end > 0 {
        let step = transfers[end - 1].step;
        let first = transfers[..end].partition_point(|transfer| transfer.step < step);
        for at in first..end {
            let transfer = &transfers[at];
            if matches!(transfer.kind, Kind::Move | Kind::Drop) && is_contract(transfer.target) {
                let pieces = run(transfer.target, transfer);
                keep[at] = transfer.kind == Kind::Move || pieces.clone().any(|piece| needed.is_set(piece));
                pieces.for_each(|piece| needed.set(piece, false));
            }
        }
        for transfer in &transfers[first..end] {
            if transfer.carries_data() && is_contract(transfer.source) {
                run(transfer.source, transfer).for_each(|piece| needed.set(piece, true));
            }
            if matches!(transfer.kind, Kind::Reduce | Kind::ReduceLeft) && is_contract(transfer.target) {
                run(transfer.target, transfer).for_each(|piece| needed.set(piece, true));
            }
        }
        end = first;
    }
    let mut kept = keep.into_iter();
    transfers.retain(|_| kept.next().expect("invariant: one entry for each transfer"));
}

/// A set of small numbers.
struct Bits(Vec<u64>);

impl Bits {
    fn is_set(&self, at: u64) -> bool {
        self.0[(at / 64) as usize] >> (at % 64) & 1 == 1
    }

    fn set(&mut self, at: u64, value: bool) {
        let word = &mut self.0[(at / 64) as usize];
        *word = *word & !(1 << (at % 64)) | u64::from(value) << (at % 64);
    }
}
