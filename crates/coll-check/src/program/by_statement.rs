//! Transfers with one fault, gathered by the statement they come from: a loop that is wrong is one fault and not a
//! thousand.

use coll_base::Span;
use coll_ir::Program;

/// For each statement the first transfer, and how many there are.
#[derive(Default)]
pub(super) struct ByStatement(Vec<Statement>);

/// A statement's transfers that have a fault.
pub(super) struct Statement {
    span: Span,
    /// The first of them.
    pub(super) first: u32,
    /// A piece of the first one that has the fault.
    pub(super) piece: u32,
    /// All of them.
    pub(super) count: u64,
    last: u32,
}

impl ByStatement {
    /// Adds a transfer; adding it twice in a row counts once.
    pub(super) fn add(&mut self, program: &Program, transfer: u32, piece: u32) {
        let span = program.origins.span(program.transfers[transfer as usize].origin);
        match self.0.iter_mut().find(|statement| statement.span == span) {
            None => self.0.push(Statement { span, first: transfer, piece, count: 1, last: transfer }),
            Some(statement) if statement.last == transfer => {}
            Some(statement) => {
                if transfer < statement.first {
                    (statement.first, statement.piece) = (transfer, piece);
                }
                statement.count += 1;
                statement.last = transfer;
            }
        }
    }

    /// The statements, by their first transfer.
    pub(super) fn statements(mut self) -> Vec<Statement> {
        self.0.sort_by_key(|statement| statement.first);
        self.0
    }
}
