//! Copies what is new in a home to the database.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use memchr::memchr_iter;
use postgres::Transaction;
use sha2::{Digest, Sha256};
use threadline_app::MAX_LINE;
use threadline_entry::{Ending, LineReader, LogLine, Position};
use threadline_store::{Home, HomeFile, LogFile, Store, open_regular};
use threadline_usage::{LogSource, LogStart};

use crate::digest::hex_digits;
use crate::error::ArchiveError;
use crate::level::{PrivacyLevel, SessionReducer};
use crate::manifest::{Manifest, Origin};
use crate::postgres::connection::{DatabaseResult as _, PostgresArchive, is_conflict};
use crate::postgres::copy_format::CopyRows;
use crate::postgres::derive::{CallScan, DERIVED, RowBuffers, copy_in};
use crate::postgres::line_batch::{LineBatch, LineSplitter};
use crate::postgres::schema;
use crate::postgres::stored_file::{COLUMNS, StoredFile};
use crate::push::{PushOptions, PushReport, millis, plan, stamp};

/// Rows are sent when they have this size.
const FLUSH_SIZE: usize = 4 << 20;

/// The number of times that the files of a job are copied again because another process changed them.
const ATTEMPTS: usize = 8;

/// The start time and directory of a log are in its first lines.
const HEAD_LINES: i64 = 64;

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
        // Processes that push the same home wait for each other.
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
        let is_limited = "select row_security_active('threadline.lines')";
        let is_limited: bool = transaction.query_one(is_limited, &[]).action("read")?.get(0);
        let ids = "select nextval('threadline.files_id_seq') from generate_series(1, $1)";
        let n_files = i32::try_from(job.len()).unwrap_or(i32::MAX);
        let ids = transaction.query(ids, &[&n_files]).action("write to")?;
        let mut copier = FileCopier {
            push: self,
            transaction: &mut transaction,
            buffers: RowBuffers::new(is_limited),
            rows: Vec::new(),
            retired: Vec::new(),
            report: PushReport::default(),
        };
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
            match copier.file(file, known, id.get(0), reducer.as_mut()) {
                Err(ArchiveError::Io(error)) => return Ok(JobEnd::Unreadable(place, error)),
                copied => copied?,
            }
        }
        let (report, ids) = copier.finish()?;
        transaction.commit().action("write to")?;
        // Only now are the rows of all other transactions visible that may repeat these calls.
        client.execute("select threadline.mark_shared($1)", &[&ids]).action("write to")?;
        Ok(JobEnd::Done(report))
    }
}

/// Copies files within a transaction.
struct FileCopier<'a, 't, 'c> {
    push: &'a HomePush<'a>,
    transaction: &'t mut Transaction<'c>,
    buffers: RowBuffers,
    /// The new rows of files, and those that replace others.
    rows: Vec<StoredFile>,
    /// Earlier versions that are kept.
    retired: Vec<StoredFile>,
    report: PushReport,
}

/// The content of a file, which can be read more than once.
enum Content<'p> {
    File(&'p Path),
    Bytes(Vec<u8>),
}

trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

impl Content<'_> {
    fn open(&self) -> io::Result<Box<dyn ReadSeek + '_>> {
        Ok(match self {
            Self::File(path) => Box::new(open_regular(path)?),
            Self::Bytes(bytes) => Box::new(Cursor::new(bytes)),
        })
    }
}

impl FileCopier<'_, '_, '_> {
    /// Copies the new bytes of a file.
    fn file(
        &mut self,
        file: &HomeFile,
        known: Option<&StoredFile>,
        new_id: i64,
        reducer: Option<&mut SessionReducer<'_>>,
    ) -> Result<(), ArchiveError> {
        let options = self.push.options;
        let content = match reducer {
            None => Content::File(&file.path),
            Some(reducer) => {
                let original = threadline_store::read_regular(&file.path)?;
                (self.push.progress)(original.len() as u64);
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
                let home = self.push.home_id;
                (StoredFile::new(new_id, home, &file.name, version, options.level), Vec::new())
            }
        };
        let is_continued = known.is_some_and(|known| known.id == row.id);
        let begin = if is_continued { row.size } else { 0 };
        let progress = self.push.progress;
        let is_file = matches!(content, Content::File(_));
        if is_file {
            progress(u64::try_from(begin).unwrap_or(0));
        }
        let progress = is_file.then_some(progress);
        if self.buffers.is_limited && !is_continued {
            // A row of the content is only accepted if that of its file exists. It is replaced at the end.
            self.write_files(&[], std::slice::from_ref(&row))?;
        }
        self.content(
            &mut row,
            tail,
            &content,
            HashReader { reader, path: &file.path, hash: &mut hash, progress },
        )?;
        row.digest = hex_digits(hash);
        row.modified = millis(file.modified);
        row.stamp = stamp(file, options.now);
        self.report.copied_bytes += u64::try_from(row.size - begin).unwrap_or(0);
        match known {
            None => self.report.new_files += 1,
            Some(_) if !is_continued => self.report.rewritten_files += 1,
            Some(_) if row.size > begin => self.report.grown_files += 1,
            Some(_) => self.report.unchanged_files += 1,
        }
        if let Some(known) = known.filter(|_| !is_continued) {
            self.retire(known)?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Copies the content from the end of the last whole line on. `tail` is what the reader was beyond that.
    fn content(
        &mut self,
        row: &mut StoredFile,
        tail: Vec<u8>,
        content: &Content<'_>,
        mut reader: HashReader<'_>,
    ) -> Result<(), ArchiveError> {
        if !row.name.ends_with(".jsonl") {
            return self.chunks(row, &mut reader);
        }
        if row.tail_at < row.size {
            self.delete_tail(row)?;
        }
        let log = self.push.logs.get(reader.path).filter(|_| row.name != "history.jsonl");
        let source = log.map(|log| log_source(log, &row.name));
        let first_line = row.n_lines + 1;
        row.row_sum = row.row_sum.wrapping_sub(row.tail_sum);
        (row.tail_sum, row.is_torn) = (0, false);
        let mut scan = source.clone().map(CallScan::new);
        let mut at = row.tail_at;
        let (mut part_length, mut has_tail) = (0, false);
        let mut splitter = LineSplitter::new(tail, reader);
        while let Some(batch) = splitter.next()? {
            match batch {
                LineBatch::Lines(bytes) => {
                    if let Some(scan) = &mut scan {
                        scan.lines(bytes);
                    }
                    let mut start = 0;
                    for newline in memchr_iter(b'\n', bytes) {
                        let line = &bytes[start..=newline];
                        let sum = self.line(row, at, line, Ending::Newline, scan.is_some());
                        row.row_sum = row.row_sum.wrapping_add(sum);
                        row.n_lines += 1;
                        at += length(line);
                        start = newline + 1;
                    }
                    row.tail_at = at;
                }
                LineBatch::LongLine(bytes, ends) => {
                    self.buffers.lines.row(4).number(row.id).number(at).number(row.n_lines + 1).bytes(bytes);
                    at += length(bytes);
                    part_length += length(bytes);
                    row.longest_line = row.longest_line.max(part_length);
                    if ends {
                        row.n_lines += 1;
                        row.tail_at = at;
                        part_length = 0;
                    }
                }
                LineBatch::Tail(bytes) => {
                    let mut sum = self.line(row, at, bytes, Ending::None, scan.is_some());
                    if let Some(source) = &source {
                        let mut scan = CallScan::new(source.clone());
                        scan.lines(bytes);
                        let scanned = scan.finish();
                        row.is_torn = scanned.start().ends_in_incomplete_line;
                        sum = sum.wrapping_add(self.buffers.add_calls(row.id, row.n_lines + 1, &scanned));
                        has_tail = true;
                    }
                    row.tail_sum = sum;
                    row.row_sum = row.row_sum.wrapping_add(sum);
                    at += length(bytes);
                }
            }
            if self.buffers.size() > FLUSH_SIZE {
                self.buffers.flush(self.transaction)?;
            }
        }
        row.size = at;
        if let Some(scan) = scan {
            let scanned = scan.finish();
            let sum = self.buffers.add_calls(row.id, first_line, &scanned);
            row.row_sum = row.row_sum.wrapping_add(sum);
            row.n_invalid += i64::try_from(scanned.start().n_invalid_lines).unwrap_or(0);
            match (first_line, source) {
                (1, _) if !has_tail => set_start(row, scanned.start()),
                (..=HEAD_LINES, Some(source)) => set_start(row, read_head(content, source)?),
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds a line and, for a log, what is derived from it. Returns the sum of the derived rows.
    fn line(&mut self, row: &mut StoredFile, at: i64, line: &[u8], ending: Ending, is_log: bool) -> i64 {
        let line_no = row.n_lines + 1;
        row.longest_line = row.longest_line.max(length(line));
        self.buffers.lines.row(4).number(row.id).number(at).number(line_no).bytes(line);
        if !is_log {
            return 0;
        }
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        let line = LogLine { bytes, ending, at: Position::START };
        let (sum, last_at) = self.buffers.add_line(row.id, line_no, &line);
        row.last_at = last_at.or(row.last_at);
        sum
    }

    /// Copies a file that does not consist of lines.
    fn chunks(&mut self, row: &mut StoredFile, reader: &mut HashReader<'_>) -> Result<(), ArchiveError> {
        let mut buffer = vec![0; CHUNK_SIZE];
        loop {
            let n_read = reader.read(&mut buffer)?;
            if n_read == 0 {
                break;
            }
            self.buffers.chunks.row(3).number(row.id).number(row.size).bytes(&buffer[..n_read]);
            row.size += length(&buffer[..n_read]);
            if self.buffers.size() > FLUSH_SIZE {
                self.buffers.flush(self.transaction)?;
            }
        }
        row.tail_at = row.size;
        Ok(())
    }

    /// Deletes the rows of an incomplete last line, which is copied again as a whole.
    fn delete_tail(&mut self, row: &StoredFile) -> Result<(), ArchiveError> {
        let lines = "delete from threadline.lines where file = $1 and at >= $2";
        self.transaction.execute(lines, &[&row.id, &row.tail_at]).action("write to")?;
        for (table, _) in DERIVED {
            let delete = format!("delete from threadline.{table} where file = $1 and line > $2");
            self.transaction.execute(&delete, &[&row.id, &row.n_lines]).action("write to")?;
        }
        Ok(())
    }

    /// Keeps the earlier version of a file that was rewritten, or deletes it if it may contain texts that the
    /// level leaves out.
    fn retire(&mut self, known: &StoredFile) -> Result<(), ArchiveError> {
        let level = self.push.options.level;
        if known.level == level && level == PrivacyLevel::Full {
            delete_rows(self.transaction, &[known.id], false)?;
            self.retired.push(StoredFile { row_sum: 0, tail_sum: 0, ..known.clone() });
            return Ok(());
        }
        let all = "delete from threadline.files where home = $1 and name = $2 returning id";
        let deleted = self.transaction.query(all, &[&known.home, &known.name]).action("write to")?;
        let ids: Vec<i64> = deleted.iter().map(|row| row.get(0)).collect();
        delete_rows(self.transaction, &ids, true)
    }

    /// Writes rows of files: of current versions and of others.
    fn write_files(&mut self, current: &[StoredFile], others: &[StoredFile]) -> Result<(), ArchiveError> {
        let mut rows = CopyRows::new();
        others.iter().for_each(|row| row.write(&mut rows, false));
        current.iter().for_each(|row| row.write(&mut rows, true));
        let columns = format!("{COLUMNS}, checksum, is_current");
        copy_in(self.transaction, "files", &columns, rows, self.buffers.is_limited)
    }

    /// Writes the rows that are left, and those of the files. Returns the ids of these.
    fn finish(mut self) -> Result<(PushReport, Vec<i64>), ArchiveError> {
        self.buffers.flush(self.transaction)?;
        let ids: Vec<i64> = self.rows.iter().map(|row| row.id).collect();
        let replaced: Vec<i64> = ids.iter().copied().chain(self.retired.iter().map(|row| row.id)).collect();
        let delete = "delete from threadline.files where id = any ($1)";
        self.transaction.execute(delete, &[&replaced]).action("write to")?;
        let (rows, retired) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.retired));
        self.write_files(&rows, &retired)?;
        let sessions: BTreeSet<&str> = rows.iter().filter_map(|row| row.session.as_deref()).collect();
        let sessions: Vec<&str> = sessions.into_iter().collect();
        self.transaction.execute(SESSIONS, &[&self.push.home_id, &sessions]).action("write to")?;
        self.report.stored_bytes = self.report.copied_bytes;
        Ok((self.report, ids))
    }
}

/// Files that do not consist of lines are stored in rows of this size.
const CHUNK_SIZE: usize = 256 << 10;

/// Updates the rows of some sessions from those of their files.
const SESSIONS: &str = "insert into threadline.sessions (home, id, folder, cwd, level, first_at, last_at, n_files, size)
    select home, session, max(folder) filter (where is_own), max(cwd) filter (where is_own),
        max(level) filter (where is_own), min(first_at), max(last_at), count(*), sum(size)
    from (
        select *, is_log and agent is null as is_own from threadline.files
        where home = $1 and session = any ($2) and is_current
    ) f
    group by home, session
    on conflict (home, id) do update set folder = excluded.folder, cwd = excluded.cwd, level = excluded.level,
        first_at = excluded.first_at, last_at = excluded.last_at, n_files = excluded.n_files, size = excluded.size";

/// Deletes the rows that were derived from some files, and with `content` also their lines and chunks.
pub(super) fn delete_rows(
    transaction: &mut Transaction<'_>,
    ids: &[i64],
    content: bool,
) -> Result<(), ArchiveError> {
    let own = ["lines", "chunks"].into_iter().filter(|_| content);
    for table in own.chain(DERIVED.map(|(table, _)| table)) {
        let delete = format!("delete from threadline.{table} where file = any ($1)");
        transaction.execute(&delete, &[&ids]).action("write to")?;
    }
    Ok(())
}

/// Reads the part of a file that is archived. Returns the bytes of its incomplete last line if it is the same,
/// and `None` if the file was rewritten.
fn read_start(
    reader: &mut dyn ReadSeek,
    known: &StoredFile,
    hash: &mut Sha256,
) -> io::Result<Option<Vec<u8>>> {
    const BUFFER: usize = 256 << 10;
    let mut buffer = vec![0; BUFFER];
    let mut tail = Vec::new();
    let mut at = 0;
    while at < known.size {
        let wanted = buffer.len().min(usize::try_from(known.size - at).unwrap_or(usize::MAX));
        let n_read = reader.read(&mut buffer[..wanted])?;
        if n_read == 0 {
            return Ok(None);
        }
        let read = &buffer[..n_read];
        hash.update(read);
        let skipped = usize::try_from(known.tail_at - at).unwrap_or(0);
        tail.extend(read.get(skipped..).unwrap_or_default());
        at += length(read);
    }
    Ok((hex_digits(hash.clone()) == known.digest).then_some(tail))
}

/// Returns the start of a log, from its first lines.
fn read_head(content: &Content<'_>, source: LogSource) -> Result<LogStart, ArchiveError> {
    let mut scan = CallScan::new(source);
    let mut lines = LineReader::new(content.open()?).skip_longer_than(MAX_LINE);
    let mut n_lines = 0;
    while n_lines < HEAD_LINES
        && let Some(block) = lines.next_block()?
    {
        n_lines += i64::try_from(memchr_iter(b'\n', block.bytes).count()).unwrap_or(i64::MAX);
        scan.lines(block.bytes);
    }
    Ok(scan.finish().start())
}

/// Sets the facts about a log.
fn set_start(row: &mut StoredFile, start: LogStart) {
    let LogStart { source, first_at, cwd, .. } = start;
    row.is_log = true;
    row.first_at = first_at;
    row.cwd = cwd;
    row.log_session = source.session;
    row.folder = source.folder;
    row.agent = source.agent.map(|(id, _)| id);
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

fn length(bytes: &[u8]) -> i64 {
    i64::try_from(bytes.len()).unwrap_or(i64::MAX)
}

/// A reader that computes a digest.
struct HashReader<'a> {
    reader: Box<dyn ReadSeek + 'a>,
    path: &'a Path,
    hash: &'a mut Sha256,
    progress: Option<&'a (dyn Fn(u64) + Sync)>,
}

impl Read for HashReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.reader.read(buffer)?;
        self.hash.update(&buffer[..n_read]);
        if let Some(progress) = self.progress {
            progress(n_read as u64);
        }
        Ok(n_read)
    }
}
