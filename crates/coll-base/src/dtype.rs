//! Element types and the names of the built-in reduction operators. What they compute is `coll-kernel`'s.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum DType {
    U8,
    I32,
    I64,
    F16,
    Bf16,
    F32,
    F64,
}

impl DType {
    /// All of them, in the order of the manual.
    pub const ALL: [DType; 7] =
        [DType::U8, DType::I32, DType::I64, DType::F16, DType::Bf16, DType::F32, DType::F64];

    /// Bytes of one element.
    pub fn size_bytes(self) -> u64 {
        match self {
            DType::U8 => 1,
            DType::F16 | DType::Bf16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
        }
    }

    /// The name in options, plans and tables.
    pub fn name(self) -> &'static str {
        match self {
            DType::U8 => "u8",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// True for `f16`, `bf16`, `f32` and `f64`.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
    }
}

/// A built-in reduction operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum RedOp {
    Sum,
    Prod,
    Min,
    Max,
    Avg,
}

impl RedOp {
    /// All of them, in the order of the manual.
    pub const ALL: [RedOp; 5] = [RedOp::Sum, RedOp::Prod, RedOp::Min, RedOp::Max, RedOp::Avg];

    /// The name in options and tables.
    pub fn name(self) -> &'static str {
        match self {
            RedOp::Sum => "sum",
            RedOp::Prod => "prod",
            RedOp::Min => "min",
            RedOp::Max => "max",
            RedOp::Avg => "avg",
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
