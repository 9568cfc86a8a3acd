//! Count classes of a transposition, without a table of all ranks' blocks: where block q of one buffer on rank r must
//! end as block r of the other on rank q, for all r and q, these two are one class, and nothing else is.
//!
//! Classes are numbered in order of first appearance by rank, buffer, block. Rank r is the first to show those blocks
//! whose partner is not on a rank before it: n - r of the first buffer, and one less of the second, as its own block
//! appears in both. So all ranks before r show 2nr - r² classes, and every place's number can be worked out.

use super::Facts;
use crate::resolved::{Collective, Expr, ExprKind, Fact, FactBody};
use coll_contract::{Blocks, ClassId};

/// The rule for a number of ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transposed {
    ranks: u32,
}

impl Transposed {
    /// The rule, if this is how the facts relate blocks.
    pub(super) fn of(collective: &Collective, facts: &Facts, ranks: u32) -> Option<Transposed> {
        let two = facts.buffers.len() == 2 && facts.buffers.iter().all(|buffer| buffer.blocks == ranks);
        let listed = facts.given.iter().any(|given| matches!(given, Blocks::Listed(_)));
        let relates = |fact: &&Fact| matches!(fact.body, FactBody::Copy(..) | FactBody::Reduce(..));
        let mut relating = collective.facts.iter().filter(relates);
        let (Some(fact), None) = (relating.next(), relating.next()) else { return None };
        let fits = two && !listed && is_transposition(fact) && u64::from(ranks).pow(2) <= u64::from(u32::MAX);
        fits.then_some(Transposed { ranks })
    }

    /// How many classes there are.
    pub(super) fn count(self) -> u32 {
        self.ranks * self.ranks
    }

    /// The class of a block.
    pub(crate) fn class(self, rank: u32, buffer: u32, block: u32) -> ClassId {
        match buffer {
            0 if block >= rank => self.before(rank) + block - rank,
            1 if block > rank => self.before(rank) + (self.ranks - rank) + block - rank - 1,
            // The partner appeared on a rank before, or on this one in the first buffer.
            _ => self.class(block, 1 - buffer, rank),
        }
    }

    /// How many classes ranks before this one show.
    fn before(self, rank: u32) -> u32 {
        // Below 2^32, as the count of all classes is.
        (2 * u64::from(self.ranks) * u64::from(rank) - u64::from(rank) * u64::from(rank)) as u32
    }
}

/// `each r, q: one[q] == q.other[r]`, for all ranks.
fn is_transposition(fact: &Fact) -> bool {
    let FactBody::Copy(place, source) = &fact.body else { return false };
    let (Some(target_block), Some(source_block)) = (&place.block, &source.place.block) else { return false };
    let [Some(at), Some(row), Some(from), Some(column)] =
        [&fact.at, target_block, &source.rank, source_block].map(variable)
    else {
        return false;
    };
    fact.range.is_none()
        && fact.condition.is_none()
        && fact.vars.len() == 2
        && [at, from].iter().all(|slot| fact.vars.contains(slot))
        && (at != from && row == from && column == at)
        && place.buffer != source.place.buffer
}

fn variable(expr: &Expr) -> Option<u32> {
    match expr.kind {
        ExprKind::Local(slot) => Some(slot),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coll_contract::{BufferDecl, BufferRole, Ensure, Leaf, Value};

    /// Counted out, the classes are those of the rule.
    #[test]
    fn the_rule_numbers_as_counting_does() {
        for ranks in 1..=9 {
            let buffer = |name: &str, role| BufferDecl { name: name.into(), role, blocks: ranks };
            let places = || (0..ranks).flat_map(|rank| (0..ranks).map(move |block| (rank, block)));
            let facts = Facts {
                buffers: vec![buffer("input", BufferRole::In), buffer("output", BufferRole::Out)],
                given: vec![Blocks::All, Blocks::None],
                ensures: places()
                    .zip(0..)
                    .map(|((rank, block), value)| Ensure { rank, buffer: 1, block, value })
                    .collect(),
                values: places()
                    .map(|(rank, block)| Value::Copy(Leaf { rank: block, buffer: 0, block: rank }))
                    .collect(),
                after: Vec::new(),
            };
            let counted = super::super::classes::number(&facts, ranks);
            let rule = Transposed { ranks };
            assert_eq!(rule.count(), counted.count);
            let all = (0..ranks).flat_map(|rank| {
                (0..2).flat_map(move |buffer| (0..ranks).map(move |block| rule.class(rank, buffer, block)))
            });
            assert_eq!(all.collect::<Vec<_>>(), counted.table, "{ranks} ranks");
        }
    }
}
