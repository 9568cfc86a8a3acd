//! Elements for kernels: those that are hard, where they lie, and how results are compared.
#![allow(dead_code)]

use crate::random::Random;
use coll_base::DType;
use coll_kernel::oracle::{self, Scalar};

/// How a result's NaN are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nan {
    /// Which of them it is is said.
    Bits,
    /// That it is one is said: it comes of arithmetic.
    Any,
}

/// The types of an element's parts, as they lie in memory. A 128-bit integer is two of 64 bits.
pub(crate) fn parts(dtype: DType) -> Vec<DType> {
    match dtype {
        DType::C64 => vec![DType::F32; 2],
        DType::C128 => vec![DType::F64; 2],
        DType::I32I32 => vec![DType::I32; 2],
        DType::I64I64 => vec![DType::I64; 2],
        DType::F32I32 => vec![DType::F32, DType::I32],
        DType::F64I64 => vec![DType::F64, DType::I64],
        other => vec![other],
    }
}

/// Random elements of such parts: bit patterns, special values, small numbers.
pub(crate) fn elements(random: &mut Random, parts: &[DType], count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..count {
        for &part in parts {
            // Truth values are bytes like others.
            let part = if part == DType::Bool { DType::U8 } else { part };
            bytes.extend(random.elements(part, 1).bytes());
        }
    }
    bytes
}

/// Bit patterns about every power of two, and about every run of set bits below the sign, each with the sign and without:
/// among them are the zeros, the least and largest subnormals and normals, infinities and every kind of NaN of each format.
pub(crate) fn special_bits(width: u32) -> Vec<u64> {
    let all = u64::MAX >> (64 - width);
    let sign = 1u64 << (width - 1);
    let mut found = Vec::new();
    for shift in 0..width {
        let (power, run) = (1u64 << shift, sign.wrapping_sub(1 << shift));
        for bits in [power, power - 1, power + 1, run, run.wrapping_sub(1), run.wrapping_add(1)] {
            found.extend([bits & all, (bits | sign) & all]);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Every special value beside every one.
pub(crate) fn special_pairs(dtype: DType) -> [Vec<u8>; 2] {
    let size = dtype.size_bytes() as usize;
    let specials = special_bits(8 * size as u32);
    let mut sides = [Vec::new(), Vec::new()];
    for a in &specials {
        for b in &specials {
            sides[0].extend(&a.to_le_bytes()[..size]);
            sides[1].extend(&b.to_le_bytes()[..size]);
        }
    }
    sides
}

/// The first element that is another one than it should be.
pub(crate) fn difference(parts: &[DType], nan: Nan, due: &[u8], found: &[u8]) -> Option<String> {
    assert_eq!(due.len(), found.len());
    let size: usize = parts.iter().map(|part| part.size_bytes() as usize).sum();
    if due == found {
        return None;
    }
    for (at, (due, found)) in due.chunks(size).zip(found.chunks(size)).enumerate() {
        let mut from = 0;
        for &part in parts {
            let range = from..from + part.size_bytes() as usize;
            from = range.end;
            let (due, found) = (&due[range.clone()], &found[range]);
            let both_nan = nan == Nan::Any && is_nan(part, due) && is_nan(part, found);
            if due != found && !both_nan {
                let value = |bytes| oracle::read(part, bytes);
                let values = format!("{:?}, and should be {:?}", value(found), value(due));
                return Some(format!("element {at}: {found:02x?}, due {due:02x?}; {values}"));
            }
        }
    }
    None
}

fn is_nan(dtype: DType, bytes: &[u8]) -> bool {
    matches!(oracle::read(dtype, bytes), Some(Scalar::Float(x)) if x.is_nan())
}
