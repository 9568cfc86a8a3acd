//! The 8-bit floats of OCP (*OCP 8-bit Floating Point Specification*, revision 1.0, 2023) to and from `f32`, without
//! branches so that loops of them become vector code.
//!
//! E4M3 has four bits of exponent, no infinity and one NaN of each sign; E5M2 has five and is the upper byte of an IEEE
//! half. Both round to nearest, ties to even, and saturate as the specification's first mode does: what is too large
//! becomes the largest finite value, 448 or 57344. An infinity in E5M2 stays one, though: whoever put it in shall
//! find it. It cannot come from arithmetic on two elements, for their product still fits an `f32`.

use crate::narrow::mask;

/// The value of an E4M3.
#[inline(always)]
pub(crate) fn f32_of_e4m3(byte: u8) -> f32 {
    let (bits, magnitude) = (byte as u32, (byte & 0x7f) as u32);
    // Subnormals are multiples of 2^-9. They are not read as subnormals of f32, with which processors are slow.
    let is_small = mask(magnitude < 8);
    let small = (magnitude as i32 as f32 * f32::from_bits((127 - 9) << 23)).to_bits();
    let normal = (magnitude << 20) + (120 << 23);
    let nan = mask(magnitude == 0x7f) & 0x7fc0_0000;
    f32::from_bits((small & is_small) | (normal & !is_small) | nan | (bits & 0x80) << 24)
}

/// The value of an E5M2.
#[inline(always)]
pub(crate) fn f32_of_e5m2(byte: u8) -> f32 {
    crate::narrow::f32_of_f16((byte as u16) << 8)
}

/// The nearest E4M3, ties to even; too large is the largest, NaN stays NaN.
#[inline(always)]
pub(crate) fn e4m3_of_f32(value: f32) -> u8 {
    let magnitude = value.to_bits() & 0x7fff_ffff;
    let nan = mask(magnitude > 0x7f80_0000);
    let rounded = rounded::<3, 7>(magnitude.min(448f32.to_bits()));
    ((rounded & !nan) | (0x7f & nan) | (value.to_bits() >> 24 & 0x80)) as u8
}

/// The nearest E5M2, ties to even; too large is the largest, infinity and NaN stay what they are.
#[inline(always)]
pub(crate) fn e5m2_of_f32(value: f32) -> u8 {
    let magnitude = value.to_bits() & 0x7fff_ffff;
    let (nan, infinite) = (mask(magnitude > 0x7f80_0000), mask(magnitude == 0x7f80_0000));
    let rounded = rounded::<2, 15>(magnitude.min(57344f32.to_bits()));
    let chosen = (rounded & !(nan | infinite)) | (0x7c & infinite) | (0x7f & nan);
    (chosen | (value.to_bits() >> 24 & 0x80)) as u8
}

/// A magnitude, the bits of an `f32` within the format's range, as a float of `M` bits after the point and an exponent
/// that is `BIAS` too large.
#[inline(always)]
fn rounded<const M: u32, const BIAS: u32>(magnitude: u32) -> u32 {
    let dropped = 23 - M;
    let nearest = magnitude + ((1 << (dropped - 1)) - 1) + ((magnitude >> dropped) & 1);
    let normal = (nearest >> dropped).wrapping_sub((127 - BIAS) << M);
    // Among subnormals the last bit is worth 2^(1 - BIAS - M): a number so large that its own last bit is worth as much
    // makes the processor round there.
    let anchor = (127 + 1 - BIAS - M + 23) << 23;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(anchor)).to_bits() - anchor;
    let is_subnormal = mask(magnitude < (127 + 1 - BIAS) << 23);
    (subnormal & is_subnormal) | (normal & !is_subnormal)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the formula of the specification: none is NaN.
    fn value(byte: u8, mantissa_bits: i32, bias: i32) -> Option<f64> {
        let (exponent, mantissa) = ((byte & 0x7f) >> mantissa_bits, byte & ((1 << mantissa_bits) - 1));
        let sign = if byte & 0x80 == 0 { 1.0 } else { -1.0 };
        let step = 2f64.powi(i32::from(exponent.max(1)) - bias - mantissa_bits);
        let whole = f64::from(mantissa) + if exponent == 0 { 0.0 } else { f64::from(1u8 << mantissa_bits) };
        match (bias, byte & 0x7f) {
            (7, 0x7f) | (15, 0x7d..=0x7f) => None,
            (15, 0x7c) => Some(sign * f64::INFINITY),
            _ => Some(sign * whole * step),
        }
    }

    #[test]
    fn every_byte_has_the_value_of_the_specification() {
        for byte in 0..=u8::MAX {
            for (found, due) in
                [(f32_of_e4m3(byte), value(byte, 3, 7)), (f32_of_e5m2(byte), value(byte, 2, 15))]
            {
                match due {
                    None => assert!(found.is_nan(), "{byte:#x}"),
                    Some(due) => {
                        assert_eq!(f64::from(found), due, "{byte:#x}");
                        assert_eq!(found.is_sign_negative(), byte & 0x80 != 0);
                    }
                }
            }
        }
    }

    /// The nearest finite value by search, the even byte of two that are equally near.
    fn nearest(x: f64, value: impl Fn(u8) -> Option<f64>) -> u8 {
        let finite = (0..0x80u8).filter(|&byte| value(byte).is_some_and(f64::is_finite));
        let error = |byte: u8| (value(byte).unwrap() - x.abs()).abs();
        let best = finite.min_by(|&a, &b| error(a).total_cmp(&error(b)).then((a & 1).cmp(&(b & 1)))).unwrap();
        best | if x.is_sign_negative() { 0x80 } else { 0 }
    }

    #[test]
    fn narrowing_takes_the_nearest_ties_to_even_and_saturates() {
        for byte in 0..0x7fu8 {
            for (wide, next, step) in [
                (f32_of_e4m3(byte), f32_of_e4m3(byte + 1), f32_of_e4m3(1)),
                (f32_of_e5m2(byte), f32_of_e5m2(byte + 1), f32_of_e5m2(1)),
            ] {
                if !wide.is_finite() {
                    continue;
                }
                let middle = if next.is_finite() { wide / 2.0 + next / 2.0 } else { wide * 1.07 };
                let close = |x: f32| [x.next_down(), x, x.next_up()];
                for x in [close(wide), close(middle), close(step / 2.0), close(wide * 1000.0)].concat() {
                    for x in [x, -x] {
                        assert_eq!(e4m3_of_f32(x), nearest(x.into(), |b| value(b, 3, 7)), "e4m3 of {x:e}");
                        assert_eq!(e5m2_of_f32(x), nearest(x.into(), |b| value(b, 2, 15)), "e5m2 of {x:e}");
                    }
                }
            }
        }
        assert_eq!((e4m3_of_f32(f32::INFINITY), e4m3_of_f32(f32::MIN)), (0x7e, 0xfe));
        assert_eq!((e5m2_of_f32(f32::NEG_INFINITY), e5m2_of_f32(f32::MAX)), (0xfc, 0x7b));
        assert_eq!((e4m3_of_f32(f32::NAN) & 0x7f, e5m2_of_f32(f32::NAN) & 0x7f), (0x7f, 0x7f));
    }
}
