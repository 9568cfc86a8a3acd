//! The codes of what is wrong with a topology.

use coll_base::Code;

/// The text has not the form of a topology: its syntax, a value of another type, a key that is missing.
pub const FORM: Code = Code("E0801");
/// A key or name that does not exist.
pub const UNKNOWN: Code = Code("E0802");
/// A bandwidth, latency or count that no machine has.
pub const FIGURE: Code = Code("E0803");
/// Parts that do not make one network: doubled names, links of a node with itself, devices without a way.
pub const SHAPE: Code = Code("E0804");
/// A generator's text that cannot be read.
pub const GENERATOR: Code = Code("E0805");
/// A file of another kind.
pub const OTHER_KIND: Code = Code("E0806");
/// Larger or deeper than is read.
pub const BOUNDS: Code = Code("E0807");
/// Something of an imported file is not used, or a figure that it lacks was assumed.
pub const NOT_USED: Code = Code("W0850");

/// Every code with its title.
pub const ALL: &[(Code, &str)] = &[
    (FORM, "this has not the form of a topology"),
    (UNKNOWN, "a topology has no such key or name"),
    (FIGURE, "no machine has such a figure"),
    (SHAPE, "the parts of a topology do not make one network"),
    (GENERATOR, "this generator's text cannot be read"),
    (OTHER_KIND, "this file is no topology"),
    (BOUNDS, "a topology is too large or too deep"),
    (NOT_USED, "something of an imported topology is not used, or was assumed"),
];
