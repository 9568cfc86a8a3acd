//! Division of many sums by one number, toward zero, without the processor's division.

/// Sums whose mean over at most 2^16 values is an integer of at most 32 bits.
pub(crate) trait Mean: Copy {
    /// The sum divided toward zero, in the lower bits, given the reciprocal of the number of values.
    fn mean(self, reciprocal: f64) -> u32;
}

/// 1.5 · 2^52: a number that is added to it is rounded to an integer, which the lower bits of the sum hold.
const INTEGERS: f64 = 6_755_399_441_055_744.0;

/// `(x + ½) / d` lies at least `½ / d ≥ 2^-17` from any integer, and is less than 2^32: its error, in three roundings, is
/// less than `1.5 · 2^-20`, so that what is above the next lower integer is never taken for less. That integer is the
/// quotient: it is what `(x + ½) / d - ½` is nearest to.
#[inline(always)]
fn quotient(sum: f64, reciprocal: f64) -> u32 {
    let half = 0.5f64.copysign(sum);
    ((sum + half) * reciprocal - half + INTEGERS).to_bits() as u32
}

impl Mean for i32 {
    #[inline(always)]
    fn mean(self, reciprocal: f64) -> u32 {
        quotient(self.into(), reciprocal)
    }
}

impl Mean for u32 {
    #[inline(always)]
    fn mean(self, reciprocal: f64) -> u32 {
        quotient(self.into(), reciprocal)
    }
}

impl Mean for i64 {
    #[inline(always)]
    fn mean(self, reciprocal: f64) -> u32 {
        // At most 2^47 in size: exact, and by an addition, for which every processor has vectors.
        let float = f64::from_bits(INTEGERS.to_bits().wrapping_add(self as u64)) - INTEGERS;
        quotient(float, reciprocal)
    }
}

impl Mean for u64 {
    #[inline(always)]
    fn mean(self, reciprocal: f64) -> u32 {
        (self as i64).mean(reciprocal)
    }
}

/// A divisor of 128-bit sums, prepared: N. Möller and T. Granlund, *Improved Division by Invariant Integers*, IEEE
/// Transactions on Computers 60 (2011), algorithm 4.
#[derive(Clone, Copy)]
pub(crate) struct Divisor64 {
    /// Shifted so that its uppermost bit is set.
    divisor: u64,
    shift: u32,
    /// `(2^128 - 1) / divisor - 2^64`
    reciprocal: u64,
}

impl Divisor64 {
    /// Of a number that is not zero.
    pub(crate) fn new(divisor: u64) -> Divisor64 {
        let shift = divisor.max(1).leading_zeros();
        let divisor = divisor.max(1) << shift;
        Divisor64 { divisor, shift, reciprocal: (u128::MAX / u128::from(divisor)) as u64 }
    }

    /// The logarithm of the divisor, if it is a power of two: shifts do then.
    pub(crate) fn power_of_two(self) -> Option<u32> {
        (self.divisor == 1 << 63).then_some(63 - self.shift)
    }

    /// The quotient, if it has 64 bits: a mean of such numbers has.
    #[inline(always)]
    fn quotient(self, sum: u128) -> u64 {
        let sum = sum << self.shift;
        let (upper, lower) = ((sum >> 64) as u64, sum as u64);
        let estimate = (u128::from(self.reciprocal) * u128::from(upper)).wrapping_add(sum);
        let (mut quotient, fraction) = (((estimate >> 64) as u64).wrapping_add(1), estimate as u64);
        let mut remainder = lower.wrapping_sub(quotient.wrapping_mul(self.divisor));
        if remainder > fraction {
            quotient = quotient.wrapping_sub(1);
            remainder = remainder.wrapping_add(self.divisor);
        }
        if remainder >= self.divisor {
            quotient = quotient.wrapping_add(1);
        }
        quotient
    }
}

/// The mean of `i64`s, toward zero.
#[inline(always)]
pub(crate) fn mean_of_i64(sum: i128, leaves: Divisor64) -> i64 {
    let sign = (sum >> 127) as i64;
    (leaves.quotient(sum.unsigned_abs()) as i64 ^ sign).wrapping_sub(sign)
}

/// The mean of 2^`power` `i64`s, toward zero.
#[inline(always)]
pub(crate) fn mean_of_i64_shifted(sum: i128, power: u32) -> i64 {
    // Negative sums are rounded up.
    ((sum + ((sum >> 127) & ((1 << power) - 1))) >> power) as i64
}

/// The mean of `u64`s.
#[inline(always)]
pub(crate) fn mean_of_u64(sum: u128, leaves: Divisor64) -> u64 {
    leaves.quotient(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn leaves() -> impl Strategy<Value = u64> {
        prop_oneof![1..=70u64, 65_000..=65_536u64, (0..=16u32).prop_map(|bits| 1 << bits), 1..=65_536u64]
    }

    /// Multiples of the divisor and their neighbours, where a quotient changes.
    fn near(leaves: u64, mean: i128, offset: i128, least: i128, most: i128) -> i128 {
        (mean * i128::from(leaves) + offset % i128::from(leaves))
            .clamp(least * i128::from(leaves), most * i128::from(leaves))
    }

    proptest! {
        #[test]
        fn sums_of_narrow_integers(leaves in leaves(), mean in any::<i32>(), offset in -2..=2i128) {
            let reciprocal = 1.0 / leaves as f64;
            let due = |sum: i128| sum / i128::from(leaves);
            let sum = near(leaves, mean.into(), offset, i32::MIN.into(), i32::MAX.into());
            prop_assert_eq!(i128::from((sum as i64).mean(reciprocal) as i32), due(sum), "{} / {}", sum, leaves);
            let sum = near(leaves, (mean as u32).into(), offset, 0, u32::MAX.into());
            prop_assert_eq!(i128::from((sum as u64).mean(reciprocal)), due(sum), "{} / {}", sum, leaves);
            let sum = near(leaves, (mean as i16).into(), offset, i16::MIN.into(), i16::MAX.into());
            prop_assert_eq!(i128::from((sum as i32).mean(reciprocal) as i16), due(sum), "{} / {}", sum, leaves);
            let sum = near(leaves, (mean as u16).into(), offset, 0, (u16::MAX - 1).into());
            prop_assert_eq!(i128::from((sum as u32).mean(reciprocal) as u16), due(sum), "{} / {}", sum, leaves);
        }

        #[test]
        fn sums_of_wide_integers(leaves in 1..=u64::MAX, shift in 0..64u32, mean in any::<i64>(), offset in -2..=2i128) {
            let leaves = (leaves >> shift).max(1);
            let divisor = Divisor64::new(leaves);
            let signed = mean.clamp(i64::MIN + 2, i64::MAX - 2);
            if leaves <= 1 << 62 {
                let sum = i128::from(signed) * i128::from(leaves) + offset;
                prop_assert_eq!(i128::from(mean_of_i64(sum, divisor)), sum / i128::from(leaves));
            }
            let sum = u128::from(mean as u64) * u128::from(leaves) + (offset.unsigned_abs() % u128::from(leaves));
            prop_assert_eq!(u128::from(mean_of_u64(sum, divisor)), sum / u128::from(leaves));
        }
    }

    #[test]
    fn extremes() {
        for leaves in [1, 2, 3, 65_535, 65_536] {
            let (reciprocal, wide) = (1.0 / leaves as f64, Divisor64::new(leaves as u64));
            for (least, most) in [(i64::from(i32::MIN), i64::from(i32::MAX)), (-1, 1), (0, 0)] {
                assert_eq!((least * leaves).mean(reciprocal) as i32, least as i32);
                assert_eq!((most * leaves).mean(reciprocal) as i32, most as i32);
            }
            assert_eq!((u64::from(u32::MAX) * leaves as u64).mean(reciprocal), u32::MAX);
            if let Some(power) = wide.power_of_two() {
                for sum in
                    [i128::from(i64::MIN) * i128::from(leaves), -leaves as i128, -1, 0, 1, 1 - leaves as i128]
                {
                    assert_eq!(mean_of_i64_shifted(sum, power), mean_of_i64(sum, wide), "{sum} / {leaves}");
                }
            }
            assert_eq!(wide.power_of_two().is_some(), (leaves as u64).is_power_of_two());
            assert_eq!(mean_of_i64(i128::from(i64::MIN) * i128::from(leaves), wide), i64::MIN);
            assert_eq!(mean_of_i64(i128::from(i64::MAX) * i128::from(leaves), wide), i64::MAX);
            assert_eq!(mean_of_u64(u128::from(u64::MAX) * leaves as u128, wide), u64::MAX);
        }
    }
}
