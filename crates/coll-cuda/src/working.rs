//! What elements are combined as, and what the text calls each type.

use coll_base::DType;
use std::fmt;

/// The type of working elements: an element type, or what averages of 64-bit integers are summed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Working {
    Type(DType),
    I128,
    U128,
}

impl Working {
    /// What an average of a type is summed in. [`coll_kernel::Reducer::working_size_bytes`] says how wide that is, and a test
    /// that the two agree.
    pub(crate) fn of_average(dtype: DType) -> Working {
        Working::Type(match dtype {
            DType::I8 | DType::I16 => DType::I32,
            DType::U8 | DType::U16 => DType::U32,
            DType::I32 => DType::I64,
            DType::U32 => DType::U64,
            DType::I64 => return Working::I128,
            DType::U64 => return Working::U128,
            DType::F8E4M3 | DType::F8E5M2 => DType::F32,
            other => other,
        })
    }
}

impl fmt::Display for Working {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Working::Type(dtype) => dtype.fmt(f),
            Working::I128 => f.write_str("i128"),
            Working::U128 => f.write_str("u128"),
        }
    }
}

/// The text's name of an element: of complex numbers and pairs that of their part.
pub(crate) fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::I8 => "I8",
        DType::U8 | DType::Bool => "U8",
        DType::I16 => "I16",
        DType::U16 => "U16",
        DType::I32 | DType::I32I32 => "I32",
        DType::U32 => "U32",
        DType::I64 | DType::I64I64 => "I64",
        DType::U64 => "U64",
        DType::F8E4M3 => "E4M3",
        DType::F8E5M2 => "E5M2",
        DType::F16 => "F16",
        DType::Bf16 => "Bf16",
        DType::F32 | DType::C64 | DType::F32I32 => "F32",
        DType::F64 | DType::C128 | DType::F64I64 => "F64",
    }
}

/// The text's name of a float whose NaN keep their bits, by way of `f32`.
pub(crate) fn exact(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "F16Exact",
        DType::F64 => "F64ByF32",
        other => element(other),
    }
}

/// The text's name of an unsigned integer of so many bytes.
pub(crate) fn unsigned(size_bytes: u64) -> &'static str {
    match size_bytes {
        1 => "u8",
        2 => "u16",
        4 => "u32",
        _ => "u64",
    }
}

/// How many parts an element has that are combined by themselves.
pub(crate) fn parts(dtype: DType) -> u64 {
    if dtype.is_complex() { 2 } else { 1 }
}

/// A count of parts.
pub(crate) fn counted(parts: u64) -> String {
    if parts == 1 { "count".into() } else { format!("{parts} * count") }
}
