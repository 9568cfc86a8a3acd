//! Source files and places in them. Spans are byte offsets; lines and columns are worked out once, when a
//! message is shown.

use serde::{Deserialize, Serialize};

/// A file of a [`SourceMap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileId(pub u32);

/// A run of bytes, `start..end`, in one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset just after the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Span {
        Span { file, start: start as u32, end: end as u32 }
    }

    /// The smallest span that covers both; both lie in one file.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The empty span at this one's end.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }
}

/// A place as people count: both from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

#[derive(Clone, Debug)]
struct File {
    name: String,
    text: String,
    line_starts: Vec<u32>,
}

/// The texts that spans point into.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<File>,
}

impl SourceMap {
    /// The largest source file that spans can address, in bytes. Callers refuse larger ones.
    pub const FILE_SIZE_MAX_BYTES: usize = u32::MAX as usize;

    /// An empty map.
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Adds a file under the name that messages show.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let line_starts = std::iter::once(0).chain(newlines.map(|(i, _)| i as u32 + 1)).collect();
        self.files.push(File { name: name.into(), text, line_starts });
        FileId(self.files.len() as u32 - 1)
    }

    /// How many files there are; their ids are `0..len`.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True while no file was added.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The name under which a file was added.
    pub fn name(&self, file: FileId) -> &str {
        &self.files[file.0 as usize].name
    }

    /// A file's whole text.
    pub fn text(&self, file: FileId) -> &str {
        &self.files[file.0 as usize].text
    }

    /// The text under a span.
    pub fn slice(&self, span: Span) -> &str {
        &self.text(span.file)[span.start as usize..span.end as usize]
    }

    /// Where a span starts.
    pub fn start_of(&self, span: Span) -> LineColumn {
        let file = &self.files[span.file.0 as usize];
        let line = file.line_starts.partition_point(|&start| start <= span.start) - 1;
        let before = &file.text[file.line_starts[line] as usize..span.start as usize];
        LineColumn { line: line as u32 + 1, column: before.chars().count() as u32 + 1 }
    }

    /// The line a span starts on, from 1.
    pub fn line_of(&self, span: Span) -> u32 {
        let file = &self.files[span.file.0 as usize];
        file.line_starts.partition_point(|&start| start <= span.start) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_in_characters() {
        let mut sources = SourceMap::new();
        let file = sources.add("a.coll", "ab\nçd\n");
        let at = |offset| sources.start_of(Span::new(file, offset, offset));
        assert_eq!(at(0), LineColumn { line: 1, column: 1 });
        assert_eq!(at(3), LineColumn { line: 2, column: 1 });
        assert_eq!(at(5), LineColumn { line: 2, column: 2 });
        assert_eq!(at(7), LineColumn { line: 3, column: 1 });
    }
}
