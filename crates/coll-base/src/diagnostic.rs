//! What the compiler tells its user: one [`Diagnostic`] says what is wrong, where, what was expected, what was
//! found, and a way out. Rendering is the command line's business.

use crate::Span;

/// A stable name such as `E0103`: `E` refuses, `W` warns. Each has a page in `docs/errors` and a fixture.
///
/// `E00xx` syntax · `E01xx` names · `E02xx` types and constants · `E03xx` ranks, indices and shapes · `E04xx` steps ·
/// `E05xx` contracts · `E06xx` plans · `W07xx` warnings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub &'static str);

impl Code {
    /// `W…` warns, all else refuses.
    pub fn severity(self) -> Severity {
        if self.0.starts_with('W') { Severity::Warning } else { Severity::Error }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; the result stands.
    Warning,
    /// The input is refused.
    Error,
}

/// A place in the source and what to say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// A few words, or nothing.
    pub text: String,
}

/// One message. Build it with [`Diagnostic::new`] and the methods that name its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Diagnostic {
    /// Its stable name.
    pub code: Code,
    /// One line, no full stop: what is wrong, in words of the field and with actual values.
    pub message: String,
    /// Where. `None` only for what has no place in a source file.
    pub primary: Option<Label>,
    /// Other places that matter.
    pub secondary: Vec<Label>,
    /// What would have been right.
    pub expected: Option<String>,
    /// What was there instead.
    pub found: Option<String>,
    /// Facts that help to understand.
    pub notes: Vec<String>,
    /// The way out.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A message about a place.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        let primary = Some(Label { span, text: String::new() });
        Diagnostic { primary, ..Diagnostic::unplaced(code, message) }
    }

    /// A message about something that has no place in a source file, such as a plan's wait.
    pub fn unplaced(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            message: message.into(),
            primary: None,
            secondary: Vec::new(),
            expected: None,
            found: None,
            notes: Vec::new(),
            help: None,
        }
    }

    /// Words beside the primary place.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        if let Some(primary) = &mut self.primary {
            primary.text = text.into();
        }
        self
    }

    /// Another place that matters.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// What would have been right.
    pub fn expected(mut self, text: impl Into<String>) -> Diagnostic {
        self.expected = Some(text.into());
        self
    }

    /// What was there instead.
    pub fn found(mut self, text: impl Into<String>) -> Diagnostic {
        self.found = Some(text.into());
        self
    }

    /// A fact that helps to understand.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// The way out.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    /// Whether it refuses or warns.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// True if it refuses.
    pub fn is_error(&self) -> bool {
        self.severity() == Severity::Error
    }
}
