//! The file format: TOML, read with places and written back. `docs/topology.md` is its manual.

mod read;
mod table;
mod write;

pub(crate) use read::read;
pub use write::write;
