//! Floats of one width made floats of another: what travels narrower than it lies in memory, and what is reduced wider.

use crate::element::{Bf16, Element, F8E4M3, F8E5M2, F16};
use crate::simd::{self, Level};
use coll_base::DType;

/// Elements in memory, and the same elements in messages, of narrower floats: real ones, or complex numbers part by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// The type of a part in memory.
    memory: DType,
    /// The type of a part in a message.
    wire: DType,
    parts: usize,
}

impl Cast {
    /// None where elements travel as they are: they are no floats, or `wire` is not narrower than their parts.
    pub fn narrowing(memory: DType, wire: DType) -> Option<Cast> {
        let part = memory.part();
        let casts = (memory.is_float() || memory.is_complex()) && wire.is_float();
        let parts = if memory.is_complex() { 2 } else { 1 };
        (casts && wire.size_bytes() < part.size_bytes()).then_some(Cast { memory: part, wire, parts })
    }

    /// The type of a part of an element in memory, and that of the part in a message.
    pub fn parts(&self) -> (DType, DType) {
        (self.memory, self.wire)
    }

    /// Bytes of an element in memory.
    pub fn memory_size_bytes(&self) -> usize {
        self.memory.size_bytes() as usize * self.parts
    }

    /// Bytes of an element in a message.
    pub fn wire_size_bytes(&self) -> usize {
        self.wire.size_bytes() as usize * self.parts
    }

    /// Whole elements of memory as those of a message: the nearest, ties to even, by way of `f32`.
    pub fn narrow(&self, memory: &[u8], wire: &mut [u8]) {
        convert(self.memory, memory, self.wire, wire);
    }

    /// Whole elements of a message as those of memory, exactly.
    pub fn widen(&self, wire: &[u8], memory: &mut [u8]) {
        convert(self.wire, wire, self.memory, memory);
    }
}

/// Every float of a type as the nearest of another, ties to even, by way of `f32`. At least one of the two is no `f64`.
pub(crate) fn convert(from: DType, input: &[u8], to: DType, output: &mut [u8]) {
    match from {
        DType::F8E4M3 => store(input, to, output, F8E4M3::load),
        DType::F8E5M2 => store(input, to, output, F8E5M2::load),
        DType::F16 => store(input, to, output, F16::load),
        DType::Bf16 => store(input, to, output, Bf16::load),
        DType::F32 => store(input, to, output, f32::load),
        DType::F64 => store(input, to, output, |x| f64::load(x) as f32),
        other => unreachable!("invariant: floats are converted, and {other} is none"),
    }
}

#[inline(always)]
fn store<const FROM: usize>(
    input: &[u8],
    to: DType,
    output: &mut [u8],
    load: impl Fn([u8; FROM]) -> f32 + Copy,
) {
    let level = Level::best();
    match to {
        DType::F8E4M3 => simd::map::<FROM, 1>(level, input, output, |x| F8E4M3::store(load(x))),
        DType::F8E5M2 => simd::map::<FROM, 1>(level, input, output, |x| F8E5M2::store(load(x))),
        DType::F16 => simd::map::<FROM, 2>(level, input, output, |x| F16::store(load(x))),
        DType::Bf16 => simd::map::<FROM, 2>(level, input, output, |x| Bf16::store(load(x))),
        DType::F32 => simd::map::<FROM, 4>(level, input, output, |x| f32::store(load(x))),
        DType::F64 => simd::map::<FROM, 8>(level, input, output, |x| f64::store(load(x).into())),
        other => unreachable!("invariant: floats are converted, and {other} is none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{self, Scalar};

    const FLOATS: [DType; 6] =
        [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::Bf16, DType::F32, DType::F64];

    #[test]
    fn what_is_narrower_is_cast_and_nothing_else() {
        for memory in DType::ALL {
            for wire in DType::ALL {
                let casts = wire.is_float()
                    && (memory.is_float() || memory.is_complex())
                    && wire.size_bytes() < memory.part().size_bytes();
                let cast = Cast::narrowing(memory, wire);
                assert_eq!(cast.is_some(), casts, "{memory} as {wire}");
                let Some(cast) = cast else { continue };
                assert_eq!(cast.memory_size_bytes() as u64, memory.size_bytes());
                let ratio = memory.part().size_bytes() / wire.size_bytes();
                assert_eq!(cast.wire_size_bytes() as u64 * ratio, memory.size_bytes());
            }
        }
    }

    /// Values that a narrow type holds come back; others are the nearest, as the oracle writes them.
    #[test]
    fn narrowing_rounds_as_the_oracle_writes_and_widening_loses_nothing() {
        for (memory, wire) in FLOATS.into_iter().flat_map(|memory| FLOATS.map(|wire| (memory, wire))) {
            let Some(cast) = Cast::narrowing(memory, wire) else { continue };
            let (mut input, mut due) = (Vec::new(), Vec::new());
            for step in -3000i32..3000 {
                oracle::write(memory, Scalar::Float(f64::from(step) * 0.013), &mut input);
            }
            for element in input.chunks(memory.size_bytes() as usize) {
                oracle::write(wire, oracle::read(memory, element).unwrap(), &mut due);
            }
            let mut narrow = vec![0; due.len()];
            cast.narrow(&input, &mut narrow);
            assert_eq!(narrow, due, "{memory} as {wire}");
            let (mut wide, mut again) = (vec![0; input.len()], vec![0; due.len()]);
            cast.widen(&narrow, &mut wide);
            cast.narrow(&wide, &mut again);
            assert_eq!(again, narrow, "{wire} as {memory} and back");
        }
    }
}
