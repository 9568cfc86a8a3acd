//! Lines and their tokens, and the questions a reader asks of them.

use crate::codes;
use coll_base::Diagnostic;
use std::fmt;

/// Why a text is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The line of the text, from 1.
    pub line: u32,
    /// The character of the line, from 1.
    pub column: u32,
    /// What would have been right.
    pub expected: String,
    /// What is there.
    pub found: String,
}

impl TextError {
    /// The same as a message to the user.
    pub fn diagnostic(&self) -> Diagnostic {
        let place = format!("line {}, column {} of the plan cannot be read", self.line, self.column);
        Diagnostic::unplaced(codes::TEXT, place)
            .expected(self.expected.clone())
            .found(self.found.clone())
            .help("mend the line; `collc compile --emit plan` shows how plans are written")
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextError { line, column, expected, found } = self;
        write!(f, "line {line}, column {column}: expected {expected}, found {found} [{}]", codes::TEXT)
    }
}

impl std::error::Error for TextError {}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// Letters, digits and `_`, not beginning with a digit.
    Word(String),
    Int(u64),
    /// Begins as a number and is none of 64 bits: `12x`, or too many digits. Nobody takes it.
    NoNumber(String),
    Text(String),
    Mark(&'static str),
}

/// What marks there are; longer ones first.
const MARKS: [&str; 11] = ["..", ".", "[", "]", ":", ",", ";", "=", "/", "-", "+"];

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Word(word) => write!(f, "`{word}`"),
            Token::Int(value) => write!(f, "`{value}`"),
            Token::NoNumber(text) => write!(f, "`{text}`"),
            Token::Text(text) => write!(f, "{text:?}"),
            Token::Mark(mark) => write!(f, "`{mark}`"),
        }
    }
}

/// One line, read from left to right.
pub(super) struct Cursor {
    pub(super) line: u32,
    tokens: Vec<Token>,
    /// Where each token begins, and then where the line ends: characters, from 1.
    columns: Vec<u32>,
    at: usize,
}

pub(super) type Read<T> = Result<T, TextError>;

impl Cursor {
    /// Cuts a line into tokens. A line with nothing on it has none.
    pub(super) fn new(line: u32, text: &str) -> Read<Cursor> {
        let (mut tokens, mut columns) = (Vec::new(), Vec::new());
        let mut rest = text;
        let mut column = 1;
        // Columns are counted as the line is walked along: starting anew for each token would take too long.
        let step = |before: &str, after: &str| before[..before.len() - after.len()].chars().count() as u32;
        loop {
            let trimmed = rest.trim_start();
            column += step(rest, trimmed);
            rest = trimmed;
            if rest.is_empty() || rest.starts_with("//") {
                break;
            }
            let (token, after) =
                token(rest).map_err(|(expected, found)| TextError { line, column, expected, found })?;
            tokens.push(token);
            columns.push(column);
            column += step(rest, after);
            rest = after;
        }
        columns.push(column);
        Ok(Cursor { line, tokens, columns, at: 0 })
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.tokens.len()
    }

    /// An error about the next token. A sign belongs to its number.
    pub(super) fn wrong(&self, expected: impl Into<String>) -> TextError {
        let found = match &self.tokens[self.at..] {
            [] => "the end of the line".to_string(),
            [Token::Mark("-"), Token::Int(value), ..] => format!("`-{value}`"),
            [Token::Mark("-"), Token::NoNumber(text), ..] => format!("`-{text}`"),
            [token, ..] => token.to_string(),
        };
        TextError { line: self.line, column: self.columns[self.at], expected: expected.into(), found }
    }

    /// An error about what was taken last.
    pub(super) fn refuse(&self, expected: impl Into<String>, found: impl ToString) -> TextError {
        let column = self.columns[self.at.saturating_sub(1)];
        TextError { line: self.line, column, expected: expected.into(), found: found.to_string() }
    }

    /// `expected`, and how large it may be if digits are there that are too many.
    fn wrong_number(&self, expected: &str, bits: u32) -> TextError {
        match self.tokens.get(self.at) {
            Some(Token::NoNumber(text)) if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.wrong(format!("{expected} below 2^{bits}"))
            }
            _ => self.wrong(expected),
        }
    }

    pub(super) fn end(&self) -> Read<()> {
        if self.is_at_end() { Ok(()) } else { Err(self.wrong("the end of the line")) }
    }

    /// Takes a word or a mark if it comes next.
    pub(super) fn eat(&mut self, what: &str) -> bool {
        let is_it = match self.tokens.get(self.at) {
            Some(Token::Word(word)) => word == what,
            Some(Token::Mark(mark)) => *mark == what,
            _ => false,
        };
        self.at += usize::from(is_it);
        is_it
    }

    /// Whether a mark follows the next token.
    pub(super) fn is_followed_by(&self, mark: &str) -> bool {
        matches!(self.tokens.get(self.at + 1), Some(Token::Mark(found)) if *found == mark)
    }

    pub(super) fn expect(&mut self, what: &str) -> Read<()> {
        if self.eat(what) { Ok(()) } else { Err(self.wrong(format!("`{what}`"))) }
    }

    pub(super) fn word(&mut self, expected: &str) -> Read<String> {
        match self.tokens.get_mut(self.at) {
            Some(Token::Word(word)) => {
                self.at += 1;
                Ok(std::mem::take(word))
            }
            _ => Err(self.wrong(expected)),
        }
    }

    pub(super) fn text(&mut self, expected: &str) -> Read<String> {
        match self.tokens.get_mut(self.at) {
            Some(Token::Text(text)) => {
                self.at += 1;
                Ok(std::mem::take(text))
            }
            _ => Err(self.wrong(expected)),
        }
    }

    pub(super) fn int(&mut self, expected: &str) -> Read<u64> {
        match self.tokens.get(self.at) {
            Some(&Token::Int(value)) => {
                self.at += 1;
                Ok(value)
            }
            _ => Err(self.wrong_number(expected, u64::BITS)),
        }
    }

    pub(super) fn u32(&mut self, expected: &str) -> Read<u32> {
        if matches!(self.tokens.get(self.at), Some(Token::NoNumber(_))) {
            return Err(self.wrong_number(expected, u32::BITS));
        }
        let value = self.int(expected)?;
        u32::try_from(value).map_err(|_| self.refuse(format!("{expected} below 2^32"), value))
    }

    pub(super) fn signed(&mut self, expected: &str) -> Read<i64> {
        let negative = self.eat("-");
        let value = i128::from(self.int(expected)?);
        let value = if negative { -value } else { value };
        i64::try_from(value).map_err(|_| self.refuse(format!("{expected} of 64 bits"), value))
    }

    /// `r3`, `op3`, `c3`, `slot3`: a letter or word with a number behind it.
    pub(super) fn numbered(&mut self, prefix: &str, expected: &str) -> Read<u32> {
        let number = match self.tokens.get(self.at) {
            Some(Token::Word(word)) => word.strip_prefix(prefix).and_then(plain_number),
            _ => None,
        };
        let number = number.ok_or_else(|| self.wrong(expected))?;
        self.at += 1;
        Ok(number)
    }

    /// `3` or `0..3`, after a first number that has been read.
    pub(super) fn range_from(&mut self, low: u32, expected: &str) -> Read<(u32, u32)> {
        if !self.eat("..") {
            let high =
                low.checked_add(1).ok_or_else(|| self.refuse(format!("{expected} below 2^32 - 1"), low))?;
            return Ok((low, high));
        }
        let high = self.u32(expected)?;
        if high < low {
            return Err(self.refuse(format!("{expected} not below {low}"), high));
        }
        Ok((low, high))
    }
}

/// Digits without a leading zero, so that each number has one spelling.
fn plain_number(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|b| b.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if plain { digits.parse().ok() } else { None }
}

/// The first token, and what follows it; or what was expected and found.
fn token(rest: &str) -> Result<(Token, &str), (String, String)> {
    let wrong = |expected: &str, found: String| (expected.to_string(), found);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
        return Ok((Token::Mark(mark), &rest[mark.len()..]));
    }
    let span = |keep: fn(char) -> bool| rest.find(|c| !keep(c)).unwrap_or(rest.len());
    let first = rest.chars().next().unwrap_or(' ');
    if first.is_ascii_digit() {
        let (digits, after) = rest.split_at(span(is_word));
        let token = digits.parse().map_or_else(|_| Token::NoNumber(digits.to_string()), Token::Int);
        return Ok((token, after));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let (word, after) = rest.split_at(span(is_word));
        return Ok((Token::Word(word.to_string()), after));
    }
    if first == '"' {
        let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        if let Some(Ok(text)) = strings.next() {
            return Ok((Token::Text(text), &rest[strings.byte_offset()..]));
        }
        return Err(wrong("a string that ends on its line", "one that does not".into()));
    }
    Err(wrong("a word, a number, a string or a mark", format!("`{}`", first.escape_default())))
}
