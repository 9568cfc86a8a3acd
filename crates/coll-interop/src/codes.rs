//! The codes of what is wrong with a schedule of another tool, or with a plan that another tool's form cannot say.

use coll_base::Code;

/// Text that is neither XML nor JSON of the form.
pub const SYNTAX: Code = Code("E0901");
/// An attribute or element that has to be there.
pub const MISSING: Code = Code("E0902");
/// A value that is no number, or beyond its range, or none of the words that it may be.
pub const VALUE: Code = Code("E0903");
/// Ids of ranks, thread blocks or steps that are missing, repeated or out of order.
pub const NUMBERING: Code = Code("E0904");
/// Chunks outside their buffer, or none where some are needed.
pub const CHUNKS: Code = Code("E0905");
/// A thread block without the peer that its step needs, or two on one connection.
pub const CONNECTION: Code = Code("E0906");
/// A send without its receive, or of another count.
pub const UNMATCHED: Code = Code("E0907");
/// A dependency on what is not there.
pub const DEPENDENCY: Code = Code("E0908");
/// Steps that wait for each other in a ring.
pub const RING: Code = Code("E0909");
/// Chunk counts that do not fit the collective.
pub const SHAPE: Code = Code("E0910");
/// Memory that is written though it may only be read, or read though nothing is in it.
pub const ACCESS: Code = Code("E0911");
/// An operation of the form that no plan can do.
pub const UNSUPPORTED: Code = Code("E0912");
/// A plan, or a part of one, that the other tool's form cannot say.
pub const INEXPRESSIBLE: Code = Code("E0913");
/// Operations of threads that do not wait for each other, or of a proxy that was not waited for.
pub const NO_NOP: Code = Code("E0914");
/// Messages of one tag and unlike sizes, in no order.
pub const TAGS: Code = Code("E0915");
/// Limits that exclude every call.
pub const NEVER_TAKEN: Code = Code("W0901");
/// A dependency on a step that does not say that others wait for it.
pub const UNMARKED: Code = Code("W0902");

/// Every code with its title.
pub const ALL: &[(Code, &str)] = &[
    (SYNTAX, "this is not the text of such a file"),
    (MISSING, "an attribute or element is missing"),
    (VALUE, "a value that the attribute cannot have"),
    (NUMBERING, "ids that are missing, repeated or out of order"),
    (CHUNKS, "chunks outside their buffer"),
    (CONNECTION, "a connection that cannot be made"),
    (UNMATCHED, "a send and its receive do not match"),
    (DEPENDENCY, "a dependency on what is not there"),
    (RING, "steps wait for each other in a ring"),
    (SHAPE, "chunk counts do not fit the collective"),
    (ACCESS, "memory is used as it may not be"),
    (UNSUPPORTED, "an operation that no plan can do"),
    (INEXPRESSIBLE, "a plan that the format cannot say"),
    (NO_NOP, "a `nop` or a `flush` is missing"),
    (TAGS, "messages that their tag does not tell apart"),
    (NEVER_TAKEN, "limits that exclude every call"),
    (UNMARKED, "a dependency that is never published"),
];
