//! An archive at an address.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::ArchiveError;
use crate::objects::Objects;

/// The address of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveLocation {
    /// A local folder: `file:DIRECTORY`.
    Folder(PathBuf),
}

impl ArchiveLocation {
    /// Returns whether the archive is on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Folder(_))
    }
}

impl FromStr for ArchiveLocation {
    type Err = ArchiveError;

    fn from_str(text: &str) -> Result<Self, ArchiveError> {
        let wrong =
            |reason: &str| ArchiveError::Location { text: text.to_owned(), reason: reason.to_owned() };
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(wrong("it does not begin with `file:`"));
        };
        match scheme {
            "file" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                if path.is_empty() {
                    return Err(wrong("the folder is missing"));
                }
                Ok(Self::Folder(Path::new(path).to_owned()))
            }
            _ => Err(wrong(&format!("`{scheme}:` is not supported"))),
        }
    }
}

impl fmt::Display for ArchiveLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "file:{}", path.display()),
        }
    }
}

/// An archive: copies of the files of sessions, of one or more machines.
pub struct Archive {
    location: ArchiveLocation,
    objects: Objects,
}

impl Archive {
    /// Opens an archive to read it. A folder must exist.
    ///
    /// # Errors
    ///
    /// If the archive cannot be reached.
    pub fn open(location: &ArchiveLocation) -> Result<Self, ArchiveError> {
        Self::at(location, false)
    }

    /// Opens an archive to write it, and creates its folder.
    ///
    /// # Errors
    ///
    /// If the archive cannot be reached or created.
    pub fn create(location: &ArchiveLocation) -> Result<Self, ArchiveError> {
        Self::at(location, true)
    }

    fn at(location: &ArchiveLocation, create: bool) -> Result<Self, ArchiveError> {
        let objects = match location {
            ArchiveLocation::Folder(folder) => Objects::in_folder(folder, create)?,
        };
        Ok(Self { location: location.clone(), objects })
    }

    /// Returns the address of the archive.
    pub fn location(&self) -> &ArchiveLocation {
        &self.location
    }

    pub(crate) fn objects(&self) -> &Objects {
        &self.objects
    }

    #[cfg(test)]
    pub(crate) fn objects_mut(&mut self) -> &mut Objects {
        &mut self.objects
    }
}
