//! The facts of a contract, as tables that are quick to ask.

use serde::{Deserialize, Serialize};

/// How a schedule may use a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BufferRole {
    /// Read, never written.
    In,
    /// Holds nothing at the start.
    Out,
    /// Read and written in place.
    InOut,
}

/// A buffer that every rank has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferDecl {
    /// Its name in the collective.
    pub name: String,
    /// How it may be used.
    pub role: BufferRole,
    /// Blocks on each rank: 1 for a plain buffer, n for `[ranks]`.
    pub blocks: u32,
}

/// Which blocks of one buffer hold their rank's own value at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blocks {
    /// Every block on every rank.
    All,
    /// No block on any rank.
    None,
    /// These `(rank, block)` pairs, sorted.
    Listed(Vec<(u32, u32)>),
}

impl Blocks {
    /// Whether `block` on `rank` is among them.
    pub fn contains(&self, rank: u32, block: u32) -> bool {
        match self {
            Blocks::All => true,
            Blocks::None => false,
            Blocks::Listed(pairs) => pairs.binary_search(&(rank, block)).is_ok(),
        }
    }
}

/// The value that a block holds on a rank at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Leaf {
    /// The rank it starts on.
    pub rank: u32,
    /// Index into [`Contract::buffers`].
    pub buffer: u32,
    /// The block of that buffer.
    pub block: u32,
}

/// What a block must hold at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Value {
    /// A copy of one leaf.
    Copy(Leaf),
    /// The reduction of these leaves in this order: at least one, no two alike. One leaf is that leaf, to which an
    /// operator's `given` and `ensure` parts still apply.
    Reduce(Vec<Leaf>),
}

impl Value {
    /// The leaves it is made of, in order.
    pub fn leaves(&self) -> &[Leaf] {
        match self {
            Value::Copy(leaf) => std::slice::from_ref(leaf),
            Value::Reduce(leaves) => leaves,
        }
    }

    /// True for [`Value::Reduce`].
    pub fn is_reduction(&self) -> bool {
        matches!(self, Value::Reduce(_))
    }
}

/// Index into [`Contract::values`]; equal values have equal ids.
pub type ValueId = u32;

/// At the end, `block` of `buffer` on `rank` holds `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ensure {
    /// Where.
    pub rank: u32,
    /// Index into [`Contract::buffers`].
    pub buffer: u32,
    /// The block of that buffer.
    pub block: u32,
    /// Index into [`Contract::values`].
    pub value: ValueId,
}

/// Blocks with one class id have the same number of elements.
pub type ClassId = u32;

/// The count class of every block on every rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Classes {
    /// How many classes there are; ids are `0..count`, in order of first appearance by rank, buffer, block.
    pub count: u32,
    /// For each rank, one id for each block of each buffer, in declaration order. In a slice, one rank's row.
    pub table: Vec<ClassId>,
}

/// A collective for a given number of ranks and root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contract {
    /// The collective's name.
    pub collective: String,
    /// Number of ranks.
    pub ranks: u32,
    /// `Some(r)` if the tables below hold what concerns rank r alone: see [`Contract::slice`].
    pub only: Option<u32>,
    /// Buffers in declaration order. The first is the one that `--bytes` sizes.
    pub buffers: Vec<BufferDecl>,
    /// For each buffer, what is there at the start.
    pub given: Vec<Blocks>,
    /// What must be there at the end, sorted by rank, buffer, block, no place twice.
    pub ensures: Vec<Ensure>,
    /// The values that [`Ensure::value`] points to.
    pub values: Vec<Value>,
    /// `(r, q)`: rank r may leave only after rank q has entered. Sorted, r ≠ q.
    pub after: Vec<(u32, u32)>,
    /// Which blocks have equal counts.
    pub classes: Classes,
}

impl Contract {
    /// Blocks of all buffers on one rank.
    pub fn blocks_per_rank(&self) -> u32 {
        self.buffers.iter().map(|buffer| buffer.blocks).sum()
    }

    /// Blocks of the buffers before `buffer`: where its row starts in per-rank tables.
    pub fn first_block(&self, buffer: u32) -> u32 {
        self.buffers[..buffer as usize].iter().map(|buffer| buffer.blocks).sum()
    }

    /// The count class of a block.
    pub fn class(&self, rank: u32, buffer: u32, block: u32) -> ClassId {
        debug_assert!(self.only.is_none_or(|only| only == rank), "a slice knows one rank's classes");
        let row = if self.only.is_some() { 0 } else { rank as usize * self.blocks_per_rank() as usize };
        self.classes.table[row + (self.first_block(buffer) + block) as usize]
    }

    /// Whether a block holds its own value at the start.
    pub fn is_given(&self, rank: u32, buffer: u32, block: u32) -> bool {
        self.given[buffer as usize].contains(rank, block)
    }

    /// What a block must hold at the end, if anything is asked of it.
    pub fn ensured(&self, rank: u32, buffer: u32, block: u32) -> Option<&Value> {
        let key = (rank, buffer, block);
        let at = self.ensures.binary_search_by_key(&key, |e| (e.rank, e.buffer, e.block)).ok()?;
        Some(&self.values[self.ensures[at].value as usize])
    }

    /// All that is asked of one rank.
    pub fn ensures_of(&self, rank: u32) -> &[Ensure] {
        let start = self.ensures.partition_point(|e| e.rank < rank);
        let end = self.ensures.partition_point(|e| e.rank <= rank);
        &self.ensures[start..end]
    }

    /// What concerns one rank: its row of classes, its givens, its ensures with their values (renumbered), its
    /// `after` pairs. Class ids stay those of the whole.
    pub fn slice(&self, rank: u32) -> Contract {
        let width = self.blocks_per_rank() as usize;
        let row = if self.only.is_some() { 0 } else { rank as usize * width };
        let mut new_ids = std::collections::BTreeMap::new();
        let mut values = Vec::new();
        let ensures = self.ensures_of(rank).iter().map(|ensure| {
            let value = *new_ids.entry(ensure.value).or_insert_with(|| {
                values.push(self.values[ensure.value as usize].clone());
                values.len() as ValueId - 1
            });
            Ensure { value, ..*ensure }
        });
        let ensures = ensures.collect();
        let own = |blocks: &Blocks| match blocks {
            Blocks::Listed(pairs) => {
                Blocks::Listed(pairs.iter().copied().filter(|&(holder, _)| holder == rank).collect())
            }
            all_or_none => all_or_none.clone(),
        };
        Contract {
            collective: self.collective.clone(),
            ranks: self.ranks,
            only: Some(rank),
            buffers: self.buffers.clone(),
            given: self.given.iter().map(own).collect(),
            ensures,
            values,
            after: self.after.iter().copied().filter(|&(r, _)| r == rank).collect(),
            classes: Classes {
                count: self.classes.count,
                table: self.classes.table[row..row + width].to_vec(),
            },
        }
    }

    /// True if any ensured value is a reduction, so that an operator matters.
    pub fn reduces(&self) -> bool {
        self.values.iter().any(Value::is_reduction)
    }
}
