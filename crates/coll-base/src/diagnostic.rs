//! What the compiler tells its user: one [`Diagnostic`] says what is wrong, where, what was expected, what was
//! found, and a way out. Rendering is the command line's business.

use crate::{FileId, Span};

/// A stable name such as `E0103`: `E` refuses, `W` warns. Each has a page in `docs/errors` and a fixture.
///
/// `E00xx` syntax · `E01xx` names · `E02xx` types and constants · `E03xx` ranks, indices and shapes · `E04xx` steps ·
/// `E05xx` contracts · `E06xx` plans · `W07xx` warnings · `E08xx` and `W08xx` topologies.
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
    /// The calls that led to the statement at fault, innermost first, each with the values of its variables: `s = 2`.
    pub calls: Vec<Label>,
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
            calls: Vec::new(),
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

    /// Adds the calls that led to the primary place, innermost first.
    pub fn called_by(mut self, calls: Vec<Label>) -> Diagnostic {
        self.calls.extend(calls);
        self
    }

    /// Shows the calls that led to the primary place to one who wrote the file `own`. If the place is in another file,
    /// which is the library's and proved, the way it is called is at fault: the innermost call of `own` becomes the
    /// primary place.
    pub fn blame_call(mut self, own: FileId) -> Diagnostic {
        let Some(primary) = &mut self.primary else { return self };
        let Some(call) = self.calls.iter().find(|call| call.span.file == own) else { return self };
        let text = match call.text.as_str() {
            "" => "in this call".to_string(),
            values => format!("in this call, with {values}"),
        };
        let call = Label { span: call.span, text };
        if primary.span.file != own {
            let statement = std::mem::replace(primary, call);
            self.secondary.insert(0, statement);
        } else if primary.span != call.span && !self.secondary.iter().any(|label| label.span == call.span) {
            self.secondary.push(call);
        }
        self
    }

    /// True if a call of the library is the primary place, as [`Diagnostic::blame_call`] has it.
    pub fn blames_call(&self) -> bool {
        let primary = self.primary.as_ref().map(|label| label.span);
        self.calls.iter().any(|call| Some(call.span) == primary)
    }

    /// Leaves one error, and one warning of each code, for each call of the library that is blamed: what else is wrong
    /// within the call comes of it.
    pub fn one_for_each_call(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let mut kept: Vec<Diagnostic> = Vec::new();
        for diagnostic in diagnostics {
            let place = |told: &Diagnostic| told.primary.as_ref().map(|label| label.span);
            let follows = |known: &Diagnostic| {
                known.blames_call()
                    && place(known) == place(&diagnostic)
                    && (known.code == diagnostic.code || known.is_error() && diagnostic.is_error())
            };
            if !(diagnostic.blames_call() && kept.iter().any(follows)) {
                kept.push(diagnostic);
            }
        }
        kept
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_the_library_is_to_blame_and_one_of_the_own_file_is_named() {
        let at = |file, offset| Span::new(FileId(file), offset, offset + 1);
        let call = |file| Label { span: at(file, 3), text: "s = 2".into() };
        let told = |file| Diagnostic::new(Code("E0001"), at(file, 1), "wrong").label("here");
        let library = told(7).called_by(vec![call(7), call(0)]).blame_call(FileId(0));
        let text = |label: &Label| (label.span, label.text.clone());
        assert_eq!(library.primary.as_ref().map(text), Some((at(0, 3), "in this call, with s = 2".into())));
        assert_eq!(library.secondary.iter().map(text).collect::<Vec<_>>(), [(at(7, 1), "here".into())]);
        assert_eq!(library.calls, [call(7), call(0)]);
        let own = told(0).called_by(vec![call(0)]).blame_call(FileId(0));
        assert_eq!(own.primary.as_ref().map(text), Some((at(0, 1), "here".into())));
        assert_eq!(own.secondary.len(), 1);
        assert_eq!(told(0).blame_call(FileId(0)), told(0));
        let told = vec![library.clone(), own.clone(), library.clone(), own.clone()];
        assert_eq!(Diagnostic::one_for_each_call(told), [library, own.clone(), own]);
    }
}
