//! The commonest mistakes, each with the way out. A hint looks at the words round the place where reading failed.

use crate::codes;
use crate::grammar::Rule;
use crate::lower::BadKind;
use crate::recover::describe;
use crate::scan::{Kind, Scan, Token};
use coll_base::{Diagnostic, FileId, Span};

/// Where reading failed.
pub(crate) struct Scene<'s> {
    pub(crate) file: FileId,
    pub(crate) scan: &'s Scan<'s>,
    /// What should have stood there.
    pub(crate) kind: BadKind,
    /// Start of the statement or declaration.
    pub(crate) start: usize,
    /// Where it could not be read on.
    pub(crate) at: usize,
    /// What could have stood there.
    pub(crate) expected: &'s [Rule],
}

impl<'s> Scene<'s> {
    pub(crate) fn span(&self, token: Token) -> Span {
        Span::new(self.file, token.start, token.end)
    }

    pub(crate) fn text_of(&self, token: Token) -> &'s str {
        self.scan.text_of(token)
    }

    /// What was found, in words.
    pub(crate) fn found_text(&self) -> String {
        self.found().map_or("the end of the file".into(), |token| describe(self.scan, token))
    }

    /// True in a statement that moves data.
    pub(crate) fn is_transfer(&self) -> bool {
        self.kind == BadKind::Stmt && matches!(self.head(), "send" | "recv" | "copy" | "reduce")
    }

    fn text(&self, token: Option<Token>) -> &'s str {
        token.map_or("", |token| self.scan.text_of(token))
    }

    pub(crate) fn found(&self) -> Option<Token> {
        self.scan.next_at(self.at)
    }

    pub(crate) fn previous(&self) -> Option<Token> {
        self.scan.previous_to(self.at).filter(|token| token.start >= self.start)
    }

    /// The statement's first word.
    fn head(&self) -> &'s str {
        self.text(self.scan.next_at(self.start))
    }

    pub(crate) fn expects(&self, rules: &[Rule]) -> bool {
        self.expected.iter().any(|rule| rules.contains(rule))
    }

    /// True if what was found begins something else: the next statement or declaration, a brace, the end.
    fn found_an_end(&self) -> bool {
        let Some(token) = self.found() else { return true };
        let text = self.scan.text_of(token);
        STATEMENTS.contains(&text)
            || DECLARATIONS.contains(&text)
            || matches!(text, "}" | "{" | "given" | "ensure")
    }
}

/// The words that statements begin with.
pub(crate) const STATEMENTS: [&str; 16] = [
    "chunks", "scratch", "let", "fn", "for", "if", "require", "stage", "step", "tune", "send", "recv",
    "copy", "reduce", "signal", "else",
];

/// The words that declarations begin with.
const DECLARATIONS: [&str; 5] = ["use", "fn", "collective", "schedule", "operator"];

/// The words that no name may be, as in the grammar's `reserved`.
pub(crate) const RESERVED: [&str; 41] = [
    "use",
    "fn",
    "collective",
    "schedule",
    "operator",
    "inout",
    "into",
    "in",
    "out",
    "given",
    "ensure",
    "each",
    "where",
    "at",
    "chunks",
    "scratch",
    "let",
    "for",
    "if",
    "else",
    "require",
    "stage",
    "step",
    "tune",
    "send",
    "recv",
    "copy",
    "reduce",
    "signal",
    "from",
    "to",
    "as",
    "on",
    "group",
    "and",
    "or",
    "not",
    "true",
    "false",
    // Two that stand here only to be told apart from names in messages.
    "ordered",
    "after",
];

/// True for a word of the language.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// A message for a well-known mistake.
pub(crate) fn hint(scene: &Scene<'_>) -> Option<Diagnostic> {
    stray(scene)
        .or_else(|| loop_head(scene))
        .or_else(|| foreign_operator(scene))
        .or_else(|| foreign_form(scene))
        .or_else(|| separator(scene))
        .or_else(|| unknown_start(scene))
        .or_else(|| reserved(scene))
        .or_else(|| one_ended(scene))
}

/// Characters that the language has no use for, and comments of other languages.
fn stray(scene: &Scene<'_>) -> Option<Diagnostic> {
    let token = scene.found()?;
    let text = scene.scan.text_of(token);
    if matches!(text, "#" | "/*") {
        let message = format!("`{text}` does not begin a comment here");
        return Some(
            Diagnostic::new(codes::FOREIGN_COMMENT, scene.span(token), message)
                .expected("`//`")
                .found(format!("`{text}`"))
                .help("write `// …`; it reaches to the end of the line"),
        );
    }
    if token.kind != Kind::Stray || text == "!" {
        return None;
    }
    let character = text.chars().next()?;
    let help = match character {
        '→' | '⇒' => "write `to` and the receiver",
        '“' | '”' | '„' | '\'' | '‘' | '’' | '`' => "texts stand in straight double quotes, `\"`",
        '−' | '–' | '—' => "write `-`",
        '×' | '·' => "write `*`",
        '≤' => "write `<=`",
        '≥' => "write `>=`",
        '≠' => "write `!=`",
        '…' => "write `..`",
        '~' => "exclusive or with -1 turns all bits: `x ^ -1`",
        '?' => "write `if c { x } else { y }`",
        '@' => "the rank of a transfer stands after `from`, `to` or `at`",
        '\u{A0}' | '\u{2003}' | '\u{2009}' | '\u{FEFF}' => "it looks like a blank: write a plain one",
        c if c.is_alphabetic() => "names are of the letters a to z, digits and `_`",
        _ => "remove it",
    };
    let shown = if character.is_whitespace() || character == '\u{FEFF}' { ' ' } else { character };
    let message = format!("`{shown}` (U+{:04X}) means nothing here", character as u32);
    Some(
        Diagnostic::new(codes::STRAY_CHARACTER, scene.span(token), message)
            .found(format!("`{shown}`"))
            .help(help),
    )
}

/// `for i = 0 to n`, `for (…)`, `for i in n`, `for i in range(n)`.
fn loop_head(scene: &Scene<'_>) -> Option<Diagnostic> {
    if scene.head() != "for" {
        return None;
    }
    let token = scene.found()?;
    let text = scene.scan.text_of(token);
    let at_name = scene.text(scene.previous()) == "for";
    let after_name = scene.expects(&[Rule::kw_in]);
    let in_range = scene.expects(&[Rule::range_op]);
    let known = (at_name && text == "(")
        || (after_name && matches!(text, "=" | ":=" | "," | ":" | "of" | "from"))
        || (in_range && matches!(text, "{" | "to" | "," | ":" | ";" | "downto" | "until"));
    known.then(|| {
        Diagnostic::new(codes::LOOP_HEAD, scene.span(token), format!("a loop's head has no `{text}` here"))
            .expected("`for NAME in FROM..BEYOND { … }`")
            .found(format!("`{text}`"))
            .help("write `for i in 0..n { … }`: from 0 to n - 1; `0..=n` takes in n, `where c` leaves out")
    })
}

/// Operators of other languages, and `=` for `==`.
fn foreign_operator(scene: &Scene<'_>) -> Option<Diagnostic> {
    let token = scene.found()?;
    let text = scene.scan.text_of(token);
    let (instead, help) = match text {
        "&&" => ("`and`", "write `a and b`"),
        "||" => ("`or`", "write `a or b`"),
        "!" => ("`not`", "write `not a`"),
        "**" => ("`pow(a, b)`", "write `pow(a, b)`; a power of two is `1 << k`"),
        ":=" => ("`=`", "write `let x = …`"),
        "=>" if !matches!(scene.head(), "send" | "recv" | "copy" | "signal") => ("`>=`", "compare with `>=`"),
        "->" | "=>" => ("`to`", "write `send VIEW to RANK`"),
        "+=" | "-=" | "*=" | "++" => {
            ("`let`", "names do not change: give the new value a name of its own with `let`")
        }
        "::" => ("`.`", "write `collective.schedule`"),
        "..." => ("`..`", "write `a..b`, which leaves out b, or `a..=b`"),
        "=" if scene.expects(&[Rule::binary]) && scene.head() != "let" => ("`==`", "compare with `==`"),
        _ => return None,
    };
    let message = format!("`{text}` is not an operator here");
    Some(
        Diagnostic::new(codes::FOREIGN_OPERATOR, scene.span(token), message)
            .expected(instead)
            .found(format!("`{text}`"))
            .help(help),
    )
}

/// `data[r][c]`, `reduce sum` and `if c then x`: forms of other languages.
fn foreign_form(scene: &Scene<'_>) -> Option<Diagnostic> {
    let token = scene.found()?;
    let text = scene.scan.text_of(token);
    let previous = scene.text(scene.previous());
    let (message, expected, help) = match (previous, text) {
        ("]", "[") => (
            "a view has one pair of brackets",
            "`,` between indices",
            "write all indices in one pair: `data[i, j]`".to_string(),
        ),
        ("reduce" | "left", _)
            if scene.is_transfer() && token.kind == Kind::Word && !is_reserved(text) && text != "right" =>
        {
            (
                "a transfer does not name its operator",
                "the next statement",
                format!("leave `{text}` out: the operator is chosen as it runs, `collc run … --op {text}`"),
            )
        }
        (_, "then") => (
            "`if` takes braces, and no `then`",
            "`{`",
            "write `if c { x } else { y }`, which is a value as well as a statement".to_string(),
        ),
        _ => return None,
    };
    Some(
        Diagnostic::new(codes::UNEXPECTED, scene.span(token), message)
            .expected(expected)
            .found(scene.found_text())
            .help(help),
    )
}

/// `;` and `,` at the end of a statement.
fn separator(scene: &Scene<'_>) -> Option<Diagnostic> {
    let found = scene.found();
    if let Some(named) = argument(scene) {
        return Some(named);
    }
    let token = match scene.text(found) {
        ";" => found?,
        "," if scene.expects(&[Rule::EOI]) || scene.head() == "tune" => found?,
        _ if scene.text(scene.previous()) == "," && scene.found_an_end() => scene.previous()?,
        ")" | "]" if scene.text(scene.previous()) == "," => scene.previous()?,
        _ => return None,
    };
    let text = scene.scan.text_of(token);
    Some(
        Diagnostic::new(codes::SEPARATOR, scene.span(token), format!("this `{text}` separates nothing"))
            .expected("no separator")
            .found(format!("`{text}`"))
            .help(format!("remove the `{text}`: what follows begins with its own word")),
    )
}

/// An argument that goes by a word of the language: `(data, chunks = 4)`.
fn argument(scene: &Scene<'_>) -> Option<Diagnostic> {
    let token = scene.found().filter(|&token| is_reserved(scene.text_of(token)))?;
    let is_named = scene.text(scene.scan.next_at(token.end)) == "=";
    if !is_named || scene.text(scene.previous()) != "," {
        return None;
    }
    let word = scene.text_of(token);
    let message = format!("`{word}` is a word of the language, and names no parameter");
    Some(
        Diagnostic::new(codes::RESERVED, scene.span(token), message)
            .expected("the name of a parameter")
            .found(format!("the word `{word}`"))
            .help(
                "parameters are declared in the head of the schedule that is called: `schedule NAME(c = 4)`",
            ),
    )
}

/// A word that begins nothing, or nothing here.
fn unknown_start(scene: &Scene<'_>) -> Option<Diagnostic> {
    let first = scene.scan.next_at(scene.start).filter(|token| token.kind == Kind::Word)?;
    let word = scene.scan.text_of(first);
    let starts: &[&str] = match scene.kind {
        BadKind::Item => &DECLARATIONS,
        BadKind::Fact => &["in", "out", "inout", "given", "ensure"],
        _ => &STATEMENTS,
    };
    let may_start = starts.contains(&word) && word != "else";
    // `first.` could be a call: what is wrong with it lies behind the dot.
    let is_path = scene.at > first.end && scene.text(scene.scan.next_at(first.end)) == ".";
    if may_start || is_path {
        return None;
    }
    let (what, a) = match scene.kind {
        BadKind::Item => ("declaration", "a declaration"),
        BadKind::Fact => ("fact", "`in`, `out`, `inout`, `given` or `ensure`"),
        _ => ("statement", "a statement"),
    };
    let diagnostic =
        Diagnostic::new(codes::UNKNOWN_START, scene.span(first), format!("no {what} begins with `{word}`"))
            .expected(a)
            .found(describe(scene.scan, first));
    Some(diagnostic.help(start_help(scene, word, starts)))
}

fn start_help(scene: &Scene<'_>, word: &str, starts: &[&str]) -> String {
    if word == "else" {
        return "`else` follows the `}` of an `if`".into();
    }
    if scene.kind == BadKind::Item && STATEMENTS.contains(&word) {
        return "statements stand in a schedule; is there a `}` too many before it?".into();
    }
    let next = scene.scan.next_at(scene.start).and_then(|first| scene.scan.next_at(first.end));
    if scene.kind == BadKind::Stmt && matches!(scene.text(next), "=" | ":=" | "+=" | "-=" | "*=" | "++") {
        return "values do not change: name a new one with `let`, or work it out from a loop's variable, as in `1 << k`"
            .into();
    }
    if DECLARATIONS.contains(&word) {
        return format!("`{word}` stands at the top of a file; is there a `}}` missing before it?");
    }
    let foreign = match word.to_ascii_lowercase().as_str() {
        "while" | "loop" | "foreach" | "repeat" => Some("loops are `for x in a..b { … }`"),
        "var" | "const" | "int" | "set" | "auto" => Some("name a value with `let x = …`"),
        "elif" | "elsif" | "elseif" => Some("write `else if`"),
        "def" | "func" | "function" => Some("write `fn f(x) = …`"),
        "import" | "include" => Some("write `use collective.schedule`"),
        "algorithm" | "proc" | "kernel" => Some("write `schedule NAME: COLLECTIVE { … }`"),
        "barrier" | "wait" | "sync" | "fence" => {
            Some("only data orders steps; for a barrier, `signal` a rank")
        }
        "assert" | "assume" => Some("write `require COND, \"why\"`"),
        "receive" | "pull" | "get" => Some("write `recv VIEW from RANK`"),
        "put" | "push" => Some("write `send VIEW to RANK`"),
        "parallel" | "par" | "all" | "each" => Some("write `step each r { … }`"),
        "tmp" | "temp" | "buffer" => Some("write `scratch tmp[k]`"),
        _ => None,
    };
    if let Some(help) = foreign {
        return help.into();
    }
    let nearest = starts.iter().map(|start| (distance(word, start), *start)).min();
    match nearest {
        Some((distance, start)) if distance <= 2 && distance < word.len() => {
            format!("did you mean `{start}`?")
        }
        _ => format!("it begins with one of {}", starts.join(", ")),
    }
}

/// A word of the language where a name should be.
fn reserved(scene: &Scene<'_>) -> Option<Diagnostic> {
    let token = scene.found().filter(|token| token.kind == Kind::Word)?;
    let word = scene.scan.text_of(token);
    let only_name = scene.expects(&[Rule::ident, Rule::param, Rule::word])
        && scene.expected.iter().all(|rule| {
            matches!(
                rule,
                Rule::ident | Rule::param | Rule::word | Rule::rparen | Rule::dot | Rule::tune_entry
            )
        });
    let previous = scene.previous()?;
    if !only_name
        || scene.is_transfer()
        || !is_reserved(word)
        || scene.scan.line_ends_between(previous.end, token.start)
    {
        return None;
    }
    Some(
        Diagnostic::new(codes::RESERVED, scene.span(token), format!("`{word}` is a word of the language"))
            .expected("a name of your own")
            .found(format!("the word `{word}`"))
            .help(format!("choose another name, such as `{word}_` or `my_{word}`")),
    )
}

/// A transfer that ends before it names its other end.
fn one_ended(scene: &Scene<'_>) -> Option<Diagnostic> {
    let (word, says) = match scene.head() {
        "send" => ("to", "does not say to which rank"),
        "recv" => ("from", "does not say from which rank"),
        "copy" => ("to", "does not say to which place"),
        "reduce" => ("into", "does not say into which place"),
        _ => return None,
    };
    let wants = scene.expects(&[Rule::to, Rule::from, Rule::kw_to, Rule::kw_from, Rule::kw_into]);
    if !wants || !scene.found_an_end() {
        return None;
    }
    let head = scene.scan.next_at(scene.start)?;
    let end = scene.previous()?.end;
    let text = scene.scan.text_of(head);
    Some(
        Diagnostic::new(
            codes::ONE_ENDED,
            Span::new(scene.file, head.start, end),
            format!("this `{text}` {says}"),
        )
        .expected(format!("`{word}`"))
        .found(scene.found_text())
        .help(form(scene)?),
    )
}

/// The form of the statement or declaration that begins at the scene's start.
pub(crate) fn form(scene: &Scene<'_>) -> Option<String> {
    let form = match (scene.kind, scene.head()) {
        (_, "use") => "use COLLECTIVE.SCHEDULE",
        (_, "fn") => "fn NAME(A, B) = EXPRESSION",
        (_, "operator") => {
            "operator [ordered] NAME(A, B; PARAMETERS) = EXPRESSION [given X: …] [ensure Y: …]"
        }
        (_, "collective") => "collective NAME(PARAMETERS) { inout BUFFER …  given …  ensure … }",
        (_, "schedule") => "schedule NAME(PARAMETER = DEFAULT): COLLECTIVE { … }",
        (BadKind::Fact, "given") => "given [each VARS | RANK]: BUFFER[BLOCK]",
        (BadKind::Fact, "ensure") => {
            "ensure each VARS: BUFFER[BLOCK] == RANK.BUFFER[BLOCK]`, `… == reduce VAR: RANK.BUFFER[BLOCK]` or `… RANK after RANK"
        }
        (BadKind::Fact, _) => "inout BUFFER` or `inout BUFFER[ranks]",
        (_, "chunks") => "chunks A` or `chunks A, B",
        (_, "scratch") => "scratch NAME` or `scratch NAME[A, B]",
        (_, "let") => "let NAME = EXPRESSION",
        (_, "for") => "for NAME in A..B [where CONDITION] { … }",
        (_, "if") => "if CONDITION { … } else { … }",
        (_, "require") => "require CONDITION, \"why\"",
        (_, "stage") => "stage NAME { … }",
        (_, "step") => "step { … }` or `step each NAME [in GROUP] [where CONDITION] { … }",
        (_, "tune") => "tune { NAME VALUE … }",
        (_, "send") => "send VIEW [from RANK] to RANK [as VIEW] [reduce [left]]",
        (_, "recv") => "recv VIEW from RANK [to RANK] [as VIEW] [reduce [left]]",
        (_, "copy") => "copy VIEW to VIEW [at RANK]",
        (_, "reduce") => "reduce [left] VIEW into VIEW [at RANK]",
        (_, "signal") => "signal RANK [from RANK]",
        (BadKind::Stmt, _) => "COLLECTIVE.SCHEDULE(VIEW, NAME = VALUE) [on GROUP]",
        _ => return None,
    };
    Some(format!("the form is `{form}`"))
}

/// Levenshtein's distance: how many letters must be changed, added or left out.
fn distance(a: &str, b: &str) -> usize {
    let a = &a.as_bytes()[..a.len().min(32)];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.bytes().enumerate() {
            let change = diagonal + usize::from(*from != to);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
