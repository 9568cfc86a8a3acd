//! Gigabytes of target per second: sums and extremes of the common types, in place, out of place and of many operands,
//! and what averages put in and take out, each beside a copy of the same size.
//! `cargo bench -p coll-kernel` runs all; a word after `--` picks benchmarks by name, as in `-- 'f32|copy'`.

use coll_base::{DType, RedOp};
use coll_kernel::{Binary, Expr, Reducer, Unary, UserOperator};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

/// In the second-level cache, in the last one, and in neither.
const SIZES_BYTES: [usize; 3] = [256 << 10, 8 << 20, 128 << 20];

fn reductions(criterion: &mut Criterion) {
    for size_bytes in SIZES_BYTES {
        let mut group = criterion.benchmark_group(format!("{} KiB", size_bytes >> 10));
        group.throughput(Throughput::BytesDecimal(size_bytes as u64));
        group
            .sample_size(20)
            .warm_up_time(Duration::from_millis(200))
            .measurement_time(Duration::from_secs(1));
        // Values around one, so that nothing becomes subnormal.
        let (mut target, a, b) =
            (vec![0x3cu8; size_bytes], vec![0x3cu8; size_bytes], vec![0x38u8; size_bytes]);
        let mut bench = |name: &str, work: &dyn Fn(&mut [u8])| {
            target.fill(0x3c);
            group.bench_function(name, |bencher| bencher.iter(|| work(black_box(&mut target))));
        };
        bench("copy", &|target| target.copy_from_slice(black_box(&a)));
        for (dtype, op) in pairs() {
            let reducer = Reducer::builtin(op, dtype).expect("the pair exists");
            bench(&format!("{dtype} {op}"), &|target| {
                reducer.combine_into(target, None, black_box(&b), false)
            });
        }
        for dtype in [DType::F32, DType::F64, DType::Bf16, DType::F16] {
            let sum = Reducer::builtin(RedOp::Sum, dtype).expect("every float has a sum");
            bench(&format!("{dtype} sum apart"), &|target| {
                sum.combine_into(target, Some(black_box(&a)), black_box(&b), false);
            });
            bench(&format!("{dtype} sum of four"), &|target| {
                sum.combine_many(target, black_box(&[&a[..], &b, &a, &b]));
            });
            let average = Reducer::builtin(RedOp::Avg, dtype).expect("every float has a mean");
            bench(&format!("{dtype} avg prepare"), &|target| average.prepare(4, black_box(&a), target));
        }
        let user = Reducer::user(&absmax(), DType::F32, &[]).expect("it works on floats");
        bench("f32 user's absmax", &|target| user.combine_into(target, None, black_box(&b), false));
        group.finish();
    }
}

fn pairs() -> impl Iterator<Item = (DType, RedOp)> {
    use DType::*;
    let types = [U8, I32, I64, F8E4M3, F16, Bf16, F32, F64];
    let numeric = types.into_iter().flat_map(|dtype| [RedOp::Sum, RedOp::Max].map(|op| (dtype, op)));
    numeric.chain([(Bool, RedOp::Lor), (C64, RedOp::Prod), (F32I32, RedOp::Minloc)])
}

/// `if abs(a) > abs(b) { a } else { b }`
fn absmax() -> UserOperator {
    let abs = |x| Expr::Unary(Unary::Abs, Box::new(x));
    let larger = Expr::Binary(Binary::Gt, Box::new(abs(Expr::Left)), Box::new(abs(Expr::Right)));
    UserOperator {
        name: "absmax".into(),
        commutative: true,
        params: vec![],
        combine: Expr::If(Box::new(larger), Box::new(Expr::Left), Box::new(Expr::Right)),
        given: None,
        ensure: None,
    }
}

criterion_group!(benches, reductions);
criterion_main!(benches);
