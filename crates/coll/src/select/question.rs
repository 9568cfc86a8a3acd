//! What is asked: all that a choice depends on, and nothing that one rank alone knows.

use coll_base::DType;
use coll_cost::{Layout, Work};

/// A call, as every rank makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The operation, `allreduce`, as [`crate::canonical_operation`] gives it.
    pub operation: &'static str,
    /// Number of ranks.
    pub ranks: u32,
    /// The root, where the operation has one; 0 else.
    pub root: u32,
    /// Bytes of the sized buffer on one rank, all of its blocks together, as `--bytes` has it.
    pub bytes: u64,
    /// The element type.
    pub dtype: DType,
    /// Narrow floats are accumulated in `f32`, and so moved as such.
    pub accumulate: bool,
    /// What wider floats travel as.
    pub wire: Option<DType>,
    /// The order of the operator's operands is free. True where nothing is reduced.
    pub commutative: bool,
    /// The operator is a user's own, and is interpreted.
    pub user_operator: bool,
    /// Blocks may differ in size by more than a remainder: the v-variants.
    pub unequal_blocks: bool,
    /// Each rank knows the sizes of those blocks alone that it sends or receives as its own: no block may pass through
    /// another rank.
    pub own_blocks_only: bool,
    /// Bits must not depend on sizes: one reduction tree for each result, of rank numbers alone.
    pub deterministic: bool,
    /// The transport whose constants apply: `tcp`, `shm`, `threads`.
    pub transport: &'static str,
    /// Where the ranks are.
    pub layout: Layout,
}

impl Question {
    /// A call with `f32` and a built-in operator over TCP, all ranks on one machine with a core for each.
    pub fn new(operation: &'static str, ranks: u32, bytes: u64) -> Question {
        Question {
            operation,
            ranks,
            root: 0,
            bytes,
            dtype: DType::F32,
            accumulate: false,
            wire: None,
            commutative: true,
            user_operator: false,
            unequal_blocks: false,
            own_blocks_only: false,
            deterministic: false,
            transport: "tcp",
            layout: Layout::one_host(ranks),
        }
    }

    pub(crate) fn work(&self, bytes: u64) -> Work {
        let (mut bytes, mut dtype) = (bytes, self.dtype);
        if self.accumulate && dtype.is_narrow_float() {
            bytes = bytes.saturating_mul(DType::F32.size_bytes() / dtype.size_bytes());
            dtype = DType::F32;
        }
        // What moves is what messages have; that memory has more is of little weight beside it.
        let part = dtype.part();
        if let Some(wire) = self.wire.filter(|wire| part.is_float() && wire.size_bytes() < part.size_bytes())
        {
            bytes = bytes / part.size_bytes() * wire.size_bytes();
        }
        Work { bytes, dtype, user_operator: self.user_operator }
    }
}
