//! Exact fractions of a block. A cut never speaks of elements: piece `x..y` of a block of `e` elements is the
//! elements `⌈x·e⌉..⌈y·e⌉`, so that a piece is the same elements however it was come by.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// A number between 0 and, usually, 1, in lowest terms. Shown as `0`, `1/4`, `3/2`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fraction {
    numerator: u64,
    denominator: u64,
}

/// A fraction whose parts do not fit 64 bits: cuts nested too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fraction needs more than 64 bits: the cuts are nested too deeply")]
pub struct FractionError;

impl Fraction {
    /// Nothing.
    pub const ZERO: Fraction = Fraction { numerator: 0, denominator: 1 };
    /// The whole.
    pub const ONE: Fraction = Fraction { numerator: 1, denominator: 1 };

    /// `numerator / denominator`; the denominator is not 0.
    pub fn new(numerator: u64, denominator: u64) -> Fraction {
        assert!(denominator != 0, "a fraction's denominator is not 0");
        let divisor = gcd(numerator as u128, denominator as u128) as u64;
        Fraction { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    /// The number above the line.
    pub fn numerator(self) -> u64 {
        self.numerator
    }

    /// The number below the line.
    pub fn denominator(self) -> u64 {
        self.denominator
    }

    /// Cut `i` of `parts` equal parts of `low..high`: `low + (high - low) · i / parts`.
    pub fn between(low: Fraction, high: Fraction, i: u64, parts: u64) -> Result<Fraction, FractionError> {
        if low == Fraction::ZERO && high == Fraction::ONE {
            return Ok(Fraction::new(i, parts));
        }
        let length = high.minus(low)?;
        length.times(Fraction::new(i, parts))?.plus(low)
    }

    /// The sum.
    pub fn plus(self, other: Fraction) -> Result<Fraction, FractionError> {
        let (a, b) = (self.numerator as u128, self.denominator as u128);
        let (c, d) = (other.numerator as u128, other.denominator as u128);
        let top = (a * d).checked_add(c * b).ok_or(FractionError)?;
        Fraction::reduced(top, b * d)
    }

    /// The difference; `other` is not larger.
    pub fn minus(self, other: Fraction) -> Result<Fraction, FractionError> {
        let (a, b) = (self.numerator as u128, self.denominator as u128);
        let (c, d) = (other.numerator as u128, other.denominator as u128);
        Fraction::reduced((a * d).checked_sub(c * b).ok_or(FractionError)?, b * d)
    }

    /// The product.
    pub fn times(self, other: Fraction) -> Result<Fraction, FractionError> {
        let top = self.numerator as u128 * other.numerator as u128;
        Fraction::reduced(top, self.denominator as u128 * other.denominator as u128)
    }

    /// The first element at or after this fraction of `elements`: `⌈x·e⌉`. Needs `x ≤ 1`.
    pub fn of(self, elements: u64) -> u64 {
        let product = self.numerator as u128 * elements as u128;
        product.div_ceil(self.denominator as u128) as u64
    }

    /// The nearest float, for tables and models.
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    fn reduced(top: u128, bottom: u128) -> Result<Fraction, FractionError> {
        let divisor = gcd(top, bottom);
        let numerator = u64::try_from(top / divisor).map_err(|_| FractionError)?;
        let denominator = u64::try_from(bottom / divisor).map_err(|_| FractionError)?;
        Ok(Fraction { numerator, denominator })
    }
}

impl Ord for Fraction {
    fn cmp(&self, other: &Fraction) -> Ordering {
        let left = self.numerator as u128 * other.denominator as u128;
        left.cmp(&(other.numerator as u128 * self.denominator as u128))
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Fraction) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator {
            1 => write!(f, "{}", self.numerator),
            denominator => write!(f, "{}/{denominator}", self.numerator),
        }
    }
}

impl fmt::Debug for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Fraction {
    type Err = FractionError;

    fn from_str(text: &str) -> Result<Fraction, FractionError> {
        let (top, bottom) = text.split_once('/').unwrap_or((text, "1"));
        match (top.parse(), bottom.parse()) {
            (Ok(top), Ok(bottom)) if bottom != 0 => Ok(Fraction::new(top, bottom)),
            _ => Err(FractionError),
        }
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    if let (Ok(mut a), Ok(mut b)) = (u64::try_from(a), u64::try_from(b)) {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        return a.max(1) as u128;
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seven_elements_in_three_pieces_are_three_two_two() {
        let ends: Vec<u64> = (0..=3).map(|i| Fraction::new(i, 3).of(7)).collect();
        assert_eq!(ends, [0, 3, 5, 7]);
    }

    #[test]
    fn a_nested_cut_names_the_same_elements_as_a_flat_one() {
        for elements in 0..100 {
            for (outer, inner) in [(2, 3), (3, 4), (5, 7)] {
                for i in 0..outer {
                    let (low, high) = (Fraction::new(i, outer), Fraction::new(i + 1, outer));
                    for j in 0..=inner {
                        let nested = Fraction::between(low, high, j, inner).unwrap();
                        let flat = Fraction::new(i * inner + j, outer * inner);
                        assert_eq!(nested.of(elements), flat.of(elements));
                    }
                }
            }
        }
    }

    #[test]
    fn counts_above_32_bits_are_exact() {
        assert_eq!(Fraction::new(3, 4).of(3_200_000_000), 2_400_000_000);
        assert_eq!(Fraction::new(1, 3).of(u64::MAX), u64::MAX / 3);
    }
}
