//! Averages: what is put in, what it is summed as, and what is made of the sum.
//!
//! Floats put in `x / ranks`, so that no partial sum is larger than the mean of sizes. Integers are summed in twice
//! the width or more and divided once, toward zero.

use crate::element::{Bf16, Element, F16};
use coll_base::DType;

/// Bytes of the type that averages are summed in.
pub(crate) fn working_size_bytes(dtype: DType) -> u64 {
    match dtype {
        DType::U8 => 4,
        DType::I32 => 8,
        DType::I64 => 16,
        float => float.size_bytes(),
    }
}

/// The most values whose sum never overflows where their mean does not.
pub(crate) fn leaves_max(dtype: DType, ranks: u64) -> u64 {
    match dtype {
        DType::U8 => 1 << 23,
        DType::I32 => 1 << 32,
        DType::I64 => 1 << 63,
        _ => ranks,
    }
}

/// What a rank puts in.
pub(crate) fn prepare(dtype: DType, ranks: u64, input: &[u8], working: &mut [u8]) {
    match dtype {
        DType::U8 => each::<1, 4>(input, working, |x| i32::from(x[0]).to_ne_bytes()),
        DType::I32 => each::<4, 8>(input, working, |x| i64::from(i32::from_ne_bytes(x)).to_ne_bytes()),
        DType::I64 => each::<8, 16>(input, working, |x| i128::from(i64::from_ne_bytes(x)).to_ne_bytes()),
        DType::F16 => each::<2, 2>(input, working, |x| F16::store(F16::load(x) / ranks as f32)),
        DType::Bf16 => each::<2, 2>(input, working, |x| Bf16::store(Bf16::load(x) / ranks as f32)),
        DType::F32 => each::<4, 4>(input, working, |x| f32::store(f32::load(x) / ranks as f32)),
        DType::F64 => each::<8, 8>(input, working, |x| f64::store(f64::load(x) / ranks as f64)),
    }
}

/// What is made of a sum of `leaves` values. A float that was divided by another number than that is mended.
pub(crate) fn finish(dtype: DType, ranks: u64, leaves: u64, working: &[u8], output: &mut [u8]) {
    let leaves = leaves.max(1);
    match dtype {
        DType::U8 => each::<4, 1>(working, output, |x| [(i32::from_ne_bytes(x) / leaves as i32) as u8]),
        DType::I32 => {
            each::<8, 4>(working, output, |x| ((i64::from_ne_bytes(x) / leaves as i64) as i32).to_ne_bytes())
        }
        DType::I64 => each::<16, 8>(working, output, |x| {
            ((i128::from_ne_bytes(x) / leaves as i128) as i64).to_ne_bytes()
        }),
        _ if ranks == leaves => output.copy_from_slice(working),
        DType::F16 => each::<2, 2>(working, output, |x| F16::store(mended(F16::load(x), ranks, leaves))),
        DType::Bf16 => each::<2, 2>(working, output, |x| Bf16::store(mended(Bf16::load(x), ranks, leaves))),
        DType::F32 => each::<4, 4>(working, output, |x| f32::store(mended(f32::load(x), ranks, leaves))),
        DType::F64 => {
            let factor = ranks as f64 / leaves as f64;
            each::<8, 8>(working, output, |x| f64::store(f64::load(x) * factor));
        }
    }
}

fn mended(x: f32, ranks: u64, leaves: u64) -> f32 {
    (f64::from(x) * ranks as f64 / leaves as f64) as f32
}

fn each<const FROM: usize, const TO: usize>(
    from: &[u8],
    to: &mut [u8],
    convert: impl Fn([u8; FROM]) -> [u8; TO],
) {
    let ((from, _), (to, _)) = (from.as_chunks::<FROM>(), to.as_chunks_mut::<TO>());
    for (to, from) in to.iter_mut().zip(from) {
        *to = convert(*from);
    }
}
