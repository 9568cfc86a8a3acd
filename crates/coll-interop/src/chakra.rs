//! Chakra execution traces (MLCommons), which astra-sim runs: for each rank a file of protocol buffer messages, each behind
//! its length: one `GlobalMetadata`, then a `Node` for each send, receive and piece of work. Field numbers, and the types of
//! attributes, are those of `et_def.proto` and of the feeder of mlcommons/chakra.
//!
//! Like GOAL they know sizes and order, and no data. What is read becomes GOAL's text, and so a plan of messages, in which each
//! carries a block of its own.

mod read;
mod write;

pub use read::to_goal;
pub use write::write;

/// `NodeType` of the schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeType {
    Compute = 4,
    Send = 5,
    Receive = 6,
    Collective = 7,
}

/// Fields of `Node`.
mod node {
    pub(super) const ID: u64 = 1;
    pub(super) const NAME: u64 = 2;
    pub(super) const TYPE: u64 = 3;
    pub(super) const CONTROL: u64 = 4;
    pub(super) const DATA: u64 = 5;
    pub(super) const DURATION_US: u64 = 7;
    pub(super) const ATTRIBUTE: u64 = 10;
}

/// Fields of `AttributeProto`: its name, and those of the values that are numbers.
mod attribute {
    pub(super) const NAME: u64 = 1;
    pub(super) const INT32: u64 = 7;
    pub(super) const INT64: u64 = 9;
    pub(super) const UINT32: u64 = 11;
    pub(super) const UINT64: u64 = 13;
    pub(super) const SINT32: u64 = 15;
    pub(super) const SINT64: u64 = 17;
    pub(super) const BOOL: u64 = 27;
}
