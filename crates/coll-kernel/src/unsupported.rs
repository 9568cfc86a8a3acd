//! Why an operator cannot be used on an element type.

use coll_base::DType;

/// An operator that an element type does not have, refused before anything moves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operator `{operator}` does not work on {dtype}: {reason}")]
pub struct Unsupported {
    /// The operator's name.
    pub operator: String,
    /// The element type.
    pub dtype: DType,
    /// Why, and what would do.
    pub reason: String,
}
