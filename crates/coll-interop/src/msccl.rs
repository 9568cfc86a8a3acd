//! MSCCL XML, the form that MSCCL's and RCCL's interpreters load: `<algo>`, in it a `<gpu>` for each rank, in it thread
//! blocks `<tb>`, in them the steps that a thread block takes one after the other.
//!
//! Reading is lenient in how a file is written down and strict in what it says: comments, other line ends, unknown
//! elements and attributes pass, while a number out of its range does not. What the form means is told in
//! `docs/formats.md`; the names of its parts are msccl-tools' and RCCL's.
//!
//! 1. `read`: from text to a [`model`](model::Algorithm), each value checked where it stands;
//! 2. `check`: what only the whole tells: ids, connections, chunks against buffers, dependencies;
//! 3. `order`: an order in which all steps can be taken, or the ring of those that cannot;
//! 4. `import`: each step becomes operations of a plan.

mod check;
mod import;
mod kind;
mod model;
mod order;
mod places;
mod read;
mod write;

pub use model::Algorithm;
pub use write::{CHUNKS_MAX, WriteOptions, write};

use coll_base::{Diagnostic, FileId};

/// Reads an algorithm and checks all that can be checked before its collective is known.
///
/// # Errors
/// What is wrong with it, each at its place; at most a few of one kind.
pub fn read(file: FileId, text: &str) -> Result<Algorithm, Vec<Diagnostic>> {
    let algorithm = read::read(file, text)?;
    check::check(&algorithm)?;
    Ok(algorithm)
}
