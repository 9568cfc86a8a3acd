//! Lengths of pieces as whole numbers of one common unit, so that millions of them add up quickly and exactly.

use coll_base::Fraction;
use coll_ir::Cuts;

/// The unit and every cut in it.
pub(super) struct Scale {
    cuts: Vec<u64>,
    unit: u64,
}

/// Where the cuts' common denominator does not fit 64 bits, lengths are rounded to this part of a block.
const COARSE: u64 = 1 << 40;

impl Scale {
    pub(super) fn new(cuts: &Cuts) -> Scale {
        let common = cuts.0.iter().try_fold(1u64, |common, cut| {
            let shared = gcd(common as u128, cut.denominator() as u128) as u64;
            common.checked_mul(cut.denominator() / shared)
        });
        let unit = common.unwrap_or(COARSE);
        let scaled =
            |cut: &Fraction| (cut.numerator() as u128 * unit as u128 / cut.denominator() as u128) as u64;
        Scale { cuts: cuts.0.iter().map(scaled).collect(), unit }
    }

    /// The length of pieces `low..high` of a block.
    pub(super) fn length(&self, low: u32, high: u32) -> u64 {
        self.cuts[high as usize] - self.cuts[low as usize]
    }

    /// A sum of lengths as a fraction of a buffer of `blocks` blocks; nothing of a buffer that has none.
    pub(super) fn fraction(&self, length: u128, blocks: u32) -> Fraction {
        if blocks == 0 {
            return Fraction::ZERO;
        }
        let whole = self.unit as u128 * blocks as u128;
        let shared = gcd(length, whole);
        let (mut top, mut bottom) = (length / shared, whole / shared);
        while top.max(bottom) > u64::MAX as u128 {
            (top, bottom) = (top >> 1, bottom >> 1);
        }
        Fraction::new(top as u64, (bottom as u64).max(1))
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(parts: &[(u64, u64)]) -> Cuts {
        Cuts(parts.iter().map(|&(top, bottom)| Fraction::new(top, bottom)).collect())
    }

    #[test]
    fn lengths_add_up_exactly_over_uneven_cuts() {
        let scale = Scale::new(&cuts(&[(0, 1), (1, 3), (1, 2), (1, 1)]));
        assert_eq!(scale.fraction(scale.length(0, 2) as u128, 1), Fraction::new(1, 2));
        let sum = scale.length(0, 1) as u128 * 3 + scale.length(1, 2) as u128;
        assert_eq!(scale.fraction(sum, 2), Fraction::new(7, 12));
        assert_eq!(scale.fraction(sum, 0), Fraction::ZERO);
    }

    #[test]
    fn cuts_without_a_common_unit_are_rounded_and_not_refused() {
        let primes = [4_294_967_291, 4_294_967_279, 4_294_967_231];
        let scale = Scale::new(&cuts(&[(0, 1), (1, primes[0]), (1, primes[1]), (1, primes[2]), (1, 1)]));
        assert_eq!(scale.fraction(scale.length(0, 4) as u128, 1), Fraction::ONE);
    }
}
