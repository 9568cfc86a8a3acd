//! Text to syntax tree and back.
//!
//! Parsing never fails: [`parse`](parse()) gives a tree and a list of diagnostics, and the tree has an `Error` node where
//! text could not be read. [`format()`] lays a file out anew without changing a word of it. No meaning is attached
//! here; that is `coll-sema`'s.
//!
//! The way of a text: `scan` cuts it into tokens; `parse` refuses what is not text or nests too deep; `grammar` (pest)
//! reads the whole file with recovery; `lower` builds the tree; `recover` reads each bad stretch again, narrowly, for a
//! precise message, and `hints` knows the commonest mistakes. pest stays within this crate.

pub mod ast;
pub mod codes;
mod format;
mod grammar;
mod hints;
mod lower;
mod parse;
mod recover;
mod scan;
mod unread;

pub use format::format;
pub use parse::{Parsed, parse};
pub use unread::Unread;
