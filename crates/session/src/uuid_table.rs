//! Interning of uuids.
//!
//! A uuid occurs on its line and on every line that continues it. Each one is hashed once, when its line is
//! pushed. Tree traversals then compare integers instead of strings.

use std::num::NonZeroU32;

use crate::id_table::IdTable;

/// An interned uuid. The log may or may not contain an entry with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UuidKey(NonZeroU32);

impl UuidKey {
    /// The interned empty uuid, for lines without one.
    pub(crate) const EMPTY: Self = Self(NonZeroU32::MIN);

    /// Returns the index for tables with [`UuidTable::len`] elements.
    pub(crate) fn idx(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The interned uuids of a session, in one text.
#[derive(Clone, Debug, Default)]
pub(crate) struct UuidTable {
    text: String,
    /// The end of each uuid in `text`, except for the empty one, which is not stored.
    ends: Vec<usize>,
    keys: IdTable<UuidKey>,
}

impl UuidTable {
    /// Interns a uuid.
    pub(crate) fn intern(&mut self, uuid: &str) -> UuidKey {
        if uuid.is_empty() {
            return UuidKey::EMPTY;
        }
        let new = UuidKey(NonZeroU32::MIN.saturating_add(self.len() as u32));
        let (text, ends) = (&self.text, &self.ends);
        let key = self.keys.get_or_insert(uuid, new, |key| text_of(text, ends, key));
        if key == new {
            self.text.push_str(uuid);
            self.ends.push(self.text.len());
        }
        key
    }

    /// Returns an interned uuid. `None` if the session never mentions it.
    pub(crate) fn get(&self, uuid: &str) -> Option<UuidKey> {
        if uuid.is_empty() {
            return Some(UuidKey::EMPTY);
        }
        self.keys.get(uuid, |key| text_of(&self.text, &self.ends, key))
    }

    /// Returns the number of uuids, including the empty one.
    pub(crate) fn len(&self) -> usize {
        self.ends.len() + 1
    }

    /// Returns all uuids except the empty one, in the order in which they were interned.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, UuidKey)> {
        let keys = (2..).map_while(NonZeroU32::new).map(UuidKey).take(self.ends.len());
        keys.map(|key| (text_of(&self.text, &self.ends, key), key))
    }
}

/// Returns the text of an interned uuid that is not empty.
fn text_of<'t>(text: &'t str, ends: &[usize], key: UuidKey) -> &'t str {
    let position = key.idx() - 1;
    let start = position.checked_sub(1).map_or(0, |previous| ends[previous]);
    &text[start..ends[position]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_one_key() {
        let uuids = ["a", "colliding-1", "bb", "colliding-2", "colliding-3"];
        let mut table = UuidTable::default();
        let keys: Vec<UuidKey> = uuids.iter().map(|uuid| table.intern(uuid)).collect();
        assert_eq!(table.intern(""), UuidKey::EMPTY);
        assert_eq!(uuids.map(|uuid| table.intern(uuid)), *keys);
        assert_eq!(uuids.map(|uuid| table.get(uuid)), *keys.iter().copied().map(Some).collect::<Vec<_>>());
        assert_eq!(table.iter().collect::<Vec<_>>(), uuids.into_iter().zip(keys).collect::<Vec<_>>());
        assert_eq!((table.len(), table.get("c")), (6, None));
    }
}
