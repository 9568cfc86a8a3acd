//! Buffers whose element type is known at run time only: bytes and a [`DType`]. Slices of an [`Element`] turn into them.

use crate::comm::Element;
use coll_base::DType;

/// A buffer to read.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub(crate) dtype: DType,
    pub(crate) bytes: &'a [u8],
}

/// A buffer to write, or to read and write.
#[derive(Debug)]
pub struct ViewMut<'a> {
    pub(crate) dtype: DType,
    pub(crate) bytes: &'a mut [u8],
}

impl<'a> View<'a> {
    /// Bytes of any alignment, as elements of `dtype` in native byte order. A length that is no whole number of elements
    /// is refused where the view is used.
    pub fn new(dtype: DType, bytes: &'a [u8]) -> View<'a> {
        View { dtype, bytes }
    }

    /// Elements, if there is a whole number of them.
    pub(crate) fn elements(&self) -> Option<u64> {
        whole(self.dtype, self.bytes.len())
    }
}

impl<'a> ViewMut<'a> {
    /// Bytes of any alignment, as elements of `dtype` in native byte order. A length that is no whole number of elements
    /// is refused where the view is used.
    pub fn new(dtype: DType, bytes: &'a mut [u8]) -> ViewMut<'a> {
        ViewMut { dtype, bytes }
    }

    /// Elements, if there is a whole number of them.
    pub(crate) fn elements(&self) -> Option<u64> {
        whole(self.dtype, self.bytes.len())
    }
}

#[inline]
fn whole(dtype: DType, bytes: usize) -> Option<u64> {
    let size_bytes = dtype.size_bytes();
    // Sizes are powers of two, and a division here would cost as much as the rest of a small call's checks.
    debug_assert!(size_bytes.is_power_of_two(), "{dtype}");
    (bytes as u64 & (size_bytes - 1) == 0).then(|| bytes as u64 >> size_bytes.trailing_zeros())
}

impl<'a, T: Element> From<&'a [T]> for View<'a> {
    #[inline]
    fn from(elements: &'a [T]) -> View<'a> {
        View { dtype: T::DTYPE, bytes: bytemuck::cast_slice(elements) }
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for View<'a> {
    fn from(elements: &'a Vec<T>) -> View<'a> {
        elements.as_slice().into()
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for View<'a> {
    fn from(elements: &'a [T; N]) -> View<'a> {
        elements.as_slice().into()
    }
}

impl<'a, T: Element> From<&'a mut [T]> for ViewMut<'a> {
    #[inline]
    fn from(elements: &'a mut [T]) -> ViewMut<'a> {
        ViewMut { dtype: T::DTYPE, bytes: bytemuck::cast_slice_mut(elements) }
    }
}

impl<'a, T: Element> From<&'a mut Vec<T>> for ViewMut<'a> {
    fn from(elements: &'a mut Vec<T>) -> ViewMut<'a> {
        elements.as_mut_slice().into()
    }
}

impl<'a, T: Element, const N: usize> From<&'a mut [T; N]> for ViewMut<'a> {
    fn from(elements: &'a mut [T; N]) -> ViewMut<'a> {
        elements.as_mut_slice().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_elements_count() {
        let bytes = [0; 12];
        assert_eq!(View::new(DType::F32, &bytes).elements(), Some(3));
        assert_eq!(View::new(DType::F64, &bytes).elements(), None);
        assert_eq!(View::from(&[1i64, 2, 3]).elements(), Some(3));
    }
}
