//! Schedules of files that the user insists on: `COLLC_SCHEDULE=ring8.xml` has a communicator take what another tool wrote, or a
//! plan. A file is for some ranks, one root, and perhaps some sizes; a call that it does not serve is an error that says
//! why, and nothing else is taken in its place.

use super::forced::{self, Forced};
use super::operations::canonical_operation;
use crate::foreign::{Form, examine};
use coll_interop::Limits;
use coll_plan::Plan;
use std::path::Path;
use std::sync::Arc;

/// The largest file that is read.
const FILE_SIZE_MAX_BYTES: u64 = 1 << 30;

/// A proved schedule of a file, and for which calls it is.
#[derive(Clone, Debug)]
pub struct Imposed {
    /// The file, as it was named.
    pub(crate) file: String,
    pub(crate) operation: &'static str,
    pub(crate) plan: Arc<Plan>,
    pub(crate) limits: Limits,
    /// Its chunks change places, so that it serves no blocks that are not cut into them.
    pub(crate) equal_chunks_only: bool,
}

/// What a text insists on: schedules of the library by name, and files. Parts with a `/` or one of the endings `.xml`, `.json` and
/// `.plan` name files.
///
/// # Errors
/// What cannot be read, is no schedule, or is named for an operation twice.
pub fn insisted(text: &str) -> Result<(Forced, Vec<Imposed>), String> {
    let is_file = |part: &&str| {
        part.contains('/') || [".xml", ".json", ".plan"].iter().any(|ending| part.ends_with(ending))
    };
    let (files, names): (Vec<&str>, Vec<&str>) = forced::parts(text).partition(is_file);
    let forced: Forced = names.join(",").parse().map_err(|error: forced::ForcedError| error.to_string())?;
    let mut imposed: Vec<Imposed> = Vec::new();
    for file in files {
        let one = Imposed::read(file)?;
        let operation = one.operation;
        if forced.of(operation).is_some() || imposed.iter().any(|known| known.operation == operation) {
            return Err(forced::ForcedError::Twice { operation: operation.to_string() }.to_string());
        }
        imposed.push(one);
    }
    Ok((forced, imposed))
}

impl Imposed {
    /// Reads a file of another tool, or a plan, and proves it.
    ///
    /// # Errors
    /// If it cannot be read, is wrong, or is of no operation of the library.
    pub fn read(file: &str) -> Result<Imposed, String> {
        let bytes =
            crate::read_bytes(Path::new(file), FILE_SIZE_MAX_BYTES).map_err(|error| error.to_string())?;
        let (plan, limits, equal_chunks_only) = match Form::of(&bytes) {
            Some(form) => {
                let text = String::from_utf8(bytes).map_err(|_| format!("`{file}` is no text"))?;
                let examined = examine(form, file, text, None);
                let told = examined.diagnostics.iter().find(|told| told.is_error());
                let told = told.map_or(String::new(), |told| format!(": {}: {}", told.code, told.message));
                let schedule = examined.schedule.filter(|schedule| schedule.verdict.ok);
                let schedule = schedule.ok_or_else(|| format!("`{file}` is wrong{told}"))?;
                (schedule.plan, schedule.limits, schedule.equal_chunks_only)
            }
            None => {
                let read = crate::read_plan(&bytes).map_err(|error| format!("`{file}`: {error}"))?;
                let limits = Limits::NONE;
                (read.plan, limits, false)
            }
        };
        if !plan.is_whole() {
            return Err(format!("`{file}` holds one rank's part of a plan, and all ranks read one file"));
        }
        let operation = canonical_operation(&plan.contract.collective).ok_or_else(|| {
            format!("`{file}` is a schedule of `{}`, which no call asks for", plan.contract.collective)
        })?;
        Ok(Imposed { file: file.to_string(), operation, plan: Arc::new(plan), limits, equal_chunks_only })
    }
}
