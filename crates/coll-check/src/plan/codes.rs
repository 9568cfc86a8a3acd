//! The codes of what is wrong with the meaning of a plan.

use coll_base::Code;

/// A send without a receive, or the other way round.
pub const UNPAIRED: Code = Code("E0601");
/// A send and its receive list other shapes.
pub const SIDES_DIFFER: Code = Code("E0602");
/// Operations wait for each other in a ring.
pub const DEADLOCK: Code = Code("E0603");
/// Two accesses of one memory, in no order.
pub const RACE: Code = Code("E0604");
/// A read of memory that holds nothing.
pub const READS_NOTHING: Code = Code("E0605");
/// A read of a given block that is overwritten when the plan runs in place.
pub const OVERWRITTEN: Code = Code("E0606");
/// A block ends with another value than was promised.
pub const WRONG_END: Code = Code("E0607");
/// A contribution that is counted more than once.
pub const COUNTED_TWICE: Code = Code("E0608");
/// A rank may leave before another has entered.
pub const LEAVES_EARLY: Code = Code("E0609");
/// Messages of one connection whose order is left to chance.
pub const MESSAGES_UNORDERED: Code = Code("E0610");
/// A slice, or a plan beyond the prover's limits.
pub const NOT_PROVABLE: Code = Code("E0611");

/// A claim of a plan that its proof does not bear out.
pub const UNFOUNDED: Code = Code("E0612");

/// Every code with its title.
pub const ALL: &[(Code, &str)] = &[
    (UNPAIRED, "a message without its other side"),
    (SIDES_DIFFER, "a send and its receive move different shapes"),
    (DEADLOCK, "operations wait for each other in a ring"),
    (RACE, "two accesses of one memory in no order"),
    (READS_NOTHING, "reads memory that holds nothing"),
    (OVERWRITTEN, "reads a given block that is overwritten in place"),
    (WRONG_END, "a block ends with another value than was promised"),
    (COUNTED_TWICE, "a contribution is counted more than once"),
    (LEAVES_EARLY, "a rank may leave before another has entered"),
    (MESSAGES_UNORDERED, "messages of one connection in no order"),
    (NOT_PROVABLE, "this plan cannot be proved"),
    (UNFOUNDED, "a claim that the proof does not bear out"),
];
