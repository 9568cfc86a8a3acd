//! Values: a leaf, or the sum of two values. Each is kept once, under a number, so that copying a value is copying a
//! number. A sum knows which operation made it first.

use super::whole::{NONE, OpKey};
use std::collections::HashMap;

/// The number of a value: a leaf, or a sum after all leaves.
pub(super) type Symbol = u32;

/// What came of an error that has been told.
pub(super) const SPOILT: Symbol = NONE - 1;

/// Leaves that a message counts.
const LEAVES_MAX: usize = 1 << 14;

/// The answer of [`Sums::trees`].
pub(super) struct Trees {
    leaves: u32,
    of: Vec<u32>,
}

impl Trees {
    /// The tree of a value that is neither nothing nor spoilt.
    pub(super) fn of(&self, symbol: Symbol) -> u32 {
        tree(self.leaves, &self.of, symbol)
    }
}

fn tree(leaves: u32, of_sums: &[u32], symbol: Symbol) -> u32 {
    match symbol.checked_sub(leaves) {
        None => symbol,
        Some(sum) => of_sums[sum as usize],
    }
}

/// Sums, each once.
#[derive(Default)]
pub(super) struct Sums {
    leaves: u32,
    parts: Vec<(Symbol, Symbol)>,
    made_by: Vec<OpKey>,
    known: HashMap<(Symbol, Symbol), Symbol>,
}

impl Sums {
    /// Sums of so many leaves.
    pub(super) fn new(leaves: u32) -> Sums {
        Sums { leaves, ..Sums::default() }
    }

    pub(super) fn leaf_count(&self) -> u32 {
        self.leaves
    }

    /// `a ⊕ b`, in this order.
    pub(super) fn sum(&mut self, key: OpKey, a: Symbol, b: Symbol) -> Symbol {
        if a == SPOILT || b == SPOILT {
            return SPOILT;
        }
        let next = self.leaves + self.parts.len() as u32;
        let sum = *self.known.entry((a, b)).or_insert(next);
        if sum == next {
            self.parts.push((a, b));
            self.made_by.push(key);
        }
        sum
    }

    /// For each value the number of its tree, in which `a ⊕ b` and `b ⊕ a` are one. Values of one tree have the same
    /// bits under every operator that commutes in bits, as IEEE 754's addition does.
    pub(super) fn trees(&self) -> Trees {
        let mut of = Vec::with_capacity(self.parts.len());
        let mut known = HashMap::new();
        for &(a, b) in &self.parts {
            // Parts are made before their sum, so their trees are there.
            let [a, b] = [a, b].map(|part| tree(self.leaves, &of, part));
            let next = self.leaves + known.len() as u32;
            of.push(*known.entry((a.min(b), a.max(b))).or_insert(next));
        }
        Trees { leaves: self.leaves, of }
    }

    /// The two parts of a sum; a leaf has none.
    pub(super) fn parts(&self, symbol: Symbol) -> Option<(Symbol, Symbol)> {
        self.parts.get(symbol.checked_sub(self.leaves)? as usize).copied()
    }

    /// How often each leaf is in a value, for messages: of more than [`LEAVES_MAX`] leaves only the first.
    pub(super) fn unfold(&self, symbol: Symbol) -> Vec<(u32, u32)> {
        let (mut leaves, mut rest) = (Vec::new(), vec![symbol]);
        while let Some(symbol) = rest.pop() {
            match self.parts(symbol) {
                Some((a, b)) => rest.extend([b, a]),
                None => leaves.push(symbol),
            }
            if leaves.len() >= LEAVES_MAX {
                break;
            }
        }
        leaves.sort_unstable();
        leaves.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
    }

    /// The operation that brought a leaf into a value for the second time, if it is found without much ado.
    pub(super) fn doubled_by(&self, mut symbol: Symbol, leaf: u32) -> Option<OpKey> {
        const DEPTH_MAX: usize = 1 << 12;
        let has = |symbol| self.unfold(symbol).binary_search_by_key(&leaf, |entry| entry.0).is_ok();
        for _ in 0..DEPTH_MAX {
            let (a, b) = self.parts(symbol)?;
            match (has(a), has(b)) {
                (true, true) => return Some(self.made_by[(symbol - self.leaves) as usize]),
                (true, false) => symbol = a,
                _ => symbol = b,
            }
        }
        None
    }
}
