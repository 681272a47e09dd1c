//! Interns strings that occur repeatedly.

use std::sync::Arc;

use foldhash::HashMap;

/// The index of an interned name.
pub(crate) type NameId = u32;

/// Interned names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NameTable {
    list: Vec<Arc<str>>,
    known: HashMap<Arc<str>, NameId>,
    /// The last few names looked up: a line nearly always has the same as the previous one.
    recent: [NameId; 4],
    turn: usize,
}

impl NameTable {
    /// Returns the index of `name`, which is added if necessary.
    pub(crate) fn id(&mut self, name: &str) -> NameId {
        for id in self.recent {
            if self.list.get(id as usize).is_some_and(|known| **known == *name) {
                return id;
            }
        }
        let id = match self.known.get(name) {
            Some(id) => *id,
            None => {
                let id = self.list.len() as NameId;
                let name: Arc<str> = name.into();
                self.list.push(name.clone());
                self.known.insert(name, id);
                id
            }
        };
        self.turn = (self.turn + 1) % self.recent.len();
        self.recent[self.turn] = id;
        id
    }

    /// Returns the name with this index; empty if there is none.
    pub(crate) fn get(&self, id: NameId) -> &str {
        self.list.get(id as usize).map_or("", |name| name)
    }

    /// Returns the names in order of their index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|name| &**name)
    }
}
