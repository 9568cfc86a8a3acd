//! Tells of transfers that read, or reduce into, what holds nothing, and why it holds nothing.

use super::by_statement::Statement;
use super::names;
use super::trace::{NONE, Trace, Version, trace};
use super::values::Values;
use crate::codes;
use coll_base::Diagnostic;
use coll_ir::{Kind, Place, Program};

/// A statement that reads what holds nothing.
pub(super) fn empty_source(program: &Program, values: &mut Values, statement: &Statement) -> Diagnostic {
    let transfer = &program.transfers[statement.first as usize];
    let place = names::place(program, transfer.source, statement.piece, statement.piece + 1);
    let message = format!("rank {} reads {place}, which holds nothing", transfer.source.rank);
    let told = names::at(program, codes::READS_NOTHING, transfer.origin, message)
        .label(format!("read by {}", names::this(program, transfer)));
    let (told, dropped) = why_empty(program, values, statement, transfer.source, told);
    told.help(if dropped {
        "read before the call, or only what the call's contract ensures"
    } else if names::is_library(program, transfer) {
        "write it before the call, or give the call another view"
    } else {
        "write it in an earlier step: within one, every transfer reads what was there as the step began"
    })
}

/// A statement that reduces into what holds nothing.
pub(super) fn empty_target(program: &Program, values: &mut Values, statement: &Statement) -> Diagnostic {
    let transfer = &program.transfers[statement.first as usize];
    let place = names::place(program, transfer.target, statement.piece, statement.piece + 1);
    let message = format!("rank {} reduces into {place}, which holds nothing", transfer.target.rank);
    let told = names::at(program, codes::REDUCES_INTO_NOTHING, transfer.origin, message)
        .label(format!("reduced by {}", names::this(program, transfer)));
    let (told, _) = why_empty(program, values, statement, transfer.target, told);
    told.help(match names::is_library(program, transfer) {
        true => "what a call reduces must hold values: write them before it",
        false => "the first to come is a plain write: leave out `reduce` there",
    })
}

/// Adds why a place is empty, and says whether a call has emptied it.
fn why_empty(
    program: &Program,
    values: &mut Values,
    statement: &Statement,
    place: Place,
    told: Diagnostic,
) -> (Diagnostic, bool) {
    let trace = trace(program, values, statement.piece);
    let mut dropped = false;
    let told = match last_before(&trace, program, statement.first, place) {
        Some(version) if version.transfer != NONE => {
            let writer = &program.transfers[version.transfer as usize];
            dropped = writer.kind == Kind::Drop;
            let text = if dropped {
                "the contract of this call says nothing of it: it holds nothing afterwards".to_owned()
            } else {
                format!("it was last written by {}, in another shape", names::this(program, writer))
            };
            names::also(program, told, writer, text)
        }
        _ if program.is_scratch(place.buffer) => told.note("nothing is written into this slot before"),
        _ => told.note(format!(
            "the contract gives rank {} nothing there, and nothing is written there before",
            place.rank
        )),
    };
    let later = trace
        .versions
        .iter()
        .find(|v| v.place == place && v.transfer != NONE && v.transfer >= statement.first);
    let told = match later.map(|version| &program.transfers[version.transfer as usize]) {
        Some(writer)
            if writer.step > program.transfers[statement.first as usize].step && writer.carries_data() =>
        {
            let text = format!("it is first written by {}", names::this(program, writer));
            names::also(program, told, writer, text)
        }
        _ => told,
    };
    match names::others(statement.count - 1, "transfer of this statement", "transfers of this statement") {
        Some(others) => (told.note(others), dropped),
        None => (told, dropped),
    }
}

/// What a place held when a transfer's step began.
fn last_before(trace: &Trace, program: &Program, transfer: u32, place: Place) -> Option<Version> {
    let step = program.transfers[transfer as usize].step;
    let before = |version: &&Version| {
        version.place == place
            && (version.transfer == NONE || program.transfers[version.transfer as usize].step < step)
    };
    trace.versions.iter().rev().find(before).copied()
}
