//! A table from keys to ids in which the keys lie elsewhere: the arena that owns them is asked. It holds four bytes for
//! each entry, which is what lets a proof keep millions of values.

/// Ids by the hash of their keys, with open addressing.
#[derive(Default)]
pub(super) struct IdTable {
    slots: Vec<u32>,
    len: usize,
}

const FREE: u32 = u32::MAX;

impl IdTable {
    /// The id whose key `is_it` recognises; failing that `fresh`, which is then in the table, and whose key the
    /// caller stores. `hash_of` gives the hash of an id that is in the table.
    pub(super) fn find_or_add(
        &mut self,
        hash: u64,
        fresh: u32,
        is_it: impl Fn(u32) -> bool,
        hash_of: impl Fn(u32) -> u64,
    ) -> u32 {
        if self.len * 4 >= self.slots.len() * 3 {
            self.grow(hash_of);
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at] {
                FREE => {
                    self.slots[at] = fresh;
                    self.len += 1;
                    return fresh;
                }
                id if is_it(id) => return id,
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn grow(&mut self, hash_of: impl Fn(u32) -> u64) {
        let size = (self.slots.len() * 2).max(16);
        let old = std::mem::replace(&mut self.slots, vec![FREE; size]);
        for id in old.into_iter().filter(|&id| id != FREE) {
            let mut at = hash_of(id) as usize & (size - 1);
            while self.slots[at] != FREE {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = id;
        }
    }
}

/// A hash of two words whose low bits depend on all of theirs. It only spreads: keys are compared in full.
pub(super) fn hash_pair(a: u64, b: u64) -> u64 {
    let mixed =
        (a.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ b.rotate_left(32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

/// [`hash_pair`] for the standard maps, whose keys here are a few small numbers.
#[derive(Clone, Copy, Default)]
pub(super) struct Spread(u64);

/// A map that hashes with [`Spread`].
pub(super) type SpreadMap<K, V> = std::collections::HashMap<K, V, std::hash::BuildHasherDefault<Spread>>;

impl std::hash::Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = hash_pair(self.0, byte as u64);
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.0 = hash_pair(self.0, word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_get_one_id_and_others_get_their_own() {
        let mut keys: Vec<u64> = Vec::new();
        let mut table = IdTable::default();
        let mut id_of = |key: u64| {
            let fresh = keys.len() as u32;
            let hash_of = |id: u32| hash_pair(keys[id as usize] % 7, 0);
            let id = table.find_or_add(hash_pair(key % 7, 0), fresh, |id| keys[id as usize] == key, hash_of);
            if id == fresh {
                keys.push(key);
            }
            id
        };
        let first: Vec<u32> = (0..100).map(&mut id_of).collect();
        let second: Vec<u32> = (0..100).map(&mut id_of).collect();
        assert_eq!(first, (0..100).collect::<Vec<_>>());
        assert_eq!(first, second);
    }
}
