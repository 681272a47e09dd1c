//! Reads files from the database.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::digest::hex_digits;
use crate::error::ArchiveError;
use crate::manifest::{FileVersion, Manifest, Origin};
use crate::postgres::connection::{DatabaseResult as _, PostgresArchive};
use crate::postgres::copy_format::CopyReader;
use crate::postgres::derive::lost;
use crate::postgres::stored_file::{StoredHome, homes, manifests, row_id};
use crate::read::{OriginFilter, copy_time, create_part, wrong_content};

/// The number of files that one statement reads.
const FILES_PER_STATEMENT: usize = 256;

impl PostgresArchive {
    /// Returns the manifests of the selected homes.
    pub(crate) fn manifests(&self, filter: &OriginFilter) -> Result<Vec<Manifest>, ArchiveError> {
        self.seal()?;
        self.run(|client| {
            let homes = homes(client, filter)?;
            manifests(client, &homes)
        })
    }

    /// Returns the manifest of a home; `None` if nothing of it is archived.
    pub(crate) fn manifest_of(&self, origin: &Origin) -> Result<Option<Manifest>, ArchiveError> {
        self.run(|client| {
            let home = "select id from threadline.homes where folder = $1 and owner = current_user";
            let Some(row) = client.query_opt(home, &[&origin.folder()]).action("read")? else {
                return Ok(None);
            };
            let home = StoredHome { id: row.get(0), origin: origin.clone() };
            Ok(manifests(client, &[home])?.pop())
        })
    }

    /// Writes files below a folder. Each appears when it is complete.
    pub(crate) fn write_files(
        &self,
        files: &[(&str, &FileVersion)],
        folder: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), ArchiveError> {
        for files in files.chunks(FILES_PER_STATEMENT) {
            let mut targets = BTreeMap::new();
            for (name, version) in files {
                let id = row_id(version).ok_or_else(|| wrong_content(name))?;
                let file = create_part(&folder.join(name))?;
                targets.insert(id, FileTarget { name, file, left: version.size, hash: Sha256::new() });
            }
            let ids: Vec<i64> = targets.keys().copied().collect();
            self.contents(&ids, &mut |row| {
                let Some(target) = targets.get_mut(&row.file) else { return Ok(()) };
                // A push may have appended rows meanwhile.
                let bytes =
                    &row.bytes[..row.bytes.len().min(usize::try_from(target.left).unwrap_or(usize::MAX))];
                target.left -= bytes.len() as u64;
                target.hash.update(bytes);
                target.file.write_all(bytes)?;
                progress(bytes.len() as u64);
                Ok(())
            })?;
            for (name, version) in files {
                let Some(target) = row_id(version).and_then(|id| targets.remove(&id)) else { continue };
                target.finish(version, &folder.join(name))?;
            }
        }
        Ok(())
    }

    /// Calls `sink` with the rows of the content of some files, in order.
    pub(super) fn contents(
        &self,
        ids: &[i64],
        sink: &mut dyn FnMut(&ContentRow<'_>) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
        let ids = ids.join(",");
        self.run(|client| {
            for (table, line) in [("lines", "line"), ("chunks", "null::bigint")] {
                let select = format!(
                    "copy (select file, at, {line}, content from threadline.{table} where file in ({ids})
                     order by file, at) to stdout (format binary)"
                );
                let reader = client.copy_out(&select).action("read")?;
                let mut rows = CopyReader::new(reader).map_err(|error| lost(&error))?;
                while rows.next_row().map_err(|error| lost(&error))? {
                    if let (Some(file), Some(at), Some(bytes)) =
                        (rows.number(0), rows.number(1), rows.bytes(3))
                    {
                        sink(&ContentRow { file, at, line: rows.number(2), bytes })?;
                    }
                }
            }
            Ok(())
        })
    }
}

/// A row of the content of a file.
pub(super) struct ContentRow<'r> {
    pub(super) file: i64,
    /// The offset in the file.
    pub(super) at: i64,
    /// The number of the line; `None` for a chunk.
    pub(super) line: Option<i64>,
    pub(super) bytes: &'r [u8],
}

/// A file that is being written.
struct FileTarget<'n> {
    name: &'n str,
    file: NamedTempFile,
    left: u64,
    hash: Sha256,
}

impl FileTarget<'_> {
    /// Gives the file its name, if its content is right.
    fn finish(self, version: &FileVersion, path: &Path) -> Result<(), ArchiveError> {
        if self.left > 0 || hex_digits(self.hash) != version.digest {
            return Err(wrong_content(self.name));
        }
        self.file.as_file().set_modified(copy_time(version))?;
        self.file.persist(path).map_err(|failed| failed.error)?;
        Ok(())
    }
}
