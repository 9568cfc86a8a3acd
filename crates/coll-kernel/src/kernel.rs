//! What one combination computes, for every operator and element, and the loop around it. A kernel is a type, so that
//! [`crate::simd`] can compile the same loop for several processors.

use crate::element::Element;
use crate::number::Number;
use std::marker::PhantomData;

/// `target := a ⊕ b`, where `a` is the target itself if it is not given.
pub(crate) type CombineFn = fn(target: &mut [u8], a: Option<&[u8]>, b: &[u8]);

/// A commutative operator on elements of `N` bytes.
pub(crate) trait Kernel<const N: usize>: 'static {
    fn combine(a: [u8; N], b: [u8; N]) -> [u8; N];
}

/// Combines element by element.
#[inline(always)]
pub(crate) fn each<const N: usize, K: Kernel<N>>(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
    let (targets, _) = target.as_chunks_mut::<N>();
    let (bs, _) = b.as_chunks::<N>();
    match a {
        None => {
            for (target, b) in targets.iter_mut().zip(bs) {
                *target = K::combine(*target, *b);
            }
        }
        Some(a) => {
            let (a_s, _) = a.as_chunks::<N>();
            for ((target, a), b) in targets.iter_mut().zip(a_s).zip(bs) {
                *target = K::combine(*a, *b);
            }
        }
    }
}

/// Converts element by element.
#[inline(always)]
pub(crate) fn map<const FROM: usize, const TO: usize>(
    from: &[u8],
    to: &mut [u8],
    convert: impl Fn([u8; FROM]) -> [u8; TO],
) {
    let ((from, _), (to, _)) = (from.as_chunks::<FROM>(), to.as_chunks_mut::<TO>());
    for (to, from) in to.iter_mut().zip(from) {
        *to = convert(*from);
    }
}

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name<E>(PhantomData<E>);

        impl<const N: usize, E: Element<N>> Kernel<N> for $name<E> {
            #[inline(always)]
            fn combine(a: [u8; N], b: [u8; N]) -> [u8; N] {
                E::store(E::load(a).$method(E::load(b)))
            }
        }
    )*};
}

arithmetic! {
    /// `a + b`
    Sum = add;
    /// `a * b`
    Prod = mul;
    /// The lesser.
    Min = min;
    /// The greater.
    Max = max;
}

/// The lesser or, if `GREATER`, the greater of two narrow floats, without widening them: with the lower bits turned round
/// where the sign is set, their bits are ordered as integers are. NaN is what lies above `INFINITY` but for the sign; it
/// becomes one with all bits set, as in [`crate::number`].
pub(crate) struct Narrow<T, const INFINITY: u16, const GREATER: bool>(PhantomData<T>);

macro_rules! narrow_order {
    ($signed:ty, $bits:ty, $size:literal) => {
        impl<const INFINITY: u16, const GREATER: bool> Kernel<$size> for Narrow<$bits, INFINITY, GREATER> {
            #[inline(always)]
            fn combine(a: [u8; $size], b: [u8; $size]) -> [u8; $size] {
                let turn = |x: $signed| x ^ ((x >> (<$bits>::BITS - 1)) & <$signed>::MAX);
                let (x, y) = (<$signed>::from_ne_bytes(a), <$signed>::from_ne_bytes(b));
                let (u, v) = (turn(x), turn(y));
                let chosen = turn(if GREATER { Ord::max(u, v) } else { Ord::min(u, v) }) as $bits;
                let larger = Ord::max(x & <$signed>::MAX, y & <$signed>::MAX);
                let nan = ((larger > INFINITY as $signed) as $bits).wrapping_neg();
                (chosen | nan).to_ne_bytes()
            }
        }
    };
}

narrow_order!(i8, u8, 1);
narrow_order!(i16, u16, 2);

/// Infinity in the narrow formats; E4M3 has none, and its largest value takes the place.
pub(crate) mod infinity {
    pub(crate) const E4M3: u16 = 0x7e;
    pub(crate) const E5M2: u16 = 0x7c;
    pub(crate) const F16: u16 = 0x7c00;
    pub(crate) const BF16: u16 = 0x7f80;
}

macro_rules! bitwise {
    ($($name:ident = $op:tt;)*) => {$(
        /// Bit by bit, and so byte by byte for integers of every width.
        pub(crate) struct $name;

        impl Kernel<1> for $name {
            #[inline(always)]
            fn combine(a: [u8; 1], b: [u8; 1]) -> [u8; 1] {
                [a[0] $op b[0]]
            }
        }
    )*};
}

bitwise! { BitAnd = &; BitOr = |; BitXor = ^; }

macro_rules! logical {
    ($($name:ident = $op:tt on $($word:ty: $size:literal)*;)*) => {$(
        /// On truth values: zero is false, and the result is 0 or 1. Only the width of an integer matters.
        pub(crate) struct $name<T>(PhantomData<T>);

        $(impl Kernel<$size> for $name<$word> {
            #[inline(always)]
            fn combine(a: [u8; $size], b: [u8; $size]) -> [u8; $size] {
                let truth = (<$word>::from_ne_bytes(a) != 0) $op (<$word>::from_ne_bytes(b) != 0);
                <$word>::from(truth).to_ne_bytes()
            }
        })*
    )*};
}

logical! {
    And = & on u8: 1 u16: 2 u32: 4 u64: 8;
    Or = | on u8: 1 u16: 2 u32: 4 u64: 8;
    Xor = ^ on u8: 1 u16: 2 u32: 4 u64: 8;
}

macro_rules! wide_sum {
    ($($type:ty),*) => {$(
        impl Kernel<16> for WideSum<$type> {
            #[inline(always)]
            fn combine(a: [u8; 16], b: [u8; 16]) -> [u8; 16] {
                <$type>::from_ne_bytes(a).wrapping_add(<$type>::from_ne_bytes(b)).to_ne_bytes()
            }
        }
    )*};
}

/// Sums of 128-bit integers: what averages of 64-bit ones are summed in.
pub(crate) struct WideSum<T>(PhantomData<T>);

wide_sum!(i128, u128);

/// The product of complex numbers, by the formula of the schoolbook in the type of the parts.
pub(crate) struct ComplexProd<T>(PhantomData<T>);

macro_rules! complex_product {
    ($type:ty, $part:literal, $size:literal) => {
        impl Kernel<$size> for ComplexProd<$type> {
            #[inline(always)]
            fn combine(a: [u8; $size], b: [u8; $size]) -> [u8; $size] {
                let [(a_real, a_imaginary), (b_real, b_imaginary)] = [a, b].map(|bytes| {
                    let (real, imaginary) = pair::<$size, $part>(bytes);
                    (<$type>::from_ne_bytes(real), <$type>::from_ne_bytes(imaginary))
                });
                let real = a_real * b_real - a_imaginary * b_imaginary;
                let imaginary = a_real * b_imaginary + a_imaginary * b_real;
                joined::<$part, $size>(real.to_ne_bytes(), imaginary.to_ne_bytes())
            }
        }
    };
}

complex_product!(f32, 4, 8);
complex_product!(f64, 8, 16);

/// The lesser value with its index, or the greater if `GREATER`; of equal values, the lower index.
///
/// Zeros of both signs are equal. NaN beats every number, and of two the lower index wins. Where even the index is equal,
/// the sign of a zero or the bits of a NaN decide, so that the order of operands does not matter.
pub(crate) struct Located<T, const GREATER: bool>(PhantomData<T>);

macro_rules! located {
    ($type:ty, $index:ty, $part:literal, $size:literal, first: |$x:ident, $y:ident, $greater:ident| $first:expr) => {
        impl<const GREATER: bool> Kernel<$size> for Located<$type, GREATER> {
            #[inline(always)]
            fn combine(a: [u8; $size], b: [u8; $size]) -> [u8; $size] {
                let ($x, a_index) = pair::<$size, $part>(a);
                let ($y, b_index) = pair::<$size, $part>(b);
                let ($x, $y) = (<$type>::from_ne_bytes($x), <$type>::from_ne_bytes($y));
                let $greater = GREATER;
                let (better, equal, breaks_tie): (bool, bool, bool) = $first;
                let (a_index, b_index) = (<$index>::from_ne_bytes(a_index), <$index>::from_ne_bytes(b_index));
                let lower = (a_index < b_index) | ((a_index == b_index) & breaks_tie);
                let takes_a = better | (equal & lower);
                if takes_a { a } else { b }
            }
        }
    };
}

located!(i32, i32, 4, 8, first: |x, y, greater| {
    (if greater { x > y } else { x < y }, x == y, true)
});
located!(i64, i64, 8, 16, first: |x, y, greater| {
    (if greater { x > y } else { x < y }, x == y, true)
});
located!(f32, i32, 4, 8, first: |x, y, greater| {
    let (x_nan, y_nan) = (x.is_nan(), y.is_nan());
    let better = (x_nan & !y_nan) | if greater { x > y } else { x < y };
    let breaks_tie = if greater { x.to_bits() <= y.to_bits() } else { x.to_bits() >= y.to_bits() };
    (better, (x == y) | (x_nan & y_nan), breaks_tie)
});
located!(f64, i64, 8, 16, first: |x, y, greater| {
    let (x_nan, y_nan) = (x.is_nan(), y.is_nan());
    let better = (x_nan & !y_nan) | if greater { x > y } else { x < y };
    let breaks_tie = if greater { x.to_bits() <= y.to_bits() } else { x.to_bits() >= y.to_bits() };
    (better, (x == y) | (x_nan & y_nan), breaks_tie)
});

#[inline(always)]
fn pair<const N: usize, const PART: usize>(bytes: [u8; N]) -> ([u8; PART], [u8; PART]) {
    let (parts, _) = bytes.as_chunks::<PART>();
    (parts[0], parts[1])
}

#[inline(always)]
fn joined<const PART: usize, const N: usize>(one: [u8; PART], two: [u8; PART]) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..PART].copy_from_slice(&one);
    bytes[PART..].copy_from_slice(&two);
    bytes
}
