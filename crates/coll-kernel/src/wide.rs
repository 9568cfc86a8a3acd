//! Narrow floats accumulated in `f32`: what a rank puts in is widened, which loses nothing, reduced by the `f32` form of
//! the operator, and rounded once where a result is made of it.

use crate::Reducer;
use crate::cast::convert;
use coll_base::DType;

/// Elements that are widened at a time where the operator then prepares them: their `f32` stay in the first-level cache.
const BLOCK_ELEMENTS: usize = 1024;
const WIDE_BYTES: usize = 4;

/// An operator on `f32` that serves a narrow type.
#[derive(Clone)]
pub(crate) struct Wide {
    narrow: DType,
    /// The operator on `f32`.
    pub(crate) reducer: Reducer,
}

impl Wide {
    /// `narrow` is a narrow float, and `reducer` works on `f32`.
    pub(crate) fn new(narrow: DType, reducer: Reducer) -> Wide {
        debug_assert!(narrow.is_narrow_float() && reducer.dtype() == DType::F32);
        Wide { narrow, reducer }
    }

    /// What a rank puts in.
    pub(crate) fn prepare(&self, ranks: u64, input: &[u8], working: &mut [u8]) {
        if self.reducer.is_direct() {
            return convert(self.narrow, input, DType::F32, working);
        }
        let narrow_bytes = self.narrow.size_bytes() as usize;
        let mut block = [0u8; BLOCK_ELEMENTS * WIDE_BYTES];
        let inputs = input.chunks(BLOCK_ELEMENTS * narrow_bytes);
        for (input, working) in inputs.zip(working.chunks_mut(BLOCK_ELEMENTS * WIDE_BYTES)) {
            let block = &mut block[..working.len()];
            convert(self.narrow, input, DType::F32, block);
            self.reducer.prepare(ranks, block, working);
        }
    }

    /// What is made of the finished value.
    pub(crate) fn finish(&self, ranks: u64, leaves: u64, working: &[u8], output: &mut [u8]) {
        if self.reducer.is_direct() {
            return convert(DType::F32, working, self.narrow, output);
        }
        let narrow_bytes = self.narrow.size_bytes() as usize;
        let mut block = [0u8; BLOCK_ELEMENTS * WIDE_BYTES];
        let outputs = output.chunks_mut(BLOCK_ELEMENTS * narrow_bytes);
        for (output, working) in outputs.zip(working.chunks(BLOCK_ELEMENTS * WIDE_BYTES)) {
            let block = &mut block[..working.len()];
            self.reducer.finish(ranks, leaves, working, block);
            convert(DType::F32, block, self.narrow, output);
        }
    }
}
