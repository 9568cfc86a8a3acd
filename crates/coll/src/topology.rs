//! Topologies by name: a file of any form that [`coll_topo`] reads, or a generator's text.

use crate::source::{ReadError, read_text};
use coll_topo::Loaded;
use std::path::Path;

/// Reads a topology, whatever is wrong with it: that is in its diagnostics. What looks like a path is one, for a generator's
/// misspelt name gets a better message than a file that is not there.
///
/// # Errors
/// A file that cannot be read.
pub fn load_topology(text: &str) -> Result<Loaded, ReadError> {
    let path = Path::new(text);
    let is_path = path.exists() || text.contains(['/', '\\']) || path.extension().is_some();
    if coll_topo::is_generator(text) && !path.exists() || !is_path {
        return Ok(coll_topo::load(text, text));
    }
    Ok(coll_topo::load(text, &read_text(path)?))
}
