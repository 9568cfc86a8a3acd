//! The same loops compiled for several processors, and a few made by hand where the compiler does not find the
//! instructions. Which one runs is asked of the processor once, as a [`Level`].
//!
//! This is the one module of the crate that holds `unsafe` code: calls of functions that need more than the least
//! processor, and loads and stores of vectors. The portable loops of [`crate::kernel`] say what is right, and tests
//! compare every level with them, bit for bit.
#![allow(unsafe_code)]

use crate::element::{Bf16, Element, F16};
use crate::kernel::{self, CombineFn, Kernel};
use coll_base::{DType, RedOp};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512bf16;
#[cfg(target_arch = "x86_64")]
mod avx512vbmi;
#[cfg(target_arch = "x86_64")]
mod f8;
mod stream;
#[cfg(test)]
mod tests;

pub use stream::copy_past_cache;
pub(crate) use stream::{STREAM_BYTES, streamed};

/// What the processor can do. A level other than the portable one exists only where the processor was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx512Bf16,
}

impl Level {
    /// What every processor of the architecture can do.
    pub(crate) const PORTABLE: Level = Level(Kind::Portable);

    /// The highest level of this processor.
    pub(crate) fn best() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Level(if has_bf16() { Kind::Avx512Bf16 } else { Kind::Avx512 });
            }
            if has_avx2() {
                return Level(Kind::Avx2);
            }
        }
        Level::PORTABLE
    }

    /// All levels of this processor, the portable one first.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Level> {
        let mut levels = vec![Level::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            levels.extend(has_avx2().then_some(Level(Kind::Avx2)));
            levels.extend(has_avx512().then_some(Level(Kind::Avx512)));
            levels.extend((has_avx512() && has_bf16()).then_some(Level(Kind::Avx512Bf16)));
        }
        levels
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c") && is_x86_feature_detected!("bmi2")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
}

#[cfg(target_arch = "x86_64")]
fn has_bf16() -> bool {
    is_x86_feature_detected!("avx512bf16")
}

/// The loop of a kernel, compiled for a level.
pub(crate) fn compiled<const N: usize, K: Kernel<N>>(level: Level) -> CombineFn {
    match level.0 {
        Kind::Portable => kernel::each::<N, K>,
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level of this kind exists only where the processor has its features.
        Kind::Avx2 => |target, a, b| unsafe { avx2::each::<N, K>(target, a, b) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kind::Avx512 | Kind::Avx512Bf16 => |target, a, b| unsafe { avx512::each::<N, K>(target, a, b) },
    }
}

/// Converts element by element, compiled for this processor.
pub(crate) fn map<const FROM: usize, const TO: usize>(
    level: Level,
    from: &[u8],
    to: &mut [u8],
    convert: impl Fn([u8; FROM]) -> [u8; TO],
) {
    match level.0 {
        Kind::Portable => kernel::map(from, to, convert),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level of this kind exists only where the processor has its features.
        Kind::Avx2 => unsafe { avx2::map(from, to, convert) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kind::Avx512 | Kind::Avx512Bf16 => unsafe { avx512::map(from, to, convert) },
    }
}

/// What a rank puts in of a float, made in `f32` and rounded once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scaling {
    /// `x * factor`
    Times(f32),
    /// `x / divisor`
    Over(f32),
}

impl Scaling {
    /// Of one number.
    #[inline(always)]
    pub(crate) fn of(self, x: f32) -> f32 {
        match self {
            Scaling::Times(factor) => x * factor,
            Scaling::Over(divisor) => x / divisor,
        }
    }
}

/// Scales elements that are computed in `f32`: f16, bf16, and else `f32` itself.
pub(crate) fn scale(dtype: DType, level: Level, from: &[u8], to: &mut [u8], scale: Scaling) {
    match (dtype, level.0) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: every level above the portable one has the features of AVX2's.
        (DType::F16, kind) if kind != Kind::Portable => unsafe { avx2::scale_f16(from, to, scale) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        (DType::Bf16, kind) if kind != Kind::Portable => unsafe { avx2::scale_bf16(from, to, scale) },
        (DType::F16, _) => kernel::map::<2, 2>(from, to, |x| F16::store(scale.of(F16::load(x)))),
        (DType::Bf16, _) => kernel::map::<2, 2>(from, to, |x| Bf16::store(scale.of(Bf16::load(x)))),
        _ => match scale {
            Scaling::Times(factor) => map::<4, 4>(level, from, to, |x| f32::store(f32::load(x) * factor)),
            Scaling::Over(divisor) => map::<4, 4>(level, from, to, |x| f32::store(f32::load(x) / divisor)),
        },
    }
}

/// A loop made by hand, where there is one that is faster than what the compiler makes.
pub(crate) fn hand_made(op: RedOp, dtype: DType, level: Level) -> Option<CombineFn> {
    #[cfg(target_arch = "x86_64")]
    if matches!(level.0, Kind::Avx512 | Kind::Avx512Bf16)
        && is_x86_feature_detected!("avx512vbmi")
        && let Some(made) = avx512vbmi::hand_made(op, dtype)
    {
        return Some(made);
    }
    match level.0 {
        Kind::Portable => None,
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => avx2::hand_made(op, dtype),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => avx512::hand_made(op, dtype),
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512Bf16 => avx512bf16::hand_made(op, dtype),
    }
}
