//! Statements that ran for nothing. With few ranks a loop that is a round short runs zero times, and no transfer is left
//! to be blamed for what never arrives: then the loop is.

use coll_base::{Code, Diagnostic};
use coll_ir::{Idle, IdleKind, Program};

/// At most this many are pointed at beside the one that is blamed.
const OTHERS_MAX: usize = 2;

/// The statements of the schedule's own file that could have moved something and never ran, the one met last first.
fn statements(program: &Program) -> Vec<Idle> {
    let origins = &program.origins;
    let spans = || {
        let statements = origins.origins.iter().map(|origin| origin.span);
        statements.chain(origins.calls.iter().map(|call| call.span))
    };
    let within = |idle: &Idle| {
        let whole = idle.whole;
        spans().any(|span| span.file == whole.file && (whole.start..whole.end).contains(&span.start))
    };
    let own = origins.idle.iter().filter(|idle| idle.head.file == origins.schedule.file);
    let mut found: Vec<Idle> =
        own.filter(|idle| idle.kind == IdleKind::Call || !within(idle)).copied().collect();
    found.sort_by_key(|idle| std::cmp::Reverse((idle.step, idle.head.start)));
    found
}

/// Blames what never ran, if there is such a statement: `lacking` says what no transfer that runs could bring.
pub(super) fn blame(program: &Program, code: Code, message: &str, lacking: &str) -> Option<Diagnostic> {
    let idle = statements(program);
    let last = idle.first()?;
    let told = Diagnostic::new(code, last.head, message)
        .called_by(program.origins.chain(last.call))
        .label(ran_not(last.kind))
        .note(format!("with n = {}, {lacking}", program.ranks()))
        .help("check for which values it runs with so few ranks");
    let others = idle[1..].iter().filter(|other| other.kind == last.kind).take(OTHERS_MAX);
    Some(others.fold(told, |told, other| told.also(other.head, format!("{}, too", ran_not(other.kind)))))
}

/// Points at what never ran after a step, and might have carried something on.
pub(super) fn after(program: &Program, told: Diagnostic, step: u32, carried: &str) -> Diagnostic {
    let idle = statements(program);
    let later = idle.iter().filter(|idle| idle.step > step).take(OTHERS_MAX);
    later.fold(told, |told, idle| {
        told.also(idle.head, format!("{}: could it have carried {carried} on?", ran_not(idle.kind)))
    })
}

fn ran_not(kind: IdleKind) -> &'static str {
    match kind {
        IdleKind::Loop => "this loop runs zero times",
        IdleKind::Step => "this step runs for no rank",
        IdleKind::Call => "this call is on no rank",
    }
}
