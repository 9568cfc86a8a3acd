//! Averages: what is put in, what it is summed as, and what is made of the sum.
//!
//! Floats put in `x / ranks`, so that no partial sum is larger than the mean of sizes. Integers are summed in twice
//! the width or more and divided once, toward zero; 8-bit floats are summed in `f32` and divided once, for fractions of
//! them would leave few bits or none.

use crate::divide::{Divisor64, mean_of_i64, mean_of_i64_shifted, mean_of_u64};
use crate::element::{Bf16, Element, F8E4M3, F8E5M2, F16};
use crate::simd::{self, Level, Scaling};
use coll_base::DType;

/// Bytes of the type that averages are summed in.
pub(crate) fn working_size_bytes(dtype: DType) -> u64 {
    match dtype {
        DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::F8E4M3 | DType::F8E5M2 => 4,
        DType::I32 | DType::U32 => 8,
        DType::I64 | DType::U64 => 16,
        float => float.size_bytes(),
    }
}

/// The most values whose sum never overflows where their mean does not.
pub(crate) fn leaves_max(dtype: DType, ranks: u64) -> u64 {
    match dtype {
        DType::I8 | DType::U8 => 1 << 24,
        DType::I16 | DType::U16 => 1 << 16,
        DType::I32 | DType::U32 => 1 << 32,
        DType::I64 | DType::U64 | DType::F8E4M3 | DType::F8E5M2 => u64::MAX,
        _ => ranks,
    }
}

/// What a rank puts in.
pub(crate) fn prepare(dtype: DType, ranks: u64, input: &[u8], working: &mut [u8]) {
    let level = Level::best();
    macro_rules! widened {
        ($from:ty: $size:literal => $to:ty: $working:literal) => {
            simd::map::<$size, $working>(level, input, working, |x| {
                <$to>::from(<$from>::from_ne_bytes(x)).to_ne_bytes()
            })
        };
    }
    match dtype {
        DType::I8 => widened!(i8: 1 => i32: 4),
        DType::U8 | DType::Bool => widened!(u8: 1 => u32: 4),
        DType::I16 => widened!(i16: 2 => i32: 4),
        DType::U16 => widened!(u16: 2 => u32: 4),
        DType::I32 | DType::I32I32 => widened!(i32: 4 => i64: 8),
        DType::U32 => widened!(u32: 4 => u64: 8),
        DType::I64 | DType::I64I64 => widened!(i64: 8 => i128: 16),
        DType::U64 => widened!(u64: 8 => u128: 16),
        DType::F8E4M3 => simd::map::<1, 4>(level, input, working, |x| f32::store(F8E4M3::load(x))),
        DType::F8E5M2 => simd::map::<1, 4>(level, input, working, |x| f32::store(F8E5M2::load(x))),
        DType::F64 | DType::C128 | DType::F64I64 => {
            // As in `fraction`.
            if ranks.is_power_of_two() {
                let part = 1.0 / ranks as f64;
                simd::map::<8, 8>(level, input, working, |x| f64::store(f64::load(x) * part));
            } else {
                simd::map::<8, 8>(level, input, working, |x| f64::store(f64::load(x) / ranks as f64));
            }
        }
        _ => simd::scale(dtype, level, input, working, fraction(ranks)),
    }
}

/// Of a power of two the reciprocal is exact, and so the product is the quotient, at a fifth of the cost.
fn fraction(ranks: u64) -> Scaling {
    match ranks.is_power_of_two() {
        true => Scaling::Times(1.0 / ranks as f32),
        false => Scaling::Over(ranks as f32),
    }
}

/// What is made of a sum of `leaves` values. A float that was divided by another number than that is mended.
pub(crate) fn finish(dtype: DType, ranks: u64, leaves: u64, working: &[u8], output: &mut [u8]) {
    let (leaves, level) = (leaves.max(1), Level::best());
    macro_rules! mean {
        (of $work:ty: $working:literal => $to:ty: $size:literal) => {{
            // The reciprocal's error must stay below half a part in the sum: see `divide`.
            if leaves <= 1 << 16 {
                let reciprocal = 1.0 / leaves as f64;
                simd::map::<$working, $size>(level, working, output, |x| {
                    let sum = <$work>::from_ne_bytes(x);
                    (crate::divide::Mean::mean(sum, reciprocal) as $to).to_ne_bytes()
                })
            } else {
                simd::map::<$working, $size>(level, working, output, |x| {
                    ((i128::from(<$work>::from_ne_bytes(x)) / i128::from(leaves)) as $to).to_ne_bytes()
                })
            }
        }};
    }
    match dtype {
        DType::I8 => mean!(of i32: 4 => i8: 1),
        DType::U8 | DType::Bool => mean!(of u32: 4 => u8: 1),
        DType::I16 => mean!(of i32: 4 => i16: 2),
        DType::U16 => mean!(of u32: 4 => u16: 2),
        DType::I32 | DType::I32I32 => mean!(of i64: 8 => i32: 4),
        DType::U32 => mean!(of u64: 8 => u32: 4),
        DType::I64 | DType::I64I64 => {
            let divisor = Divisor64::new(leaves);
            if let Some(power) = divisor.power_of_two() {
                return simd::map::<16, 8>(level, working, output, |x| {
                    mean_of_i64_shifted(i128::from_ne_bytes(x), power).to_ne_bytes()
                });
            }
            simd::map::<16, 8>(level, working, output, |x| {
                mean_of_i64(i128::from_ne_bytes(x), divisor).to_ne_bytes()
            });
        }
        DType::U64 => {
            let divisor = Divisor64::new(leaves);
            if let Some(power) = divisor.power_of_two() {
                return simd::map::<16, 8>(level, working, output, |x| {
                    ((u128::from_ne_bytes(x) >> power) as u64).to_ne_bytes()
                });
            }
            simd::map::<16, 8>(level, working, output, |x| {
                mean_of_u64(u128::from_ne_bytes(x), divisor).to_ne_bytes()
            });
        }
        DType::F8E4M3 => {
            simd::map::<4, 1>(level, working, output, |x| F8E4M3::store(f32::load(x) / leaves as f32));
        }
        DType::F8E5M2 => {
            simd::map::<4, 1>(level, working, output, |x| F8E5M2::store(f32::load(x) / leaves as f32));
        }
        _ if ranks == leaves => output.copy_from_slice(working),
        DType::F64 | DType::C128 | DType::F64I64 => {
            let factor = ranks as f64 / leaves as f64;
            simd::map::<8, 8>(level, working, output, |x| f64::store(f64::load(x) * factor));
        }
        DType::F16 => mended::<2, F16>(level, ranks, leaves, working, output),
        DType::Bf16 => mended::<2, Bf16>(level, ranks, leaves, working, output),
        DType::F32 | DType::C64 | DType::F32I32 => mended::<4, f32>(level, ranks, leaves, working, output),
    }
}

fn mended<const N: usize, E: Element<N, Number = f32>>(
    level: Level,
    ranks: u64,
    leaves: u64,
    working: &[u8],
    output: &mut [u8],
) {
    simd::map::<N, N>(level, working, output, |x| {
        E::store((f64::from(E::load(x)) * ranks as f64 / leaves as f64) as f32)
    });
}
