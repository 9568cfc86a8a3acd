//! A table of a TOML file whose keys are asked for by name. What is not of the type that was asked for, and what nobody asks
//! for, is told with its place.

use crate::codes;
use crate::units::{self, UnitError};
use coll_base::{Code, Diagnostic, FileId, Span, nearest};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// After so many faults the rest is not told.
const FAULTS_MAX: usize = 20;

/// The faults of a file.
pub(super) struct Faults {
    pub(super) file: FileId,
    pub(super) found: Vec<Diagnostic>,
}

impl Faults {
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.file, range.start, range.end)
    }

    pub(super) fn add(&mut self, fault: Diagnostic) {
        if self.found.len() < FAULTS_MAX {
            self.found.push(fault);
        }
    }

    fn tell(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.add(Diagnostic::new(code, span, message));
    }
}

/// A table and what it describes: `a [[machine]]`.
pub(super) struct Table<'t> {
    entries: &'t DeTable<'t>,
    pub(super) span: Span,
    what: &'static str,
    /// It has a key that nobody knows: one that is missing may be misspelt, and was told of already.
    has_strangers: bool,
}

impl<'t> Table<'t> {
    /// A table that has these keys and no others.
    pub(super) fn new(
        entries: &'t DeTable<'t>,
        span: Span,
        what: &'static str,
        keys: &[&str],
        faults: &mut Faults,
    ) -> Table<'t> {
        let mut unknown: Vec<_> =
            entries.keys().filter(|key| !keys.contains(&key.get_ref().as_ref())).collect();
        unknown.sort_by_key(|key| key.span().start);
        let has_strangers = !unknown.is_empty();
        for key in unknown {
            let name: String = key.get_ref().chars().take(60).collect();
            let help = match nearest(&name, keys.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("{what} has the keys {}", keys.join(", ")),
            };
            let span = faults.span(key.span());
            faults.add(
                Diagnostic::new(codes::UNKNOWN, span, format!("unknown key `{name}` in {what}")).help(help),
            );
        }
        Table { entries, span, what, has_strangers }
    }

    fn get(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.entries.get(key)
    }

    /// Tells that a key is missing which must be there, with a way out.
    pub(super) fn demand(&self, key: &str, help: Option<&str>, faults: &mut Faults) {
        if self.get(key).is_none() && !self.has_strangers {
            let fault = Diagnostic::new(codes::FORM, self.span, format!("{} has no `{key}`", self.what));
            faults.add(match help {
                Some(help) => fault.help(help),
                None => fault,
            });
        }
    }

    /// A text.
    pub(super) fn text(&self, key: &str, faults: &mut Faults) -> Option<(&'t str, Span)> {
        let value = self.get(key)?;
        let span = faults.span(value.span());
        match value.get_ref() {
            DeValue::String(text) => Some((text.as_ref(), span)),
            other => {
                let found = other.type_str();
                faults.add(
                    Diagnostic::new(codes::FORM, span, format!("`{key}` is not a text"))
                        .expected("a text in quotes")
                        .found(found),
                );
                None
            }
        }
    }

    /// A whole number of `1..=max`.
    pub(super) fn count(&self, key: &str, max: u64, faults: &mut Faults) -> Option<u32> {
        let value = self.get(key)?;
        let span = faults.span(value.span());
        let DeValue::Integer(digits) = value.get_ref() else {
            let found = value.get_ref().type_str();
            let fault = Diagnostic::new(codes::FORM, span, format!("`{key}` is no whole number"));
            faults.add(fault.expected("a whole number").found(found));
            return None;
        };
        match u64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(count) if (1..=max).contains(&count) => Some(count as u32),
            _ => {
                let message = format!("`{key}` is {}; 1 to {max} are possible", digits.as_str());
                faults.tell(codes::FIGURE, span, message);
                None
            }
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, key: &str, faults: &mut Faults) -> Option<bool> {
        let value = self.get(key)?;
        let span = faults.span(value.span());
        if value.get_ref().as_bool().is_none() {
            let found = value.get_ref().type_str();
            let fault = Diagnostic::new(codes::FORM, span, format!("`{key}` is neither true nor false"));
            faults.add(fault.expected("true or false").found(found));
        }
        value.get_ref().as_bool()
    }

    /// A figure with its unit, which `parse` reads.
    pub(super) fn figure(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<f64, UnitError>,
        faults: &mut Faults,
    ) -> Option<f64> {
        let value = self.get(key)?;
        let span = faults.span(value.span());
        let bare = |number: &str| match parse(number) {
            Err(UnitError::Range(message)) => (codes::FIGURE, format!("`{key}`: {message}")),
            _ => (codes::FORM, format!("`{key}` is a number without a unit")),
        };
        let (code, message) = match value.get_ref() {
            DeValue::String(text) => match parse(text) {
                Ok(figure) => return Some(figure),
                Err(UnitError::Form(message)) => (codes::FORM, format!("`{key}`: {message}")),
                Err(UnitError::Range(message)) => (codes::FIGURE, format!("`{key}`: {message}")),
            },
            DeValue::Integer(number) => bare(number.as_str()),
            DeValue::Float(number) => bare(number.as_str()),
            other => (codes::FORM, format!("`{key}` is no figure, but a value of type {}", other.type_str())),
        };
        let unit = if units::time_us("1us").is_ok() && parse("1us").is_ok() { "1.5us" } else { "25GB/s" };
        faults.add(
            Diagnostic::new(code, span, message)
                .expected(format!("a number and its unit in quotes, such as \"{unit}\"")),
        );
        None
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)], faults: &mut Faults) -> Option<T> {
        let (text, span) = self.text(key, faults)?;
        if let Some(&(_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(value);
        }
        let known: Vec<&str> = words.iter().map(|&(word, _)| word).collect();
        let mut fault = Diagnostic::new(codes::UNKNOWN, span, format!("`{key}` cannot be `{text}`"));
        fault = fault.expected(known.join(", "));
        if let Some(near) = nearest(text, known.into_iter()) {
            fault = fault.help(format!("did you mean `{near}`?"));
        }
        faults.add(fault);
        None
    }

    /// Two texts, which must be there, and their place.
    pub(super) fn two(&self, key: &str, faults: &mut Faults) -> Option<([String; 2], Span)> {
        self.demand(key, None, faults);
        let value = self.get(key)?;
        let span = faults.span(value.span());
        let texts = value.get_ref().as_array().map(|array| {
            array.iter().map(|item| item.get_ref().as_str().map(str::to_string)).collect::<Option<Vec<_>>>()
        });
        if let Some(Some(texts)) = texts
            && let Ok(two) = <[String; 2]>::try_from(texts)
        {
            return Some((two, span));
        }
        let fault = Diagnostic::new(codes::FORM, span, format!("`{key}` does not name two ends"));
        faults.add(fault.expected("two names or patterns: [\"gpu*\", \"nvswitch\"]"));
        None
    }

    /// The tables of `[[key]]`, with their places.
    pub(super) fn tables(&self, key: &str, faults: &mut Faults) -> Vec<(&'t DeTable<'t>, Span)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let wrong = |span: Span, faults: &mut Faults| {
            let fault = Diagnostic::new(codes::FORM, span, format!("`{key}` is not a list of tables"));
            faults.add(fault.help(format!("write `[[{key}]]` above each")));
        };
        let Some(items) = value.get_ref().as_array() else {
            wrong(faults.span(value.span()), faults);
            return Vec::new();
        };
        let mut tables = Vec::new();
        for item in items.iter() {
            let span = faults.span(item.span());
            match item.get_ref().as_table() {
                Some(table) => tables.push((table, span)),
                None => wrong(span, faults),
            }
        }
        tables
    }

    /// The table `[key]`.
    pub(super) fn table(&self, key: &str, faults: &mut Faults) -> Option<(&'t DeTable<'t>, Span)> {
        let value = self.get(key)?;
        let span = faults.span(value.span());
        let table = value.get_ref().as_table();
        if table.is_none() {
            faults.add(
                Diagnostic::new(codes::FORM, span, format!("`{key}` is not a table"))
                    .help(format!("write `[{key}]`, once")),
            );
        }
        Some((table?, span))
    }
}
