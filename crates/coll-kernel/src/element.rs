//! An element in memory and the number it is computed as. Memory is bytes, of any alignment.

use crate::narrow;
use crate::narrow8;
use crate::number::Number;

/// An element of `N` bytes.
pub(crate) trait Element<const N: usize>: Send + Sync + 'static {
    /// What it is computed in.
    type Number: Number;
    fn load(bytes: [u8; N]) -> Self::Number;
    fn store(number: Self::Number) -> [u8; N];
}

/// An IEEE half, computed in `f32`.
pub(crate) struct F16;
/// The upper half of an `f32`, computed in `f32`.
pub(crate) struct Bf16;
/// OCP's E4M3, computed in `f32`.
pub(crate) struct F8E4M3;
/// OCP's E5M2, computed in `f32`.
pub(crate) struct F8E5M2;

macro_rules! own_number {
    ($type:ty, $size:literal) => {
        impl Element<$size> for $type {
            type Number = $type;
            #[inline(always)]
            fn load(bytes: [u8; $size]) -> $type {
                <$type>::from_ne_bytes(bytes)
            }
            #[inline(always)]
            fn store(number: $type) -> [u8; $size] {
                number.to_ne_bytes()
            }
        }
    };
}

own_number!(i8, 1);
own_number!(u8, 1);
own_number!(i16, 2);
own_number!(u16, 2);
own_number!(i32, 4);
own_number!(u32, 4);
own_number!(i64, 8);
own_number!(u64, 8);
own_number!(f32, 4);
own_number!(f64, 8);

impl Element<2> for F16 {
    type Number = f32;
    #[inline(always)]
    fn load(bytes: [u8; 2]) -> f32 {
        narrow::f32_of_f16(u16::from_ne_bytes(bytes))
    }
    #[inline(always)]
    fn store(number: f32) -> [u8; 2] {
        narrow::f16_of_f32(number).to_ne_bytes()
    }
}

impl Element<2> for Bf16 {
    type Number = f32;
    #[inline(always)]
    fn load(bytes: [u8; 2]) -> f32 {
        narrow::f32_of_bf16(u16::from_ne_bytes(bytes))
    }
    #[inline(always)]
    fn store(number: f32) -> [u8; 2] {
        narrow::bf16_of_f32(number).to_ne_bytes()
    }
}

impl Element<1> for F8E4M3 {
    type Number = f32;
    #[inline(always)]
    fn load(bytes: [u8; 1]) -> f32 {
        narrow8::f32_of_e4m3(bytes[0])
    }
    #[inline(always)]
    fn store(number: f32) -> [u8; 1] {
        [narrow8::e4m3_of_f32(number)]
    }
}

impl Element<1> for F8E5M2 {
    type Number = f32;
    #[inline(always)]
    fn load(bytes: [u8; 1]) -> f32 {
        narrow8::f32_of_e5m2(bytes[0])
    }
    #[inline(always)]
    fn store(number: f32) -> [u8; 1] {
        [narrow8::e5m2_of_f32(number)]
    }
}
