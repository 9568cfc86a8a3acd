//! The names of diagnostics about programs. Those about plans stand with the judge of plans.

use coll_base::Code;

/// A transfer reads a place that holds nothing.
pub const READS_NOTHING: Code = Code("E0450");
/// A transfer reduces into a place that holds nothing.
pub const REDUCES_INTO_NOTHING: Code = Code("E0451");
/// A place that the contract speaks of holds nothing at the end.
pub const NOTHING_THERE: Code = Code("E0501");
/// A reduction lacks what some rank should have put in.
pub const MISSING: Code = Code("E0502");
/// A reduction has what some rank put in more than once.
pub const COUNTED_TWICE: Code = Code("E0503");
/// A reduction has something in it that does not belong.
pub const FOREIGN: Code = Code("E0504");
/// A place should hold one rank's value and holds another.
pub const OTHER_VALUE: Code = Code("E0505");
/// A rank may leave before another has entered.
pub const LEAVES_EARLY: Code = Code("E0506");
/// Nobody reads what a transfer brings.
pub const NOBODY_READS: Code = Code("W0701");
/// A message brings a rank what an earlier one brought and is still there.
pub const SENT_TWICE: Code = Code("W0702");
/// A schedule sends far more than it must, and takes many steps.
pub const SENDS_TOO_MUCH: Code = Code("W0703");

/// Every code with a short title.
pub const ALL: &[(Code, &str)] = &[
    (READS_NOTHING, "reads what holds nothing"),
    (REDUCES_INTO_NOTHING, "reduces into what holds nothing"),
    (NOTHING_THERE, "a place holds nothing at the end"),
    (MISSING, "a contribution is missing"),
    (COUNTED_TWICE, "a contribution is counted twice"),
    (FOREIGN, "a contribution does not belong"),
    (OTHER_VALUE, "a place holds another value"),
    (LEAVES_EARLY, "a rank may leave too early"),
    (NOBODY_READS, "nobody reads what a transfer brings"),
    (SENT_TWICE, "a chunk is sent twice to one rank"),
    (SENDS_TOO_MUCH, "sends far more than it must"),
];
