//! The front door: text in, tree and diagnostics out.

use crate::ast::{File, Item};
use crate::codes;
use crate::grammar::{Grammar, Rule};
use crate::lower::{self, Bad, BadKind, Lowered};
use crate::recover::{self, Explained};
use crate::scan::{Kind, Scan};
use crate::unread::Unread;
use coll_base::{Diagnostic, FileId, Span};
use pest::Parser;

/// The largest file that is read, in bytes and in tokens. pest's notes on a token take some three hundred bytes.
const SIZE_MAX_BYTES: usize = 16 << 20;
const TOKENS_MAX: usize = 4 << 20;
/// How many brackets may stand in each other: every reader of the tree may recurse.
const NESTING_MAX: usize = 200;
/// How many diagnostics are shown, before one that counts the rest.
const SHOWN_MAX: usize = 20;

/// A file as read: always a tree, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree, with `Error` nodes where text could not be read.
    pub file: File,
    /// What is wrong, in the order of the text; empty if nothing is. At most 20, and one that counts the rest.
    pub diagnostics: Vec<Diagnostic>,
    /// What follows from that: later passes are not to complain of it.
    pub unread: Unread,
}

/// Reads a file. Any text gives a tree; what could not be read is told in the diagnostics.
pub fn parse(file: FileId, text: &str) -> Parsed {
    match read(file, text) {
        Ok((scan, lowered)) => finish(file, &scan, lowered),
        Err(diagnostic) => refused(file, text, *diagnostic),
    }
}

/// A tree that is one error, for a text that is not read at all.
fn refused(file: FileId, text: &str, diagnostic: Diagnostic) -> Parsed {
    let whole = Span::new(file, 0, text.len().min(u32::MAX as usize));
    Parsed {
        file: File { docs: Vec::new(), items: vec![Item::Error(whole)] },
        diagnostics: vec![diagnostic],
        unread: Unread::default(),
    }
}

fn read(file: FileId, text: &str) -> Result<(Scan<'_>, Lowered), Box<Diagnostic>> {
    screen(file, text)?;
    let scan = Scan::new(text);
    screen_tokens(file, &scan)?;
    // Every text is a `file` by the recovery productions; only pest's own guards could refuse one.
    let mut pairs = Grammar::parse(Rule::file, text).map_err(|error| {
        let whole = Span::new(file, 0, text.len());
        let message = format!("the file cannot be read: {}", error.variant.message());
        Box::new(Diagnostic::new(codes::TOO_MUCH, whole, message).help("split it, or nest less"))
    })?;
    let pair = pairs.next().expect("invariant: a parse gives the pair of its rule");
    let lowered = lower::lower(file, &scan, pair);
    Ok((scan, lowered))
}

/// Refuses what is too large, and what is no text.
fn screen(file: FileId, text: &str) -> Result<(), Box<Diagnostic>> {
    if text.len() > SIZE_MAX_BYTES {
        return Err(too_large(file, text.len(), SIZE_MAX_BYTES, "bytes"));
    }
    let control = text.char_indices().find(|(_, c)| c.is_control() && !matches!(c, '\t' | '\r' | '\n'));
    let Some((at, character)) = control else { return Ok(()) };
    let found = match character {
        '\0' => "a zero byte".to_owned(),
        _ => format!("the control character U+{:04X}", character as u32),
    };
    Err(Box::new(
        Diagnostic::new(codes::STRAY_CHARACTER, Span::new(file, at, at + character.len_utf8()), "the file is not text")
            .expected("UTF-8 text")
            .found(format!("{found} at byte {at}"))
            .help("if it is a compiled plan, give it to the commands that take plans; if it is text, remove the character"),
    ))
}

fn too_large(file: FileId, size: usize, limit: usize, unit: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(codes::TOO_MUCH, Span::new(file, 0, 0), format!("the file has {size} {unit}"))
            .expected(format!("at most {limit} {unit}"))
            .found(format!("{size} {unit}"))
            .help("write loops where one was unrolled, or split the file"),
    )
}

/// Refuses what would cost too much to read, and what nests too deep for those who recurse over the tree.
fn screen_tokens(file: FileId, scan: &Scan<'_>) -> Result<(), Box<Diagnostic>> {
    if scan.tokens.len() > TOKENS_MAX {
        return Err(too_large(file, scan.tokens.len(), TOKENS_MAX, "words and signs"));
    }
    let Some(token) = scan.too_deep(NESTING_MAX) else { return Ok(()) };
    let message = format!("brackets stand more than {NESTING_MAX} deep in each other");
    Err(Box::new(
        Diagnostic::new(codes::TOO_MUCH, Span::new(file, token.start, token.end), message)
            .expected(format!("at most {NESTING_MAX} levels"))
            .found("one more here")
            .help("name parts with `let`, `fn` or a schedule of their own, or close what was left open"),
    ))
}

/// Adds what the bad stretches and the tokens have to tell, in the order of the text.
fn finish(file: FileId, scan: &Scan<'_>, lowered: Lowered) -> Parsed {
    let Lowered { file: tree, mut diagnostics, bad } = lowered;
    diagnostics.extend(scan.tokens.iter().filter_map(|&token| unclosed_text(file, scan, token)));
    let mut unread = Unread::default();
    let untold = explain_all(file, scan, &bad, &mut diagnostics, &mut unread);
    if tree.items.is_empty() && diagnostics.is_empty() {
        diagnostics.push(
            Diagnostic::new(
                codes::EMPTY,
                Span::new(file, scan.text.len(), scan.text.len()),
                "the file declares nothing",
            )
            .expected("a schedule, collective, operator, `fn` or `use`")
            .found("no declaration")
            .help("write one, such as `schedule mine: allreduce { … }`"),
        );
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary.as_ref().map_or(0, |label| label.span.start));
    // Two stretches may fail at one place, for one reason.
    diagnostics
        .dedup_by(|later, earlier| later.message == earlier.message && later.primary == earlier.primary);
    join_strays(scan, &mut diagnostics);
    bound(&mut diagnostics, untold);
    Parsed { file: tree, diagnostics, unread }
}

fn unclosed_text(file: FileId, scan: &Scan<'_>, token: crate::scan::Token) -> Option<Diagnostic> {
    let text = scan.text_of(token);
    if token.kind != Kind::Text || (text.len() > 1 && text.ends_with('"')) {
        return None;
    }
    Some(
        Diagnostic::new(
            codes::UNCLOSED_TEXT,
            Span::new(file, token.start, token.end),
            "this text does not end",
        )
        .expected("`\"` on the same line")
        .found("the end of the line")
        .help("close it with `\"`; a text cannot go on in the next line"),
    )
}

/// Explains the bad stretches, the first ones closely; returns how many were left out.
///
/// Two kinds are consequences of what was said before and are not told: blocks that end where one did, and, after a
/// missing `{`, the statements and closers that it left without a home.
fn explain_all(
    file: FileId,
    scan: &Scan<'_>,
    bad: &[Bad],
    diagnostics: &mut Vec<Diagnostic>,
    unread: &mut Unread,
) -> usize {
    let mut in_order: Vec<&Bad> = bad.iter().collect();
    in_order.sort_by_key(|bad| if bad.kind == BadKind::Close { bad.end } else { bad.start });
    let (mut told, mut untold, mut homeless, mut closed_at) = (0, 0, false, None);
    let mut last_end = None;
    for bad in in_order {
        let last_end = last_end.replace(bad.end);
        // A stretch that goes on where one ended, in its line, is the rest of it.
        let goes_on = |end: usize| end <= bad.start && scan.text[end..bad.start].trim().is_empty();
        let in_line = |&end: &usize| goes_on(end) && !scan.line_ends_between(end, bad.start);
        if bad.kind == BadKind::Stmt && last_end.as_ref().is_some_and(in_line) {
            unread.add(file, scan, bad, None);
            continue;
        }
        if homeless && bad.kind == BadKind::Item && recover::is_homeless(scan, bad) {
            continue;
        }
        if bad.kind == BadKind::Close && closed_at.replace(bad.end) == Some(bad.end) {
            continue;
        }
        if told > SHOWN_MAX {
            unread.add(file, scan, bad, None);
            untold += 1;
            continue;
        }
        let Explained { diagnostic, misses_opener, torn } = recover::explain(file, scan, bad);
        unread.add(file, scan, bad, torn);
        homeless |= misses_opener;
        told += 1;
        diagnostics.push(diagnostic);
    }
    untold
}

/// A character that means nothing is told once, however often a name has it.
fn join_strays(scan: &Scan<'_>, diagnostics: &mut Vec<Diagnostic>) {
    let mut first: Vec<(String, usize, usize)> = Vec::new();
    let mut kept: Vec<Diagnostic> = Vec::new();
    for diagnostic in diagnostics.drain(..) {
        if diagnostic.code != codes::STRAY_CHARACTER {
            kept.push(diagnostic);
            continue;
        }
        match first.iter_mut().find(|(message, ..)| *message == diagnostic.message) {
            Some((_, _, again)) => *again += 1,
            None => {
                first.push((diagnostic.message.clone(), kept.len(), 0));
                kept.push(diagnostic);
            }
        }
    }
    for (_, at, again) in first.into_iter().filter(|(.., again)| *again > 0) {
        let found = kept[at]
            .primary
            .as_ref()
            .map_or("", |label| &scan.text[label.span.start as usize..label.span.end as usize]);
        let times = if again == 1 { "once more".to_owned() } else { format!("{again} times more") };
        let note = format!("the same `{found}` is in the way {times}");
        kept[at].notes.push(note);
    }
    *diagnostics = kept;
}

/// Keeps the first [`SHOWN_MAX`] and counts the rest.
fn bound(diagnostics: &mut Vec<Diagnostic>, untold: usize) {
    let more = diagnostics.len().saturating_sub(SHOWN_MAX) + untold;
    if more == 0 {
        return;
    }
    let first_hidden = diagnostics.get(SHOWN_MAX).and_then(|diagnostic| diagnostic.primary.clone());
    diagnostics.truncate(SHOWN_MAX);
    let message =
        format!("{more} more {}", if more == 1 { "error is not shown" } else { "errors are not shown" });
    let mut last = Diagnostic::unplaced(codes::TOO_MANY, message)
        .help("mend the first ones; later ones often follow from them");
    last.primary = first_hidden.map(|label| coll_base::Label { text: "the next one".into(), ..label });
    diagnostics.push(last);
}
