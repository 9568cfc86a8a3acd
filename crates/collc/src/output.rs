//! Writing: to standard output as a whole, to files all or nothing.

use crate::failure::Failure;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Writes to standard output. A closed pipe or a full disk is a failure, not a panic.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::unusable(format!("cannot write to standard output: {error}")))
}

/// One message on standard error. If even that is closed there is nobody to tell.
pub(crate) fn complain(message: &str) {
    complain_raw(&format!("error: {message}\n"));
}

/// Text as it is, on standard error.
pub(crate) fn complain_raw(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Colours where standard error is a terminal and the user has not asked for none.
pub(crate) fn colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Replaces a file's content, all or nothing: a reader never sees half of it, and nothing is left behind.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let unwritable = |error: io::Error| {
        // The file that is written first has a name that its user never gave.
        let text = error.to_string();
        let reason = text.split(" at path ").next().unwrap_or_default();
        Failure::unusable(format!("cannot write `{}`: {reason}", path.display())).help("nothing was written")
    };
    if path.is_dir() {
        return Err(unwritable(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory")));
    }
    // Devices such as /dev/stdout are written to, not replaced.
    if path.exists() && !path.is_file() {
        return std::fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut device| device.write_all(bytes))
            .map_err(unwritable);
    }
    let mut file = tempfile::Builder::new().prefix(".collc-").tempfile_in(folder).map_err(unwritable)?;
    file.write_all(bytes).and_then(|()| file.as_file().sync_all()).map_err(unwritable)?;
    set_usual_permissions(file.as_file()).map_err(unwritable)?;
    file.persist(path).map_err(|error| unwritable(error.error))?;
    Ok(())
}

/// A temporary file is for its owner alone; what it becomes is an ordinary file.
#[cfg(unix)]
fn set_usual_permissions(file: &std::fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn set_usual_permissions(_file: &std::fs::File) -> io::Result<()> {
    Ok(())
}
