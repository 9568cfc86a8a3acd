//! Machine code for operators against the interpreter and a loop written by hand, in place; and how long it takes to make.
//! `cargo bench -p coll-jit`

#![allow(clippy::print_stdout)]

use coll_base::DType;
use coll_kernel::{Binary, Expr, Reducer, Unary, UserOperator};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const SIZES_BYTES: [usize; 2] = [256 << 10, 16 << 20];

/// An operator, and the same as a loop in Rust.
struct Subject {
    name: &'static str,
    dtype: DType,
    combine: Expr,
    by_hand: fn(&mut [u8], &[u8]),
}

fn main() {
    let heading = ["interpreted", "machine code", "by hand"];
    println!("GB/s of target, best of many (three passes over memory); 256 KiB, then 16 MiB");
    print!("{:<24}", "operator");
    heading.iter().for_each(|name| print!(" {name:>12} {:>7}", ""));
    println!(" {:>12}", "to compile");
    for subject in subjects() {
        row(&subject);
    }
}

fn subjects() -> [Subject; 5] {
    [
        Subject { name: "f32 a + b", dtype: DType::F32, combine: sum(), by_hand: sum_f32 },
        Subject { name: "f32 absmax", dtype: DType::F32, combine: absmax(), by_hand: absmax_f32 },
        Subject { name: "f32 hypot", dtype: DType::F32, combine: hypot(), by_hand: hypot_f32 },
        Subject { name: "bf16 absmax", dtype: DType::Bf16, combine: absmax(), by_hand: absmax_bf16 },
        Subject { name: "i32 (a * b) % 65537", dtype: DType::I32, combine: modular(), by_hand: modular_i32 },
    ]
}

fn row(subject: &Subject) {
    let (combine, params, given, ensure) = (subject.combine.clone(), vec![], None, None);
    let operator = UserOperator { name: "f".into(), commutative: true, params, combine, given, ensure };
    let interpreted = Reducer::user(&operator, subject.dtype, &[]).expect("it is well formed");
    let compile = || coll_jit::compile(&operator, subject.dtype, &[]).expect("it compiles");
    let native = Reducer::user_native(&operator, subject.dtype, &[], Arc::new(compile()));
    let native = native.expect("it is well formed");
    let compile_ms = best_s(1, || drop(black_box(compile()))) * 1e3;
    print!("{:<24}", subject.name);
    speed(|target, source| interpreted.combine_into(target, None, source, false));
    speed(|target, source| native.combine_into(target, None, source, false));
    speed(subject.by_hand);
    println!(" {compile_ms:>9.2} ms");
}

fn speed(work: impl Fn(&mut [u8], &[u8])) {
    for (column, size_bytes) in SIZES_BYTES.into_iter().enumerate() {
        // Small values, so that results stay away from slow subnormals.
        let (mut target, source) = (vec![0x3fu8; size_bytes], vec![0x3fu8; size_bytes]);
        // Short tries, so that on a busy machine one falls between two interruptions.
        let repeats = ((1 << 20) / size_bytes).max(1);
        let best = best_s(repeats, || work(black_box(&mut target), black_box(&source)));
        print!(" {:>w$.2}", size_bytes as f64 / best / 1e9, w = [12, 7][column]);
    }
}

/// Seconds of one call, the best of 60 tries.
fn best_s(repeats: usize, mut work: impl FnMut()) -> f64 {
    let tries = (0..60).map(|_| {
        let start = Instant::now();
        (0..repeats).for_each(|_| work());
        start.elapsed().as_secs_f64() / repeats as f64
    });
    tries.fold(f64::INFINITY, f64::min)
}

fn binary(op: Binary, x: Expr, y: Expr) -> Expr {
    Expr::Binary(op, x.into(), y.into())
}

fn sum() -> Expr {
    binary(Binary::Add, Expr::Left, Expr::Right)
}

/// `if abs(a) == abs(b) { max(a, b) } else if abs(a) > abs(b) { a } else { b }`
fn absmax() -> Expr {
    let abs = |x| Expr::Unary(Unary::Abs, Box::new(x));
    let test = |op| Box::new(binary(op, abs(Expr::Left), abs(Expr::Right)));
    let larger = Expr::If(test(Binary::Gt), Expr::Left.into(), Expr::Right.into());
    Expr::If(test(Binary::Eq), binary(Binary::Max, Expr::Left, Expr::Right).into(), larger.into())
}

/// `sqrt(a * a + b * b)`
fn hypot() -> Expr {
    let square = |x: Expr| binary(Binary::Mul, x.clone(), x);
    Expr::Unary(Unary::Sqrt, binary(Binary::Add, square(Expr::Left), square(Expr::Right)).into())
}

/// `(a * b) % 65537`
fn modular() -> Expr {
    binary(Binary::Mod, binary(Binary::Mul, Expr::Left, Expr::Right), Expr::Int(65537))
}

/// A loop as one writes it, left to the compiler's vectoriser.
fn each<const N: usize>(target: &mut [u8], source: &[u8], combine: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    for (target, source) in target.as_chunks_mut::<N>().0.iter_mut().zip(source.as_chunks::<N>().0) {
        *target = combine(*target, *source);
    }
}

fn each_f32(target: &mut [u8], source: &[u8], combine: impl Fn(f32, f32) -> f32) {
    each(target, source, |x, y| combine(f32::from_ne_bytes(x), f32::from_ne_bytes(y)).to_ne_bytes());
}

fn sum_f32(target: &mut [u8], source: &[u8]) {
    each_f32(target, source, |x, y| x + y);
}

fn farther(x: f32, y: f32) -> f32 {
    if x.abs() == y.abs() {
        if x > y || x.is_nan() { x } else { y }
    } else if x.abs() > y.abs() {
        x
    } else {
        y
    }
}

fn absmax_f32(target: &mut [u8], source: &[u8]) {
    each_f32(target, source, farther);
}

fn hypot_f32(target: &mut [u8], source: &[u8]) {
    each_f32(target, source, |x, y| (x * x + y * y).sqrt());
}

fn absmax_bf16(target: &mut [u8], source: &[u8]) {
    let wide = |bytes| f32::from_bits(u32::from(u16::from_ne_bytes(bytes)) << 16);
    // One of two bf16 is a bf16: nothing need be rounded.
    each(target, source, |x, y| ((farther(wide(x), wide(y)).to_bits() >> 16) as u16).to_ne_bytes());
}

fn modular_i32(target: &mut [u8], source: &[u8]) {
    each(target, source, |x, y| {
        i32::from_ne_bytes(x).wrapping_mul(i32::from_ne_bytes(y)).rem_euclid(65537).to_ne_bytes()
    });
}
