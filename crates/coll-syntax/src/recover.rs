//! What is wrong with a stretch that no rule reads.
//!
//! The stretch is parsed again, alone and with the one rule that should have read it; where that fails furthest, and
//! what pest would have taken there, is the message. The good statement before it is tried with it, since a statement
//! that ends too early (`let x = a +`) leaves its fault to what follows. `hints` has the first word.

use crate::codes;
use crate::grammar::{Grammar, Rule, wording};
use crate::hints::{self, Scene};
use crate::lower::{Bad, BadKind};
use crate::scan::{Kind, Scan, Token};
use coll_base::{Diagnostic, FileId, Span};
use pest::Parser;
use pest::error::{ErrorVariant, InputLocation};

/// A message, and whether what it tells leaves statements behind it without a home.
pub(crate) struct Explained {
    pub(crate) diagnostic: Diagnostic,
    /// A `{` was missing: the `}` that belongs to it closes too much.
    pub(crate) misses_opener: bool,
    /// The statement before the stretch, if the stretch is its end.
    pub(crate) torn: Option<(usize, usize)>,
}

/// Where a narrow parse failed, and what it would have taken.
struct Failure {
    at: usize,
    expected: Vec<Rule>,
}

/// Explains a bad stretch.
pub(crate) fn explain(file: FileId, scan: &Scan<'_>, bad: &Bad) -> Explained {
    let plain = |diagnostic| Explained { diagnostic, misses_opener: false, torn: None };
    match bad.kind {
        BadKind::Close => return plain(unclosed_brace(file, scan, bad)),
        BadKind::Block => return plain(loose_block(file, scan, bad)),
        BadKind::Item | BadKind::Fact | BadKind::Stmt => {}
    }
    if let Some(first) = scan.next_at(bad.start).filter(|&first| is_closer(scan, first)) {
        return plain(unopened(file, scan, first, bad));
    }
    let (failure, start) = narrowest(scan, bad);
    let misses_opener =
        failure.expected.iter().any(|rule| matches!(rule, Rule::lbrace | Rule::body | Rule::contract))
            && !failure.expected.contains(&Rule::EOI);
    let scene = Scene { file, scan, kind: bad.kind, start, at: failure.at, expected: &failure.expected };
    let diagnostic = hints::hint(&scene).unwrap_or_else(|| expected_found(&scene));
    let ends_early = |&(from, to): &(usize, usize)| from == start && !scan.text[from..to].ends_with('}');
    let torn = bad.after.filter(ends_early);
    Explained { diagnostic, misses_opener, torn }
}

/// True for what a missing `{` leaves at the top of a file: a closer, or a statement.
pub(crate) fn is_homeless(scan: &Scan<'_>, bad: &Bad) -> bool {
    scan.next_at(bad.start).is_some_and(|first| {
        is_closer(scan, first)
            || hints::STATEMENTS.contains(&scan.text_of(first))
            || scan.text_of(first) == "else"
    })
}

/// The failure that tells most: of the stretch alone, or of the statement before it and what was left of it.
fn narrowest(scan: &Scan<'_>, bad: &Bad) -> (Failure, usize) {
    let rule = match bad.kind {
        BadKind::Item => Rule::only_item,
        BadKind::Fact => Rule::only_fact,
        _ => Rule::only_stmt,
    };
    let alone = || {
        let failure = narrow(scan, rule, bad.start);
        failure.unwrap_or(Failure { at: bad.start, expected: vec![rule] })
    };
    let Some((start, end)) = bad.after else { return (alone(), bad.start) };
    let same_line = !scan.line_ends_between(end, bad.start) && !scan.text[start..end].ends_with('}');
    match narrow(scan, rule, start) {
        Some(joined) if joined.at > bad.start || (joined.at == bad.start && same_line) => (joined, start),
        _ => (alone(), bad.start),
    }
}

fn narrow(scan: &Scan<'_>, rule: Rule, start: usize) -> Option<Failure> {
    let error = Grammar::parse(rule, &scan.text[start..]).err()?;
    let (InputLocation::Pos(at) | InputLocation::Span((at, _))) = error.location;
    let expected = match error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives,
        ErrorVariant::CustomError { .. } => Vec::new(),
    };
    Some(Failure { at: start + at, expected })
}

/// "expected X, found Y", with the place where an open bracket was opened and the statement's form.
fn expected_found(scene: &Scene<'_>) -> Diagnostic {
    let wanted = wanted(scene);
    let found = scene.found_text();
    if let Some(diagnostic) = unclosed_bracket(scene, &wanted) {
        return diagnostic.expected(wanted).found(found);
    }
    let diagnostic = match (scene.found(), scene.previous()) {
        // At a line's start the fault is at the end of the line before.
        (token, Some(previous))
            if token.is_none_or(|token| scene.scan.line_ends_between(previous.end, token.start)) =>
        {
            let after = scene.scan.text_of(previous);
            let message = format!("expected {wanted} after `{after}`, found {found}");
            let diagnostic = Diagnostic::new(codes::UNEXPECTED, scene.span(previous), message);
            match token {
                Some(token) => diagnostic.also(scene.span(token), "found here"),
                None => diagnostic,
            }
        }
        (token, _) => {
            let end = scene.scan.text.len();
            let span = token.map_or(Span::new(scene.file, end, end), |token| scene.span(token));
            Diagnostic::new(codes::UNEXPECTED, span, format!("expected {wanted}, found {found}"))
        }
    };
    let diagnostic = diagnostic.expected(wanted).found(found);
    match hints::form(scene) {
        Some(form) => diagnostic.help(form),
        None => diagnostic,
    }
}

/// A bracket that is open where something else begins.
fn unclosed_bracket(scene: &Scene<'_>, wanted: &str) -> Option<Diagnostic> {
    if !scene.expects(&[Rule::rparen, Rule::rbracket]) {
        return None;
    }
    let open = scene.scan.open_bracket(scene.start, scene.at)?;
    let opener = scene.scan.text_of(open);
    let closer = if opener == "(" { ")" } else { "]" };
    let found = scene.found();
    if let Some(token) = found
        .filter(|&token| !hints::is_reserved(scene.text_of(token)) && !"{}".contains(scene.text_of(token)))
    {
        let message = format!("expected {wanted}, found {}", scene.found_text());
        return Some(
            Diagnostic::new(codes::UNEXPECTED, scene.span(token), message)
                .also(scene.span(open), "this is still open")
                .help(format!("close it with `{closer}`")),
        );
    }
    let diagnostic =
        Diagnostic::new(codes::UNCLOSED, scene.span(open), format!("this `{opener}` is not closed"))
            .label("opened here")
            .help(format!("close it with `{closer}`"));
    Some(match found {
        Some(token) => diagnostic.also(scene.span(token), format!("`{closer}` expected before this")),
        None => diagnostic,
    })
}

/// What was expected, in words: each once, and the noise left out.
fn wanted(scene: &Scene<'_>) -> String {
    let (expected, kind) = (scene.expected, scene.kind);
    // Where a number may stand any expression may; a buffer is a name to the parser alone.
    let takes_value = expected.contains(&Rule::number);
    let takes_view = scene.is_transfer() && !takes_value;
    let at_end = expected.contains(&Rule::EOI);
    let next = match kind {
        BadKind::Item => "the next declaration",
        BadKind::Fact => "the next fact",
        _ => "the next statement",
    };
    let mut words: Vec<&str> = Vec::new();
    for &rule in expected {
        let follows = matches!(
            rule,
            Rule::EOI
                | Rule::rbrace
                | Rule::lbrace
                | Rule::stmt_start
                | Rule::item_word
                | Rule::fact_word
                | Rule::role
        );
        let word = match rule {
            _ if at_end && follows => Some(next),
            Rule::ident | Rule::kw_if | Rule::lparen if takes_value => wording(Rule::expr),
            Rule::ident if takes_view => wording(Rule::view),
            _ => wording(rule),
        };
        words.extend(word.filter(|word| !words.contains(word)));
    }
    // A name may be called and a buffer cut, and any two words may be a call's path: true, and no help.
    for noise in ["`(`", "`[`", "`.`"] {
        let is_noise = noise != "`.`" || kind == BadKind::Stmt;
        if is_noise && words.len() > 1 {
            words.retain(|word| *word != noise);
        }
    }
    // The nearest thing first, what merely comes next last.
    words.sort_by_key(|word| match *word {
        "`)`" | "`]`" => -1,
        "an operator" => 1,
        word if word == next => 2,
        _ => 0,
    });
    match words.split_last() {
        None => next.replacen("the next", "a", 1),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// A token in the words of a message.
pub(crate) fn describe(scan: &Scan<'_>, token: Token) -> String {
    let text = scan.text_of(token);
    let short: String =
        text.chars().take(40).chain(if text.chars().nth(40).is_some() { Some('…') } else { None }).collect();
    match token.kind {
        Kind::Word if hints::is_reserved(text) => format!("the word `{short}`"),
        Kind::Word => format!("the name `{short}`"),
        Kind::Number => format!("the number `{short}`"),
        Kind::Text => format!("the text {short}"),
        _ => format!("`{short}`"),
    }
}

fn is_closer(scan: &Scan<'_>, token: Token) -> bool {
    token.kind == Kind::Sign && matches!(scan.text_of(token), ")" | "]" | "}")
}

fn unopened(file: FileId, scan: &Scan<'_>, token: Token, bad: &Bad) -> Diagnostic {
    let text = scan.text_of(token);
    let diagnostic = Diagnostic::new(
        codes::UNOPENED,
        Span::new(file, token.start, token.end),
        format!("this `{text}` closes nothing"),
    )
    .expected(if bad.kind == BadKind::Item { "a declaration" } else { "a statement" })
    .found(format!("`{text}`"))
    .help("remove it, or open what it should close");
    match bad.after.filter(|&(start, end)| scan.text[start..end].ends_with('}')) {
        Some((_, end)) => {
            diagnostic.also(Span::new(file, end - 1, end), "the last open brace was closed here")
        }
        None => diagnostic,
    }
}

fn loose_block(file: FileId, scan: &Scan<'_>, bad: &Bad) -> Diagnostic {
    let brace = Span::new(file, bad.start, bad.start + 1);
    let diagnostic = Diagnostic::new(codes::LOOSE_BLOCK, brace, "this block belongs to no statement")
        .expected("a statement")
        .found("`{`")
        .help("put `step`, `stage NAME`, `for … in …` or `if …` before it, or remove its braces");
    match bad.after.and_then(|(start, _)| scan.next_at(start)) {
        Some(token) if !scan.line_ends_between(token.start, bad.start) => {
            diagnostic.also(Span::new(file, token.start, token.end), "this statement takes no block")
        }
        _ => diagnostic,
    }
}

/// A `{` without its `}`. The parser only knows that the outermost was not closed; indentation tells which was meant.
fn unclosed_brace(file: FileId, scan: &Scan<'_>, bad: &Bad) -> Diagnostic {
    let culprit = misindented(scan, bad.start, bad.end);
    let open = culprit.map_or(bad.start, |(open, _)| open);
    let diagnostic =
        Diagnostic::new(codes::UNCLOSED, Span::new(file, open, open + 1), "this `{` is not closed")
            .label("opened here")
            .expected("`}`")
            .help("close it with `}`");
    let end = scan.next_at(bad.end);
    let diagnostic =
        diagnostic.found(end.map_or("the end of the file".to_owned(), |token| describe(scan, token)));
    match (culprit, end) {
        (Some((_, close)), _) => diagnostic.also(
            Span::new(file, close, close + 1),
            "this `}` closes it, but stands as if it closed an outer one",
        ),
        (None, Some(token)) => {
            diagnostic.also(Span::new(file, token.start, token.end), "`}` expected before this")
        }
        (None, None) => diagnostic,
    }
}

/// The first brace in the range whose closer begins a line further left than the line it was opened on.
fn misindented(scan: &Scan<'_>, start: usize, end: usize) -> Option<(usize, usize)> {
    let mut open = Vec::new();
    for &token in &scan.tokens[scan.index_at(start)..scan.index_at(end)] {
        match scan.text_of(token) {
            "{" if token.kind == Kind::Sign => open.push(token.start),
            "}" if token.kind == Kind::Sign => {
                let opener = open.pop()?;
                let (opener_indent, _) = indent(scan, opener);
                let (closer_indent, begins_line) = indent(scan, token.start);
                if begins_line && closer_indent < opener_indent {
                    return Some((opener, token.start));
                }
            }
            _ => {}
        }
    }
    None
}

/// How far the line of `offset` is indented, and whether `offset` is its first character.
fn indent(scan: &Scan<'_>, offset: usize) -> (usize, bool) {
    let line_start = scan.text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let before = &scan.text[line_start..offset];
    let blanks = before.len() - before.trim_start().len();
    (blanks, blanks == before.len())
}
