//! The built-in operators: one loop for each operator and element type, made by the compiler's vectoriser.

use crate::element::{Bf16, Element, F16};
use crate::number::Number;
use coll_base::{DType, RedOp};

/// `target := a ⊕ b`, where `a` is the target itself if it is not given.
pub(crate) type CombineFn = fn(target: &mut [u8], a: Option<&[u8]>, b: &[u8]);

/// The loop for an operator on elements of a type. An average is a sum: what makes it one is put in and taken out.
pub(crate) fn builtin(op: RedOp, dtype: DType) -> CombineFn {
    match dtype {
        DType::U8 => of_type::<1, u8>(op),
        DType::I32 => of_type::<4, i32>(op),
        DType::I64 => of_type::<8, i64>(op),
        DType::F16 => of_type::<2, F16>(op),
        DType::Bf16 => of_type::<2, Bf16>(op),
        DType::F32 => of_type::<4, f32>(op),
        DType::F64 => of_type::<8, f64>(op),
    }
}

/// Sums of 128-bit integers: what averages of `i64` are summed in.
pub(crate) fn sum_i128(target: &mut [u8], a: Option<&[u8]>, b: &[u8]) {
    each::<16>(target, a, b, |x, y| {
        i128::from_ne_bytes(x).wrapping_add(i128::from_ne_bytes(y)).to_ne_bytes()
    });
}

fn of_type<const N: usize, E: Element<N>>(op: RedOp) -> CombineFn {
    match op {
        RedOp::Sum | RedOp::Avg => |t, a, b| each::<N>(t, a, b, |x, y| E::store(E::load(x).add(E::load(y)))),
        RedOp::Prod => |t, a, b| each::<N>(t, a, b, |x, y| E::store(E::load(x).mul(E::load(y)))),
        RedOp::Min => |t, a, b| each::<N>(t, a, b, |x, y| E::store(E::load(x).min(E::load(y)))),
        RedOp::Max => |t, a, b| each::<N>(t, a, b, |x, y| E::store(E::load(x).max(E::load(y)))),
    }
}

#[inline(always)]
fn each<const N: usize>(
    target: &mut [u8],
    a: Option<&[u8]>,
    b: &[u8],
    combine: impl Fn([u8; N], [u8; N]) -> [u8; N],
) {
    let (targets, _) = target.as_chunks_mut::<N>();
    let (bs, _) = b.as_chunks::<N>();
    match a {
        None => {
            for (target, b) in targets.iter_mut().zip(bs) {
                *target = combine(*target, *b);
            }
        }
        Some(a) => {
            let (a_s, _) = a.as_chunks::<N>();
            for ((target, a), b) in targets.iter_mut().zip(a_s).zip(bs) {
                *target = combine(*a, *b);
            }
        }
    }
}
