//! The diagnostics of this crate.

use coll_base::Code;

/// Slices or lanes that cannot be had: none, or too many.
pub const BAD_TUNING: Code = Code("E0680");
/// The slices are too fine: too many pieces, too many transfers, or fractions beyond 64 bits.
pub const TOO_FINE: Code = Code("E0681");
/// A pass that does not exist.
pub const NO_SUCH_PASS: Code = Code("E0682");
/// More operations than a plan can number.
pub const TOO_LARGE: Code = Code("E0683");
/// Two reductions of one step overlap in part, where their result would have to be staged.
pub const RAGGED: Code = Code("E0684");

/// Every code with its short title.
pub const ALL: &[(Code, &str)] = &[
    (BAD_TUNING, "lanes or slices out of bounds"),
    (TOO_FINE, "slices too fine"),
    (NO_SUCH_PASS, "no such pass"),
    (TOO_LARGE, "plan too large"),
    (RAGGED, "reductions of one step overlap in part"),
];
