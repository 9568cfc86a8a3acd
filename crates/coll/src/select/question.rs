//! What is asked: all that a choice depends on, and nothing that one rank alone knows.

use super::family::Family;
use coll_base::DType;
use coll_cost::{Constants, Layout, Tuning, Work};

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

    /// The question whose answer is taken. Where nothing is reduced bits depend on nothing, and any schedule is
    /// deterministic; where something is, blocks of any lengths get what equal ones do.
    pub(crate) fn in_order(mut self) -> Question {
        self.deterministic &= REDUCING.contains(&self.operation);
        self.unequal_blocks |= self.deterministic && self.operation == "reduce_scatter";
        self
    }

    /// The call for which a deterministic schedule is weighed, whatever this one is.
    pub(crate) fn steady(&self) -> Question {
        Question {
            dtype: DType::F32,
            accumulate: false,
            wire: None,
            user_operator: false,
            transport: STEADY_TRANSPORT,
            layout: Layout::one_host(self.ranks),
            ..self.clone()
        }
    }

    /// The constants by which it is weighed: those that are shipped, whatever was measured.
    pub(crate) fn steady_constants(&self) -> Constants {
        let shipped = Tuning::shipped();
        shipped.of(STEADY_TRANSPORT).cloned().expect("invariant: constants of it are shipped")
    }

    /// Why a member cannot serve, if so.
    pub(crate) fn bar(&self, family: &Family, member: usize) -> Option<String> {
        let runs = match family.runs(member) {
            Ok(runs) => runs,
            Err(reason) => return Some(reason.to_string()),
        };
        if self.own_blocks_only && !runs.direct {
            return Some("passes blocks through ranks that do not know their sizes".into());
        }
        if self.commutative && !self.unequal_blocks && !self.deterministic {
            return None;
        }
        let properties = match family.proved(member) {
            Ok(proved) => &proved.properties,
            Err(reason) => return Some(reason.to_string()),
        };
        if !self.commutative && !properties.ordered {
            return Some("does not keep operands in rank order, and the operator does not commute".into());
        }
        if self.unequal_blocks && properties.equal_blocks_only.is_some() {
            return Some("serves blocks of equal size alone".into());
        }
        if self.deterministic && !(properties.same_tree_at_every_place && properties.same_reduction_tree) {
            return Some("reduces in an order that depends on an element's place".into());
        }
        None
    }
}

/// Operations that reduce.
pub(super) const REDUCING: [&str; 5] = ["reduce", "reduce_scatter", "allreduce", "scan", "exscan"];

/// The transport whose shipped constants a deterministic schedule is weighed by.
const STEADY_TRANSPORT: &str = "shm";
