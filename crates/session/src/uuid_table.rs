//! Interning of uuids.
//!
//! A uuid occurs on its line and on every line that continues it. Each one is hashed once, when its line is
//! pushed. Tree traversals then compare integers instead of strings.

use std::num::NonZeroU32;

use rustc_hash::FxHashMap;

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

/// The interned uuids of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct UuidTable(FxHashMap<Box<str>, UuidKey>);

impl UuidTable {
    /// Interns a uuid.
    pub(crate) fn intern(&mut self, uuid: &str) -> UuidKey {
        if uuid.is_empty() {
            return UuidKey::EMPTY;
        }
        if let Some(&name) = self.0.get(uuid) {
            return name;
        }
        let name = UuidKey(NonZeroU32::MIN.saturating_add(self.0.len() as u32 + 1));
        self.0.insert(uuid.into(), name);
        name
    }

    /// Returns an interned uuid. `None` if the session never mentions it.
    pub(crate) fn get(&self, uuid: &str) -> Option<UuidKey> {
        if uuid.is_empty() { Some(UuidKey::EMPTY) } else { self.0.get(uuid).copied() }
    }

    /// Returns the number of uuids, including the empty one.
    pub(crate) fn len(&self) -> usize {
        self.0.len() + 1
    }

    /// Returns all uuids except the empty one, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, UuidKey)> {
        self.0.iter().map(|(uuid, name)| (&**uuid, *name))
    }
}
