//! Names of lines: every uuid that a tree mentions, as a number.
//!
//! A uuid stands on its line and on whatever continues that. Each is looked up once, when the line is taken in; whoever
//! goes over the tree later follows numbers and compares no texts.

use rustc_hash::FxHashMap;

/// A uuid that the tree mentions, whether its line was written or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name(u32);

impl Name {
    /// The name of lines that have none.
    pub(crate) const EMPTY: Self = Self(0);

    /// Its place in a list by name, which has [`Names::len`] places.
    pub(crate) fn idx(self) -> usize {
        self.0 as usize
    }
}

/// The names that a session mentions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(FxHashMap<Box<str>, Name>);

impl Names {
    /// The name for a uuid, which is given one if it has none.
    pub(crate) fn take(&mut self, uuid: &str) -> Name {
        if uuid.is_empty() {
            return Name::EMPTY;
        }
        if let Some(&name) = self.0.get(uuid) {
            return name;
        }
        let name = Name(self.0.len() as u32 + 1);
        self.0.insert(uuid.into(), name);
        name
    }

    /// The name of a uuid, if it has one.
    pub(crate) fn get(&self, uuid: &str) -> Option<Name> {
        if uuid.is_empty() { Some(Name::EMPTY) } else { self.0.get(uuid).copied() }
    }

    /// How many there are, the empty one among them.
    pub(crate) fn len(&self) -> usize {
        self.0.len() + 1
    }

    /// All of them, in no order, but for the empty one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Name)> {
        self.0.iter().map(|(uuid, name)| (&**uuid, *name))
    }
}
