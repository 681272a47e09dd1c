//! Lookup of elements by their ids.

use std::collections::hash_map;

use foldhash::HashMap;

/// The last element with each id. Stores hashes of the ids, since the elements contain the ids themselves.
#[derive(Clone, Debug)]
pub(crate) struct IdTable<I> {
    by_hash: HashMap<u32, I>,
    /// Elements with the hash of another element's id.
    colliding: HashMap<Box<str>, I>,
}

impl<I: Copy> IdTable<I> {
    /// Returns the last element with this id. `id_of` returns the id of an element.
    pub(crate) fn get<'e>(&self, id: &str, id_of: impl FnOnce(I) -> &'e str) -> Option<I> {
        let element = *self.by_hash.get(&hash(id))?;
        if id_of(element) == id { Some(element) } else { self.colliding.get(id).copied() }
    }

    /// Returns the last element with this id, or adds `new` if there is none. `id_of` returns the id of an
    /// element that was added before.
    pub(crate) fn get_or_insert<'e>(&mut self, id: &str, new: I, id_of: impl FnOnce(I) -> &'e str) -> I {
        match self.by_hash.entry(hash(id)) {
            hash_map::Entry::Vacant(slot) => *slot.insert(new),
            hash_map::Entry::Occupied(slot) if id_of(*slot.get()) == id => *slot.get(),
            hash_map::Entry::Occupied(_) => *self.colliding.entry(id.into()).or_insert(new),
        }
    }

    /// Adds an element. `id_of` returns the id of an element that was added before.
    pub(crate) fn insert<'e>(&mut self, id: &str, element: I, id_of: impl FnOnce(I) -> &'e str) {
        match self.by_hash.entry(hash(id)) {
            hash_map::Entry::Occupied(slot) if id_of(*slot.get()) != id => {
                self.colliding.insert(id.into(), element);
            }
            hash_map::Entry::Occupied(mut slot) => {
                slot.insert(element);
            }
            hash_map::Entry::Vacant(slot) => {
                slot.insert(element);
            }
        }
    }
}

impl<I> Default for IdTable<I> {
    fn default() -> Self {
        Self { by_hash: HashMap::default(), colliding: HashMap::default() }
    }
}

/// Half of the bits of a hash make the table half as large, and few ids collide.
fn hash(id: &str) -> u32 {
    #[cfg(test)]
    if id.starts_with("colliding-") {
        return 0;
    }
    (threadline_entry::hash_of(id) >> 32) as u32
}
