//! Bound calls by key, of one communicator. The call that was made last is found without looking.

use crate::comm::entry::Entry;
use crate::comm::resolve::{Key, Resolved};
use rustc_hash::FxHashMap;

/// Bound calls by key.
#[derive(Debug)]
pub(crate) struct Cache {
    slots: Vec<Slot>,
    places: FxHashMap<Key, usize>,
    last: usize,
    lookups: u64,
    limit_bytes: u64,
    bytes: u64,
}

#[derive(Debug)]
enum Slot {
    Free,
    /// Taken out, to be brought back.
    Lent,
    Kept(Box<Entry>),
}

impl Cache {
    /// A cache that forgets what was not used for longest once its entries hold more than so many bytes. What a prepared
    /// call holds is not forgotten.
    pub(crate) fn new(limit_bytes: u64) -> Cache {
        Cache { slots: Vec::new(), places: FxHashMap::default(), last: 0, lookups: 0, limit_bytes, bytes: 0 }
    }

    /// The place of a call's entry, if there is one.
    #[inline]
    pub(crate) fn find(&mut self, resolved: &Resolved<'_>) -> Option<usize> {
        self.lookups += 1;
        if self.serves(self.last, resolved) {
            return Some(self.last);
        }
        let place = *self.places.get(&resolved.key)?;
        if !self.serves(place, resolved) {
            return None;
        }
        self.last = place;
        Some(place)
    }

    #[inline]
    fn serves(&mut self, place: usize, resolved: &Resolved<'_>) -> bool {
        let Some(Slot::Kept(entry)) = self.slots.get_mut(place) else { return false };
        let serves = entry.key == resolved.key && entry.serves(resolved);
        if serves {
            entry.used = self.lookups;
        }
        serves
    }

    /// Keeps an entry, in place of any other with its key.
    pub(crate) fn insert(&mut self, mut entry: Box<Entry>) -> usize {
        let key = entry.key;
        if let Some(place) = self.places.get(&key).copied() {
            // Its counts have the same hash and are others.
            self.remove(place);
        }
        self.bytes += entry.size_bytes();
        self.forget();
        entry.used = self.lookups;
        let place = match self.slots.iter().position(|slot| matches!(slot, Slot::Free)) {
            Some(place) => place,
            None => {
                self.slots.push(Slot::Free);
                self.slots.len() - 1
            }
        };
        self.slots[place] = Slot::Kept(entry);
        self.places.insert(key, place);
        self.last = place;
        place
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Entry> {
        match self.slots.get_mut(place) {
            Some(Slot::Kept(entry)) => Some(entry),
            _ => None,
        }
    }

    /// Takes an entry out, to be brought back.
    pub(crate) fn lend(&mut self, place: usize) -> Option<Box<Entry>> {
        let slot = self.slots.get_mut(place)?;
        match std::mem::replace(slot, Slot::Lent) {
            Slot::Kept(entry) => Some(entry),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Brings an entry back to where it was taken from.
    pub(crate) fn bring_back(&mut self, place: usize, entry: Box<Entry>) {
        self.slots[place] = Slot::Kept(entry);
    }

    /// Forgets entries until the others hold no more than they may; but for the one that was used last, or a large call in
    /// turn with a barrier would be bound, and its scratch brought in, each time.
    fn forget(&mut self) {
        while self.bytes > self.limit_bytes {
            let kept = self.slots.iter().enumerate().filter_map(|(place, slot)| match slot {
                Slot::Kept(entry) if !entry.is_held() && place != self.last => Some((entry.used, place)),
                _ => None,
            });
            let Some((_, place)) = kept.min() else { return };
            self.remove(place);
        }
    }

    /// Held entries keep their place, but are found no more by their key.
    fn remove(&mut self, place: usize) {
        let Slot::Kept(entry) = &self.slots[place] else { return };
        if self.places.get(&entry.key) == Some(&place) {
            self.places.remove(&entry.key);
        }
        if !entry.is_held() {
            self.bytes -= entry.size_bytes();
            self.slots[place] = Slot::Free;
        }
    }
}
