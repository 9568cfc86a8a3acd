//! Text cut into tokens, comments included, and the first look at it: is it text at all, does it nest too deep,
//! which quotes and brackets stay open.
//!
//! The grammar does not need the tokens. They serve what pest cannot say: where a token that surprised it ends, what
//! stands before it, where a bracket was opened, which comments lie between two tokens. All of it in one pass.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name or a word of the language.
    Word,
    /// Digits and what clings to them.
    Number,
    /// A text in quotes; the closing quote may be missing.
    Text,
    /// An operator, a bracket, a sign.
    Sign,
    /// `// …` up to the line's end, which is not part of it.
    Comment,
    /// A character that the language has no use for.
    Stray,
}

/// A token: `start..end` in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A text and its tokens.
pub(crate) struct Scan<'t> {
    pub(crate) text: &'t str,
    /// All tokens in order, comments among them.
    pub(crate) tokens: Vec<Token>,
}

/// Signs of more than one character, longest first. Some are in no grammar: they are read as one so that a message
/// can name them.
const LONG_SIGNS: [&str; 21] = [
    "..=", "...", "..", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "**", ":=", "->", "=>", "+=", "-=",
    "*=", "++", "::", "/*",
];

impl<'t> Scan<'t> {
    /// Cuts a text into tokens. Never fails: what fits nowhere is [`Kind::Stray`].
    pub(crate) fn new(text: &'t str) -> Scan<'t> {
        let mut tokens = Vec::new();
        let mut at = if text.starts_with('\u{FEFF}') { '\u{FEFF}'.len_utf8() } else { 0 };
        while let Some(first) = text[at..].chars().next() {
            if matches!(first, ' ' | '\t' | '\r' | '\n') {
                at += 1;
                continue;
            }
            let (kind, length) = token_at(&text[at..], first);
            tokens.push(Token { kind, start: at, end: at + length });
            at += length;
        }
        Scan { text, tokens }
    }

    /// A token's text.
    pub(crate) fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.start..token.end]
    }

    /// Index of the first token that starts at `offset` or later.
    pub(crate) fn index_at(&self, offset: usize) -> usize {
        self.tokens.partition_point(|token| token.start < offset)
    }

    /// The first token from `offset` on that is no comment.
    pub(crate) fn next_at(&self, offset: usize) -> Option<Token> {
        self.tokens[self.index_at(offset)..].iter().copied().find(|token| token.kind != Kind::Comment)
    }

    /// The last token that ends at `offset` or before and is no comment.
    pub(crate) fn previous_to(&self, offset: usize) -> Option<Token> {
        let count = self.tokens.partition_point(|token| token.end <= offset);
        self.tokens[..count].iter().rev().copied().find(|token| token.kind != Kind::Comment)
    }

    /// Where the last token before `end` ends, if it lies after `start`: pest counts the blanks and comments that
    /// follow a rule as part of it.
    pub(crate) fn trimmed_end(&self, start: usize, end: usize) -> usize {
        self.previous_to(end).map_or(start, |token| token.end).max(start)
    }

    /// True if a line ends between the two offsets.
    pub(crate) fn line_ends_between(&self, start: usize, end: usize) -> bool {
        start < end && self.text[start..end].contains('\n')
    }

    /// The innermost bracket among the tokens in `start..end` that nothing in there closes.
    pub(crate) fn open_bracket(&self, start: usize, end: usize) -> Option<Token> {
        let mut open = Vec::new();
        for &token in &self.tokens[self.index_at(start)..] {
            if token.start >= end {
                break;
            }
            match self.text_of(token) {
                "(" | "[" | "{" if token.kind == Kind::Sign => open.push(token),
                ")" | "]" | "}" if token.kind == Kind::Sign => _ = open.pop(),
                _ => {}
            }
        }
        open.pop()
    }

    /// The first opener that stands inside more than `limit` others.
    pub(crate) fn too_deep(&self, limit: usize) -> Option<Token> {
        let mut depth = 0usize;
        for &token in self.tokens.iter().filter(|token| token.kind == Kind::Sign) {
            match self.text_of(token) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > limit {
                return Some(token);
            }
        }
        None
    }
}

/// Kind and length in bytes of the token that `text` begins with; `first` is its first character.
fn token_at(text: &str, first: char) -> (Kind, usize) {
    let bytes = text.as_bytes();
    if text.starts_with("//") {
        let line = text.split('\n').next().unwrap_or(text);
        (Kind::Comment, line.trim_end().len())
    } else if first.is_ascii_alphabetic() || first == '_' {
        (Kind::Word, run(bytes, 0))
    } else if first.is_ascii_digit() {
        (Kind::Number, number_length(bytes))
    } else if first == '"' {
        let inner = text[1..].find(['"', '\n', '\r']).map_or(text.len(), |at| at + 1);
        (Kind::Text, inner + usize::from(bytes.get(inner) == Some(&b'"')))
    } else if let Some(sign) = LONG_SIGNS.iter().find(|sign| text.starts_with(**sign)) {
        (Kind::Sign, sign.len())
    } else if "()[]{}<>=+-*/%^&|.,:;".contains(first) {
        (Kind::Sign, 1)
    } else {
        (Kind::Stray, first.len_utf8())
    }
}

/// Where the letters, digits and underscores from `at` on end.
fn run(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}

/// Length of the number at the start: as the grammar's `number`, `1_000`, `0.5`, `1e-3`, and the wrong `12ab`.
fn number_length(bytes: &[u8]) -> usize {
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let exponent = |at: usize| {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        matches!(bytes.get(at), Some(b'e' | b'E')).then_some(at + 1 + sign).filter(|&digit| is_digit(digit))
    };
    let plain = |mut at: usize| {
        while bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') && exponent(at).is_none()
        {
            at += 1;
        }
        at
    };
    let mut at = plain(1);
    if bytes.get(at) == Some(&b'.') && is_digit(at + 1) {
        at = plain(at + 2);
    }
    exponent(at).map_or(at, |digit| run(bytes, digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let scan = Scan::new(text);
        scan.tokens.iter().map(|&token| scan.text_of(token)).collect()
    }

    #[test]
    fn cuts_where_the_grammar_cuts() {
        assert_eq!(
            words("0..=n 1.5e-3 1..2 12ab 0.data"),
            ["0", "..=", "n", "1.5e-3", "1", "..", "2", "12ab", "0", ".", "data"]
        );
        assert_eq!(
            words("a<<b**c:=d//x  \r\n\"open\n\"s\"é"),
            ["a", "<<", "b", "**", "c", ":=", "d", "//x", "\"open", "\"s\"", "é"]
        );
        assert_eq!(words("1e5 1e 1e+ 2E+3x"), ["1e5", "1e", "1e", "+", "2E+3x"]);
    }

    #[test]
    fn finds_the_bracket_that_stays_open() {
        let scan = Scan::new("send data[(r - s) % (n to r");
        let open = scan.open_bracket(0, 24).map(|token| token.start);
        assert_eq!(open, Some(20));
        assert!(scan.too_deep(2).is_none());
        assert_eq!(scan.too_deep(1).map(|token| token.start), Some(10));
    }
}
