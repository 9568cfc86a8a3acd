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
    /// Keep values so close to one that products of many of them stay in range, and integers odd.
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

    /// Integers take any value, every fourth column also zero, for logical operators to find; for products they are odd,
    /// so that none swallows the others. Floats lie in -1..1 in steps that most float types can hold, or around one.
    /// Truth values are even, or one of them rare, by column. Values of pairs are few, so that many are equal.
    fn value(&self, key: u64, index: u64) -> Scalar {
        let bits = mix(key ^ index);
        match self.dtype {
            DType::Bool => {
                let is_true = match index % 3 {
                    0 => bits & 1 == 0,
                    1 => bits & 31 == 0,
                    _ => bits & 31 != 0,
                };
                Scalar::Int(is_true.into())
            }
            DType::C64 | DType::C128 if self.near_one => {
                // On a circle around zero, or near it.
                let angle = (bits >> 11) as f64 / (1u64 << 53) as f64 * std::f64::consts::TAU;
                let size = 0.9 + 0.2 * unit(mix(bits));
                Scalar::Complex(size * angle.cos(), size * angle.sin())
            }
            DType::C64 | DType::C128 => Scalar::Complex(self.float(bits), self.float(mix(bits))),
            DType::I32I32 | DType::I64I64 => Scalar::IntAt((bits % 16) as i128 - 8, index_of(bits)),
            DType::F32I32 | DType::F64I64 => Scalar::FloatAt((bits % 16) as f64 / 8.0 - 1.0, index_of(bits)),
            dtype if dtype.is_float() => Scalar::Float(self.float(bits)),
            _ if self.near_one => Scalar::Int((bits as i64 | 1).into()),
            _ if index % 4 == 3 && bits >> 61 == 0 => Scalar::Int(0),
            _ => Scalar::Int((bits as i64).into()),
        }
    }

    fn float(&self, bits: u64) -> f64 {
        let sign = if bits & 1 == 0 { 1.0 } else { -1.0 };
        if self.near_one { sign * (0.9 + 0.2 * unit(bits)) } else { 2.0 * unit(bits) - 1.0 }
    }
}

/// In 0..1, in steps of 2^-24.
fn unit(bits: u64) -> f64 {
    (bits >> 40) as f64 / (1u64 << 24) as f64
}

/// An index that a 32-bit integer holds.
fn index_of(bits: u64) -> i64 {
    (bits >> 33) as i64
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
