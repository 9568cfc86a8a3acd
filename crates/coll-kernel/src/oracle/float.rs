//! Floats, real and complex: the value in twice the width or nearly, and the bound on what rounding does.

use super::Expected;
use coll_base::{DType, RedOp};

/// Half the distance from 1 to the next value of a float type; of a complex one, of its parts. Others have none: zero.
pub fn unit_roundoff(dtype: DType) -> f64 {
    match dtype.part() {
        part if part.is_float() => Format::of(part).unit_roundoff,
        _ => 0.0,
    }
}

/// How far a result may be from a value once it was rounded to a float type, if it was off by at most `bound` before. What
/// may have left the range of the type may be anything.
pub fn rounded_once(dtype: DType, value: f64, bound: f64) -> f64 {
    let format = Format::of(dtype);
    let size = value.abs() + bound;
    if size > format.largest {
        return f64::INFINITY;
    }
    bound + format.unit_roundoff * size + format.smallest / 2.0
}

/// The bound on a sum, a choice or a copy of values whose sizes add up to `magnitude`, each of which and each partial result
/// was rounded to `wire` once: no term passes more than one such rounding for each of the `leaves`.
pub(super) fn sum_over_wire(wire: DType, leaves: usize, bound: f64, magnitude: f64) -> f64 {
    let (format, steps) = (Format::of(wire), leaves as f64 + 1.0);
    if magnitude + bound > format.largest {
        return f64::INFINITY;
    }
    bound + format.product_error(steps, magnitude + bound) + steps * format.smallest
}

/// As [`sum_over_wire`], for a product of values of these sizes; of complex ones, √5 for each step.
pub(super) fn product_over_wire(
    wire: DType,
    value: f64,
    bound: f64,
    sizes: &mut dyn Iterator<Item = f64>,
) -> f64 {
    let (format, mut leaves) = (Format::of(wire), 0.0);
    if format.product_leaves_range(sizes.inspect(|_| leaves += 1.0)) {
        return f64::INFINITY;
    }
    bound + format.product_error(2.0 * 5f64.sqrt() * leaves, value.abs() + bound)
}

/// The value of an E4M3, by the formula.
pub(super) fn of_e4m3(byte: u8) -> f64 {
    let (exponent, mantissa) = (i32::from((byte >> 3) & 15), f64::from(byte & 7));
    let size = match (exponent, byte & 7) {
        (15, 7) => f64::NAN,
        (0, _) => mantissa * 2f64.powi(-9),
        _ => (8.0 + mantissa) * 2f64.powi(exponent - 10),
    };
    if byte & 0x80 == 0 { size } else { -size }
}

/// The reduction of real floats.
pub(super) fn real(dtype: DType, op: RedOp, params: &[f64], values: &[f64]) -> Option<Expected> {
    let (steps, format) = (values.len() as f64 - 1.0, Format::of(dtype));
    let magnitude: f64 = values.iter().map(|x| x.abs()).sum();
    let near = |value, bound| Some(Expected::Float { value, bound });
    match op {
        RedOp::Sum => near(sum(values), format.sum_error(steps, magnitude)),
        RedOp::Avg => average(dtype, values, magnitude),
        RedOp::PremulSum => {
            let factor = *params.first()?;
            let scaled: Vec<f64> = values.iter().map(|x| x * factor).collect();
            let magnitude: f64 = scaled.iter().map(|x| x.abs()).sum();
            // The factor is rounded, and each product, which may be rounded among the smallest values.
            let small = format.smallest * values.len() as f64;
            near(sum(&scaled), format.sum_error(steps + 3.0, magnitude) + small)
        }
        RedOp::Prod => {
            let value: f64 = values.iter().product();
            let error = if format.product_leaves_range(values.iter().map(|x| x.abs())) {
                f64::INFINITY
            } else {
                format.product_error(steps, value.abs())
            };
            near(value, error)
        }
        RedOp::Min => near(extreme(values, |x, y| x < y), 0.0),
        RedOp::Max => near(extreme(values, |x, y| x > y), 0.0),
        _ => None,
    }
}

fn average(dtype: DType, values: &[f64], magnitude: f64) -> Option<Expected> {
    let (leaves, format) = (values.len() as f64, Format::of(dtype));
    let value = sum(values) / leaves;
    let bound = if matches!(dtype, DType::F8E4M3 | DType::F8E5M2) {
        // Summed and divided in f32, then rounded once.
        let wide = Format::of(DType::F32).sum_error(leaves + 1.0, magnitude / leaves);
        format.unit_roundoff * (value.abs() + wide) + wide + format.smallest
    } else {
        // Each part may be rounded among the smallest values of the type, and is then multiplied again.
        let small = format.smallest * (leaves + 2.0) * 2.0;
        format.product_error(leaves + 3.0, magnitude / leaves) + small
    };
    Some(Expected::Float { value, bound })
}

/// The reduction of complex numbers whose parts are of a type.
pub(super) fn complex(
    part: DType,
    op: RedOp,
    params: &[f64],
    reals: &[f64],
    imaginaries: &[f64],
) -> Option<Expected> {
    if op == RedOp::Prod {
        return Some(complex_product(part, reals, imaginaries));
    }
    if !matches!(op, RedOp::Sum | RedOp::Avg | RedOp::PremulSum) {
        return None;
    }
    match (real(part, op, params, reals)?, real(part, op, params, imaginaries)?) {
        (Expected::Float { value: real, bound: one }, Expected::Float { value: imaginary, bound: two }) => {
            Some(Expected::Complex { real, imaginary, bounds: [one, two] })
        }
        _ => None,
    }
}

/// A product of two is off by at most √5 · u times its size (R. Brent, C. Percival and P. Zimmermann, *Error Bounds on
/// Complex Floating-Point Multiplication*, 2007); the oracle's own is counted too.
fn complex_product(part: DType, reals: &[f64], imaginaries: &[f64]) -> Expected {
    let (mut real, mut imaginary) = (reals[0], imaginaries[0]);
    for (x, y) in reals.iter().zip(imaginaries).skip(1) {
        (real, imaginary) = (real * x - imaginary * y, real * y + imaginary * x);
    }
    let (steps, format) = (reals.len() as f64 - 1.0, Format::of(part));
    let sizes = reals.iter().zip(imaginaries).map(|(x, y)| x.hypot(*y));
    let error = if format.product_leaves_range(sizes) {
        f64::INFINITY
    } else {
        format.product_error(2.0 * 5f64.sqrt() * steps, real.hypot(imaginary))
    };
    Expected::Complex { real, imaginary, bounds: [error; 2] }
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
            DType::F8E4M3 => (4, -6, 448.0),
            DType::F8E5M2 => (3, -14, 57344.0),
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

    /// steps · u · magnitude, and a little for the rounding of the oracle itself. A sum whose parts together leave the
    /// range may do so on its way.
    fn sum_error(&self, steps: f64, magnitude: f64) -> f64 {
        if magnitude.is_finite() && magnitude > self.largest {
            return f64::INFINITY;
        }
        (steps * self.unit_roundoff + 4.0 * f64::EPSILON) * magnitude
    }

    /// Whether a product of values of these sizes may leave the range of the type on its way.
    fn product_leaves_range(&self, sizes: impl Iterator<Item = f64>) -> bool {
        let (up, down) = sizes
            .filter(|x| *x != 0.0)
            .fold((1.0f64, 1.0f64), |(up, down), x| (up * x.max(1.0), down * x.min(1.0)));
        up >= self.largest || down <= self.smallest_normal
    }

    /// γ(steps) · magnitude, and a little for the rounding of the oracle itself.
    fn product_error(&self, steps: f64, magnitude: f64) -> f64 {
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
