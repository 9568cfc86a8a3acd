//! Which operator works on which element type, how it computes, and by which kernel: the one table that reducers, the
//! manual and the tests are made from.
//!
//! What MPI and NCCL both refuse is refused here: bits of floats, an order of complex numbers, a mean of truth values.

use crate::element::{Bf16, Element, F8E4M3, F8E5M2, F16};
use crate::kernel::{self, CombineFn, infinity};
use crate::simd::{self, Level};
use coll_base::{DType, RedOp};

/// How a pair of operator and type computes. The manual has a paragraph on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Integers, modulo two to their width.
    Wraps,
    /// Nothing is lost.
    Exact,
    /// In the type itself, rounded to nearest even.
    Rounds,
    /// In `f32`, rounded once to the type.
    InF32,
    /// In `f32`, rounded once to the type, at most its largest value.
    Saturates,
    /// A choice by the order of floats.
    Ordered,
    /// On truth values.
    Logical,
    /// Complex numbers part by part.
    Parts,
    /// The complex product.
    Product,
    /// Integers summed in a wider type and divided once.
    Wide(Working),
    /// Floats put in as fractions.
    Fractions,
    /// 8-bit floats summed in `f32` and divided once.
    WideF32,
    /// A value with its index.
    Located,
}

/// The type that an average of integers is summed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub(crate) enum Working {
    I32,
    U32,
    I64,
    U64,
    I128,
    U128,
}

/// How an operator computes on a type, or why it does not work there and what would do.
pub(crate) fn how(op: RedOp, dtype: DType) -> Result<How, &'static str> {
    match op {
        RedOp::Sum | RedOp::PremulSum if dtype.is_complex() => Ok(How::Parts),
        RedOp::Prod if dtype.is_complex() => Ok(How::Product),
        RedOp::PremulSum if dtype == DType::Bool => Err("truth values have no multiples; take lor"),
        RedOp::Sum | RedOp::Prod | RedOp::PremulSum => numbers(dtype),
        RedOp::Min | RedOp::Max if dtype.is_complex() => Err("complex numbers have no order"),
        RedOp::Min | RedOp::Max if dtype.is_float() => Ok(How::Ordered),
        RedOp::Min | RedOp::Max => numbers(dtype).map(|how| if how == How::Wraps { How::Exact } else { how }),
        RedOp::Avg => mean(dtype),
        RedOp::Band | RedOp::Bor | RedOp::Bxor if dtype.is_integer() => Ok(How::Exact),
        RedOp::Band | RedOp::Bor | RedOp::Bxor if dtype == DType::Bool => {
            Err("it needs an integer type; truth values have land, lor and lxor")
        }
        RedOp::Band | RedOp::Bor | RedOp::Bxor => {
            Err("it needs an integer type, such as the unsigned one of the same width")
        }
        RedOp::Land | RedOp::Lor | RedOp::Lxor if dtype.is_integer() || dtype == DType::Bool => {
            Ok(How::Logical)
        }
        RedOp::Land | RedOp::Lor | RedOp::Lxor => Err("it needs an integer type or bool"),
        RedOp::Minloc | RedOp::Maxloc if dtype.is_pair() => Ok(How::Located),
        RedOp::Minloc | RedOp::Maxloc => {
            Err("it needs pairs of a value and an index: i32i32, i64i64, f32i32 or f64i64")
        }
    }
}

fn numbers(dtype: DType) -> Result<How, &'static str> {
    match dtype {
        DType::Bool => Ok(How::Logical),
        DType::F8E4M3 | DType::F8E5M2 => Ok(How::Saturates),
        DType::F16 | DType::Bf16 => Ok(How::InF32),
        DType::F32 | DType::F64 => Ok(How::Rounds),
        _ if dtype.is_integer() => Ok(How::Wraps),
        _ => Err("on pairs of a value and an index there are minloc and maxloc"),
    }
}

fn mean(dtype: DType) -> Result<How, &'static str> {
    match dtype {
        DType::I8 | DType::I16 => Ok(How::Wide(Working::I32)),
        DType::U8 | DType::U16 => Ok(How::Wide(Working::U32)),
        DType::I32 => Ok(How::Wide(Working::I64)),
        DType::U32 => Ok(How::Wide(Working::U64)),
        DType::I64 => Ok(How::Wide(Working::I128)),
        DType::U64 => Ok(How::Wide(Working::U128)),
        DType::F8E4M3 | DType::F8E5M2 => Ok(How::WideF32),
        DType::Bool => Err("truth values have no mean"),
        _ if dtype.is_pair() => Err("on pairs of a value and an index there are minloc and maxloc"),
        _ => Ok(How::Fractions),
    }
}

/// The loop for a pair that [`how`] accepts, on working elements: an average and a pre-multiplied sum are sums, and
/// what makes them more is put in and taken out.
pub(crate) fn combine(op: RedOp, dtype: DType, level: Level) -> CombineFn {
    match (op, dtype) {
        (RedOp::Avg, _) => average(dtype, level),
        (RedOp::Band, _) => simd::compiled::<1, kernel::BitAnd>(level),
        (RedOp::Bor, _) => simd::compiled::<1, kernel::BitOr>(level),
        (RedOp::Bxor, _) => simd::compiled::<1, kernel::BitXor>(level),
        (RedOp::Prod | RedOp::Min, DType::Bool) => simd::compiled::<1, kernel::And<u8>>(level),
        (RedOp::Sum | RedOp::Max, DType::Bool) => simd::compiled::<1, kernel::Or<u8>>(level),
        (RedOp::Land | RedOp::Lor | RedOp::Lxor, _) => logical(op, dtype, level),
        (RedOp::Minloc | RedOp::Maxloc, _) => located(op, dtype, level),
        (RedOp::Prod, DType::C64 | DType::C128) => complex_product(dtype, level),
        (RedOp::PremulSum, _) => arithmetic(RedOp::Sum, dtype.part(), level),
        _ => arithmetic(op, dtype.part(), level),
    }
}

fn average(dtype: DType, level: Level) -> CombineFn {
    let sum = |working| arithmetic(RedOp::Sum, working, level);
    match mean(dtype) {
        Ok(How::Wide(Working::I32)) => sum(DType::I32),
        Ok(How::Wide(Working::U32)) => sum(DType::U32),
        Ok(How::Wide(Working::I64)) => sum(DType::I64),
        Ok(How::Wide(Working::U64)) => sum(DType::U64),
        Ok(How::Wide(Working::I128)) => simd::compiled::<16, kernel::WideSum<i128>>(level),
        Ok(How::Wide(Working::U128)) => simd::compiled::<16, kernel::WideSum<u128>>(level),
        Ok(How::WideF32) => sum(DType::F32),
        _ => sum(dtype.part()),
    }
}

fn complex_product(dtype: DType, level: Level) -> CombineFn {
    simd::hand_made(RedOp::Prod, dtype, level).unwrap_or_else(|| match dtype {
        DType::C64 => simd::compiled::<8, kernel::ComplexProd<f32>>(level),
        _ => simd::compiled::<16, kernel::ComplexProd<f64>>(level),
    })
}

/// `sum`, `prod`, `min` and `max` of numbers.
fn arithmetic(op: RedOp, dtype: DType, level: Level) -> CombineFn {
    if let Some(made) = simd::hand_made(op, dtype, level) {
        return made;
    }
    if matches!(op, RedOp::Min | RedOp::Max) {
        match dtype {
            DType::F8E4M3 => return narrow::<u8, 1, { infinity::E4M3 }>(op, level),
            DType::F8E5M2 => return narrow::<u8, 1, { infinity::E5M2 }>(op, level),
            DType::F16 => return narrow::<u16, 2, { infinity::F16 }>(op, level),
            DType::Bf16 => return narrow::<u16, 2, { infinity::BF16 }>(op, level),
            _ => {}
        }
    }
    match dtype {
        DType::I8 => of_type::<1, i8>(op, level),
        DType::U8 | DType::Bool => of_type::<1, u8>(op, level),
        DType::I16 => of_type::<2, i16>(op, level),
        DType::U16 => of_type::<2, u16>(op, level),
        DType::I32 | DType::I32I32 => of_type::<4, i32>(op, level),
        DType::U32 => of_type::<4, u32>(op, level),
        DType::I64 | DType::I64I64 => of_type::<8, i64>(op, level),
        DType::U64 => of_type::<8, u64>(op, level),
        DType::F8E4M3 => of_type::<1, F8E4M3>(op, level),
        DType::F8E5M2 => of_type::<1, F8E5M2>(op, level),
        DType::F16 => of_type::<2, F16>(op, level),
        DType::Bf16 => of_type::<2, Bf16>(op, level),
        DType::F32 | DType::C64 | DType::F32I32 => of_type::<4, f32>(op, level),
        DType::F64 | DType::C128 | DType::F64I64 => of_type::<8, f64>(op, level),
    }
}

fn narrow<T: 'static, const N: usize, const INFINITY: u16>(op: RedOp, level: Level) -> CombineFn
where
    kernel::Narrow<T, INFINITY, false>: kernel::Kernel<N>,
    kernel::Narrow<T, INFINITY, true>: kernel::Kernel<N>,
{
    match op {
        RedOp::Min => simd::compiled::<N, kernel::Narrow<T, INFINITY, false>>(level),
        _ => simd::compiled::<N, kernel::Narrow<T, INFINITY, true>>(level),
    }
}

fn of_type<const N: usize, E: Element<N>>(op: RedOp, level: Level) -> CombineFn {
    match op {
        RedOp::Prod => simd::compiled::<N, kernel::Prod<E>>(level),
        RedOp::Min => simd::compiled::<N, kernel::Min<E>>(level),
        RedOp::Max => simd::compiled::<N, kernel::Max<E>>(level),
        _ => simd::compiled::<N, kernel::Sum<E>>(level),
    }
}

fn logical(op: RedOp, dtype: DType, level: Level) -> CombineFn {
    macro_rules! of_width {
        ($size:literal, $word:ty) => {
            match op {
                RedOp::Land => simd::compiled::<$size, kernel::And<$word>>(level),
                RedOp::Lor => simd::compiled::<$size, kernel::Or<$word>>(level),
                _ => simd::compiled::<$size, kernel::Xor<$word>>(level),
            }
        };
    }
    match dtype.size_bytes() {
        1 => of_width!(1, u8),
        2 => of_width!(2, u16),
        4 => of_width!(4, u32),
        _ => of_width!(8, u64),
    }
}

fn located(op: RedOp, dtype: DType, level: Level) -> CombineFn {
    macro_rules! of_pair {
        ($size:literal, $value:ty) => {
            match op {
                RedOp::Minloc => simd::compiled::<$size, kernel::Located<$value, false>>(level),
                _ => simd::compiled::<$size, kernel::Located<$value, true>>(level),
            }
        };
    }
    match dtype {
        DType::I32I32 => of_pair!(8, i32),
        DType::I64I64 => of_pair!(16, i64),
        DType::F32I32 => of_pair!(8, f32),
        _ => of_pair!(16, f64),
    }
}
