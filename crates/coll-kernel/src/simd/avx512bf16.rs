//! AVX-512 with the processor's own rounding to bf16, half as long again as fast as with integers.
//!
//! The instruction rounds to nearest even and keeps NaN, as we do, but takes subnormals for zero: vectors that hold one
//! go the way of integers.

use super::avx512::{add, load, mul, narrowed, store, widened};
use crate::element::Bf16;
use crate::kernel::{self, CombineFn};
use coll_base::{DType, RedOp};
use std::arch::x86_64::*;

/// The loops that are made by hand.
pub(super) fn hand_made(op: RedOp, dtype: DType) -> Option<CombineFn> {
    match (op, dtype) {
        // SAFETY: `super::hand_made` asks for this table only where the processor has these features.
        (RedOp::Sum, DType::Bf16) => Some(|target, a, b| unsafe { sum_loop(target, a, b) }),
        // SAFETY: as above.
        (RedOp::Prod, DType::Bf16) => Some(|target, a, b| unsafe { prod_loop(target, a, b) }),
        _ => super::avx512::hand_made(op, dtype),
    }
}

macro_rules! on_bf16 {
    ($name:ident = $function:ident, rest $kernel:ty) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,avx2,f16c,bmi2")]
        fn $name(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
            let (targets, target_rest) = target.as_chunks_mut::<64>();
            let (bs, b_rest) = b.as_chunks::<64>();
            match a.map(|a| a.as_chunks::<64>()) {
                None => {
                    for (target, b) in targets.iter_mut().zip(bs) {
                        let ([a_even, a_odd], [b_even, b_odd]) = (widened(load(target)), widened(load(b)));
                        store(target, rounded($function(a_even, b_even), $function(a_odd, b_odd)));
                    }
                    kernel::each::<2, $kernel>(target_rest, None, b_rest);
                }
                Some((a_s, a_rest)) => {
                    for ((target, a), b) in targets.iter_mut().zip(a_s).zip(bs) {
                        let ([a_even, a_odd], [b_even, b_odd]) = (widened(load(a)), widened(load(b)));
                        store(target, rounded($function(a_even, b_even), $function(a_odd, b_odd)));
                    }
                    kernel::each::<2, $kernel>(target_rest, Some(a_rest), b_rest);
                }
            }
        }
    };
}

on_bf16!(sum_loop = add, rest kernel::Sum<Bf16>);
on_bf16!(prod_loop = mul, rest kernel::Prod<Bf16>);

/// Places of the sixteen elements of the lower half and of the upper one, in turn.
static INTERLEAVED: [u16; 32] = [
    0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
    30, 15, 31,
];

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512bf16")]
fn rounded(even: __m512, odd: __m512) -> __m512i {
    const SUBNORMAL: i32 = 0x20;
    let subnormal = _mm512_fpclass_ps_mask::<SUBNORMAL>(even) | _mm512_fpclass_ps_mask::<SUBNORMAL>(odd);
    if subnormal != 0 {
        return with_subnormals(even, odd);
    }
    // SAFETY: both types are 64 bytes of which any bits are a value.
    let halves = unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(odd, even)) };
    // SAFETY: 64 bytes are read of an array of as many; the load needs no alignment.
    let places = unsafe { _mm512_loadu_si512(INTERLEAVED.as_ptr().cast()) };
    _mm512_permutexvar_epi16(places, halves)
}

#[cold]
#[target_feature(enable = "avx512f,avx512bw")]
fn with_subnormals(even: __m512, odd: __m512) -> __m512i {
    narrowed(even, odd)
}
