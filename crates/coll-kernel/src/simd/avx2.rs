//! AVX2 with F16C, vectors of 32 bytes.

use crate::element::{Bf16, Element, F16};
use crate::kernel::{self, CombineFn, Kernel};
use crate::simd::Scaling;
use crate::simd::f8::{e4m3_prod_loop, e4m3_sum_loop, e5m2_prod_loop, e5m2_sum_loop};
use coll_base::{DType, RedOp};
use std::arch::x86_64::*;

#[target_feature(enable = "avx2,f16c,bmi2")]
pub(super) fn each<const N: usize, K: Kernel<N>>(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
    kernel::each::<N, K>(target, a, b);
}

#[target_feature(enable = "avx2,f16c,bmi2")]
pub(super) fn map<const FROM: usize, const TO: usize>(
    from: &[u8],
    to: &mut [u8],
    convert: impl Fn([u8; FROM]) -> [u8; TO],
) {
    kernel::map(from, to, convert);
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes are read of an array of as many; the load needs no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8; 32], vector: __m256i) {
    // SAFETY: 32 bytes are written to an array of as many; the store needs no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}

/// A loop of a function on vectors; what is left of less than a vector goes the portable way.
macro_rules! vector_loop {
    ($name:ident = $function:ident, rest $kernel:ty: $size:literal) => {
        #[target_feature(enable = "avx2,f16c,bmi2")]
        fn $name(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
            let (targets, target_rest) = target.as_chunks_mut::<32>();
            let (bs, b_rest) = b.as_chunks::<32>();
            match a.map(|a| a.as_chunks::<32>()) {
                None => {
                    for (target, b) in targets.iter_mut().zip(bs) {
                        store(target, $function(load(target), load(b)));
                    }
                    kernel::each::<$size, $kernel>(target_rest, None, b_rest);
                }
                Some((a_s, a_rest)) => {
                    for ((target, a), b) in targets.iter_mut().zip(a_s).zip(bs) {
                        store(target, $function(load(a), load(b)));
                    }
                    kernel::each::<$size, $kernel>(target_rest, Some(a_rest), b_rest);
                }
            }
        }
    };
}

/// Pointers to safe functions that may be called here alone, where the processor was asked.
macro_rules! table {
    ($op:expr, $dtype:expr; $($ops:pat, $dtypes:pat => $name:ident;)*) => {
        match ($op, $dtype) {
            // SAFETY: `super::hand_made` asks for this table only where the processor has these features.
            $(($ops, $dtypes) => Some(|target, a, b| unsafe { $name(target, a, b) }),)*
            _ => None,
        }
    };
}

/// The loops that are made by hand.
pub(super) fn hand_made(op: RedOp, dtype: DType) -> Option<CombineFn> {
    table! { op, dtype;
        RedOp::Sum, DType::Bf16 => bf16_sum_loop;
        RedOp::Prod, DType::Bf16 => bf16_prod_loop;
        RedOp::Sum, DType::F16 => f16_sum_loop;
        RedOp::Prod, DType::F16 => f16_prod_loop;
        RedOp::Sum, DType::F8E4M3 => e4m3_sum_loop;
        RedOp::Prod, DType::F8E4M3 => e4m3_prod_loop;
        RedOp::Sum, DType::F8E5M2 => e5m2_sum_loop;
        RedOp::Prod, DType::F8E5M2 => e5m2_prod_loop;
        RedOp::Min, DType::F32 => f32_min_loop;
        RedOp::Max, DType::F32 => f32_max_loop;
        RedOp::Min, DType::F64 => f64_min_loop;
        RedOp::Max, DType::F64 => f64_max_loop;
        RedOp::Prod, DType::C64 => c64_prod_loop;
        RedOp::Prod, DType::C128 => c128_prod_loop;
    }
}

vector_loop!(bf16_sum_loop = bf16_sum, rest kernel::Sum<Bf16>: 2);
vector_loop!(bf16_prod_loop = bf16_prod, rest kernel::Prod<Bf16>: 2);
vector_loop!(f32_min_loop = f32_min, rest kernel::Min<f32>: 4);
vector_loop!(f32_max_loop = f32_max, rest kernel::Max<f32>: 4);
vector_loop!(f64_min_loop = f64_min, rest kernel::Min<f64>: 8);
vector_loop!(f64_max_loop = f64_max, rest kernel::Max<f64>: 8);
vector_loop!(c64_prod_loop = c64_prod, rest kernel::ComplexProd<f32>: 8);
vector_loop!(c128_prod_loop = c128_prod, rest kernel::ComplexProd<f64>: 16);

/// The elements of even and of odd places: a bf16 is the upper half of an f32.
#[inline]
#[target_feature(enable = "avx2")]
fn widened(elements: __m256i) -> [__m256; 2] {
    let odd = _mm256_and_si256(elements, _mm256_set1_epi32(0xffff_0000u32 as i32));
    [_mm256_castsi256_ps(_mm256_slli_epi32::<16>(elements)), _mm256_castsi256_ps(odd)]
}

/// Upper halves, at even and at odd places.
#[inline]
#[target_feature(enable = "avx2")]
fn upper_halves(even: __m256i, odd: __m256i) -> __m256i {
    _mm256_blend_epi16::<0xaa>(_mm256_srli_epi32::<16>(even), odd)
}

/// The upper half is the nearest bf16, ties to even, or a quiet NaN.
#[inline]
#[target_feature(enable = "avx2")]
fn rounded(value: __m256) -> __m256i {
    let bits = _mm256_castps_si256(value);
    let last = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), last);
    let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(value, value));
    let quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x40_0000));
    _mm256_blendv_epi8(rounded, quiet, nan)
}

macro_rules! on_bf16 {
    ($name:ident, $function:ident) => {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn $name(a: __m256i, b: __m256i) -> __m256i {
            let ([a_even, a_odd], [b_even, b_odd]) = (widened(a), widened(b));
            upper_halves(rounded($function(a_even, b_even)), rounded($function(a_odd, b_odd)))
        }
    };
}

on_bf16!(bf16_sum, add);
on_bf16!(bf16_prod, mul);

macro_rules! on_f16 {
    ($name:ident = $function:ident, rest $kernel:ty) => {
        #[target_feature(enable = "avx2,f16c,bmi2")]
        fn $name(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
            let (targets, target_rest) = target.as_chunks_mut::<16>();
            let (bs, b_rest) = b.as_chunks::<16>();
            match a.map(|a| a.as_chunks::<16>()) {
                None => {
                    for (target, b) in targets.iter_mut().zip(bs) {
                        store_f16(target, $function(load_f16(target), load_f16(b)));
                    }
                    kernel::each::<2, $kernel>(target_rest, None, b_rest);
                }
                Some((a_s, a_rest)) => {
                    for ((target, a), b) in targets.iter_mut().zip(a_s).zip(bs) {
                        store_f16(target, $function(load_f16(a), load_f16(b)));
                    }
                    kernel::each::<2, $kernel>(target_rest, Some(a_rest), b_rest);
                }
            }
        }
    };
}

on_f16!(f16_sum_loop = add, rest kernel::Sum<F16>);
on_f16!(f16_prod_loop = mul, rest kernel::Prod<F16>);

/// Eight elements. The conversion reads memory itself, which is cheaper than to cut a longer vector in two.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn load_f16(bytes: &[u8; 16]) -> __m256 {
    // SAFETY: 16 bytes are read of an array of as many; the load needs no alignment.
    _mm256_cvtph_ps(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn store_f16(bytes: &mut [u8; 16], vector: __m256) {
    let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(vector);
    // SAFETY: 16 bytes are written to an array of as many; the store needs no alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), halves) }
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn add(a: __m256, b: __m256) -> __m256 {
    _mm256_add_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn mul(a: __m256, b: __m256) -> __m256 {
    _mm256_mul_ps(a, b)
}

/// The instruction gives its second operand for zeros of two signs and for NaN: asked both ways round, the bits of
/// the two results together are those of the lesser zero, or of the greater. NaN becomes one with all bits set.
macro_rules! extremum {
    ($min:ident, $max:ident, $vector:ty: $min_instruction:ident $max_instruction:ident
     $or:ident $and:ident $compare:ident) => {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn $min(a: $vector, b: $vector) -> $vector {
            let both = $or($min_instruction(a, b), $min_instruction(b, a));
            $or(both, $compare::<_CMP_UNORD_Q>(a, b))
        }

        #[inline]
        #[target_feature(enable = "avx2")]
        fn $max(a: $vector, b: $vector) -> $vector {
            let both = $and($max_instruction(a, b), $max_instruction(b, a));
            $or(both, $compare::<_CMP_UNORD_Q>(a, b))
        }
    };
}

extremum!(min, max, __m256: _mm256_min_ps _mm256_max_ps _mm256_or_ps _mm256_and_ps _mm256_cmp_ps);
extremum!(min_f64, max_f64, __m256d: _mm256_min_pd _mm256_max_pd _mm256_or_pd _mm256_and_pd _mm256_cmp_pd);

macro_rules! as_bytes {
    ($name:ident, $function:ident, $cast:ident, $back:ident) => {
        #[inline]
        #[target_feature(enable = "avx2")]
        fn $name(a: __m256i, b: __m256i) -> __m256i {
            $back($function($cast(a), $cast(b)))
        }
    };
}

as_bytes!(f32_min, min, _mm256_castsi256_ps, _mm256_castps_si256);
as_bytes!(f32_max, max, _mm256_castsi256_ps, _mm256_castps_si256);
as_bytes!(f64_min, min_f64, _mm256_castsi256_pd, _mm256_castpd_si256);
as_bytes!(f64_max, max_f64, _mm256_castsi256_pd, _mm256_castpd_si256);

/// The real parts twice times the other number, and the imaginary parts twice times it turned round: subtracted for
/// the real part, added for the imaginary one.
#[inline]
#[target_feature(enable = "avx2")]
fn c64_prod(a: __m256i, b: __m256i) -> __m256i {
    let (a, b) = (_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    let one = _mm256_mul_ps(_mm256_moveldup_ps(a), b);
    let two = _mm256_mul_ps(_mm256_movehdup_ps(a), _mm256_permute_ps::<0b10_11_00_01>(b));
    _mm256_castps_si256(_mm256_addsub_ps(one, two))
}

#[inline]
#[target_feature(enable = "avx2")]
fn c128_prod(a: __m256i, b: __m256i) -> __m256i {
    let (a, b) = (_mm256_castsi256_pd(a), _mm256_castsi256_pd(b));
    let one = _mm256_mul_pd(_mm256_movedup_pd(a), b);
    let two = _mm256_mul_pd(_mm256_permute_pd::<0b1111>(a), _mm256_permute_pd::<0b0101>(b));
    _mm256_castpd_si256(_mm256_addsub_pd(one, two))
}

/// Scales f16.
#[target_feature(enable = "avx2,f16c,bmi2")]
pub(super) fn scale_f16(from: &[u8], to: &mut [u8], scale: Scaling) {
    let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<16>(), to.as_chunks_mut::<16>());
    match scale {
        Scaling::Times(factor) => {
            let factor = _mm256_set1_ps(factor);
            to.iter_mut().zip(from).for_each(|(to, from)| store_f16(to, mul(load_f16(from), factor)));
        }
        Scaling::Over(divisor) => {
            let divisor = _mm256_set1_ps(divisor);
            to.iter_mut().zip(from).for_each(|(to, from)| store_f16(to, div(load_f16(from), divisor)));
        }
    }
    kernel::map::<2, 2>(from_rest, to_rest, |x| F16::store(scale.of(F16::load(x))));
}

/// Scales bf16.
#[target_feature(enable = "avx2,f16c,bmi2")]
pub(super) fn scale_bf16(from: &[u8], to: &mut [u8], scale: Scaling) {
    let ((from, from_rest), (to, to_rest)) = (from.as_chunks::<32>(), to.as_chunks_mut::<32>());
    match scale {
        Scaling::Times(factor) => {
            let factor = _mm256_set1_ps(factor);
            for (to, from) in to.iter_mut().zip(from) {
                let [even, odd] = widened(load(from));
                store(to, upper_halves(rounded(mul(even, factor)), rounded(mul(odd, factor))));
            }
        }
        Scaling::Over(divisor) => {
            let divisor = _mm256_set1_ps(divisor);
            for (to, from) in to.iter_mut().zip(from) {
                let [even, odd] = widened(load(from));
                store(to, upper_halves(rounded(div(even, divisor)), rounded(div(odd, divisor))));
            }
        }
    }
    kernel::map::<2, 2>(from_rest, to_rest, |x| Bf16::store(scale.of(Bf16::load(x))));
}

#[inline]
#[target_feature(enable = "avx2")]
fn div(a: __m256, b: __m256) -> __m256 {
    _mm256_div_ps(a, b)
}
