//! What each token is for, as far as blanks and line ends hang on it, and the blanks between two tokens.

use super::is_unit;
use crate::ast::BinaryOp;
use crate::grammar::Rule;
use crate::scan::Scan;
use pest::iterators::Pair;

/// What a token is for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    /// It begins a unit.
    pub(super) begins_unit: bool,
    /// No blank before it.
    tight_before: bool,
    /// No blank after it.
    tight_after: bool,
    /// How gladly a long line breaks before it: 0 most.
    pub(super) breaks: Option<u8>,
    /// Two blanks before it: it begins a clause that could be a line.
    wide: bool,
}

/// Marks for all tokens of a scan.
pub(super) fn marks(scan: &Scan<'_>, file: Pair<'_, Rule>) -> Vec<Mark> {
    let mut marks: Vec<Mark> = scan.tokens.iter().map(|&token| by_text(scan.text_of(token))).collect();
    for pair in file.into_inner().flatten() {
        let index = scan.index_at(pair.as_span().start());
        let Some(mark) = marks.get_mut(index) else { continue };
        match pair.as_rule() {
            rule if is_unit(rule) => mark.begins_unit = true,
            Rule::neg => *mark = Mark { tight_after: true, ..Mark::default() },
            // Parentheses round a value stand free; those of a call or a list of names hug what is before them.
            Rule::paren => *mark = Mark { tight_before: false, ..*mark },
            Rule::op_given | Rule::op_ensure => *mark = Mark { wide: true, breaks: Some(0), ..*mark },
            Rule::from
            | Rule::to
            | Rule::as_
            | Rule::at
            | Rule::landing
            | Rule::condition
            | Rule::fact_at
            | Rule::kw_on
            | Rule::kw_into
            | Rule::for_tail => mark.breaks = Some(0),
            Rule::expr => mark_operators(scan, &mut marks, pair),
            Rule::source => mark_dot(scan, &mut marks, pair),
            _ => {}
        }
    }
    for (mark, &before) in marks.iter_mut().skip(1).zip(&scan.tokens) {
        if matches!(scan.text_of(before), "," | ":" | ";") {
            mark.breaks = Some(mark.breaks.map_or(1, |other| other.min(1)));
        }
    }
    marks
}

/// What a sign's text alone says.
fn by_text(text: &str) -> Mark {
    let (tight_before, tight_after) = match text {
        ")" | "]" | "," | ";" | ":" => (true, false),
        "(" | "[" | ".." | "..=" | "." => (true, true),
        _ => (false, false),
    };
    Mark { tight_before, tight_after, ..Mark::default() }
}

/// Which operators of a chain stay tight, and where it may break.
fn mark_operators(scan: &Scan<'_>, marks: &mut [Mark], expr: Pair<'_, Rule>) {
    struct Op {
        index: usize,
        precedence: u8,
        tight: bool,
    }
    let ops: Vec<Op> = expr
        .into_inner()
        .filter(|child| child.as_rule() == Rule::binary)
        .map(|child| {
            let index = scan.index_at(child.as_span().start());
            let (before, token, after) = (scan.tokens[index - 1], scan.tokens[index], scan.tokens[index + 1]);
            let written_tight = before.end == token.start && token.end == after.start;
            let tight = written_tight && matches!(child.as_str(), "*" | "/" | "%" | "+" | "-");
            Op { index, precedence: precedence(child.as_str()), tight }
        })
        .collect();
    let tightest_spaced = ops.iter().filter(|op| !op.tight).map(|op| op.precedence).max().unwrap_or(0);
    for op in &ops {
        // A tight operator beside a spaced one that binds more would be read wrongly.
        let tight = op.tight && op.precedence >= tightest_spaced;
        let breaks = match op.precedence {
            _ if tight => None,
            0..=2 => Some(2),
            _ => Some(3),
        };
        marks[op.index] = Mark { tight_before: tight, tight_after: tight, breaks, ..Mark::default() };
    }
}

fn precedence(symbol: &str) -> u8 {
    const ALL: [BinaryOp; 18] = [
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Mod,
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Shl,
        BinaryOp::Shr,
        BinaryOp::BitAnd,
        BinaryOp::BitXor,
        BinaryOp::BitOr,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Gt,
        BinaryOp::Ge,
        BinaryOp::And,
        BinaryOp::Or,
    ];
    ALL.into_iter().find(|op| op.symbol() == symbol).map_or(0, BinaryOp::precedence)
}

/// The dot binds loosest: after a rank that is more than one name or number it stands free.
fn mark_dot(scan: &Scan<'_>, marks: &mut [Mark], source: Pair<'_, Rule>) {
    let mut children = source.into_inner();
    let is_compound = children.next().is_some_and(|rank| rank.into_inner().count() > 1);
    let Some(dot) = children.next().filter(|_| is_compound) else { return };
    marks[scan.index_at(dot.as_span().start())] = Mark::default();
}

/// Blanks between token `index` and the one before it, if they stand on one line.
pub(super) fn gap(scan: &Scan<'_>, marks: &[Mark], index: usize) -> usize {
    let Some(before) = index.checked_sub(1) else { return 0 };
    let (mark, before_mark) = (marks[index], marks[before]);
    let (text, before_text) = (scan.text_of(scan.tokens[index]), scan.text_of(scan.tokens[before]));
    match (before_text, text) {
        ("{", "}") => 0,
        ("{", _) | (_, "{") => 1,
        _ if mark.begins_unit || mark.wide => 2,
        _ if mark.tight_before || before_mark.tight_after => 0,
        _ => 1,
    }
}
