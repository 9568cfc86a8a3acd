//! The codes of what is wrong with a plan before its meaning is looked at: its tables, and its text.

use coll_base::Code;

/// The tables of the contract do not fit each other.
pub const CONTRACT_TABLE: Code = Code("E0650");
/// Cuts, channels, root or proof are out of their range.
pub const HEADER: Code = Code("E0651");
/// Ranks, lanes, slots or runs do not cover what they should.
pub const RANK_TABLE: Code = Code("E0652");
/// A peer or channel that does not exist.
pub const LINK: Code = Code("E0653");
/// A region outside its memory, or memory that may not be used so.
pub const REGION: Code = Code("E0654");
/// Sides of an operation that do not fit its action or each other.
pub const SIDES: Code = Code("E0655");
/// A wait for an operation that does not exist, or that cannot come first.
pub const WAIT: Code = Code("E0656");
/// A send that follows what is not the receive of its source.
pub const ALONG: Code = Code("E0657");
/// A plan that is not what it was when it was compiled.
pub const CHANGED: Code = Code("E0658");
/// Text that is no plan.
pub const TEXT: Code = Code("E0660");

/// Every code with its title.
pub const ALL: &[(Code, &str)] = &[
    (CONTRACT_TABLE, "the plan's contract does not fit itself"),
    (HEADER, "the plan's header is out of range"),
    (RANK_TABLE, "a rank's tables do not fit each other"),
    (LINK, "a peer or channel that does not exist"),
    (REGION, "a region that the operation may not touch"),
    (SIDES, "the sides of an operation do not fit"),
    (WAIT, "a wait that cannot end"),
    (ALONG, "a send follows what does not fill its source"),
    (CHANGED, "the plan was changed after it was compiled"),
    (TEXT, "this is not the text of a plan"),
];
