//! Sums of 8-bit floats by AVX-512 with VBMI, 64 at a time, without leaving bytes: no conversion, and no addition of numbers.
//!
//! The byte of a float, but for its sign, is nearly its logarithm: twice the value is the byte of the next binade. Subnormals
//! are made to follow that rule too, by a table, and zero is put far below them; call that a float's **place**. Then by how many
//! places an operand changes a larger one depends on the larger one's mantissa and on the distance between their places alone,
//! and beyond a few binades it is none: small tables, which the processor looks 64 bytes up in at a time. Places that come out
//! among the subnormals are right as they are, for a sum of multiples of the smallest value is one. Tables are made by integers
//! when this is compiled; a test tries all pairs.

use super::avx512::{load, store};
use crate::element::{F8E4M3, F8E5M2};
use crate::kernel::{self, CombineFn};
use coll_base::{DType, RedOp};
use std::arch::x86_64::*;

macro_rules! loop_of_64 {
    ($name:ident = $function:ident, rest $kernel:ty) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,f16c,bmi2")]
        fn $name(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
            let (targets, target_rest) = target.as_chunks_mut::<64>();
            let (bs, b_rest) = b.as_chunks::<64>();
            match a.map(|a| a.as_chunks::<64>()) {
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

loop_of_64!(e4m3_sum_loop = e4m3_sum, rest kernel::Sum<F8E4M3>);
loop_of_64!(e5m2_sum_loop = e5m2_sum, rest kernel::Sum<F8E5M2>);

/// The loops that are made by hand, for a processor that has AVX-512 with VBMI.
pub(super) fn hand_made(op: RedOp, dtype: DType) -> Option<CombineFn> {
    match (op, dtype) {
        // SAFETY: `super::hand_made` asks for this only where the processor has these features.
        (RedOp::Sum, DType::F8E4M3) => Some(|target, a, b| unsafe { e4m3_sum_loop(target, a, b) }),
        // SAFETY: as above.
        (RedOp::Sum, DType::F8E5M2) => Some(|target, a, b| unsafe { e5m2_sum_loop(target, a, b) }),
        _ => None,
    }
}

/// The place of NaN, above all others.
const NAN_PLACE: u8 = 255;

/// The place of E5M2's infinity: so far above the largest that nothing finite changes it.
const INFINITE_PLACE: u8 = 200;

/// A table of the bytes without a sign, or of half of them.
type Table = [u8; 128];

/// A format of `M` bits of mantissa whose smallest normal value is `NORMAL` binades above the lowest place: so many that zero
/// is farther from all other values than any distance that matters.
struct Format<const M: u32, const NORMAL: u32>;

impl<const M: u32, const NORMAL: u32> Format<M, NORMAL> {
    /// The place of each byte up to `largest`; above are infinity, if there is one, and NaN.
    const fn places(largest: usize, infinity: bool) -> Table {
        let mut places = [NAN_PLACE; 128];
        let mut byte = 1;
        places[0] = 0;
        while byte <= largest {
            let (exponent, mantissa) = (byte >> M, byte as u64 & ((1 << M) - 1));
            let value = match exponent {
                0 => mantissa,
                _ => ((1 << M) + mantissa) << (exponent - 1),
            };
            places[byte] = Self::place(value << NORMAL) as u8;
            byte += 1;
        }
        if infinity {
            places[byte] = INFINITE_PLACE;
        }
        places
    }

    /// The byte of each place below the normal ones.
    const fn bytes() -> Table {
        let (places, mut bytes, mut byte) = (Self::places(1 << M, false), [0; 128], 1);
        while byte < 1 << M {
            bytes[places[byte] as usize] = byte as u8;
            byte += 1;
        }
        bytes
    }

    /// By how many places the larger operand changes, modulo 256: by distance, from `first` on, and by mantissa.
    const fn changes(first: u64, subtract: bool) -> Table {
        let (mut changes, mut at) = ([0; 128], 0);
        while at < 128 {
            let (distance, mantissa) = (first + (at >> M), at & ((1 << M) - 1));
            // In some binade that is high enough.
            let high = (12 << M) + mantissa;
            let (x, y) = (Self::value(high), Self::value(high - distance));
            changes[at as usize] = match (subtract, distance) {
                (true, 0) => 0,
                (true, _) => (Self::place(x - y) + 256 - high) as u8,
                (false, _) => (Self::place(x + y) - high) as u8,
            };
            at += 1;
        }
        changes
    }

    const fn value(place: u64) -> u64 {
        ((1 << M) + (place & ((1 << M) - 1))) << (place >> M)
    }

    /// The place of a value of at least `2^M`, rounded to nearest, ties to even.
    const fn place(value: u64) -> u64 {
        let shift = value.ilog2() - M;
        let (kept, dropped) = (value >> shift, value & ((1 << shift) - 1));
        let twice = 2 * dropped;
        let up = shift > 0 && (twice > 1 << shift || twice == 1 << shift && kept & 1 == 1);
        ((shift as u64) << M) + kept + up as u64 - (1 << M)
    }
}

const E4M3_NORMAL: u32 = 8;
const E5M2_NORMAL: u32 = 6;
type E4m3 = Format<3, E4M3_NORMAL>;
type E5m2 = Format<2, E5M2_NORMAL>;

static E4M3_PLACES: Table = E4m3::places(0x7e, false);
static E4M3_BYTES: Table = E4m3::bytes();
static E4M3_MORE: [Table; 3] = [E4m3::changes(0, false), E4m3::changes(16, false), E4m3::changes(32, false)];
static E4M3_LESS: [Table; 3] = [E4m3::changes(0, true), E4m3::changes(16, true), E4m3::changes(32, true)];
static E5M2_PLACES: Table = E5m2::places(0x7b, true);
static E5M2_BYTES: Table = E5m2::bytes();
static E5M2_MORE: Table = E5m2::changes(0, false);
static E5M2_LESS: Table = E5m2::changes(0, true);

/// Two operands' places and what follows from them.
struct Placed {
    high: __m512i,
    distance: __m512i,
    /// The mantissa of the higher one, and above it the lowest bits of the distance.
    index: __m512i,
    /// The higher one, for its sign.
    larger: __m512i,
    opposite: __mmask64,
    /// Of opposite signs and equal size.
    cancels: __mmask64,
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn placed<const M: u32>(a: __m512i, b: __m512i, places: &Table) -> Placed {
    let (x, y) = (looked_up(places, a), looked_up(places, b));
    let high = _mm512_max_epu8(x, y);
    let distance = _mm512_sub_epi8(high, _mm512_min_epu8(x, y));
    let opposite = _mm512_movepi8_mask(_mm512_xor_si512(a, b));
    Placed {
        high,
        distance,
        index: chosen(bytes_of(0xff << M), _mm512_slli_epi16::<M>(distance), high),
        larger: _mm512_mask_blend_epi8(_mm512_cmpge_epu8_mask(x, y), b, a),
        opposite,
        cancels: _mm512_mask_cmpeq_epi8_mask(opposite, distance, _mm512_setzero_si512()),
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn e4m3_sum(a: __m512i, b: __m512i) -> __m512i {
    let placed = placed::<3>(a, b, &E4M3_PLACES);
    let mut place = placed.high;
    for table in 0..2 {
        let beyond = _mm512_sub_epi8(placed.distance, bytes_of(16 * table as i32));
        let near = _mm512_cmplt_epu8_mask(beyond, bytes_of(16));
        let more = looked_up_where(near & !placed.opposite, &E4M3_MORE[table], placed.index);
        let less = looked_up_where(near & placed.opposite, &E4M3_LESS[table], placed.index);
        place = _mm512_add_epi8(place, _mm512_or_si512(more, less));
    }
    let near = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(placed.distance, bytes_of(32)), bytes_of(8));
    place = _mm512_add_epi8(place, changed(&placed, near, &E4M3_MORE[2], &E4M3_LESS[2]));
    let byte = byte_at::<3, E4M3_NORMAL>(place, &E4M3_BYTES, 0x7e);
    let nan = _mm512_cmpeq_epi8_mask(placed.high, bytes_of(NAN_PLACE.into()));
    finished(&placed, byte, nan)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn e5m2_sum(a: __m512i, b: __m512i) -> __m512i {
    let placed = placed::<2>(a, b, &E5M2_PLACES);
    let near = _mm512_cmplt_epu8_mask(placed.distance, bytes_of(16));
    let place = _mm512_add_epi8(placed.high, changed(&placed, near, &E5M2_MORE, &E5M2_LESS));
    let byte = byte_at::<2, E5M2_NORMAL>(place, &E5M2_BYTES, 0x7b);
    let infinite = _mm512_cmpeq_epi8_mask(placed.high, bytes_of(INFINITE_PLACE.into()));
    let nan = _mm512_cmpeq_epi8_mask(placed.high, bytes_of(NAN_PLACE.into()));
    let byte = _mm512_mask_mov_epi8(byte, infinite, bytes_of(0x7c));
    finished(&placed, byte, nan | infinite & placed.cancels)
}

/// Changes from the first halves of two tables, where `near` says.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn changed(placed: &Placed, near: __mmask64, more: &Table, less: &Table) -> __m512i {
    let more = _mm512_maskz_permutexvar_epi8(near & !placed.opposite, placed.index, load_half(more));
    let less = _mm512_maskz_permutexvar_epi8(near & placed.opposite, placed.index, load_half(less));
    _mm512_or_si512(more, less)
}

/// The byte of a place, at most `largest`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn byte_at<const M: u32, const NORMAL: u32>(place: __m512i, bytes: &Table, largest: i32) -> __m512i {
    let first = (NORMAL as i32) << M;
    let small = _mm512_cmplt_epu8_mask(place, bytes_of(first));
    let normal = _mm512_sub_epi8(place, bytes_of(first - (1 << M)));
    let byte = _mm512_mask_permutexvar_epi8(normal, small, place, load_half(bytes));
    _mm512_min_epu8(byte, bytes_of(largest))
}

/// With the sign of the larger operand; positive where both cancel.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn finished(placed: &Placed, byte: __m512i, nan: __mmask64) -> __m512i {
    let signed = chosen(bytes_of(0x80), placed.larger, byte);
    let sum = _mm512_maskz_mov_epi8(!placed.cancels, signed);
    _mm512_mask_mov_epi8(sum, nan, bytes_of(0x7f))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn looked_up(table: &Table, index: __m512i) -> __m512i {
    let [low, high] = halves(table);
    _mm512_permutex2var_epi8(load(low), index, load(high))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn looked_up_where(mask: __mmask64, table: &Table, index: __m512i) -> __m512i {
    let [low, high] = halves(table);
    _mm512_maskz_permutex2var_epi8(mask, load(low), index, load(high))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_half(table: &Table) -> __m512i {
    load(halves(table)[0])
}

#[inline]
fn halves(table: &Table) -> [&[u8; 64]; 2] {
    let (halves, _) = table.as_chunks::<64>();
    [&halves[0], &halves[1]]
}

/// The bits of `x` where the mask has ones, and those of `y` where it has zeros.
#[inline]
#[target_feature(enable = "avx512f")]
fn chosen(mask: __m512i, x: __m512i, y: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xca>(mask, x, y)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn bytes_of(byte: i32) -> __m512i {
    _mm512_set1_epi8(byte as i8)
}
