//! A CUDA driver without a GPU, for tests.
//!
//! The shared library of this crate is named `libcuda.so` to the loader and has the driver's functions, so that code written
//! for GPUs runs over it unchanged. Nothing is simulated of how long things take; all is made so that what is only usually
//! right goes wrong, and is told:
//!
//! - **Streams are queues that a seeded scheduler advances** when something has to: a synchronisation, a query now and then, a
//!   copy that blocks, [`control::Session::step`]. Only the order of a stream, events and words in memory hold work back. The
//!   same seed gives the same order.
//! - **Accesses that nothing orders are reported** with both operations, their streams and the bytes, whichever ran first:
//!   vector clocks say what happened before what.
//! - **Addresses are looked up.** What is outside an allocation, freed, of a device without access to it, or the host's, is an
//!   error code and a sentence in a log. Fresh memory is full of what the seed says.
//!
//! `collc_*` kernels by their names run as `coll-kernel` computes them; a module that is an image of the host runs as it is.
//!
//! Tests open it before anything else asks for the driver ([`control::session`]); the loader then answers `libcuda.so` with it. It is
//! never a dependency of what is shipped. The C functions are in the shared library alone in effect: a program that links the
//! Rust library exports none of them.
//!
//! From above: `entry` holds the C functions, thin; `driver` what is known, behind one lock; `stream`, `schedule` and `wait`
//! how work gets in, on and out; `event`, `capture`, `graph`, `ipc`, `memory`, `module` and `kernel` their themes; `clock` and
//! `races` the check.

mod capture;
mod clock;
mod code;
mod config;
mod context;
pub mod control;
mod copy;
mod driver;
mod entry;
mod event;
mod graph;
mod image;
mod ipc;
mod kernel;
mod memory;
mod module;
mod races;
mod random;
mod schedule;
mod space;
mod stream;
mod wait;
mod work;

pub use config::{Config, Stats};

use std::path::PathBuf;

/// Where the shared library lies that was built with this one: in the folder of the running test, where Cargo puts all that a
/// test depends on, or, for programs and examples, in the one beside it.
///
/// # Errors
/// A sentence that says where it was looked for. `cargo check` builds none.
pub fn path() -> Result<PathBuf, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("where this program lies is not known: {error}"))?;
    let folder = program.parent().map(PathBuf::from).unwrap_or_default();
    let tried: Vec<PathBuf> = [".", "deps", "../deps"]
        .iter()
        .map(|beside| folder.join(beside).join("libcuda_stand_in.so"))
        .collect();
    match tried.iter().find(|path| path.is_file()) {
        Some(path) => path.canonicalize().map_err(|error| format!("{}: {error}", path.display())),
        None => {
            let tried: Vec<String> = tried.iter().map(|path| path.display().to_string()).collect();
            Err(format!(
                "the stand-in's library is at none of {}; building a test that depends on cuda-stand-in makes it",
                tried.join(", ")
            ))
        }
    }
}

/// A line of C++ for the end of a user operator's text that a host compiler makes a library of: how wide its working elements
/// and its elements are, without which the stand-in does not know what its kernels touch.
pub fn widths(working_bytes: u64, element_bytes: u64) -> String {
    format!(
        "extern \"C\" {{ unsigned long long collc_user_working_bytes = {working_bytes}, \
         collc_user_element_bytes = {element_bytes}; }}\n"
    )
}
