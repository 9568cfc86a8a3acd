//! The table of source lines that operations refer to.

use coll_base::{SourceMap, Span};
use coll_ir::{OriginId, Program};
use coll_plan::Line;

pub(super) struct Lines {
    /// Sorted, no two alike.
    pub(super) table: Vec<Line>,
    /// For each origin, its line.
    of: Vec<u32>,
    /// What belongs to no statement.
    pub(super) whole: u32,
}

impl Lines {
    pub(super) fn of(&self, origin: OriginId) -> u32 {
        self.of[origin as usize]
    }
}

pub(super) fn of(program: &Program, sources: &SourceMap) -> Lines {
    let mut spans: Vec<(Span, u32)> =
        program.origins.origins.iter().map(|origin| origin.span).zip(0..).collect();
    spans.sort_unstable();
    let mut found: Vec<(Line, Vec<u32>)> = Vec::new();
    for same in spans.chunk_by(|a, b| a.0 == b.0) {
        let line = line(same[0].0, sources);
        let origins = same.iter().map(|&(_, origin)| origin);
        match found.last_mut().filter(|last| last.0 == line) {
            Some(last) => last.1.extend(origins),
            None => found.push((line, origins.collect())),
        }
    }
    if found.is_empty() {
        found.push((line(Span::default(), sources), Vec::new()));
    }
    found.sort();
    let mut of = vec![0; program.origins.origins.len()];
    let mut table: Vec<Line> = Vec::new();
    for (line, origins) in found {
        if table.last() != Some(&line) {
            table.push(line);
        }
        for origin in origins {
            of[origin as usize] = table.len() as u32 - 1;
        }
    }
    let whole = program.steps.first().map_or(0, |step| of[step.origin as usize]);
    Lines { table, of, whole }
}

fn line(span: Span, sources: &SourceMap) -> Line {
    if span.file.0 as usize >= sources.len() {
        return Line { file: "(no source)".to_owned(), line: 1 };
    }
    Line { file: sources.name(span.file).to_owned(), line: sources.line_of(span) }
}
