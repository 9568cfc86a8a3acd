//! Inputs of a trial: every element depends on the seed, the rank, the buffer, the block and the index, so that no
//! two blocks are alike and a misplaced one shows.

use coll_base::DType;
use coll_contract::Leaf;
use coll_kernel::oracle::{self, Scalar};

/// The inputs of all ranks, made when they are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// Other seeds give other inputs.
    pub seed: u64,
    /// The element type.
    pub dtype: DType,
    /// Keep values so close to one that products of many of them stay in range.
    pub near_one: bool,
}

impl Inputs {
    /// Appends the elements `start..end` of a leaf.
    pub fn fill(&self, leaf: Leaf, start: u64, end: u64, bytes: &mut Vec<u8>) {
        let key = self.key(leaf);
        for index in start..end {
            oracle::write(self.dtype, self.value(key, index), bytes);
        }
    }

    fn key(&self, leaf: Leaf) -> u64 {
        let place = u64::from(leaf.rank) << 40 | u64::from(leaf.buffer) << 32 | u64::from(leaf.block);
        mix(mix(self.seed) ^ place)
    }

    /// Integers take any value; floats lie in -1..1 in steps that every float type can hold, or around one.
    fn value(&self, key: u64, index: u64) -> Scalar {
        let bits = mix(key ^ index);
        if !self.dtype.is_float() {
            return Scalar::Int((bits as i64).into());
        }
        let unit = (bits >> 40) as f64 / (1u64 << 24) as f64;
        let sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
        Scalar::Float(if self.near_one { sign * (0.9 + 0.2 * unit) } else { 2.0 * unit - 1.0 })
    }
}

/// A bijection that spreads every bit: the finaliser of SplitMix64 (Steele, Lea, Flood, *Fast Splittable Pseudorandom
/// Number Generators*, 2014).
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_blocks_are_alike() {
        let inputs = Inputs { seed: 1, dtype: DType::I32, near_one: false };
        let mut seen = std::collections::BTreeSet::new();
        for rank in 0..8 {
            for buffer in 0..2 {
                for block in 0..8 {
                    let mut bytes = Vec::new();
                    inputs.fill(Leaf { rank, buffer, block }, 0, 4, &mut bytes);
                    assert!(seen.insert(bytes), "rank {rank}, buffer {buffer}, block {block}");
                }
            }
        }
    }
}
