//! Copies the new content of a home to the database.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Seek as _};
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use threadline_store::{Home, HomeFile, LogFile, Store};
use threadline_usage::LogSource;

use crate::digest::hex_digits;
use crate::error::ArchiveError;
use crate::level::{PrivacyLevel, SessionReducer};
use crate::manifest::{Manifest, Origin};
use crate::postgres::connection::{DatabaseResult as _, PostgresArchive, is_conflict};
use crate::postgres::file_copier::{Content, FileCopier, HashReader, read_start};
use crate::postgres::schema;
use crate::postgres::stored_file::{COLUMNS, StoredFile};
use crate::push::{PushOptions, PushReport, millis, plan, stamp};

/// The number of times that the files of a job are copied again because another process changed them.
const ATTEMPTS: usize = 8;

impl PostgresArchive {
    /// See [`Archive::push`](crate::Archive::push).
    pub(crate) fn push(
        &self,
        store: &Store,
        home: &Home,
        origin: &Origin,
        options: &PushOptions<'_>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<PushReport, ArchiveError> {
        let listing = store.files_of(home);
        let mut report = PushReport {
            unread: listing.errors.iter().map(ToString::to_string).collect(),
            ..Default::default()
        };
        let known = self.manifest_of(origin)?;
        let jobs = plan(
            listing.found,
            &known.unwrap_or_else(|| Manifest::new(origin.clone())),
            options,
            &mut report,
        );
        if jobs.is_empty() {
            return Ok(report);
        }
        let home_id = self.home_id(origin)?;
        let logs = store.logs().found.into_iter().map(|log| (log.path.clone(), log)).collect();
        let push = HomePush { archive: self, home_id, logs: &logs, options, progress };
        for job in jobs {
            push.job(job, &mut report)?;
        }
        if self.location.builds_indexes {
            self.run(schema::build_indexes)?;
        }
        Ok(report)
    }

    /// Returns the id of a home, which is added if necessary.
    fn home_id(&self, origin: &Origin) -> Result<i64, ArchiveError> {
        let folder = origin.folder();
        let upsert = "insert into threadline.homes (folder, machine_id, machine, user_name, path)
            values ($1, $2, $3, $4, $5) on conflict (owner, folder)
            do update set machine = excluded.machine, user_name = excluded.user_name returning id";
        let Origin { machine_id, machine, user, home } = origin;
        self.run(|client| {
            let row =
                client.query_one(upsert, &[&folder, machine_id, machine, user, home]).action("write to")?;
            Ok(row.get(0))
        })
    }
}

/// Copies the files of a home.
struct HomePush<'a> {
    archive: &'a PostgresArchive,
    home_id: i64,
    logs: &'a HashMap<PathBuf, LogFile>,
    options: &'a PushOptions<'a>,
    progress: &'a (dyn Fn(u64) + Sync),
}

/// The end of a transaction.
enum JobEnd {
    /// It was committed.
    Done(PushReport),
    /// A local file could not be read; nothing was written.
    Unreadable(usize, io::Error),
}

impl HomePush<'_> {
    /// Copies some files in one transaction.
    fn job(&self, mut job: Vec<HomeFile>, report: &mut PushReport) -> Result<(), ArchiveError> {
        let mut attempts = 0;
        while !job.is_empty() {
            match self.archive.run(|client| self.transaction(client, &job)) {
                Ok(JobEnd::Done(done)) => {
                    report.new_files += done.new_files;
                    report.grown_files += done.grown_files;
                    report.rewritten_files += done.rewritten_files;
                    report.unchanged_files += done.unchanged_files;
                    report.copied_bytes += done.copied_bytes;
                    report.stored_bytes += done.stored_bytes;
                    return Ok(());
                }
                Ok(JobEnd::Unreadable(place, error)) => {
                    let file = job.remove(place);
                    if error.kind() != io::ErrorKind::NotFound {
                        report.unread.push(format!("cannot read {}: {error}", file.path.display()));
                    }
                }
                Err(error) if is_conflict(&error) && attempts < ATTEMPTS => attempts += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn transaction(&self, client: &mut postgres::Client, job: &[HomeFile]) -> Result<JobEnd, ArchiveError> {
        let mut transaction = client.transaction().action("write to")?;
        // Processes that push the same home run one after the other.
        let lock = "select id from threadline.homes where id = $1 for update";
        transaction.query_one(lock, &[&self.home_id]).action("lock")?;
        let names: Vec<&str> = job.iter().map(|file| &*file.name).collect();
        let known = format!(
            "select {COLUMNS} from threadline.files where home = $1 and name = any ($2) and is_current"
        );
        let known = transaction.query(&known, &[&self.home_id, &names]).action("read")?;
        let known: Vec<StoredFile> = known.iter().map(StoredFile::of).collect::<Result<_, _>>()?;
        let known: HashMap<&str, &StoredFile> = known.iter().map(|file| (&*file.name, file)).collect();
        let removed = "select session from threadline.removed where home = $1";
        let removed: BTreeSet<String> = transaction
            .query(removed, &[&self.home_id])
            .action("read")?
            .iter()
            .map(|row| row.get(0))
            .collect();
        let ids = "select nextval('threadline.files_id_seq') from generate_series(1, $1)";
        let n_files = i32::try_from(job.len()).unwrap_or(i32::MAX);
        let ids = transaction.query(ids, &[&n_files]).action("write to")?;
        let mut report = PushReport::default();
        let mut copier = FileCopier::new(&mut transaction, self.home_id)?;
        let mut reducer = match self.options.level {
            PrivacyLevel::Full => None,
            level => Some(SessionReducer::new(level, self.options.rules, job)),
        };
        for (place, (file, id)) in job.iter().zip(&ids).enumerate() {
            let known = known.get(&*file.name).copied();
            let is_removed = known.is_none()
                && threadline_store::session_of_file(&file.name)
                    .is_some_and(|id| removed.contains(id.as_str()));
            if is_removed {
                continue;
            }
            match self.file(&mut copier, file, known, id.get(0), reducer.as_mut(), &mut report) {
                Err(ArchiveError::Io(error)) => return Ok(JobEnd::Unreadable(place, error)),
                copied => copied?,
            }
        }
        let ids = copier.finish()?;
        report.stored_bytes = report.copied_bytes;
        transaction.commit().action("write to")?;
        // Only now are the rows of all other transactions visible that may repeat these calls.
        client.execute("select threadline.mark_shared($1)", &[&ids]).action("write to")?;
        Ok(JobEnd::Done(report))
    }

    /// Copies the new bytes of a file.
    fn file(
        &self,
        copier: &mut FileCopier<'_, '_>,
        file: &HomeFile,
        known: Option<&StoredFile>,
        new_id: i64,
        reducer: Option<&mut SessionReducer<'_>>,
        report: &mut PushReport,
    ) -> Result<(), ArchiveError> {
        let options = self.options;
        let content = match reducer {
            None => Content::File(&file.path),
            Some(reducer) => {
                let original = threadline_store::read_regular(&file.path)?;
                (self.progress)(original.len() as u64);
                Content::Bytes(reducer.reduce(&file.name, &original))
            }
        };
        let mut reader = content.open()?;
        let same_level = known.filter(|known| known.level == options.level);
        let mut hash = Sha256::new();
        let continued = match same_level {
            Some(known) => read_start(&mut *reader, known, &mut hash)?.map(|tail| (known, tail)),
            None => None,
        };
        let (mut row, tail) = match continued {
            Some((known, tail)) => (known.clone(), tail),
            None => {
                hash = Sha256::new();
                reader.rewind()?;
                let version = known.map_or(0, |known| known.version + 1);
                (StoredFile::new(new_id, self.home_id, &file.name, version, options.level), Vec::new())
            }
        };
        let is_continued = known.is_some_and(|known| known.id == row.id);
        let begin = if is_continued { row.size } else { 0 };
        let is_file = matches!(content, Content::File(_));
        if is_file {
            (self.progress)(u64::try_from(begin).unwrap_or(0));
        }
        let progress = is_file.then_some(self.progress);
        if copier.buffers.is_limited && !is_continued {
            // A row of the content is only accepted if that of its file exists. It is replaced at the end.
            copier.write_files(&[], std::slice::from_ref(&row))?;
        }
        let log = self.logs.get(&file.path).filter(|_| row.name != "history.jsonl");
        let source = log.map(|log| log_source(log, &row.name));
        let reader = HashReader { reader, hash: &mut hash, progress };
        copier.content(&mut row, tail, &content, source, reader)?;
        row.digest = hex_digits(hash);
        row.modified = millis(file.modified);
        row.stamp = stamp(file, options.now);
        report.copied_bytes += u64::try_from(row.size - begin).unwrap_or(0);
        match known {
            None => report.new_files += 1,
            Some(_) if !is_continued => report.rewritten_files += 1,
            Some(_) if row.size > begin => report.grown_files += 1,
            Some(_) => report.unchanged_files += 1,
        }
        if let Some(known) = known.filter(|_| !is_continued) {
            copier.retire(known, &row)?;
        }
        copier.rows.push(row);
        Ok(())
    }
}

/// Returns the source of a log, with its name below the home as its path.
fn log_source(log: &LogFile, name: &str) -> LogSource {
    LogSource {
        path: name.to_owned(),
        session: log.session.clone().map(Into::into),
        folder: Some(log.folder()),
        agent: log.agent().map(|agent| (agent.id, agent.kind)),
    }
}
