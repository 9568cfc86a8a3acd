//! Do all ranks that end with one value have it from one reduction tree?
//!
//! The first rank that is promised a value shows how each of its pieces is made; every other must show the same. Most
//! often these are the very same sums, under one number. Where they are not, the sums' trees are compared, in which
//! the sides of an operand make no difference.

use super::sums::{SPOILT, Sums, Symbol, Trees};
use super::whole::NONE;

/// Compares what ranks hold of one value, piece by piece.
pub(super) struct Likeness {
    /// For each value, what the first rank holds that is promised it. Empty until there is one.
    first: Vec<Vec<Symbol>>,
    /// Made when first needed.
    trees: Option<Trees>,
    holds: bool,
}

impl Likeness {
    /// For so many values.
    pub(super) fn new(values: usize) -> Likeness {
        Likeness { first: vec![Vec::new(); values], trees: None, holds: true }
    }

    /// A rank ends with this in a block that was promised the value. All sums have been made.
    pub(super) fn add(&mut self, sums: &Sums, value: u32, cells: &[Symbol]) {
        let first = &mut self.first[value as usize];
        if first.is_empty() {
            return first.extend_from_slice(cells);
        }
        for (&a, &b) in first.iter().zip(cells) {
            if a == b || !self.holds {
                continue;
            }
            let is_value = |symbol| symbol != NONE && symbol != SPOILT;
            let trees = self.trees.get_or_insert_with(|| sums.trees());
            self.holds = is_value(a) && is_value(b) && trees.of(a) == trees.of(b);
        }
    }

    /// Whether no two ranks differed so far.
    pub(super) fn holds(&self) -> bool {
        self.holds
    }
}
