//! Every level against the portable loops: all operators, types, lengths up to two vectors and more, and alignments.

use super::Level;
use crate::table;
use coll_base::{DType, RedOp};
use proptest::prelude::*;

/// Bytes in which values at the edges of every type are frequent: zeros, ones, NaN, infinities, subnormals, extremes.
fn bytes(seed: u64, length: usize) -> Vec<u8> {
    const EDGES: [u64; 16] = [
        0,
        1,
        u64::MAX,
        1 << 63,
        0x8000_8000_8000_8000,
        0x8080_8080_8080_8080,
        0x7f80_0000_7f80_0000,
        0xff80_0001_7f80_0001,
        0x7fff_ffff_7fff_ffff,
        0x7c00_7c01_fc00_fe00,
        0x7f80_7f81_ff80_ffc0,
        0x0001_0001_8001_0000,
        0x7ff0_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0x7b7f_7e7d_7c78_fefb,
        0x3f80_3f80_3c00_3c00,
    ];
    let mut state = seed;
    let mut all = Vec::with_capacity(length + 8);
    while all.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = if state >> 61 == 0 { EDGES[(state >> 40) as usize % 16] } else { state ^ (state >> 29) };
        all.extend(word.to_ne_bytes());
    }
    all.truncate(length);
    all
}

fn pairs() -> impl Iterator<Item = (RedOp, DType)> {
    let all = RedOp::ALL.into_iter().flat_map(|op| DType::ALL.map(|dtype| (op, dtype)));
    all.filter(|&(op, dtype)| table::how(op, dtype).is_ok())
}

/// Elements are equal in bits, or are both NaN: which NaN comes of two is the compiler's choice.
fn same(dtype: DType, one: &[u8], other: &[u8]) -> bool {
    let part = dtype.part();
    let size = part.size_bytes() as usize;
    let is_nan = |x: &[u8]| match crate::oracle::read(part, x) {
        Some(crate::oracle::Scalar::Float(x)) => x.is_nan(),
        _ => false,
    };
    one.len() == other.len()
        && one
            .chunks(size)
            .zip(other.chunks(size))
            .all(|(x, y)| x == y || (part.is_float() && is_nan(x) && is_nan(y)))
}

/// Averages work on another type than their elements.
fn working(op: RedOp, dtype: DType) -> DType {
    match (op, dtype) {
        (RedOp::Avg, DType::F8E4M3 | DType::F8E5M2) => DType::F32,
        (RedOp::Avg, dtype) if dtype.is_integer() => DType::U8,
        (_, dtype) => dtype,
    }
}

fn check(op: RedOp, dtype: DType, elements: usize, offsets: [usize; 3], seed: u64) {
    let size = if op == RedOp::Avg { crate::average::working_size_bytes(dtype) } else { dtype.size_bytes() };
    let length = elements * size as usize;
    let at = |index: usize| offsets[index]..offsets[index] + length;
    let (a, b) = (bytes(seed, length + 64), bytes(seed.wrapping_mul(31) + 7, length + 64));
    let mut due = vec![0; length];
    table::combine(op, dtype, Level::PORTABLE)(&mut due, Some(&a[at(0)]), &b[at(1)]);
    for level in Level::all() {
        let combine = table::combine(op, dtype, level);
        let mut apart = vec![0xaa; length + 64];
        combine(&mut apart[at(2)], Some(&a[at(0)]), &b[at(1)]);
        let mut in_place = vec![0x55; length + 64];
        in_place[at(2)].copy_from_slice(&a[at(0)]);
        combine(&mut in_place[at(2)], None, &b[at(1)]);
        let working = working(op, dtype);
        for (found, way) in [(&apart, "apart"), (&in_place, "in place")] {
            assert!(
                same(working, &found[at(2)], &due),
                "{op} of {dtype}, {elements} elements at {offsets:?}, {level:?}, {way}, seed {seed}: {:x?}, due {due:x?}",
                &found[at(2)]
            );
        }
        let guard = if offsets[2] == 0 { 0xaa } else { apart[offsets[2] - 1] };
        assert!(guard == 0xaa && apart[offsets[2] + length..].iter().all(|byte| *byte == 0xaa));
    }
}

#[test]
fn every_level_gives_the_portable_bits_at_every_length() {
    for (op, dtype) in pairs() {
        for elements in 0..=130 {
            check(op, dtype, elements, [1, 2, 3], elements as u64);
        }
    }
}

#[test]
fn every_pair_of_narrow_floats_at_every_level() {
    // All pairs of bytes for the 8-bit types; for the others all values against a sample.
    for (op, dtype) in pairs().filter(|(_, dtype)| dtype.is_float() && dtype.size_bytes() <= 2) {
        if op == RedOp::Avg {
            continue;
        }
        let (a, b): (Vec<u8>, Vec<u8>) = match dtype.size_bytes() {
            1 => (0..=u16::MAX).map(|x| (x as u8, (x >> 8) as u8)).unzip(),
            _ => {
                let a: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_ne_bytes).collect();
                let b = (0..=u16::MAX).flat_map(|x| x.wrapping_mul(40503).to_ne_bytes()).collect();
                (a, b)
            }
        };
        let mut due = vec![0; a.len()];
        table::combine(op, dtype, Level::PORTABLE)(&mut due, Some(&a), &b);
        for level in Level::all() {
            let mut found = vec![0; a.len()];
            table::combine(op, dtype, level)(&mut found, Some(&a), &b);
            assert!(same(dtype, &found, &due), "{op} of {dtype}, {level:?}");
        }
    }
}

#[test]
fn what_is_written_past_the_caches_is_the_same() {
    for (size, dtype) in [(4, DType::F32), (16, DType::C128), (1, DType::U8), (16, DType::I64)] {
        let op = if dtype == DType::I64 { RedOp::Avg } else { RedOp::Sum };
        let combine = table::combine(op, dtype, Level::best());
        for (length, offset) in
            [(0, 0), (48, 1), (4096, 0), (4096, 16), (40_000, 16), (40_000, 3), (70_000, 48)]
        {
            let length = length / size * size;
            let (a, b) = (bytes(1, length + 64), bytes(2, length + 64));
            let (mut due, mut found) = (vec![0; length + 64], vec![0; length + 64]);
            let at = offset..offset + length;
            combine(&mut due[at.clone()], Some(&a[1..1 + length]), &b[2..2 + length]);
            super::streamed(combine, size, &mut found[at], &a[1..1 + length], &b[2..2 + length]);
            assert!(found == due, "{length} bytes at {offset}");
        }
    }
}

#[test]
fn fractions_and_multiples_are_the_same_at_every_level() {
    use super::Scaling;
    for dtype in [DType::F16, DType::Bf16, DType::F32] {
        for scaling in [Scaling::Times(0.25), Scaling::Times(-3.7e5), Scaling::Over(3.0), Scaling::Over(8.0)]
        {
            for elements in (0..70).chain([1 << 12]) {
                let size = dtype.size_bytes() as usize;
                let from = bytes(elements as u64, elements * size);
                let mut due = vec![0; from.len()];
                super::scale(dtype, Level::PORTABLE, &from, &mut due, scaling);
                for level in Level::all() {
                    let mut found = vec![0; from.len() + 1];
                    super::scale(dtype, level, &from, &mut found[1..], scaling);
                    assert!(same(dtype, &found[1..], &due), "{dtype}, {level:?}, {scaling:?}, {elements}");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn every_level_gives_the_portable_bits(
        elements in 0..700usize, offsets in [0..64usize, 0..64, 0..64], seed in any::<u64>(), pick in any::<prop::sample::Index>()
    ) {
        let all: Vec<_> = pairs().collect();
        let (op, dtype) = all[pick.index(all.len())];
        check(op, dtype, elements, offsets, seed);
    }
}
