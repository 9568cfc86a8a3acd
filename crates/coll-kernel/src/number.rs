//! What a number can do: the one place where the arithmetic of every element type is written down.
//!
//! Integers wrap, also where the compiler would check; `min` and `max` propagate NaN and give the same bits whichever
//! way round their operands come. Selections are made of masks, not of branches: the natural `if a < b { b } else { a }`
//! onto the place that `a` came from is compiled to masked stores, many times slower.

use crate::expr::{Binary, Unary};

/// `x := f(x)` on a block.
pub(crate) type UnaryFn<T> = fn(&mut [T]);
/// `x := f(x, y)` on a block.
pub(crate) type BinaryFn<T> = fn(&mut [T], &[T]);

/// A type that elements are computed in.
pub(crate) trait Number: Copy + Default + PartialOrd + Send + Sync + 'static {
    /// A whole number, if the type holds it; floats take the nearest.
    fn from_int(value: i64) -> Option<Self>;
    /// A number, if the type holds it: integers refuse fractions.
    fn from_float(value: f64) -> Option<Self>;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    /// `x` if `condition`, else `y`, without a branch.
    fn select(condition: bool, x: Self, y: Self) -> Self;
    /// The block form of a function, if the type has it.
    fn unary(op: Unary) -> Option<UnaryFn<Self>>;
    /// The block form of an operator that gives a number, if the type has it.
    fn binary(op: Binary) -> Option<BinaryFn<Self>>;
}

/// The block form of a function, as a pointer to a loop of its own.
macro_rules! on_block {
    (|$x:ident| $body:expr) => {
        Some(|xs| each(xs, |$x| $body))
    };
    (|$x:ident, $y:ident| $body:expr) => {
        Some(|xs, ys| each_pair(xs, ys, |$x, $y| $body))
    };
}

#[inline(always)]
fn each<T: Copy>(xs: &mut [T], function: impl Fn(T) -> T) {
    xs.iter_mut().for_each(|x| *x = function(*x));
}

#[inline(always)]
fn each_pair<T: Copy>(xs: &mut [T], ys: &[T], function: impl Fn(T, T) -> T) {
    xs.iter_mut().zip(ys).for_each(|(x, y)| *x = function(*x, *y));
}

macro_rules! integer {
    ($type:ty, abs: |$a:ident| $abs:expr) => {
        impl Number for $type {
            fn from_int(value: i64) -> Option<Self> {
                value.try_into().ok()
            }
            fn from_float(value: f64) -> Option<Self> {
                let whole = value as i128;
                if whole as f64 == value { whole.try_into().ok() } else { None }
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                Ord::min(self, other)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                Ord::max(self, other)
            }
            #[inline(always)]
            fn select(condition: bool, x: Self, y: Self) -> Self {
                let mask = (condition as $type).wrapping_neg();
                (x & mask) | (y & !mask)
            }
            fn unary(op: Unary) -> Option<UnaryFn<Self>> {
                match op {
                    Unary::Neg => on_block!(|x| x.wrapping_neg()),
                    Unary::Abs => on_block!(|$a| $abs),
                    Unary::Sqrt | Unary::Not => None,
                }
            }
            fn binary(op: Binary) -> Option<BinaryFn<Self>> {
                match op {
                    Binary::Add => on_block!(|x, y| x.wrapping_add(y)),
                    Binary::Sub => on_block!(|x, y| x.wrapping_sub(y)),
                    Binary::Mul => on_block!(|x, y| x.wrapping_mul(y)),
                    Binary::Div => on_block!(|x, y| if y == 0 { 0 } else { x.wrapping_div(y) }),
                    Binary::Mod => on_block!(|x, y| if y == 0 { 0 } else { x.wrapping_rem_euclid(y) }),
                    Binary::Min => on_block!(|x, y| Ord::min(x, y)),
                    Binary::Max => on_block!(|x, y| Ord::max(x, y)),
                    Binary::BitAnd => on_block!(|x, y| x & y),
                    Binary::BitOr => on_block!(|x, y| x | y),
                    Binary::BitXor => on_block!(|x, y| x ^ y),
                    Binary::Shl => on_block!(|x, y| shift(y, <$type>::BITS).map_or(0, |by| x << by)),
                    Binary::Shr => on_block!(|x, y| match shift(y, <$type>::BITS) {
                        Some(by) => x >> by,
                        // All bits gone but the sign's, if there is one.
                        None => x >> (<$type>::BITS - 1) >> (<$type>::BITS - 1),
                    }),
                    _ => None,
                }
            }
        }
    };
}

integer!(u8, abs: |x| x);
integer!(u16, abs: |x| x);
integer!(u32, abs: |x| x);
integer!(u64, abs: |x| x);
integer!(i8, abs: |x| x.wrapping_abs());
integer!(i16, abs: |x| x.wrapping_abs());
integer!(i32, abs: |x| x.wrapping_abs());
integer!(i64, abs: |x| x.wrapping_abs());

/// A shift distance that is within the width.
#[inline(always)]
fn shift<T: TryInto<u32>>(by: T, bits: u32) -> Option<u32> {
    by.try_into().ok().filter(|&by| by < bits)
}

macro_rules! float {
    ($type:ty, $bits:ty) => {
        impl Number for $type {
            fn from_int(value: i64) -> Option<Self> {
                Some(value as $type)
            }
            fn from_float(value: f64) -> Option<Self> {
                Some(value as $type)
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            /// Both ways round, as the processor's instruction does: the two differ for zeros of two signs, whose
            /// bits are united (`-0` is less), and for NaN, which sets all bits and is a NaN again.
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                let (one, two) =
                    (if self < other { self } else { other }, if other < self { other } else { self });
                let nan = ((self.is_nan() | other.is_nan()) as $bits).wrapping_neg();
                <$type>::from_bits(one.to_bits() | two.to_bits() | nan)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                let (one, two) =
                    (if self > other { self } else { other }, if other > self { other } else { self });
                let nan = ((self.is_nan() | other.is_nan()) as $bits).wrapping_neg();
                <$type>::from_bits((one.to_bits() & two.to_bits()) | nan)
            }
            #[inline(always)]
            fn select(condition: bool, x: Self, y: Self) -> Self {
                let mask = (condition as $bits).wrapping_neg();
                <$type>::from_bits((x.to_bits() & mask) | (y.to_bits() & !mask))
            }
            fn unary(op: Unary) -> Option<UnaryFn<Self>> {
                match op {
                    Unary::Neg => on_block!(|x| -x),
                    Unary::Abs => on_block!(|x| x.abs()),
                    Unary::Sqrt => on_block!(|x| x.sqrt()),
                    Unary::Not => None,
                }
            }
            fn binary(op: Binary) -> Option<BinaryFn<Self>> {
                match op {
                    Binary::Add => on_block!(|x, y| x + y),
                    Binary::Sub => on_block!(|x, y| x - y),
                    Binary::Mul => on_block!(|x, y| x * y),
                    Binary::Div => on_block!(|x, y| x / y),
                    Binary::Mod => on_block!(|x, y| if y == 0.0 { 0.0 } else { x.rem_euclid(y) }),
                    Binary::Min => on_block!(|x, y| Number::min(x, y)),
                    Binary::Max => on_block!(|x, y| Number::max(x, y)),
                    _ => None,
                }
            }
        }
    };
}

float!(f32, u32);
float!(f64, u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn apply<T: Number>(op: Binary, x: T, y: T) -> T {
        let mut block = [x];
        T::binary(op).unwrap()(&mut block, &[y]);
        block[0]
    }

    #[test]
    fn min_and_max_propagate_nan_and_do_not_mind_the_order() {
        for (x, y) in [(1.0, f32::NAN), (f32::NAN, 1.0), (f32::NAN, -f32::NAN), (f32::NEG_INFINITY, f32::NAN)]
        {
            assert!(Number::min(x, y).is_nan() && Number::max(x, y).is_nan(), "{x} {y}");
            assert_eq!(Number::max(x, y).to_bits(), Number::max(y, x).to_bits());
        }
        assert_eq!(Number::min(0.0f64, -0.0).to_bits(), (-0.0f64).to_bits());
        assert_eq!(Number::min(-0.0f64, 0.0).to_bits(), (-0.0f64).to_bits());
        assert_eq!(Number::max(-0.0f64, 0.0).to_bits(), 0.0f64.to_bits());
        assert_eq!(Number::max(f32::INFINITY, 3.0), f32::INFINITY);
        assert_eq!(Number::min(-2.0f32, 3.0), -2.0);
    }

    #[test]
    fn integer_arithmetic_wraps_and_division_by_zero_is_zero() {
        assert_eq!(apply(Binary::Add, i32::MAX, 1), i32::MIN);
        assert_eq!(apply(Binary::Mul, 200u8, 2), 144);
        assert_eq!(apply(Binary::Div, i64::MIN, -1), i64::MIN);
        assert_eq!((apply(Binary::Div, -7i32, 2), apply(Binary::Mod, -7i32, 2)), (-3, 1));
        assert_eq!((apply(Binary::Div, 7i32, 0), apply(Binary::Mod, 7i32, 0)), (0, 0));
    }

    #[test]
    fn shifts_beyond_the_width_leave_nothing_but_the_sign() {
        assert_eq!((apply(Binary::Shl, 1i32, 31), apply(Binary::Shl, 1i32, 32)), (i32::MIN, 0));
        assert_eq!((apply(Binary::Shl, 1i32, -1), apply(Binary::Shr, -8i32, -1)), (0, -1));
        assert_eq!((apply(Binary::Shr, -8i32, 1), apply(Binary::Shr, 8i64, 64)), (-4, 0));
        assert_eq!((apply(Binary::Shr, 128u8, 7), apply(Binary::Shr, 255u8, 8)), (1, 0));
    }

    #[test]
    fn a_constant_that_the_type_does_not_hold_is_refused() {
        assert_eq!((u8::from_int(255), u8::from_int(256), u8::from_int(-1)), (Some(255), None, None));
        assert_eq!((i32::from_float(2.0), i32::from_float(2.5), i32::from_float(3e9)), (Some(2), None, None));
        assert_eq!((u8::from_float(255.0), i32::from_float(2147483647.0)), (Some(255), Some(i32::MAX)));
        assert_eq!(
            (i64::from_float(9.3e18), i64::from_float(-9223372036854775808.0)),
            (None, Some(i64::MIN))
        );
        assert_eq!(i64::from_float(f64::NAN), None);
    }
}
