//! Statements: blocks, control, calls and transfers.

use super::{BadKind, Children, HEIGHT_MAX, Lower};
use crate::ast::{Call, Expr, ExprKind, For, StepEach, Stmt, StmtKind, Transfer, TuneValue, View, Write};
use crate::codes;
use crate::grammar::Rule;
use coll_base::{Diagnostic, Span};
use pest::iterators::Pair;

impl Lower<'_> {
    /// The statements between two braces.
    pub(super) fn body(&mut self, pair: Pair<'_, Rule>) -> Vec<Stmt> {
        let body_span = self.span(&pair);
        if self.depth >= HEIGHT_MAX {
            self.too_high(body_span, "this block");
            return vec![Stmt { kind: StmtKind::Error, span: body_span }];
        }
        self.depth += 1;
        let mut stmts: Vec<Stmt> = Vec::new();
        let mut last_good: Option<Span> = None;
        for child in pair.into_inner() {
            let span = self.span(&child);
            let kind = match child.as_rule() {
                Rule::lbrace | Rule::rbrace | Rule::missing_brace => {
                    self.note_close(&body_span, &child);
                    continue;
                }
                Rule::bad_stmt => {
                    self.note_bad(BadKind::Stmt, &child, last_good);
                    StmtKind::Error
                }
                Rule::bad_block => {
                    self.bad_block(child, stmts.last(), last_good);
                    StmtKind::Error
                }
                _ => self.stmt_kind(child),
            };
            last_good = (!matches!(kind, StmtKind::Error)).then_some(span);
            stmts.push(Stmt { kind, span });
        }
        self.depth -= 1;
        stmts
    }

    /// A block after a statement that could not be read is that one's, and said already; any other is loose. What it
    /// holds is read for its own errors alone.
    fn bad_block(&mut self, pair: Pair<'_, Rule>, previous: Option<&Stmt>, last_good: Option<Span>) {
        if !previous.is_some_and(|stmt| matches!(stmt.kind, StmtKind::Error)) {
            self.note_bad(BadKind::Block, &pair, last_good);
        }
        for body in Children::of(pair).all(Rule::body) {
            self.body(body);
        }
    }

    fn stmt_kind(&mut self, pair: Pair<'_, Rule>) -> StmtKind {
        let rule = pair.as_rule();
        if matches!(rule, Rule::send | Rule::recv | Rule::copy | Rule::reduce | Rule::signal) {
            return StmtKind::Transfer(self.transfer(pair));
        }
        if rule == Rule::fn_def {
            return StmtKind::Fn(self.fn_def(pair));
        }
        if rule == Rule::call {
            return StmtKind::Call(self.call(pair));
        }
        let mut children = Children::of(pair);
        match rule {
            Rule::chunks => StmtKind::Chunks(self.exprs(children)),
            Rule::scratch => {
                let name = self.name(children.must(Rule::ident));
                StmtKind::Scratch(name, self.exprs(children))
            }
            Rule::let_ => {
                let name = self.name(children.must(Rule::ident));
                StmtKind::Let(name, self.expr(children.must(Rule::expr)))
            }
            Rule::for_ => self.for_loop(children),
            Rule::if_ => self.if_chain(children),
            Rule::require => {
                let condition = self.expr(children.must(Rule::expr));
                let why = children.seek(Rule::string).map(|text| text.as_str().trim_matches('"').to_owned());
                StmtKind::Require(condition, why)
            }
            Rule::stage => {
                let name = self.name(children.must(Rule::ident));
                StmtKind::Stage(name, self.body(children.must(Rule::body)))
            }
            Rule::step => {
                children.must(Rule::kw_step);
                let each = children.eat(Rule::step_each).map(|each| self.step_each(each));
                StmtKind::Step(each, self.body(children.must(Rule::body)))
            }
            Rule::tune => {
                StmtKind::Tune(children.all(Rule::tune_entry).map(|entry| self.tune_entry(entry)).collect())
            }
            _ => StmtKind::Error,
        }
    }

    fn exprs(&mut self, children: Children<'_>) -> Vec<Expr> {
        children.all(Rule::expr).map(|expr| self.expr(expr)).collect()
    }

    fn for_loop(&mut self, mut children: Children<'_>) -> StmtKind {
        let var = self.name(children.must(Rule::ident));
        let range = self.range(children.must(Rule::range));
        let condition = children.eat(Rule::condition).map(|condition| self.condition(condition));
        StmtKind::For(For { var, range, condition, body: self.body(children.must(Rule::body)) })
    }

    /// `if a { … } else if b { … } else { … }`: each `else if` is a lone `if` in the branch above it.
    fn if_chain(&mut self, children: Children<'_>) -> StmtKind {
        let (mut starts, mut conditions, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
        let depth = self.depth;
        let mut end = Span::default();
        for child in children.0 {
            end = self.span(&child).after();
            match child.as_rule() {
                Rule::kw_if => starts.push(self.span(&child)),
                Rule::expr => conditions.push(self.expr(child)),
                Rule::body => {
                    bodies.push(self.body(child));
                    self.depth += 1;
                }
                _ => {}
            }
        }
        self.depth = depth;
        let otherwise = if bodies.len() > conditions.len() { bodies.pop() } else { None };
        let mut chain = otherwise.unwrap_or_default();
        // The links that are too deep are told of; none of them may come into the tree.
        let links = conditions.into_iter().zip(bodies).zip(starts).take(HEIGHT_MAX.saturating_sub(depth) + 1);
        for ((condition, then), start) in links.collect::<Vec<_>>().into_iter().rev() {
            let kind = StmtKind::If(condition, then, chain);
            chain = vec![Stmt { kind, span: start.to(end) }];
        }
        chain.pop().map_or(StmtKind::Error, |stmt| stmt.kind)
    }

    fn step_each(&mut self, pair: Pair<'_, Rule>) -> StepEach {
        let mut children = Children::of(pair);
        let var = self.name(children.must(Rule::ident));
        children.eat(Rule::kw_in);
        let group = children.eat(Rule::group).map(|group| self.group(group));
        let condition = children.eat(Rule::condition).map(|condition| self.condition(condition));
        StepEach { var, group, condition }
    }

    fn tune_entry(&mut self, pair: Pair<'_, Rule>) -> (crate::ast::Name, TuneValue) {
        let mut children = Children::of(pair);
        let name = self.name(children.must(Rule::ident));
        let value = self.expr(children.must(Rule::expr));
        let value = match value.kind {
            ExprKind::Name(text) => TuneValue::Word(crate::ast::Name { text, span: value.span }),
            _ => TuneValue::Number(value),
        };
        (name, value)
    }

    fn call(&mut self, pair: Pair<'_, Rule>) -> Call {
        let mut children = Children::of(pair);
        let path = self.path(children.must(Rule::path));
        let (mut views, mut named, mut on) = (Vec::new(), Vec::new(), None);
        for child in children.0 {
            match child.as_rule() {
                Rule::view => {
                    let view = self.view(child);
                    if !named.is_empty() {
                        self.late_view(&view);
                    }
                    views.push(view);
                }
                Rule::named => {
                    let mut parts = Children::of(child);
                    let name = self.name(parts.must(Rule::ident));
                    named.push((name, self.expr(parts.must(Rule::expr))));
                }
                Rule::group => on = Some(self.group(child)),
                _ => {}
            }
        }
        Call { path, views, named, on }
    }

    fn late_view(&mut self, view: &View) {
        let message = format!("buffer `{}` stands after a named argument", view.buffer.text);
        self.diagnostics.push(
            Diagnostic::new(codes::UNEXPECTED, view.span, message)
                .expected("`NAME = value`")
                .found("a buffer")
                .help(
                    "put the buffers first, in the order of the collective, then `root = …` and parameters",
                ),
        );
    }

    fn transfer(&mut self, pair: Pair<'_, Rule>) -> Transfer {
        let rule = pair.as_rule();
        let mut parts = TransferParts::default();
        for child in pair.into_inner() {
            match child.as_rule() {
                Rule::view => parts.views.push(self.view(child)),
                Rule::expr => parts.peer = Some(self.expr(child)),
                Rule::from => parts.from = Some(self.condition(child)),
                Rule::to => parts.to = Some(self.condition(child)),
                Rule::at => parts.at = Some(self.condition(child)),
                Rule::as_ => {
                    let view = self.view(Children::of(child).must(Rule::view));
                    parts.views.push(view);
                }
                Rule::landing => {
                    let left = Children::of(child).seek(Rule::kw_left).is_some();
                    parts.write = if left { Write::ReduceLeft } else { Write::Reduce };
                }
                Rule::kw_left => parts.write = Write::ReduceLeft,
                _ => {}
            }
        }
        parts.transfer(rule)
    }
}

/// What a transfer is made of, whichever it is.
struct TransferParts {
    /// What is read, then where it lands if that is written.
    views: Vec<View>,
    /// The rank right after `signal`.
    peer: Option<Expr>,
    from: Option<Expr>,
    to: Option<Expr>,
    at: Option<Expr>,
    write: Write,
}

impl Default for TransferParts {
    fn default() -> TransferParts {
        TransferParts { views: Vec::new(), peer: None, from: None, to: None, at: None, write: Write::Plain }
    }
}

impl TransferParts {
    fn transfer(self, rule: Rule) -> Transfer {
        const WHOLE: &str = "invariant: the grammar asks for this part";
        let TransferParts { views, peer, from, to, at, write } = self;
        let mut views = views.into_iter();
        let mut view = || views.next();
        match rule {
            Rule::send => {
                let (source, target) = (view().expect(WHOLE), view());
                Transfer::Send { source, from, to: to.expect(WHOLE), target, write }
            }
            Rule::recv => {
                let (source, target) = (view().expect(WHOLE), view());
                Transfer::Recv { source, from: from.expect(WHOLE), to, target, write }
            }
            Rule::copy => Transfer::Copy { source: view().expect(WHOLE), target: view().expect(WHOLE), at },
            Rule::reduce => {
                let write = if write == Write::ReduceLeft { write } else { Write::Reduce };
                Transfer::Reduce { source: view().expect(WHOLE), target: view().expect(WHOLE), at, write }
            }
            _ => Transfer::Signal { from, to: peer.expect(WHOLE) },
        }
    }
}
