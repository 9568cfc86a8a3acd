//! Buffers that begin at a page, as other libraries' are here: ordinary ones, or ones that peers read in place.

use crate::failure::Failure;
use coll_shm::Memory;

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;

/// Bytes that begin at a page.
pub(super) struct Pages {
    store: Store,
    start: usize,
    len: usize,
}

enum Store {
    Ordinary(Vec<u8>),
    /// Its own start is that of a page. None before it has a length.
    Shared(Option<Memory>),
}

impl Pages {
    /// No bytes yet. `shared` ones are read in place by peers.
    pub(super) fn new(shared: bool) -> Pages {
        let store = if shared { Store::Shared(None) } else { Store::Ordinary(Vec::new()) };
        Pages { store, start: 0, len: 0 }
    }

    /// Gives it a length. What it holds is undefined until it is filled, which touches every page.
    ///
    /// # Errors
    /// If there is no memory that peers can read.
    pub(super) fn set_len(&mut self, len: usize) -> Result<(), Failure> {
        match &mut self.store {
            Store::Ordinary(bytes) if bytes.len() < len + PAGE_BYTES => {
                *bytes = vec![0; len + PAGE_BYTES];
                self.start = bytes.as_ptr().align_offset(PAGE_BYTES).min(PAGE_BYTES);
            }
            Store::Shared(memory) if memory.as_ref().is_none_or(|memory| memory.len() < len) => {
                let made = Memory::new(len).map_err(|error| {
                    Failure::unusable(format!("no memory for buffers of {len} bytes: {error}"))
                });
                *memory = Some(made?);
            }
            _ => {}
        }
        self.len = len;
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        let all = match &self.store {
            Store::Ordinary(bytes) => bytes,
            Store::Shared(memory) => memory.as_deref().unwrap_or_default(),
        };
        all.get(self.start..self.start + self.len).unwrap_or_default()
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        let all = match &mut self.store {
            Store::Ordinary(bytes) => bytes,
            Store::Shared(memory) => memory.as_deref_mut().unwrap_or_default(),
        };
        all.get_mut(self.start..self.start + self.len).unwrap_or_default()
    }
}
