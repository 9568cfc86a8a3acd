//! Integers and truth values, exactly.

use coll_base::{DType, RedOp};

/// The reduction of integers, wrapped to the type.
pub(super) fn integer(dtype: DType, op: RedOp, params: &[f64], values: &[i128]) -> Option<i128> {
    let all = values.iter().copied();
    let wide = match op {
        RedOp::Sum => all.fold(0, i128::wrapping_add),
        RedOp::Prod => all.fold(1, |x: i128, y| wrapped(dtype, x.wrapping_mul(y))),
        RedOp::Min => all.fold(i128::MAX, i128::min),
        RedOp::Max => all.fold(i128::MIN, i128::max),
        RedOp::Avg => all.fold(0, i128::wrapping_add) / values.len() as i128,
        RedOp::PremulSum => {
            let factor = *params.first()?;
            let whole = factor as i128;
            if whole as f64 != factor {
                return None;
            }
            all.fold(0, |sum, x| wrapped(dtype, sum + wrapped(dtype, x * whole)))
        }
        RedOp::Band => all.fold(-1, |x, y| x & y),
        RedOp::Bor => all.fold(0, |x, y| x | y),
        RedOp::Bxor => all.fold(0, |x, y| x ^ y),
        // A value alone stays what it is.
        RedOp::Land | RedOp::Lor | RedOp::Lxor if values.len() == 1 => values[0],
        RedOp::Land => all.clone().all(|x| x != 0).into(),
        RedOp::Lor => all.clone().any(|x| x != 0).into(),
        RedOp::Lxor => all.fold(false, |x, y| x ^ (y != 0)).into(),
        RedOp::Minloc | RedOp::Maxloc => return None,
    };
    Some(wrapped(dtype, wide))
}

fn wrapped(dtype: DType, wide: i128) -> i128 {
    match dtype {
        DType::I8 => (wide as i8).into(),
        DType::U8 => (wide as u8).into(),
        DType::I16 => (wide as i16).into(),
        DType::U16 => (wide as u16).into(),
        DType::I32 => (wide as i32).into(),
        DType::U32 => (wide as u32).into(),
        DType::U64 => (wide as u64).into(),
        _ => (wide as i64).into(),
    }
}

/// The reduction of truth values: a sum and a maximum is `or`, a product and a minimum `and`.
pub(super) fn truth(op: RedOp, values: &[i128]) -> Option<i128> {
    let mut truths = values.iter().map(|x| *x != 0);
    match op {
        RedOp::Sum | RedOp::Max | RedOp::Lor => Some(truths.any(|x| x).into()),
        RedOp::Prod | RedOp::Min | RedOp::Land => Some(truths.all(|x| x).into()),
        RedOp::Lxor => Some(truths.fold(false, |x, y| x ^ y).into()),
        _ => None,
    }
}
