//! A trap of the compiler: a minimum or maximum that is chosen onto its own place becomes masked stores, six times slower
//! than a sum and more. Only optimised code can fall into it.

use coll_base::{DType, RedOp};
use coll_kernel::Reducer;
use std::hint::black_box;
use std::time::{Duration, Instant};

const SIZE_BYTES: usize = 256 << 10;

/// The best of many: what else the machine does can only make a run slower.
fn best(op: RedOp, dtype: DType) -> Duration {
    let reducer = Reducer::builtin(op, dtype).unwrap();
    let (mut target, source) = (vec![0x3f; SIZE_BYTES], vec![0x3f; SIZE_BYTES]);
    let runs = (0..300).map(|_| {
        let start = Instant::now();
        reducer.combine_into(black_box(&mut target), None, black_box(&source), false);
        start.elapsed()
    });
    runs.min().unwrap()
}

#[test]
#[cfg_attr(debug_assertions, ignore = "a matter of optimised code")]
fn min_and_max_are_about_as_fast_as_a_sum() {
    let types = DType::ALL.into_iter().filter(|dtype| dtype.is_integer() || dtype.is_float());
    for dtype in types {
        let sum = best(RedOp::Sum, dtype);
        for op in [RedOp::Min, RedOp::Max] {
            let ratio = best(op, dtype).as_secs_f64() / sum.as_secs_f64();
            assert!(ratio < 2.0, "{op} of {dtype} takes {ratio:.1} times as long as a sum");
        }
    }
}
