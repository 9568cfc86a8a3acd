//! What a reduction should give, worked out serially and wide, and how far a result may be from it.
//!
//! # The bound
//! For a sum of n values in any order, the error is at most γ(n-1) · Σ|x| with γ(k) = k·u / (1 - k·u), where u is half
//! the distance from 1 to the next value of the type (N. J. Higham, *Accuracy and Stability of Numerical Algorithms*,
//! 2002, section 4.2); an average rounds once more for each value and twice at the end. For a product it is γ(n-1) times
//! the product. `min`, `max` and integers are exact. Where partial results may leave the range of the type, on the
//! way up or down, the order decides, and any result is accepted: the bound is infinite.

use coll_base::{DType, RedOp};

/// The value of one element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// Of an integer type.
    Int(i128),
    /// Of a float type.
    Float(f64),
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
}

impl Expected {
    /// Whether a result is within the bound.
    pub fn accepts(self, result: Scalar) -> bool {
        match (self, result) {
            (Expected::Int(due), Scalar::Int(found)) => due == found,
            (Expected::Float { value, .. }, Scalar::Float(found)) if value.is_nan() => found.is_nan(),
            (Expected::Float { value, bound }, Scalar::Float(found)) => {
                value == found || bound == f64::INFINITY || (value - found).abs() <= bound
            }
            _ => false,
        }
    }
}

/// Reads one element. `None` if there are too few bytes.
pub fn read(dtype: DType, bytes: &[u8]) -> Option<Scalar> {
    Some(match dtype {
        DType::U8 => Scalar::Int((*bytes.first()?).into()),
        DType::I32 => Scalar::Int(i32::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::I64 => Scalar::Int(i64::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::F16 => Scalar::Float(half::f16::from_ne_bytes(*bytes.first_chunk()?).to_f64()),
        DType::Bf16 => Scalar::Float(half::bf16::from_ne_bytes(*bytes.first_chunk()?).to_f64()),
        DType::F32 => Scalar::Float(f32::from_ne_bytes(*bytes.first_chunk()?).into()),
        DType::F64 => Scalar::Float(f64::from_ne_bytes(*bytes.first_chunk()?)),
    })
}

/// Appends one element: integers wrap, floats round to the nearest; a value of the other kind is converted.
pub fn write(dtype: DType, value: Scalar, bytes: &mut Vec<u8>) {
    let (int, float) = match value {
        Scalar::Int(int) => (int, int as f64),
        Scalar::Float(float) => (float as i128, float),
    };
    match dtype {
        DType::U8 => bytes.push(int as u8),
        DType::I32 => bytes.extend((int as i32).to_ne_bytes()),
        DType::I64 => bytes.extend((int as i64).to_ne_bytes()),
        DType::F16 => bytes.extend(half::f16::from_f64(float).to_ne_bytes()),
        DType::Bf16 => bytes.extend(half::bf16::from_f64(float).to_ne_bytes()),
        DType::F32 => bytes.extend((float as f32).to_ne_bytes()),
        DType::F64 => bytes.extend(float.to_ne_bytes()),
    }
}

/// The reduction of one element's leaves, of which there is at least one. `None` if there is none, or if they are
/// not of the type's kind.
pub fn expected(dtype: DType, op: RedOp, leaves: &[Scalar]) -> Option<Expected> {
    if leaves.is_empty() {
        return None;
    }
    if dtype.is_float() {
        let values = leaves.iter().map(|leaf| match leaf {
            Scalar::Float(value) => Some(*value),
            Scalar::Int(_) => None,
        });
        return values.collect::<Option<Vec<f64>>>().map(|values| float(dtype, op, &values));
    }
    let values = leaves.iter().map(|leaf| match leaf {
        Scalar::Int(value) => Some(*value),
        Scalar::Float(_) => None,
    });
    values.collect::<Option<Vec<i128>>>().map(|values| integer(dtype, op, &values))
}

fn integer(dtype: DType, op: RedOp, values: &[i128]) -> Expected {
    let values = values.iter().copied();
    let leaves = values.len() as i128;
    let wide = match op {
        RedOp::Sum => values.fold(0, i128::wrapping_add),
        RedOp::Prod => values.fold(1, i128::wrapping_mul),
        RedOp::Min => values.fold(i128::MAX, i128::min),
        RedOp::Max => values.fold(i128::MIN, i128::max),
        RedOp::Avg => values.fold(0, i128::wrapping_add) / leaves,
    };
    Expected::Int(match dtype {
        DType::U8 => (wide as u8).into(),
        DType::I32 => (wide as i32).into(),
        _ => (wide as i64).into(),
    })
}

fn float(dtype: DType, op: RedOp, values: &[f64]) -> Expected {
    let (steps, format) = (values.len() as f64 - 1.0, Format::of(dtype));
    let magnitude: f64 = values.iter().map(|x| x.abs()).sum();
    let (value, bound) = match op {
        RedOp::Sum => (sum(values), format.error(steps, magnitude)),
        RedOp::Avg => {
            let leaves = values.len() as f64;
            let value = sum(values) / leaves;
            // Each part may be rounded among the smallest values of the type, and is then multiplied again.
            let small = format.smallest * (leaves + 2.0) * 2.0;
            let error = format.error(steps + 4.0, magnitude / leaves);
            return Expected::Float { value, bound: error + small };
        }
        RedOp::Prod => {
            let value: f64 = values.iter().product();
            let (up, down) =
                values.iter().filter(|x| **x != 0.0).fold((1.0, 1.0), |(up, down): (f64, f64), x| {
                    (up * x.abs().max(1.0), down * x.abs().min(1.0))
                });
            let leaves_range = up >= format.largest || down <= format.smallest_normal;
            (value, if leaves_range { f64::INFINITY } else { format.error(steps, value.abs()) })
        }
        RedOp::Min => (extreme(values, |x, y| x < y), 0.0),
        RedOp::Max => (extreme(values, |x, y| x > y), 0.0),
    };
    let overflows = op == RedOp::Sum && magnitude.is_finite() && magnitude > format.largest;
    Expected::Float { value, bound: if overflows { f64::INFINITY } else { bound } }
}

/// A float type as error analysis sees it.
struct Format {
    /// Half the distance from 1 to the next value.
    unit_roundoff: f64,
    largest: f64,
    smallest_normal: f64,
    smallest: f64,
}

impl Format {
    fn of(dtype: DType) -> Format {
        let (digits, exponent_min, largest) = match dtype {
            DType::F16 => (11, -14, 65504.0),
            DType::Bf16 => (8, -126, 3.3895313892515355e38),
            DType::F32 => (24, -126, f64::from(f32::MAX)),
            _ => (53, -1022, f64::MAX),
        };
        Format {
            unit_roundoff: 0.5f64.powi(digits),
            largest,
            smallest_normal: 2f64.powi(exponent_min),
            smallest: 2f64.powi(exponent_min) * 0.5f64.powi(digits - 1),
        }
    }

    /// γ(steps) · magnitude, and a little for the rounding of the oracle itself.
    fn error(&self, steps: f64, magnitude: f64) -> f64 {
        let k = steps * self.unit_roundoff;
        if k >= 1.0 { f64::INFINITY } else { (k / (1.0 - k) + 4.0 * f64::EPSILON) * magnitude }
    }
}

/// A compensated sum (A. Neumaier, 1974): nearly as good as one in twice the width.
fn sum(values: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0f64);
    for &x in values {
        let next = sum + x;
        if next.is_finite() {
            lost += if sum.abs() >= x.abs() { (sum - next) + x } else { (x - next) + sum };
        }
        sum = next;
    }
    sum + lost
}

fn extreme(values: &[f64], better: impl Fn(f64, f64) -> bool) -> f64 {
    if values.iter().any(|x| x.is_nan()) {
        return f64::NAN;
    }
    values[1..].iter().fold(values[0], |best, &x| if better(x, best) { x } else { best })
}
