//! Diagnostics as people read them, and as tools do.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};
use coll_base::{Diagnostic, FileId, Label, Severity, SourceMap};
use serde::Serialize;

/// Renders diagnostics, each followed by an empty line.
pub(crate) fn render(sources: &SourceMap, diagnostics: &[Diagnostic], colours: bool) -> String {
    let renderer = if colours { Renderer::styled() } else { Renderer::plain() };
    let one = |diagnostic: &Diagnostic| renderer.render(&[group(sources, diagnostic)]) + "\n\n";
    diagnostics.iter().map(one).collect()
}

fn group<'a>(sources: &'a SourceMap, diagnostic: &'a Diagnostic) -> Group<'a> {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(&diagnostic.message).id(diagnostic.code.0);
    let mut group = Group::with_title(title).elements(snippets(sources, diagnostic));
    for (name, text) in [("expected", &diagnostic.expected), ("found", &diagnostic.found)] {
        if let Some(text) = text {
            group = group.element(Level::NOTE.with_name(name).message(text.as_str()));
        }
    }
    for call in calls(sources, &diagnostic.calls) {
        group = group.element(Level::NOTE.message(call));
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    match &diagnostic.help {
        Some(help) => group.element(Level::HELP.message(help.as_str())),
        None => group,
    }
}

/// The most lines that are spent on calls; of more, those in the middle are counted.
const CALLS_MAX: usize = 6;

/// `called from FILE:LINE:COLUMN with s = 2` for each call, innermost first.
fn calls(sources: &SourceMap, calls: &[Label]) -> Vec<String> {
    let line = |call: &Label| {
        let place = sources.start_of(call.span);
        let with = if call.text.is_empty() { String::new() } else { format!(" with {}", call.text) };
        format!("called from {}:{}:{}{with}", sources.name(call.span.file), place.line, place.column)
    };
    let mut lines: Vec<String> = Vec::new();
    for same in calls.chunk_by(|a, b| a == b) {
        let times =
            if same.len() > 1 { format!(", {} times in each other", same.len()) } else { String::new() };
        lines.push(line(&same[0]) + &times);
    }
    if lines.len() > CALLS_MAX {
        let hidden = lines.len() - (CALLS_MAX - 1);
        lines.splice(CALLS_MAX - 2..lines.len() - 1, [format!("… and from {hidden} calls more")]);
    }
    lines
}

/// One snippet for each file that has a label, the primary one's first.
fn snippets<'a>(sources: &'a SourceMap, diagnostic: &'a Diagnostic) -> Vec<Snippet<'a, Annotation<'a>>> {
    let mut files: Vec<FileId> = Vec::new();
    let labels = || diagnostic.primary.iter().chain(&diagnostic.secondary);
    for label in labels() {
        if !files.contains(&label.span.file) {
            files.push(label.span.file);
        }
    }
    let snippet = |file: FileId| {
        let here = |label: &&Label| label.span.file == file;
        let primary =
            diagnostic.primary.iter().filter(here).map(|l| annotation(sources, AnnotationKind::Primary, l));
        let others =
            diagnostic.secondary.iter().filter(here).map(|l| annotation(sources, AnnotationKind::Context, l));
        Snippet::source(sources.text(file)).path(sources.name(file)).annotations(primary.chain(others))
    };
    files.into_iter().map(snippet).collect()
}

/// A label; a span over several lines is cut to its first, so that a block does not fill the screen.
fn annotation<'a>(sources: &SourceMap, kind: AnnotationKind, label: &'a Label) -> Annotation<'a> {
    let text = sources.slice(label.span);
    let first_line = text.find('\n').map_or(text.len(), |end| text[..end].trim_end().len());
    let start = label.span.start as usize;
    let annotation = kind.span(start..start + first_line);
    if label.text.is_empty() { annotation } else { annotation.label(label.text.as_str()) }
}

/// A diagnostic as `--format json` prints it.
#[derive(Serialize)]
pub(crate) struct JsonDiagnostic {
    code: String,
    severity: &'static str,
    message: String,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    label: String,
    /// The calls that led to the statement, innermost first; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<JsonCall>,
    expected: Option<String>,
    found: Option<String>,
    notes: Vec<String>,
    help: Option<String>,
}

#[derive(Serialize)]
struct JsonCall {
    file: String,
    line: u32,
    column: u32,
    /// The values of the loop variables round the call: `s = 2`.
    with: String,
}

impl JsonCall {
    fn new(sources: &SourceMap, call: &Label) -> JsonCall {
        let place = sources.start_of(call.span);
        let file = sources.name(call.span.file).to_string();
        JsonCall { file, line: place.line, column: place.column, with: call.text.clone() }
    }
}

impl JsonDiagnostic {
    /// The same facts, places as file, line and column.
    pub(crate) fn new(sources: &SourceMap, diagnostic: &Diagnostic) -> JsonDiagnostic {
        let primary = diagnostic.primary.as_ref();
        let place = primary.map(|label| sources.start_of(label.span));
        JsonDiagnostic {
            code: diagnostic.code.0.to_string(),
            severity: match diagnostic.severity() {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            message: diagnostic.message.clone(),
            file: primary.map(|label| sources.name(label.span.file).to_string()),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
            label: primary.map_or(String::new(), |label| label.text.clone()),
            calls: diagnostic.calls.iter().map(|call| JsonCall::new(sources, call)).collect(),
            expected: diagnostic.expected.clone(),
            found: diagnostic.found.clone(),
            notes: diagnostic.notes.clone(),
            help: diagnostic.help.clone(),
        }
    }
}
