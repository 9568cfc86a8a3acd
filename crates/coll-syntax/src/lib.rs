//! Text to syntax tree and back.
//!
//! Parsing never fails: [`parse`] gives a tree and a list of diagnostics, and the tree has an `Error` node where
//! text could not be read. No meaning is attached here; that is `coll-sema`'s.

pub mod ast;
