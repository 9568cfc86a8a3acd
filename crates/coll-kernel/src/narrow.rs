//! Half-precision floats to and from `f32`, rounding to nearest even, without branches so that loops of them
//! become vector code. Conversions that look up the processor for each element are several times slower.

/// The nearest `f32` of an IEEE half, exactly.
#[inline(always)]
pub(crate) fn f32_of_f16(half: u16) -> f32 {
    let (bits, magnitude) = (half as u32, (half & 0x7fff) as u32);
    // Subnormals are multiples of 2^-24. They are not read as subnormals of f32, with which processors are slow.
    let is_small = mask(magnitude < 1 << 10);
    let small = (magnitude as i32 as f32 * f32::from_bits((127 - 24) << 23)).to_bits();
    let normal = (magnitude << 13) + (112 << 23);
    let unbounded = mask(magnitude >= 31 << 10) & 0x7f80_0000;
    f32::from_bits((small & is_small) | (normal & !is_small) | unbounded | (bits & 0x8000) << 16)
}

/// The nearest IEEE half, ties to even; too large is infinity, NaN stays NaN with the upper bits of its payload, as the
/// processor's instruction does.
///
/// The way of M. Dukhan's FP16 library (2017): adding a power of two so large that the last bit of the sum is the last
/// bit of the half lets the processor round, subnormals included.
#[inline(always)]
pub(crate) fn f16_of_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Up and down again: what a half cannot hold becomes infinite.
    let scaled =
        f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23) * f32::from_bits((127 - 110) << 23);
    // No exponent below that of the smallest normal half, so that smaller values lose their bits to it.
    let exponent = (magnitude & 0x7f80_0000) as i32;
    let exponent = exponent.max((127 - 14) << 23) as u32;
    let rounded = (f32::from_bits(exponent + (15 << 23)) + scaled).to_bits();
    let half = ((rounded >> 13) & 0x7c00) + (rounded & 0xfff);
    let is_nan = mask(magnitude as i32 > 0x7f80_0000);
    let nan = 0x7e00 | ((magnitude >> 13) & 0x3ff);
    let chosen = (nan & is_nan) | (half & !is_nan);
    (chosen | ((bits >> 16) & 0x8000)) as u16
}

/// The `f32` that a bf16 is the upper half of.
#[inline(always)]
pub(crate) fn f32_of_bf16(brain: u16) -> f32 {
    f32::from_bits((brain as u32) << 16)
}

/// The nearest bf16, ties to even; NaN stays NaN.
#[inline(always)]
pub(crate) fn bf16_of_f32(value: f32) -> u16 {
    let bits = value.to_bits();
    let is_nan = mask((bits & 0x7fff_ffff) as i32 > 0x7f80_0000);
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    ((nan & is_nan) | (rounded & !is_nan)) as u16
}

#[inline(always)]
pub(crate) fn mask(holds: bool) -> u32 {
    (holds as u32).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_narrow_float_widens_as_the_reference_does() {
        for bits in 0..=u16::MAX {
            let (wide, reference) = (f32_of_f16(bits), half::f16::from_bits(bits).to_f32());
            assert!(
                wide.to_bits() == reference.to_bits() || wide.is_nan() && reference.is_nan(),
                "{bits:#x}"
            );
            let (wide, reference) = (f32_of_bf16(bits), half::bf16::from_bits(bits).to_f32());
            assert!(
                wide.to_bits() == reference.to_bits() || wide.is_nan() && reference.is_nan(),
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn narrowing_rounds_to_nearest_even_as_the_reference_does() {
        // Every narrow value, the middle to the next one, and the neighbours of both.
        for bits in 0..=u16::MAX {
            for (start, step) in [(f32_of_f16(bits).to_bits(), 0x1000u32), ((bits as u32) << 16, 0x8000)] {
                for offset in [0, 1, step - 1, step, step + 1, 2 * step - 1] {
                    let value = f32::from_bits(start.wrapping_add(offset));
                    let (ours, reference) = (f16_of_f32(value), half::f16::from_f32(value).to_bits());
                    assert!(ours == reference || value.is_nan() && is_f16_nan(ours), "f16 of {value:e}");
                    let (ours, reference) = (bf16_of_f32(value), half::bf16::from_f32(value).to_bits());
                    assert!(
                        ours == reference || value.is_nan() && f32_of_bf16(ours).is_nan(),
                        "bf16 of {value:e}"
                    );
                }
            }
        }
    }

    fn is_f16_nan(bits: u16) -> bool {
        half::f16::from_bits(bits).is_nan()
    }
}
