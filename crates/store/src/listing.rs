//! The result of a walk over many files, with the errors that occurred.

use std::io;

/// The items found, and the errors that occurred.
///
/// An unreadable directory hides only its own content. A file or directory that does not exist (any more) is
/// not an error and is in neither list. The errors contain their paths.
#[derive(Debug)]
pub struct Listing<T> {
    /// The items found.
    pub found: Vec<T>,
    /// The errors.
    pub errors: Vec<io::Error>,
}

impl<T> Listing<T> {
    pub(crate) fn new() -> Self {
        Self { found: Vec::new(), errors: Vec::new() }
    }

    /// Returns the value of a result. An error is added to the list, unless the file does not exist.
    pub(crate) fn ok_or_record<V>(&mut self, result: io::Result<V>) -> Option<V> {
        match result {
            Ok(value) => Some(value),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                self.errors.push(error);
                None
            }
        }
    }

    pub(crate) fn append(&mut self, other: Self) {
        self.found.extend(other.found);
        self.errors.extend(other.errors);
    }
}
