//! Names that occur again and again, kept once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// The number that stands for a name.
pub(crate) type NameId = u32;

/// Names by number, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    list: Vec<Arc<str>>,
    known: FxHashMap<Arc<str>, NameId>,
    /// The last few asked for: a line nearly always says what the line before said.
    recent: [NameId; 4],
    turn: usize,
}

impl Names {
    /// The number of `name`.
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

    /// The name that a number stands for.
    pub(crate) fn get(&self, id: NameId) -> &str {
        self.list.get(id as usize).map_or("", |name| name)
    }

    /// The names in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|name| &**name)
    }
}
