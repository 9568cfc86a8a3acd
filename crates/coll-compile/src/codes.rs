//! The diagnostics of this crate.

use coll_base::Code;

/// The plan cannot be made as it was asked for: lanes or slices out of bounds, slices too fine, a pass that does not
/// exist, or a plan too large to number its parts.
pub const CANNOT_COMPILE: Code = Code("E0680");

/// Every code with its short title.
pub const ALL: &[(Code, &str)] = &[(CANNOT_COMPILE, "this plan cannot be made")];
