//! From a file's name to a module that can be instantiated.

use crate::library::{self, Builtin};
use coll_base::{Diagnostic, FileId, SourceMap};
use coll_sema::{Module, ScheduleInfo};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

/// A source file with all that it uses, names resolved.
pub struct Source {
    /// The texts that diagnostics point into.
    pub map: SourceMap,
    /// The file itself.
    pub main: FileId,
    /// What it declares.
    pub module: Module,
    /// What is wrong with it before any rank count is known.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why a file's text cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system refused.
    #[error("cannot read `{}`: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Nothing but white space.
    #[error("`{}` is empty: a schedule file declares at least one `schedule NAME: COLLECTIVE {{ … }}`", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Bytes that are no text.
    #[error("`{}` is no text file: byte {offset} is not UTF-8 text; a schedule is written in UTF-8", path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// The first byte that is none.
        offset: usize,
    },
    /// Larger than spans can address.
    #[error("`{}` has {size_bytes} bytes; a schedule file has at most {max_bytes}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size_bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
}

/// The largest schedule file that is read.
const FILE_SIZE_MAX_BYTES: u64 = 64 << 20;

/// Reads a file as text.
pub fn read_text(path: &Path) -> Result<String, ReadError> {
    let bytes = read_bytes(path, FILE_SIZE_MAX_BYTES)?;
    let path = || path.to_path_buf();
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            return Err(ReadError::Binary { path: path(), offset: error.utf8_error().valid_up_to() });
        }
    };
    if let Some(offset) = text.find('\0') {
        return Err(ReadError::Binary { path: path(), offset });
    }
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Err(ReadError::Empty { path: path() });
    }
    Ok(text)
}

/// Reads a file that has at most `max_bytes` bytes.
pub fn read_bytes(path: &Path, max_bytes: u64) -> Result<Vec<u8>, ReadError> {
    let io = |error| ReadError::Io { path: path.to_path_buf(), error };
    let metadata = fs::metadata(path).map_err(io)?;
    if metadata.is_dir() {
        return Err(io(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")));
    }
    if metadata.len() > max_bytes {
        return Err(ReadError::TooLarge { path: path.to_path_buf(), size_bytes: metadata.len(), max_bytes });
    }
    fs::read(path).map_err(io)
}

impl Source {
    /// Reads a file, and resolves it against the library.
    pub fn read(path: &Path) -> Result<Source, ReadError> {
        Ok(Source::from_text(path.display().to_string(), read_text(path)?))
    }

    /// Takes a text under the name that messages show.
    pub fn from_text(name: impl Into<String>, text: impl Into<String>) -> Source {
        let mut map = SourceMap::new();
        let main = map.add(name, text);
        let (module, diagnostics) = coll_sema::load(&mut map, main, &Builtin);
        Source { map, main, module, diagnostics }
    }

    /// A schedule of the library.
    pub fn builtin(collective: &str, schedule: &str) -> Option<Source> {
        library::entry(collective, schedule).map(|entry| Source::from_text(entry.file_name(), entry.text))
    }

    /// A schedule of the library, which is read once in a process.
    pub fn shared(collective: &str, schedule: &str) -> Option<Arc<Source>> {
        static READ: Mutex<BTreeMap<(&str, &str), Arc<Source>>> = Mutex::new(BTreeMap::new());
        let entry = library::entry(collective, schedule)?;
        let name = (entry.collective, entry.schedule);
        let read = || READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = read().get(&name) {
            return Some(Arc::clone(source));
        }
        let source = Arc::new(Source::from_text(entry.file_name(), entry.text));
        Some(Arc::clone(read().entry(name).or_insert(source)))
    }

    /// The schedules that the file declares.
    pub fn schedules(&self) -> &[ScheduleInfo] {
        self.module.schedules()
    }

    /// True if something in it is wrong whatever the rank count.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}
