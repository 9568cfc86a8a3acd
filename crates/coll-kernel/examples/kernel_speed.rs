//! Measures the built-in kernels in place: gigabytes of target per second, by operator, element type and size.
//! `cargo run --release -p coll-kernel --example kernel_speed`

#![allow(clippy::print_stdout)]

use coll_base::{DType, RedOp};
use coll_kernel::{Binary, Expr, Reducer, Unary, UserOperator};
use std::hint::black_box;
use std::time::Instant;

const SIZES_BYTES: [usize; 3] = [8 << 10, 256 << 10, 64 << 20];

fn main() {
    println!(
        "{:<44} {:>8} {:>8} {:>8}",
        "GB/s of target (three passes over memory)", "8 KiB", "256 KiB", "64 MiB"
    );
    row("copy (memcpy, two passes)", |target, source| target.copy_from_slice(source));
    for dtype in DType::ALL {
        for op in [RedOp::Sum, RedOp::Prod, RedOp::Min, RedOp::Max] {
            let reducer = Reducer::builtin(op, dtype).expect("every pair exists");
            row(&format!("{dtype} {op}"), |target, source| reducer.combine_into(target, None, source, false));
        }
    }
    for dtype in [DType::F32, DType::Bf16] {
        let reducer = Reducer::user(&absmax(), dtype, &[]).expect("it works on floats");
        let name = format!("{dtype} absmax, interpreted");
        row(&name, |target, source| reducer.combine_into(target, None, source, false));
    }
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

fn row(name: &str, mut work: impl FnMut(&mut [u8], &[u8])) {
    print!("{name:<44}");
    for size_bytes in SIZES_BYTES {
        // Small values, so that sums and products stay away from slow subnormals.
        let (mut target, source) = (vec![0x3fu8; size_bytes], vec![0x3fu8; size_bytes]);
        let repeats = (256 << 20) / size_bytes / 4 + 1;
        let best = (0..5).map(|_| {
            let start = Instant::now();
            (0..repeats).for_each(|_| work(black_box(&mut target), black_box(&source)));
            start.elapsed().as_secs_f64()
        });
        let best = best.fold(f64::INFINITY, f64::min);
        print!(" {:>8.1}", (size_bytes * repeats) as f64 / best / 1e9);
    }
    println!();
}
