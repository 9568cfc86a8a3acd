//! Whom a message concerns: of a file with several schedules one may be sound while another is not, and who asks for the
//! sound one is not to be held up.

use crate::module::Module;
use coll_base::{Diagnostic, Span};
use coll_syntax::ast;
use std::collections::BTreeSet;

/// A declaration of the main file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Declaration {
    span: Span,
    what: What,
}

/// What a declaration declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Schedule,
    Collective,
    Operator,
    /// A function, a `use`, or what could not be read: it matters to what is broken by it.
    Other,
}

/// The declarations of a file.
pub(crate) fn declarations(items: &[ast::Item], text: &str) -> Vec<Declaration> {
    let declaration = |item: &ast::Item| {
        let (what, span) = match item {
            ast::Item::Schedule(all) => (What::Schedule, all.span),
            ast::Item::Collective(all) => (What::Collective, all.span),
            ast::Item::Operator(all) => (What::Operator, all.span),
            ast::Item::Fn(all) => (What::Other, all.span),
            ast::Item::Use(path) => (What::Other, path.span),
            ast::Item::Error(span) => {
                let unread = text.get(span.start as usize..span.end as usize).unwrap_or_default();
                let is_operator = unread.split_whitespace().next() == Some("operator");
                (if is_operator { What::Operator } else { What::Other }, *span)
            }
        };
        Declaration { span, what }
    };
    items.iter().map(declaration).collect()
}

impl Module {
    /// Whether a diagnostic of [`load`](crate::load()) concerns schedule number `schedule` of
    /// [`Module::schedules`]: it lies in the schedule, in one that it calls, in a collective of these, or in an operator,
    /// which any may be run with. What a schedule cannot be told apart from concerns it if it is broken.
    pub fn concerns(&self, schedule: usize, diagnostic: &Diagnostic) -> bool {
        let (Some(place), Some(&id)) = (&diagnostic.primary, self.listed.get(schedule)) else { return true };
        let covers =
            |span: &Span| span.file == place.span.file && (span.start..=span.end).contains(&place.span.start);
        let Some(declaration) = self.declarations.iter().find(|declaration| covers(&declaration.span)) else {
            return true;
        };
        let holds = |name: Span| {
            let Span { file, start, end } = declaration.span;
            name.file == file && (start..end).contains(&name.start)
        };
        let needed = self.needed(id);
        let mut schedules = needed.iter().map(|&id| &self.schedules[id as usize]);
        match declaration.what {
            What::Operator => true,
            What::Other => self.schedules[id as usize].broken,
            What::Schedule => schedules.any(|schedule| holds(schedule.span)),
            What::Collective => {
                let collectives = schedules.filter_map(|schedule| schedule.collective);
                collectives.into_iter().any(|id| holds(self.collectives[id as usize].span))
            }
        }
    }

    /// A schedule and all that it calls.
    fn needed(&self, id: u32) -> BTreeSet<u32> {
        let mut needed = BTreeSet::new();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if needed.insert(id) {
                open.extend(&self.schedules[id as usize].calls);
            }
        }
        needed
    }
}
