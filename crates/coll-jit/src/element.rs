//! Element types as this crate sees them: what a number is computed in, and how it lies in memory.

use coll_base::DType;
use cranelift_codegen::ir::{Type, types};

/// What numbers are computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Int { bits: u32, signed: bool },
    F32,
    F64,
}

/// How a number lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// As it is computed.
    Own,
    /// As an IEEE half of 2 bytes.
    Half,
    /// As the upper 2 bytes of an `f32`.
    Brain,
}

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Element {
    pub(crate) number: Number,
    pub(crate) storage: Storage,
}

/// The one list of element types there is code for. By name, so that a type which others know and this list does not is
/// refused instead of misread.
pub(crate) fn of(dtype: DType) -> Option<Element> {
    let int = |bits, signed| (Number::Int { bits, signed }, Storage::Own);
    let (number, storage) = match dtype.name() {
        "i8" => int(8, true),
        "u8" => int(8, false),
        "i16" => int(16, true),
        "u16" => int(16, false),
        "i32" => int(32, true),
        "u32" => int(32, false),
        "i64" => int(64, true),
        "u64" => int(64, false),
        "f16" => (Number::F32, Storage::Half),
        "bf16" => (Number::F32, Storage::Brain),
        "f32" => (Number::F32, Storage::Own),
        "f64" => (Number::F64, Storage::Own),
        _ => return None,
    };
    let element = Element { number, storage };
    (dtype.size_bytes() == u64::from(element.size_bytes())).then_some(element)
}

impl Number {
    pub(crate) fn is_float(self) -> bool {
        matches!(self, Number::F32 | Number::F64)
    }

    /// The type of one number.
    pub(crate) fn scalar(self) -> Type {
        match self {
            Number::F32 => types::F32,
            Number::F64 => types::F64,
            Number::Int { bits, .. } => Type::int(bits as u16).expect("invariant: 8, 16, 32 or 64 bits"),
        }
    }
}

impl Element {
    /// Bytes in memory.
    pub(crate) fn size_bytes(self) -> u32 {
        match self.storage {
            Storage::Own => self.number.scalar().bytes(),
            Storage::Half | Storage::Brain => 2,
        }
    }
}
