//! AVX-512, vectors of 64 bytes. Loops of f16 are AVX2's: the conversions set the pace, and wider ones are no faster.

use crate::element::Bf16;
use crate::kernel::{self, CombineFn, Kernel};
use coll_base::{DType, RedOp};
use std::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c,bmi2")]
pub(super) fn each<const N: usize, K: Kernel<N>>(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
    kernel::each::<N, K>(target, a, b);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c,bmi2")]
pub(super) fn map<const FROM: usize, const TO: usize>(
    from: &[u8],
    to: &mut [u8],
    convert: impl Fn([u8; FROM]) -> [u8; TO],
) {
    kernel::map(from, to, convert);
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: 64 bytes are read of an array of as many; the load needs no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(bytes: &mut [u8; 64], vector: __m512i) {
    // SAFETY: 64 bytes are written to an array of as many; the store needs no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
}

/// A loop of a function on vectors; what is left of less than a vector goes the portable way.
macro_rules! vector_loop {
    ($name:ident = $function:ident, rest $kernel:ty: $size:literal) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c,bmi2")]
        fn $name(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
            let (targets, target_rest) = target.as_chunks_mut::<64>();
            let (bs, b_rest) = b.as_chunks::<64>();
            match a.map(|a| a.as_chunks::<64>()) {
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
            _ => super::avx2::hand_made($op, $dtype),
        }
    };
}

/// The loops that are made by hand.
pub(super) fn hand_made(op: RedOp, dtype: DType) -> Option<CombineFn> {
    table! { op, dtype;
        RedOp::Sum, DType::Bf16 => bf16_sum_loop;
        RedOp::Prod, DType::Bf16 => bf16_prod_loop;
        RedOp::Min, DType::F32 => f32_min_loop;
        RedOp::Max, DType::F32 => f32_max_loop;
        RedOp::Min, DType::F64 => f64_min_loop;
        RedOp::Max, DType::F64 => f64_max_loop;
    }
}

vector_loop!(bf16_sum_loop = bf16_sum, rest kernel::Sum<Bf16>: 2);
vector_loop!(bf16_prod_loop = bf16_prod, rest kernel::Prod<Bf16>: 2);
vector_loop!(f32_min_loop = f32_min, rest kernel::Min<f32>: 4);
vector_loop!(f32_max_loop = f32_max, rest kernel::Max<f32>: 4);
vector_loop!(f64_min_loop = f64_min, rest kernel::Min<f64>: 8);
vector_loop!(f64_max_loop = f64_max, rest kernel::Max<f64>: 8);

/// The elements of even and of odd places: a bf16 is the upper half of an f32.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn widened(elements: __m512i) -> [__m512; 2] {
    let odd = _mm512_and_si512(elements, _mm512_set1_epi32(0xffff_0000u32 as i32));
    [_mm512_castsi512_ps(_mm512_slli_epi32::<16>(elements)), _mm512_castsi512_ps(odd)]
}

/// Upper halves, at even and at odd places.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn upper_halves(even: __m512i, odd: __m512i) -> __m512i {
    _mm512_mask_blend_epi16(0xaaaa_aaaa, _mm512_srli_epi32::<16>(even), odd)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn narrowed(even: __m512, odd: __m512) -> __m512i {
    // One comparison finds a NaN in either.
    if _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(even, odd) != 0 {
        return narrowed_with_nan(even, odd);
    }
    upper_halves(rounded(even), rounded(odd))
}

#[cold]
#[target_feature(enable = "avx512f,avx512bw")]
fn narrowed_with_nan(even: __m512, odd: __m512) -> __m512i {
    upper_halves(rounded_or_nan(even), rounded_or_nan(odd))
}

/// The upper half is the nearest bf16, ties to even. Masks are cheaper than shifts, of which there are fewer at a time.
#[inline]
#[target_feature(enable = "avx512f")]
fn rounded(value: __m512) -> __m512i {
    let bits = _mm512_castps_si512(value);
    let is_odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x1_0000));
    let below = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    _mm512_mask_add_epi32(below, is_odd, below, _mm512_set1_epi32(1))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn rounded_or_nan(value: __m512) -> __m512i {
    let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
    let quiet = _mm512_or_si512(_mm512_castps_si512(value), _mm512_set1_epi32(0x40_0000));
    _mm512_mask_mov_epi32(rounded(value), nan, quiet)
}

macro_rules! on_bf16 {
    ($name:ident, $function:ident) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq")]
        fn $name(a: __m512i, b: __m512i) -> __m512i {
            let ([a_even, a_odd], [b_even, b_odd]) = (widened(a), widened(b));
            narrowed($function(a_even, b_even), $function(a_odd, b_odd))
        }
    };
}

on_bf16!(bf16_sum, add);
on_bf16!(bf16_prod, mul);

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add(a: __m512, b: __m512) -> __m512 {
    _mm512_add_ps(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn mul(a: __m512, b: __m512) -> __m512 {
    _mm512_mul_ps(a, b)
}

/// The instruction gives its second operand for zeros of two signs and for NaN: asked both ways round, the bits of
/// the two results together are those of the lesser zero, or of the greater. NaN becomes one with all bits set.
macro_rules! extremum {
    ($min:ident, $max:ident, $vector:ty: $min_instruction:ident $max_instruction:ident
     $or:ident $and:ident $compare:ident $cast:ident $back:ident $set:ident) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq")]
        fn $min(a: $vector, b: $vector) -> $vector {
            let both = $or($min_instruction(a, b), $min_instruction(b, a));
            $back($set($cast(both), $compare::<_CMP_UNORD_Q>(a, b), -1))
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512dq")]
        fn $max(a: $vector, b: $vector) -> $vector {
            let both = $and($max_instruction(a, b), $max_instruction(b, a));
            $back($set($cast(both), $compare::<_CMP_UNORD_Q>(a, b), -1))
        }
    };
}

extremum!(min, max, __m512: _mm512_min_ps _mm512_max_ps _mm512_or_ps _mm512_and_ps
    _mm512_cmp_ps_mask _mm512_castps_si512 _mm512_castsi512_ps _mm512_mask_set1_epi32);
extremum!(min_f64, max_f64, __m512d: _mm512_min_pd _mm512_max_pd _mm512_or_pd _mm512_and_pd
    _mm512_cmp_pd_mask _mm512_castpd_si512 _mm512_castsi512_pd _mm512_mask_set1_epi64);

macro_rules! as_bytes {
    ($name:ident, $function:ident, $cast:ident, $back:ident) => {
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq")]
        fn $name(a: __m512i, b: __m512i) -> __m512i {
            $back($function($cast(a), $cast(b)))
        }
    };
}

as_bytes!(f32_min, min, _mm512_castsi512_ps, _mm512_castps_si512);
as_bytes!(f32_max, max, _mm512_castsi512_ps, _mm512_castps_si512);
as_bytes!(f64_min, min_f64, _mm512_castsi512_pd, _mm512_castpd_si512);
as_bytes!(f64_max, max_f64, _mm512_castsi512_pd, _mm512_castpd_si512);
