//! From pest's pairs to the syntax tree: files and declarations here, contracts, statements and expressions in the
//! modules below.
//!
//! The grammar has settled what stands where, so nothing can fail here but numbers, chains and heights; those become
//! diagnostics. What the grammar's `bad_…` productions caught is noted as [`Bad`] for `recover` to explain.

mod contract;
mod expr;
mod stmt;

use crate::ast::{File, FnDef, Item, Name, Operator, Param, Path, Schedule};
use crate::codes;
use crate::grammar::Rule;
use crate::scan::{Kind, Scan};
use coll_base::{Diagnostic, FileId, Span};
use pest::iterators::{Pair, Pairs};

/// How deep statements, and how high expressions, may become. Every later pass may recurse over the tree.
pub(crate) const HEIGHT_MAX: usize = 256;

/// A stretch of text that no rule reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bad {
    pub(crate) kind: BadKind,
    /// Where it starts and ends, in bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Start and end of the good sibling right before it, which may have ended too early.
    pub(crate) after: Option<(usize, usize)>,
}

/// What should have stood there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadKind {
    /// A declaration.
    Item,
    /// `given`, `ensure` or a buffer.
    Fact,
    /// A statement.
    Stmt,
    /// Nothing: a block without a statement before it.
    Block,
    /// The `}` that closes the brace at `start`; it was missed at `end`.
    Close,
}

/// What lowering a file gives.
pub(crate) struct Lowered {
    pub(crate) file: File,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) bad: Vec<Bad>,
}

/// Builds the tree of a file from its `file` pair.
pub(crate) fn lower(file: FileId, scan: &Scan<'_>, pair: Pair<'_, Rule>) -> Lowered {
    let mut lower =
        Lower { file, scan, diagnostics: Vec::new(), bad: Vec::new(), depth: 0, told_height: false };
    let tree = File { docs: lower.file_docs(), items: lower.items(pair) };
    Lowered { file: tree, diagnostics: lower.diagnostics, bad: lower.bad }
}

struct Lower<'s> {
    file: FileId,
    scan: &'s Scan<'s>,
    diagnostics: Vec<Diagnostic>,
    bad: Vec<Bad>,
    /// Blocks around the statement being built.
    depth: usize,
    /// Whether a height was complained of already: once a file is enough.
    told_height: bool,
}

/// The children of a pair, read in the grammar's order.
struct Children<'i>(Pairs<'i, Rule>);

impl<'i> Children<'i> {
    fn of(pair: Pair<'i, Rule>) -> Children<'i> {
        Children(pair.into_inner())
    }

    /// The next child, if it is this rule's.
    fn eat(&mut self, rule: Rule) -> Option<Pair<'i, Rule>> {
        if self.0.peek()?.as_rule() == rule { self.0.next() } else { None }
    }

    /// The next child of this rule; what lies before it are tokens, which say nothing.
    fn seek(&mut self, rule: Rule) -> Option<Pair<'i, Rule>> {
        self.0.find(|pair| pair.as_rule() == rule)
    }

    /// As [`Children::seek`], for what the grammar always has.
    fn must(&mut self, rule: Rule) -> Pair<'i, Rule> {
        self.seek(rule).expect("invariant: the grammar has this child in every such production")
    }

    /// All other children of this rule.
    fn all(self, rule: Rule) -> impl Iterator<Item = Pair<'i, Rule>> {
        self.0.filter(move |pair| pair.as_rule() == rule)
    }
}

impl Lower<'_> {
    /// A pair's place, without the blanks and comments that pest counts in at its end.
    fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let span = pair.as_span();
        Span::new(self.file, span.start(), self.scan.trimmed_end(span.start(), span.end()))
    }

    fn name(&self, pair: Pair<'_, Rule>) -> Name {
        Name { text: pair.as_str().to_owned(), span: self.span(&pair) }
    }

    /// All `ident` children of a list such as `names`.
    fn names(&self, pair: Pair<'_, Rule>) -> Vec<Name> {
        Children::of(pair).all(Rule::ident).map(|ident| self.name(ident)).collect()
    }

    fn path(&self, pair: Pair<'_, Rule>) -> Path {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let collective = self.name(children.must(Rule::word));
        Path { collective, schedule: self.name(children.must(Rule::ident)), span }
    }

    /// Notes a stretch that could not be read.
    fn note_bad(&mut self, kind: BadKind, pair: &Pair<'_, Rule>, after: Option<Span>) -> Span {
        let span = self.span(pair);
        let after = after.map(|span| (span.start as usize, span.end as usize));
        self.bad.push(Bad { kind, start: span.start as usize, end: span.end as usize, after });
        span
    }

    /// Notes that the brace at the start of `pair` is not closed, if the pair says so.
    fn note_close(&mut self, body: &Span, close: &Pair<'_, Rule>) {
        if close.as_rule() == Rule::missing_brace {
            let end =
                self.scan.next_at(close.as_span().start()).map_or(self.scan.text.len(), |token| token.start);
            self.bad.push(Bad { kind: BadKind::Close, start: body.start as usize, end, after: None });
        }
    }

    fn items(&mut self, file: Pair<'_, Rule>) -> Vec<Item> {
        let mut items = Vec::new();
        let mut last_good = None;
        for pair in file.into_inner() {
            let span = self.span(&pair);
            let item = match pair.as_rule() {
                Rule::use_item => Item::Use(self.path(Children::of(pair).must(Rule::path))),
                Rule::fn_def => Item::Fn(self.fn_def(pair)),
                Rule::collective => Item::Collective(self.collective(pair)),
                Rule::schedule => Item::Schedule(self.schedule(pair)),
                Rule::operator => Item::Operator(self.operator(pair)),
                Rule::bad_schedule => {
                    self.note_bad(BadKind::Item, &pair, None);
                    // Its statements are read for their own errors alone.
                    self.body(Children::of(pair).must(Rule::body));
                    Item::Error(span)
                }
                Rule::bad_item => Item::Error(self.note_bad(BadKind::Item, &pair, last_good)),
                _ => continue,
            };
            last_good = (!matches!(item, Item::Error(_))).then_some(span);
            items.push(item);
        }
        items
    }

    fn fn_def(&mut self, pair: Pair<'_, Rule>) -> FnDef {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let name = self.name(children.must(Rule::ident));
        let params = self.names(children.must(Rule::names));
        FnDef { name, params, body: self.expr(children.must(Rule::expr)), span }
    }

    fn schedule(&mut self, pair: Pair<'_, Rule>) -> Schedule {
        let span = self.span(&pair);
        let docs = self.docs_before(span.start as usize);
        let mut children = Children::of(pair);
        let name = self.name(children.must(Rule::ident));
        let params = children.eat(Rule::params).map_or_else(Vec::new, |params| self.params(params));
        let collective = self.name(children.must(Rule::word));
        Schedule { docs, name, params, collective, body: self.body(children.must(Rule::body)), span }
    }

    fn params(&mut self, pair: Pair<'_, Rule>) -> Vec<Param> {
        let mut params = Vec::new();
        for param in Children::of(pair).all(Rule::param) {
            let mut children = Children::of(param);
            let name = self.name(children.must(Rule::ident));
            let default = children.seek(Rule::expr).map(|expr| self.expr(expr));
            if default.is_none() {
                self.diagnostics.push(
                    Diagnostic::new(
                        codes::NO_DEFAULT,
                        name.span,
                        format!("parameter `{}` has no default", name.text),
                    )
                    .expected(format!("`{} = ` and a value", name.text))
                    .found("the name alone")
                    .help(format!(
                        "give it one, as in `{} = 4`; `-D {}=8` sets another",
                        name.text, name.text
                    )),
                );
            }
            params.push(Param { name, default });
        }
        params
    }

    fn operator(&mut self, pair: Pair<'_, Rule>) -> Operator {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        children.must(Rule::kw_operator);
        let ordered = children.eat(Rule::kw_ordered).is_some();
        let name = self.name(children.must(Rule::ident));
        let (operands, params) = self.operands(&name, children.must(Rule::operands));
        let body = self.expr(children.must(Rule::expr));
        let given = children.eat(Rule::op_given).map(|given| self.named_fact(given));
        let ensure = children.eat(Rule::op_ensure).map(|ensure| self.named_fact(ensure));
        Operator { name, ordered, operands, params, body, given, ensure, span }
    }

    /// `(a, b; alpha)`: exactly two before the semicolon.
    fn operands(&mut self, operator: &Name, pair: Pair<'_, Rule>) -> ([Name; 2], Vec<Name>) {
        let span = self.span(&pair);
        let (mut before, mut after, mut seen_semicolon) = (Vec::new(), Vec::new(), false);
        for child in pair.into_inner() {
            match child.as_rule() {
                Rule::semicolon => seen_semicolon = true,
                Rule::ident if seen_semicolon => after.push(self.name(child)),
                Rule::ident => before.push(self.name(child)),
                _ => {}
            }
        }
        let operands = <[Name; 2]>::try_from(before).unwrap_or_else(|names| {
            let found = names.len();
            let message = format!("operator `{}` must have 2 operands, not {found}", operator.text);
            self.diagnostics.push(
                Diagnostic::new(codes::OPERANDS, span, message)
                    .expected("two names, then `;` and parameters if any")
                    .found(format!("{found}"))
                    .help("write the two values that it unites, as in `(a, b)` or `(a, b; alpha)`"),
            );
            let blank = Name { text: String::new(), span };
            let mut names = names.into_iter();
            [names.next().unwrap_or_else(|| blank.clone()), names.next().unwrap_or(blank)]
        });
        (operands, after)
    }

    fn named_fact(&mut self, pair: Pair<'_, Rule>) -> (Name, crate::ast::Expr) {
        let mut children = Children::of(pair);
        let name = self.name(children.must(Rule::ident));
        (name, self.expr(children.must(Rule::expr)))
    }

    /// The `//!` lines before the first word.
    fn file_docs(&self) -> Vec<String> {
        let comments = self.scan.tokens.iter().take_while(|token| token.kind == Kind::Comment);
        comments.filter_map(|&token| doc_text(self.scan.text_of(token), "//!")).collect()
    }

    /// The `///` lines that end right before `offset`.
    fn docs_before(&self, offset: usize) -> Vec<String> {
        let before = &self.scan.tokens[..self.scan.index_at(offset)];
        let lines = before.iter().rev().take_while(|token| token.kind == Kind::Comment);
        let mut docs: Vec<String> =
            lines.map_while(|&token| doc_text(self.scan.text_of(token), "///")).collect();
        docs.reverse();
        docs
    }

    /// Complains, once a file, that something became higher than [`HEIGHT_MAX`].
    fn too_high(&mut self, span: Span, what: &str) {
        if !std::mem::replace(&mut self.told_height, true) {
            self.diagnostics.push(
                Diagnostic::new(
                    codes::TOO_MUCH,
                    span,
                    format!("{what} is more than {HEIGHT_MAX} levels deep"),
                )
                .expected(format!("at most {HEIGHT_MAX} levels"))
                .found("more")
                .help("name parts of it with `let` or `fn`"),
            );
        }
    }
}

/// A doc comment's text: without its mark and the blank that follows it.
fn doc_text(comment: &str, mark: &str) -> Option<String> {
    let text = comment.strip_prefix(mark)?;
    if mark == "///" && text.starts_with('/') {
        return None;
    }
    Some(text.strip_prefix(' ').unwrap_or(text).to_owned())
}
