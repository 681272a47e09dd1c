//! The rows of files.

use std::collections::BTreeMap;

use postgres::{GenericClient, Row};
use threadline_store::is_home_file_name;

use crate::digest::digest;
use crate::error::ArchiveError;
use crate::level::PrivacyLevel;
use crate::manifest::{ArchivedFile, FilePiece, FileVersion, Manifest, Origin};
use crate::postgres::connection::DatabaseResult as _;
use crate::postgres::copy_format::CopyRows;
use crate::read::OriginFilter;

/// A version of an archived file, with the state that is needed to continue it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredFile {
    pub(super) id: i64,
    pub(super) home: i64,
    pub(super) name: String,
    pub(super) version: i32,
    pub(super) session: Option<String>,
    pub(super) level: PrivacyLevel,
    pub(super) size: i64,
    pub(super) digest: String,
    pub(super) modified: i64,
    pub(super) stamp: Option<String>,
    pub(super) tail_at: i64,
    pub(super) n_lines: i64,
    pub(super) longest_line: i64,
    pub(super) is_log: bool,
    pub(super) log_session: Option<String>,
    pub(super) folder: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) first_at: Option<i64>,
    pub(super) last_at: Option<i64>,
    pub(super) n_invalid: i64,
    pub(super) is_torn: bool,
    pub(super) row_sum: i64,
    pub(super) tail_sum: i64,
}

/// The columns that [`StoredFile`] reads and writes, besides the checksum.
pub(super) const COLUMNS: &str = "id, home, name, version, session, level, size, digest, modified, stamp, tail_at, \
    n_lines, longest_line, is_log, log_session, folder, agent, cwd, first_at, last_at, n_invalid, is_torn, \
    row_sum, tail_sum";

const N_COLUMNS: i16 = 24;

impl StoredFile {
    pub(super) fn new(id: i64, home: i64, name: &str, version: i32, level: PrivacyLevel) -> Self {
        Self {
            id,
            home,
            name: name.to_owned(),
            version,
            session: threadline_store::session_of_file(name).map(|id| id.to_string()),
            level,
            size: 0,
            digest: digest(b""),
            modified: 0,
            stamp: None,
            tail_at: 0,
            n_lines: 0,
            longest_line: 0,
            is_log: false,
            log_session: None,
            folder: None,
            agent: None,
            cwd: None,
            first_at: None,
            last_at: None,
            n_invalid: 0,
            is_torn: false,
            row_sum: 0,
            tail_sum: 0,
        }
    }

    /// Reads the columns of [`COLUMNS`].
    pub(super) fn of(row: &Row) -> Result<Self, ArchiveError> {
        let name: String = row.get(2);
        let damaged =
            |reason: &str| ArchiveError::Damaged { object: name.clone(), reason: reason.to_owned() };
        if !is_home_file_name(&name) {
            return Err(damaged("it is not the name of a file of a session"));
        }
        let level = PrivacyLevel::from_name(row.get(5)).ok_or_else(|| damaged("its level is not known"))?;
        Ok(Self {
            id: row.get(0),
            home: row.get(1),
            version: row.get(3),
            session: row.get(4),
            level,
            size: row.get(6),
            digest: row.get(7),
            modified: row.get(8),
            stamp: row.get(9),
            tail_at: row.get(10),
            n_lines: row.get(11),
            longest_line: row.get(12),
            is_log: row.get(13),
            log_session: row.get(14),
            folder: row.get(15),
            agent: row.get(16),
            cwd: row.get(17),
            first_at: row.get(18),
            last_at: row.get(19),
            n_invalid: row.get(20),
            is_torn: row.get(21),
            row_sum: row.get(22),
            tail_sum: row.get(23),
            name,
        })
    }

    /// Returns a digest of the row, so that a change of it is noticed.
    pub(super) fn checksum(&self) -> String {
        digest(format!("{self:?}").as_bytes())
    }

    /// Appends the row, followed by the checksum and whether it is the current version.
    pub(super) fn write(&self, rows: &mut CopyRows, is_current: bool) {
        rows.row(N_COLUMNS + 2).number(self.id).number(self.home).text(&self.name).int(self.version);
        rows.optional_text(self.session.as_deref())
            .text(self.level.name())
            .number(self.size)
            .text(&self.digest);
        rows.number(self.modified).optional_text(self.stamp.as_deref()).number(self.tail_at);
        rows.number(self.n_lines).number(self.longest_line).flag(self.is_log);
        rows.optional_text(self.log_session.as_deref()).optional_text(self.folder.as_deref());
        rows.optional_text(self.agent.as_deref()).optional_text(self.cwd.as_deref());
        rows.optional(self.first_at).optional(self.last_at).number(self.n_invalid).flag(self.is_torn);
        rows.number(self.row_sum).number(self.tail_sum).text(&self.checksum()).flag(is_current);
    }

    /// Returns the version as it is in a manifest. Its only piece names the row.
    fn in_manifest(&self) -> FileVersion {
        let size = u64::try_from(self.size).unwrap_or(0);
        FileVersion {
            version: u32::try_from(self.version).unwrap_or(0),
            level: self.level,
            size,
            digest: self.digest.clone(),
            modified: self.modified,
            stamp: self.stamp.clone(),
            session: self.session.clone().or_else(|| self.log_session.clone()),
            pieces: vec![FilePiece { segment: self.id.to_string(), at: 0, length: size }],
        }
    }
}

/// Returns the id of the row of a version that [`manifests`] returned.
pub(super) fn row_id(version: &FileVersion) -> Option<i64> {
    version.pieces.first()?.segment.parse().ok()
}

/// A home and its id.
pub(super) struct StoredHome {
    pub(super) id: i64,
    pub(super) origin: Origin,
}

/// Returns the homes that the user may see, sorted by origin.
pub(super) fn homes(
    client: &mut impl GenericClient,
    filter: &OriginFilter,
) -> Result<Vec<StoredHome>, ArchiveError> {
    let homes = "select id, machine_id, machine, user_name, path from threadline.homes";
    let homes = client.query(homes, &[]).action("read")?;
    let mut homes: Vec<StoredHome> = homes
        .iter()
        .map(|row| {
            let origin =
                Origin { machine_id: row.get(1), machine: row.get(2), user: row.get(3), home: row.get(4) };
            StoredHome { id: row.get(0), origin }
        })
        .filter(|home| filter.accepts(&home.origin))
        .collect();
    homes.sort_by(|a, b| (&a.origin, a.id).cmp(&(&b.origin, b.id)));
    Ok(homes)
}

/// Reads the files of some homes as manifests, in the same order.
pub(super) fn manifests(
    client: &mut impl GenericClient,
    homes: &[StoredHome],
) -> Result<Vec<Manifest>, ArchiveError> {
    let ids: Vec<i64> = homes.iter().map(|home| home.id).collect();
    let mut manifests: BTreeMap<i64, Manifest> =
        homes.iter().map(|home| (home.id, Manifest::new(home.origin.clone()))).collect();
    let files = format!(
        "select {COLUMNS} from threadline.files where home = any ($1) order by home, name, version desc"
    );
    for row in client.query(&files, &[&ids]).action("read")? {
        let file = StoredFile::of(&row)?;
        let Some(manifest) = manifests.get_mut(&file.home) else { continue };
        let version = file.in_manifest();
        // The first version is the current one.
        manifest
            .files
            .entry(file.name)
            .and_modify(|file| file.older.push(version.clone()))
            .or_insert_with(|| ArchivedFile { current: version.clone(), older: Vec::new() });
    }
    let removed = "select home, session from threadline.removed where home = any ($1)";
    for row in client.query(removed, &[&ids]).action("read")? {
        if let Some(manifest) = manifests.get_mut(&row.get(0)) {
            manifest.removed.insert(row.get(1));
        }
    }
    Ok(homes.iter().filter_map(|home| manifests.remove(&home.id)).collect())
}
