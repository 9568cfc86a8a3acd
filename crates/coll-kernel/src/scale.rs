//! The pre-multiplied sum: each rank puts in its value times a factor, rounded to the type as any product is.

use crate::element::{Element, F8E4M3, F8E5M2};
use crate::number::Number;
use crate::simd::{self, Level, Scaling};
use coll_base::DType;

/// A factor for elements of a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    dtype: DType,
    factor: f64,
}

impl Scale {
    /// A factor, if the type that elements are computed in holds it: integers refuse fractions, and floats what is not
    /// finite in them.
    pub(crate) fn new(dtype: DType, factor: f64) -> Result<Scale, String> {
        let holds = match dtype.part() {
            DType::I8 => i8::from_float(factor).is_some(),
            DType::U8 => u8::from_float(factor).is_some(),
            DType::I16 => i16::from_float(factor).is_some(),
            DType::U16 => u16::from_float(factor).is_some(),
            DType::I32 => i32::from_float(factor).is_some(),
            DType::U32 => u32::from_float(factor).is_some(),
            DType::I64 => i64::from_float(factor).is_some(),
            DType::U64 => u64::from_float(factor).is_some(),
            DType::F64 => factor.is_finite(),
            _ => (factor as f32).is_finite(),
        };
        if holds {
            Ok(Scale { dtype, factor })
        } else {
            Err(format!("its parameter factor = {factor} is no value of the type"))
        }
    }

    /// The factor.
    pub(crate) fn factor(&self) -> &f64 {
        &self.factor
    }

    /// What a rank puts in.
    pub(crate) fn prepare(self, input: &[u8], working: &mut [u8]) {
        match self.dtype.part() {
            DType::I8 => self.scaled::<1, i8>(input, working),
            DType::U8 => self.scaled::<1, u8>(input, working),
            DType::I16 => self.scaled::<2, i16>(input, working),
            DType::U16 => self.scaled::<2, u16>(input, working),
            DType::I32 => self.scaled::<4, i32>(input, working),
            DType::U32 => self.scaled::<4, u32>(input, working),
            DType::I64 => self.scaled::<8, i64>(input, working),
            DType::U64 => self.scaled::<8, u64>(input, working),
            DType::F8E4M3 => self.scaled::<1, F8E4M3>(input, working),
            DType::F8E5M2 => {
                // A large factor may leave the range of f32 even: that is too large, and not infinite.
                let factor = self.factor as f32;
                simd::map::<1, 1>(Level::best(), input, working, |x| {
                    let (x, largest) =
                        (F8E5M2::load(x), if F8E5M2::load(x).is_finite() { f32::MAX } else { f32::INFINITY });
                    F8E5M2::store((x * factor).clamp(-largest, largest))
                });
            }
            DType::F64 => self.scaled::<8, f64>(input, working),
            dtype => simd::scale(dtype, Level::best(), input, working, Scaling::Times(self.factor as f32)),
        }
    }

    fn scaled<const N: usize, E: Element<N>>(self, input: &[u8], working: &mut [u8]) {
        let factor = E::Number::from_float(self.factor).expect("invariant: `new` asked the type");
        simd::map::<N, N>(Level::best(), input, working, |x| E::store(E::load(x).mul(factor)));
    }
}
