//! JSON with places: a tree of a valid text in which each value knows where it stands, so that messages can point at it.

use crate::codes::{MISSING, SYNTAX, VALUE};
use coll_base::{Diagnostic, FileId, Span};
use std::ops::{Range, RangeInclusive};

/// A value and its place.
pub(crate) struct Json<'t> {
    file: FileId,
    text: &'t str,
    range: Range<usize>,
    what: What<'t>,
}

enum What<'t> {
    Object(Vec<(&'t str, Json<'t>)>),
    Array(Vec<Json<'t>>),
    /// A number, a text with its quotes, `true`, `false` or `null`.
    Plain,
}

/// What could be read, or why not.
pub(crate) type Read<T> = Result<T, Box<Diagnostic>>;

/// Reads a whole text.
pub(crate) fn parse(file: FileId, text: &str) -> Read<Json<'_>> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let before: usize = text.split_inclusive('\n').take(error.line().max(1) - 1).map(str::len).sum();
        let mut start = (before + error.column().max(1) - 1).min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let end = text[start..].chars().next().map_or(start, |c| start + c.len_utf8());
        let told = Diagnostic::new(SYNTAX, Span::new(file, start, end), "this is not the JSON of a plan")
            .expected("one JSON object")
            .found(error.to_string())
            .help("mend the file there");
        return Err(Box::new(told));
    }
    let mut scanner = Scanner { file, text, at: 0 };
    Ok(scanner.value())
}

/// Walks a text that is known to be valid.
struct Scanner<'t> {
    file: FileId,
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn blank(&mut self) {
        while self.byte().is_ascii_whitespace() {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Json<'t> {
        self.blank();
        let start = self.at;
        let what = match self.byte() {
            b'{' => What::Object(self.members()),
            b'[' => What::Array(self.items()),
            b'"' => {
                self.string();
                What::Plain
            }
            _ => {
                while !matches!(self.byte(), b',' | b']' | b'}' | 0) && !self.byte().is_ascii_whitespace() {
                    self.at += 1;
                }
                What::Plain
            }
        };
        Json { file: self.file, text: self.text, range: start..self.at, what }
    }

    /// A text, without its quotes and with its escapes as they stand.
    fn string(&mut self) -> &'t str {
        let start = self.at + 1;
        self.at = start;
        while self.byte() != b'"' {
            self.at += if self.byte() == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        &self.text[start..self.at - 1]
    }

    /// Whether another member follows; goes past a comma or the end.
    fn more(&mut self, end: u8) -> bool {
        self.blank();
        if self.byte() == b',' {
            self.at += 1;
            self.blank();
        }
        let ends = self.byte() == end;
        self.at += usize::from(ends);
        !ends
    }

    fn members(&mut self) -> Vec<(&'t str, Json<'t>)> {
        self.at += 1;
        let mut members = Vec::new();
        while self.more(b'}') {
            let name = self.string();
            self.blank();
            self.at += 1;
            members.push((name, self.value()));
        }
        members
    }

    fn items(&mut self) -> Vec<Json<'t>> {
        self.at += 1;
        let mut items = Vec::new();
        while self.more(b']') {
            items.push(self.value());
        }
        items
    }
}

impl<'t> Json<'t> {
    pub(crate) fn span(&self) -> Span {
        // Of a long value, its beginning.
        let text = &self.text[self.range.clone()];
        let end = text.find('\n').map_or(self.range.end, |at| self.range.start + at.max(1));
        Span::new(self.file, self.range.start, end)
    }

    fn raw(&self) -> &'t str {
        &self.text[self.range.clone()]
    }

    /// A member, if it is there.
    pub(crate) fn get(&self, name: &str) -> Option<&Json<'t>> {
        match &self.what {
            What::Object(members) => members.iter().find(|(known, _)| *known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// A member that has to be there.
    pub(crate) fn need(&self, name: &str) -> Read<&Json<'t>> {
        self.get(name).ok_or_else(|| {
            let members = match &self.what {
                What::Object(members) => {
                    members.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                }
                _ => "no object".into(),
            };
            let told = Diagnostic::new(MISSING, self.span(), format!("there is no `{name}` in this object"))
                .expected(format!("a member `{name}`"))
                .found(members)
                .help(format!("add `{name}`"));
            Box::new(told)
        })
    }

    pub(crate) fn wrong(&self, name: &str, expected: impl Into<String>) -> Box<Diagnostic> {
        let raw: String = self.raw().chars().take(40).collect();
        let told = Diagnostic::new(VALUE, self.span(), format!("`{name}` cannot be {raw}"))
            .expected(expected)
            .found(raw)
            .help(format!("give `{name}` such a value"));
        Box::new(told)
    }

    /// The items of a list.
    pub(crate) fn list(&self, name: &str) -> Read<&[Json<'t>]> {
        match &self.what {
            What::Array(items) => Ok(items),
            _ => Err(self.wrong(name, "a list")),
        }
    }

    /// The items of a member that may be missing.
    pub(crate) fn list_of(&self, name: &str) -> Read<&[Json<'t>]> {
        self.get(name).map_or(Ok(&[]), |value| value.list(name))
    }

    /// A text.
    pub(crate) fn word(&self, name: &str) -> Read<&'t str> {
        let inner = self.raw().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inner.ok_or_else(|| self.wrong(name, "a text in quotes"))
    }

    /// A whole number of a range.
    pub(crate) fn int(&self, name: &str, range: RangeInclusive<u64>) -> Read<u64> {
        let value: Option<u64> = self.raw().parse().ok();
        value.filter(|value| range.contains(value)).ok_or_else(|| {
            self.wrong(name, format!("a whole number from {} to {}", range.start(), range.end()))
        })
    }

    pub(crate) fn flag(&self, name: &str) -> Read<bool> {
        match self.raw() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.wrong(name, "`true` or `false`")),
        }
    }

    /// A member that is a whole number of a range.
    pub(crate) fn number(&self, name: &str, range: RangeInclusive<u64>) -> Read<u64> {
        self.need(name)?.int(name, range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_where_they_stand() {
        let text = "{ \"a\" : [1, {\"b\\\"\": \"x y\"}, []],\n \"c\":-2.5e3 , \"d\": true}";
        let json = parse(FileId(0), text).unwrap();
        let a = json.need("a").unwrap().list("a").unwrap();
        assert_eq!(a.len(), 3);
        assert_eq!(a[0].int("a", 0..=9).unwrap(), 1);
        assert_eq!(a[1].need("b\\\"").unwrap().word("b").unwrap(), "x y");
        let c = json.need("c").unwrap();
        assert_eq!(&text[c.span().start as usize..c.span().end as usize], "-2.5e3");
        assert!(json.need("d").unwrap().flag("d").unwrap());
        assert_eq!(json.need("e").err().unwrap().code, MISSING);
        assert_eq!(c.int("c", 0..=1).unwrap_err().code, VALUE);
    }

    #[test]
    fn what_is_no_json_says_where() {
        let told = parse(FileId(0), "{\n \"a\": ,\n}").err().unwrap();
        let span = told.primary.as_ref().unwrap().span;
        assert_eq!((told.code, span.start), (SYNTAX, 8));
        assert!(parse(FileId(0), "").is_err());
    }
}
