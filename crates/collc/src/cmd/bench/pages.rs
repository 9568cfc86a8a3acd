//! Buffers that begin at a page and are kept from cell to cell, as other libraries' are here.

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;

/// Bytes that begin at a page.
#[derive(Default)]
pub(super) struct Pages {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Pages {
    /// Gives it a length. What it holds is undefined until it is filled, which touches every page.
    pub(super) fn set_len(&mut self, len: usize) {
        if self.bytes.len() < len + PAGE_BYTES {
            self.bytes = vec![0; len + PAGE_BYTES];
            self.start = self.bytes.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
        }
        self.len = len;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..self.start + self.len).unwrap_or_default()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..self.start + self.len).unwrap_or_default()
    }
}
