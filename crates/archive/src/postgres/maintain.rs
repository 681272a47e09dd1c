//! Checks the database, and removes sessions from it.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::digest::hex_digits;
use crate::error::ArchiveError;
use crate::manifest::Manifest;
use crate::postgres::connection::{DatabaseResult as _, PostgresArchive};
use crate::postgres::copy_format::CopyReader;
use crate::postgres::derive::{DERIVED, lost};
use crate::postgres::file_copier::delete_rows;
use crate::postgres::read::ContentRow;
use crate::postgres::stored_file::{COLUMNS, StoredFile};
use crate::read::OriginFilter;
use crate::restore::find;
use crate::verify::{GarbageReport, VerifyReport};

/// The number of files that are checked together.
const FILES_PER_CHECK: usize = 512;

/// The content of a file while it is read.
struct ContentCheck {
    hash: Sha256,
    size: i64,
    n_lines: i64,
    in_line: bool,
    is_sound: bool,
}

impl PostgresArchive {
    /// See [`Archive::verify`](crate::Archive::verify).
    pub(crate) fn verify(&self, progress: &(dyn Fn() + Sync)) -> Result<VerifyReport, ArchiveError> {
        self.seal()?;
        let mut report = VerifyReport::default();
        let mut files: Vec<StoredFile> = Vec::new();
        let mut current: BTreeMap<(i64, String), Vec<(i32, bool)>> = BTreeMap::new();
        let select = format!("select {COLUMNS}, checksum, is_current from threadline.files order by id");
        for row in self.run(|client| client.query(&select, &[]).action("read"))? {
            match StoredFile::of(&row) {
                Ok(file) => {
                    if file.checksum() != row.get::<_, String>(24) {
                        report.damaged.push(format!("{}: its row has another checksum", file.name));
                    }
                    let versions = current.entry((file.home, file.name.clone())).or_default();
                    versions.push((file.version, row.get(25)));
                    files.push(file);
                }
                Err(error) => report.damaged.push(error.to_string()),
            }
        }
        for ((_, name), versions) in &mut current {
            versions.sort_unstable();
            let last = versions.len() - 1;
            if versions.iter().enumerate().any(|(place, (_, is_current))| *is_current != (place == last)) {
                report.damaged.push(format!("{name}: its last version is not the current one"));
            }
        }
        for files in files.chunks(FILES_PER_CHECK) {
            self.verify_contents(files, &mut report)?;
            self.verify_derived(files, &mut report)?;
            progress();
        }
        self.verify_owners(&files, &mut report)?;
        report.files = files.len();
        report.damaged.sort();
        report.damaged.dedup();
        Ok(report)
    }

    /// Compares the lines and chunks of files with their digests.
    fn verify_contents(&self, files: &[StoredFile], report: &mut VerifyReport) -> Result<(), ArchiveError> {
        let new =
            || ContentCheck { hash: Sha256::new(), size: 0, n_lines: 0, in_line: false, is_sound: true };
        let mut checks: BTreeMap<i64, ContentCheck> = files.iter().map(|file| (file.id, new())).collect();
        let ids: Vec<i64> = checks.keys().copied().collect();
        self.contents(&ids, &mut |&ContentRow { file, at, line, bytes }| {
            let Some(check) = checks.get_mut(&file) else { return Ok(()) };
            check.hash.update(bytes);
            check.is_sound &= at == check.size && line.is_none_or(|line| line == check.n_lines + 1);
            check.size += i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            check.in_line = !bytes.ends_with(b"\n");
            check.n_lines += i64::from(line.is_some() && !check.in_line);
            Ok(())
        })?;
        for file in files {
            let Some(check) = checks.remove(&file.id) else { continue };
            report.bytes += u64::try_from(check.size).unwrap_or(0);
            let is_same = check.is_sound
                && check.n_lines == file.n_lines
                && check.size == file.size
                && hex_digits(check.hash) == file.digest;
            if !is_same {
                report.damaged.push(format!("{}: its content has another digest", file.name));
            }
        }
        Ok(())
    }

    /// Compares the rows that were derived from files with their sums.
    fn verify_derived(&self, files: &[StoredFile], report: &mut VerifyReport) -> Result<(), ArchiveError> {
        let mut sums: BTreeMap<i64, i64> = files.iter().map(|file| (file.id, 0)).collect();
        let ids: Vec<String> = sums.keys().map(i64::to_string).collect();
        let ids = ids.join(",");
        self.run(|client| {
            for (table, columns) in DERIVED {
                let select = format!(
                    "copy (select {columns} from threadline.{table} where file in ({ids})) to stdout (format binary)"
                );
                let reader = client.copy_out(&select).action("read")?;
                let mut rows = CopyReader::new(reader).map_err(|error| lost(&error))?;
                while rows.next_row().map_err(|error| lost(&error))? {
                    if let Some(sum) = rows.number(0).and_then(|file| sums.get_mut(&file)) {
                        *sum = sum.wrapping_add(rows.sum());
                    }
                }
            }
            Ok(())
        })?;
        for file in files.iter().filter(|file| sums.get(&file.id) != Some(&file.row_sum)) {
            report.damaged.push(format!("{}: its messages, tool calls or usage have changed", file.name));
        }
        Ok(())
    }

    /// Finds rows of files that do not exist. A user who does not see all files sees no such rows.
    fn verify_owners(&self, files: &[StoredFile], report: &mut VerifyReport) -> Result<(), ArchiveError> {
        let ids: Vec<i64> = files.iter().map(|file| file.id).collect();
        let tables = ["lines", "chunks", "entry_ids"].into_iter().chain(DERIVED.map(|(table, _)| table));
        self.run(|client| {
            for table in tables {
                // Files that were added meanwhile are in the table.
                let select = format!(
                    "select distinct file from threadline.{table} t where not file = any ($1)
                     and not exists (select from threadline.files f where f.id = t.file)"
                );
                for row in client.query(&select, &[&ids]).action("read")? {
                    let file: i64 = row.get(0);
                    report.damaged.push(format!("{table}: rows of file {file}, which does not exist"));
                }
            }
            Ok(())
        })
    }

    /// Deletes rows that no file uses. Transactions leave none, so there is usually nothing to do.
    pub(crate) fn collect_garbage(&self) -> Result<GarbageReport, ArchiveError> {
        self.run(|client| {
            let unmarked = "select coalesce(array_agg(id), '{}') from threadline.files where not is_marked";
            let unmarked: Vec<i64> = client.query_one(unmarked, &[]).action("read")?.get(0);
            client.execute("select threadline.mark_shared($1)", &[&unmarked]).action("write to")?;
            Ok(GarbageReport::default())
        })?;
        if self.location.builds_indexes {
            self.run(crate::postgres::schema::build_indexes)?;
        }
        Ok(GarbageReport::default())
    }

    /// See [`Archive::remove`](crate::Archive::remove).
    pub(crate) fn remove(&self, name: &str) -> Result<String, ArchiveError> {
        let manifests = self.manifests(&OriginFilter::default())?;
        let (_, session) = find(&manifests, name)?;
        let homes: BTreeSet<String> =
            manifests.iter().map(|manifest: &Manifest| manifest.origin.folder()).collect();
        let homes: Vec<String> = homes.into_iter().collect();
        self.run(|client| {
            let mut transaction = client.transaction().action("write to")?;
            let lock = "select id from threadline.homes where folder = any ($1) order by id for update";
            let homes = transaction.query(lock, &[&homes]).action("lock")?;
            let homes: Vec<i64> = homes.iter().map(|row| row.get(0)).collect();
            let files = "delete from threadline.files where session = $1 and home = any ($2) returning id";
            let files = transaction.query(files, &[&session.id, &homes]).action("write to")?;
            let ids: Vec<i64> = files.iter().map(|row| row.get(0)).collect();
            delete_rows(&mut transaction, &ids, true)?;
            let sessions = "delete from threadline.sessions where id = $1 and home = any ($2)";
            transaction.execute(sessions, &[&session.id, &homes]).action("write to")?;
            let removed = "insert into threadline.removed (home, session)
                select home, $1 from unnest($2::bigint[]) home on conflict do nothing";
            transaction.execute(removed, &[&session.id, &homes]).action("write to")?;
            transaction.commit().action("write to")
        })?;
        Ok(session.id)
    }
}
