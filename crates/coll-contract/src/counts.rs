//! From one size to the element count of every block.

use crate::{ClassId, Contract};
use coll_base::Fraction;

/// A size that a contract's blocks cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountsError {
    /// The elements that were asked for.
    pub elements: u64,
    /// The buffer whose blocks must be alike but would not be.
    pub buffer: String,
    /// Its number of blocks: a multiple of it serves.
    pub blocks: u32,
}

impl std::fmt::Display for CountsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CountsError { elements, buffer, blocks } = self;
        write!(
            f,
            "blocks of `{buffer}` must be equally long here, but {elements} elements do not divide into "
        )?;
        write!(f, "{blocks} equal blocks; {} would", elements - elements % u64::from(*blocks))
    }
}

impl std::error::Error for CountsError {}

/// Elements of block `block` of a buffer of `elements` elements in `blocks` blocks: 7 in 3 are 3, 2, 2.
pub fn block_count(elements: u64, block: u32, blocks: u32) -> u64 {
    let cut = |i: u32| Fraction::new(u64::from(i), u64::from(blocks)).of(elements);
    cut(block + 1) - cut(block)
}

impl Contract {
    /// The element count of every class when the first buffer has `elements` elements on each rank, spread over its
    /// blocks as evenly as they go. Other buffers follow from the classes; those that nothing ties to the first
    /// have `elements` elements as well. In a slice, classes that do not concern the rank count 0.
    pub fn counts(&self, elements: u64) -> Result<Vec<u64>, CountsError> {
        let mut counts: Vec<Option<u64>> = vec![None; self.classes.count as usize];
        let ranks = match self.only {
            Some(rank) => rank..rank + 1,
            None => 0..self.ranks,
        };
        for (buffer, decl) in self.buffers.iter().enumerate() {
            for rank in ranks.clone() {
                for block in 0..decl.blocks {
                    let class = self.class(rank, buffer as u32, block) as usize;
                    let count = block_count(elements, block, decl.blocks);
                    match counts[class] {
                        None => counts[class] = Some(count),
                        Some(known) if known != count && buffer == 0 => {
                            return Err(CountsError {
                                elements,
                                buffer: decl.name.clone(),
                                blocks: decl.blocks,
                            });
                        }
                        Some(_) => {}
                    }
                }
            }
        }
        Ok(counts.into_iter().map(Option::unwrap_or_default).collect())
    }

    /// Elements of one rank's `buffer`, given the counts of all classes.
    pub fn elements(&self, rank: u32, buffer: u32, counts: &[u64]) -> u64 {
        let class = |block| -> ClassId { self.class(rank, buffer, block) };
        (0..self.buffers[buffer as usize].blocks).map(|block| counts[class(block) as usize]).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blocks, BufferDecl, BufferRole, Classes};

    /// An all-gather of 3 ranks: block q has one count everywhere.
    fn allgather() -> Contract {
        Contract {
            collective: "allgather".into(),
            ranks: 3,
            only: None,
            buffers: vec![BufferDecl { name: "data".into(), role: BufferRole::InOut, blocks: 3 }],
            given: vec![Blocks::Listed(vec![(0, 0), (1, 1), (2, 2)])],
            ensures: Vec::new(),
            values: Vec::new(),
            after: Vec::new(),
            classes: Classes { count: 3, table: vec![0, 1, 2, 0, 1, 2, 0, 1, 2] },
        }
    }

    #[test]
    fn remainders_are_spread() {
        assert_eq!(allgather().counts(7).unwrap(), [3, 2, 2]);
        assert_eq!(allgather().counts(2).unwrap(), [1, 1, 0]);
        assert_eq!(allgather().counts(0).unwrap(), [0, 0, 0]);
        assert_eq!(allgather().elements(1, 0, &[3, 2, 2]), 7);
    }

    #[test]
    fn blocks_that_must_be_equal_refuse_a_remainder() {
        let mut contract = allgather();
        contract.classes = Classes { count: 1, table: vec![0; 9] };
        assert_eq!(contract.counts(9).unwrap(), [3]);
        let error = contract.counts(7).unwrap_err();
        assert!(
            error.to_string().contains("7 elements do not divide into 3 equal blocks; 6 would"),
            "{error}"
        );
    }

    #[test]
    fn counts_above_32_bits() {
        assert_eq!(block_count(3_200_000_000, 3, 4), 800_000_000);
        assert_eq!(block_count(64 << 30, 63, 64), 1 << 30);
    }
}
