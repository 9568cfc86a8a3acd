//! Collectives: buffers and facts.

use super::{BadKind, Children, Lower};
use crate::ast::{
    Buffer, Collective, Expr, ExprKind, Fact, FactBody, FactEach, FactValue, Place, Role, Source,
};
use crate::grammar::Rule;
use pest::iterators::Pair;

impl Lower<'_> {
    pub(super) fn collective(&mut self, pair: Pair<'_, Rule>) -> Collective {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let name = self.name(children.must(Rule::word));
        let params = children.eat(Rule::names).map_or_else(Vec::new, |names| self.names(names));
        let contract = children.must(Rule::contract);
        let contract_span = self.span(&contract);
        let (mut buffers, mut facts, mut last_good) = (Vec::new(), Vec::new(), None);
        for child in contract.into_inner() {
            let child_span = self.span(&child);
            match child.as_rule() {
                Rule::buffer => buffers.push(self.buffer(child)),
                Rule::given | Rule::ensure => facts.push(self.fact(child)),
                Rule::bad_fact => {
                    self.note_bad(BadKind::Fact, &child, last_good);
                    last_good = None;
                    continue;
                }
                _ => {
                    self.note_close(&contract_span, &child);
                    continue;
                }
            }
            last_good = Some(child_span);
        }
        Collective { name, params, buffers, facts, span }
    }

    fn buffer(&mut self, pair: Pair<'_, Rule>) -> Buffer {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let role = match children.must(Rule::role).as_str() {
            "in" => Role::In,
            "out" => Role::Out,
            _ => Role::InOut,
        };
        let name = self.name(children.must(Rule::ident));
        let blocks = children.seek(Rule::expr).map(|expr| {
            let mut blocks = self.expr(expr);
            name_ranks(&mut blocks);
            blocks
        });
        Buffer { role, name, blocks, span }
    }

    fn fact(&mut self, pair: Pair<'_, Rule>) -> Fact {
        let span = self.span(&pair);
        let (mut each, mut at) = (None, None);
        let mut body = None;
        for child in pair.into_inner() {
            match child.as_rule() {
                Rule::holds => (each, at) = self.holds(child),
                Rule::place => body = Some(FactBody::Given(self.place(child))),
                Rule::equal => body = Some(self.equal(child)),
                Rule::after => {
                    let mut children = Children::of(child);
                    let later = self.expr(children.must(Rule::expr));
                    body = Some(FactBody::After(later, self.expr(children.must(Rule::expr))));
                }
                _ => {}
            }
        }
        Fact { each, at, body: body.expect("invariant: the grammar gives every fact a body"), span }
    }

    /// `each VARS [in RANGE] [where C] [at RANK]:` or `RANK:`
    fn holds(&mut self, pair: Pair<'_, Rule>) -> (Option<FactEach>, Option<Expr>) {
        let (mut each, mut at) = (None, None);
        for child in pair.into_inner() {
            match child.as_rule() {
                Rule::fact_each => each = Some(self.fact_each(child)),
                Rule::fact_at => at = Some(self.expr(Children::of(child).must(Rule::expr))),
                Rule::expr => at = Some(self.expr(child)),
                _ => {}
            }
        }
        (each, at)
    }

    fn fact_each(&mut self, pair: Pair<'_, Rule>) -> FactEach {
        let mut each = FactEach { vars: Vec::new(), range: None, condition: None };
        for child in pair.into_inner() {
            match child.as_rule() {
                Rule::ident => each.vars.push(self.name(child)),
                Rule::range => each.range = Some(self.range(child)),
                Rule::condition => each.condition = Some(self.condition(child)),
                _ => {}
            }
        }
        each
    }

    fn equal(&mut self, pair: Pair<'_, Rule>) -> FactBody {
        let mut children = Children::of(pair);
        let place = self.place(children.must(Rule::place));
        children.must(Rule::equals);
        let value = match children.eat(Rule::source) {
            Some(source) => FactValue::Source(self.source(source)),
            None => self.reduced(children.must(Rule::reduced)),
        };
        FactBody::Equal(place, value)
    }

    fn reduced(&mut self, pair: Pair<'_, Rule>) -> FactValue {
        let mut children = Children::of(pair);
        let var = self.name(children.must(Rule::ident));
        children.eat(Rule::kw_in);
        let range = children.eat(Rule::range).map(|range| self.range(range));
        let condition = children.eat(Rule::condition).map(|condition| self.condition(condition));
        FactValue::Reduce { var, range, condition, source: self.source(children.must(Rule::source)) }
    }

    fn source(&mut self, pair: Pair<'_, Rule>) -> Source {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let rank = self.expr(children.must(Rule::expr));
        Source { rank, place: self.place(children.must(Rule::place)), span }
    }

    fn place(&mut self, pair: Pair<'_, Rule>) -> Place {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let buffer = self.name(children.must(Rule::ident));
        Place { buffer, block: children.seek(Rule::expr).map(|block| self.expr(block)), span }
    }
}

/// In a buffer's brackets `ranks` is the number of ranks; anywhere else it is a name like another.
fn name_ranks(expr: &mut Expr) {
    match &mut expr.kind {
        ExprKind::Name(name) if name == "ranks" => expr.kind = ExprKind::Ranks,
        ExprKind::Unary(_, inner) => name_ranks(inner),
        ExprKind::Binary(_, left, right) => {
            name_ranks(left);
            name_ranks(right);
        }
        ExprKind::Call(_, args) => args.iter_mut().for_each(name_ranks),
        ExprKind::If(condition, then, otherwise) => {
            [condition, then, otherwise].into_iter().for_each(|part| name_ranks(part));
        }
        _ => {}
    }
}
