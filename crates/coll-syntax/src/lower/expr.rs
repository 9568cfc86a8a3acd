//! Expressions: a flat chain of operands and operators becomes a tree.
//!
//! The chain is folded with two stacks (Dijkstra's shunting yard) and not by recursion: a chain of a million signs is
//! then a message, not an overflow. Heights are counted as the tree grows, and what is too high becomes an error node.

use super::{Children, HEIGHT_MAX, Lower};
use crate::ast::{BinaryOp, Comprehension, Expr, ExprKind, Group, Index, Range, UnaryOp, View};
use crate::codes;
use crate::grammar::Rule;
use coll_base::{Diagnostic, Span};
use pest::iterators::{Pair, Pairs};

/// An operand, and what must be known of it while the chain is folded.
struct Part {
    expr: Expr,
    height: usize,
    /// A comparison without parentheses round it.
    is_comparison: bool,
}

/// An operator that waits for its right operand.
enum Pending {
    Prefix(UnaryOp, Span),
    Infix(BinaryOp),
}

impl Pending {
    fn precedence(&self) -> u8 {
        match self {
            Pending::Prefix(UnaryOp::Neg, _) => 11,
            Pending::Prefix(UnaryOp::Not, _) => 3,
            Pending::Infix(op) => op.precedence(),
        }
    }
}

impl Lower<'_> {
    pub(super) fn expr(&mut self, pair: Pair<'_, Rule>) -> Expr {
        self.chain(pair.into_inner()).expr
    }

    /// `where C`
    pub(super) fn condition(&mut self, pair: Pair<'_, Rule>) -> Expr {
        self.expr(Children::of(pair).must(Rule::expr))
    }

    pub(super) fn range(&mut self, pair: Pair<'_, Rule>) -> Range {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let low = self.expr(children.must(Rule::expr));
        let inclusive = children.must(Rule::range_op).as_str() == "..=";
        Range { low, high: self.expr(children.must(Rule::expr)), inclusive, span }
    }

    pub(super) fn group(&mut self, pair: Pair<'_, Rule>) -> Group {
        let span = self.span(&pair);
        let mut values = Vec::new();
        for child in pair.into_inner() {
            match child.as_rule() {
                Rule::range => return Group::Range(self.range(child)),
                Rule::expr => values.push(self.expr(child)),
                Rule::for_tail => {
                    let value = values.pop().expect("invariant: a value stands before `for`");
                    return Group::For(Box::new(self.comprehension(value, child)), span);
                }
                _ => {}
            }
        }
        Group::List(values, span)
    }

    pub(super) fn view(&mut self, pair: Pair<'_, Rule>) -> View {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let buffer = self.name(children.must(Rule::ident));
        View { buffer, index: children.all(Rule::index).map(|index| self.index(index)).collect(), span }
    }

    fn index(&mut self, pair: Pair<'_, Rule>) -> Index {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let first = self.expr(children.must(Rule::expr));
        if let Some(tail) = children.eat(Rule::for_tail) {
            return Index::For(Box::new(self.comprehension(first, tail)));
        }
        match children.eat(Rule::range_op) {
            Some(op) => {
                let inclusive = op.as_str() == "..=";
                Index::Range(Range {
                    low: first,
                    high: self.expr(children.must(Rule::expr)),
                    inclusive,
                    span,
                })
            }
            None => Index::One(first),
        }
    }

    /// `value for k in a..b [where c]`
    fn comprehension(&mut self, value: Expr, tail: Pair<'_, Rule>) -> Comprehension {
        let mut children = Children::of(tail);
        let var = self.name(children.must(Rule::ident));
        let range = self.range(children.must(Rule::range));
        let condition = children.eat(Rule::condition).map(|condition| self.condition(condition));
        Comprehension { value, var, range, condition }
    }

    fn chain(&mut self, pairs: Pairs<'_, Rule>) -> Part {
        let mut operands: Vec<Part> = Vec::new();
        let mut pending: Vec<Pending> = Vec::new();
        for pair in pairs {
            match pair.as_rule() {
                Rule::neg => pending.push(Pending::Prefix(UnaryOp::Neg, self.span(&pair))),
                Rule::kw_not => pending.push(Pending::Prefix(UnaryOp::Not, self.span(&pair))),
                Rule::binary => {
                    let op = binary_op(pair.as_str());
                    while pending.last().is_some_and(|top| top.precedence() >= op.precedence()) {
                        self.fold(&mut operands, &mut pending);
                    }
                    pending.push(Pending::Infix(op));
                }
                _ => {
                    let negated = matches!(pending.last(), Some(Pending::Prefix(UnaryOp::Neg, _)));
                    if negated && pair.as_str().replace('_', "") == "9223372036854775808" {
                        // The one number that fits only with its sign.
                        let Some(Pending::Prefix(_, sign)) = pending.pop() else { continue };
                        let expr = Expr { kind: ExprKind::Int(i64::MIN), span: sign.to(self.span(&pair)) };
                        operands.push(Part { expr, height: 1, is_comparison: false });
                    } else {
                        operands.push(self.operand(pair));
                    }
                }
            }
        }
        while !pending.is_empty() {
            self.fold(&mut operands, &mut pending);
        }
        operands.pop().expect("invariant: a chain has an operand")
    }

    /// Gives the topmost waiting operator its operands.
    fn fold(&mut self, operands: &mut Vec<Part>, pending: &mut Vec<Pending>) {
        let (Some(op), Some(right)) = (pending.pop(), operands.pop()) else { return };
        let part = match op {
            Pending::Prefix(op, sign) => {
                let span = sign.to(right.expr.span);
                self.part(ExprKind::Unary(op, Box::new(right.expr)), span, right.height)
            }
            Pending::Infix(op) => {
                let left = operands.pop().expect("invariant: an operator stands between two operands");
                let is_comparison = op.precedence() == BinaryOp::Eq.precedence();
                let span = left.expr.span.to(right.expr.span);
                let height = left.height.max(right.height);
                if is_comparison && (left.is_comparison || right.is_comparison) {
                    // Of a longer chain the first two are told.
                    if !matches!(left.expr.kind, ExprKind::Error) {
                        self.chained(&left.expr, op, &right.expr);
                    }
                    // What it was meant to say is not known: nothing more is to be made of it.
                    let part = self.part(ExprKind::Error, span, height);
                    operands.push(Part { is_comparison, ..part });
                    return;
                }
                let kind = ExprKind::Binary(op, Box::new(left.expr), Box::new(right.expr));
                Part { is_comparison, ..self.part(kind, span, height) }
            }
        };
        operands.push(part);
    }

    /// A node over children of height `below`; an error node if that is too high.
    fn part(&mut self, kind: ExprKind, span: Span, below: usize) -> Part {
        if below < HEIGHT_MAX {
            return Part { expr: Expr { kind, span }, height: below + 1, is_comparison: false };
        }
        self.too_high(span, "this expression");
        Part { expr: Expr { kind: ExprKind::Error, span }, height: 1, is_comparison: false }
    }

    fn chained(&mut self, left: &Expr, op: BinaryOp, right: &Expr) {
        let text = |span: Span| &self.scan.text[span.start as usize..span.end as usize];
        let mut diagnostic =
            Diagnostic::new(codes::CHAINED, left.span.to(right.span), "comparisons are not chained")
                .expected("one comparison, or several joined by `and`")
                .found("the result of one comparison compared again");
        if let ExprKind::Binary(first, low, middle) = &left.kind {
            let (low, middle, high) = (text(low.span), text(middle.span), text(right.span));
            if low.len() + middle.len() + high.len() < 60 {
                let (first, second) = (first.symbol(), op.symbol());
                diagnostic =
                    diagnostic.help(format!("write `{low} {first} {middle} and {middle} {second} {high}`"));
            }
        }
        self.diagnostics.push(diagnostic);
    }

    fn operand(&mut self, pair: Pair<'_, Rule>) -> Part {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::number => self.number(pair.as_str(), span),
            Rule::kw_true => ExprKind::Bool(true),
            Rule::kw_false => ExprKind::Bool(false),
            Rule::paren => {
                let part = self.chain(Children::of(pair).must(Rule::expr).into_inner());
                return Part { expr: Expr { span, ..part.expr }, is_comparison: false, ..part };
            }
            Rule::if_expr => return self.if_expr(pair),
            _ => return self.name_or_call(pair, span),
        };
        self.part(kind, span, 0)
    }

    fn name_or_call(&mut self, pair: Pair<'_, Rule>, span: Span) -> Part {
        let mut children = Children::of(pair);
        let name = self.name(children.must(Rule::ident));
        if children.eat(Rule::lparen).is_none() {
            return self.part(ExprKind::Name(name.text), span, 0);
        }
        let (mut args, mut below) = (Vec::new(), 0);
        for arg in children.all(Rule::expr) {
            let part = self.chain(arg.into_inner());
            below = below.max(part.height);
            args.push(part.expr);
        }
        self.part(ExprKind::Call(name, args), span, below)
    }

    /// `if a { x } else if b { y } else { z }`, built from its end.
    fn if_expr(&mut self, pair: Pair<'_, Rule>) -> Part {
        let end = self.span(&pair).after();
        let mut conditions = Vec::new();
        let mut arms = Vec::new();
        let mut starts = Vec::new();
        for child in pair.into_inner() {
            match child.as_rule() {
                Rule::kw_if => starts.push(self.span(&child)),
                Rule::expr => conditions.push(self.chain(child.into_inner())),
                Rule::arm => arms.push(self.chain(Children::of(child).must(Rule::expr).into_inner())),
                _ => {}
            }
        }
        let mut result = arms.pop().expect("invariant: an if expression has an else arm");
        for ((condition, then), start) in conditions.into_iter().zip(arms).zip(starts).rev() {
            let below = condition.height.max(then.height).max(result.height);
            let kind = ExprKind::If(Box::new(condition.expr), Box::new(then.expr), Box::new(result.expr));
            result = self.part(kind, start.to(end), below);
        }
        result
    }

    fn number(&mut self, text: &str, span: Span) -> ExprKind {
        let digits = text.replace('_', "");
        let has_only = |extra: &str| digits.chars().all(|c| c.is_ascii_digit() || extra.contains(c));
        if has_only("") {
            return match digits.parse() {
                Ok(value) => ExprKind::Int(value),
                Err(_) => self.number_error(
                    Diagnostic::new(codes::NUMBER_RANGE, span, format!("{} does not fit", shortened(text)))
                        .expected(format!("an integer of at most {}", i64::MAX))
                        .found(shortened(text))
                        .help("integers are 64-bit; name a smaller one"),
                ),
            };
        }
        match digits.parse::<f64>() {
            Ok(value) if has_only(".eE+-") && value.is_finite() => ExprKind::Float(value),
            Ok(_) if has_only(".eE+-") => self.number_error(
                Diagnostic::new(codes::NUMBER_RANGE, span, format!("{} does not fit", shortened(text)))
                    .expected(format!("a number of at most {:e}", f64::MAX))
                    .found(shortened(text))
                    .help("numbers with a point are 64-bit floats; name a smaller one"),
            ),
            _ => self.number_error(
                Diagnostic::new(codes::NUMBER_FORM, span, format!("`{}` is not a number", shortened(text)))
                    .expected("decimal digits, such as `12`, `1_000` or `0.5`")
                    .found(format!("`{}`", shortened(text)))
                    .help("write it in decimal digits; put an operator between a number and a name, as in `2 * k`"),
            ),
        }
    }

    fn number_error(&mut self, diagnostic: Diagnostic) -> ExprKind {
        self.diagnostics.push(diagnostic);
        ExprKind::Error
    }
}

/// A number's text, cut if it is very long.
fn shortened(text: &str) -> String {
    if text.len() <= 40 { text.to_owned() } else { format!("{}… ({} digits)", &text[..20], text.len()) }
}

fn binary_op(symbol: &str) -> BinaryOp {
    match symbol {
        "*" => BinaryOp::Mul,
        "/" => BinaryOp::Div,
        "%" => BinaryOp::Mod,
        "+" => BinaryOp::Add,
        "-" => BinaryOp::Sub,
        "<<" => BinaryOp::Shl,
        ">>" => BinaryOp::Shr,
        "&" => BinaryOp::BitAnd,
        "^" => BinaryOp::BitXor,
        "|" => BinaryOp::BitOr,
        "==" => BinaryOp::Eq,
        "!=" => BinaryOp::Ne,
        "<" => BinaryOp::Lt,
        "<=" => BinaryOp::Le,
        ">" => BinaryOp::Gt,
        ">=" => BinaryOp::Ge,
        "and" => BinaryOp::And,
        _ => BinaryOp::Or,
    }
}
