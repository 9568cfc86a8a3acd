//! Warnings: work of a schedule that keeps its contract which it could leave out.

use super::Properties;
use super::blocks::Blocks;
use super::by_statement::{ByStatement, Statement};
use super::intern::SpreadMap;
use super::names;
use super::run::Traffic;
use super::trace::trace;
use super::values::Values;
use crate::codes;
use coll_base::{Diagnostic, Fraction};
use coll_ir::{Kind, Place, Program, Transfer};

/// Transfers of whose pieces none reaches the contract's end state, found from the last step to the first. Those of
/// `resent`, ascending, change nothing: they are told of elsewhere, and do not make what they repeat needless.
pub(super) fn unread(program: &Program, resent: &[u32]) -> ByStatement {
    let pieces = program.cuts.pieces();
    let mut live =
        Live { program, blocks: Blocks::new(&program.contract, pieces, false), slots: SpreadMap::default() };
    for ensure in &program.contract.ensures {
        let place = Place { rank: ensure.rank, buffer: ensure.buffer, block: ensure.block };
        live.blocks.write(place, 0, pieces, true).fill(true);
    }
    let mut unread = ByStatement::default();
    let mut end = program.transfers.len() as u32;
    for step in program.transfers.chunk_by(|a, b| a.step == b.step).rev() {
        let start = end - step.len() as u32;
        let needed: Vec<Needed> = step.iter().map(|transfer| live.needs(transfer)).collect();
        for (index, (transfer, needed)) in (start..).zip(step.iter().zip(&needed)) {
            if resent.binary_search(&index).is_ok() {
                continue;
            }
            if transfer.carries_data() && needed.is_none() {
                unread.add(program, index, transfer.low);
            }
            if matches!(transfer.kind, Kind::Move | Kind::Drop) {
                live.set(transfer.target, transfer, &[false]);
            }
        }
        for (transfer, needed) in step.iter().zip(&needed).filter(|(transfer, _)| transfer.carries_data()) {
            live.add(transfer, needed);
        }
        end = start;
    }
    unread
}

/// What is read later: pieces of blocks, and slots, which are read whole.
struct Live<'p> {
    program: &'p Program,
    blocks: Blocks<bool>,
    slots: SpreadMap<Place, bool>,
}

/// Which pieces of a transfer's target are read later.
enum Needed {
    All,
    No,
    Some(Vec<bool>),
}

impl Needed {
    fn is_none(&self) -> bool {
        matches!(self, Needed::No)
    }
}

impl Live<'_> {
    fn needs(&self, transfer: &Transfer) -> Needed {
        if !transfer.carries_data() {
            return Needed::No;
        }
        if self.program.is_scratch(transfer.target.buffer) {
            let live = self.slots.get(&transfer.target).copied().unwrap_or(false);
            return if live { Needed::All } else { Needed::No };
        }
        let pieces = self.blocks.read(transfer.target, transfer.low, transfer.high);
        if pieces.iter().all(|&live| live) {
            Needed::All
        } else if pieces.iter().any(|&live| live) {
            Needed::Some(pieces.to_vec())
        } else {
            Needed::No
        }
    }

    fn add(&mut self, transfer: &Transfer, needed: &Needed) {
        match needed {
            Needed::No => {}
            Needed::All => self.set(transfer.source, transfer, &[true]),
            Needed::Some(_) if self.program.is_scratch(transfer.source.buffer) => {
                self.set(transfer.source, transfer, &[true]);
            }
            Needed::Some(pieces) => {
                let live = self.blocks.write(transfer.source, transfer.low, transfer.high, false);
                live.iter_mut().zip(pieces).for_each(|(live, &piece)| *live |= piece);
            }
        }
    }

    fn set(&mut self, place: Place, transfer: &Transfer, live: &[bool; 1]) {
        if self.program.is_scratch(place.buffer) {
            self.slots.insert(place, live[0]);
        } else {
            self.blocks.write(place, transfer.low, transfer.high, true).fill(live[0]);
        }
    }
}

/// Tells of a statement whose transfers nobody needs.
pub(super) fn nobody_reads(program: &Program, statement: &Statement) -> Diagnostic {
    let transfer = &program.transfers[statement.first as usize];
    let place = names::place(program, transfer.target, transfer.low, transfer.high);
    let message = format!("nobody reads what rank {} gets in {place}", transfer.target.rank);
    let told = names::at(program, codes::NOBODY_READS, transfer.origin, message)
        .label(format!("brought by {}", names::this(program, transfer)))
        .help(match names::is_library(program, transfer) {
            true => "this call does more than is needed: take a schedule of a collective that promises less",
            false => "leave this transfer out, with a narrower `where` or range",
        });
    with_others(told, statement)
}

/// Tells of a statement that sends a rank what it already has. Not if that came by a statement of another file: then the
/// two are in two calls, and what the one left behind is no promise to the other.
pub(super) fn sent_twice(
    program: &Program,
    values: &mut Values,
    statement: &Statement,
) -> Option<Diagnostic> {
    let transfer = &program.transfers[statement.first as usize];
    let trace = trace(program, values, transfer.low);
    let again = trace.version(trace.written_by(statement.first)?);
    let first = trace.version(again.before).transfer;
    let first = program.transfers.get(first as usize)?;
    let (span, first_span) = (program.origins.span(transfer.origin), program.origins.span(first.origin));
    if span.file != first_span.file {
        return None;
    }
    let place = names::place(program, transfer.target, transfer.low, transfer.high);
    let message = format!("rank {} has {place} already when it is sent again", transfer.target.rank);
    let told = names::at(program, codes::SENT_TWICE, transfer.origin, message)
        .label(format!("sent again by {}", names::this(program, transfer)))
        .help("leave the second one out");
    let told = names::also(program, told, first, format!("it came with {}", names::this(program, first)));
    Some(with_others(told, statement))
}

fn with_others(told: Diagnostic, statement: &Statement) -> Diagnostic {
    match names::others(statement.count - 1, "transfer of this statement", "transfers of this statement") {
        Some(others) => told.note(others),
        None => told,
    }
}

/// Tells of a schedule that is neither sparing nor quick: its busiest rank sends or receives more than twice what it
/// must, and its longest path is more than twice the rounds that are needed. A schedule that sends more in order to
/// take fewer steps, such as recursive doubling or a direct one, is not blamed: small messages want it.
pub(super) fn sends_too_much(
    program: &Program,
    properties: &Properties,
    traffic: &[Traffic],
) -> Option<Diagnostic> {
    let bounds = &properties.bounds;
    let slow = u64::from(properties.steps) > 2 * u64::from(bounds.rounds_one_port);
    let far_above = |is: Fraction, least: Fraction| {
        is.numerator() as u128 * least.denominator() as u128
            > 2 * least.numerator() as u128 * is.denominator() as u128
    };
    let sent = far_above(properties.sent_max, bounds.sent_max);
    let received = far_above(properties.received_max, bounds.received_max);
    if !slow || !(sent || received) {
        return None;
    }
    let amount = |traffic: &Traffic| if sent { traffic.sent } else { traffic.received };
    let busiest =
        (0..).zip(traffic).max_by_key(|&(rank, traffic)| (amount(traffic), std::cmp::Reverse(rank)));
    let rank: u32 = busiest.map_or(0, |(rank, _)| rank);
    let (verb, is, least) = if sent {
        ("sends", properties.sent_max, bounds.sent_max)
    } else {
        ("receives", properties.received_max, bounds.received_max)
    };
    let ends = |transfer: &&Transfer| {
        !transfer.is_local()
            && transfer.carries_data()
            && (if sent { transfer.source.rank } else { transfer.target.rank }) == rank
    };
    let longest = program.transfers.iter().filter(ends).max_by_key(|t| program.cuts.length(t.low, t.high))?;
    let buffer = program.contract.buffers.first().map_or("", |buffer| &buffer.name);
    let message = format!("rank {rank} {verb} {} of `{buffer}`, where {} would do", plain(is), plain(least));
    Some(
        names::at(program, codes::SENDS_TOO_MUCH, longest.origin, message)
            .label(format!("among others with {}", names::this(program, longest)))
            .note(format!("it takes {} steps; the least is {}", properties.steps, bounds.rounds_one_port))
            .help(less(program, longest)),
    )
}

/// How a schedule could send less.
fn less(program: &Program, longest: &Transfer) -> &'static str {
    let plain = program.contract.buffers.first().is_some_and(|buffer| buffer.blocks == 1);
    match plain && (longest.low, longest.high) == (0, program.cuts.pieces()) {
        true => "cut the buffer with `chunks`, and send each chunk only where it is needed",
        false => {
            "what passes through other ranks is sent anew by each of them: send it straight to the rank that needs it; \
             in an algorithm of neighbours alone, such as a ring, this is inherent"
        }
    }
}

/// `1.75 times the size`
fn plain(fraction: Fraction) -> String {
    let rounded = (fraction.to_f64() * 100.0).round() / 100.0;
    if rounded == 1.0 { "the size".into() } else { format!("{rounded} times the size") }
}
