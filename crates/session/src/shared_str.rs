//! Strings that very many elements of a session have in common, such as names of tools and models.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use foldhash::HashSet;

/// An immutable string. Copies share its memory.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedStr(Arc<str>);

impl SharedStr {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for SharedStr {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SharedStr {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<SharedStr> for String {
    fn from(text: SharedStr) -> Self {
        (*text).to_owned()
    }
}

impl PartialEq<str> for SharedStr {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for SharedStr {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl PartialEq<SharedStr> for &str {
    fn eq(&self, other: &SharedStr) -> bool {
        **self == **other
    }
}

impl fmt::Display for SharedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for SharedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The distinct strings so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedStrTable(HashSet<Arc<str>>);

impl SharedStrTable {
    /// Maximum number of strings in the table. A log may have a different one on every line; further ones are
    /// not shared.
    const MAX_LENGTH: usize = 1000;

    /// Returns a string with this text.
    pub(crate) fn share(&mut self, text: &str) -> SharedStr {
        if let Some(known) = self.0.get(text) {
            return SharedStr(known.clone());
        }
        let new: Arc<str> = text.into();
        if self.0.len() < Self::MAX_LENGTH {
            self.0.insert(new.clone());
        }
        SharedStr(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_memory_up_to_a_number() {
        let mut table = SharedStrTable::default();
        for number in 0..=SharedStrTable::MAX_LENGTH {
            let [one, other] = [0; 2].map(|_| table.share(&number.to_string()));
            assert_eq!((one.as_str(), &one), (&*number.to_string(), &other));
            assert_eq!(Arc::ptr_eq(&one.0, &other.0), number < SharedStrTable::MAX_LENGTH);
        }
        assert_eq!(table.0.len(), SharedStrTable::MAX_LENGTH);
    }
}
