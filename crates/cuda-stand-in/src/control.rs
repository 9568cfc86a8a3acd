//! How a test sets the stand-in up and asks what it found.
//!
//! ```no_run
//! use cuda_stand_in::{Config, control};
//!
//! let session = control::session(&Config { devices: 4, seed: 17, ..Config::default() })?;
//! // … work over the driver, by cudarc or any other binding …
//! session.verdict()?;
//! # Ok::<(), String>(())
//! ```
//!
//! The shared library has one machine at a time. A session is alone with it: other tests of the process wait in [`session`].
//! The library is opened here and its symbols called: hence `unsafe`.

#![allow(unsafe_code)]

use crate::config::{Config, Stats};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::CString;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
static ALONE: Mutex<()> = Mutex::new(());

/// The stand-in's library, opened once and never closed. From then on whoever asks the loader for `libcuda.so` gets it.
fn library() -> Result<&'static Library, String> {
    let open = || {
        let path = crate::path()?;
        // SAFETY: opening it starts nothing.
        unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    LIBRARY.get_or_init(open).as_ref().map_err(String::clone)
}

/// Opens the stand-in and makes a new machine of it. Handles and addresses from sessions before are void: drop all that holds
/// such before a session ends.
///
/// # Errors
/// A sentence if the library is not there or there is no memory for the machine.
pub fn session(config: &Config) -> Result<Session, String> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let session = Session { library: library()?, _alone: alone };
    session.configure(config)?;
    Ok(session)
}

/// Variables of the environment with which a program that is started finds the stand-in as its driver, of such a machine. Races and
/// errors are added to the file `report` as they are found, one a line; it is not there if there were none.
///
/// # Errors
/// A sentence if the library is not there, or the folder that a loader looks into cannot be made beside it.
pub fn environment(config: &Config, report: Option<&Path>) -> Result<[(&'static str, String); 2], String> {
    let library = crate::path()?;
    let folder = library.with_file_name("cuda-stand-in-as-driver");
    let told = |error: std::io::Error| format!("{}: {error}", folder.display());
    std::fs::create_dir_all(&folder).map_err(told)?;
    point(&folder.join("libcuda.so"), &library).map_err(told)?;
    let report = report.map(|path| path.to_string_lossy());
    let folder = folder.to_string_lossy().into_owned();
    Ok([("LD_LIBRARY_PATH", folder), ("CUDA_STAND_IN", config.as_text(report.as_deref()))])
}

/// Sees to it that a link leads to the library, whoever else does so at the same time.
fn point(link: &Path, library: &Path) -> std::io::Result<()> {
    use std::io::ErrorKind::{AlreadyExists, NotFound};
    if std::fs::read_link(link).is_ok_and(|found| found != library) {
        // It came along with a target folder that was copied.
        match std::fs::remove_file(link) {
            Err(error) if error.kind() != NotFound => return Err(error),
            _ => {}
        }
    }
    match std::os::unix::fs::symlink(library, link) {
        Err(error) if error.kind() != AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The stand-in, for one test.
pub struct Session {
    library: &'static Library,
    _alone: MutexGuard<'static, ()>,
}

/// By which threads that the session does not know, such as those of the code that is tried, say what they do with memory of the
/// host. It outlives the session, and is of no use then.
#[derive(Clone, Copy)]
pub struct Witness {
    library: &'static Library,
}

/// Calls a symbol: `call!(session, "name", fn(argument: type, …) -> type)`.
macro_rules! call {
    ($session:expr, $name:literal, ($($argument:expr => $kind:ty),*) -> $answer:ty) => {{
        // SAFETY: the library was built with this crate, and its function of that name has this signature; pointers are to
        // values that live as long as the call.
        unsafe {
            let found = $session.library.get::<unsafe extern "C" fn($($kind),*) -> $answer>($name.as_bytes());
            found.expect("invariant: the library has the functions that it was built with")($($argument),*)
        }
    }};
}

fn told(what: &str, code: u32) -> Result<(), String> {
    match code {
        0 => Ok(()),
        code => Err(format!("{what}: the stand-in answers {code}")),
    }
}

impl Session {
    /// Another machine takes the place of this one.
    ///
    /// # Errors
    /// A sentence if it cannot be.
    pub fn configure(&self, config: &Config) -> Result<(), String> {
        if !config.peers.is_empty() && config.peers.len() != config.devices {
            return Err(format!("{} devices have {} rows of peers", config.devices, config.peers.len()));
        }
        let peers = if config.peers.is_empty() { std::ptr::null() } else { config.peers.as_ptr() };
        let code = call!(self, "collcStandInConfigure", (
            config.devices as u32 => u32,
            config.seed => u64,
            config.device_bytes => u64,
            peers => *const u64,
            config.patience_ms => u64,
            config.depth as u64 => u64,
            config.threads_apart.into() => u32
        ) -> u32);
        told("a new machine", code)
    }

    fn text(&self, kind: u32) -> Vec<String> {
        let length = call!(self, "collcStandInText", (
            kind => u32, std::ptr::null_mut() => *mut u8, 0 => u64
        ) -> u64);
        let mut bytes = vec![0u8; length as usize + 1];
        let length = call!(self, "collcStandInText", (
            kind => u32, bytes.as_mut_ptr() => *mut u8, bytes.len() as u64 => u64
        ) -> u64);
        bytes.truncate(length as usize);
        String::from_utf8_lossy(&bytes).lines().map(str::to_string).collect()
    }

    /// Pairs of accesses that nothing orders, in words; at most 256 of them.
    pub fn races(&self) -> Vec<String> {
        self.text(0)
    }

    /// How many such pairs there were.
    pub fn race_count(&self) -> u64 {
        call!(self, "collcStandInRaces", () -> u64)
    }

    /// Errors that calls and streams gave, in words; at most 256 of them. What is only an answer, such as that something is not
    /// ready, is none.
    pub fn log(&self) -> Vec<String> {
        self.text(1)
    }

    /// Operations that stand at the heads of queues now.
    pub fn heads(&self) -> Vec<String> {
        self.text(2)
    }

    /// Nothing was found so far.
    ///
    /// # Errors
    /// All races and errors, one a line.
    pub fn verdict(&self) -> Result<(), String> {
        let found = [self.races(), self.log()].concat();
        if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
    }

    /// Races and errors are forgotten.
    pub fn forget(&self) {
        call!(self, "collcStandInForget", () -> ());
    }

    /// A call of a driver function by its name, `cuMemAlloc_v2` say, fails with a `CUresult` and does nothing: the next one after
    /// so many others of it.
    ///
    /// # Errors
    /// If the name holds a NUL.
    pub fn fail_next(&self, function: &str, after: u64, code: u32) -> Result<(), String> {
        let name = CString::new(function).map_err(|error| error.to_string())?;
        let answer = call!(self, "collcStandInFailNext", (
            name.as_ptr() => *const std::ffi::c_char, after => u64, code => u32
        ) -> u32);
        told(function, answer)
    }

    /// What is counted.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        call!(self, "collcStandInStats", (&raw mut stats => *mut Stats) -> u32);
        stats
    }

    /// Takes up to so many steps, whoever's they are. How many there were.
    pub fn step(&self, most: u64) -> u64 {
        call!(self, "collcStandInStep", (most => u64) -> u64)
    }

    /// The host reads memory now that the driver knows: a race is reported if a stream may still be writing it.
    ///
    /// # Errors
    /// If the driver does not know it.
    pub fn host_reads(&self, address: u64, bytes: u64) -> Result<(), String> {
        self.host_touches(address, bytes, 0)
    }

    /// The host writes memory now that the driver knows: a race is reported if a stream may still be using it.
    ///
    /// # Errors
    /// If the driver does not know it.
    pub fn host_writes(&self, address: u64, bytes: u64) -> Result<(), String> {
        self.host_touches(address, bytes, 1)
    }

    fn host_touches(&self, address: u64, bytes: u64, writes: u32) -> Result<(), String> {
        let code = call!(self, "collcStandInHostTouches", (
            address => u64, bytes => u64, writes => u32
        ) -> u32);
        told("memory of the host", code)
    }

    /// For threads of the code that is tried.
    pub fn witness(&self) -> Witness {
        Witness { library: self.library }
    }

    /// The host has seen the value that a stream wrote to a word, and so knows what came before it there.
    ///
    /// # Errors
    /// If the driver does not know the word.
    pub fn host_saw(&self, address: u64) -> Result<(), String> {
        told("a word", call!(self, "collcStandInHostSaw", (address => u64) -> u32))
    }

    /// Where threads are told apart: this thread tells, under a number, all that it knows.
    pub fn hands_over(&self, token: u64) {
        call!(self, "collcStandInHandsOver", (token => u64, 1 => u32) -> ());
    }

    /// This thread has been told what was handed over under a number.
    pub fn takes_over(&self, token: u64) {
        call!(self, "collcStandInHandsOver", (token => u64, 0 => u32) -> ());
    }

    /// Reports call a stream so.
    ///
    /// # Errors
    /// If it is no stream, or the name holds a NUL.
    pub fn name_stream(&self, stream: u64, name: &str) -> Result<(), String> {
        let name = CString::new(name).map_err(|error| error.to_string())?;
        let code = call!(self, "collcStandInNameStream", (
            stream => u64, name.as_ptr() => *const std::ffi::c_char
        ) -> u32);
        told("a stream", code)
    }
}

impl Witness {
    /// The host reads these bytes now, or writes them. Memory that the driver does not know is nobody's business.
    pub fn touches(&self, address: u64, bytes: u64, writes: bool) {
        call!(self, "collcStandInWitness", (address => u64, bytes => u64, u32::from(writes) => u32) -> ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_elsewhere_is_replaced() {
        let folder = std::env::temp_dir().join(format!("collc-stand-in-link-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (link, library) = (folder.join("libcuda.so"), folder.join("library.so"));
        let leads_to_it = || std::fs::read_link(&link).expect("it is a link") == library;
        std::os::unix::fs::symlink(folder.join("gone.so"), &link).expect("a link");
        for _ in 0..2 {
            point(&link, &library).expect("it can be made");
            assert!(leads_to_it());
        }
        std::fs::remove_file(&link).expect("it is there");
        point(&link, &library).expect("it can be made");
        assert!(leads_to_it());
        std::fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
