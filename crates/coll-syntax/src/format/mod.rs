//! A file laid out anew: the same words in the same order, with the blanks and line ends of the house.
//!
//! The formatter works on tokens, not on the tree: what is not a blank it cannot lose, parentheses and comments least
//! of all. pest's pairs only say where statements and bodies begin and end ([`Unit`], [`Body`]) and what a sign is
//! for (`marks`). The rules:
//!
//! - one statement a line, four blanks a level; blank lines stay, at most one, none at a body's ends;
//! - a body written on one line stays on one line while it fits 100 columns, its statements two blanks apart;
//! - `{ for … {` on one line and `} }` on one line stay so, if each is all that the outer body holds;
//! - `* / % + -` stay tight where they were written tight, unless that would mislead (`a+b * c`);
//! - a line that is too long breaks before a clause (`to`, `where`, …), else after a comma, else before an operator;
//! - a comment keeps its place: alone on its line, or two blanks behind what it follows.

mod marks;
mod print;

use crate::grammar::{Grammar, Rule};
use crate::parse::parse;
use crate::scan::Scan;
use coll_base::{Diagnostic, FileId};
use pest::Parser;
use pest::iterators::Pair;

/// Lays a file out anew. The result parses to the same tree, and formatting it changes nothing.
///
/// # Errors
/// The parser's diagnostics, if the file has errors: what was not understood is not moved about.
pub fn format(file: FileId, text: &str) -> Result<String, Vec<Diagnostic>> {
    let parsed = parse(file, text);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(parsed.diagnostics);
    }
    let scan = Scan::new(text);
    let mut pairs = Grammar::parse(Rule::file, text).expect("invariant: what was read once is read again");
    let pair = pairs.next().expect("invariant: a parse gives the pair of its rule");
    let marks = marks::marks(&scan, pair.clone());
    let units = units(&scan, pair);
    Ok(print::print(&scan, &marks, &units))
}

/// A declaration, statement, fact, buffer or tuning entry: what gets a line of its own. Numbers are token indices.
struct Unit {
    first: usize,
    last: usize,
    bodies: Vec<Body>,
}

/// Two braces and the units between them.
struct Body {
    open: usize,
    close: usize,
    units: Vec<Unit>,
}

/// The children of a pair that are units.
fn units(scan: &Scan<'_>, pair: Pair<'_, Rule>) -> Vec<Unit> {
    pair.into_inner().filter(|child| is_unit(child.as_rule())).map(|child| unit(scan, child)).collect()
}

fn unit(scan: &Scan<'_>, pair: Pair<'_, Rule>) -> Unit {
    let (first, last) = tokens_of(scan, &pair);
    let bodies = if pair.as_rule() == Rule::tune {
        // Its braces are its own.
        let open = first
            + 1
            + scan.tokens[first + 1..].iter().take_while(|&&token| scan.text_of(token) != "{").count();
        vec![Body { open, close: last, units: units(scan, pair) }]
    } else {
        let bodies = pair.into_inner().filter(|child| matches!(child.as_rule(), Rule::body | Rule::contract));
        bodies.map(|child| body(scan, child)).collect()
    };
    Unit { first, last, bodies }
}

fn body(scan: &Scan<'_>, pair: Pair<'_, Rule>) -> Body {
    let (open, close) = tokens_of(scan, &pair);
    Body { open, close, units: units(scan, pair) }
}

/// First and last token of a pair.
fn tokens_of(scan: &Scan<'_>, pair: &Pair<'_, Rule>) -> (usize, usize) {
    let span = pair.as_span();
    let end = scan.trimmed_end(span.start(), span.end());
    (scan.index_at(span.start()), scan.index_at(end) - 1)
}

/// True for the rules whose text gets a line of its own.
pub(super) fn is_unit(rule: Rule) -> bool {
    matches!(
        rule,
        Rule::use_item
            | Rule::fn_def
            | Rule::operator
            | Rule::collective
            | Rule::schedule
            | Rule::buffer
            | Rule::given
            | Rule::ensure
            | Rule::chunks
            | Rule::scratch
            | Rule::let_
            | Rule::for_
            | Rule::if_
            | Rule::require
            | Rule::stage
            | Rule::step
            | Rule::tune
            | Rule::tune_entry
            | Rule::call
            | Rule::send
            | Rule::recv
            | Rule::copy
            | Rule::reduce
            | Rule::signal
    )
}
