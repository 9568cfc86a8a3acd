//! What a reduction should give, worked out serially and wide, and how far a result may be from it.
//!
//! # The bound
//! For a sum of n values in any order, the error is at most (n-1) · u · Σ|x|, where u is half the distance from 1 to the
//! next value of the type (C.-P. Jeannerod and S. M. Rump, *Improved Error Bounds for Inner Products in Floating-Point
//! Arithmetic*, 2013); an average rounds once more for each value and twice at the end, a pre-multiplied sum twice more
//! for each value. For a product it is γ(n-1) times the product, with γ(k) = k·u / (1 - k·u) (N. J. Higham, *Accuracy and
//! Stability of Numerical Algorithms*, 2002, section 3.1). `min`, `max`, `minloc`, `maxloc`, integers and truth values
//! are exact. Where partial results may leave the range of the type, on the way up or down, the order decides, and any
//! result is accepted: the bound is infinite.

mod float;
mod whole;

pub use float::{rounded_once, unit_roundoff};

use coll_base::{DType, RedOp};

/// The value of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Of an integer type, or a truth value, 0 or 1.
    Int(i128),
    /// Of a float type.
    Float(f64),
    /// A complex number: real and imaginary part.
    Complex(f64, f64),
    /// An integer and its index.
    IntAt(i128, i64),
    /// A float and its index.
    FloatAt(f64, i64),
}

/// What a reduction should give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected {
    /// Exactly this.
    Int(i128),
    /// This, give or take the bound. NaN expects NaN.
    Float {
        /// The value, nearly exact.
        value: f64,
        /// The largest difference that rounding explains.
        bound: f64,
    },
    /// A complex number, give or take a bound for each part.
    Complex {
        /// The real part, nearly exact.
        real: f64,
        /// The imaginary part, nearly exact.
        imaginary: f64,
        /// The largest differences of the parts that rounding explains.
        bounds: [f64; 2],
    },
    /// Exactly this value and index. NaN expects NaN.
    At(Scalar),
}

impl Expected {
    /// Whether a result is within the bound.
    pub fn accepts(self, result: Scalar) -> bool {
        match (self, result) {
            (Expected::Int(due), Scalar::Int(found)) => due == found,
            (Expected::Float { value, bound }, Scalar::Float(found)) => near(value, bound, found),
            (Expected::Complex { real, imaginary, bounds }, Scalar::Complex(one, two)) => {
                near(real, bounds[0], one) && near(imaginary, bounds[1], two)
            }
            (Expected::At(Scalar::FloatAt(value, index)), Scalar::FloatAt(found, at)) => {
                index == at && near(value, 0.0, found)
            }
            (Expected::At(due), found) => due == found,
            _ => false,
        }
    }
}

fn near(due: f64, bound: f64, found: f64) -> bool {
    if due.is_nan() {
        return found.is_nan();
    }
    due == found || bound == f64::INFINITY || (due - found).abs() <= bound
}

/// Reads one element. `None` if there are too few bytes.
pub fn read(dtype: DType, bytes: &[u8]) -> Option<Scalar> {
    Some(match dtype {
        DType::Bool => Scalar::Int((*bytes.first()? != 0).into()),
        DType::I8 => Scalar::Int(i8::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::U8 => Scalar::Int((*bytes.first()?).into()),
        DType::I16 => Scalar::Int(i16::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::U16 => Scalar::Int(u16::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::I32 => Scalar::Int(i32::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::U32 => Scalar::Int(u32::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::I64 => Scalar::Int(i64::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::U64 => Scalar::Int(u64::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::F8E4M3 => Scalar::Float(float::of_e4m3(*bytes.first()?)),
        DType::F8E5M2 => {
            // The upper byte of a half.
            Scalar::Float(half::f16::from_bits(u16::from(*bytes.first()?) << 8).to_f64())
        }
        DType::F16 => Scalar::Float(half::f16::from_ne_bytes(*bytes.first_chunk()?).to_f64()),
        DType::Bf16 => Scalar::Float(half::bf16::from_ne_bytes(*bytes.first_chunk()?).to_f64()),
        DType::F32 => Scalar::Float(f32::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::F64 => Scalar::Float(f64::from_ne_bytes(*bytes.first_chunk()?)),
        DType::C64 | DType::C128 | DType::I32I32 | DType::I64I64 | DType::F32I32 | DType::F64I64 => {
            let bytes = bytes.get(..dtype.size_bytes() as usize)?;
            let (one, two) = bytes.split_at(bytes.len() / 2);
            let index = if dtype.size_bytes() == 8 { DType::I32 } else { DType::I64 };
            let second = read(if dtype.is_complex() { dtype.part() } else { index }, two)?;
            match (read(dtype.part(), one)?, second) {
                (Scalar::Float(real), Scalar::Float(imaginary)) => Scalar::Complex(real, imaginary),
                (Scalar::Float(value), Scalar::Int(index)) => Scalar::FloatAt(value, index as i64),
                (Scalar::Int(value), Scalar::Int(index)) => Scalar::IntAt(value, index as i64),
                _ => return None,
            }
        }
    })
}

/// Appends one element: integers wrap, floats round to the nearest; a value of another kind is converted, with an
/// imaginary part or index of zero where it has none.
pub fn write(dtype: DType, value: Scalar, bytes: &mut Vec<u8>) {
    let (int, float, second, index) = match value {
        Scalar::Int(int) => (int, int as f64, 0.0, 0),
        Scalar::Float(float) => (float as i128, float, 0.0, 0),
        Scalar::Complex(real, imaginary) => (real as i128, real, imaginary, 0),
        Scalar::IntAt(int, index) => (int, int as f64, 0.0, index),
        Scalar::FloatAt(float, index) => (float as i128, float, 0.0, index),
    };
    match dtype {
        DType::Bool => bytes.push((int != 0).into()),
        DType::I8 | DType::U8 => bytes.push(int as u8),
        DType::I16 | DType::U16 => bytes.extend((int as u16).to_ne_bytes()),
        DType::I32 | DType::U32 => bytes.extend((int as u32).to_ne_bytes()),
        DType::I64 | DType::U64 => bytes.extend((int as u64).to_ne_bytes()),
        DType::F8E4M3 => bytes.push(crate::narrow8::e4m3_of_f32(float as f32)),
        DType::F8E5M2 => bytes.push(crate::narrow8::e5m2_of_f32(float as f32)),
        DType::F16 => bytes.extend(half::f16::from_f64(float).to_ne_bytes()),
        DType::Bf16 => bytes.extend(half::bf16::from_f64(float).to_ne_bytes()),
        DType::F32 => bytes.extend((float as f32).to_ne_bytes()),
        DType::F64 => bytes.extend(float.to_ne_bytes()),
        DType::C64 | DType::C128 => {
            write(dtype.part(), Scalar::Float(float), bytes);
            write(dtype.part(), Scalar::Float(second), bytes);
        }
        DType::I32I32 | DType::I64I64 | DType::F32I32 | DType::F64I64 => {
            write(dtype.part(), value_of(value), bytes);
            match dtype.size_bytes() {
                8 => bytes.extend((index as i32).to_ne_bytes()),
                _ => bytes.extend(index.to_ne_bytes()),
            }
        }
    }
}

fn value_of(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::IntAt(value, _) => Scalar::Int(value),
        Scalar::FloatAt(value, _) => Scalar::Float(value),
        other => other,
    }
}

/// The reduction of one element's leaves by an operator without parameters. `None` if there is no leaf, if leaves are not
/// of the type's kind, or if the operator does not work on the type.
pub fn expected(dtype: DType, op: RedOp, leaves: &[Scalar]) -> Option<Expected> {
    expected_with(dtype, op, &[], leaves)
}

/// As [`expected`], with a value for each of the operator's parameters. Integers take whole values only.
pub fn expected_with(dtype: DType, op: RedOp, params: &[f64], leaves: &[Scalar]) -> Option<Expected> {
    if leaves.is_empty() || params.len() != op.params().len() {
        return None;
    }
    if dtype.is_pair() {
        return located(op, leaves);
    }
    if dtype.is_complex() {
        let part = |take: fn((f64, f64)) -> f64| {
            leaves.iter().map(|leaf| complex(leaf).map(take)).collect::<Option<Vec<f64>>>()
        };
        return float::complex(dtype.part(), op, params, &part(|x| x.0)?, &part(|x| x.1)?);
    }
    if dtype.is_float() {
        let value = |leaf: &Scalar| if let Scalar::Float(value) = leaf { Some(*value) } else { None };
        return float::real(dtype, op, params, &leaves.iter().map(value).collect::<Option<Vec<f64>>>()?);
    }
    let value = |leaf: &Scalar| if let Scalar::Int(value) = leaf { Some(*value) } else { None };
    let values = leaves.iter().map(value).collect::<Option<Vec<i128>>>()?;
    let reduced = match dtype {
        DType::Bool => whole::truth(op, &values),
        _ => whole::integer(dtype, op, params, &values),
    };
    reduced.map(Expected::Int)
}

/// As [`expected_with`], for a narrow float that is accumulated in `f32` and rounded once.
pub fn expected_in_f32(dtype: DType, op: RedOp, params: &[f64], leaves: &[Scalar]) -> Option<Expected> {
    match expected_with(DType::F32, op, params, leaves)? {
        Expected::Float { value, bound } => {
            Some(Expected::Float { value, bound: rounded_once(dtype, value, bound) })
        }
        other => Some(other),
    }
}

/// What is expected where floats travelled as those of a narrower type: with `leaves` and all partial results rounded to
/// `wire` once each, on top of what rounds `expected`. What may have left the range of that type may be anything.
pub fn over_wire(wire: DType, op: Option<RedOp>, leaves: &[Scalar], expected: Expected) -> Expected {
    let parts: Vec<(f64, f64)> = leaves
        .iter()
        .map(|leaf| match *leaf {
            Scalar::Float(x) => (x, 0.0),
            Scalar::Complex(x, y) => (x, y),
            _ => (0.0, 0.0),
        })
        .collect();
    let is_product = op == Some(RedOp::Prod);
    let bound = |value: f64, before: f64, take: fn((f64, f64)) -> f64| {
        let mut sizes = parts.iter().map(|&part| take(part).abs());
        match is_product {
            true => float::product_over_wire(wire, value, before, &mut sizes),
            false => float::sum_over_wire(wire, leaves.len(), before, sizes.sum()),
        }
    };
    match expected {
        Expected::Float { value, bound: before } => {
            Expected::Float { value, bound: bound(value, before, |part| part.0) }
        }
        Expected::Complex { real, imaginary, bounds: [one, two] } => {
            let size = real.hypot(imaginary);
            let bounds = match is_product {
                true => [one, two].map(|before| bound(size, before, |part| part.0.hypot(part.1))),
                false => [bound(real, one, |part| part.0), bound(imaginary, two, |part| part.1)],
            };
            Expected::Complex { real, imaginary, bounds }
        }
        other => other,
    }
}

fn complex(leaf: &Scalar) -> Option<(f64, f64)> {
    if let Scalar::Complex(real, imaginary) = leaf { Some((*real, *imaginary)) } else { None }
}

/// `minloc` and `maxloc`: of equal values, and of NaNs, the lower index.
fn located(op: RedOp, leaves: &[Scalar]) -> Option<Expected> {
    let greatest = match op {
        RedOp::Minloc => false,
        RedOp::Maxloc => true,
        _ => return None,
    };
    let mut best = *leaves.first()?;
    for &leaf in leaves {
        let better = match (best, leaf) {
            (Scalar::IntAt(x, i), Scalar::IntAt(y, j)) => {
                if x == y {
                    j < i
                } else {
                    (y > x) == greatest
                }
            }
            (Scalar::FloatAt(x, i), Scalar::FloatAt(y, j)) => match (x.is_nan(), y.is_nan()) {
                (true, false) => false,
                (false, true) => true,
                (true, true) => j < i,
                (false, false) if x == y => j < i,
                (false, false) => (y > x) == greatest,
            },
            _ => return None,
        };
        best = if better { leaf } else { best };
    }
    Some(Expected::At(best))
}
