//! A folder of objects that can be replaced, on this machine or in object storage, for other crates.

use crate::archive::{ArchiveLocation, StorageOptions, open_objects};
use crate::error::ArchiveError;
use crate::objects::Objects;

/// A folder of objects that can be replaced, at an address like that of an archive.
pub struct ObjectFolder {
    objects: Objects,
}

impl ObjectFolder {
    /// Opens a folder, and creates it on this machine.
    ///
    /// # Errors
    ///
    /// If it cannot be reached or created.
    pub fn create(location: &ArchiveLocation, options: &StorageOptions) -> Result<Self, ArchiveError> {
        Ok(Self { objects: open_objects(location, options, true)? })
    }

    /// Returns the content of an object; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        self.objects.get(name)
    }

    /// Creates or replaces an object. Readers see its old or its new content.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn replace(&self, name: &str, bytes: Vec<u8>) -> Result<(), ArchiveError> {
        self.objects.replace(name, bytes)
    }

    /// Deletes an object, if it exists.
    ///
    /// # Errors
    ///
    /// If it cannot be deleted.
    pub fn delete(&self, name: &str) -> Result<(), ArchiveError> {
        self.objects.delete(name)
    }

    /// Returns the names of the objects below a folder, sorted.
    ///
    /// # Errors
    ///
    /// If it cannot be listed.
    pub fn list(&self, folder: &str) -> Result<Vec<String>, ArchiveError> {
        Ok(self.objects.list(folder)?.into_iter().map(|object| object.name).collect())
    }
}
