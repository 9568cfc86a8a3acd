//! What could not be read, so far as it makes other things look wrong: a name that an unreadable statement declares is
//! missed wherever it is used, and a statement that ends too early (`require n => 1`) says what nobody meant. One fault
//! is to be told once, so later passes ask here before they complain.

use crate::lower::{Bad, BadKind};
use crate::scan::{Kind, Scan, Token};
use coll_base::{FileId, Span};
use std::collections::BTreeSet;

/// The consequences of what a file's parser has told of.
#[derive(Clone, Debug, Default)]
pub struct Unread {
    /// Stretches that were not read at all.
    stretches: Vec<Span>,
    /// Statements and declarations of which only a part was read.
    torn: Vec<Span>,
    /// Names that the stretches which were not read may declare.
    names: BTreeSet<String>,
}

impl Unread {
    /// True if a place lies in a statement of which only a part was read: what it says is not what was meant.
    pub fn is_torn(&self, place: Span) -> bool {
        self.torn.iter().any(|torn| {
            torn.file == place.file && (torn.start..torn.end).contains(&place.start) && place.end <= torn.end
        })
    }

    /// True if something within a declaration was not read.
    pub fn is_unread_within(&self, whole: Span) -> bool {
        let within = |span: &&Span| span.file == whole.file && (whole.start..whole.end).contains(&span.start);
        self.stretches.iter().chain(&self.torn).any(|span| within(&span))
    }

    /// True if a name, or the last part of `collective.schedule`, may be declared by something that was not read.
    pub fn may_declare(&self, name: &str) -> bool {
        self.names.contains(name.rsplit('.').next().unwrap_or(name).trim())
    }

    /// Adds a stretch that no rule reads.
    pub(crate) fn add(&mut self, file: FileId, scan: &Scan<'_>, bad: &Bad, torn: Option<(usize, usize)>) {
        self.stretches.push(Span::new(file, bad.start, bad.end));
        self.torn.extend(torn.map(|(start, end)| Span::new(file, start, end)));
        if !matches!(bad.kind, BadKind::Item | BadKind::Fact | BadKind::Stmt) {
            return;
        }
        let tokens: Vec<Token> = scan.tokens[scan.index_at(bad.start)..scan.index_at(bad.end)]
            .iter()
            .copied()
            .filter(|token| token.kind != Kind::Comment)
            .collect();
        let text = |at: usize| tokens.get(at).map_or("", |&token| scan.text_of(token));
        let brings_in = bad.kind == BadKind::Item && matches!(text(0), "use" | "import" | "include");
        for (at, token) in tokens.iter().enumerate() {
            let declared = at > 0 && DECLARE.contains(&text(at - 1)) || matches!(text(at + 1), "=" | ":=");
            if token.kind == Kind::Word && (declared || brings_in) {
                self.names.insert(text(at).to_owned());
            }
        }
    }
}

/// The words that a new name follows, a few of other languages among them.
const DECLARE: [&str; 16] = [
    "let",
    "for",
    "each",
    "scratch",
    "fn",
    "schedule",
    "collective",
    "operator",
    "in",
    "out",
    "inout",
    "var",
    "const",
    "int",
    "auto",
    "def",
];
