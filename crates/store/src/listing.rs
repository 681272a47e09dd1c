//! What a walk over many files found, and what it could not read.

use std::io;

/// What was found, and what could not be read on the way.
///
/// One unreadable folder among hundreds hides only what is in it. A file or folder that is not there
/// (any more) is no problem and stands in neither list. The errors name their paths.
#[derive(Debug)]
pub struct Listing<T> {
    /// What was found.
    pub found: Vec<T>,
    /// Why the rest was not.
    pub unread: Vec<io::Error>,
}

impl<T> Listing<T> {
    pub(crate) fn new() -> Self {
        Self { found: Vec::new(), unread: Vec::new() }
    }

    /// The value, unless it is gone or could not be read; the latter is noted.
    pub(crate) fn note<V>(&mut self, result: io::Result<V>) -> Option<V> {
        match result {
            Ok(value) => Some(value),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.unread.push(error);
                None
            }
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.found.extend(other.found);
        self.unread.extend(other.unread);
    }
}
