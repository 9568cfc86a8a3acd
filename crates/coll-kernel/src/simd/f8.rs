//! 8-bit floats by AVX2 with F16C, 16 at a time: bytes become halves by a shift, halves `f32` by the processor, and back.
//!
//! A half has the exponent of an E5M2 and more of its mantissa; shifted down by one it is an E4M3 times 2^-8, subnormals
//! included, for both formats' exponents begin at zero. A result goes to half first and then to 8 bits, and is rounded twice.
//! That is as good as once: a half keeps 11 bits. A sum that needs more has one operand so small that it moves the other by
//! less than a quarter of its last bit, which no rounding sees; a product needs 8 at most. A test tries all pairs.

use super::avx2::{add, mul};
use crate::element::{F8E4M3, F8E5M2};
use crate::kernel;
use std::arch::x86_64::*;

/// A loop of a function on 16 elements; what is left goes the portable way.
macro_rules! loop_of_16 {
    ($name:ident = $function:ident, rest $kernel:ty) => {
        #[target_feature(enable = "avx2,f16c,bmi2")]
        pub(super) fn $name(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
            let (targets, target_rest) = target.as_chunks_mut::<16>();
            let (bs, b_rest) = b.as_chunks::<16>();
            match a.map(|a| a.as_chunks::<16>()) {
                None => {
                    for (target, b) in targets.iter_mut().zip(bs) {
                        store(target, $function(load(target), load(b)));
                    }
                    kernel::each::<1, $kernel>(target_rest, None, b_rest);
                }
                Some((a_s, a_rest)) => {
                    for ((target, a), b) in targets.iter_mut().zip(a_s).zip(bs) {
                        store(target, $function(load(a), load(b)));
                    }
                    kernel::each::<1, $kernel>(target_rest, Some(a_rest), b_rest);
                }
            }
        }
    };
}

loop_of_16!(e4m3_sum_loop = e4m3_sum, rest kernel::Sum<F8E4M3>);
loop_of_16!(e4m3_prod_loop = e4m3_prod, rest kernel::Prod<F8E4M3>);
loop_of_16!(e5m2_sum_loop = e5m2_sum, rest kernel::Sum<F8E5M2>);
loop_of_16!(e5m2_prod_loop = e5m2_prod, rest kernel::Prod<F8E5M2>);

#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are read of an array of as many; the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8; 16], vector: __m128i) {
    // SAFETY: 16 bytes are written to an array of as many; the store needs no alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e4m3_sum(a: __m128i, b: __m128i) -> __m128i {
    let ([a_low, a_high], [b_low, b_high]) = (e4m3_widened(a), e4m3_widened(b));
    e4m3_narrowed(add(a_low, b_low), add(a_high, b_high), a, b)
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e4m3_prod(a: __m128i, b: __m128i) -> __m128i {
    let ([a_low, a_high], [b_low, b_high]) = (e4m3_widened(a), e4m3_widened(b));
    // Both have the factor 2^-8, and so shall the product.
    let up = _mm256_set1_ps(256.0);
    e4m3_narrowed(mul(a_low, mul(b_low, up)), mul(a_high, mul(b_high, up)), a, b)
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e5m2_sum(a: __m128i, b: __m128i) -> __m128i {
    let ([a_low, a_high], [b_low, b_high]) = (e5m2_widened(a), e5m2_widened(b));
    e5m2_narrowed(add(a_low, b_low), add(a_high, b_high), a, b)
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e5m2_prod(a: __m128i, b: __m128i) -> __m128i {
    let ([a_low, a_high], [b_low, b_high]) = (e5m2_widened(a), e5m2_widened(b));
    e5m2_narrowed(mul(a_low, b_low), mul(a_high, b_high), a, b)
}

/// Times 2^-8. NaN becomes a number: it is found again in the bytes.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e4m3_widened(elements: __m128i) -> [__m256; 2] {
    let shifted = _mm256_slli_epi16::<7>(_mm256_cvtepi8_epi16(elements));
    // The sign is there twice: once in its place, and once where the exponent has its highest bit.
    halves_widened(_mm256_and_si256(shifted, _mm256_set1_epi16(!0x4000)))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e5m2_widened(elements: __m128i) -> [__m256; 2] {
    halves_widened(_mm256_slli_epi16::<8>(_mm256_cvtepu8_epi16(elements)))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn halves_widened(halves: __m256i) -> [__m256; 2] {
    let high = _mm256_extracti128_si256::<1>(halves);
    [_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), _mm256_cvtph_ps(high)]
}

/// Too large is the largest; NaN where one of the operands is.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e4m3_narrowed(low: __m256, high: __m256, a: __m128i, b: __m128i) -> __m128i {
    let halves = halves_of(low, high);
    let magnitude = _mm256_min_epi16(rounded::<7>(halves), _mm256_set1_epi16(0x7e));
    let nan = _mm_or_si128(equals(a, 0x7f), equals(b, 0x7f));
    _mm_or_si128(signed_bytes(magnitude, halves), _mm_and_si128(nan, _mm_set1_epi8(0x7f)))
}

/// Too large is the largest; infinite where one of the operands is. NaN comes by way of the halves.
#[inline]
#[target_feature(enable = "avx2,f16c")]
fn e5m2_narrowed(low: __m256, high: __m256, a: __m128i, b: __m128i) -> __m128i {
    let halves = halves_of(low, high);
    let bytes = signed_bytes(rounded::<8>(halves), halves);
    let infinite = _mm_or_si128(equals(a, 0x7c), equals(b, 0x7c));
    // All bits set is minus one, and the largest is one below infinity.
    _mm_add_epi8(bytes, _mm_andnot_si128(infinite, equals(bytes, 0x7c)))
}

#[inline]
#[target_feature(enable = "avx2,f16c")]
fn halves_of(low: __m256, high: __m256) -> __m256i {
    let low = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(low);
    _mm256_set_m128i(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(high), low)
}

/// The magnitudes of halves without their last `DROPPED` bits, to nearest, ties to even.
#[inline]
#[target_feature(enable = "avx2")]
fn rounded<const DROPPED: i32>(halves: __m256i) -> __m256i {
    let magnitude = _mm256_and_si256(halves, _mm256_set1_epi16(0x7fff));
    let last = _mm256_and_si256(_mm256_srli_epi16::<DROPPED>(magnitude), _mm256_set1_epi16(1));
    let below_half = _mm256_set1_epi16((1 << (DROPPED - 1)) - 1);
    let nearest = _mm256_add_epi16(_mm256_add_epi16(magnitude, below_half), last);
    _mm256_srli_epi16::<DROPPED>(nearest)
}

/// Magnitudes below 128 with the signs of halves.
#[inline]
#[target_feature(enable = "avx2")]
fn signed_bytes(magnitude: __m256i, halves: __m256i) -> __m128i {
    let sign = _mm256_and_si256(_mm256_srli_epi16::<8>(halves), _mm256_set1_epi16(0x80));
    let words = _mm256_or_si256(magnitude, sign);
    _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words))
}

/// All bits set where an element but for its sign is this one.
#[inline]
#[target_feature(enable = "avx2")]
fn equals(elements: __m128i, magnitude: i8) -> __m128i {
    let magnitudes = _mm_and_si128(elements, _mm_set1_epi8(0x7f));
    _mm_cmpeq_epi8(magnitudes, _mm_set1_epi8(magnitude))
}
