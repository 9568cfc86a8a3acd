//! The words of one line of a program's text, and what a reader asks of them. Every refusal says what was expected
//! and what was found; who knows the line's number adds it.

use std::ops::Range;

pub(crate) type Answer<T> = Result<T, String>;

/// The words of a line that are still to be read.
pub(crate) struct Words<'a> {
    tokens: &'a [&'a str],
}

impl<'a> Words<'a> {
    pub(crate) fn new(tokens: &'a [&'a str]) -> Words<'a> {
        Words { tokens }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    pub(crate) fn next(&mut self, expected: &str) -> Answer<&'a str> {
        let (first, rest) =
            self.tokens.split_first().ok_or_else(|| format!("expected {expected}, found the line's end"))?;
        self.tokens = rest;
        Ok(first)
    }

    pub(crate) fn take(&mut self, token: &str) -> bool {
        let found = self.tokens.first() == Some(&token);
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    pub(crate) fn expect(&mut self, token: &str) -> Answer<()> {
        match self.next(&format!("`{token}`"))? {
            found if found == token => Ok(()),
            found => Err(format!("expected `{token}`, found `{found}`")),
        }
    }

    pub(crate) fn name(&mut self) -> Answer<&'a str> {
        match self.next("a name")? {
            word if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => Ok(word),
            other => Err(format!("expected a name, found `{other}`")),
        }
    }

    pub(crate) fn parse<T: std::str::FromStr>(&mut self, what: &str) -> Answer<T> {
        let word = self.next(what)?;
        word.parse().map_err(|_| format!("expected {what}, found `{word}`"))
    }

    pub(crate) fn number_within(&mut self, allowed: Range<u32>, what: &str) -> Answer<u32> {
        let number: u32 = self.parse(what)?;
        match allowed.contains(&number) {
            true => Ok(number),
            false => Err(format!("{number} is not {what} in {}..{}", allowed.start, allowed.end)),
        }
    }

    /// `4` or `4..7`, not empty.
    pub(crate) fn range_within(&mut self, allowed: Range<u32>, what: &str) -> Answer<Range<u32>> {
        let start: u32 = self.parse(what)?;
        let end = if self.take("..") { self.parse(what)? } else { start.saturating_add(1) };
        match allowed.start <= start && start < end && end <= allowed.end {
            true => Ok(start..end),
            false => {
                Err(format!("{start}..{end} is not a run of {what} in {}..{}", allowed.start, allowed.end))
            }
        }
    }

    pub(crate) fn end(&self) -> Answer<()> {
        match self.tokens.first() {
            None => Ok(()),
            Some(word) => Err(format!("expected the line's end, found `{word}`")),
        }
    }
}

/// Words, numbers, `..`, `==` and single marks.
pub(crate) fn tokenize(line: &str) -> Answer<Vec<&str>> {
    let mut tokens = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            c if word(c) => rest.find(|c| !word(c)).unwrap_or(rest.len()),
            '.' if rest.starts_with("..") => 2,
            '=' if rest.starts_with("==") => 2,
            '.' | '=' | '[' | ']' | '{' | '}' | ':' | ',' | '/' | '-' => 1,
            other => return Err(format!("`{other}` has no meaning here")),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}
