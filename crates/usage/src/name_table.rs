//! Interns strings that occur repeatedly.

use foldhash::fast::RandomState;
use indexmap::IndexSet;
use serde::{Deserialize, Serialize};

/// The index of an interned name.
pub(crate) type NameId = u32;

/// Interned names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NameTable(IndexSet<String, RandomState>);

impl NameTable {
    /// Returns the index of `name`, which is added if necessary.
    pub(crate) fn id(&mut self, name: &str) -> NameId {
        let known = self.0.get_index_of(name);
        known.unwrap_or_else(|| self.0.insert_full(name.to_owned()).0) as NameId
    }

    /// Returns the name with this index; empty if there is none.
    pub(crate) fn get(&self, id: NameId) -> &str {
        self.0.get_index(id as usize).map_or("", |name| name)
    }

    /// Returns the names in order of their index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}
