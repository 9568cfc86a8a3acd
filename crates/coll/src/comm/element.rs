//! Rust types that are element types.

use bytemuck::Pod;
use coll_base::DType;

/// A type whose values can be moved and reduced: slices of it are the buffers of a [`Communicator`](crate::Communicator).
///
/// There is one implementation for each [`DType`] that Rust has a type for; half-width floats are those of the crate `half`,
/// complex numbers those of `num-complex`. Other element types, such as truth values and 8-bit floats, are bytes in a
/// [`View`](crate::View). Nobody else can implement it.
pub trait Element: Pod + Send + Sync + sealed::Sealed {
    /// The element type.
    const DTYPE: DType;
}

mod sealed {
    /// Keeps [`super::Element`] to the types that the kernels know.
    pub trait Sealed {}
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),* $(,)?) => {
        $(
            impl sealed::Sealed for $type {}
            impl Element for $type {
                const DTYPE: DType = DType::$dtype;
            }
        )*

        #[cfg(test)]
        const SIZES: &[(DType, usize)] = &[$((DType::$dtype, size_of::<$type>())),*];
    };
}

elements! {
    i8 => I8,
    u8 => U8,
    i16 => I16,
    u16 => U16,
    i32 => I32,
    u32 => U32,
    i64 => I64,
    u64 => U64,
    half::f16 => F16,
    half::bf16 => Bf16,
    f32 => F32,
    f64 => F64,
    num_complex::Complex<f32> => C64,
    num_complex::Complex<f64> => C128,
}

#[cfg(test)]
mod tests {
    use super::SIZES;

    #[test]
    fn a_type_is_as_wide_as_its_element_type() {
        for &(dtype, size_bytes) in SIZES {
            assert_eq!(dtype.size_bytes(), size_bytes as u64, "{dtype}");
        }
    }
}
