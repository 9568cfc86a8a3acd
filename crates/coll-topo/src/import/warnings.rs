//! Warnings of an import, one for each kind: the first place is shown, the others are counted.

use crate::codes;
use coll_base::{Diagnostic, Span};

/// The most kinds that are told.
const KINDS_MAX: usize = 50;

#[derive(Default)]
pub(super) struct Warnings(Vec<Warning>);

struct Warning {
    kind: String,
    span: Span,
    message: String,
    help: Option<String>,
    count: u64,
}

impl Warnings {
    /// Notes a warning; of a kind that was met before, only that there is one more.
    pub(super) fn add(&mut self, kind: &str, span: Span, message: impl FnOnce() -> String) {
        self.add_with_help(kind, span, || (message(), None));
    }

    /// The same, with a way out.
    pub(super) fn add_with_help(
        &mut self,
        kind: &str,
        span: Span,
        words: impl FnOnce() -> (String, Option<String>),
    ) {
        if let Some(known) = self.0.iter_mut().find(|warning| warning.kind == kind) {
            known.count += 1;
        } else if self.0.len() < KINDS_MAX {
            let (message, help) = words();
            self.0.push(Warning { kind: kind.to_string(), span, message, help, count: 1 });
        }
    }

    /// In the order in which they were first met.
    pub(super) fn told(self) -> Vec<Diagnostic> {
        let told = |warning: Warning| {
            let mut told = Diagnostic::new(codes::NOT_USED, warning.span, warning.message);
            match warning.count - 1 {
                0 => {}
                1 => told = told.note("the same of one more"),
                more => told = told.note(format!("the same of {more} more")),
            }
            match warning.help {
                Some(help) => told.help(help),
                None => told,
            }
        };
        self.0.into_iter().map(told).collect()
    }
}
