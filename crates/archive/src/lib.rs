//! Copies of sessions that survive the clean-up of Claude Code.
//!
//! An [`Archive`] consists of objects that are never changed: segments, which contain pieces of files, and
//! manifests, which list the pieces of each file of a home. [`Archive::push`] copies new content,
//! [`SessionSource::fetch`](threadline_app::SessionSource::fetch) writes archived sessions into a local
//! folder that every reading operation can use as a home, and [`Archive::restore`] puts a session back in
//! its place. [`Archive::verify`] reads everything and compares it with its digests.
//!
//! An archive can also be in a PostgreSQL database, with the same operations; see [`PostgresLocation`].

#![warn(missing_docs)]

mod age_file;
mod archive;
mod cipher;
mod digest;
mod error;
mod http;
mod jobs;
mod key_file;
mod level;
mod manifest;
mod object_folder;
mod objects;
mod postgres;
mod push;
mod read;
mod rebuild;
mod reduced_home;
mod restore;
mod segment;
mod status;
#[cfg(test)]
mod tests;
mod verify;

pub use archive::{Archive, ArchiveLocation, StorageKind, StorageOptions};
pub use error::ArchiveError;
pub use key_file::KeyFile;
pub use level::PrivacyLevel;
pub use manifest::Origin;
pub use object_folder::ObjectFolder;
pub use postgres::PostgresLocation;
pub use push::{PushOptions, PushReport};
pub use read::OriginFilter;
pub use rebuild::RebuildReport;
pub use reduced_home::copy_reduced_home;
pub use restore::{ArchivedSession, RestoreReport, RestoreTarget};
pub use status::{HomeStatus, LocalSession};
pub use verify::{GarbageReport, VerifyReport};
