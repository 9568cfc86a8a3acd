//! Element types and the names of the built-in reduction operators. What they compute is `coll-kernel`'s.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum DType {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    /// One byte: zero is false, anything else is true; what is computed is 0 or 1.
    Bool,
    /// OCP's 8-bit float of 4 exponent bits: no infinity, largest 448.
    F8E4M3,
    /// OCP's 8-bit float of 5 exponent bits: largest 57344.
    F8E5M2,
    F16,
    Bf16,
    F32,
    F64,
    /// Real and imaginary part, an `f32` each.
    C64,
    /// Real and imaginary part, an `f64` each.
    C128,
    /// A value and its index, an `i32` each, without padding: MPI's `2INT`.
    I32I32,
    /// A value and its index, an `i64` each, without padding.
    I64I64,
    /// An `f32` value and its index, an `i32`, without padding: MPI's `FLOAT_INT`.
    F32I32,
    /// An `f64` value and its index, an `i64`, without padding.
    F64I64,
}

impl DType {
    /// All of them, in the order of the manual.
    pub const ALL: [DType; 21] = [
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::Bool,
        DType::F8E4M3,
        DType::F8E5M2,
        DType::F16,
        DType::Bf16,
        DType::F32,
        DType::F64,
        DType::C64,
        DType::C128,
        DType::I32I32,
        DType::I64I64,
        DType::F32I32,
        DType::F64I64,
    ];

    /// Types that messages can be of while memory is of a wider one, in the order of the manual.
    pub const WIRE: [DType; 5] = [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::Bf16, DType::F32];

    /// True for those of [`DType::WIRE`].
    pub fn is_wire(self) -> bool {
        DType::WIRE.contains(&self)
    }

    /// Bytes of one element.
    pub fn size_bytes(self) -> u64 {
        match self {
            DType::I8 | DType::U8 | DType::Bool | DType::F8E4M3 | DType::F8E5M2 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::Bf16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 | DType::I32I32 | DType::F32I32 => 8,
            DType::C128 | DType::I64I64 | DType::F64I64 => 16,
        }
    }

    /// The name in options, plans and tables.
    pub fn name(self) -> &'static str {
        match self {
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I16 => "i16",
            DType::U16 => "u16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I64 => "i64",
            DType::U64 => "u64",
            DType::Bool => "bool",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E5M2 => "f8e5m2",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::C64 => "c64",
            DType::C128 => "c128",
            DType::I32I32 => "i32i32",
            DType::I64I64 => "i64i64",
            DType::F32I32 => "f32i32",
            DType::F64I64 => "f64i64",
        }
    }

    /// True for the integers; truth values are none.
    pub fn is_integer(self) -> bool {
        use DType::*;
        matches!(self, I8 | U8 | I16 | U16 | I32 | U32 | I64 | U64)
    }

    /// True for the real floats, the narrow ones included.
    pub fn is_float(self) -> bool {
        use DType::*;
        matches!(self, F8E4M3 | F8E5M2 | F16 | Bf16 | F32 | F64)
    }

    /// True for the real floats of fewer than 32 bits.
    pub fn is_narrow_float(self) -> bool {
        self.is_float() && self.size_bytes() < 4
    }

    /// True for complex numbers.
    pub fn is_complex(self) -> bool {
        matches!(self, DType::C64 | DType::C128)
    }

    /// True for pairs of a value and an index.
    pub fn is_pair(self) -> bool {
        matches!(self, DType::I32I32 | DType::I64I64 | DType::F32I32 | DType::F64I64)
    }

    /// The type of a complex number's parts and of a pair's value; of others the type itself.
    pub fn part(self) -> DType {
        match self {
            DType::C64 | DType::F32I32 => DType::F32,
            DType::C128 | DType::F64I64 => DType::F64,
            DType::I32I32 => DType::I32,
            DType::I64I64 => DType::I64,
            other => other,
        }
    }
}

/// A built-in reduction operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum RedOp {
    Sum,
    Prod,
    Min,
    Max,
    Avg,
    /// A sum of what each rank puts in times a factor, the operator's parameter.
    PremulSum,
    /// Bitwise and.
    Band,
    /// Bitwise or.
    Bor,
    /// Bitwise exclusive or.
    Bxor,
    /// Logical and: zero is false, the result 0 or 1.
    Land,
    /// Logical or.
    Lor,
    /// Logical exclusive or.
    Lxor,
    /// The smallest value and its index; of equals, the lower index.
    Minloc,
    /// The largest value and its index; of equals, the lower index.
    Maxloc,
}

impl RedOp {
    /// All of them, in the order of the manual.
    pub const ALL: [RedOp; 14] = [
        RedOp::Sum,
        RedOp::Prod,
        RedOp::Min,
        RedOp::Max,
        RedOp::Avg,
        RedOp::PremulSum,
        RedOp::Band,
        RedOp::Bor,
        RedOp::Bxor,
        RedOp::Land,
        RedOp::Lor,
        RedOp::Lxor,
        RedOp::Minloc,
        RedOp::Maxloc,
    ];

    /// The name in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            RedOp::Sum => "sum",
            RedOp::Prod => "prod",
            RedOp::Min => "min",
            RedOp::Max => "max",
            RedOp::Avg => "avg",
            RedOp::PremulSum => "premul_sum",
            RedOp::Band => "band",
            RedOp::Bor => "bor",
            RedOp::Bxor => "bxor",
            RedOp::Land => "land",
            RedOp::Lor => "lor",
            RedOp::Lxor => "lxor",
            RedOp::Minloc => "minloc",
            RedOp::Maxloc => "maxloc",
        }
    }

    /// Names of its parameters, each of which needs a value.
    pub fn params(self) -> &'static [&'static str] {
        match self {
            RedOp::PremulSum => &["factor"],
            _ => &[],
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for RedOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = String;

    fn from_str(text: &str) -> Result<DType, String> {
        let known = DType::ALL.into_iter().find(|dtype| dtype.name() == text);
        known.ok_or_else(|| format!("no element type `{text}`; there are {}", names(&DType::ALL)))
    }
}

impl FromStr for RedOp {
    type Err = String;

    fn from_str(text: &str) -> Result<RedOp, String> {
        let known = RedOp::ALL.into_iter().find(|op| op.name() == text);
        known.ok_or_else(|| format!("no operator `{text}`; there are {}", names(&RedOp::ALL)))
    }
}

fn names<T: fmt::Display>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
